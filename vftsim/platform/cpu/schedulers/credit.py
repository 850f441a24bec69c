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
  of a busy peer, in the order of pCPU numbers from its own, from 4.9 from the one robbed last.
* A wake pre-empts a running vCPU of lower priority, and wakes idle pCPUs by the version's rule; from
  4.2 a vCPU that has run for less than the rate limit (1 ms) goes on: for a whole limit, from 4.8 for the
  rest of it, or for 100 ns if it has run for less than that.
* From 4.3 a tick moves a running vCPU behind which others wait to an idle pCPU, if there is one.
* A pCPU that was asked to choose does so once at an instant, after its timers; until then the vCPU that
  has blocked there still counts as running.

What changed when: :mod:`._credit_rules`.

Assumption: all ticks coincide, and the accounting timer of 4.0 and later goes off half a period after
them (``accounting_phase``; in Xen the phase is whatever it was at boot, and drifts).
All wake-ups but those that end a move come from pCPU 0.  A guest has booted before the run: its first wake,
which Xen does not boost from 4.7, lies before it.
Left out: yield, soft affinity, NUMA and hyperthread topology, failed try-locks while stealing.
"""

import math
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from vftsim.kernel import BESIDE, Engine, EventKind, Sim, at, event, timer
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.host import request_reschedule, sync_running
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.records import BLOCKED, Host, Pcpu, Vcpu, pcpus, vcpus
from vftsim.platform.cpu.schedulers._credit_accounting import account_for, activate, open_account
from vftsim.platform.cpu.schedulers._credit_queue import (
    better_processor,
    debit,
    insert,
    move,
    partition,
    set_priority,
    wake_up,
)
from vftsim.platform.cpu.schedulers._credit_records import (
    BOOST,
    IDLE_PRIORITY,
    LEAST_REST_NS,
    LONG_AGO_NS,
    NAMES,
    NS_PER_CREDIT,
    OVER,
    TICKLES,
    TICKS_PER_SLICE,
    UNDER,
    CreditHost,
    CreditPcpu,
    CreditVcpu,
    credit_hosts,
    credit_pcpus,
    credit_vcpus,
    queue_list,
)
from vftsim.platform.cpu.schedulers._credit_rules import RULES, CreditRules, Version
from vftsim.spec.units import DURATION, MS, US, DurationNs

_COUNTERS = ("boosts", "preemptions", "steals", "parks", "unparks", "rate_limited", "kicks")
credit = scheduler.scheduler.kind("credit")


@SCHEDULERS.register
class Credit(SchedulerSpec):
    """Xen's credit scheduler."""

    products: ClassVar[tuple[str, ...]] = ("xen",)

    kind: Literal["credit"] = "credit"
    reads: ClassVar[frozenset[str] | None] = frozenset({"cap", "weight"})
    version: Version = Field(
        "4.18",
        description="Release of Xen whose rules hold (the first release of each rule set). Default: current.",
    )
    slice: DurationNs = Field(
        30 * MS,
        ge=MS,
        le=1000 * MS,
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
        le=100 * MS,
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
        if self.slice != 30 * MS and not rules.variable_slice:
            raise ValueError(f"Xen {self.version} has a fixed slice of 30 ms; use version 4.2 or later")
        if self.accounting_phase is not None:
            if rules.accounting_in_tick:
                raise ValueError(f"Xen {self.version} accounts in its tick; use version 4.0 or later")
            if self.accounting_phase > self.slice:
                raise ValueError(f"accounting_phase must be at most {DURATION.format(self.slice)} (the slice)")
        if self.rate_limit:
            if not rules.rate_limit_ns:
                raise ValueError(f"Xen {self.version} has no rate limit; use version 4.2 or later")
            highest_ns = min(500 * MS, self.slice)
            if not MS // 10 <= self.rate_limit <= highest_ns:
                raise ValueError(f"rate_limit must be 0 or 100 us to {DURATION.format(highest_ns)}")
        return self

    def most_pcpus(self, domain: DomainScheduling, vcpus: int) -> float:
        return domain.cap / 100.0 or math.inf

    def install(self, engine: Engine, host: int) -> None:
        """Write the parameters and the release's rules into the host's record."""
        credit_host, rules = engine.rows(credit_hosts)[host], RULES[self.version]
        # Those that both have by one name; a limit that the model gives replaces the release's below.
        for name in CreditRules.__annotations__.keys() & CreditHost.__annotations__.keys():
            setattr(credit_host, name, getattr(rules, name))
        credit_host.slice_ns = self.slice
        # In whole microseconds (tick_period_us): three ticks of a slice of 10 ms are 1 us short of it.
        credit_host.tick_ns = self.slice // US // (TICKS_PER_SLICE if self.slice >= TICKS_PER_SLICE * MS else 1) * US
        credit_host.credits_per_slice = self.slice // NS_PER_CREDIT
        credit_host.rate_limit_ns = min(rules.rate_limit_ns, self.slice) if self.rate_limit is None else self.rate_limit
        credit_host.balance_limit_ns = rules.balance_limit_ns if self.balance_limit is None else self.balance_limit
        credit_host.migration_delay_ns = self.migration_delay
        credit_host.accounting_phase_ns = self.slice // 2 if self.accounting_phase is None else self.accounting_phase
        credit_host.boosts_wakes = self.boost
        credit_host.tickle_rule = TICKLES[rules.tickle]

    def counters(self, engine: Engine, host: int) -> dict[str, int]:
        """Return boosts, preemptions, steals, parks, unparks, rate-limited choices and kicks."""
        credit_host = engine.rows(credit_hosts)[host]
        return {name: int(getattr(credit_host, name)) for name in _COUNTERS}

    def priority_name(self, priority: int) -> str:
        return NAMES.get(priority, "")


@credit.implements(scheduler.attach)
def attach(sim: Sim, host: Host, rules: CreditHost = BESIDE) -> None:
    """Give every vCPU a queue and every domain an account; credit 0, priority UNDER; start ticks and accounting."""
    for vcpu in vcpus.span(sim, host.first_vcpu, host.vcpus):
        credit_vcpu = credit_vcpus(sim)[vcpu.row]
        credit_vcpu.processor = scheduler.starting_pcpu(sim, host, vcpu)
        credit_vcpu.priority = UNDER
        credit_vcpu.stopped_ns = LONG_AGO_NS
        open_account(sim, host, vcpu.domain)
    rules.last_robbed = host.first_pcpu
    for pcpu in pcpus.span(sim, host.first_pcpu, host.pcpus):
        # Before the start: the first scan is never too early.
        credit_pcpus(sim)[pcpu.row].last_scan_ns = -rules.balance_limit_ns - 1
        credit_pcpus(sim)[pcpu.row].is_idler = True
        credit_pcpus(sim)[pcpu.row].last_tickled = host.first_pcpu
        plan_idle_slice(sim, host, pcpu)
        at(sim, sim.now_ns + rules.tick_ns, EventKind.TICK, pcpu.number, on_tick, pcpu.row)
    if not rules.accounting_in_tick:
        at(sim, sim.now_ns + rules.accounting_phase_ns, EventKind.ACCOUNTING, 0, on_accounting, host.row)


@credit.implements(scheduler.priority)
def priority(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return BOOST, UNDER or OVER."""
    return credit_vcpus(sim)[vcpu.row].priority


@credit.implements(scheduler.wake)
def wake(sim: Sim, host: Host, vcpu: Vcpu, credit_vcpu: CreditVcpu = BESIDE) -> None:
    """Boost if UNDER, queue, tickle; a parked vCPU stays where it is, and one that its pCPU has not left yet, on it."""
    if not credit_vcpu.parked and credit_pcpus(sim)[credit_vcpu.processor].current != vcpu.row:
        wake_up(sim, host, vcpu, True, host.first_pcpu)


@credit.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int) -> None:
    """Remember the time for the next debit."""
    credit_vcpus(sim)[vcpu.row].uncharged_ns += ran_ns


@credit.implements(scheduler.choose)
def choose(sim: Sim, host: Host, pcpu: Pcpu, rules: CreditHost = BESIDE, credit_pcpu: CreditPcpu = BESIDE) -> int:
    """Head of the queue, or something more urgent from a peer."""
    before = credit_pcpu.current
    if before != 0:
        # Debited and queued first: it competes with those that wait.
        limit_ns = leave(sim, host, vcpus(sim)[before])
        if limit_ns > 0:
            # Rate-limited: it was not queued and stays the current one.
            pcpu.slice_ns = limit_ns
            return before
    chosen = most_urgent(sim, host, pcpu)
    # The rate limit counts from the first of consecutive slices.
    if chosen not in (before, 0):
        credit_vcpus(sim)[chosen].running_since_ns = sim.now_ns
        if before != 0 and vcpus(sim)[before].state != BLOCKED:
            rules.preemptions += 1
    credit_pcpu.current = chosen
    credit_pcpu.is_idler = chosen == 0
    credit_pcpu.idle_slice = 0
    if chosen == 0:
        plan_idle_slice(sim, host, pcpu)
    pcpu.slice_ns = rules.slice_ns
    # After ``current`` is set: the move wakes pCPUs by what runs where now.
    if before != 0 and credit_vcpus(sim)[before].moves:
        move(sim, host, vcpus(sim)[before], pcpu.row)
    return chosen


def leave(sim: Sim, host: Host, vcpu: Vcpu, rules: CreditHost = BESIDE, credit_vcpu: CreditVcpu = BESIDE) -> int:
    """Debit the vCPU that ran and queue it if it can run on; return what is left of its rate limit if it must go on."""
    debit(rules, credit_vcpu)
    credit_vcpu.stopped_ns = sim.now_ns
    # Not queued here: accounting, choose() or its next wake sees to it.
    if credit_vcpu.parked or credit_vcpu.moves or vcpu.state == BLOCKED:
        return 0
    ran_ns = sim.now_ns - credit_vcpu.running_since_ns
    if ran_ns < rules.rate_limit_ns:
        rules.rate_limited += 1
        if not rules.rate_limit_remainder:
            return rules.rate_limit_ns
        # Xen's CSCHED_MIN_TIMER: 100, meant in microseconds, used in nanoseconds.
        return rules.rate_limit_ns - ran_ns if ran_ns >= LEAST_REST_NS else LEAST_REST_NS
    insert(sim, vcpu)
    return 0


def plan_idle_slice(sim: Sim, host: Host, pcpu: Pcpu, rules: CreditHost = BESIDE) -> None:
    """Let an idle pCPU look for work again after a slice, in the releases in which idling has one."""
    if rules.idle_has_slice:
        end_ns = sim.now_ns + rules.slice_ns
        credit_pcpus(sim)[pcpu.row].idle_slice = at(sim, end_ns, EventKind.SLICE, pcpu.number, on_idle_slice, pcpu.row)


on_idle_slice = timer(credit_pcpus, "idle_slice")(request_reschedule)


def most_urgent(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Take what runs next out of the queue, or of a peer's; 0 if there is nothing."""
    queue = credit_pcpus(sim)[pcpu.row].queue
    head = credit_vcpus(sim)[queue.first].priority if queue.length > 0 else IDLE_PRIORITY
    if head <= OVER:
        stolen = steal(sim, host, pcpu, head)
        if stolen != 0:
            return stolen
    chosen = queue_list.pop(sim, queue)
    if chosen != 0:
        credit_vcpus(sim)[chosen].queued = False
    return chosen


def steal(sim: Sim, host: Host, pcpu: Pcpu, above: int, rules: CreditHost = BESIDE) -> int:
    """Take the first vCPU of a busy peer's queue that is more urgent than ``above`` and may run here."""
    credit_pcpu = credit_pcpus(sim)[pcpu.row]
    if rules.balance_limit_ns != 0 and sim.now_ns - credit_pcpu.last_scan_ns <= rules.balance_limit_ns:
        return 0
    # A scan counts whether it finds anything or not.
    credit_pcpu.last_scan_ns = sim.now_ns
    start = pcpu.number
    if rules.steals_in_turn:
        start = pcpus(sim)[rules.last_robbed].number
    for step in range(1, host.pcpus + 1):
        peer = host.first_pcpu + (start + step) % host.pcpus
        # Whatever an idle peer has in its queue it takes itself.
        if peer == pcpu.row or credit_pcpus(sim)[peer].current == 0:
            continue
        row = rob(sim, pcpu, peer, above)
        if row != 0:
            rules.last_robbed = peer
            rules.steals += 1
            return row
    return 0


def rob(sim: Sim, pcpu: Pcpu, peer: int, above: int) -> int:
    """Take the first vCPU of a peer's queue that is more urgent than ``above`` and may run on ``pcpu``; 0 for none."""
    delay_ns = credit_hosts(sim)[pcpu.host].migration_delay_ns
    queue = credit_pcpus(sim)[peer].queue
    row = queue.first
    # As in Xen the search ends at the first that is not above: a queue out of order is sorted at its pCPU's next tick.
    while row != 0 and credit_vcpus(sim)[row].priority > above:
        waiting = credit_vcpus(sim)[row]
        is_hot = sim.now_ns - waiting.stopped_ns < delay_ns
        if not is_hot and scheduler.may_run(sim, vcpus(sim)[row], pcpu):
            queue_list.remove(sim, queue, row)
            waiting.queued = False
            waiting.processor = pcpu.row
            return row
        row = waiting.next_queued
    return 0


@event
def on_tick(sim: Sim, pcpu: Pcpu, host: Host = BESIDE) -> None:
    """Tick on one pCPU: debit, end a boost, account in the releases that do so here, sort."""
    rules = credit_hosts(sim)[host.row]
    # Charged first: the debit below is for what has run by now.
    sync_running(sim, host)
    if credit_pcpus(sim)[pcpu.row].current != 0:
        tick_running(sim, host, vcpus(sim)[credit_pcpus(sim)[pcpu.row].current])
    if pcpu.number == 0:
        rules.ticks += 1
        if rules.accounting_in_tick and rules.ticks % TICKS_PER_SLICE == 0:
            account_for(sim, host)
    # After accounting, which puts queues out of order; ticks of the other pCPUs follow at this instant.
    if credit_pcpus(sim)[pcpu.row].needs_sort:
        partition(sim, pcpu.row)
    at(sim, sim.now_ns + rules.tick_ns, EventKind.TICK, pcpu.number, on_tick, pcpu.row)


def tick_running(sim: Sim, host: Host, vcpu: Vcpu, rules: CreditHost = BESIDE) -> None:
    """Take note that a tick has found a vCPU running: it loses its boost, pays, and earns from now on."""
    credit_vcpu = credit_vcpus(sim)[vcpu.row]
    if credit_vcpu.priority == BOOST:
        set_priority(sim, host, vcpu, UNDER)
    if rules.exact_debit:
        debit(rules, credit_vcpu)
    else:
        credit_vcpu.credit -= rules.tick_ns // NS_PER_CREDIT
    if not credit_vcpu.active:
        activate(sim, host, vcpu)
    elif rules.tick_moves_running and better_processor(sim, host, vcpu) != credit_vcpu.processor:
        credit_vcpu.moves = True
        request_reschedule(sim, pcpus(sim)[credit_vcpu.processor])


@event
def on_accounting(sim: Sim, host: Host) -> None:
    """Account, in the releases that have a timer for it."""
    # Charged before credits are handed out, although debits wait for the next tick or choice.
    sync_running(sim, host)
    account_for(sim, host)
    at(sim, sim.now_ns + credit_hosts(sim)[host.row].slice_ns, EventKind.ACCOUNTING, 0, on_accounting, host.row)
