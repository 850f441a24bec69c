"""Xen's RTDS: global earliest deadline first with deferrable servers.

Rules (Xen ``sched_rt.c``, since 4.7 driven by events):

* Every vCPU has a budget in every period (10 ms and 4 ms by default).  The budget is used up only while
  it runs, kept while it idles inside the period, discarded and refilled at its end, which is also the
  deadline.
* One run queue: the earliest deadline runs first, on any pCPU of its affinity; a waking or refilled vCPU
  takes an idle pCPU, else it pre-empts the latest deadline.
* Without budget a vCPU waits for its next period.  With ``extratime`` it goes on instead, one priority
  level lower, with its budget refilled; all at a higher level go first.  The level returns to 0 at the
  period's end.
* A vCPU that wakes after its deadline starts a period whose end is the next multiple of its period.

Left out: the scheduler's own quantum and cache placement.  There is no admission control, as in Xen: a set of
vCPUs that asks for too much misses deadlines.
"""

import math
from typing import ClassVar, Literal

from vftsim.kernel import Engine, Kind, Record, Sim, Table, part
from vftsim.platform.cpu import scheduler, shared_queue
from vftsim.platform.cpu.build import domains_of
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.notes import PRIORITY, note
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.records import Host, Vcpu, domains, hosts, vcpus
from vftsim.platform.cpu.schedulers import _deadlines
from vftsim.platform.cpu.schedulers._deadlines import begin_period, deadlines, plan, share_one_deadline_queue
from vftsim.spec.units import DURATION, MS

_DEFAULT_PERIOD_NS = 10 * MS
_DEFAULT_BUDGET_NS = 4 * MS
_SHORTEST_NS = 10_000
rtds = share_one_deadline_queue(scheduler.scheduler.kind("rtds"))


class RtdsHost(Record):
    """A host's counter: budgets that were used up."""

    depletions: int


class RtdsVcpu(Record):
    """A vCPU's server; ``level`` 0 is the highest."""

    period_ns: int
    budget_ns: int
    has_extratime: bool
    level: int


rtds_hosts = Table("rtds_hosts", RtdsHost, beside=hosts)
rtds_vcpus = Table("rtds_vcpus", RtdsVcpu, beside=vcpus)


@SCHEDULERS.register
class Rtds(SchedulerSpec):
    """Xen's RTDS; period, budget and extratime are the domains'."""

    kind: Literal["rtds"] = "rtds"
    part: ClassVar[Kind] = rtds
    reads: ClassVar[frozenset[str] | None] = frozenset({"budget", "extratime", "period"})

    def most_pcpus(self, domain: DomainScheduling, vcpus: int) -> float:
        """Return the budgets of its vCPUs over their period, if they get no extra time."""
        if domain.extratime is not False:
            return math.inf
        return vcpus * (domain.budget or _DEFAULT_BUDGET_NS) / (domain.period or _DEFAULT_PERIOD_NS)

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
            domain, held = engine.rows(domains)[row], engine.rows(entitlements)[row]
            period_ns = int(held.period_ns) or _DEFAULT_PERIOD_NS
            budget_ns = int(held.budget_ns) or _DEFAULT_BUDGET_NS
            for vcpu in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus):
                rtds_vcpu = engine.rows(rtds_vcpus)[vcpu]
                rtds_vcpu.period_ns, rtds_vcpu.budget_ns = period_ns, budget_ns
                rtds_vcpu.has_extratime = held.extratime != 0

    def counters(self, engine: Engine, host: int) -> dict[str, int]:
        return {"depletions": int(engine.rows(rtds_hosts)[host].depletions)}

    def priority_name(self, priority: int) -> str:
        return f"level {priority}"


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
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int) -> None:
    """Use up budget; with extra time go on one level lower."""
    period = deadlines(sim)[vcpu.row]
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
def refill(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Give the full budget until the next multiple of the period."""
    period = deadlines(sim)[vcpu.row]
    rtds_vcpu = rtds_vcpus(sim)[vcpu.row]
    period.deadline_ns += ((sim.now_ns - period.deadline_ns) // rtds_vcpu.period_ns + 1) * rtds_vcpu.period_ns
    period.left_ns = rtds_vcpu.budget_ns
    set_level(sim, host, vcpu, 0)


@part
def set_level(sim: Sim, host: Host, vcpu: Vcpu, level: int) -> None:
    """Move a vCPU to another level."""
    rtds_vcpu = rtds_vcpus(sim)[vcpu.row]
    if rtds_vcpu.level != level:
        rtds_vcpu.level = level
        if host.observed:
            note(sim, PRIORITY, 0, vcpu.row, level)
