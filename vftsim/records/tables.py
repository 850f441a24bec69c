"""Tables that lie beside a record: what a source states, as rows of a CSV file."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path


def cell(folder: Path, table: str, column: str, **where: str) -> float:
    """Return a number of a table beside the record: that of the first row with the given words.

    Raises
    ------
    LookupError
        There is no such row.
    """
    for row in rows_of(folder / f"{table}.csv"):
        if all(row[key] == str(value) for key, value in where.items()):
            return float(row[column])
    raise LookupError(f"{table}.csv has no row with {where}")


@cache
def rows_of(path: Path) -> tuple[dict[str, str], ...]:
    """Return the rows of a table."""
    with path.open(newline="", encoding="utf-8") as file:
        return tuple(csv.DictReader(file))
