"""Numbers drawn beforehand, handed to a run in portions.

Everything random is drawn outside the engines, from streams keyed by (seed, replication, entity), so that
neither the engine nor the order of events can change a draw.  A :class:`Feed` holds the next values of one
entity; when it runs low the run pauses between two events and the driver's :class:`Feeder` fills it up.
"""

from collections.abc import Callable, Sequence
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray

from vftsim.kernel.columns import columns_of
from vftsim.kernel.declare import Failure, Sim, Table, fail
from vftsim.kernel.engine import Engine
from vftsim.kernel.record import Record

MOST, FIRST = 4096, 1024
"""Values that a feed has room for, and that it holds at first."""
LOW = 128

Source = Callable[[int], Sequence[int] | NDArray[np.int64]]
"""Returns at most as many next values as it is asked for; fewer are its last."""

EXHAUSTED = Failure("a part of the model took more pre-drawn numbers at one instant than a portion holds")


class Feed(Record):
    """The next values of one entity, filled up where fewer than ``low`` are left; ``is_complete``: no more come."""

    values: Annotated[list[int], MOST]
    taken: int
    filled: int
    low: int
    is_complete: bool


feeds = Table("feeds", Feed, 1 << 14)


def left(sim: Sim, feed: int) -> int:
    """Return how many values a feed still holds; 0 only at its end."""
    feed_row = feeds(sim)[feed]
    return feed_row.filled - feed_row.taken


def peek(sim: Sim, feed: int, ahead: int) -> int:
    """Return a coming value without taking it; ``ahead`` 0 is the next, at most ``LOW``."""
    feed_row = feeds(sim)[feed]
    return feed_row.values[(feed_row.taken + ahead) % MOST]


def draw(sim: Sim, feed: int) -> int:
    """Take the next value of a feed."""
    feed_row = feeds(sim)[feed]
    if feed_row.taken == feed_row.filled:
        fail(sim, EXHAUSTED)
        return 0
    value = feed_row.values[feed_row.taken % MOST]
    feed_row.taken += 1
    if feed_row.filled - feed_row.taken < feed_row.low and not feed_row.is_complete:
        sim.wants_input = True
    return value


class Feeder:
    """Fills the feeds of one engine.

    A source is called with the number of values wanted and returns at most as many; fewer mean that it has ended.
    Every portion stops the run, so a feed that has run low holds twice as many from then on, as far as there is room.
    Its values are independent of each other: those that nobody has taken yet may be drawn anew (:meth:`redraw`).
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._sources: dict[int, Source] = {}
        self._holds: dict[int, int] = {}

    def add(self, source: Source, first: int = FIRST, at_once: int = LOW) -> int:
        """Add a feed that holds ``first`` values, and always ``at_once`` (half its room at most); return its row."""
        low = max(LOW, min(at_once, MOST // 2))
        row, _ = self.engine.add(feeds, low=low)
        self._sources[row] = source
        self._holds[row] = max(low + 1, min(first, MOST))
        self._fill(row, 0, 0)
        return row

    def fill(self) -> None:
        """Fill up every feed that runs low; for an engine's ``on_input``."""
        # By column: fields of single records are slow where the rows are numpy's, and there are hundreds of feeds.
        first = next(iter(self._sources), 0)
        columns = columns_of(
            self.engine, feeds, ("filled", "taken", "low", "is_complete"), first, first + len(self._sources)
        )
        for row, (filled, taken, low, is_complete) in enumerate(zip(*columns, strict=True), first):
            if filled - taken < low and not is_complete:
                self._holds[row] = min(2 * self._holds[row], MOST)
                self._fill(row, filled, taken)

    def redraw(self) -> None:
        """Draw anew what no part of the model has taken yet."""
        for row in self._sources:
            feed = self.engine.rows(feeds)[row]
            if not feed.is_complete:
                self._fill(row, int(feed.taken), int(feed.taken))

    def _fill(self, row: int, filled: int, taken: int) -> None:
        """Draw as many values as there is room for."""
        room = self._holds[row] - (filled - taken)
        values: Any = np.asarray(self._sources[row](room), np.int64)
        count, first = len(values), filled % MOST
        until_end = min(count, MOST - first)
        rows: Any = self.engine.rows(feeds)
        if isinstance(rows, np.ndarray):
            # As a plain array: a field of a record array takes some microseconds, and every portion needs it.
            feed: Any = rows.view(np.ndarray)[row]
            ring = feed["values"]
            feed["filled"], feed["is_complete"] = filled + count, count < room
        else:
            ring, values = rows[row].values, values.tolist()
            rows[row].filled, rows[row].is_complete = filled + count, count < room
        ring[first : first + until_end] = values[:until_end]
        ring[: count - until_end] = values[until_end:]
