"""Numbers drawn beforehand, handed to a run in portions.

Everything random is drawn outside the engines, from streams keyed by (seed, replication, entity), so that
neither the engine nor the order of events can change a draw.  A :class:`Feed` holds the next values of one
entity; when it runs low the run pauses between two events and the driver's :class:`Feeder` fills it up.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated

from vftsim.kernel.columns import columns_of
from vftsim.kernel.declare import Failure, Sim, Table, fail, part
from vftsim.kernel.engine import Engine
from vftsim.kernel.record import Record

PORTION = 1024
LOW = 128

EXHAUSTED = Failure("a part of the model took more pre-drawn numbers at one instant than a portion holds")


class Feed(Record):
    """The next values of one entity; ``is_complete``: no more will come."""

    values: Annotated[list[int], PORTION]
    taken: int
    filled: int
    is_complete: bool


feeds = Table("feeds", Feed, 4096)


@part
def left(sim: Sim, feed: int) -> int:
    """Return how many values a feed still holds; 0 only at its end."""
    own = feeds(sim)[feed]
    return own.filled - own.taken


@part
def peek(sim: Sim, feed: int, ahead: int) -> int:
    """Return a coming value without taking it; ``ahead`` 0 is the next, at most ``LOW``."""
    own = feeds(sim)[feed]
    return own.values[(own.taken + ahead) % PORTION]


@part
def draw(sim: Sim, feed: int) -> int:
    """Take the next value of a feed."""
    own = feeds(sim)[feed]
    if own.taken == own.filled:
        fail(sim, EXHAUSTED)
        return 0
    value = own.values[own.taken % PORTION]
    own.taken += 1
    if own.filled - own.taken < LOW and not own.is_complete:
        sim.wants_input = True
    return value


class Feeder:
    """Fills the feeds of one engine.

    A source is called with the number of values wanted and returns at most as many; fewer mean that it has ended.
    Its values are independent of each other: those that nobody has taken yet may be drawn anew (:meth:`redraw`).
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._sources: dict[int, Callable[[int], Sequence[int]]] = {}
        self._most: dict[int, int] = {}

    def add(self, source: Callable[[int], Sequence[int]], most: int = PORTION) -> int:
        """Add a feed that holds ``most`` values at a time; return its row."""
        row, _ = self.engine.add(feeds)
        self._sources[row] = source
        self._most[row] = max(LOW + 1, min(most, PORTION))
        self._fill(row)
        return row

    def fill(self) -> None:
        """Fill up every feed that runs low; for an engine's ``on_input``."""
        # By column: fields of single records are slow where the rows are numpy's, and there are hundreds of feeds.
        first = next(iter(self._sources), 0)
        columns = columns_of(self.engine, feeds, ("filled", "taken", "is_complete"), first, first + len(self._sources))
        for row, (filled, taken, is_complete) in enumerate(zip(*columns, strict=True), first):
            if filled - taken < LOW and not is_complete:
                self._fill(row)

    def redraw(self) -> None:
        """Draw anew what no part of the model has taken yet."""
        for row in self._sources:
            own = self.engine.rows(feeds)[row]
            own.filled = own.taken
            self._fill(row)

    def _fill(self, row: int) -> None:
        own = self.engine.rows(feeds)[row]
        room = self._most[row] - (int(own.filled) - int(own.taken))
        if own.is_complete or room <= 0:
            return
        values = list(self._sources[row](room))
        first = int(own.filled) % PORTION
        end = min(first + len(values), PORTION)
        # Slices: one by one is slow where the rows are numpy's.
        own.values[first:end] = values[: end - first]
        own.values[: len(values) - (end - first)] = values[end - first :]
        own.filled += len(values)
        if len(values) < room:
            own.is_complete = True
