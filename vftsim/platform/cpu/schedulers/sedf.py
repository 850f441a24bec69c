"""Xen's sEDF: earliest deadline first on each pCPU, with extra time for those who may use it.

Rules (Xen 4.5 ``sched_sedf.c`` and its mini-HOWTO; removed in 4.6):

* A vCPU belongs to one pCPU.  It is guaranteed ``slice`` of CPU time in every ``period``; among those
  with some of their slice left the earliest end of period runs first.
* Time that no guarantee claims is extra time: it goes in quanta of 0.5 ms to the vCPUs with ``extratime``.
  A vCPU without, even on an idle pCPU, gets no more than its slice.
* A new guest has a period of 100 ms, no slice, and extra time: best effort.
* A vCPU that wakes after the end of its period starts a new one at once.  With a latency hint that period
  is as short as the hint, with a slice in proportion, and doubles back to the full length.

As modelled: a vCPU that wakes inside its period goes on with what is left of its slice; extra time is
shared in proportion to ``weight``.  Left out: the extra queue that repays short blocks, slices derived
from weights, and any migration (sEDF has none).
"""

import math
from collections.abc import Sequence
from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, Failure, Record, Sim, Table, fail
from vftsim.platform.arithmetic import LARGEST, product_quotient, scaled
from vftsim.platform.cpu import scheduler, shared_queue
from vftsim.platform.cpu.build import allowed_numbers
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, PlacedDomain, SchedulerSpec
from vftsim.platform.cpu.records import Host, Pcpu, Vcpu, hosts, pcpus, vcpus
from vftsim.platform.cpu.schedulers import _deadlines
from vftsim.platform.cpu.schedulers._deadlines import Deadline, begin_period, deadlines, plan, share_one_deadline_queue
from vftsim.spec.units import MS, PeriodNs

_DEFAULT_PERIOD_NS = 100 * MS
EXTRA, SLICE = 0, 1
_NAMES = {EXTRA: "extra", SLICE: "slice"}
_TOO_LONG = Failure("a vCPU's extra time divided by its weight has left the 64-bit range; give it more weight")
sedf = share_one_deadline_queue(scheduler.scheduler.kind("sedf"))


class SedfHost(Record):
    """A host's parameter."""

    extra_quantum_ns: int


class SedfPcpu(Record):
    """A pCPU: the score of the last vCPU that ran there on extra time."""

    level: int


class SedfVcpu(Record):
    """A vCPU's guarantee; ``processor`` is its pCPU, ``period_ns`` the length of the present period.

    ``score`` is the extra time it has had, by weight.
    """

    processor: int
    full_period_ns: int
    slice_ns: int
    latency_ns: int
    has_extratime: bool
    weight: int
    period_ns: int
    on_extra: bool
    score: int


sedf_hosts = Table("sedf_hosts", SedfHost, beside=hosts)
sedf_pcpus = Table("sedf_pcpus", SedfPcpu, beside=pcpus)
sedf_vcpus = Table("sedf_vcpus", SedfVcpu, beside=vcpus)


def _spread(allowed: Sequence[Sequence[int]], pcpus: int) -> list[int]:
    """Spread vCPUs: each to the allowed pCPU with the fewest so far, lowest number first."""
    load = [0] * pcpus
    spread = []
    for numbers in allowed:
        number = min(sorted(numbers), key=load.__getitem__)
        spread.append(number)
        load[number] += 1
    return spread


@SCHEDULERS.register
class Sedf(SchedulerSpec):
    """Xen's sEDF; period, slice, latency, extratime and weight are the domains'."""

    kind: Literal["sedf"] = "sedf"
    reads: ClassVar[frozenset[str] | None] = frozenset({"extratime", "latency", "period", "slice", "weight"})
    extra_quantum: PeriodNs = Field(
        500_000,
        description="Piece in which extra time is given away. Default 0.5 ms: sched_sedf.c.",
    )

    def most_pcpus(self, domain: DomainScheduling, vcpus: int) -> float:
        """Return the slices of its vCPUs over their period, if they get no extra time."""
        if domain.extratime is not False:
            return math.inf
        return vcpus * domain.slice / (domain.period or _DEFAULT_PERIOD_NS)

    def unread(self, domain: DomainScheduling) -> dict[str, str]:
        """Add what a slice and extra time would change."""
        of_slice = {} if domain.slice else dict.fromkeys(("period", "latency"), "with slice 0 it has extra time only")
        of_extratime = {"weight": "it gets no extra time"} if domain.extratime is False else {}
        return super().unread(domain) | of_slice | of_extratime

    def install(self, engine: Engine, host: int) -> None:
        """Give each vCPU its pCPU, period and slice."""
        engine.rows(sedf_hosts)[host].extra_quantum_ns = self.extra_quantum
        record = engine.rows(hosts)[host]
        rows = range(record.first_vcpu, record.first_vcpu + record.vcpus)
        allowed = [allowed_numbers(engine, row) for row in rows]
        for row, number in zip(rows, _spread(allowed, int(record.pcpus)), strict=True):
            self._take_over(engine, row, int(record.first_pcpu) + number)

    def refusal(self, pcpus: int, domains: Sequence[PlacedDomain]) -> str:
        """Return which slices do not fit on the pCPU that they are on."""
        each_vcpu = [domain for domain in domains for _ in range(domain.vcpus)]
        allowed = [range(pcpus) if each.affinity is None else each.affinity for each in each_vcpu]
        claimed = dict.fromkeys(range(pcpus), 0.0)
        for domain, number in zip(each_vcpu, _spread(allowed, pcpus), strict=True):
            claimed[number] += domain.scheduling.slice / (domain.scheduling.period or _DEFAULT_PERIOD_NS)
        for number, share in claimed.items():
            if share > 1 + 1e-9:
                return (
                    f"sedf slices of {100 * share:.4g} % of a pCPU do not fit on pCPU {number}; shorten slices or "
                    "spread the vCPUs by affinity"
                )
        return ""

    @staticmethod
    def _take_over(engine: Engine, row: int, processor: int) -> None:
        sedf_vcpu, entitlement = engine.rows(sedf_vcpus)[row], engine.rows(entitlements)[engine.rows(vcpus)[row].domain]
        sedf_vcpu.processor = processor
        sedf_vcpu.full_period_ns = sedf_vcpu.period_ns = int(entitlement.period_ns) or _DEFAULT_PERIOD_NS
        sedf_vcpu.slice_ns = entitlement.slice_ns
        sedf_vcpu.latency_ns = entitlement.latency_ns
        sedf_vcpu.has_extratime = entitlement.extratime != 0
        sedf_vcpu.weight = entitlement.weight

    def contradiction(self, domain: DomainScheduling) -> str:
        """Refuse what would never run."""
        if domain.slice == 0 and domain.extratime is False:
            return "with slice 0 and without extratime it would never run; give it a slice"
        return ""

    def priority_name(self, priority: int) -> str:
        return _NAMES[priority]


@sedf.implements(shared_queue.urgency)
def urgency_of(sim: Sim, host: Host, vcpu: Vcpu, period: Deadline = BESIDE) -> tuple[int, int]:
    """Earliest deadline first, then extra time by who has had least of it."""
    if period.left_ns > 0:
        return 0, period.deadline_ns
    return 1, sedf_vcpus(sim)[vcpu.row].score


@sedf.implements(shared_queue.allowed)
def is_on_processor(sim: Sim, host: Host, vcpu: Vcpu, pcpu: Pcpu) -> bool:
    return sedf_vcpus(sim)[vcpu.row].processor == pcpu.row


@sedf.implements(shared_queue.eligible)
def is_eligible(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    """Tell whether it has some slice left or may use extra time."""
    return deadlines(sim)[vcpu.row].left_ns > 0 or sedf_vcpus(sim)[vcpu.row].has_extratime


@sedf.implements(shared_queue.preempts)
def takes_over(sim: Sim, host: Host, newcomer: Vcpu, running: Vcpu) -> bool:
    """Tell whether it has an earlier deadline; nobody pre-empts for extra time."""
    return deadlines(sim)[newcomer.row].left_ns > 0 and shared_queue.is_more_urgent(sim, host, newcomer, running)


@sedf.implements(scheduler.priority)
def priority(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    return SLICE if deadlines(sim)[vcpu.row].left_ns > 0 else EXTRA


@sedf.implements(shared_queue.longest_ns)
def piece(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the rest of its slice, or one piece of extra time."""
    if sedf_vcpus(sim)[vcpu.row].on_extra:
        return sedf_hosts(sim)[host.row].extra_quantum_ns
    return deadlines(sim)[vcpu.row].left_ns


@sedf.implements(shared_queue.on_chosen)
def remember(sim: Sim, host: Host, vcpu: Vcpu, sedf_vcpu: SedfVcpu = BESIDE) -> None:
    """Remember what kind of time it runs on."""
    sedf_vcpu.on_extra = deadlines(sim)[vcpu.row].left_ns <= 0
    if sedf_vcpu.on_extra:
        processor = sedf_pcpus(sim)[sedf_vcpu.processor]
        processor.level = max(processor.level, sedf_vcpu.score)


@sedf.implements(shared_queue.on_wake)
def wake_up(sim: Sim, host: Host, vcpu: Vcpu, sedf_vcpu: SedfVcpu = BESIDE) -> None:
    """Begin a period if the last one is over."""
    # It competes for extra time as if it had had as much as the last that ran on it here: nothing is saved up in sleep.
    sedf_vcpu.score = max(sedf_vcpu.score, sedf_pcpus(sim)[sedf_vcpu.processor].level)
    if sedf_vcpu.slice_ns == 0:
        return
    if sim.now_ns < deadlines(sim)[vcpu.row].deadline_ns:
        plan(sim, vcpu)
        return
    sedf_vcpu.period_ns = sedf_vcpu.full_period_ns
    if sedf_vcpu.latency_ns != 0:
        sedf_vcpu.period_ns = min(sedf_vcpu.latency_ns, sedf_vcpu.full_period_ns)
    begin_period(sim, host, vcpu)


@sedf.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int, sedf_vcpu: SedfVcpu = BESIDE) -> None:
    """Use up slice, or count extra time by weight."""
    if not sedf_vcpu.on_extra:
        deadlines(sim)[vcpu.row].left_ns -= ran_ns
        return
    sedf_vcpu.score += scaled(ran_ns, sedf_vcpu.weight)
    if sedf_vcpu.score > LARGEST:
        fail(sim, _TOO_LONG)


@sedf.implements(_deadlines.refill)
def refill(sim: Sim, host: Host, vcpu: Vcpu, sedf_vcpu: SedfVcpu = BESIDE, period: Deadline = BESIDE) -> None:
    """Give the slice of a period that begins now."""
    period.deadline_ns = sim.now_ns + sedf_vcpu.period_ns
    period.left_ns = product_quotient(sedf_vcpu.slice_ns, sedf_vcpu.period_ns, sedf_vcpu.full_period_ns)


@sedf.implements(_deadlines.on_deadline)
def grow_back(sim: Sim, host: Host, vcpu: Vcpu, sedf_vcpu: SedfVcpu = BESIDE) -> None:
    """Let a period shortened by a latency hint grow back."""
    sedf_vcpu.period_ns = min(2 * sedf_vcpu.period_ns, sedf_vcpu.full_period_ns)
