"""A link: a transmitter with a bounded queue, a rate and a propagation delay.

Frames leave in order at the link's rate; a frame that would make the backlog longer than the queue
allows is dropped.  Nothing else is lost: the lab's switched gigabit network is not known to drop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vftsim.engine import Clock, EventKind

_BITS_NS = 8_000_000_000


class Link:
    """One direction of a link.

    Parameters
    ----------
    clock : Clock
    rate_bits_per_s : int
    latency_ns : int
        Propagation and switching, after the last bit has left.
    queue_bytes : int
        Backlog that the transmitter accepts, the frame in transmission included.
    """

    def __init__(self, clock: Clock, rate_bits_per_s: int, latency_ns: int, queue_bytes: int) -> None:
        self.clock = clock
        self.rate_bits_per_s = rate_bits_per_s
        self.latency_ns = latency_ns
        self.queue_ns = queue_bytes * _BITS_NS // rate_bits_per_s
        self.sent = 0
        self.dropped = 0
        self.delivered = 0
        self.sent_bytes = 0
        self._free_ns = 0

    @property
    def in_flight(self) -> int:
        """Frames accepted and not yet delivered."""
        return self.sent - self.dropped - self.delivered

    def occupy(self, size_bytes: int) -> int:
        """Put a frame on the wire; returns when it arrives, or -1 if it was dropped."""
        now_ns = self.clock.now_ns
        self.sent += 1
        start_ns = max(now_ns, self._free_ns)
        end_ns = start_ns + size_bytes * _BITS_NS // self.rate_bits_per_s
        if end_ns - now_ns > self.queue_ns:
            self.dropped += 1
            return -1
        self._free_ns = end_ns
        self.sent_bytes += size_bytes
        return end_ns + self.latency_ns

    @property
    def backlog_ns(self) -> int:
        """Time until the transmitter is free."""
        return max(0, self._free_ns - self.clock.now_ns)

    def reserve(self, size_bytes: int) -> None:
        """Let other traffic of ``size_bytes`` go first; it is carried but not counted as frames."""
        self._free_ns = max(self.clock.now_ns, self._free_ns) + size_bytes * _BITS_NS // self.rate_bits_per_s
        self.sent_bytes += size_bytes

    def send(self, size_bytes: int, entity: int, deliver: Callable[[Any], None], argument: Any) -> bool:
        """Send a frame; ``deliver(argument)`` is called when it has arrived.  False if it was dropped."""
        arrival_ns = self.occupy(size_bytes)
        if arrival_ns < 0:
            return False
        self.clock.at(arrival_ns, EventKind.DELIVERY, entity, self._arrive, (deliver, argument))
        return True

    def _arrive(self, parcel: tuple[Callable[[Any], None], Any]) -> None:
        self.delivered += 1
        parcel[0](parcel[1])


def utilization(sent_bytes: float, rate_bits_per_s: int, elapsed_ns: int) -> float:
    """Share of a stretch of time in which a transmitter was busy with what it sent in it."""
    return sent_bytes * _BITS_NS / rate_bits_per_s / elapsed_ns if elapsed_ns else 0.0
