"""Where everything of a compiled kernel's state is in memory: numbers first, then the queue and the tables."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from vftsim.kernel import wheel
from vftsim.kernel.link import Linked
from vftsim.kernel.record import dtype_of

_LINE_BYTES = 64
"""Arrays begin where lines of the processor's cache do."""


@dataclass(frozen=True, slots=True)
class Placement:
    """An array in the state."""

    dtype: np.dtype[Any]
    """Of one item."""
    count: int
    offset: int
    """Items, and bytes before the first."""

    @property
    def end(self) -> int:
        """Bytes before whatever follows."""
        return self.offset + self.count * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Layout:
    """A state."""

    head: np.dtype[Any]
    """The numbers that are no rows, at offset 0."""
    arrays: dict[str, Placement]
    size: int
    """Bytes in all.  More than numpy counts in a record (2 GiB) are well: tables are large, and mostly untouched."""

    def text(self) -> str:
        """Return it in words that differ whenever the layout does."""
        arrays = (f"{name} {array.offset} {array.count} {array.dtype}" for name, array in self.arrays.items())
        return "\n".join([str(self.head), *arrays])


def layout_of(linked: Linked) -> Layout:
    """Return the layout of a kernel's state."""
    numbers: list[Any] = [
        ("now_ns", "i8"),
        ("wants_input", "?"),
        ("failure", "i8"),
        ("events", "i8"),
        ("watching", "i8"),
        *wheel.NUMBERS,
    ]
    arrays: list[tuple[str, np.dtype[Any], int]] = [(name, np.dtype(kind), n) for name, kind, n in wheel.ARRAYS]
    for name in sorted(linked.tables):
        table = linked.tables[name]
        arrays.append((name, dtype_of(table.record), table.capacity))
        if table.takes_rows:
            numbers += [(f"{name}_used", "i8"), (f"{name}_unused", "i8")]
            arrays.append((f"{name}_after", np.dtype("i4"), table.capacity))
    head = np.dtype(numbers)
    placements, size = _placed(head.itemsize, arrays)
    return Layout(head, placements, size)


def _placed(end: int, arrays: Iterable[tuple[str, np.dtype[Any], int]]) -> tuple[dict[str, Placement], int]:
    placements = {}
    for name, dtype, count in arrays:
        offset = -(-end // _LINE_BYTES) * _LINE_BYTES
        placements[name] = Placement(dtype, count, offset)
        end = placements[name].end
    return placements, end
