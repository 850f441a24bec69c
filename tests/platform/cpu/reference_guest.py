"""Process schedulers of a guest with one CPU, written a second time from docs/schedulers/guest.md and Linux's sources.

It shares nothing with the package.  At one instant a run ends first, then work comes.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.reference_clock import MS, S

WEIGHTS = {-20: 88761, -10: 9548, -5: 3121, -3: 1991, 0: 1024, 3: 526, 5: 335, 10: 110, 19: 15}
"""Of Linux's ``sched_prio_to_weight``, those that are used."""


@dataclass
class Job:
    """``then`` begins at its end, woken by its process."""

    task: Task
    left_ns: int
    then: Job | None = None


@dataclass(eq=False)
class Task:
    """A process; a scheduler keeps what it knows of it in ``state``."""

    number: int
    nice: int
    jobs: deque[Job] = field(default_factory=deque)
    is_runnable: bool = False

    def __post_init__(self) -> None:
        self.state: Any = None

    @property
    def weight(self) -> int:
        return WEIGHTS[self.nice]


class Rules:
    """A scheduler; ``runnable`` tasks are the guest's, the one on the CPU among them."""

    guest: Guest

    def begin(self, task: Task) -> None:
        raise NotImplementedError

    def wake(self, task: Task, *, by_interrupt: bool) -> None:
        raise NotImplementedError

    def sleep(self, task: Task) -> None:
        """Let go a task that was on the CPU."""

    def leave(self, task: Task) -> None:
        """Weigh the one on the CPU against the others."""

    def run(self, task: Task, ran_ns: int) -> None:
        raise NotImplementedError

    def limit_ns(self, task: Task) -> float:
        raise NotImplementedError

    def expire(self, task: Task) -> None:
        """The one on the CPU has run for as long as it may."""

    def pick(self) -> Task:
        raise NotImplementedError

    def preempts(self, newcomer: Task, task: Task) -> bool:
        raise NotImplementedError


class Guest:
    """``ended`` is when whose job was done."""

    def __init__(self, rules: Rules, nices: list[int]) -> None:
        self.rules, self.now_ns = rules, 0
        rules.guest = self
        self.tasks = [Task(number, nice) for number, nice in enumerate(nices)]
        self.current: Task | None = None
        self.runnable: list[Task] = []
        self.ended: list[tuple[int, int]] = []
        for task in self.tasks:
            rules.begin(task)

    def others(self, task: Task | None) -> Iterator[Task]:
        return (each for each in self.runnable if each is not task)

    def run(self, coming: list[tuple[int, Job]]) -> list[tuple[int, int]]:
        for time_ns, job in [*sorted(coming, key=lambda each: each[0]), (1 << 62, None)]:
            self._run_until(time_ns)
            if job is None:
                break
            if self._take(job, by_interrupt=True):
                self._weigh(job.task)
        return self.ended

    def _run_until(self, until_ns: int) -> None:
        while self.current is not None:
            length_ns = min(self.current.jobs[0].left_ns, max(self.rules.limit_ns(self.current), 1))
            if self.now_ns + length_ns > until_ns:
                break
            self._advance(int(length_ns))
            self._end_run(self.current)
        if self.current is not None:
            self._advance(until_ns - self.now_ns)
        self.now_ns = until_ns

    def _advance(self, ran_ns: int) -> None:
        self.now_ns += ran_ns
        assert self.current is not None
        self.current.jobs[0].left_ns -= ran_ns
        self.rules.run(self.current, ran_ns)

    def _end_run(self, task: Task) -> None:
        must_choose = False
        if task.jobs[0].left_ns == 0:
            then = task.jobs.popleft().then
            self.ended.append((self.now_ns, task.number))
            if then is not None and self._take(then, by_interrupt=False):
                must_choose = self.rules.preempts(then.task, task)
        if not task.jobs:
            self._sleep(task)
            self._choose()
        elif self._is_over(task) or must_choose:
            self._choose()

    def _is_over(self, task: Task) -> bool:
        if self.rules.limit_ns(task) > 0:
            return False
        self.rules.expire(task)
        return True

    def _take(self, job: Job, *, by_interrupt: bool) -> bool:
        """Give a task a job; tell whether that woke it."""
        job.task.jobs.append(job)
        if job.task.is_runnable:
            return False
        job.task.is_runnable = True
        self.rules.wake(job.task, by_interrupt=by_interrupt)
        self.runnable.append(job.task)
        return True

    def _sleep(self, task: Task) -> None:
        task.is_runnable = False
        self.rules.sleep(task)
        self.runnable.remove(task)
        self.current = None

    def _weigh(self, newcomer: Task) -> None:
        """A task has woken beside the one on the CPU, if there is one."""
        if self.current is None:
            self._choose()
        elif self.rules.preempts(newcomer, self.current):
            self._is_over(self.current)
            self._choose()
        elif self._is_over(self.current):
            self._choose()

    def _choose(self) -> None:
        if self.current is not None:
            self.rules.leave(self.current)
        self.current = self.rules.pick() if self.runnable else None


@dataclass
class Fair:
    """Of a task under cfs and eevdf: virtual run time, what is left of its next ns, and what the rules need."""

    virtual_ns: int = 0
    rest: int = 0
    ran_ns: int = 0
    lag_ns: int = 0
    deadline_ns: int = 0
    chosen_with_ns: int = -1

    def run(self, ran_ns: int, weight: int) -> None:
        whole_ns, self.rest = divmod(self.rest + 1024 * ran_ns, weight)
        self.virtual_ns += whole_ns
        self.ran_ns += ran_ns


class Cfs(Rules):
    """kernel/sched/fair.c before 6.6: place_entity, sched_slice, check_preempt_tick, wakeup_preempt_entity."""

    def __init__(self, latency_ns: int, granularity_ns: int, wakeup_ns: int) -> None:
        self.latency_ns, self.granularity_ns, self.wakeup_ns = latency_ns, granularity_ns, wakeup_ns
        self.least_ns = 0

    def begin(self, task: Task) -> None:
        task.state = Fair()

    def wake(self, task: Task, *, by_interrupt: bool) -> None:
        task.state.virtual_ns = max(task.state.virtual_ns, self.least_ns - self.latency_ns // 2)

    def _move(self, tasks: list[Task]) -> None:
        if tasks:
            self.least_ns = max(self.least_ns, min(task.state.virtual_ns for task in tasks))

    def sleep(self, task: Task) -> None:
        self._move([*self.guest.others(task)])

    def run(self, task: Task, ran_ns: int) -> None:
        task.state.run(ran_ns, task.weight)
        self._move(self.guest.runnable)

    def limit_ns(self, task: Task) -> float:
        others = [*self.guest.others(task)]
        if not others:
            return math.inf
        count, weight = len(others) + 1, sum(each.weight for each in self.guest.runnable)
        is_long = count > self.latency_ns // self.granularity_ns
        turn_ns = (count * self.granularity_ns if is_long else self.latency_ns) * task.weight // weight
        ahead_ns = task.state.virtual_ns - min(each.state.virtual_ns for each in others)
        by_lead_ns = (turn_ns - ahead_ns) * task.weight // 1024
        return min(turn_ns - task.state.ran_ns, max(self.granularity_ns - task.state.ran_ns, by_lead_ns))

    def pick(self) -> Task:
        task = min(self.guest.runnable, key=lambda each: each.state.virtual_ns)
        task.state.ran_ns = 0
        return task

    def preempts(self, newcomer: Task, task: Task) -> bool:
        return (task.state.virtual_ns - newcomer.state.virtual_ns) * newcomer.weight > 1024 * self.wakeup_ns


class Eevdf(Rules):
    """kernel/sched/fair.c of 6.6: place_entity, pick_eevdf, update_deadline, RUN_TO_PARITY."""

    def __init__(self, slice_ns: int, to_parity: bool) -> None:
        self.slice_ns, self.to_parity = slice_ns, to_parity

    def begin(self, task: Task) -> None:
        task.state = Fair()

    def _slice_ns(self, task: Task) -> int:
        return 1024 * self.slice_ns // task.weight

    def _mean(self) -> tuple[int, int]:
        """Return V as a fraction."""
        weight = sum(each.weight for each in self.guest.runnable)
        return sum(each.weight * each.state.virtual_ns for each in self.guest.runnable), weight

    def _mean_ns(self) -> int:
        total, weight = self._mean()
        if weight:
            self.last_ns = total // weight
        return self.last_ns

    last_ns = 0

    def wake(self, task: Task, *, by_interrupt: bool) -> None:
        weight = self._mean()[1]
        lag_ns = task.state.lag_ns * (weight + task.weight) // weight if weight else 0
        task.state.virtual_ns = self._mean_ns() - lag_ns
        task.state.deadline_ns = task.state.virtual_ns + self._slice_ns(task)

    def sleep(self, task: Task) -> None:
        most_ns = 2 * self._slice_ns(task)
        task.state.lag_ns = max(-most_ns, min(most_ns, self._mean_ns() - task.state.virtual_ns))

    def run(self, task: Task, ran_ns: int) -> None:
        task.state.run(ran_ns, task.weight)
        late_ns = task.state.virtual_ns - task.state.deadline_ns
        if late_ns >= 0 and len(self.guest.runnable) == 1:
            task.state.deadline_ns += (late_ns // self._slice_ns(task) + 1) * self._slice_ns(task)

    def limit_ns(self, task: Task) -> float:
        if len(self.guest.runnable) == 1:
            return math.inf
        return -((task.state.rest - (task.state.deadline_ns - task.state.virtual_ns) * task.weight) // 1024)

    def expire(self, task: Task) -> None:
        task.state.deadline_ns = task.state.virtual_ns + self._slice_ns(task)

    def _is_eligible(self, task: Task) -> bool:
        total, weight = self._mean()
        return task.state.virtual_ns * weight <= total

    def _first(self) -> Task:
        return min(filter(self._is_eligible, self.guest.runnable), key=lambda each: each.state.deadline_ns)

    def pick(self) -> Task:
        task = self._first()
        task.state.chosen_with_ns = task.state.deadline_ns
        return task

    def preempts(self, newcomer: Task, task: Task) -> bool:
        if self.to_parity and task.state.deadline_ns == task.state.chosen_with_ns and self._is_eligible(task):
            return False
        return self._first() is newcomer


@dataclass(eq=False)
class Slept:
    """Of a task under o1: ``kind`` says how its last sleep ended."""

    slice_ns: int
    priority: int
    sleep_ns: int = 0
    kind: str = "normal"
    stamp_ns: int = 0
    turn_ns: int = 0
    is_expired: bool = False
    place: int = 0


class O1(Rules):
    """kernel/sched.c of 2.6.18, with ticks of 1 ms."""

    def __init__(self, base_ns: int = 100 * MS) -> None:
        self.base_ns, self.places = base_ns, 0
        self.expired_since_ns: int | None = None
        self.best_expired = 140

    def begin(self, task: Task) -> None:
        task.state = Slept(self._timeslice_ns(task), 125 + task.nice)

    def _timeslice_ns(self, task: Task) -> int:
        """``task_timeslice``: SCALE_PRIO."""
        return max(self.base_ns * (4 if task.nice < 0 else 1) * (20 - task.nice) // 20, 5 * MS)

    @staticmethod
    def _bonus(task: Task) -> int:
        return task.state.sleep_ns // MS * 10 // 1000

    @staticmethod
    def _delta(task: Task) -> int:
        return (task.nice + 20) * 10 // 40 - 5 + 2

    def _priority(self, task: Task) -> int:
        return max(100, min(139, 120 + task.nice - self._bonus(task) + 5))

    def _is_interactive(self, task: Task) -> bool:
        return task.state.priority <= 120 + task.nice - self._delta(task)

    def _recalculate(self, task: Task, slept_ns: int) -> int:
        """``recalc_task_prio``."""
        slept, ceiling_ns = task.state, (1000 * (5 + self._delta(task) + 1) // 10 - 1) * MS
        if slept_ns > ceiling_ns and slept.sleep_ns < ceiling_ns:
            slept.sleep_ns, slept.kind = ceiling_ns, "disk"
        elif slept.kind != "disk":
            slept.sleep_ns += slept_ns
        elif slept.sleep_ns < ceiling_ns:
            slept.sleep_ns = min(slept.sleep_ns + slept_ns, ceiling_ns)
        slept.sleep_ns = min(slept.sleep_ns, S)
        return self._priority(task)

    def _enqueue(self, task: Task) -> None:
        self.places += 1
        task.state.place = self.places

    def wake(self, task: Task, *, by_interrupt: bool) -> None:
        slept = task.state
        slept.priority = self._recalculate(task, self.guest.now_ns - slept.stamp_ns)
        if slept.kind == "normal":
            slept.kind = "by interrupt" if by_interrupt else "by process"
        slept.stamp_ns, slept.is_expired = self.guest.now_ns, False
        self._enqueue(task)

    def leave(self, task: Task) -> None:
        """``schedule``: what it has run costs sleep."""
        ran_ns = min(self.guest.now_ns - task.state.stamp_ns, S)
        task.state.sleep_ns = max(0, task.state.sleep_ns - ran_ns // (self._bonus(task) or 1))
        task.state.stamp_ns = self.guest.now_ns

    sleep = leave

    def run(self, task: Task, ran_ns: int) -> None:
        task.state.slice_ns -= ran_ns
        task.state.turn_ns -= ran_ns

    def limit_ns(self, task: Task) -> float:
        return min(task.state.slice_ns, task.state.turn_ns)

    def _begin_turn(self, task: Task) -> None:
        """``scheduler_tick``: at each multiple of TIMESLICE_GRANULARITY in a slice that has another one left."""
        slept = task.state
        slept.turn_ns = slept.slice_ns
        if self._is_interactive(task):
            turn_ns = 10 * MS << ((10 - self._bonus(task) or 1) - 1)
            left_ns = turn_ns - (self._timeslice_ns(task) - slept.slice_ns) % turn_ns
            slept.turn_ns = left_ns if slept.slice_ns - left_ns >= turn_ns else slept.slice_ns

    def expire(self, task: Task) -> None:
        slept = task.state
        if slept.slice_ns <= 0:
            slept.priority = self._priority(task)
            slept.slice_ns = self._timeslice_ns(task)
            if self.expired_since_ns is None:
                self.expired_since_ns = self.guest.now_ns
            if not self._is_interactive(task) or self._starves(task, self.expired_since_ns):
                slept.is_expired = True
                self.best_expired = min(self.best_expired, 120 + task.nice)
        self._enqueue(task)
        self._begin_turn(task)

    def _starves(self, task: Task, since_ns: int) -> bool:
        """``expired_starving``."""
        return 120 + task.nice > self.best_expired or self.guest.now_ns - since_ns > S * len(self.guest.runnable)

    def pick(self) -> Task:
        """``schedule``."""
        if all(each.state.is_expired for each in self.guest.runnable):
            self.expired_since_ns, self.best_expired = None, 140
            for each in self.guest.runnable:
                each.state.is_expired = False
        active = (each for each in self.guest.runnable if not each.state.is_expired)
        task = min(active, key=lambda each: (each.state.priority, each.state.place))
        if task.state.kind in ("by process", "by interrupt"):
            waited_ns = self.guest.now_ns - task.state.stamp_ns
            waited_ns = waited_ns * 38 // 128 if task.state.kind == "by process" else waited_ns
            before = task.state.priority
            task.state.priority = self._recalculate(task, waited_ns)
            if task.state.priority != before:
                self._enqueue(task)
        task.state.kind, task.state.stamp_ns = "normal", self.guest.now_ns
        self._begin_turn(task)
        return task

    def preempts(self, newcomer: Task, task: Task) -> bool:
        return bool(newcomer.state.priority < task.state.priority)
