"""Xen's credit scheduler, 3.2 to current.

Rules (Xen ``sched_credit.c``; Cherkasova, Gupta, Vahdat 2007 describe the same):

* Each pCPU has a run queue in order of priority: BOOST > UNDER (credit >= 0) > OVER; first in, first
  out inside a class.  Priority follows the credit only at accounting, every 30 ms; queues are brought
  back into order by a stable partition at each pCPU's next 10 ms tick.
* A vCPU that wakes UNDER becomes BOOST.  It loses that when a tick finds it running, or at accounting.
* Debit: up to 3.2 the vCPU found running at a tick pays 100 credits, all others nothing; from 4.0
  everyone pays 10 credits for each ms it ran.
* A vCPU becomes active, and earns, when a tick finds it running; it leaves when its credit passes one
  slice's worth.  Credits are handed out by weight (:mod:`._credit_accounting`).
* Cap: a vCPU whose credit falls below minus its share of the cap is parked until accounting has
  brought it back to 0, so a capped guest pauses for multiples of the accounting period.
* A pCPU about to run OVER or to idle steals the first vCPU of strictly higher priority from the queue
  of a busy peer, in the order of pCPU numbers from its own.
* A wake pre-empts a running vCPU of lower priority, and wakes idle pCPUs by the version's rule; from
  4.2 a vCPU that has run for less than the rate limit (1 ms) goes on.

What changed when: :mod:`._credit_rules`.

Assumption: all ticks coincide, and the accounting timer of 4.0 and later goes off half a period after
them (``accounting_phase``; in Xen the phase is whatever it was at boot, and drifts).
Left out: yield, soft affinity, NUMA and hyperthread topology (with one thread a core on one socket the
tick's search for a better idle core moves nothing), failed try-locks while stealing.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Literal

from pydantic import Field, model_validator

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import IDLE, Decision, HostView, PeriodicTimer, Policy, home_pcpus
from vftsim.cpu.schedulers._credit_accounting import Account, Accounting, CreditRecord
from vftsim.cpu.schedulers._credit_rules import RULES, Version
from vftsim.cpu.vcpu import Vcpu, VcpuState
from vftsim.engine import EventKind
from vftsim.spec.units import DURATION, DurationNs

BOOST, UNDER, OVER, IDLE_PRIORITY = 0, -1, -2, -64
NAMES = {BOOST: "BOOST", UNDER: "UNDER", OVER: "OVER"}
_MS = 1_000_000
_CREDITS_PER_MS = 10
_NS_PER_CREDIT = _MS // _CREDITS_PER_MS
_TICKS_PER_SLICE = 3


@SCHEDULERS.register
class Credit(SchedulerSpec):
    """Xen's credit scheduler."""

    kind: Literal["credit"] = "credit"
    version: Version = Field(
        "4.18",
        description="Release of Xen whose rules hold (the first release of each rule set). Default: current.",
    )
    slice: DurationNs = Field(
        30 * _MS,
        ge=_MS,
        le=1000 * _MS,
        description="Time slice and accounting period, 1 ms to 1 s, a third of it the tick "
        "(sched_credit_tslice_ms). Default 30 ms; fixed before Xen 4.2.",
    )
    rate_limit: DurationNs | None = Field(
        None,
        description="Least time a vCPU runs before it can be pre-empted, 100 us to 500 ms, 0: off "
        "(sched_ratelimit_us). Default: the version's, 1 ms from Xen 4.2, none before.",
    )
    migration_delay: DurationNs = Field(
        0,
        le=100 * _MS,
        description="A vCPU that ran more recently than this is not stolen (vcpu_migration_delay). Default 0: Xen's.",
    )
    balance_limit: DurationNs | None = Field(
        None,
        description="Least time between two searches of one pCPU for work to steal "
        "(credit_load_balance_ratelimit_us). Default: the version's, 1 ms from Xen 4.18, none before.",
    )
    accounting_phase: DurationNs | None = Field(
        None,
        description="When the accounting timer first goes off, at most one slice after the start (Xen "
        "4.0 and later). Default half a slice: Assumption, in Xen it is arbitrary.",
    )
    boost: bool = Field(
        True,
        description="Whether a wake boosts. Off, this is a deliberately wrong model for comparison.",
    )

    @model_validator(mode="after")
    def _fits_version(self) -> "Credit":
        rules = RULES[self.version]
        if self.slice != 30 * _MS and not rules.variable_slice:
            raise ValueError(f"Xen {self.version} has a fixed slice of 30 ms; use version 4.2 or later")
        if self.accounting_phase is not None:
            if rules.accounting_in_tick:
                raise ValueError(f"Xen {self.version} accounts in its tick; use version 4.0 or later")
            if self.accounting_phase > self.slice:
                raise ValueError(f"accounting_phase must be at most {DURATION.format(self.slice)} (the slice)")
        if self.rate_limit:
            if not rules.rate_limit_ns:
                raise ValueError(f"Xen {self.version} has no rate limit; use version 4.2 or later")
            highest_ns = min(500 * _MS, self.slice)
            if not _MS // 10 <= self.rate_limit <= highest_ns:
                raise ValueError(f"rate_limit must be 0 or 100 us to {DURATION.format(highest_ns)}")
        return self

    def build(self) -> "CreditScheduler":
        """Make the policy."""
        return CreditScheduler(self)


class CreditScheduler(Policy):
    """The policy; counters: boosts, preemptions, steals, parks, unparks, rate_limited, kicks."""

    def __init__(self, parameters: Credit) -> None:
        super().__init__()
        self.rules = rules = RULES[parameters.version]
        self.boost = parameters.boost
        self.slice_ns = parameters.slice
        self.tick_ns = self.slice_ns // (_TICKS_PER_SLICE if self.slice_ns >= _TICKS_PER_SLICE * _MS else 1)
        self.credits_per_slice = self.slice_ns // _NS_PER_CREDIT
        rate, balance = parameters.rate_limit, parameters.balance_limit
        self.rate_limit_ns = min(rules.rate_limit_ns, self.slice_ns) if rate is None else rate
        self.balance_limit_ns = rules.balance_limit_ns if balance is None else balance
        self.migration_delay_ns = parameters.migration_delay
        phase = parameters.accounting_phase
        self.accounting_phase_ns = self.slice_ns // 2 if phase is None else phase

    def attach(self, host: HostView) -> None:
        """Give every vCPU a queue and every domain an account; credit 0, priority UNDER."""
        super().attach(host)
        pcpus = host.pcpus
        self._queues: list[list[CreditRecord]] = [[] for _ in range(pcpus)]
        self._current: list[CreditRecord | None] = [None] * pcpus
        self._needs_sort = [False] * pcpus
        self._last_scan_ns = [-self.balance_limit_ns - 1] * pcpus
        self._last_tickled = pcpus - 1
        self._ticks = 0
        self._accounting = Accounting(self.rules, self.credits_per_slice)
        accounts: dict[int, Account] = {}
        for vcpu, home in zip(host.vcpus, home_pcpus(host.vcpus, pcpus), strict=True):
            domain = vcpu.domain
            cap_credits = -int(-domain.cap * self.credits_per_slice // 100)
            account = accounts.setdefault(id(domain), Account(domain.weight, cap_credits))
            vcpu.sched = CreditRecord(vcpu, account, home)

    def timers(self) -> Sequence[PeriodicTimer]:
        """Tick on every pCPU and, from 4.0, account by a timer."""
        timers = [
            PeriodicTimer(self.tick_ns, self.tick_ns, EventKind.TICK, pcpu, partial(self._tick, pcpu))
            for pcpu in range(self.host.pcpus)
        ]
        if not self.rules.accounting_in_tick:
            timers.append(
                PeriodicTimer(self.slice_ns, self.accounting_phase_ns, EventKind.ACCOUNTING, 0, self._account)
            )
        return timers

    def priority(self, vcpu: Vcpu) -> str:
        """BOOST, UNDER or OVER."""
        return NAMES[vcpu.sched.priority]

    def wake(self, vcpu: Vcpu, now_ns: int) -> Iterable[int]:
        """Boost if UNDER, queue, tickle; a parked vCPU stays where it is."""
        record: CreditRecord = vcpu.sched
        if record.parked:
            return ()
        return self._enqueue_new(record, now_ns, may_boost=True)

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Debit what it ran."""
        record: CreditRecord = vcpu.sched
        self._debit(record)
        record.kicked_away = False
        record.stopped_ns = now_ns
        self._current[record.home] = None

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Remember the time for the next debit."""
        vcpu.sched.uncharged_ns += ran_ns

    def choose(self, pcpu: int, now_ns: int) -> Decision:
        """Head of the queue, or something more urgent from a peer."""
        current = self._current[pcpu]
        if current is not None:
            self._debit(current)
            ran_ns = now_ns - current.running_since_ns
            if ran_ns < self.rate_limit_ns and not current.parked:
                self.count("rate_limited")
                left_ns = self.rate_limit_ns - (ran_ns if self.rules.rate_limit_remainder else 0)
                return Decision(current.vcpu, left_ns)
            self._put_back(pcpu, current, now_ns)
        queue = self._queues[pcpu]
        head_priority = queue[0].priority if queue else IDLE_PRIORITY
        chosen = self._steal(pcpu, head_priority, now_ns) if head_priority <= OVER else None
        if chosen is None:
            if not queue:
                self._current[pcpu] = None
                return IDLE
            chosen = queue.pop(0)
            chosen.queued = False
        if chosen is not current:
            chosen.running_since_ns = now_ns
            if current is not None:
                self.count("preemptions")
        self._current[pcpu] = chosen
        return Decision(chosen.vcpu, self.slice_ns)

    def _put_back(self, pcpu: int, record: CreditRecord, now_ns: int) -> None:
        """Queue the vCPU that has just run: here, or on the idle pCPU it was kicked away to."""
        self._current[pcpu] = None
        record.stopped_ns = now_ns
        if record.parked:
            return
        if record.kicked_away:
            record.kicked_away = False
            idle = [p for p in self._idle() if p in record.vcpu.affinity and p != pcpu]
            if idle:
                record.home = idle[0]
                self.count("kicks")
                for target in self._enqueue_new(record, now_ns, may_boost=self.rules.boosts_migrated):
                    self.host.tickle(target)
                return
        self._insert(record)

    def _enqueue_new(self, record: CreditRecord, now_ns: int, may_boost: bool) -> list[int]:
        if may_boost and self.boost and record.priority == UNDER:
            self._set_priority(record, BOOST, now_ns)
            self.count("boosts")
        self._insert(record)
        return self._tickle(record)

    def _insert(self, record: CreditRecord) -> None:
        """Behind all entries that are at least as urgent, up to the first that is less."""
        queue = self._queues[record.home]
        place = next((i for i, r in enumerate(queue) if record.priority > r.priority), len(queue))
        queue.insert(place, record)
        record.queued = True

    def _idle(self) -> list[int]:
        return [p for p, r in enumerate(self._current) if r is None and not self._queues[p]]

    def _tickle(self, record: CreditRecord) -> list[int]:
        """Return the pCPUs that must choose again because ``record`` is new in its queue."""
        home = record.home
        running = self._current[home]
        if running is None:
            return [home]
        preempts = record.priority > running.priority
        idle = self._idle()
        suitable = [p for p in idle if p in record.vcpu.affinity]
        rule = self.rules.tickle
        if rule == "all_idlers":
            return [home, *suitable] if preempts else suitable
        if rule == "one_idler":
            return [home] * preempts + self._next_idler(suitable)
        if suitable:
            return self._next_idler(suitable)
        if preempts:
            running.kicked_away = any(p in running.vcpu.affinity for p in idle)
            return [home]
        return []

    def _next_idler(self, suitable: list[int]) -> list[int]:
        if not suitable:
            return []
        last = self._last_tickled
        self._last_tickled = next((p for p in suitable if p > last), suitable[0])
        return [self._last_tickled]

    def _steal(self, pcpu: int, above: int, now_ns: int) -> CreditRecord | None:
        """Take the first vCPU of a busy peer's queue that is more urgent than ``above`` and may run here."""
        if now_ns - self._last_scan_ns[pcpu] <= self.balance_limit_ns and self.balance_limit_ns:
            return None
        self._last_scan_ns[pcpu] = now_ns
        pcpus = self.host.pcpus
        for peer in ((pcpu + step) % pcpus for step in range(1, pcpus)):
            if self._current[peer] is None:
                continue
            for record in self._queues[peer]:
                if record.priority <= above:
                    break
                hot = now_ns - record.stopped_ns < self.migration_delay_ns
                if pcpu in record.vcpu.affinity and not hot:
                    self._queues[peer].remove(record)
                    record.queued = False
                    record.home = pcpu
                    self.count("steals")
                    return record
        return None

    def _tick(self, pcpu: int, now_ns: int) -> Iterable[int]:
        record = self._current[pcpu]
        if record is not None:
            if record.priority == BOOST:
                self._set_priority(record, UNDER, now_ns)
            if self.rules.exact_debit:
                self._debit(record)
            else:
                record.credit -= self.tick_ns // _NS_PER_CREDIT
            if not record.active:
                self._accounting.activate(record)
        again: Iterable[int] = ()
        if pcpu == 0:
            self._ticks += 1
            if self.rules.accounting_in_tick and self._ticks % _TICKS_PER_SLICE == 0:
                again = self._account(now_ns)
        if self._needs_sort[pcpu]:
            self._needs_sort[pcpu] = False
            self._queues[pcpu].sort(key=lambda r: r.priority < UNDER)
        return again

    def _debit(self, record: CreditRecord) -> None:
        """Turn time run into credits paid; what is less than a credit waits for the next time."""
        if not self.rules.exact_debit:
            return
        half = 0 if self.rules.carries_residue else _NS_PER_CREDIT // 2
        if record.uncharged_ns > 0:
            paid = (record.uncharged_ns + half) // _NS_PER_CREDIT
            record.credit -= paid
            record.uncharged_ns -= paid * _NS_PER_CREDIT

    def _account(self, now_ns: int) -> Iterable[int]:
        """Hand out credits, set priorities, park and unpark; returns the pCPUs that must choose again."""
        accounting = self._accounting
        balance = 0
        again: list[int] = []
        for allotment in accounting.allot(self.host.pcpus):
            for record in list(allotment.account.active):
                record.credit += allotment.credits_per_vcpu
                if record.credit < 0:
                    self._set_priority(record, OVER, now_ns)
                    if allotment.park_below is not None and record.credit < allotment.park_below:
                        again += self._park(record)
                    record.credit = max(record.credit, -self.credits_per_slice)
                else:
                    self._set_priority(record, UNDER, now_ns)
                    again += self._unpark(record, now_ns)
                    if record.credit > self.credits_per_slice:
                        accounting.deactivate(record)
                balance += record.credit
        accounting.balance = balance
        self._needs_sort = [True] * self.host.pcpus
        return again

    def _park(self, record: CreditRecord) -> list[int]:
        if record.parked:
            return []
        record.parked = True
        self.count("parks")
        if record.queued:
            self._queues[record.home].remove(record)
            record.queued = False
        return [record.home] if self._current[record.home] is record else []

    def _unpark(self, record: CreditRecord, now_ns: int) -> list[int]:
        if not record.parked:
            return []
        record.parked = False
        self.count("unparks")
        if record.vcpu.state is VcpuState.BLOCKED:
            return []
        return self._enqueue_new(record, now_ns, may_boost=self.rules.boosts_unparked)

    def _set_priority(self, record: CreditRecord, priority: int, now_ns: int) -> None:
        if record.priority != priority:
            record.priority = priority
            if self.host.observer is not None:
                self.host.observer.on_priority(record.vcpu, now_ns, NAMES[priority])
