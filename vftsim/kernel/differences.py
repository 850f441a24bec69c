"""Where two runs of one model part: the first event after which their states are not the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from vftsim.kernel.declare import Table
from vftsim.kernel.engine import FOREVER_NS, Engine
from vftsim.kernel.record import Record, dtype_of, fields


def table_state(engine: Engine, table: Table[Any]) -> np.ndarray[Any, Any]:
    """Return a table's rows, nobody included, as a structured array."""
    base = table.beside or table
    count = table.capacity if table.is_fixed else engine.used(base) + 1
    rows = engine.rows(table)
    if isinstance(rows, np.ndarray):
        return np.asarray(rows[:count])
    return np.array([_plain(table.record, row) for row in rows[:count]], dtype=dtype_of(table.record))


def _plain(record: type[Record], row: Any) -> tuple[Any, ...]:
    return tuple(_value(getattr(row, name)) for name in fields(record))


def _value(value: Any) -> Any:
    if isinstance(value, list):
        return [_value(one) for one in value]
    if isinstance(value, Record):
        kind = next(cls for cls in type(value).__mro__ if not cls.__name__.startswith("Checked"))
        return _plain(kind, value)
    return value


def state_differences(one: Engine, other: Engine) -> Iterator[str]:
    """Name what differs in the states of two engines: table, row, field and both values."""
    if one.now_ns != other.now_ns:
        yield f"time: {one.now_ns} ns in {one.name}, {other.now_ns} ns in {other.name}"
    for name in sorted(one.linked.tables):
        table = one.linked.tables[name]
        left, right = table_state(one, table), table_state(other, table)
        if len(left) != len(right):
            yield f"{name}: {len(left) - 1} rows in {one.name}, {len(right) - 1} in {other.name}"
        elif left.tobytes() != right.tobytes():
            yield from _row_differences(name, left, right, one.name, other.name)


def _row_differences(name: str, left: Any, right: Any, first: str, second: str) -> Iterator[str]:
    for row in range(len(left)):
        for column in left.dtype.names:
            if left[row][column].tobytes() != right[row][column].tobytes():
                yield f"{name}[{row}].{column}: {left[row][column]} in {first}, {right[row][column]} in {second}"


def first_difference(make: Callable[[], tuple[Engine, Engine]], until_ns: int = FOREVER_NS) -> str | None:
    """Return which event is the first after which two engines differ, and in what; None if they agree to the end.

    Parameters
    ----------
    make : callable
        Builds the same model in both engines, anew at each call.
    until_ns : int
        How far to look.
    """
    one, other = make()
    one.run(until_ns)
    other.run(until_ns)
    if not any(True for _ in state_differences(one, other)):
        return None
    same, differing = 0, max(one.events, other.events)
    while differing - same > 1:
        middle = (same + differing) // 2
        if any(True for _ in _after(make, middle, until_ns)):
            differing = middle
        else:
            same = middle
    one, other = make()
    for engine in (one, other):
        engine.run(until_ns, differing)
    differences = list(state_differences(one, other))
    return f"event {differing}, at {one.now_ns} ns: {'; '.join(differences[:5])}"


def _after(make: Callable[[], tuple[Engine, Engine]], events: int, until_ns: int) -> Iterator[str]:
    one, other = make()
    for engine in (one, other):
        engine.run(until_ns, events)
    yield from state_differences(one, other)
