"""Arrivals drawn beforehand: sources of packets in order of time, merged into the feed of a network interface."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from vftsim.kernel import Engine, Table
from vftsim.platform.io.nic import COMING, LOW, arrivals

IntArray = NDArray[np.int64]


class Source(Protocol):
    """What sends packets to an interface, in order of time."""

    flow: int
    """Row of the flow that the packets belong to."""

    def more(self) -> tuple[IntArray, IntArray]:
        """Return times in ns and stream numbers of the next packets; empty at the end."""


@dataclass
class _Drawn:
    """What has been drawn of a source and not yet merged."""

    source: Source
    times_ns: IntArray
    streams: IntArray
    is_open: bool = True

    def draw(self) -> None:
        times_ns, streams = self.source.more()
        self.is_open = bool(times_ns.size)
        self.times_ns = np.concatenate([self.times_ns, times_ns])
        self.streams = np.concatenate([self.streams, streams])

    def split(self, count: int) -> tuple[IntArray, IntArray, IntArray]:
        """Take the first packets: times, flow, streams."""
        taken = self.times_ns[:count], np.full(count, self.source.flow), self.streams[:count]
        self.times_ns, self.streams = self.times_ns[count:], self.streams[count:]
        return taken


class NicFeeder:
    """Fills what an interface holds of coming arrivals.

    Of packets that arrive at the same instant, those of the source that is named first come first.  The table is where
    the rows with coming packets are: of interfaces, or of what is sent over a link.
    """

    def __init__(self, engine: Engine, nic: int, sources: Sequence[Source], table: Table[Any] = arrivals) -> None:
        self._engine = engine
        self._table = table
        self._nic = nic
        self._drawn = [_Drawn(source, _NOTHING, _NOTHING) for source in sources]
        self._merged = [_NOTHING] * 3
        engine.rows(table)[nic].is_complete = False
        self.fill()

    def fill(self) -> None:
        """Draw more if less is left than an interface must hold, so much that it lasts for a while."""
        coming = self._engine.rows(self._table)[self._nic]
        if coming.filled - coming.taken >= LOW:
            return
        while not coming.is_complete and coming.filled - coming.taken < _ENOUGH:
            if not self._merged[0].size:
                self._merged = self._merge()
            coming.is_complete = not self._merged[0].size
            room = COMING - int(coming.filled - coming.taken)
            self._write(coming, [column[:room] for column in self._merged])
            self._merged = [column[room:] for column in self._merged]

    def _write(self, coming: Any, columns: Sequence[IntArray]) -> None:
        count = columns[0].size
        first = int(coming.filled) % COMING
        end = min(first + count, COMING)
        for target, column in zip((coming.time_ns, coming.flow, coming.stream), columns, strict=True):
            values: Any = column.tolist() if isinstance(target, list) else column
            target[first:end] = values[: end - first]
            target[: count - (end - first)] = values[end - first :]
        coming.filled += count

    def _merge(self) -> list[IntArray]:
        """Return the next arrivals of all sources, none at the end."""
        while True:
            # A source may still have packets at the time of its last one.
            open_ends = [
                (int(source.times_ns[-1]) if source.times_ns.size else -1, n)
                for n, source in enumerate(self._drawn)
                if source.is_open
            ]
            end_ns, first_open = min(open_ends, default=(_FOREVER_NS, 0))
            parts = [source.split(int(np.searchsorted(source.times_ns, end_ns))) for source in self._drawn]
            columns = [np.concatenate(column) for column in zip(*parts, strict=True)] or [_NOTHING] * 3
            if columns[0].size or not open_ends:
                order = np.argsort(columns[0], kind="stable")
                return [column[order] for column in columns]
            self._drawn[first_open].draw()


_ENOUGH = (LOW + COMING) // 2
_NOTHING: IntArray = np.empty(0, np.int64)
_FOREVER_NS = 1 << 62
