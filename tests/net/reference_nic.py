"""A card with moderated interrupts before a guest with one CPU, written a second time from docs/sip/network.md.

It shares nothing with the package.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from tests.reference_clock import ARRIVAL, DELIVERY, DEVICE, WORK, Clock


@dataclass
class Setting:
    ring: int
    moderation_ns: int
    interrupt_ns: int
    packet_ns: int


@dataclass(eq=False)
class Work:
    """An interrupt that announces packets, or a job."""

    left_ns: int
    packets: list[int]


class Guest:
    """``handed`` is when which packet came to its socket; ``done_ns`` is when jobs ended."""

    def __init__(self, setting: Setting) -> None:
        self.setting, self.clock = setting, Clock()
        self.ring: list[int] = []
        self.interrupts: deque[Work] = deque()
        self.jobs: deque[Work] = deque()
        self.next_ns, self.is_planned, self.dropped = 0, False, 0
        self.current: Work | None = None
        self.begun_ns = self.serial = 0
        self.handed: list[tuple[int, int]] = []
        self.done_ns: list[int] = []

    def arrive(self, time_ns: int, number: int) -> None:
        self.clock.at(time_ns, DELIVERY, number, lambda: self._take(number))

    def job(self, time_ns: int, number: int, demand_ns: int) -> None:
        self.clock.at(time_ns, ARRIVAL, number, lambda: self._add(self.jobs, Work(demand_ns, [])))

    def _take(self, number: int) -> None:
        """Descriptors are those of the ring, and of interrupts to which the guest has not come."""
        waiting = sum(len(work.packets) for work in self.interrupts if work is not self.current)
        if len(self.ring) + waiting >= self.setting.ring:
            self.dropped += 1
            return
        self.ring.append(number)
        if not self.is_planned:
            self.is_planned = True
            self.clock.at(max(self.clock.now_ns, self.next_ns), DEVICE, 0, self._interrupt)

    def _interrupt(self) -> None:
        setting = self.setting
        self.is_planned, self.next_ns = False, self.clock.now_ns + setting.moderation_ns
        cost_ns, packets = len(self.ring) * setting.packet_ns, self.ring
        self.ring = []
        pending = [work for work in self.interrupts if work is not self.current]
        if pending:
            pending[-1].left_ns += cost_ns
            pending[-1].packets += packets
        else:
            self._add(self.interrupts, Work(setting.interrupt_ns + cost_ns, packets))

    def _add(self, queue: deque[Work], work: Work) -> None:
        queue.append(work)
        self._go_on()

    def _go_on(self) -> None:
        """Interrupts go before jobs, and are not interrupted themselves."""
        work = self.interrupts[0] if self.interrupts else self.jobs[0] if self.jobs else None
        if work is self.current:
            return
        if self.current is not None:
            self.current.left_ns -= self.clock.now_ns - self.begun_ns
        self.current, self.begun_ns = work, self.clock.now_ns
        self.serial += 1
        if work is not None:
            serial = self.serial
            self.clock.at(self.clock.now_ns + work.left_ns, WORK, 0, lambda: self._end(serial))

    def _end(self, serial: int) -> None:
        if serial != self.serial:
            return
        work, self.current = self.current, None
        self.serial += 1
        if self.interrupts and work is self.interrupts[0]:
            self.interrupts.popleft()
            self.handed += [(self.clock.now_ns, number) for number in work.packets]
        else:
            self.jobs.popleft()
            self.done_ns.append(self.clock.now_ns)
        self._go_on()

    def run(self, until_ns: int) -> Guest:
        self.clock.run(until_ns)
        return self
