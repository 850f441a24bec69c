"""Bounded queues between the parts that handle a packet, and the packet itself.

A ring has a fixed number of slots.  A slot is taken when the producer puts a packet in and is free
again when the consumer has finished the batch that holds it: the consumer of a Xen ring answers a
request (transmit) or posts a fresh buffer (receive) only then.  A packet that finds no free slot is
dropped by the producer, or the producer waits, as its mechanism has it.

Notification is suppressed as in the Xen ring protocol (``req_event``/``rsp_event`` in
``xen/include/public/io/ring.h``): the producer sends an event only if the consumer asked for one,
which it does when it has found the ring empty.

Sizes (Xen, ``netif.h``): one 4 KiB page a direction, rounded down to a power of two, gives 256 slots
each way.  Left out: packets of several slots (media packets are far below one page).
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Protocol

from vftsim.engine import Clock


class Packet:
    """One packet on its way through the host.

    Attributes
    ----------
    flow : object
        Where it comes from and returns to: has ``delivered(packet, now_ns)`` and ``dropped(packet, now_ns)``.
    port : object
        The guest's end of its I/O path.
    pool : object
        The program it is for: has ``receive(packet)``.
    stream : int
        Stream or call within the flow.
    sent_ns : int
        When it reaches the host's NIC.
    marks : list of (str, int, int) or None
        Passed boundaries with their times and the CPU time spent up to each on the batch the packet was
        in; kept only while tracing.
    """

    __slots__ = ("flow", "marks", "pool", "port", "sent_ns", "stream")

    def __init__(self, flow: Any, port: Any, pool: Any, stream: int, sent_ns: int) -> None:
        self.flow = flow
        self.port = port
        self.pool = pool
        self.stream = stream
        self.sent_ns = sent_ns
        self.marks: list[tuple[str, int, int]] | None = None


class DropLog:
    """Drops counted by place and cause."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.counts: Counter[tuple[str, str]] = Counter()

    def drop(self, packet: Packet, place: str, cause: str) -> None:
        """Count a packet that ends here."""
        self.counts[place, cause] += 1
        packet.flow.dropped(packet, self.clock.now_ns)

    @property
    def total(self) -> int:
        """Packets dropped so far, wherever."""
        return sum(self.counts.values())


class Consumer(Protocol):
    """What takes packets out of a source."""

    def kick(self) -> None:
        """There may be something to take."""


class Source(Protocol):
    """Where a consumer takes packets from."""

    def take(self, budget: int) -> list[Packet]:
        """Up to ``budget`` packets, oldest first; their slots stay taken."""

    def release(self, batch: list[Packet]) -> None:
        """Free the slots of packets the consumer has finished."""

    def arm(self, consumer: Consumer) -> None:
        """Ask for one notification when a packet comes."""


class Ring:
    """A bounded ring of one producer and one consumer."""

    __slots__ = ("_armed", "capacity", "name", "occupied", "packets", "waiting")

    def __init__(self, name: str, capacity: int) -> None:
        self.name = name
        self.capacity = capacity
        self.packets: deque[Packet] = deque()
        self.occupied = 0
        self.waiting: deque[Callable[[], None]] = deque()
        self._armed: Consumer | None = None

    def __len__(self) -> int:
        return len(self.packets)

    @property
    def is_full(self) -> bool:
        """No free slot."""
        return self.occupied >= self.capacity

    def reserve(self) -> bool:
        """Take a slot for a packet that :meth:`put` brings later."""
        if self.occupied >= self.capacity:
            return False
        self.occupied += 1
        return True

    def put(self, packet: Packet) -> None:
        """Fill a reserved slot."""
        self.packets.append(packet)
        armed = self._armed
        if armed is not None:
            self._armed = None
            armed.kick()

    def push(self, packet: Packet) -> bool:
        """Reserve and fill; False if the ring is full."""
        if self.occupied >= self.capacity:
            return False
        self.occupied += 1
        self.put(packet)
        return True

    def take(self, budget: int) -> list[Packet]:
        """Up to ``budget`` packets, oldest first; their slots stay taken until :meth:`release`."""
        return oldest(self.packets, budget)

    def release(self, batch: list[Packet]) -> None:
        """Free the slots of a finished batch and let as many waiting producers go on."""
        self.occupied -= len(batch)
        while self.waiting and self.occupied < self.capacity:
            self.waiting.popleft()()

    def arm(self, consumer: Consumer) -> None:
        """Notify ``consumer`` at the next packet."""
        self._armed = consumer


class RingSet:
    """Several rings served in turn by one consumer, as the back-end serves its guests."""

    def __init__(self) -> None:
        self.rings: list[Ring] = []
        self._first = 0
        self._armed: Consumer | None = None

    def add(self, ring: Ring) -> None:
        """Serve one more ring."""
        self.rings.append(ring)
        ring.arm(self)

    def kick(self) -> None:
        """Pass on that a ring has got a packet."""
        armed = self._armed
        if armed is not None:
            self._armed = None
            armed.kick()

    def take(self, budget: int) -> list[Packet]:
        """One packet of each ring in turn, up to ``budget``."""
        rings = self.rings
        if len(rings) == 1:
            return rings[0].take(budget)
        batch: list[Packet] = []
        idle = 0
        while len(batch) < budget and idle < len(rings):
            ring = rings[self._first]
            self._first = (self._first + 1) % len(rings)
            if ring.packets:
                batch.append(ring.packets.popleft())
                idle = 0
            else:
                idle += 1
        return batch

    def release(self, batch: list[Packet]) -> None:
        """Free each packet's slot in the ring it came from."""
        if len(self.rings) == 1:
            self.rings[0].release(batch)
            return
        for packet in batch:
            packet.port.transmit_ring.release([packet])

    def arm(self, consumer: Consumer) -> None:
        """Notify ``consumer`` at the next packet in any ring."""
        self._armed = consumer
        for ring in self.rings:
            ring.arm(self)


def oldest(packets: deque[Packet], budget: int) -> list[Packet]:
    """Take up to ``budget`` packets from the front of a queue."""
    if budget >= len(packets):
        batch = list(packets)
        packets.clear()
        return batch
    return [packets.popleft() for _ in range(budget)]
