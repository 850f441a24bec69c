"""Xen's schedulers written a second time from their code, as lists and timers: rtds, credit (4.13 on), credit2 (4.18).

One socket without hyperthreads, no soft affinity.  In brackets the functions of ``rt.c``, ``credit.c``, ``credit2.c``.
"""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

from tests.platform.cpu.reference_host import BLOCKED, MS, Policy, Unit


def homes(units: list[Unit], pcpus: int) -> None:
    """Give each vCPU the allowed pCPU where the fewest start, lowest number first."""
    load = [0] * pcpus
    for unit in units:
        unit.home = min(unit.affinity, key=lambda pcpu: load[pcpu])
        load[unit.home] += 1


def insert(queue: list[Unit], unit: Unit, rank: Any) -> None:
    """Put one behind its equals in a queue of falling rank."""
    place = next((n for n, other in enumerate(queue) if rank(unit) > rank(other)), len(queue))
    queue.insert(place, unit)


class Rtds(Policy):
    """Run queue, those without budget, and those to be refilled, by deadline."""

    def start(self) -> None:
        self.queue: list[Unit] = []
        self.depleted: list[Unit] = []
        self.refills: list[Unit] = []
        self.tickled: set[int] = set()
        self.alarm: Any = None
        for unit in self.host.units:
            given = unit.parameters
            unit.period_ns, unit.budget_ns, unit.has_extra = given["period"], given["budget"], given["extratime"]
            unit.deadline_ns = unit.left_of_budget_ns = unit.level = unit.burnt_ns = 0
            unit.was_depleted = False

    @staticmethod
    def rank(unit: Unit) -> tuple[int, int]:
        return -unit.level, -unit.deadline_ns

    def renew(self, unit: Unit) -> None:
        """(rt_update_deadline)"""
        unit.deadline_ns += ((self.host.now_ns - unit.deadline_ns) // unit.period_ns + 1) * unit.period_ns
        unit.left_of_budget_ns, unit.level, unit.burnt_ns = unit.budget_ns, 0, unit.ran_ns

    def burn(self, unit: Unit) -> None:
        """(burn_budget)"""
        unit.left_of_budget_ns -= unit.ran_ns - unit.burnt_ns
        unit.burnt_ns = unit.ran_ns
        if unit.left_of_budget_ns > 0:
            return
        if unit.has_extra:
            unit.level, unit.left_of_budget_ns = unit.level + 1, unit.budget_ns
        else:
            unit.left_of_budget_ns, unit.was_depleted = 0, True

    def queue_up(self, unit: Unit) -> None:
        """(runq_insert)"""
        if unit.left_of_budget_ns > 0:
            insert(self.queue, unit, self.rank)
        else:
            self.depleted.insert(0, unit)

    def await_refill(self, unit: Unit) -> None:
        insert(self.refills, unit, lambda each: -each.deadline_ns)

    def arm(self) -> None:
        self.host.cancel(self.alarm)
        self.alarm = self.host.at(self.refills[0].deadline_ns, self.refill) if self.refills else None

    def wake(self, unit: Unit) -> None:
        if self.host.is_current(unit):
            return
        if self.host.now_ns >= unit.deadline_ns:
            self.renew(unit)
        self.await_refill(unit)
        self.arm()
        self.queue_up(unit)
        self.tickle(unit)

    def tickle(self, unit: Unit) -> None:
        """(runq_tickle); of several idle pCPUs the last one, else the lowest."""
        open_to_it = [pcpu for pcpu in unit.affinity if pcpu not in self.tickled]
        idle = [pcpu for pcpu in open_to_it if self.host.current(pcpu) is None]
        if idle:
            self.ask(unit.last if unit.last in idle else idle[0])
        elif open_to_it:
            latest = min(open_to_it, key=lambda pcpu: self.rank(self.host.current(pcpu)))
            if self.rank(self.host.current(latest)) < self.rank(unit):
                self.ask(latest)

    def ask(self, pcpu: int) -> None:
        self.tickled.add(pcpu)
        self.host.ask(pcpu)

    def choose(self, pcpu: int) -> tuple[Unit | None, int | None]:
        """(rt_schedule)"""
        self.tickled.discard(pcpu)
        current = self.host.current(pcpu)
        if current is not None:
            self.burn(current)
        chosen = next((unit for unit in self.queue if pcpu in unit.affinity), None)
        can_go_on = current is not None and current.state != BLOCKED and current.left_of_budget_ns > 0
        if can_go_on and (chosen is None or self.rank(current) > self.rank(chosen)):
            chosen = current
        if chosen is None:
            return None, None
        chosen.burnt_ns = chosen.ran_ns
        if chosen is not current:
            self.queue.remove(chosen)
        return chosen, chosen.left_of_budget_ns

    def chosen(self, pcpu: int, before: Unit | None, unit: Unit | None) -> None:
        """(rt_context_saved)"""
        if before is None or before is unit:
            return
        if before.state != BLOCKED:
            self.queue_up(before)
            self.tickle(before)
        else:
            self.refills.remove(before)
            self.arm()

    def refill(self) -> None:
        """(repl_timer_handler)"""
        refilled: list[Unit] = []
        while self.refills and self.refills[0].deadline_ns <= self.host.now_ns:
            unit = self.refills.pop(0)
            self.renew(unit)
            refilled.insert(0, unit)
            for waiting in (self.queue, self.depleted):
                if unit in waiting:
                    waiting.remove(unit)
                    self.queue_up(unit)
                    break
        for unit in refilled:
            self.look_after(unit)
            self.await_refill(unit)
        self.arm()

    def look_after(self, unit: Unit) -> None:
        if self.host.is_current(unit) and self.queue:
            if self.rank(unit) < self.rank(self.queue[0]):
                self.tickle(self.queue[0])
        elif unit.was_depleted:
            unit.was_depleted = False
            if unit in self.queue:
                self.tickle(unit)


BOOST, UNDER, OVER, IDLE = 0, -1, -2, -64


def up(number: int, divisor: int) -> int:
    return -(-number // divisor)


class Credit(Policy):
    """A queue for each pCPU, ticks, accounting."""

    def __init__(self, slice: int, rate_limit: int, migration_delay: int) -> None:
        self.slice_ns, self.rate_limit_ns, self.hot_ns = slice, rate_limit, migration_delay

    def start(self) -> None:
        count = self.host.count
        self.queues: list[list[Unit]] = [[] for _ in range(count)]
        self.idlers, self.last_tickled, self.bias = set(range(count)), [0] * count, 0
        self.balance, self.is_to_sort = 0, [False] * count
        self.per_slice = self.slice_ns // MS * 10
        self.tick_us = self.slice_ns // 1000 // (3 if self.slice_ns >= 3 * MS else 1)
        self.active: list[Any] = []
        homes(self.host.units, count)
        domains: dict[int, Any] = {}
        for unit in self.host.units:
            given = unit.parameters
            fresh = SimpleNamespace(weight=given["weight"], cap=given["cap"], units=[])
            unit.account = domains.setdefault(unit.domain, fresh)
            unit.priority, unit.credit = UNDER, 0
            unit.counted_ns = unit.unpaid_ns = unit.residual = unit.since_ns = 0
            unit.stopped_ns = -(10**18)
            unit.is_active = unit.is_parked = unit.leaves = unit.is_moved = False
        for pcpu in range(count):
            self.plan_tick(pcpu)
        self.host.at(self.slice_ns // 2, self.account)

    def plan_tick(self, pcpu: int) -> None:
        self.host.at(self.host.now_ns + 1000 * self.tick_us, lambda: self.tick(pcpu))

    @staticmethod
    def is_runnable(unit: Unit) -> bool:
        return not (unit.state == BLOCKED or unit.is_parked or unit.leaves)

    def burn(self, unit: Unit) -> None:
        """(burn_credits)"""
        unit.unpaid_ns += unit.ran_ns - unit.counted_ns
        unit.counted_ns = unit.ran_ns
        if unit.unpaid_ns > 0:
            credits, unit.residual = divmod(unit.unpaid_ns * 10 + unit.residual, MS)
            unit.credit -= credits
            unit.unpaid_ns -= credits * MS // 10

    def queue_up(self, unit: Unit) -> None:
        insert(self.queues[unit.home], unit, lambda each: each.priority)

    def ask(self, pcpu: int) -> None:
        self.idlers.discard(pcpu)
        self.host.ask(pcpu)

    def next_after(self, pcpu: int, pcpus: list[int]) -> int:
        """(cpumask_cycle)"""
        return min(pcpus, key=lambda each: (each - pcpu - 1) % self.host.count)

    def tickle(self, unit: Unit, here: int) -> None:
        """(__runq_tickle)"""
        current = self.host.current(unit.home)
        preempts = current is None or unit.priority > current.priority
        fitting = [pcpu for pcpu in unit.affinity if pcpu in self.idlers]
        if current is None or (not fitting and preempts):
            self.ask(unit.home)
        elif fitting:
            self.last_tickled[here] = self.next_after(self.last_tickled[here], fitting)
            self.ask(self.last_tickled[here])

    def wake(self, unit: Unit) -> None:
        if not unit.is_parked:
            self.wake_at(unit, 0)

    def wake_at(self, unit: Unit, here: int) -> None:
        """(csched_unit_wake)"""
        if self.host.is_current(unit):
            return
        if not unit.is_moved and unit.priority == UNDER and not unit.is_parked:
            unit.priority = BOOST
        unit.is_moved = False
        self.queue_up(unit)
        self.tickle(unit, here)

    def better_home(self, unit: Unit) -> int:
        """(_csched_cpu_pick)"""
        idle = self.idlers | ({unit.home} if not self.queues[unit.home] else set())
        fitting = [pcpu for pcpu in unit.affinity if pcpu in idle]
        return int(self.next_after(unit.home, fitting) if fitting and unit.home not in fitting else unit.home)

    def tick(self, pcpu: int) -> None:
        """(csched_tick)"""
        unit = self.host.current(pcpu)
        if unit is not None:
            self.tick_running(unit, pcpu)
        if self.is_to_sort[pcpu]:
            self.is_to_sort[pcpu] = False
            self.queues[pcpu].sort(key=lambda each: each.priority < UNDER)
        self.plan_tick(pcpu)

    def tick_running(self, unit: Unit, pcpu: int) -> None:
        """(csched_unit_acct)"""
        unit.priority = UNDER if unit.priority == BOOST else unit.priority
        self.burn(unit)
        if not unit.is_active:
            unit.is_active = True
            if not unit.account.units:
                self.active.insert(0, unit.account)
            unit.account.units.insert(0, unit)
        elif self.better_home(unit) != pcpu:
            unit.leaves = True
            self.host.ask(pcpu)

    def account(self) -> None:
        """(csched_acct)"""
        self.host.at(self.host.now_ns + self.slice_ns, self.account)
        weight = sum(account.weight * len(account.units) for account in self.active)
        debt = max(-self.balance, 0)
        self.balance, pool, left, wants_more = 0, self.per_slice * self.host.count + debt, weight, False
        for account in [*self.active]:
            of_account, count = account.weight * len(account.units), len(account.units)
            left -= of_account
            peak = count * self.per_slice + up(debt * of_account, weight)
            cap = up(account.cap * self.per_slice, 100)
            peak = min(peak, cap) if cap else peak
            fair = up(pool * of_account, weight)
            if fair < peak:
                wants_more = True
            else:
                pool += up((fair - peak) * weight, left) if left else 0
                if wants_more:
                    self.active.remove(account)
                    self.active.insert(0, account)
                fair = peak
            for unit in [*account.units]:
                self.earn(unit, up(fair, count), up(cap, count))
                self.balance += unit.credit
        if weight:
            self.is_to_sort = [True] * self.host.count

    def earn(self, unit: Unit, credit: int, cap: int) -> None:
        unit.credit += credit
        if unit.credit < 0:
            unit.priority = OVER
            if cap and unit.credit < -cap and not unit.is_parked:
                self.park(unit)
            unit.credit = max(unit.credit, -self.per_slice)
            return
        unit.priority = UNDER
        if unit.is_parked:
            # Woken before the flag falls: it is not boosted.
            if unit.state != BLOCKED:
                self.wake_at(unit, 0)
            unit.is_parked = False
        if unit.credit > self.per_slice:
            unit.is_active = False
            unit.account.units.remove(unit)
            if not unit.account.units:
                self.active.remove(unit.account)
            unit.credit //= 2

    def park(self, unit: Unit) -> None:
        unit.is_parked = True
        if unit in self.queues[unit.home]:
            self.queues[unit.home].remove(unit)
        if self.host.is_current(unit):
            self.host.ask(unit.home)

    def choose(self, pcpu: int) -> tuple[Unit | None, int | None]:
        """(csched_schedule)"""
        current, now_ns = self.host.current(pcpu), self.host.now_ns
        if current is not None:
            self.burn(current)
            current.stopped_ns = now_ns
            ran_ns = now_ns - current.since_ns
            if self.is_runnable(current):
                if ran_ns < self.rate_limit_ns:
                    return current, self.rate_limit_ns - ran_ns if ran_ns >= 100 else 100
                self.queue_up(current)
        chosen = self.first_or_stolen(pcpu)
        if chosen is None:
            self.idlers.add(pcpu)
            return None, None
        self.idlers.discard(pcpu)
        if chosen is not current:
            chosen.since_ns = now_ns
        return chosen, self.slice_ns

    def first_or_stolen(self, pcpu: int) -> Unit | None:
        """(csched_load_balance, csched_runq_steal)"""
        queue = self.queues[pcpu]
        above = queue[0].priority if queue else IDLE
        peers = [each for each in range(self.host.count) if each != pcpu and each not in self.idlers]
        for peer in sorted(peers, key=lambda each: (each - self.bias - 1) % self.host.count) if above <= OVER else ():
            for unit in self.queues[peer] if self.host.current(peer) is not None else ():
                if unit.priority <= above:
                    break
                if pcpu in unit.affinity and self.host.now_ns - unit.stopped_ns >= self.hot_ns:
                    self.queues[peer].remove(unit)
                    unit.home, self.bias = pcpu, peer
                    return unit
        return queue.pop(0) if queue else None

    def chosen(self, pcpu: int, before: Unit | None, unit: Unit | None) -> None:
        """(sched_unit_migrate_finish)"""
        if before is not None and before.leaves:
            before.leaves, before.is_moved = False, True
            before.home = self.better_home(before)
            if before.state != BLOCKED and not before.is_parked:
                self.wake_at(before, pcpu)


class Credit2(Policy):
    """One queue by credit, resets, budgets of caps."""

    most, carried, least_ns, longest_ns, tolerance_ns = 10 * MS, MS // 2, MS // 2, 10 * MS, 50_000

    def __init__(self, rate_limit: int, migration_resistance: int, cap_period: int) -> None:
        self.rate_limit_ns, self.resistance, self.period_ns = rate_limit, migration_resistance, cap_period

    def start(self) -> None:
        self.queue: list[Unit] = []
        self.tickled: set[int] = set()
        self.highest = max(unit.parameters["weight"] for unit in self.host.units)
        vcpus, self.pools = Counter(unit.domain for unit in self.host.units), {}
        homes(self.host.units, self.host.count)
        for unit in self.host.units:
            unit.weight, unit.credit = unit.parameters["weight"], self.most
            unit.residue = unit.burnt_ns = unit.since_ns = unit.held_ns = 0
            unit.asked, unit.is_parked = None, False
            total_ns = unit.parameters["cap"] * self.period_ns // 100
            portion_ns = max(total_ns // vcpus[unit.domain], self.least_ns)
            fresh = SimpleNamespace(total_ns=total_ns, left_ns=total_ns, portion_ns=portion_ns, parked=[])
            unit.pool = self.pools.setdefault(unit.domain, fresh)
        self.host.at(self.period_ns, self.replenish)

    @staticmethod
    def is_runnable(unit: Unit) -> bool:
        return unit.state != BLOCKED and not unit.is_parked

    def burn(self, unit: Unit) -> None:
        """(burn_credits, t2c_update)"""
        ran_ns, unit.burnt_ns = unit.ran_ns - unit.burnt_ns, unit.ran_ns
        credits, unit.residue = divmod(ran_ns * self.highest + unit.residue, unit.weight)
        unit.credit = max(unit.credit - credits, -self.most)
        if unit.pool.total_ns:
            unit.held_ns -= ran_ns

    def join(self, unit: Unit) -> None:
        """(runq_insert, runq_tickle)"""
        insert(self.queue, unit, lambda each: each.credit)
        pcpu = self.place(unit)
        if pcpu is not None:
            self.ask(pcpu)
            unit.asked = pcpu

    def ask(self, pcpu: int) -> None:
        self.tickled.add(pcpu)
        self.host.ask(pcpu)

    def place(self, unit: Unit) -> int | None:
        open_to_it = [pcpu for pcpu in unit.affinity if pcpu not in self.tickled]
        idle = [pcpu for pcpu in open_to_it if self.host.current(pcpu) is None]
        if idle:
            return min(idle, key=lambda pcpu: (pcpu - unit.home) % self.host.count)
        if unit.home in open_to_it and self.score(unit, unit.home) > 0:
            return int(unit.home)
        scores = {pcpu: self.score(unit, pcpu) for pcpu in open_to_it if pcpu != unit.home}
        best = max(scores, key=lambda pcpu: scores[pcpu], default=None)
        return best if best is not None and scores[best] > 0 else None

    def score(self, unit: Unit, pcpu: int) -> int:
        """(tickle_score, is_preemptable)"""
        current, limit_ns = self.host.current(pcpu), self.rate_limit_ns
        if limit_ns > self.tolerance_ns and self.host.now_ns - current.since_ns <= limit_ns - self.tolerance_ns:
            return -1
        self.burn(current)
        return int(unit.credit - current.credit - (0 if unit.home == pcpu else self.resistance))

    def wake(self, unit: Unit) -> None:
        if not self.host.is_current(unit) and not unit.is_parked:
            self.join(unit)

    def grab(self, unit: Unit) -> bool:
        """(unit_grab_budget, park_unit)"""
        pool = unit.pool
        if not pool.total_ns or unit.held_ns > 0:
            return True
        pool.left_ns += unit.held_ns
        unit.held_ns = max(min(pool.portion_ns, pool.left_ns), 0)
        pool.left_ns -= unit.held_ns
        if unit.held_ns > 0:
            return True
        unit.is_parked = True
        if unit in self.queue:
            self.queue.remove(unit)
        pool.parked.insert(0, unit)
        return False

    def unpark(self, pool: Any) -> None:
        """(unpark_parked_units)"""
        parked, pool.parked = pool.parked, []
        for unit in parked:
            unit.is_parked = False
            if unit.state != BLOCKED and not self.host.is_current(unit):
                self.join(unit)

    def replenish(self) -> None:
        """(replenish_domain_budget)"""
        for unit in [pcpu.current for pcpu in self.host.pcpus if pcpu.current is not None]:
            self.burn(unit)
        for pool in self.pools.values():
            pool.left_ns = min(pool.left_ns + pool.total_ns, pool.total_ns)
            if pool.left_ns > 0:
                self.unpark(pool)
        self.host.at(self.host.now_ns + self.period_ns, self.replenish)

    def candidate(self, pcpu: int) -> Unit | None:
        """(runq_candidate)"""
        current, best, credit = self.host.current(pcpu), None, -(1 << 30)
        if current is not None and self.is_runnable(current):
            if self.host.now_ns - current.since_ns < self.rate_limit_ns:
                return current  # type: ignore[no-any-return]
            best, credit = current, current.credit
        for unit in [*self.queue]:
            if unit.credit <= credit:
                break
            is_meant_elsewhere = unit.asked not in (None, pcpu) and unit.asked in self.tickled
            is_too_close = unit.home != pcpu and credit + self.resistance > unit.credit
            if pcpu in unit.affinity and not is_meant_elsewhere and not is_too_close and self.grab(unit):
                return unit
        return best

    def choose(self, pcpu: int) -> tuple[Unit | None, int | None]:
        """(csched2_schedule)"""
        self.tickled.discard(pcpu)
        current = self.host.current(pcpu)
        if current is not None:
            self.burn(current)
            self.grab(current)
        chosen = self.candidate(pcpu)
        if chosen is None:
            return None, None
        if chosen is not current:
            self.queue.remove(chosen)
        if max([chosen.credit, *(unit.credit for unit in self.queue[:1])]) <= 0:
            self.reset(chosen)
        chosen.asked = None
        if chosen.home != pcpu:
            chosen.credit, chosen.home = chosen.credit + 50_000, pcpu
        length_ns = self.length_ns(chosen, chosen is current)
        chosen.since_ns = chosen.since_ns if chosen is current else self.host.now_ns
        return chosen, length_ns

    def reset(self, chosen: Unit) -> None:
        """(reset_credit)"""
        added = self.most * (2 if chosen.credit == -self.most else 1)
        for unit in self.host.units:
            if self.host.current(unit.home) is unit:
                self.burn(unit)
                if unit.pool.total_ns and unit.held_ns <= 0:
                    self.ask(unit.home)
            unit.credit = min(unit.credit + added, self.most + self.carried)

    def length_ns(self, unit: Unit, goes_on: bool) -> int:
        """(csched2_runtime)"""
        limit_ns = self.rate_limit_ns - (self.host.now_ns - unit.since_ns if goes_on else 0)
        waiting = max([0, *(other.credit for other in self.queue[:1])])
        length_ns = max(unit.credit - waiting, 0) * unit.weight // self.highest
        if unit.pool.total_ns:
            length_ns = min(length_ns, unit.held_ns)
        return int(max(min(length_ns, self.longest_ns), self.least_ns, limit_ns))

    def chosen(self, pcpu: int, before: Unit | None, unit: Unit | None) -> None:
        """(csched2_context_saved)"""
        if before is None or before is unit:
            return
        returns = before.pool.total_ns > 0 and before.held_ns > 0
        if returns:
            before.pool.left_ns += before.held_ns
            before.held_ns = 0
        if self.is_runnable(before):
            self.join(before)
        if returns and before.pool.left_ns > 0:
            self.unpark(before.pool)
