"""A guest's network card with a hypervisor that can mask its interrupts and refuse its packets.

As :class:`~vftsim.net.guest_nic.GuestNic`, and: while the guest is stopped no interrupt is raised, the
ring fills and packets beyond it are dropped; a packet that the protection mechanism declares lost (its
log entry will not survive the crash that is under way) never reaches the guest.
"""

from __future__ import annotations

from typing import Any

from vftsim.cpu import Work
from vftsim.engine import EventKind
from vftsim.net.guest_nic import GuestNic


class InterposedNic(GuestNic):
    """One protected guest's receive path from the wire to its sockets; parameters as the base class."""

    _masked = False
    _swallowed = False

    def mask(self) -> None:
        """Raise no interrupts from now on."""
        self._masked = True

    def unmask(self) -> None:
        """Raise interrupts again, at once if one is due."""
        self._masked = False
        if self._swallowed:
            self._swallowed = False
            self.clock.at(self.clock.now_ns, EventKind.DEVICE, 0, self._interrupt)

    def forget(self) -> None:
        """Lose also what was in interrupt work: the guest starts with empty memory."""
        self.discard()
        self.lost_while_down += self._taking
        self._taking = 0

    def _interrupt(self, argument: Any) -> None:
        if self._masked:
            self._swallowed = True  # the interrupt stays pending, so that none is planned until unmasked
            return
        self._pending = False
        self._next_interrupt_ns = self.clock.now_ns + self.moderation_ns
        packets = list(self._ring)
        self._ring.clear()
        if not packets:
            return
        self.interrupts += 1
        on_input = self.on_input
        assert on_input is not None
        cost_ns = self.interrupt_cost_ns
        taken = []
        for packet in packets:
            input_ns = on_input(packet[0])
            if input_ns < 0:
                self.lost_while_down += 1
            else:
                taken.append(packet)
                cost_ns += self.packet_cost_ns + input_ns
        if not taken:
            return
        self._taking += len(taken)
        if cost_ns > 0:
            self.guest.raise_interrupt(self.guest.vcpus[0], Work(cost_ns, self._hand_over, taken))
        else:
            self._hand_over(taken)
