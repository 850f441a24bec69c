"""A host written a second time, in whole nanoseconds and lists, for schedulers that were written a second time too.

It shares nothing with the package.  At one instant work ends first, then timers go off and slices end, then each pCPU
that was asked chooses, the lowest first, then work arrives, one vCPU after the other.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

MS = 1_000_000
BLOCKED, WAITING, RUNNING = "blocked", "waiting", "running"


class Unit:
    """A vCPU; a scheduler keeps what it knows of it in further attributes."""

    def __init__(self, number: int, domain: int, affinity: list[int], parameters: dict[str, Any]) -> None:
        self.number, self.domain, self.affinity, self.parameters = number, domain, affinity, parameters
        self.left_ns = self.ran_ns = 0
        self.state = BLOCKED
        self.pcpu: int | None = None
        self.last: int | None = None


@dataclass
class Pcpu:
    """``current`` is the vCPU chosen for it, also when that has blocked, until it chooses again."""

    current: Any = None
    slice_end_ns: int | None = None
    switched_to: Unit | None = None
    switch_left_ns: int = 0
    begin_ns: int = 0


class Policy:
    """A scheduler; ``choose`` returns a vCPU or None, and the length of its slice."""

    host: Host

    def start(self) -> None:
        """Take over the host."""

    def wake(self, unit: Unit) -> None:
        """Take in a vCPU that has work."""

    def block(self, unit: Unit, pcpu: int) -> None:
        """Let go one that has none left."""

    def choose(self, pcpu: int) -> tuple[Unit | None, int | None]:
        raise NotImplementedError

    def chosen(self, pcpu: int, before: Unit | None, unit: Unit | None) -> None:
        """Look after the one that has left, when the pCPU has its next."""


@dataclass
class Host:
    """Runs until ``until_ns``; ``arrivals`` are (time, vCPU, work).

    ``asked`` are the pCPUs that somebody has asked to choose, ``due`` those whose slice has ended.
    """

    count: int
    units: list[Unit]
    arrivals: list[tuple[int, int, int]]
    policy: Policy
    until_ns: int
    switch_ns: int = 0
    now_ns: int = 0
    switching_ns: int = 0
    asked: set[int] = field(default_factory=set)
    due: set[int] = field(default_factory=set)
    log: dict[tuple[int, int], int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.pcpus = [Pcpu() for _ in range(self.count)]
        self._timers: list[list[Any]] = []
        self._serial = itertools.count()
        self.policy.host = self
        self.policy.start()

    def at(self, time_ns: int, action: Callable[[], None]) -> list[Any]:
        """Plan an action; the entry is taken back by :meth:`cancel`."""
        entry = [time_ns, next(self._serial), action]
        heapq.heappush(self._timers, entry)
        return entry

    @staticmethod
    def cancel(entry: list[Any] | None) -> None:
        if entry is not None:
            entry[2] = None

    def ask(self, pcpu: int) -> None:
        self.asked.add(pcpu)

    def current(self, pcpu: int) -> Any:
        return self.pcpus[pcpu].current

    def is_current(self, unit: Unit) -> bool:
        return any(pcpu.current is unit for pcpu in self.pcpus)

    def run(self) -> Host:
        arrivals = iter(sorted(self.arrivals))
        coming = next(arrivals, None)
        while self._go_to(self._next_ns(coming)):
            self._end_work()
            self._fire()
            self._serve()
            while coming is not None and coming[0] <= self.now_ns:
                self._arrive(self.units[coming[1]], coming[2])
                coming = next(arrivals, None)
        return self

    def _next_ns(self, coming: tuple[int, int, int] | None) -> int:
        times = [self.until_ns] if coming is None else [self.until_ns, coming[0]]
        while self._timers and self._timers[0][2] is None:
            heapq.heappop(self._timers)
        times += [self._timers[0][0]] if self._timers else []
        for pcpu in self.pcpus:
            if pcpu.current is not None and pcpu.current.state == RUNNING:
                times.append(max(self.now_ns, pcpu.begin_ns) + pcpu.current.left_ns)
            if pcpu.slice_end_ns is not None:
                times.append(pcpu.slice_end_ns)
        return min(times)

    def _go_to(self, time_ns: int) -> bool:
        for pcpu in self.pcpus:
            if pcpu.current is not None and pcpu.current.state == RUNNING:
                ran_ns = max(0, time_ns - max(self.now_ns, pcpu.begin_ns))
                pcpu.current.left_ns -= ran_ns
                pcpu.current.ran_ns += ran_ns
        self.now_ns = time_ns
        return time_ns < self.until_ns

    def _end_work(self) -> None:
        for number, pcpu in enumerate(self.pcpus):
            unit = pcpu.current
            if unit is not None and unit.state == RUNNING and unit.left_ns == 0:
                unit.state, unit.pcpu, pcpu.slice_end_ns = BLOCKED, None, None
                self.policy.block(unit, number)
                self.ask(number)

    def _fire(self) -> None:
        while self._timers and self._timers[0][0] <= self.now_ns:
            action = heapq.heappop(self._timers)[2]
            if action is not None:
                action()
        for number, pcpu in enumerate(self.pcpus):
            if pcpu.slice_end_ns is not None and pcpu.slice_end_ns <= self.now_ns:
                pcpu.slice_end_ns = None
                self.due.add(number)

    def _serve(self) -> None:
        while self.asked | self.due:
            number = min(self.asked | self.due)
            self.asked.discard(number)
            self.due.discard(number)
            self._choose(number, self.pcpus[number])

    def _choose(self, number: int, pcpu: Pcpu) -> None:
        before = pcpu.current
        if before is not None and before.state == RUNNING:
            before.state = WAITING
            if pcpu.begin_ns > self.now_ns:
                pcpu.switch_left_ns = pcpu.begin_ns - self.now_ns
                self.switching_ns -= pcpu.switch_left_ns
        unit, slice_ns = self.policy.choose(number)
        if before is not None and before is not unit:
            before.pcpu = None
        pcpu.current, pcpu.slice_end_ns = unit, None
        if unit is not None:
            self._dispatch(number, pcpu, unit, slice_ns)
        self.policy.chosen(number, before, unit)
        self.log[self.now_ns, number] = -1 if unit is None else unit.number

    def _dispatch(self, number: int, pcpu: Pcpu, unit: Unit, slice_ns: int | None) -> None:
        assert number in unit.affinity
        assert unit.left_ns > 0
        assert unit.pcpu in (None, number)
        delay_ns = pcpu.switch_left_ns if pcpu.switched_to is unit else self.switch_ns
        pcpu.switched_to, pcpu.switch_left_ns, pcpu.begin_ns = unit, 0, self.now_ns + delay_ns
        self.switching_ns += delay_ns
        unit.state, unit.pcpu, unit.last = RUNNING, number, number
        if slice_ns is not None:
            pcpu.slice_end_ns = pcpu.begin_ns + max(slice_ns, 1)

    def _arrive(self, unit: Unit, work_ns: int) -> None:
        unit.left_ns += work_ns
        if unit.state == BLOCKED:
            unit.state = WAITING
            self.policy.wake(unit)
            self._serve()


def switches(log: dict[tuple[int, int], int], pcpus: int) -> list[list[int]]:
    """Who is on which pCPU from when, one entry a pCPU and instant; -1: nobody."""
    before, found = [-1] * pcpus, []
    for (time_ns, pcpu), unit in sorted(log.items()):
        if unit != before[pcpu]:
            before[pcpu] = unit
            found.append([time_ns, pcpu, unit])
    return found


class SharedQueue(Policy):
    """One queue: a newcomer takes an idle pCPU, its last or the lowest, else that of the least urgent it pre-empts."""

    def start(self) -> None:
        self.queue: list[Unit] = []
        for unit in self.host.units:
            unit.charged_ns = 0

    def key(self, unit: Unit) -> Any:
        """The smallest runs first."""
        return 0

    def length_ns(self, unit: Unit) -> int:
        raise NotImplementedError

    def may_run(self, unit: Unit) -> bool:
        return True

    def fits(self, unit: Unit, pcpu: int) -> bool:
        return pcpu in unit.affinity

    def preempts(self, newcomer: Unit, running: Unit) -> bool:
        return bool(self.key(newcomer) < self.key(running))

    def ran(self, unit: Unit, ran_ns: int) -> None:
        """Charge it."""

    def woken(self, unit: Unit) -> None:
        """Prepare one that wakes."""

    def taken(self, unit: Unit, pcpu: int) -> None:
        """Prepare one that is about to run."""

    def slept(self, unit: Unit, pcpu: int) -> None:
        """Take note that one has blocked, which its pCPU still has."""

    def charge(self, unit: Unit) -> None:
        ran_ns, unit.charged_ns = unit.ran_ns - unit.charged_ns, unit.ran_ns
        if ran_ns:
            self.ran(unit, ran_ns)

    def charge_all(self) -> None:
        for pcpu in self.host.pcpus:
            if pcpu.current is not None and pcpu.current.state == RUNNING:
                self.charge(pcpu.current)

    def active(self) -> list[Unit]:
        return [unit for unit in self.host.units if unit in self.queue or self.host.is_current(unit)]

    def wake(self, unit: Unit) -> None:
        self.woken(unit)
        self.queue.append(unit)
        self.place(unit)

    def place(self, unit: Unit) -> None:
        if self.may_run(unit):
            self.place_anyway(unit)

    def place_anyway(self, unit: Unit) -> None:
        """Ask a pCPU that is not to choose anyway."""
        host = self.host
        open_to_it = [p for p in range(host.count) if p not in host.asked and self.fits(unit, p)]
        idle = [p for p in open_to_it if host.current(p) is None]
        best: int | None = (unit.last if unit.last in idle else idle[0]) if idle else None
        for pcpu in [] if idle else open_to_it:
            running = host.current(pcpu)
            self.charge(running)
            if self.preempts(unit, running) and (best is None or self.key(running) > self.key(host.current(best))):
                best = pcpu
        if best is not None:
            host.ask(best)

    def block(self, unit: Unit, pcpu: int) -> None:
        self.charge(unit)
        self.slept(unit, pcpu)
        self.host.pcpus[pcpu].current = None

    def choose(self, pcpu: int) -> tuple[Unit | None, int | None]:
        before = self.host.current(pcpu)
        if before is not None:
            self.charge(before)
            self.queue.append(before)
        fitting = [unit for unit in self.queue if self.fits(unit, pcpu) and self.may_run(unit)]
        unit = min(fitting, key=self.key, default=None)
        self.host.pcpus[pcpu].current = unit
        if unit is not None:
            self.queue.remove(unit)
            self.taken(unit, pcpu)
        if before is not None and before is not unit:
            self.place(before)
        return unit, None if unit is None else self.length_ns(unit)
