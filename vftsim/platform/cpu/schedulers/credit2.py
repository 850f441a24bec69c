"""Xen's credit2 scheduler, as in Xen 4.10 and later.

Rules (Xen ``sched_credit2.c``):

* One run queue for the pCPUs of a socket, ordered by credit.  A running vCPU of the highest weight on
  the queue burns one credit a nanosecond, others ``highest weight / weight``.
* When the next vCPU to run has no credit left (<= 0), everyone gets 10 ms of credit (twice that when it
  has sunk to the floor of -10 ms), and nobody keeps more than 10.5 ms.
* A vCPU runs until its credit has sunk to 0 or to that of the first one waiting, but for at least
  0.5 ms (or the rest of the rate limit) and at most 10 ms.
* No boost.  A waking vCPU takes an idle pCPU, else it pre-empts the running vCPU with the least credit
  if it has more itself.  A vCPU within its rate limit (1 ms, less 50 us of tolerance) is left alone;
  moving to another pCPU than the last must be worth 0.5 ms of credit.
* Cap: the domain has cap percent of a 10 ms period as budget, which its vCPUs draw in equal portions of
  at least 0.5 ms; when it is gone they are parked until the next period.

Left out: several run queues and the balancing between them (hosts up to 16 pCPUs a socket have one),
soft affinity, hyperthread placement, yield.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, EventKind, Kind, Record, Sim, Table, at, event, part
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu import shared_queue as shared
from vftsim.platform.cpu.build import domains_of
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.host import settle, sync
from vftsim.platform.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.platform.cpu.records import Host, Pcpu, Vcpu, domains, hosts, vcpus
from vftsim.platform.cpu.schedulers._budget import (
    at_most_drawn,
    draw,
    give_back,
    has_budget,
    has_pool,
    open_pool,
    purses,
    refill,
    spend,
)
from vftsim.platform.cpu.shared_queue import queue_hosts, queue_pcpus, queue_vcpus
from vftsim.spec.units import DurationNs, PeriodNs

_MS = 1_000_000
CREDIT_INIT = 10 * _MS
_CREDIT_FLOOR = -CREDIT_INIT
_CARRY_OVER = _MS // 2
_SHORTEST_NS = _MS // 2
_LONGEST_NS = 10 * _MS
_TOLERANCE_NS = 50_000
_COUNTERS = ("resets", "rate_limited")
credit2 = shared.share_one_queue(scheduler.scheduler.kind("credit2"))


class Credit2Host(Record):
    """A host's parameters, the highest weight on it, by which all burn, and counters."""

    rate_limit_ns: int
    resistance: int
    cap_period_ns: int
    highest_weight: int
    has_caps: bool
    resets: int
    rate_limited: int


class Credit2Vcpu(Record):
    """A vCPU's credit; ``residue`` is what has been burnt of the next one, in parts of its weight."""

    weight: int
    credit: int
    residue: int


credit2_hosts = Table("credit2_hosts", Credit2Host, beside=hosts)
credit2_vcpus = Table("credit2_vcpus", Credit2Vcpu, beside=vcpus)


@SCHEDULERS.register
class Credit2(SchedulerSpec):
    """Xen's credit2 scheduler."""

    kind: Literal["credit2"] = "credit2"
    part: ClassVar[Kind] = credit2
    reads: ClassVar[frozenset[str] | None] = frozenset({"cap", "weight"})
    rate_limit: DurationNs = Field(
        _MS,
        le=500 * _MS,
        description="Least time a vCPU runs before it can be pre-empted (sched_ratelimit_us); 0: off. "
        "Default 1 ms: Xen's.",
    )
    migration_resistance: DurationNs = Field(
        _MS // 2,
        description="Credit by which a vCPU from another pCPU must be ahead (sched_credit2_migrate_resist). "
        "Default 0.5 ms: Xen's.",
    )
    cap_period: PeriodNs = Field(
        10 * _MS,
        description="Period of the cap's budget (credit2_cap_period_ms). Default 10 ms: Xen's.",
    )

    def install(self, engine: Engine, host: int) -> None:
        """Write the parameters, the initial credits and the capped domains' budgets."""
        own = engine.rows(credit2_hosts)[host]
        own.rate_limit_ns = self.rate_limit
        own.resistance = self.migration_resistance
        own.cap_period_ns = self.cap_period
        for row in domains_of(engine, host):
            domain, held = engine.rows(domains)[row], engine.rows(entitlements)[row]
            own.highest_weight = max(int(own.highest_weight), int(held.weight))
            for vcpu in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus):
                engine.rows(credit2_vcpus)[vcpu].weight = held.weight
                engine.rows(credit2_vcpus)[vcpu].credit = CREDIT_INIT
            if held.cap > 0:
                own.has_caps = True
                budget_ns = max(round(float(held.cap) * self.cap_period / 100), 1)
                open_pool(engine, row, budget_ns, max(budget_ns // int(domain.vcpus), _SHORTEST_NS))

    def counters(self, engine: Engine, host: int) -> dict[str, int]:
        """Return resets of the credits and choices that the rate limit decided."""
        own = engine.rows(credit2_hosts)[host]
        return {name: int(getattr(own, name)) for name in _COUNTERS}


@credit2.implements(scheduler.attach)
def attach(sim: Sim, host: Host) -> None:
    """Refill the capped domains' budgets, if there are any."""
    if credit2_hosts(sim)[host.row].has_caps:
        plan_refill(sim, host)


@credit2.implements(shared.urgency)
def urgency_of(sim: Sim, host: Host, vcpu: Vcpu) -> tuple[int, int]:
    """Most credit first."""
    return 0, -credit2_vcpus(sim)[vcpu.row].credit


@credit2.implements(shared.eligible)
def is_eligible(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    """Tell whether its domain's cap leaves it something."""
    return has_budget(sim, vcpu)


@credit2.implements(shared.preempts)
def takes_over(sim: Sim, host: Host, newcomer: Vcpu, running: Vcpu) -> bool:
    """Tell whether it has more credit, and the other one's rate limit is over or nearly so."""
    own = credit2_hosts(sim)[host.row]
    if sim.now_ns - queue_vcpus(sim)[running.row].since_ns < own.rate_limit_ns - _TOLERANCE_NS:
        return False
    resistance = own.resistance if newcomer.last_pcpu != running.pcpu else 0
    return credit2_vcpus(sim)[newcomer.row].credit - resistance > credit2_vcpus(sim)[running.row].credit


@credit2.implements(shared.continues_ns)
def rest_of_limit(sim: Sim, host: Host, running: Vcpu) -> int:
    """Return the rest of the rate limit."""
    own = credit2_hosts(sim)[host.row]
    left_ns = own.rate_limit_ns - (sim.now_ns - queue_vcpus(sim)[running.row].since_ns)
    if left_ns <= _TOLERANCE_NS or (has_pool(sim, running) and purses(sim)[running.row].drawn_ns <= 0):
        return 0
    own.rate_limited += 1
    return at_most_drawn(sim, running, left_ns)


@credit2.implements(shared.most_urgent)
def most_urgent(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Return the first in order; but one that was elsewhere must be ahead of the best from here by the resistance."""
    best = shared.first_in_order(sim, host, pcpu)
    if best == 0 or vcpus(sim)[best].last_pcpu == pcpu.row:
        return best
    local = best_from_here(sim, host, pcpu)
    resistance = credit2_hosts(sim)[host.row].resistance
    if local != 0 and credit2_vcpus(sim)[local].credit + resistance > credit2_vcpus(sim)[best].credit:
        return local
    return best


@part
def best_from_here(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Return the waiting vCPU of most credit that ran on ``pcpu`` last and may run there now, 0 for none."""
    best = 0
    row = queue_hosts(sim)[host.row].waiting.first
    while row != 0:
        vcpu = vcpus(sim)[row]
        from_here = vcpu.last_pcpu == pcpu.row and scheduler.may_run(sim, vcpu, pcpu) and has_budget(sim, vcpu)
        if from_here and (best == 0 or credit2_vcpus(sim)[row].credit > credit2_vcpus(sim)[best].credit):
            best = row
        row = queue_vcpus(sim)[row].next_waiting
    return best


@credit2.implements(shared.on_chosen)
def prepare(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Draw budget; hand out credit when the best has none."""
    draw(sim, vcpu)
    if credit2_vcpus(sim)[vcpu.row].credit <= 0:
        reset(sim, host, vcpu)


@part
def reset(sim: Sim, host: Host, chosen: Vcpu) -> None:
    """Give credit to everyone, after what runs has paid up to now."""
    credit2_hosts(sim)[host.row].resets += 1
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        running = queue_pcpus(sim)[row].current
        if running not in (0, chosen.row):
            sync(sim, vcpus(sim)[running])
    credit = credit2_vcpus(sim)[chosen.row].credit
    added = CREDIT_INIT * (1 - credit // CREDIT_INIT) if credit <= _CREDIT_FLOOR else CREDIT_INIT
    for row in range(host.first_vcpu, host.first_vcpu + host.vcpus):
        own = credit2_vcpus(sim)[row]
        own.credit = min(own.credit + added, CREDIT_INIT + _CARRY_OVER)


@credit2.implements(shared.longest_ns)
def slice_of(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the time until its credit reaches 0 or that of the first one waiting."""
    rules = credit2_hosts(sim)[host.row]
    own = credit2_vcpus(sim)[vcpu.row]
    # Credit is at most 10.5 ms, a weight below 2**16.
    time_ns = (own.credit - most_waiting_credit(sim, host)) * own.weight // rules.highest_weight
    time_ns = min(max(time_ns, _SHORTEST_NS, rules.rate_limit_ns), _LONGEST_NS)
    return at_most_drawn(sim, vcpu, time_ns)


@part
def most_waiting_credit(sim: Sim, host: Host) -> int:
    """Return the most credit of those who wait and may run, at least 0."""
    most = 0
    row = queue_hosts(sim)[host.row].waiting.first
    while row != 0:
        if has_budget(sim, vcpus(sim)[row]):
            most = max(most, credit2_vcpus(sim)[row].credit)
        row = queue_vcpus(sim)[row].next_waiting
    return most


@credit2.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int) -> None:
    """Burn credit; what is less than one credit waits."""
    own = credit2_vcpus(sim)[vcpu.row]
    # A run is at most 500 ms (the longest rate limit), a weight below 2**16.
    burnt = ran_ns * credit2_hosts(sim)[host.row].highest_weight + own.residue
    own.residue = burnt % own.weight
    own.credit = max(own.credit - burnt // own.weight, _CREDIT_FLOOR)
    spend(sim, vcpu, ran_ns)


@credit2.implements(scheduler.block)
def block(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Free its pCPU and give unused budget back."""
    shared.block(sim, host, vcpu)
    give_back(sim, vcpu, 0)


@part
def plan_refill(sim: Sim, host: Host) -> None:
    """Plan the end of the caps' period."""
    period_ns = credit2_hosts(sim)[host.row].cap_period_ns
    at(sim, sim.now_ns + period_ns, EventKind.ACCOUNTING, 0, on_refill, host.row)


@event
def on_refill(sim: Sim, place: int, token: int) -> None:
    """Begin a period of the caps: let those go on that theirs has held."""
    host = hosts(sim)[place]
    settle(sim, host)
    row = host.first_vcpu
    while row < host.first_vcpu + host.vcpus:
        refill(sim, host, vcpus(sim)[row].domain)
        row += domains(sim)[vcpus(sim)[row].domain].vcpus
    shared.place_held(sim, host)
    plan_refill(sim, host)
