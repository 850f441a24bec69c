"""Xen's credit2 scheduler, as in Xen 4.18.

Rules (Xen ``xen/common/sched/credit2.c``; its functions in brackets):

* One run queue for the pCPUs of a socket, in order of credit.  A running vCPU of the highest weight on
  the host burns one credit a nanosecond, others ``highest weight / weight`` (t2c_update).
* A pCPU goes on with its vCPU for the rate limit (1 ms), and then until one with *more* credit waits that may
  run there; from elsewhere it must be ahead by 0.5 ms, and gets 50 us when it is put there.  One for which another
  pCPU has been asked is left to that (runq_candidate, csched2_schedule).
* A slice lasts until the credit has sunk to that of the first one waiting, if that is above 0, else to 0; at most
  10 ms, at least 0.5 ms and what is left of the rate limit.  It is worked out before the vCPU that leaves
  has joined the queue (csched2_runtime, csched2_context_saved).
* When neither the one chosen nor the first that still waits has any credit (<= 0), everyone gets 10 ms, twice that if
  the chosen one has sunk to the floor of -10 ms, and nobody keeps more than 10.5 ms (reset_credit).
* No boost.  For a vCPU that joins the queue an idle pCPU is asked, from its own upwards; else its own, if it has more
  credit than the one there and that has been on for 0.95 ms; else the one over which its lead is greatest
  (runq_tickle, tickle_score).
* Cap: the domain has cap percent of a 10 ms period as budget, which its vCPUs draw in equal portions of at least
  0.5 ms.  A slice may go past the portion, as it is never shorter than the least one; what is overdrawn is
  missing from the budget later.  What is not used goes back when a vCPU leaves its pCPU.  Who finds nothing
  is parked until there is something.

So shares follow the weights only in the long run and roughly: they are what is left over by slices of up to 10 ms,
resistance and compensation.  ``tests/data/xen_credit2`` holds schedules recorded from the code.

A vCPU that has never run belongs to a pCPU as if it had been there: the allowed one with the fewest such, lowest number
first (Assumption: in Xen it is arbitrary).
Left out: several run queues and the balancing between them (hosts up to 16 pCPUs a socket have one),
soft affinity, hyperthread placement, yield.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Chain, Engine, EventKind, Fifo, Record, Sim, Table, at, event
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.build import domains_of
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.host import request_reschedule, sync, sync_running
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.records import BLOCKED, RUNNABLE, Host, Pcpu, Vcpu, domains, hosts, pcpus, vcpus
from vftsim.platform.rows import fill_row
from vftsim.spec.units import MS, DurationNs, PeriodNs

CREDIT_INIT = 10 * MS
CREDIT_FLOOR = -CREDIT_INIT
CREDIT_MOST = CREDIT_INIT + MS // 2
IDLE_CREDIT = -(1 << 30)
SHORTEST_NS = MS // 2
LONGEST_NS = 10 * MS
TOLERANCE_NS = 50_000
COMPENSATION = 50_000


class Credit2Host(Record):
    """A host's parameters, the highest weight on it, by which all burn, those that wait, and counters.

    ``waiting`` is in order of credit, equals in the order in which they joined.
    """

    rate_limit_ns: int
    resistance: int
    cap_period_ns: int
    highest_weight: int
    has_caps: bool
    waiting: Fifo
    resets: int
    rate_limited: int


class Credit2Pcpu(Record):
    """A pCPU: the vCPU chosen for it, also when that has blocked, until the pCPU chooses again (0: it idles).

    ``tickled``: it has been asked to choose for a vCPU that waits, and has not done so yet.
    """

    current: int
    tickled: bool


class Credit2Domain(Record):
    """A domain's CPU time in a period of its cap; ``budget_ns`` 0: it may use all there is.

    ``left_ns`` is what no vCPU holds, below 0 after an overdraft; ``parked`` are those that found nothing left,
    latest first.
    """

    budget_ns: int
    portion_ns: int
    left_ns: int
    parked: Fifo


class Credit2Vcpu(Record):
    """A vCPU; ``processor`` is the pCPU that it was on last, or starts at, and ``since_ns`` when it was put there.

    ``residue`` is what has been burnt of the next credit, in parts of its weight; ``held_ns`` the part of its
    domain's budget that it has drawn and not used, below 0 if it ran past it.  ``tickled_pcpu`` was asked for it last.
    """

    weight: int
    credit: int
    residue: int
    processor: int
    since_ns: int
    held_ns: int
    parked: bool
    tickled_pcpu: int
    next_waiting: int
    next_parked: int


credit2_hosts = Table("credit2_hosts", Credit2Host, beside=hosts)
credit2_pcpus = Table("credit2_pcpus", Credit2Pcpu, beside=pcpus)
credit2_domains = Table("credit2_domains", Credit2Domain, beside=domains)
credit2_vcpus = Table("credit2_vcpus", Credit2Vcpu, beside=vcpus)
waiting_list = Chain(credit2_vcpus, "next_waiting")
parked_list = Chain(credit2_vcpus, "next_parked")


_COUNTERS = ("resets", "rate_limited")
credit2 = scheduler.scheduler.kind("credit2")


@SCHEDULERS.register
class Credit2(SchedulerSpec):
    """Xen's credit2 scheduler."""

    kind: Literal["credit2"] = "credit2"
    reads: ClassVar[frozenset[str] | None] = frozenset({"cap", "weight"})
    rate_limit: DurationNs = Field(
        MS,
        le=500 * MS,
        description="Least time a vCPU runs before it can be pre-empted (sched_ratelimit_us); 0: off. "
        "Default 1 ms: Xen's.",
    )
    migration_resistance: DurationNs = Field(
        MS // 2,
        description="Credit by which a vCPU from another pCPU must be ahead (sched_credit2_migrate_resist). "
        "Default 0.5 ms: Xen's.",
    )
    cap_period: PeriodNs = Field(
        10 * MS,
        description="Period of the cap's budget (credit2_cap_period_ms). Default 10 ms: Xen's.",
    )

    def most_pcpus(self, domain: DomainScheduling, vcpus: int) -> float:
        return domain.cap / 100.0 or math.inf

    def without_effect(self, domains: Sequence[DomainScheduling]) -> Mapping[str, str]:
        return {} if any(domain.cap for domain in domains) else {"scheduler.cap_period": "no domain has a cap"}

    def install(self, engine: Engine, host: int) -> None:
        """Write the parameters, the initial credits and the capped domains' budgets."""
        credit2_host = fill_row(engine, credit2_hosts, host, self, resistance=self.migration_resistance)
        for row in domains_of(engine, host):
            domain, entitlement = engine.rows(domains)[row], engine.rows(entitlements)[row]
            credit2_host.highest_weight = max(int(credit2_host.highest_weight), int(entitlement.weight))
            for vcpu in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus):
                engine.rows(credit2_vcpus)[vcpu].weight = entitlement.weight
                engine.rows(credit2_vcpus)[vcpu].credit = CREDIT_INIT
            if entitlement.cap > 0:
                credit2_host.has_caps = True
                pool = engine.rows(credit2_domains)[row]
                pool.budget_ns = pool.left_ns = max(round(float(entitlement.cap) * self.cap_period / 100), 1)
                pool.portion_ns = max(int(pool.budget_ns) // int(domain.vcpus), SHORTEST_NS)

    def counters(self, engine: Engine, host: int) -> dict[str, int]:
        """Return resets of the credits and choices that the rate limit decided."""
        credit2_host = engine.rows(credit2_hosts)[host]
        return {name: int(getattr(credit2_host, name)) for name in _COUNTERS}


@credit2.implements(scheduler.attach)
def attach(sim: Sim, host: Host) -> None:
    """Give every vCPU a pCPU to start from; refill the capped domains' budgets, if there are any."""
    for vcpu in vcpus.span(sim, host.first_vcpu, host.vcpus):
        credit2_vcpus(sim)[vcpu.row].processor = scheduler.starting_pcpu(sim, host, vcpu)
    if credit2_hosts(sim)[host.row].has_caps:
        plan_refill(sim, host)


@credit2.implements(scheduler.wake)
def wake(sim: Sim, host: Host, vcpu: Vcpu, credit2_vcpu: Credit2Vcpu = BESIDE) -> None:
    """Queue it, unless it is parked or its pCPU has not chosen since it blocked."""
    if not credit2_vcpu.parked and not is_current(sim, credit2_vcpu, vcpu.row):
        join(sim, host, vcpu)


@credit2.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int, credit2_vcpu: Credit2Vcpu = BESIDE) -> None:
    """Burn credit and budget; what is less than one credit waits."""
    # A run is at most 500 ms (the longest rate limit), a weight below 2**16.
    burnt = ran_ns * credit2_hosts(sim)[host.row].highest_weight + credit2_vcpu.residue
    credit2_vcpu.residue = burnt % credit2_vcpu.weight
    credit2_vcpu.credit = max(credit2_vcpu.credit - burnt // credit2_vcpu.weight, CREDIT_FLOOR)
    if credit2_domains(sim)[vcpu.domain].budget_ns > 0:
        credit2_vcpu.held_ns -= ran_ns


@credit2.implements(scheduler.choose)
def choose(sim: Sim, host: Host, pcpu: Pcpu, credit2_pcpu: Credit2Pcpu = BESIDE) -> int:
    """Go on with the vCPU that runs here, or take one of more credit; hand out credit when there is none."""
    # From here on it may be asked for another.
    credit2_pcpu.tickled = False
    before = credit2_pcpu.current
    if before != 0:
        # Before the choice: one that has used up its portion draws another, or is parked and does not compete.
        grab_budget(sim, host, vcpus(sim)[before])
    chosen = candidate(sim, host, pcpu, before)
    if chosen != 0:
        take(sim, host, pcpu, chosen, before)
        # Worked out before the one that leaves joins the queue below, as in the original.
        pcpu.slice_ns = slice_of(sim, host, vcpus(sim)[chosen], chosen == before)
        if chosen != before:
            credit2_vcpus(sim)[chosen].since_ns = sim.now_ns
    credit2_pcpu.current = chosen
    # Last: its joining asks pCPUs by what runs where now.
    if before not in (0, chosen):
        leave(sim, host, vcpus(sim)[before])
    return chosen


def candidate(sim: Sim, host: Host, pcpu: Pcpu, before: int, rules: Credit2Host = BESIDE) -> int:
    """Return the vCPU that the pCPU runs next, 0 for none."""
    best = 0
    credit = IDLE_CREDIT
    if before != 0 and vcpus(sim)[before].state != BLOCKED and not credit2_vcpus(sim)[before].parked:
        best = before
        credit = credit2_vcpus(sim)[before].credit
        if sim.now_ns - credit2_vcpus(sim)[before].since_ns < rules.rate_limit_ns:
            rules.rate_limited += 1
            return before
    row = rules.waiting.first
    while row != 0 and credit2_vcpus(sim)[row].credit > credit:
        # Read now: one that finds no budget leaves the queue.
        following = credit2_vcpus(sim)[row].next_waiting
        if is_offered(sim, host, pcpu, vcpus(sim)[row], credit) and grab_budget(sim, host, vcpus(sim)[row]):
            return row
        row = following
    return best


def is_offered(sim: Sim, host: Host, pcpu: Pcpu, vcpu: Vcpu, credit: int, credit2_vcpu: Credit2Vcpu = BESIDE) -> bool:
    """Tell whether a waiting vCPU with more than ``credit`` may be put on the pCPU, where one with ``credit`` is."""
    if not scheduler.may_run(sim, vcpu, pcpu):
        return False
    if credit2_vcpu.tickled_pcpu not in (0, pcpu.row) and credit2_pcpus(sim)[credit2_vcpu.tickled_pcpu].tickled:
        return False
    return credit2_vcpu.processor == pcpu.row or credit + credit2_hosts(sim)[host.row].resistance <= credit2_vcpu.credit


def take(sim: Sim, host: Host, pcpu: Pcpu, chosen: int, before: int) -> None:
    """Take the chosen one out of the queue; give it its pCPU, and everybody credit when there is none."""
    queue = credit2_hosts(sim)[host.row].waiting
    credit2_vcpu = credit2_vcpus(sim)[chosen]
    if chosen != before:
        waiting_list.remove(sim, queue, chosen)
    most = credit2_vcpu.credit
    if queue.length > 0:
        most = max(most, credit2_vcpus(sim)[queue.first].credit)
    if most <= 0:
        reset(sim, host, credit2_vcpu.credit)
    credit2_vcpu.tickled_pcpu = 0
    # After a reset: the compensation comes on top of it.
    if credit2_vcpu.processor != pcpu.row:
        credit2_vcpu.processor = pcpu.row
        credit2_vcpu.credit += COMPENSATION


def reset(sim: Sim, host: Host, credit: int) -> None:
    """Give credit to everyone, after what runs has paid; ``credit`` is that of the vCPU that has been chosen."""
    credit2_hosts(sim)[host.row].resets += 1
    added = 2 * CREDIT_INIT if credit == CREDIT_FLOOR else CREDIT_INIT
    for row in range(host.first_vcpu, host.first_vcpu + host.vcpus):
        credit2_vcpu = credit2_vcpus(sim)[row]
        if is_current(sim, credit2_vcpu, row):
            sync(sim, vcpus(sim)[row])
            if credit2_domains(sim)[vcpus(sim)[row].domain].budget_ns > 0 and credit2_vcpu.held_ns <= 0:
                # Charging may have used up its portion: its pCPU chooses again, where it draws another or is parked.
                tickle(sim, credit2_vcpu.processor)
        credit2_vcpu.credit = min(credit2_vcpu.credit + added, CREDIT_MOST)


def slice_of(sim: Sim, host: Host, vcpu: Vcpu, goes_on: bool, rules: Credit2Host = BESIDE) -> int:
    """Return the time until its credit reaches that of the first one waiting, or 0; within its bounds."""
    credit2_vcpu = credit2_vcpus(sim)[vcpu.row]
    limit_ns = rules.rate_limit_ns
    if goes_on:
        limit_ns += credit2_vcpu.since_ns - sim.now_ns
    first = rules.waiting.first
    credit = credit2_vcpu.credit
    if first != 0 and credit2_vcpus(sim)[first].credit > 0:
        credit -= credit2_vcpus(sim)[first].credit
    # Credit is at most 10.5 ms, a weight below 2**16.
    time_ns = max(credit, 0) * credit2_vcpu.weight // rules.highest_weight
    if credit2_domains(sim)[vcpu.domain].budget_ns > 0:
        time_ns = min(time_ns, credit2_vcpu.held_ns)
    return max(min(time_ns, LONGEST_NS), SHORTEST_NS, limit_ns)


def leave(sim: Sim, host: Host, vcpu: Vcpu, credit2_vcpu: Credit2Vcpu = BESIDE) -> None:
    """Give back what is left of the portion of a vCPU that has left its pCPU; queue it if it can run on.

    Afterwards those compete for what it has given back that had found nothing.
    """
    pool = credit2_domains(sim)[vcpu.domain]
    has_returned = pool.budget_ns > 0 and credit2_vcpu.held_ns > 0
    if has_returned:
        pool.left_ns += credit2_vcpu.held_ns
        credit2_vcpu.held_ns = 0
    if vcpu.state == RUNNABLE and not credit2_vcpu.parked:
        join(sim, host, vcpu)
    if has_returned and pool.left_ns > 0:
        unpark(sim, host, vcpu.domain)


def plan_refill(sim: Sim, host: Host) -> None:
    """Plan the end of the caps' period."""
    period_ns = credit2_hosts(sim)[host.row].cap_period_ns
    at(sim, sim.now_ns + period_ns, EventKind.ACCOUNTING, 0, on_refill, host.row)


@event
def on_refill(sim: Sim, host: Host) -> None:
    """Begin a period of the caps: let those go on that theirs has held."""
    # What has run up to now is of the old period.
    sync_running(sim, host)
    row = host.first_vcpu
    while row < host.first_vcpu + host.vcpus:
        domain = vcpus(sim)[row].domain
        refill(sim, host, domain)
        row += domains(sim)[domain].vcpus
    plan_refill(sim, host)


def join(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Queue a vCPU behind its equals in credit, and ask a pCPU to choose for it."""
    queue = credit2_hosts(sim)[host.row].waiting
    credit = credit2_vcpus(sim)[vcpu.row].credit
    before = 0
    current = queue.first
    while current != 0 and credit2_vcpus(sim)[current].credit >= credit:
        before = current
        current = credit2_vcpus(sim)[current].next_waiting
    waiting_list.insert_after(sim, queue, before, vcpu.row)
    runq_tickle(sim, host, vcpu)


def runq_tickle(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Ask an idle pCPU for a vCPU that has joined the queue, else one whose vCPU it may pre-empt (runq_tickle)."""
    row = idle_place(sim, host, vcpu)
    if row == 0:
        row = place_of_another(sim, host, vcpu)
    if row != 0:
        tickle(sim, row)
        # Other pCPUs leave it to this one until that has chosen (is_offered()).
        credit2_vcpus(sim)[vcpu.row].tickled_pcpu = row


def tickle(sim: Sim, row: int) -> None:
    """Have a pCPU choose; until it has, it is asked for nobody else."""
    credit2_pcpus(sim)[row].tickled = True
    request_reschedule(sim, pcpus(sim)[row])


def is_open(sim: Sim, vcpu: Vcpu, row: int) -> bool:
    """Tell whether a vCPU may run on a pCPU that has not been asked for another."""
    return not credit2_pcpus(sim)[row].tickled and scheduler.may_run(sim, vcpu, pcpus(sim)[row])


def idle_place(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the first idle pCPU for a vCPU, from its own upwards and round; 0 if there is none."""
    pcpu_record = pcpus(sim)[credit2_vcpus(sim)[vcpu.row].processor].number
    for step in range(host.pcpus):
        row = host.first_pcpu + (pcpu_record + step) % host.pcpus
        if credit2_pcpus(sim)[row].current == 0 and is_open(sim, vcpu, row):
            return row
    return 0


def place_of_another(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the pCPU whose vCPU this one may pre-empt: its own, else where its lead is greatest; 0 for none.

    No pCPU that is open to it idles.
    """
    processor = credit2_vcpus(sim)[vcpu.row].processor
    if is_open(sim, vcpu, processor) and lead_over(sim, host, vcpu, processor) > 0:
        return processor
    best = 0
    most = 0
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        if row != processor and is_open(sim, vcpu, row):
            lead = lead_over(sim, host, vcpu, row)
            if lead > most:
                best, most = row, lead
    return best


def lead_over(sim: Sim, host: Host, vcpu: Vcpu, row: int, rules: Credit2Host = BESIDE) -> int:
    """Return by how much credit a vCPU may take a pCPU from the one there; -1 if that is within its rate limit.

    From elsewhere it must be ahead by the resistance to migration (tickle_score, is_preemptable).
    """
    running = credit2_pcpus(sim)[row].current
    current = credit2_vcpus(sim)[running]
    if rules.rate_limit_ns > TOLERANCE_NS and sim.now_ns - current.since_ns <= rules.rate_limit_ns - TOLERANCE_NS:
        return -1
    # What runs burns credit up to now before the two are compared.
    sync(sim, vcpus(sim)[running])
    credit2_vcpu = credit2_vcpus(sim)[vcpu.row]
    return credit2_vcpu.credit - current.credit - (0 if credit2_vcpu.processor == row else rules.resistance)


def is_current(sim: Sim, credit2_vcpu: Credit2Vcpu, row: int) -> bool:
    return credit2_pcpus(sim)[credit2_vcpu.processor].current == row


def grab_budget(sim: Sim, host: Host, vcpu: Vcpu, credit2_vcpu: Credit2Vcpu = BESIDE) -> bool:
    """Let a vCPU draw a portion if it holds nothing, after what it has overdrawn; park it if nothing is left.

    (unit_grab_budget, park_unit)
    """
    pool = credit2_domains(sim)[vcpu.domain]
    if pool.budget_ns == 0 or credit2_vcpu.held_ns > 0:
        return True
    # Below 0 after an overdraft, which the pool bears.
    pool.left_ns += credit2_vcpu.held_ns
    credit2_vcpu.held_ns = max(min(pool.portion_ns, pool.left_ns), 0)
    if credit2_vcpu.held_ns > 0:
        pool.left_ns -= credit2_vcpu.held_ns
        return True
    credit2_vcpu.parked = True
    # One that has its pCPU is in no queue: choose() drops it.
    if not is_current(sim, credit2_vcpu, vcpu.row):
        waiting_list.remove(sim, credit2_hosts(sim)[host.row].waiting, vcpu.row)
    parked_list.push_front(sim, pool.parked, vcpu.row)
    return False


def unpark(sim: Sim, host: Host, domain: int) -> None:
    """Let the parked vCPUs of a domain compete again, the latest first (unpark_parked_units)."""
    pool = credit2_domains(sim)[domain]
    while pool.parked.length > 0:
        row = parked_list.pop(sim, pool.parked)
        # Cleared for a blocked vCPU too: its next wake queues it.
        credit2_vcpus(sim)[row].parked = False
        if vcpus(sim)[row].state == RUNNABLE:
            join(sim, host, vcpus(sim)[row])


def refill(sim: Sim, host: Host, domain: int) -> None:
    """Begin a period of a domain's cap: what was overdrawn is missing, what was left is not saved."""
    pool = credit2_domains(sim)[domain]
    pool.left_ns = min(pool.left_ns + pool.budget_ns, pool.budget_ns)
    if pool.left_ns > 0:
        unpark(sim, host, domain)
