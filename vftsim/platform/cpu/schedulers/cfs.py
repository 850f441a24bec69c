"""Linux CFS as KVM hosts run it: every vCPU a thread, fair by virtual run time.

Rules (Linux ``kernel/sched/fair.c`` and ``core.c``, before EEVDF replaced it in 6.6):

* Virtual run time advances by CPU time x 1024 / weight; the smallest runs next.  The weight of a nice level is
  that of the kernel's table, about 1.25 times a step; a domain with ``shares`` splits them over its vCPUs.
* Each gets its part by weight of a scheduling period: 6 ms x scale, or 0.75 ms x scale for each
  runnable thread of a pCPU when there are more than 8; scale = 1 + log2(pCPUs, at most 8).
* A waking thread is placed no further back than half a latency before the least virtual run time,
  takes an idle pCPU, else pre-empts if it is behind the running one by more than the wake-up
  granularity (1 ms x scale).  The least never goes back, and does not wait for one that goes to sleep
  (``update_min_vruntime``, which ``dequeue_entity`` calls).
* Bandwidth control: a domain has ``quota`` in every ``period``, handed to its vCPUs in 5 ms portions;
  without it they are throttled until the next period, and then placed as those that wake
  (``unthrottle_cfs_rq`` enqueues with ``ENQUEUE_WAKEUP``).

As modelled: one run queue for all pCPUs, which is what load balancing between the real ones aims at;
slices end exactly, not at the next timer tick; groups weigh by their vCPUs, not by load per pCPU.
Where threads are pinned or weigh differently, some get more or less than their part of all pCPUs.  Each
pCPU has a least virtual run time then, as each run queue of Linux has, of those that run or wait for it, and a
waking thread counts from that of the pCPU furthest ahead of those it may use.
Left out: cache-hot migration cost, NUMA balancing, autogroups, EEVDF.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, EventKind, Record, Sim, Table, at, event
from vftsim.platform.arithmetic import LARGEST, product_quotient
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu import shared_queue as shared
from vftsim.platform.cpu.build import allowed_numbers, domains_of
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.host import sync, sync_running
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.processes import NICE_0, WEIGHTS
from vftsim.platform.cpu.records import RUNNING, Domain, Host, Pcpu, Vcpu, domains, hosts, pcpus, vcpus
from vftsim.platform.cpu.schedulers._budget import at_most_drawn, draw, give_back, has_budget, open_pool, refill, spend
from vftsim.platform.cpu.shared_queue import QueueVcpu, queue_hosts, queue_pcpus, queue_vcpus, waiting_list
from vftsim.spec.units import MS, PositiveDurationNs

_CROWD = 8
_KEPT_NS = MS
_DEFAULT_PERIOD_NS = 100 * MS
_NOBODY_NS = 1 << 62
cfs = shared.share_one_queue(scheduler.scheduler.kind("cfs"))


class CfsHost(Record):
    """A host's constants, scaled to its pCPUs, and its threads that run or wait: how many, and their weight.

    ``least_ns`` is the least virtual run time, which never goes back; where threads are ``uneven``, pinned or of
    different weights on several pCPUs, each pCPU has its own.  ``limited`` domains have a quota.
    ``charges_late``: nothing but the accounts follows from charging a thread that runs on, so where its virtual run
    time is looked at it need not be charged.
    """

    latency_ns: int
    minimum_ns: int
    uneven: bool
    least_ns: int
    limited: int
    charges_late: bool
    active: int
    weight: int


class CfsPcpu(Record):
    """A pCPU's least virtual run time, where threads are uneven."""

    least_ns: int


class CfsDomain(Record):
    """A domain's period of bandwidth control; ``number`` counts the domains that have one."""

    period_ns: int
    number: int


class CfsVcpu(Record):
    """A thread; ``residue`` is what has passed of the next nanosecond of virtual run time, in parts of its weight.

    ``wakeup_ns`` is the lead that it needs to pre-empt: the wake-up granularity by its weight.
    """

    weight: int
    wakeup_ns: int
    virtual_ns: int
    residue: int


cfs_hosts = Table("cfs_hosts", CfsHost, beside=hosts)
cfs_pcpus = Table("cfs_pcpus", CfsPcpu, beside=pcpus)
cfs_domains = Table("cfs_domains", CfsDomain, beside=domains)
cfs_vcpus = Table("cfs_vcpus", CfsVcpu, beside=vcpus)


@SCHEDULERS.register
class Cfs(SchedulerSpec):
    """Linux CFS under KVM."""

    products: ClassVar[tuple[str, ...]] = ("kvm", "linux", "qemu")

    kind: Literal["cfs"] = "cfs"
    reads: ClassVar[frozenset[str] | None] = frozenset({"nice", "period", "quota", "shares"})
    latency: PositiveDurationNs = Field(
        6 * MS,
        description="Period in which everyone runs once, before scaling (sched_latency_ns). Default 6 ms: Linux.",
    )
    minimum_granularity: PositiveDurationNs = Field(
        750_000,
        description="Shortest slice, before scaling (sched_min_granularity_ns). Default 0.75 ms: Linux.",
    )
    wakeup_granularity: PositiveDurationNs = Field(
        MS,
        description="Lead a waking thread needs to pre-empt, before scaling (sched_wakeup_granularity_ns). "
        "Default 1 ms: Linux.",
    )
    scaling: bool = Field(
        True,
        description="Whether the three grow with 1 + log2(pCPUs, at most 8), as Linux does by default.",
    )
    bandwidth_slice: PositiveDurationNs = Field(
        5 * MS,
        description="Portion of the quota a vCPU draws (sched_cfs_bandwidth_slice_us). Default 5 ms: Linux.",
    )

    def most_pcpus(self, domain: DomainScheduling, vcpus: int) -> float:
        return domain.quota / (domain.period or _DEFAULT_PERIOD_NS) or math.inf

    def unread(self, domain: DomainScheduling) -> dict[str, str]:
        """Add what a quota and shares would change."""
        of_quota = {} if domain.quota else {"period": "it has no quota"}
        of_shares = {"nice": "its shares replace it"} if domain.shares else {}
        return super().unread(domain) | of_quota | of_shares

    def without_effect(self, domains: Sequence[DomainScheduling]) -> Mapping[str, str]:
        is_drawn = any(domain.quota for domain in domains)
        return {} if is_drawn else {"scheduler.bandwidth_slice": "no domain has a quota"}

    def install(self, engine: Engine, host: int) -> None:
        """Scale the constants to the host; weigh the threads and join them to their domains' quotas."""
        cfs_host = engine.rows(cfs_hosts)[host]
        scale = min(int(engine.rows(hosts)[host].pcpus), 8).bit_length() if self.scaling else 1
        cfs_host.latency_ns = self.latency * scale
        cfs_host.minimum_ns = self.minimum_granularity * scale
        for row in domains_of(engine, host):
            entitlement = engine.rows(entitlements)[row]
            self._weigh(engine, row, self.wakeup_granularity * scale)
            if entitlement.quota_ns > 0:
                engine.rows(cfs_domains)[row].period_ns = int(entitlement.period_ns) or _DEFAULT_PERIOD_NS
                engine.rows(cfs_domains)[row].number = cfs_host.limited
                open_pool(engine, row, int(entitlement.quota_ns), self.bandwidth_slice)
                cfs_host.limited += 1
        # A quota is spent in common; the process schedulers that know processes look at what has been charged so far.
        guests = (int(engine.rows(domains)[row].guest_scheduler) for row in domains_of(engine, host))
        cfs_host.charges_late = cfs_host.limited == 0 and not any(guests)
        cfs_host.uneven = self._is_uneven(engine, host)

    @staticmethod
    def _is_uneven(engine: Engine, host: int) -> bool:
        """Tell whether some vCPUs of a host with several pCPUs differ in weight, or may not use all of them."""
        first, count = int(engine.rows(hosts)[host].first_vcpu), int(engine.rows(hosts)[host].vcpus)
        weights = {int(engine.rows(cfs_vcpus)[row].weight) for row in range(first, first + count)}
        allowed = {len(allowed_numbers(engine, row)) for row in range(first, first + count)}
        all_pcpus = int(engine.rows(hosts)[host].pcpus)
        return all_pcpus > 1 and (len(weights) > 1 or min(allowed, default=all_pcpus) < all_pcpus)

    @staticmethod
    def _weigh(engine: Engine, row: int, wakeup_ns: int) -> None:
        domain, entitlement = engine.rows(domains)[row], engine.rows(entitlements)[row]
        weight = WEIGHTS[int(entitlement.nice) + 20]
        if entitlement.shares:
            weight = max(int(entitlement.shares) // int(domain.vcpus), 2)
        for vcpu in range(domain.first_vcpu, domain.first_vcpu + domain.vcpus):
            engine.rows(cfs_vcpus)[vcpu].weight = weight
            engine.rows(cfs_vcpus)[vcpu].wakeup_ns = min(wakeup_ns * NICE_0 // weight, LARGEST)


@cfs.implements(scheduler.attach)
def attach(sim: Sim, host: Host) -> None:
    """Refill each domain's quota in its period."""
    row = host.first_vcpu
    while row < host.first_vcpu + host.vcpus:
        domain = vcpus(sim)[row].domain
        if cfs_domains(sim)[domain].period_ns != 0:
            plan_refill(sim, domain)
        row += domains(sim)[domain].vcpus


@cfs.implements(shared.urgency)
def urgency_of(sim: Sim, host: Host, vcpu: Vcpu) -> tuple[int, int]:
    """Least virtual run time first."""
    return 0, cfs_vcpus(sim)[vcpu.row].virtual_ns


@cfs.implements(shared.eligible)
def is_eligible(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    return has_budget(sim, vcpu)


@cfs.implements(shared.preempts)
def takes_over(sim: Sim, host: Host, newcomer: Vcpu, running: Vcpu) -> bool:
    """Tell whether it is behind by more than the wake-up granularity."""
    entity = cfs_vcpus(sim)[newcomer.row]
    return cfs_vcpus(sim)[running.row].virtual_ns - entity.virtual_ns > entity.wakeup_ns


@cfs.implements(shared.place_of_another)
def place_of_furthest(sim: Sim, host: Host, vcpu: Vcpu, entity: CfsVcpu = BESIDE) -> int:
    """Look for the thread that is furthest ahead."""
    if not cfs_hosts(sim)[host.row].charges_late:
        return shared.place_by_urgency(sim, host, vcpu, True)
    furthest = 0
    furthest_ns = entity.virtual_ns + entity.wakeup_ns
    for row in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        virtual_ns = virtual_now_ns(sim, vcpus(sim)[queue_pcpus(sim)[row].current])
        if virtual_ns > furthest_ns and shared.is_open(sim, host, vcpu, row):
            furthest, furthest_ns = row, virtual_ns
    return furthest


@cfs.implements(shared.on_wake)
def wake_up(sim: Sim, host: Host, vcpu: Vcpu, rules: CfsHost = BESIDE) -> None:
    """Let a sleeper keep at most half a latency of lead."""
    # First: how far back a sleeper is placed depends on the least virtual run time of now.
    advance(sim, host, vcpu)
    limit_lead(sim, host, vcpu)
    rules.active += 1
    rules.weight += cfs_vcpus(sim)[vcpu.row].weight


def limit_lead(sim: Sim, host: Host, vcpu: Vcpu, entity: CfsVcpu = BESIDE, rules: CfsHost = BESIDE) -> None:
    """Place a thread that slept or was throttled at most half a latency before the least virtual run time."""
    entity.virtual_ns = max(entity.virtual_ns, least_for(sim, host, vcpu) - rules.latency_ns // 2)


@cfs.implements(shared.on_chosen)
def prepare(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    draw(sim, vcpu)


@cfs.implements(shared.longest_ns)
def slice_of(sim: Sim, host: Host, vcpu: Vcpu, rules: CfsHost = BESIDE, entity: CfsVcpu = BESIDE) -> int:
    """Return its part of the period by weight, at least the minimum granularity."""
    runnable, weight = crowd_of(sim, host)
    crowd = -(-runnable // host.pcpus)
    period_ns = rules.latency_ns if crowd <= _CROWD else crowd * rules.minimum_ns
    if weight >= (entity.weight + 1) * host.pcpus:
        period_ns = product_quotient(period_ns, entity.weight, weight // host.pcpus)
    return at_most_drawn(sim, vcpu, max(period_ns, rules.minimum_ns))


def crowd_of(sim: Sim, host: Host, cfs_host: CfsHost = BESIDE) -> tuple[int, int]:
    """Return how many threads run or wait and may run, and their weight."""
    if cfs_host.limited == 0:
        return cfs_host.active, cfs_host.weight
    runnable = 0
    weight = 0
    for vcpu in vcpus.span(sim, host.first_vcpu, host.vcpus):
        if is_active(sim, vcpu):
            runnable += 1
            weight += cfs_vcpus(sim)[vcpu.row].weight
    return runnable, weight


def is_active(sim: Sim, vcpu: Vcpu, queue_vcpu: QueueVcpu = BESIDE) -> bool:
    """Tell whether a thread runs or waits and is not throttled."""
    return (queue_vcpu.is_waiting or queue_vcpu.current_on != 0) and has_budget(sim, vcpu)


@cfs.implements(scheduler.block)
def block(sim: Sim, host: Host, vcpu: Vcpu, cfs_host: CfsHost = BESIDE) -> None:
    """Free its pCPU and give back all of the quota drawn but 1 ms, as Linux does."""
    if cfs_host.uneven:
        advance_pcpu(sim, host, pcpus(sim)[vcpu.last_pcpu])
    elif cfs_host.active == 1 or cfs_host.limited > 0:
        # Who stays, and may run, has the least then as well as later.
        advance_host(sim, host)
    cfs_host.active -= 1
    cfs_host.weight -= cfs_vcpus(sim)[vcpu.row].weight
    shared.block(sim, host, vcpu)
    give_back(sim, vcpu, _KEPT_NS)


@cfs.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int, entity: CfsVcpu = BESIDE) -> None:
    """Advance virtual run time, spend quota."""
    # A run of up to 104 days.
    passed = ran_ns * NICE_0 + entity.residue
    entity.residue = passed % entity.weight
    entity.virtual_ns += passed // entity.weight
    spend(sim, vcpu, ran_ns)


def virtual_now_ns(sim: Sim, vcpu: Vcpu, entity: CfsVcpu = BESIDE) -> int:
    """Return the virtual run time of a thread up to now, whether it has been charged or not."""
    ran_ns = sim.now_ns - vcpu.dispatched_ns
    if ran_ns <= 0 or vcpu.state != RUNNING:
        return entity.virtual_ns
    return entity.virtual_ns + virtual_of(entity, ran_ns)


def virtual_of(entity: CfsVcpu, ran_ns: int) -> int:
    """Return what CPU time adds to a thread's virtual run time."""
    return ran_ns if entity.weight == NICE_0 else (ran_ns * NICE_0 + entity.residue) // entity.weight


def least_for(sim: Sim, host: Host, vcpu: Vcpu, cfs_host: CfsHost = BESIDE) -> int:
    """Return the least virtual run time that a thread counts from."""
    if not cfs_host.uneven:
        return cfs_host.least_ns
    least_ns = 0
    for pcpu in pcpus.span(sim, host.first_pcpu, host.pcpus):
        if scheduler.may_run(sim, vcpu, pcpu):
            least_ns = max(least_ns, cfs_pcpus(sim)[pcpu.row].least_ns)
    return least_ns


def advance(sim: Sim, host: Host, vcpu: Vcpu, cfs_host: CfsHost = BESIDE) -> None:
    """Bring the least virtual run time that a thread counts from up to date; it never goes back."""
    if not cfs_host.uneven:
        advance_host(sim, host)
        return
    for pcpu in pcpus.span(sim, host.first_pcpu, host.pcpus):
        if scheduler.may_run(sim, vcpu, pcpu):
            advance_pcpu(sim, host, pcpu)


def advance_pcpu(sim: Sim, host: Host, pcpu: Pcpu, cfs_pcpu: CfsPcpu = BESIDE) -> None:
    """Bring that of a pCPU up to date, from what runs or waits for it."""
    least_ns = least_of(sim, host, pcpu.row, _NOBODY_NS)
    for vcpu in vcpus.listed(sim, waiting_list, queue_hosts(sim)[host.row].waiting):
        if has_budget(sim, vcpu) and scheduler.may_run(sim, vcpu, pcpu):
            least_ns = min(least_ns, cfs_vcpus(sim)[vcpu.row].virtual_ns)
    if least_ns != _NOBODY_NS:
        cfs_pcpu.least_ns = max(cfs_pcpu.least_ns, least_ns)


def advance_host(sim: Sim, host: Host, cfs_host: CfsHost = BESIDE) -> None:
    """Bring that of a host up to date, where it is one for all."""
    least_ns = least_of_running(sim, host, cfs_host)
    row = queue_hosts(sim)[host.row].waiting.first
    while row != 0 and least_ns > cfs_host.least_ns:
        if has_budget(sim, vcpus(sim)[row]):
            least_ns = min(least_ns, cfs_vcpus(sim)[row].virtual_ns)
        row = queue_vcpus(sim)[row].next_waiting
    if least_ns != _NOBODY_NS:
        cfs_host.least_ns = max(cfs_host.least_ns, least_ns)


def least_of_running(sim: Sim, host: Host, cfs_host: CfsHost) -> int:
    """Return the least virtual run time of what runs, or any that does not move the host's."""
    least_ns = _NOBODY_NS
    for pcpu in range(host.first_pcpu, host.first_pcpu + host.pcpus):
        # Too little to move the host's: nothing that follows could change that.
        if cfs_host.charges_late and least_ns <= cfs_host.least_ns:
            break
        least_ns = least_of(sim, host, pcpu, least_ns)
    return least_ns


def least_of(sim: Sim, host: Host, pcpu: int, least_ns: int, cfs_host: CfsHost = BESIDE) -> int:
    """Return the virtual run time of what runs on a pCPU, if it is less and that may go on."""
    running = queue_pcpus(sim)[pcpu].current
    if running == 0:
        return least_ns
    if not cfs_host.charges_late:
        sync(sim, vcpus(sim)[running])
    if not has_budget(sim, vcpus(sim)[running]):
        return least_ns
    return min(least_ns, virtual_now_ns(sim, vcpus(sim)[running]))


def plan_refill(sim: Sim, domain: int) -> None:
    """Plan the end of a domain's period."""
    cfs_domain = cfs_domains(sim)[domain]
    at(sim, sim.now_ns + cfs_domain.period_ns, EventKind.ACCOUNTING, cfs_domain.number, on_refill, domain)


@event
def on_refill(sim: Sim, domain: Domain, host: Host = BESIDE) -> None:
    """Begin a domain's period: let its throttled vCPUs go on."""
    # What has run is charged to the old period, and the least virtual run time is that of those who could run in it.
    sync_running(sim, host)
    advance(sim, host, vcpus(sim)[domain.first_vcpu])
    refill(sim, host, domain.row)
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if queue_vcpus(sim)[vcpu.row].held:
            limit_lead(sim, host, vcpu)
    shared.place_held(sim, host)
    plan_refill(sim, domain.row)
