"""Xen's RTDS: global earliest deadline first with deferrable servers.

Rules (Xen ``sched_rt.c``, since 4.7 driven by events):

* Every vCPU has a budget in every period (10 ms and 4 ms by default).  The budget is used up only while
  it runs, kept while it idles inside the period, discarded and refilled at its end, which is also the
  deadline.
* One run queue: the earliest deadline runs first, on any pCPU of its affinity; a vCPU that wakes, or is refilled
  without budget, takes an idle pCPU, else it pre-empts the latest deadline.
* At the end of a period all vCPUs that are due are refilled, and then one that runs goes on, unless the first that
  waits is more urgent (``repl_timer_handler``).  When a pCPU chooses, one that waits and is as urgent goes first.
* Without budget a vCPU waits for its next period.  With ``extratime`` it goes on instead, one priority
  level lower, with its budget refilled; all at a higher level go first.  The level returns to 0 at the
  period's end.
* A vCPU that wakes after its deadline starts a period whose end is the next multiple of its period.

Left out: the scheduler's own quantum and cache placement.  There is no admission control, as in Xen: a set of
vCPUs that asks for too much misses deadlines.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table
from vftsim.platform.cpu import scheduler, shared_queue
from vftsim.platform.cpu.build import domains_of
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.host import request_reschedule
from vftsim.platform.cpu.notes import PRIORITY, note
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, PlacedDomain, SchedulerSpec
from vftsim.platform.cpu.records import BLOCKED, Host, Vcpu, domains, hosts, pcpus, vcpus
from vftsim.platform.cpu.schedulers import _deadlines
from vftsim.platform.cpu.schedulers._deadlines import Deadline, begin_period, deadlines, plan, share_one_deadline_queue
from vftsim.platform.cpu.shared_queue import waiting_list
from vftsim.spec.units import DURATION, MS

_DEFAULT_PERIOD_NS = 10 * MS
_DEFAULT_BUDGET_NS = 4 * MS
_SHORTEST_NS = 10_000
rtds = share_one_deadline_queue(scheduler.scheduler.kind("rtds"))


class RtdsHost(Record):
    """A host's counter: budgets that were used up."""

    depletions: int


class RtdsVcpu(Record):
    """A vCPU's server; ``level`` 0 is the highest.

    ``is_due``: its period has just ended, and ``was_depleted``: it had no budget.
    """

    period_ns: int
    budget_ns: int
    has_extratime: bool
    level: int
    is_due: bool
    was_depleted: bool


rtds_hosts = Table("rtds_hosts", RtdsHost, beside=hosts)
rtds_vcpus = Table("rtds_vcpus", RtdsVcpu, beside=vcpus)


@SCHEDULERS.register
class Rtds(SchedulerSpec):
    """Xen's RTDS; period, budget and extratime are the domains'."""

    kind: Literal["rtds"] = "rtds"
    reads: ClassVar[frozenset[str] | None] = frozenset({"budget", "extratime", "period"})

    def most_pcpus(self, domain: DomainScheduling, vcpus: int) -> float:
        """Return the budgets of its vCPUs over their period, if they get no extra time."""
        return vcpus * _share(domain) if domain.extratime is False else math.inf

    def overbooked(self, pcpus: int, domains: Sequence[PlacedDomain]) -> str:
        """Say that budgets that were given exceed the host: Xen admits any."""
        claimed = sum(each.vcpus * _share(each.scheduling) for each in domains)
        if claimed <= pcpus * (1 + 1e-9) or all(each.scheduling.budget is None for each in domains):
            return ""
        return f"rtds budgets of {100 * claimed:.4g} % of a pCPU exceed the host's {100 * pcpus} %: some are not kept"

    def contradiction(self, domain: DomainScheduling) -> str:
        """Refuse a budget of next to nothing, or of more than the period."""
        budget_ns, period_ns = domain.budget or _DEFAULT_BUDGET_NS, domain.period or _DEFAULT_PERIOD_NS
        if _SHORTEST_NS <= budget_ns <= period_ns:
            return ""
        return (
            f"rtds needs 10 us <= budget <= period, got a budget of {DURATION.format(budget_ns)} and a period of "
            f"{DURATION.format(period_ns)}"
        )

    def install(self, engine: Engine, host: int) -> None:
        """Take over the vCPUs' periods and budgets."""
        for row in domains_of(engine, host):
            domain, entitlement = engine.rows(domains)[row], engine.rows(entitlements)[row]
            period_ns = int(entitlement.period_ns) or _DEFAULT_PERIOD_NS
            budget_ns = int(entitlement.budget_ns) or _DEFAULT_BUDGET_NS
            for vcpu in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus):
                rtds_vcpu = engine.rows(rtds_vcpus)[vcpu]
                rtds_vcpu.period_ns, rtds_vcpu.budget_ns = period_ns, budget_ns
                rtds_vcpu.has_extratime = entitlement.extratime != 0

    def counters(self, engine: Engine, host: int) -> dict[str, int]:
        return {"depletions": int(engine.rows(rtds_hosts)[host].depletions)}

    def priority_name(self, priority: int) -> str:
        return f"level {priority}"


def _share(domain: DomainScheduling) -> float:
    """Return a vCPU's budget over its period."""
    return (domain.budget or _DEFAULT_BUDGET_NS) / (domain.period or _DEFAULT_PERIOD_NS)


@rtds.implements(shared_queue.urgency)
def urgency_of(sim: Sim, host: Host, vcpu: Vcpu) -> tuple[int, int]:
    """Level, then deadline."""
    return rtds_vcpus(sim)[vcpu.row].level, deadlines(sim)[vcpu.row].deadline_ns


@rtds.implements(shared_queue.eligible)
def is_eligible(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    return deadlines(sim)[vcpu.row].left_ns > 0


@rtds.implements(shared_queue.longest_ns)
def rest_of_budget(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    return deadlines(sim)[vcpu.row].left_ns


@rtds.implements(scheduler.priority)
def priority(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    return rtds_vcpus(sim)[vcpu.row].level


@rtds.implements(shared_queue.on_wake)
def wake_up(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Start a new period if the last one is over."""
    if sim.now_ns >= deadlines(sim)[vcpu.row].deadline_ns:
        begin_period(sim, host, vcpu)
    elif deadlines(sim)[vcpu.row].alarm == 0:
        plan(sim, vcpu)


@rtds.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int, period: Deadline = BESIDE) -> None:
    """Use up budget; with extra time go on one level lower."""
    period.left_ns -= ran_ns
    if period.left_ns > 0:
        return
    rtds_hosts(sim)[host.row].depletions += 1
    period.left_ns = 0
    rtds_vcpu = rtds_vcpus(sim)[vcpu.row]
    if rtds_vcpu.has_extratime:
        set_level(sim, host, vcpu, rtds_vcpu.level + 1)
        period.left_ns = rtds_vcpu.budget_ns


@rtds.implements(_deadlines.refill)
def refill(sim: Sim, host: Host, vcpu: Vcpu, period: Deadline = BESIDE, rtds_vcpu: RtdsVcpu = BESIDE) -> None:
    """Give the full budget until the next multiple of the period."""
    period.deadline_ns += ((sim.now_ns - period.deadline_ns) // rtds_vcpu.period_ns + 1) * rtds_vcpu.period_ns
    period.left_ns = rtds_vcpu.budget_ns
    set_level(sim, host, vcpu, 0)


@rtds.implements(_deadlines.end_period)
def refill_all(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Refill all vCPUs that are due, and then look where others are to run."""
    for row in range(host.first_vcpu, host.first_vcpu + host.vcpus):
        rtds_vcpu = rtds_vcpus(sim)[row]
        period = deadlines(sim)[row]
        rtds_vcpu.is_due = vcpus(sim)[row].state != BLOCKED and period.deadline_ns <= sim.now_ns
        rtds_vcpu.was_depleted = period.left_ns == 0
        if rtds_vcpu.is_due:
            begin_period(sim, host, vcpus(sim)[row])
    for row in range(host.first_vcpu, host.first_vcpu + host.vcpus):
        if rtds_vcpus(sim)[row].is_due:
            tickle_after_refill(sim, host, vcpus(sim)[row])


def tickle_after_refill(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Let the first that waits pre-empt if it is more urgent than one that runs; let one that had no budget run."""
    candidate = vcpu
    if shared_queue.queue_vcpus(sim)[vcpu.row].current_on != 0:
        first = first_waiting(sim, host)
        if first == 0 or not shared_queue.is_more_urgent(sim, host, vcpus(sim)[first], vcpu):
            return
        candidate = vcpus(sim)[first]
    elif not rtds_vcpus(sim)[vcpu.row].was_depleted:
        return
    pcpu = shared_queue.find_pcpu(sim, host, candidate)
    if pcpu != 0:
        request_reschedule(sim, pcpus(sim)[pcpu])


def first_waiting(sim: Sim, host: Host) -> int:
    """Return the most urgent vCPU that waits with a budget, wherever it may run; 0 for none."""
    best = 0
    for vcpu in vcpus.listed(sim, waiting_list, shared_queue.queue_hosts(sim)[host.row].waiting):
        is_first = best == 0 or shared_queue.is_more_urgent(sim, host, vcpu, vcpus(sim)[best])
        if deadlines(sim)[vcpu.row].left_ns > 0 and is_first:
            best = vcpu.row
    return best


def set_level(sim: Sim, host: Host, vcpu: Vcpu, level: int, rtds_vcpu: RtdsVcpu = BESIDE) -> None:
    """Move a vCPU to another level."""
    if rtds_vcpu.level != level:
        rtds_vcpu.level = level
        if host.observed:
            note(sim, PRIORITY, 0, vcpu.row, level)
