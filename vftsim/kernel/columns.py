"""Reading and writing many rows of a table at once, from the driver."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vftsim.kernel.declare import Table
from vftsim.kernel.engine import Engine


def columns_of(engine: Engine, table: Table[Any], names: Sequence[str], first: int, end: int) -> list[list[Any]]:
    """Return fields of the rows ``first`` to ``end - 1``, one list a field, as plain numbers and lists."""
    rows: Any = engine.rows(table)
    if isinstance(rows, np.ndarray):
        return [rows[name][first:end].tolist() for name in names]
    return [[_plain(getattr(rows[n], name)) for n in range(first, end)] for name in names]


def arrays_of(engine: Engine, table: Table[Any], names: Sequence[str], first: int, end: int) -> list[NDArray[Any]]:
    """Return fields of the rows ``first`` to ``end - 1``, one array of its own a field."""
    rows: Any = engine.rows(table)
    if isinstance(rows, np.ndarray):
        chosen = rows[first:end].copy()
        return [chosen[name] for name in names]
    return [np.array([getattr(rows[n], name) for n in range(first, end)]) for name in names]


def write_columns(engine: Engine, table: Table[Any], columns: Mapping[str, NDArray[Any]], first: int) -> None:
    """Write fields of the rows from ``first`` on, one array a field."""
    rows: Any = engine.rows(table)
    for name, values in columns.items():
        if isinstance(rows, np.ndarray):
            rows[name][first : first + len(values)] = values
        else:
            for offset, value in enumerate(values.tolist()):
                setattr(rows[first + offset], name, value)


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, list) else value
