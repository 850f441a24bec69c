"""Where two runs of one model part: the first event after which their states are not the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

import numpy as np

from vftsim.kernel import FOREVER_NS, Engine, Record, Table
from vftsim.kernel.record import dtype_of, fields


def first_difference(make: Callable[[], tuple[Engine, Engine]], until_ns: int = FOREVER_NS) -> str | None:
    """Return which event is the first after which two engines differ, and in what; None if they agree to the end.

    Parameters
    ----------
    make : callable
        Builds the same model in both engines, anew at each call.
    until_ns : int
        How far to look.
    """

    def played(most_events: int = FOREVER_NS) -> tuple[Engine, Engine]:
        one, other = make()
        for engine in (one, other):
            engine.run(until_ns, most_events)
        return one, other

    one, other = played()
    if not any(state_differences(one, other)):
        return None
    same, differing = 0, max(one.events, other.events)
    while differing - same > 1:
        middle = (same + differing) // 2
        if any(state_differences(*played(middle))):
            differing = middle
        else:
            same = middle
    one, other = played(differing)
    return f"event {differing}, at {one.now_ns} ns: {'; '.join(islice(state_differences(one, other), 5))}"


def state_differences(one: Engine, other: Engine) -> Iterator[str]:
    """Name what differs in the states of two engines: table, row, field and both values."""
    if one.now_ns != other.now_ns:
        yield f"time: {one.now_ns} ns in {one.name}, {other.now_ns} ns in {other.name}"
    for name in sorted(one.linked.tables):
        table = one.linked.tables[name]
        left, right = _state(one, table), _state(other, table)
        if len(left) != len(right):
            yield f"{name}: {len(left) - 1} rows in {one.name}, {len(right) - 1} in {other.name}"
        elif left.tobytes() != right.tobytes():
            yield from _row_differences(name, left, right, one.name, other.name)


def _row_differences(name: str, left: Any, right: Any, first: str, second: str) -> Iterator[str]:
    for row in range(len(left)):
        for column in left.dtype.names:
            if left[row][column].tobytes() != right[row][column].tobytes():
                yield f"{name}[{row}].{column}: {left[row][column]} in {first}, {right[row][column]} in {second}"


def _state(engine: Engine, table: Table[Any]) -> np.ndarray[Any, Any]:
    """Return a table's rows, nobody included, as a structured array."""
    count = table.capacity if table.is_fixed else engine.used(table.beside or table) + 1
    rows = engine.rows(table)
    if isinstance(rows, np.ndarray):
        return np.asarray(rows[:count])
    return np.array([_plain(row) for row in rows[:count]], dtype=dtype_of(table.record))


def _plain(value: Any) -> Any:
    """Return a field without Python's objects: a record is a tuple of its fields."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, Record):
        return tuple(_plain(getattr(value, name)) for name in fields(type(value)))
    return value
