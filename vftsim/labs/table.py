"""Text tables of measurements: read as a whole, every mistake told with file, line and column."""

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path

from vftsim.errors import ModelFileError
from vftsim.spec.suggest import instead, shown
from vftsim.spec.yaml_source import read_text

MAX_BYTES = 2**28
MAX_ROWS = 1_000_000
SEPARATORS = {"csv": ",", "semicolon": ";", "tab": "\t"}
_COMMAS = re.compile(r"[+-]?[0-9]+(?:,[0-9]+)+(?:\.[0-9]+)?")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,3})?")


@dataclass(frozen=True, slots=True)
class Row:
    """One row with its place."""

    file: str
    line: int
    cells: dict[str, str]

    def text(self, column: str) -> str:
        """Return a cell that must not be empty."""
        cell = self.cells[column].strip()
        if not cell:
            raise ModelFileError("the cell is empty", self.file, self.line, column)
        return cell

    def number(self, column: str, optional: bool = False) -> float | None:
        """Return a cell's number; ``None`` for an empty one that may be."""
        cell = self.cells[column].strip()
        if not cell and optional:
            return None
        if not cell:
            raise ModelFileError(
                "the cell is empty; write the number, or 'optional: true' for the column if it was not measured",
                self.file,
                self.line,
                column,
            )
        return number(cell, self.file, self.line, column)


def number(text: str, file: str, line: int, column: str) -> float:
    """Return the number that a text is, or tell where it is none."""
    if not _NUMBER.fullmatch(text):
        hint = "; write a decimal point, and thousands without a separator" if _COMMAS.fullmatch(text) else ""
        raise ModelFileError(f"{shown(text)} is not a number{hint}", file, line, column)
    value = float(text)
    if not math.isfinite(value):
        raise ModelFileError(f"{shown(text)} is too large a number", file, line, column)
    return value


def read_rows(path: Path, separator: str, needed: list[str]) -> Iterator[Row]:
    """Yield the rows of a table that has the ``needed`` columns.

    Refuses a file that cannot be read, a column that is missing or there twice, a row with too few or too many cells.
    """
    label = str(path)
    reader = csv.reader(StringIO(read_text(path, MAX_BYTES), newline=""), delimiter=separator, strict=True)
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(header, needed, label)
        for count, cells in enumerate(reader):
            if count >= MAX_ROWS:
                raise ModelFileError(f"has more than {MAX_ROWS} rows", label, reader.line_num)
            if not any(cells):
                continue
            if len(cells) != len(header):
                raise ModelFileError(f"has {len(cells)} cells, the header {len(header)}", label, reader.line_num)
            yield Row(label, reader.line_num, dict(zip(header, cells, strict=True)))
    except csv.Error as error:
        raise ModelFileError(f"is not a table: {error}", label, reader.line_num) from None


def _check_header(header: list[str], needed: list[str], label: str) -> None:
    if not header:
        raise ModelFileError("is empty; the first line names the columns", label)
    for name in header:
        if header.count(name) > 1:
            raise ModelFileError(f"has two columns {shown(name)}", label, 1)
    for name in needed:
        if name not in header:
            raise ModelFileError(f"has no column {shown(name)}{instead(name, header, 'its columns:')}", label, 1)
