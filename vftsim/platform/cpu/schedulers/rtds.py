"""Xen's RTDS: global earliest deadline first with deferrable servers.

Rules (Xen ``sched_rt.c``, since 4.7 driven by events):

* Every vCPU has a budget in every period (10 ms and 4 ms by default).  The budget is used up only while
  it runs, kept while it idles inside the period, discarded and refilled at its end, which is also the
  deadline.
* One run queue: the earliest deadline runs first, on any pCPU of its affinity; a vCPU that wakes, or is refilled
  without budget, takes an idle pCPU, else it pre-empts the latest deadline.
* At the end of a period all vCPUs that are due are refilled, and then one that runs goes on, unless the first that
  waits is more urgent (``repl_timer_handler``).  Those that waited are queued anew, in the order in which they were
  planned to be refilled.  When a pCPU chooses, one that waits and is as urgent goes first.
* Who loses its pCPU looks for another as one that wakes does, even without budget: the pCPU that is asked then
  chooses anew (``rt_context_saved``).
* Without budget a vCPU waits for its next period.  With ``extratime`` it goes on instead, one priority
  level lower, with its budget refilled; all at a higher level go first.  The level returns to 0 at the
  period's end.
* A vCPU that wakes after its deadline starts a period whose end is the next multiple of its period.

Left out: the scheduler's quantum, cache placement, and that from 4.11 on the code keeps its refills in the order of
levels before that of deadlines, so that one on extra time may be refilled late.  There is no admission control, as in
Xen: a set of vCPUs that asks for too much misses deadlines.
"""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from vftsim.kernel import BESIDE, Chain, Engine, Fifo, Record, Sim, Table
from vftsim.platform.cpu import scheduler, shared_queue
from vftsim.platform.cpu.build import domains_of
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.host import request_reschedule, sync
from vftsim.platform.cpu.notes import PRIORITY, note
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, PlacedDomain, SchedulerSpec
from vftsim.platform.cpu.records import Host, Pcpu, Vcpu, domains, hosts, pcpus, vcpus
from vftsim.platform.cpu.schedulers import _deadlines
from vftsim.platform.cpu.schedulers._deadlines import Deadline, begin_period, deadlines, plan, share_one_deadline_queue
from vftsim.platform.cpu.shared_queue import waiting_list
from vftsim.spec.units import DURATION, MS

_DEFAULT_PERIOD_NS = 10 * MS
_DEFAULT_BUDGET_NS = 4 * MS
_SHORTEST_NS = 10_000
rtds = share_one_deadline_queue(scheduler.scheduler.kind("rtds"))


class RtdsHost(Record):
    """A host's vCPUs that are awake: those to be refilled, the first first, and those that are being; its counter."""

    refills: Fifo
    refilled: Fifo
    depletions: int


class RtdsVcpu(Record):
    """A vCPU's server; ``level`` 0 is the highest.

    ``is_depleted``: it has lost its pCPU without budget since the last refill that found it waiting.
    """

    period_ns: int
    budget_ns: int
    has_extratime: bool
    level: int
    is_depleted: bool
    next_refill: int


rtds_hosts = Table("rtds_hosts", RtdsHost, beside=hosts)
rtds_vcpus = Table("rtds_vcpus", RtdsVcpu, beside=vcpus)
refill_list = Chain(rtds_vcpus, "next_refill")


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
    line_up_refill(sim, host, vcpu)


def line_up_refill(sim: Sim, host: Host, vcpu: Vcpu, period: Deadline = BESIDE) -> None:
    """Plan its refill behind those that are due as early."""
    refills = rtds_hosts(sim)[host.row].refills
    before = 0
    row = refills.first
    while row != 0 and deadlines(sim)[row].deadline_ns <= period.deadline_ns:
        before = row
        row = rtds_vcpus(sim)[row].next_refill
    refill_list.insert_after(sim, refills, before, vcpu.row)


@rtds.implements(scheduler.block)
def block(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Free its pCPU, and refill it no more."""
    _deadlines.block(sim, host, vcpu)
    refill_list.remove(sim, rtds_hosts(sim)[host.row].refills, vcpu.row)


@rtds.implements(scheduler.choose)
def choose(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Ask a pCPU also for one that has lost its own without budget."""
    before = shared_queue.queue_pcpus(sim)[pcpu.row].current
    chosen = shared_queue.choose(sim, host, pcpu)
    if before not in (0, chosen) and deadlines(sim)[before].left_ns == 0:
        rtds_vcpus(sim)[before].is_depleted = True
        ask_for(sim, shared_queue.place_for(sim, host, vcpus(sim)[before]))
    return chosen


@rtds.implements(shared_queue.place_of_another)
def place_of_latest(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Look for the latest deadline; nothing burns: a pCPU whose budget ends at this instant has not chosen yet."""
    return shared_queue.place_by_urgency(sim, host, vcpu, False)


def ask_for(sim: Sim, pcpu: int) -> None:
    if pcpu != 0:
        request_reschedule(sim, pcpus(sim)[pcpu])


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
def refill_all(sim: Sim, host: Host, vcpu: Vcpu, rtds_host: RtdsHost = BESIDE) -> None:
    """Refill all vCPUs that are due, and then, the last of them first, look where others are to run."""
    refilled = rtds_host.refilled
    while rtds_host.refills.length > 0 and deadlines(sim)[rtds_host.refills.first].deadline_ns <= sim.now_ns:
        row = refill_list.pop(sim, rtds_host.refills)
        # What it has run is of the old period.  Others whose budget ends at this instant have not burnt it yet.
        sync(sim, vcpus(sim)[row])
        begin_period(sim, host, vcpus(sim)[row])
        if shared_queue.queue_vcpus(sim)[row].is_waiting:
            waiting_list.remove(sim, shared_queue.queue_hosts(sim)[host.row].waiting, row)
            shared_queue.enqueue(sim, host, vcpus(sim)[row])
        refill_list.push_front(sim, refilled, row)
    while refilled.length > 0:
        row = refill_list.pop(sim, refilled)
        tickle_after_refill(sim, host, vcpus(sim)[row])
        line_up_refill(sim, host, vcpus(sim)[row])


def tickle_after_refill(sim: Sim, host: Host, vcpu: Vcpu, rtds_vcpu: RtdsVcpu = BESIDE) -> None:
    """Let the first that waits pre-empt if it is more urgent than one that runs; let one that had no budget run."""
    if shared_queue.queue_vcpus(sim)[vcpu.row].current_on != 0:
        first = first_waiting(sim, host)
        if first != 0:
            if shared_queue.is_more_urgent(sim, host, vcpus(sim)[first], vcpu):
                ask_for(sim, shared_queue.find_pcpu(sim, host, vcpus(sim)[first]))
            return
    if rtds_vcpu.is_depleted:
        rtds_vcpu.is_depleted = False
        if shared_queue.queue_vcpus(sim)[vcpu.row].is_waiting:
            ask_for(sim, shared_queue.find_pcpu(sim, host, vcpu))


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
