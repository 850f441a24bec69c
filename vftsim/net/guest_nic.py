"""The receive side of a guest's network card: a ring, moderated interrupts, and the work they cause.

Rule (Intel 1 Gbit/s controllers, ``InterruptThrottleRate``; Linux NAPI): a packet raises an interrupt
unless one was raised less than the moderation interval ago, in which case it waits for the end of the
interval; the interrupt takes everything in the ring.  A packet that finds the ring full is dropped.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from vftsim.cpu import Guest, Work
from vftsim.engine import Clock, EventKind


class GuestNic:
    """One guest's receive path from the wire to its sockets.

    Parameters
    ----------
    clock : Clock
    guest : Guest
        Pays for the interrupts on its first vCPU.
    ring_packets : int
        Receive descriptors.
    moderation_ns : int
        Least time between two interrupts.
    interrupt_cost_ns, packet_cost_ns : int
        CPU time of an interrupt, and of each packet it announces.
    on_input : callable or None
        ``on_input(size_bytes)`` tells the protection mechanism; returns its CPU cost in ns.  Without one,
        and without costs, a packet goes straight to its socket.
    deliver : callable
        ``deliver(packet)`` hands a packet to the sockets when the interrupt work is done.
    """

    def __init__(
        self,
        clock: Clock,
        guest: Guest,
        ring_packets: int,
        moderation_ns: int,
        interrupt_cost_ns: int,
        packet_cost_ns: int,
        on_input: Callable[[int], int] | None,
        deliver: Callable[[Any], None],
    ) -> None:
        self.clock = clock
        self.guest = guest
        self.ring_packets = ring_packets
        self.moderation_ns = moderation_ns
        self.interrupt_cost_ns = interrupt_cost_ns
        self.packet_cost_ns = packet_cost_ns
        self.on_input = on_input
        self.deliver = deliver
        self.connected = True
        self.received = 0
        self.dropped = 0
        self.lost_while_down = 0
        self.interrupts = 0
        self._ring: deque[tuple[int, Any]] = deque()
        self._next_interrupt_ns = 0
        self._pending = False
        self._taking = 0
        self._costs_nothing = interrupt_cost_ns == 0 and packet_cost_ns == 0 and on_input is None

    @property
    def waiting(self) -> int:
        """Packets in the ring or in interrupt work."""
        return len(self._ring) + self._taking

    def receive(self, packet: tuple[int, Any]) -> None:
        """A packet (size in bytes, payload) has arrived from the wire."""
        self.received += 1
        if not self.connected:
            self.lost_while_down += 1
            return
        if len(self._ring) >= self.ring_packets:
            self.dropped += 1
            return
        if self._costs_nothing:
            self.deliver(packet[1])
            return
        self._ring.append(packet)
        if self._pending:
            return
        self._pending = True
        now_ns = self.clock.now_ns
        if self._next_interrupt_ns <= now_ns:
            # Packets of the same instant share the interrupt: it is handled after their arrival.
            self.clock.at(now_ns, EventKind.DEVICE, 0, self._interrupt)
        else:
            self.clock.at(self._next_interrupt_ns, EventKind.DEVICE, 0, self._interrupt)

    def discard(self) -> int:
        """The machine is gone: forget what was in the ring; returns how many packets."""
        lost = len(self._ring)
        self._ring.clear()
        self.lost_while_down += lost
        return lost

    def _interrupt(self, _: Any) -> None:
        self._pending = False
        self._next_interrupt_ns = self.clock.now_ns + self.moderation_ns
        packets = list(self._ring)
        self._ring.clear()
        if not packets:
            return
        self.interrupts += 1
        cost_ns = self.interrupt_cost_ns + len(packets) * self.packet_cost_ns
        if self.on_input is not None:
            cost_ns += sum(self.on_input(size_bytes) for size_bytes, _ in packets)
        if cost_ns > 0:
            self._taking += len(packets)
            self.guest.raise_interrupt(self.guest.vcpus[0], Work(cost_ns, self._hand_over, packets))
        else:
            for _, payload in packets:
                self.deliver(payload)

    def _hand_over(self, packets: list[tuple[int, Any]]) -> None:
        self._taking -= len(packets)
        for _, payload in packets:
            self.deliver(payload)
