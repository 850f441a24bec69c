"""What a result says of itself on disk, for results of which no class is read back: a page is made of it at once."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from pydantic import TypeAdapter, ValidationError

from vftsim.errors import UsageError
from vftsim.report.blocks import Block
from vftsim.study.files import write_json
from vftsim.study.opened import read_answer, read_data, read_manifest
from vftsim.study.printed import Printed
from vftsim.study.results import rows, write_charts
from vftsim.study.store import ANSWER

if TYPE_CHECKING:
    import pandas as pd

BLOCKS = "blocks.json"
_TABLES = ("results.csv", "sensitivity.csv", "configurations.csv", "answer.csv")
_KINDS = {kind.__name__: kind for kind in get_args(Block)}


@dataclass(frozen=True)
class Stored(Printed):
    """A result as its directory describes it.

    Parameters
    ----------
    name : str
        Its title.
    """

    folder: Path
    name: str
    found: list[Block]
    manifest: dict[str, Any]

    @classmethod
    def opened(cls, folder: Path) -> Stored:
        """Return what is in a directory.

        Raises
        ------
        UsageError
            It does not describe itself, or is damaged.
        """
        manifest, data = read_manifest(folder), read_data(folder, BLOCKS)
        try:
            found = [_block(entry) for entry in data["blocks"]]
            return cls(folder, str(data["title"]), found, manifest)
        except (ValidationError, KeyError, TypeError, AttributeError):
            raise UsageError(
                f"'{folder / BLOCKS}': damaged; the command that made '{folder}' writes it again"
            ) from None

    @property
    def title(self) -> str:
        """What was studied, and how."""
        return self.name

    def blocks(self) -> list[Block]:
        """Return everything for people as blocks."""
        return self.found

    def to_pandas(self) -> pd.DataFrame:
        """Return the main table.

        Raises
        ------
        UsageError
            It is not there.
        """
        import pandas as pd  # noqa: PLC0415 - takes its time

        name = next((each for each in _TABLES if (self.folder / each).is_file()), None)
        if name is None:
            raise UsageError(f"'{self.folder}' has no table; the command that made it writes it again")
        return pd.read_csv(self.folder / name)

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data, or the main table where that is all that is kept."""
        if (self.folder / ANSWER).is_file():
            return read_answer(self.folder)
        return {"manifest": self.manifest, "results": rows(self.to_pandas())}


def write_blocks(folder: Path, result: Printed) -> None:
    """Write a result's charts into its directory, and what it says of itself if no class reads that back."""
    blocks = result.blocks()
    write_charts(folder, blocks)
    if hasattr(result, "opened"):
        return
    entries = [{"is": type(block).__name__, **_plain(block)} for block in blocks]
    write_json(folder / BLOCKS, {"title": result.title, "blocks": entries}, indent=None)


def _block(entry: Mapping[str, Any]) -> Block:
    kind = _KINDS[entry["is"]]
    found: Block = TypeAdapter(kind).validate_python({name: value for name, value in entry.items() if name != "is"})
    return found


def _plain(data: Any) -> Any:
    """Return blocks as JSON has them; where a field must have a number, one that JSON lacks is its word.

    A cell without a number is one of which nothing is known.
    """
    if is_dataclass(data):
        own = {each.name: getattr(data, each.name) for each in fields(data)}
        return {name: _word(value) if name != "cell" else _plain(value) for name, value in own.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(each) for each in data]
    return data


def _word(value: Any) -> Any:
    is_word = isinstance(value, float) and not math.isfinite(value)
    return str(float(value)) if is_word else _plain(value)
