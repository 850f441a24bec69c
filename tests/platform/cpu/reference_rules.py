"""Rules of schedulers written a second time from their pages: round robin, sEDF, ESXi, z/VM, CFS."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

from tests.platform.cpu.reference_host import MS, RUNNING, SharedQueue, Unit

WEIGHTS = {-5: 3121, 0: 1024, 3: 526}
"""Of nice levels, from Linux ``kernel/sched/core.c``."""


class RoundRobin(SharedQueue):
    def length_ns(self, unit: Unit) -> int:
        return 30 * MS


class Sedf(SharedQueue):
    """Earliest deadline first with slices; who has none left shares extra time by weight."""

    def start(self) -> None:
        super().start()
        load, self.level = [0] * self.host.count, [Fraction(0)] * self.host.count
        for unit in self.host.units:
            given = unit.parameters
            unit.home = min(unit.affinity, key=lambda pcpu: load[pcpu])
            load[unit.home] += 1
            unit.period_ns = unit.whole_ns = given.get("period", 100 * MS)
            unit.slice_ns, unit.hint_ns = given.get("slice", 0), given.get("latency", 0)
            unit.has_extra, unit.weight = given.get("extratime", True), given.get("weight", 256)
            unit.deadline_ns = unit.left_of_slice_ns = 0
            unit.score, unit.alarm, unit.on_extra = Fraction(0), None, False

    def fits(self, unit: Unit, pcpu: int) -> bool:
        return bool(unit.home == pcpu)

    def may_run(self, unit: Unit) -> bool:
        return bool(unit.left_of_slice_ns > 0 or unit.has_extra)

    def key(self, unit: Unit) -> Any:
        return (0, unit.deadline_ns) if unit.left_of_slice_ns > 0 else (1, unit.score)

    def preempts(self, newcomer: Unit, running: Unit) -> bool:
        return newcomer.left_of_slice_ns > 0 and super().preempts(newcomer, running)

    def ran(self, unit: Unit, ran_ns: int) -> None:
        if unit.on_extra:
            unit.score += Fraction(ran_ns, unit.weight)
        else:
            unit.left_of_slice_ns -= ran_ns

    def taken(self, unit: Unit, pcpu: int) -> None:
        unit.on_extra = unit.left_of_slice_ns <= 0
        if unit.on_extra:
            self.level[pcpu] = max(self.level[pcpu], unit.score)

    def length_ns(self, unit: Unit) -> int:
        return MS // 2 if unit.on_extra else int(unit.left_of_slice_ns)

    def woken(self, unit: Unit) -> None:
        unit.score = max(unit.score, self.level[unit.home])
        if unit.slice_ns == 0:
            return
        if self.host.now_ns < unit.deadline_ns:
            self.plan(unit)
        else:
            unit.period_ns = min(unit.hint_ns or unit.whole_ns, unit.whole_ns)
            self.begin(unit)

    def slept(self, unit: Unit, pcpu: int) -> None:
        self.host.cancel(unit.alarm)

    def begin(self, unit: Unit) -> None:
        unit.deadline_ns = self.host.now_ns + unit.period_ns
        unit.left_of_slice_ns = unit.slice_ns * unit.period_ns // unit.whole_ns
        self.plan(unit)

    def plan(self, unit: Unit) -> None:
        self.host.cancel(unit.alarm)
        unit.alarm = self.host.at(unit.deadline_ns, lambda: self.end(unit))

    def end(self, unit: Unit) -> None:
        self.charge_all()
        unit.period_ns = min(2 * unit.period_ns, unit.whole_ns)
        self.begin(unit)
        if unit.state == RUNNING:
            self.host.ask(unit.pcpu)
        else:
            self.place(unit)


class Esxi(SharedQueue):
    """Virtual time by shares, accounts of reservations, quotas of limits; all of a machine."""

    quantum_ns = period_ns = 50 * MS
    just_before = Fraction(1, 1 << 20)

    def start(self) -> None:
        super().start()
        self.floor = [Fraction(0)] * self.host.count
        self.machines: dict[int, Any] = {}
        vcpus = Counter(unit.domain for unit in self.host.units)
        for unit in self.host.units:
            if unit.domain not in self.machines:
                self.machines[unit.domain] = self._machine(unit.parameters, vcpus[unit.domain])
            unit.machine = self.machines[unit.domain]
            unit.machine.units.append(unit)
        self.has_several = max(vcpus.values()) > 1
        if any(machine.whole_ns for machine in self.machines.values()):
            self.host.at(self.period_ns, self.refill)

    def _machine(self, given: dict[str, Any], vcpus: int) -> Any:
        whole_ns = given.get("limit", 0) * self.period_ns // 100
        rate = Fraction(given.get("reservation", 0), 100)
        shares = given.get("shares") or 1000 * vcpus
        return SimpleNamespace(
            shares=shares, rate=rate, whole_ns=whole_ns, quota_ns=whole_ns, time=Fraction(0), owed=Fraction(0),
            at_ns=0, units=[], event=None,
        )  # fmt: skip

    def grow(self, machine: Any) -> None:
        most = self.quantum_ns * (self.host.count + len(self.machines))
        machine.owed = min(machine.owed + machine.rate * (self.host.now_ns - machine.at_ns), most)
        machine.at_ns = self.host.now_ns

    def key(self, unit: Unit) -> Any:
        machine = unit.machine
        if machine.rate:
            self.grow(machine)
            if machine.owed > 0:
                return 0, -machine.owed
        return 1, machine.time

    def may_run(self, unit: Unit) -> bool:
        return bool(not unit.machine.whole_ns or unit.machine.quota_ns > 0)

    def length_ns(self, unit: Unit) -> int:
        return self.quantum_ns

    def ran(self, unit: Unit, ran_ns: int) -> None:
        machine = unit.machine
        machine.time += Fraction(ran_ns, machine.shares)
        machine.quota_ns -= ran_ns
        if machine.rate:
            machine.owed -= ran_ns
            self.grow(machine)
            machine.owed = max(machine.owed, -self.quantum_ns)

    def level(self, unit: Unit) -> Fraction:
        return max(self.floor[pcpu] for pcpu in unit.affinity)

    def woken(self, unit: Unit) -> None:
        machine = unit.machine
        if any(each in self.active() for each in machine.units):
            return
        machine.time = max(machine.time, self.level(unit) - self.just_before)
        self.grow(machine)
        machine.owed = min(machine.owed, machine.rate * self.quantum_ns)

    def place_anyway(self, unit: Unit) -> None:
        open_to_it = [p for p in unit.affinity if p not in self.host.asked]
        if self.has_several and all(self.host.current(p) is not None for p in open_to_it):
            self.charge_all()
        super().place_anyway(unit)

    def choose(self, pcpu: int) -> tuple[Unit | None, int | None]:
        if self.has_several:
            self.charge_all()
        return super().choose(pcpu)

    def taken(self, unit: Unit, pcpu: int) -> None:
        if unit.machine.whole_ns:
            self.plan(unit.machine)
        rank, time = self.key(unit)
        if rank == 1:
            self.floor[pcpu] = max(self.floor[pcpu], time)

    def plan(self, machine: Any) -> None:
        self.host.cancel(machine.event)
        running = sum(self.host.is_current(unit) for unit in machine.units)
        if running:
            at_ns = self.host.now_ns + max(-(-machine.quota_ns // running), 1)
            machine.event = self.host.at(at_ns, lambda: self.use_up(machine))

    def use_up(self, machine: Any) -> None:
        running = [unit for unit in machine.units if unit.state == RUNNING]
        for unit in running:
            self.charge(unit)
        if machine.quota_ns > 0:
            self.plan(machine)
            return
        for unit in running:
            self.host.ask(unit.pcpu)

    def refill(self) -> None:
        self.charge_all()
        held: list[Unit] = []
        for machine in self.machines.values():
            was_held = machine.quota_ns <= 0
            machine.quota_ns = min(machine.quota_ns + machine.whole_ns, machine.whole_ns)
            if was_held and machine.quota_ns > 0:
                behind = Fraction(self.quantum_ns, machine.shares)
                machine.time = max(machine.time, self.level(machine.units[0]) - behind)
                held += [unit for unit in machine.units if unit in self.queue]
        for unit in sorted((unit for unit in self.queue if unit in held), key=self.key):
            self.place(unit)
        self.host.at(self.host.now_ns + self.period_ns, self.refill)


class Zvm(SharedQueue):
    """Deadlines by the shares of those who want to run."""

    slice_ns = 5 * MS

    def start(self) -> None:
        super().start()
        for unit in self.host.units:
            unit.absolute = Fraction(unit.parameters.get("absolute_share", 0), 100)
            unit.relative = unit.parameters.get("relative_share", 100)
            unit.deadline_ns = unit.of_slice_ns = 0
        self.listed: Counter[int] = Counter()

    def interval_ns(self, unit: Unit) -> int:
        users = {each.domain: each for each in self.host.units if self.listed[each.domain]}
        absolute = sum(user.absolute for user in users.values())
        relative = sum(user.relative for user in users.values() if not user.absolute)
        if not unit.absolute:
            share = (1 - min(absolute, Fraction(99, 100))) * Fraction(unit.relative, relative)
        elif not relative:
            share = unit.absolute / absolute
        else:
            share = unit.absolute * min(1, Fraction(99, 100) / absolute)
        return int(self.slice_ns * self.listed[unit.domain] / (share * self.host.count))

    def key(self, unit: Unit) -> Any:
        return unit.deadline_ns

    def length_ns(self, unit: Unit) -> int:
        return int(self.slice_ns - unit.of_slice_ns)

    def present_ns(self, pcpu: int) -> int:
        running, now_ns = self.host.current(pcpu), self.host.now_ns
        if running is None:
            return now_ns
        return int(min(max(now_ns, running.deadline_ns - 2 * self.interval_ns(running)), running.deadline_ns))

    def woken(self, unit: Unit) -> None:
        self.listed[unit.domain] += 1
        begin_ns = max(self.present_ns(pcpu) for pcpu in unit.affinity)
        if unit.deadline_ns <= begin_ns:
            unit.deadline_ns, unit.of_slice_ns = begin_ns + self.interval_ns(unit), 0

    def slept(self, unit: Unit, pcpu: int) -> None:
        self.listed[unit.domain] -= 1

    def ran(self, unit: Unit, ran_ns: int) -> None:
        unit.of_slice_ns += ran_ns
        while unit.of_slice_ns >= self.slice_ns:
            unit.of_slice_ns -= self.slice_ns
            unit.deadline_ns += self.interval_ns(unit)
            if not any(unit.last in each.affinity for each in self.queue):
                unit.deadline_ns = max(unit.deadline_ns, self.host.now_ns)


class Cfs(SharedQueue):
    """Virtual run time by weight, sleepers half a latency behind, quotas in portions of 5 ms."""

    def start(self) -> None:
        super().start()
        scale = min(self.host.count, 8).bit_length()
        self.latency_ns, self.least_slice_ns, self.wakeup_ns = 6 * MS * scale, 750_000 * scale, MS * scale
        vcpus, self.pools = Counter(unit.domain for unit in self.host.units), {}
        for unit in self.host.units:
            given = unit.parameters
            shares = given.get("shares")
            unit.weight = shares // vcpus[unit.domain] if shares else WEIGHTS[given.get("nice", 0)]
            unit.time_ns = unit.rest = unit.drawn_ns = 0
            if unit.domain not in self.pools:
                self.pools[unit.domain] = self._pool(given)
            unit.pool = self.pools[unit.domain]
            unit.pool.units.append(unit)
        weights = {unit.weight for unit in self.host.units}
        is_pinned = any(len(unit.affinity) < self.host.count for unit in self.host.units)
        self.is_uneven = self.host.count > 1 and (len(weights) > 1 or is_pinned)
        self.least_ns = [0] * self.host.count

    def _pool(self, given: dict[str, Any]) -> Any:
        quota_ns = given.get("quota", 0)
        pool = SimpleNamespace(quota_ns=quota_ns, left_ns=quota_ns, period_ns=given.get("period", 100 * MS), units=[])
        if quota_ns:
            self.host.at(pool.period_ns, lambda: self.refill(pool))
        return pool

    def may_run(self, unit: Unit) -> bool:
        return bool(not unit.pool.quota_ns or unit.drawn_ns > 0 or unit.pool.left_ns > 0)

    def key(self, unit: Unit) -> Any:
        return unit.time_ns

    def preempts(self, newcomer: Unit, running: Unit) -> bool:
        return bool(running.time_ns - newcomer.time_ns > self.wakeup_ns * 1024 // newcomer.weight)

    def ran(self, unit: Unit, ran_ns: int) -> None:
        passed_ns, unit.rest = divmod(ran_ns * 1024 + unit.rest, unit.weight)
        unit.time_ns += passed_ns
        unit.drawn_ns -= ran_ns if unit.pool.quota_ns else 0

    def taken(self, unit: Unit, pcpu: int) -> None:
        if unit.pool.quota_ns and unit.drawn_ns <= 0:
            portion_ns = min(5 * MS, unit.pool.left_ns)
            unit.pool.left_ns -= portion_ns
            unit.drawn_ns += portion_ns

    def runnable(self) -> list[Unit]:
        return [unit for unit in self.active() if self.may_run(unit)]

    def length_ns(self, unit: Unit) -> int:
        units, count = self.runnable(), self.host.count
        crowd, weight = -(-len(units) // count), sum(each.weight for each in units)
        length_ns = self.latency_ns if crowd <= 8 else crowd * self.least_slice_ns
        if weight >= (unit.weight + 1) * count:
            length_ns = length_ns * unit.weight // (weight // count)
        length_ns = max(length_ns, self.least_slice_ns)
        return int(min(length_ns, unit.drawn_ns) if unit.pool.quota_ns else length_ns)

    def advance(self, pcpus: list[int]) -> None:
        """Move the least virtual run time on, of these pCPUs where each has its own."""
        self.charge_all()
        runnable = self.runnable()
        for pcpu in pcpus if self.is_uneven else range(self.host.count):
            there = [
                unit.time_ns
                for unit in runnable
                if not self.is_uneven
                or self.host.current(pcpu) is unit
                or (unit in self.queue and pcpu in unit.affinity)
            ]
            self.least_ns[pcpu] = max([self.least_ns[pcpu], *([min(there)] if there else [])])

    def limit_lead(self, unit: Unit) -> None:
        least_ns = max(self.least_ns[pcpu] for pcpu in unit.affinity)
        unit.time_ns = max(unit.time_ns, least_ns - self.latency_ns // 2)

    def woken(self, unit: Unit) -> None:
        self.advance(unit.affinity)
        self.limit_lead(unit)

    def slept(self, unit: Unit, pcpu: int) -> None:
        self.advance([pcpu])
        if unit.pool.quota_ns and unit.drawn_ns > MS:
            unit.pool.left_ns = min(unit.pool.left_ns + unit.drawn_ns - MS, unit.pool.quota_ns)
            unit.drawn_ns = MS

    def refill(self, pool: Any) -> None:
        self.charge_all()
        self.advance(pool.units[0].affinity)
        held = [unit for unit in self.queue if unit.pool is pool and not self.may_run(unit)]
        pool.left_ns = pool.quota_ns
        for unit in held:
            self.limit_lead(unit)
        for unit in sorted(held, key=self.key):
            self.place(unit)
        self.host.at(self.host.now_ns + pool.period_ns, lambda: self.refill(pool))
