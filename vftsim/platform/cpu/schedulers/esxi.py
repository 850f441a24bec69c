"""VMware ESX/ESXi: proportional shares between a reservation and a limit.

Rules (vSphere Resource Management Guide; VMware, "The CPU Scheduler in vSphere 5.1"):

* A virtual machine is entitled to CPU time in proportion to its shares (High, Normal, Low = 2000, 1000,
  500 for each vCPU), but to no less than its reservation and no more than its limit.
* What a machine does not use of its reservation is used by others.  The limit holds on an idle host too.
* The vCPU whose machine has consumed least relative to its entitlement runs next, for one quantum.

As modelled: a machine's virtual time advances by CPU time / shares; the smallest runs first, and one
that comes back from idling starts level with the others (start-time fair queueing): with those that have run last on
the pCPUs that it may use, the one furthest ahead of them.  One that its limit has held is behind them by a quantum at
most, so that a limit above its share takes nothing of that.
Machines that are behind their reservation go before all others, the one that is owed most first: a reservation fills
an account at its rate, and running empties it.  It holds one quantum's worth of what a machine has not used while it
idled, and of what it has waited for as much as others may run before it: a quantum for each pCPU and machine.  A limit
is a quota for each period, which stops all vCPUs of the machine when it is used up.  A waking vCPU takes an idle pCPU,
else pre-empts the vCPU furthest ahead.  What runs is charged before vCPUs are compared.

Admission control is :meth:`Esxi.install` refusing reservations beyond the host.
Assumption: the limit's period equals the quantum's default; the product does not document it.
Left out: relaxed co-scheduling of multiprocessor guests, resource pools, NUMA and cache placement.
"""

import math
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, EventKind, Failure, Record, Sim, Table, at, event, fail, timer
from vftsim.platform.arithmetic import LARGEST, scaled
from vftsim.platform.cpu import scheduler, shared_queue
from vftsim.platform.cpu.build import domains_of, has_own_pcpus, only_pcpu
from vftsim.platform.cpu.entitlement import entitlements
from vftsim.platform.cpu.host import request_reschedule, sync, sync_running
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, PlacedDomain, SchedulerSpec
from vftsim.platform.cpu.records import IDLE_FOREVER, RUNNING, Domain, Host, Pcpu, Vcpu, domains, hosts, pcpus, vcpus
from vftsim.platform.rows import fill_row
from vftsim.spec.units import DURATION, MS, PeriodNs

_MILLION = 1_000_000
_SHARES_PER_VCPU = 1000
esxi = shared_queue.share_one_queue(scheduler.scheduler.kind("esxi"))

_TOO_LONG = Failure("a machine's CPU time divided by its shares has left the 64-bit range; give it more shares")


class EsxiHost(Record):
    """A host's parameters.

    ``lets_run``: every vCPU has a pCPU of its own and no limit, so that there is nothing to decide and no
    slice has to end.  ``charges_all``: some machine has several vCPUs, which use one account together.
    ``most_reserve`` is the most that a reservation's account holds.
    """

    quantum_ns: int
    most_reserve: int
    limit_period_ns: int
    lets_run: bool
    charges_all: bool


class EsxiPcpu(Record):
    """A pCPU; ``floor`` is the virtual time of the last machine that ran there for its shares, and never falls."""

    floor: int


class Machine(Record):
    """The accounts of a virtual machine; rates in millionths of a pCPU, reserve in ns times a million.

    ``used_up`` is the event planned for when its limit is used up (0: none).
    """

    shares: int
    reservation_ppm: int
    limit_ppm: int
    virtual_time: int
    reserve: int
    reserve_at_ns: int
    whole_quota_ns: int
    quota_ns: int
    used_up: int


esxi_hosts = Table("esxi_hosts", EsxiHost, beside=hosts)
esxi_pcpus = Table("esxi_pcpus", EsxiPcpu, beside=pcpus)
machines = Table("machines", Machine, beside=domains)


@SCHEDULERS.register
class Esxi(SchedulerSpec):
    """VMware ESX/ESXi."""

    products: ClassVar[tuple[str, ...]] = ("vmware", "vsphere", "esx")

    kind: Literal["esxi"] = "esxi"
    reads: ClassVar[frozenset[str] | None] = frozenset({"limit", "reservation", "shares"})
    quantum: PeriodNs = Field(
        50 * MS,
        description="Time a vCPU runs before the next choice. Default 50 ms, as most sources have it (some "
        "say 10 to 20 ms).",
    )
    limit_period: PeriodNs = Field(
        50 * MS,
        description="Period over which a limit is enforced. Default 50 ms: Assumption, as VMware documents none.",
    )

    def most_pcpus(self, domain: DomainScheduling, vcpus: int) -> float:
        return domain.limit / 100.0 or math.inf

    def without_effect(self, domains: Sequence[DomainScheduling]) -> Mapping[str, str]:
        return {} if any(domain.limit for domain in domains) else {"scheduler.limit_period": "no domain has a limit"}

    def install(self, engine: Engine, host: int) -> None:
        """Open an account for each machine."""
        esxi_host = fill_row(engine, esxi_hosts, host, self)
        rows = domains_of(engine, host)
        quanta = int(engine.rows(hosts)[host].pcpus) + len(rows)
        esxi_host.most_reserve = min(self.quantum * _MILLION * quanta, LARGEST)
        for row in rows:
            self._open(engine, row)
        esxi_host.lets_run = has_own_pcpus(engine, host) and not any(
            engine.rows(machines)[row].limit_ppm for row in rows
        )
        esxi_host.charges_all = any(engine.rows(domains)[row].vcpus > 1 for row in rows)

    def refusal(self, pcpus: int, domains: Sequence[PlacedDomain]) -> str:
        """Return why the host cannot keep its reservations (admission control), or account for them."""
        reserved_ppm = sum(_ppm(domain.scheduling.reservation) for domain in domains)
        if reserved_ppm > pcpus * _MILLION:
            return f"reservations of {reserved_ppm / 10_000:g} % of a pCPU exceed the host's {pcpus * 100} %"
        if reserved_ppm and self.quantum * _MILLION * (pcpus + len(domains)) > LARGEST:
            return f"a quantum of {DURATION.format(self.quantum)} is too long to account for reservations"
        return ""

    def contradiction(self, domain: DomainScheduling) -> str:
        """Refuse a limit below the reservation."""
        if 0 < domain.limit < domain.reservation:
            return f"its limit of {domain.limit:g} % of a pCPU is below its reservation of {domain.reservation:g} %"
        return ""

    def own_pcpu(self, engine: Engine, vcpu: int) -> int:
        """Nothing is decided on a host where every vCPU has a pCPU of its own, and no limit."""
        esxi_host = engine.rows(esxi_hosts)[engine.rows(vcpus)[vcpu].host]
        return only_pcpu(engine, vcpu) if esxi_host.lets_run else 0

    def _open(self, engine: Engine, domain: int) -> None:
        machine, entitlement = engine.rows(machines)[domain], engine.rows(entitlements)[domain]
        machine.reservation_ppm = _ppm(float(entitlement.reservation))
        machine.limit_ppm = _ppm(float(entitlement.limit))
        machine.whole_quota_ns = min(int(machine.limit_ppm) * self.limit_period // _MILLION, LARGEST)
        machine.quota_ns = machine.whole_quota_ns
        machine.shares = int(entitlement.shares) or _SHARES_PER_VCPU * int(engine.rows(domains)[domain].vcpus)


def _ppm(percent: float) -> int:
    """Return a share of a pCPU in millionths."""
    return round(percent * 10_000)


@esxi.implements(scheduler.attach)
def attach(sim: Sim, host: Host) -> None:
    """Refill the limits' quotas periodically, if any machine has a limit."""
    for vcpu in vcpus.span(sim, host.first_vcpu, host.vcpus):
        if machines(sim)[vcpu.domain].limit_ppm != 0:
            plan_refill(sim, host)
            return


@esxi.implements(shared_queue.urgency)
def urgency_of(sim: Sim, host: Host, vcpu: Vcpu) -> tuple[int, int]:
    """Machines behind their reservation first, the one that is owed most first of all; then by virtual time."""
    machine = machines(sim)[vcpu.domain]
    if machine.reservation_ppm > 0:
        grow_reserve(sim, host, machine)
        if machine.reserve > 0:
            return 0, -machine.reserve
    return 1, machine.virtual_time


@esxi.implements(shared_queue.eligible)
def is_eligible(sim: Sim, host: Host, vcpu: Vcpu) -> bool:
    """Tell whether its machine has some of its limit left."""
    machine = machines(sim)[vcpu.domain]
    return machine.limit_ppm == 0 or machine.quota_ns > 0


@esxi.implements(shared_queue.place_of_another)
def place_of_another(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Compare what machines have consumed up to now, also where the vCPU may not run."""
    charge_all(sim, host)
    return shared_queue.place_by_urgency(sim, host, vcpu, True)


def charge_all(sim: Sim, host: Host, esxi_host: EsxiHost = BESIDE) -> None:
    if esxi_host.charges_all and not esxi_host.lets_run:
        sync_running(sim, host)


@esxi.implements(scheduler.choose)
def choose(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Choose by what machines have consumed up to now."""
    charge_all(sim, host)
    return shared_queue.choose(sim, host, pcpu)


@esxi.implements(shared_queue.longest_ns)
def slice_of(sim: Sim, host: Host, vcpu: Vcpu, esxi_host: EsxiHost = BESIDE) -> int:
    """One quantum."""
    return IDLE_FOREVER if esxi_host.lets_run else esxi_host.quantum_ns


@esxi.implements(shared_queue.on_wake)
def prepare(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Start level with the others, just before those who wait there, with a quantum's worth of the reservation."""
    # Asked before this vCPU is queued, so that it does not count itself.
    if is_active(sim, domains(sim)[vcpu.domain]):
        return
    machine = machines(sim)[vcpu.domain]
    machine.virtual_time = max(machine.virtual_time, level_for(sim, host, vcpu) - 1)
    if machine.reservation_ppm != 0:
        grow_reserve(sim, host, machine)
        machine.reserve = min(machine.reserve, machine.reservation_ppm * esxi_hosts(sim)[host.row].quantum_ns)


def level_for(sim: Sim, host: Host, vcpu: Vcpu) -> int:
    """Return the level of the others on the pCPUs that a vCPU may use."""
    level = 0
    for pcpu in pcpus.span(sim, host.first_pcpu, host.pcpus):
        if esxi_pcpus(sim)[pcpu.row].floor > level and scheduler.may_run(sim, vcpu, pcpu):
            level = esxi_pcpus(sim)[pcpu.row].floor
    return level


def is_active(sim: Sim, domain: Domain) -> bool:
    """Tell whether any vCPU of a machine runs or waits."""
    for queue_vcpu in shared_queue.queue_vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if queue_vcpu.current_on != 0 or queue_vcpu.is_waiting:
            return True
    return False


@esxi.implements(shared_queue.on_chosen)
def take_note(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Let the level rise to the one who runs for its shares; look when its machine's limit will be used up."""
    if machines(sim)[vcpu.domain].limit_ppm != 0:
        plan_used_up(sim, domains(sim)[vcpu.domain])
    rank, virtual_time = urgency_of(sim, host, vcpu)
    if rank == 1:
        esxi_pcpu = esxi_pcpus(sim)[shared_queue.queue_vcpus(sim)[vcpu.row].current_on]
        esxi_pcpu.floor = max(esxi_pcpu.floor, virtual_time)


def plan_used_up(sim: Sim, domain: Domain, machine: Machine = BESIDE) -> None:
    """Plan to look at a machine's limit when its vCPUs that run now have used it up; each that comes plans it anew."""
    running = 0
    for queue_vcpu in shared_queue.queue_vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if queue_vcpu.current_on != 0:
            running += 1
    if running > 0:
        at_ns = sim.now_ns + max((machine.quota_ns + running - 1) // running, 1)
        machine.used_up = at(sim, at_ns, EventKind.ACCOUNTING, domain.first_vcpu, on_used_up, domain.row)


@timer(machines, "used_up")
def on_used_up(sim: Sim, domain: Domain, machine: Machine = BESIDE) -> None:
    """Stop the vCPUs of a machine that has used up its limit; some of it is left where one has slept or switched."""
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        sync(sim, vcpu)
    if machine.quota_ns > 0:
        plan_used_up(sim, domain)
        return
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if vcpu.state == RUNNING:
            request_reschedule(sim, pcpus(sim)[vcpu.pcpu])


@esxi.implements(scheduler.charge)
def charge(sim: Sim, host: Host, vcpu: Vcpu, ran_ns: int) -> None:
    """Advance the machine's virtual time, empty its reserve and its quota."""
    machine = machines(sim)[vcpu.domain]
    machine.virtual_time += scaled(ran_ns, machine.shares)
    if machine.virtual_time > LARGEST:
        fail(sim, _TOO_LONG)
    if machine.reservation_ppm != 0:
        # A run is no longer than a quantum, and install() bounds a quantum times a million.
        machine.reserve -= ran_ns * _MILLION
        grow_reserve(sim, host, machine)
        machine.reserve = max(machine.reserve, -esxi_hosts(sim)[host.row].quantum_ns * _MILLION)
    if machine.limit_ppm != 0:
        machine.quota_ns -= ran_ns


def grow_reserve(sim: Sim, host: Host, machine: Machine) -> None:
    """Bring the reservation's account up to now."""
    rate = machine.reservation_ppm
    most = esxi_hosts(sim)[host.row].most_reserve
    passed_ns = sim.now_ns - machine.reserve_at_ns
    machine.reserve_at_ns = sim.now_ns
    # Without the test, the product would leave 64 bits for a machine that has idled for hours.
    if passed_ns >= (most - machine.reserve) // rate + 1:
        machine.reserve = most
    else:
        machine.reserve = min(machine.reserve + rate * passed_ns, most)


def plan_refill(sim: Sim, host: Host) -> None:
    """Plan the end of the limits' period."""
    period_ns = esxi_hosts(sim)[host.row].limit_period_ns
    at(sim, sim.now_ns + period_ns, EventKind.ACCOUNTING, 0, on_refill, host.row)


@event
def on_refill(sim: Sim, host: Host) -> None:
    """Begin a period of the limits: let those go on that theirs has held."""
    # What has run is of the old period.
    sync_running(sim, host)
    row = host.first_vcpu
    while row < host.first_vcpu + host.vcpus:
        domain = domains(sim)[vcpus(sim)[row].domain]
        if machines(sim)[domain.row].limit_ppm != 0:
            refill(sim, host, domain)
        row += domain.vcpus
    shared_queue.place_held(sim, host)
    plan_refill(sim, host)


def refill(sim: Sim, host: Host, domain: Domain, machine: Machine = BESIDE) -> None:
    """Give a machine its quota, less what it owes, and hold its waiting vCPUs if it had none left."""
    was_held = machine.quota_ns <= 0
    machine.quota_ns = min(machine.quota_ns + machine.whole_quota_ns, machine.whole_quota_ns)
    if not was_held or machine.quota_ns <= 0:
        return
    level = level_for(sim, host, vcpus(sim)[domain.first_vcpu])
    most_behind = scaled(esxi_hosts(sim)[host.row].quantum_ns, machine.shares)
    machine.virtual_time = max(machine.virtual_time, level - most_behind)
    for vcpu in vcpus.span(sim, domain.first_vcpu, domain.vcpus):
        if shared_queue.queue_vcpus(sim)[vcpu.row].is_waiting:
            shared_queue.hold(sim, vcpu)
