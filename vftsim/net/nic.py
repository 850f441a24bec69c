"""A network interface: bounded receive ring, interrupt coalescing, arrivals from outside.

Receive: each packet takes a descriptor of the receive ring; with none free it is lost in the NIC.
Interrupt coalescing: the interrupt is raised ``time`` after the first packet or at the ``packets``-th
packet, whichever comes first; (0, 1) raises it for every packet.  While the driver polls (NAPI,
Linux 2.6) the interrupt is masked; it is unmasked when a poll has found the ring empty.

Arrivals at a NIC do not depend on what the host does, so packets are admitted to the ring when
somebody looks (a poll or the release of descriptors), each at its own instant and in order: the ring's
state at any look is the same as if each arrival had been an event.  Only interrupts are events.

Sizes: 256 receive descriptors are the default of e1000; tg3 has 200, bnx2 255 (Linux 2.6.18 drivers).
Left out: the transmit ring (a gigabit link carries 40,000 small packets a second at 8 % load).
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator

from pydantic import Field

from vftsim.engine import Alarm, Clock, EventKind
from vftsim.net.rings import Consumer, DropLog, Packet, oldest
from vftsim.spec.base import Spec
from vftsim.spec.units import DurationNs


class NicSpec(Spec):
    """A network interface of the host."""

    receive_ring_packets: int = Field(
        256, ge=1, le=65536, description="Receive descriptors. Default: e1000 driver of Linux 2.6.18."
    )
    coalescing_time_ns: DurationNs = Field(
        0, description="Longest wait for an interrupt after the first packet; 0: none."
    )
    coalescing_packets: int = Field(
        1,
        ge=1,
        le=1024,
        description="Packets after which the interrupt comes at once. Default: Patnaik 2009, 6.3.5.",
    )


class Nic:
    """The receive side of a network interface; a :class:`~vftsim.net.rings.Source`."""

    def __init__(self, clock: Clock, name: str, spec: NicSpec, number: int, drops: DropLog) -> None:
        self.clock = clock
        self.spec = spec
        self.name = name
        self.capacity = spec.receive_ring_packets
        self.number = number
        self.drops = drops
        self.packets: deque[Packet] = deque()
        self.occupied = 0
        self.admitted = 0
        self.interrupts = 0
        self.tracing = False
        self._arrivals: Iterator[Packet] = iter(())
        self._coming: deque[Packet] = deque()
        self._consumer: Consumer | None = None
        self._interrupt: Alarm | None = None

    def attach(self, sources: list[Iterator[Packet]]) -> None:
        """Connect what sends to this interface: iterators of packets in order of time."""
        self._arrivals = sources[0] if len(sources) == 1 else heapq.merge(*sources, key=_arrival_ns)

    def __len__(self) -> int:
        return len(self.packets)

    def _look_ahead(self, count: int) -> None:
        coming = self._coming
        while len(coming) < count:
            packet = next(self._arrivals, None)
            if packet is None:
                return
            coming.append(packet)

    def catch_up(self) -> None:
        """Admit or drop what has arrived by now."""
        now_ns = self.clock.now_ns
        coming = self._coming
        while True:
            if not coming:
                self._look_ahead(32)
                if not coming:
                    return
            if coming[0].sent_ns > now_ns:
                return
            packet = coming.popleft()
            self.admitted += 1
            if self.tracing:
                packet.marks = [("arrived", packet.sent_ns, 0)]
            if self.occupied < self.capacity:
                self.occupied += 1
                self.packets.append(packet)
            else:
                self.drops.drop(packet, self.name, "receive ring full")

    def take(self, budget: int) -> list[Packet]:
        """Poll: up to ``budget`` packets."""
        self.catch_up()
        return oldest(self.packets, budget)

    def release(self, batch: list[Packet]) -> None:
        """Fresh descriptors for a finished batch."""
        self.catch_up()
        self.occupied -= len(batch)

    def arm(self, consumer: Consumer) -> None:
        """Unmask the interrupt."""
        self._consumer = consumer
        if self._interrupt is not None:
            return
        self._look_ahead(self.spec.coalescing_packets)
        coming = self._coming
        if not coming:
            return
        at_ns = coming[0].sent_ns
        if self.spec.coalescing_time_ns and self.spec.coalescing_packets > 1:
            at_ns += self.spec.coalescing_time_ns
            if len(coming) >= self.spec.coalescing_packets:
                at_ns = min(at_ns, coming[self.spec.coalescing_packets - 1].sent_ns)
        self._interrupt = self.clock.at(
            max(at_ns, self.clock.now_ns), EventKind.DEVICE, self.number, self._on_interrupt
        )

    def _on_interrupt(self, _: None) -> None:
        self._interrupt = None
        self.interrupts += 1
        if self._consumer is not None:
            self._consumer.kick()


def _arrival_ns(packet: Packet) -> int:
    return packet.sent_ns
