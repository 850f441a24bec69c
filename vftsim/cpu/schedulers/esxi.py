"""VMware ESX/ESXi: proportional shares between a reservation and a limit.

Rules (vSphere Resource Management Guide; VMware, "The CPU Scheduler in vSphere 5.1"):

* A virtual machine is entitled to CPU time in proportion to its shares (High, Normal, Low = 2000, 1000,
  500 for each vCPU), but to no less than its reservation and no more than its limit.
* What a machine does not use of its reservation is used by others.  The limit holds on an idle host too.
* The vCPU whose machine has consumed least relative to its entitlement runs next, for one quantum.

As modelled: a machine's virtual time advances by CPU time / shares; the smallest runs first, and one
that comes back from idling or from its limit starts level with the others (start-time fair queueing).
Machines that are behind their reservation go before all others: a reservation fills an account at its
rate, up to one quantum's worth, and running empties it.  A limit is a quota for each period, an overrun
is owed in the next one.  A waking vCPU takes an idle pCPU, else pre-empts the vCPU furthest ahead.

Admission control is :meth:`EsxiScheduler.attach` refusing reservations beyond the host.
Assumption: the limit's period equals the quantum's default; the product does not document it.
Left out: relaxed co-scheduling of multiprocessor guests, resource pools, NUMA and cache placement.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from pydantic import Field

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import HostView, PeriodicTimer
from vftsim.cpu.schedulers._shared_queue import Key, SharedQueuePolicy
from vftsim.cpu.vcpu import Vcpu
from vftsim.engine import EventKind
from vftsim.errors import UsageError
from vftsim.spec.units import PositiveDurationNs

_MS = 1_000_000
_MILLION = 1_000_000
_SCALE = 1 << 20
_SHARES_PER_VCPU = 1000


@SCHEDULERS.register
class Esxi(SchedulerSpec):
    """VMware ESX/ESXi."""

    kind: Literal["esxi"] = "esxi"
    quantum: PositiveDurationNs = Field(
        50 * _MS,
        description="Time a vCPU runs before the next choice. Default 50 ms, as most sources have it (some "
        "say 10 to 20 ms).",
    )
    limit_period: PositiveDurationNs = Field(
        50 * _MS,
        description="Period over which a limit is enforced. Default 50 ms: Assumption, as VMware documents none.",
    )

    def build(self) -> "EsxiScheduler":
        """Make the policy."""
        return EsxiScheduler(self)


@dataclass(slots=True, eq=False)
class Machine:
    """The accounts of a virtual machine; rates in millionths of a pCPU, reserve in ns times a million."""

    shares: int
    reservation_ppm: int
    limit_ppm: int
    virtual_time: int = 0
    reserve: int = 0
    reserve_at_ns: int = 0
    quota_ns: int = 0
    members: list["_Record"] = field(default_factory=list)


@dataclass(slots=True, eq=False)
class _Record:
    vcpu: Vcpu
    machine: Machine
    serial: int = 0
    since_ns: int = 0


class EsxiScheduler(SharedQueuePolicy[_Record]):
    """The policy."""

    def __init__(self, parameters: Esxi) -> None:
        super().__init__()
        self.quantum_ns = parameters.quantum
        self.limit_period_ns = parameters.limit_period

    def attach(self, host: HostView) -> None:
        """Open an account for each machine; refuse reservations that the host cannot keep."""
        self.machines: dict[int, Machine] = {}
        self._floor = 0
        super().attach(host)
        reserved_ppm = sum(m.reservation_ppm for m in self.machines.values())
        if reserved_ppm > host.pcpus * _MILLION:
            raise UsageError(
                f"reservations of {reserved_ppm / 10_000:g} % of a pCPU exceed the host's {host.pcpus * 100} %"
            )

    def timers(self) -> Sequence[PeriodicTimer]:
        """Refill the limits' quotas periodically, if any machine has a limit."""
        if not any(m.limit_ppm for m in self.machines.values()):
            return ()
        period_ns = self.limit_period_ns
        return (PeriodicTimer(period_ns, period_ns, EventKind.ACCOUNTING, 0, self._refill),)

    def make_record(self, vcpu: Vcpu) -> _Record:
        """Join the vCPU to its machine's account."""
        domain = vcpu.domain
        machine = self.machines.get(id(domain))
        if machine is None:
            machine = Machine(0, round(domain.reservation * 10_000), round(domain.limit * 10_000))
            machine.quota_ns = self._quota_ns(machine)
            self.machines[id(domain)] = machine
        record = _Record(vcpu, machine)
        machine.members.append(record)
        machine.shares = domain.shares or _SHARES_PER_VCPU * len(machine.members)
        return record

    def key(self, record: _Record, now_ns: int) -> Key:
        """Machines behind their reservation first, then by virtual time."""
        machine = record.machine
        behind = machine.reservation_ppm > 0 and self._reserve(machine, now_ns) > 0
        return (0 if behind else 1, machine.virtual_time, record.serial)

    def eligible(self, record: _Record) -> bool:
        """Whether its machine has some of its limit left."""
        return not record.machine.limit_ppm or record.machine.quota_ns > 0

    def slice_ns(self, record: _Record, now_ns: int) -> int:
        """One quantum, or what the limit leaves of it."""
        machine = record.machine
        if not machine.limit_ppm:
            return self.quantum_ns
        running = sum(r in self.current for r in machine.members)
        return min(self.quantum_ns, max(machine.quota_ns // running, 1))

    def on_wake(self, record: _Record, now_ns: int) -> None:
        """Start level with the others, just before those who wait there."""
        machine = record.machine
        if not any(r in self.current or r in self.waiting for r in machine.members):
            machine.virtual_time = max(machine.virtual_time, self._floor - 1)

    def on_chosen(self, record: _Record, now_ns: int) -> None:
        """Let the level rise to the one who runs for its shares."""
        if self.key(record, now_ns)[0] == 1:
            self._floor = max(self._floor, record.machine.virtual_time)

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Advance the machine's virtual time, empty its reserve and its quota."""
        machine: Machine = vcpu.sched.machine
        machine.virtual_time += ran_ns * _SCALE // machine.shares
        if machine.reservation_ppm:
            machine.reserve -= ran_ns * _MILLION
            machine.reserve = max(self._reserve(machine, now_ns), -self.quantum_ns * _MILLION)
        if machine.limit_ppm:
            machine.quota_ns -= ran_ns

    def _reserve(self, machine: Machine, now_ns: int) -> int:
        """Bring the reservation's account up to now."""
        grown = machine.reserve + machine.reservation_ppm * (now_ns - machine.reserve_at_ns)
        machine.reserve = min(grown, machine.reservation_ppm * self.quantum_ns)
        machine.reserve_at_ns = now_ns
        return machine.reserve

    def _quota_ns(self, machine: Machine) -> int:
        return machine.limit_ppm * self.limit_period_ns // _MILLION

    def _refill(self, now_ns: int) -> Iterable[int]:
        freed: list[_Record] = []
        for machine in self.machines.values():
            if not machine.limit_ppm:
                continue
            was_held = machine.quota_ns <= 0
            quota_ns = self._quota_ns(machine)
            machine.quota_ns = min(machine.quota_ns + quota_ns, quota_ns)
            if was_held and machine.quota_ns > 0:
                machine.virtual_time = max(machine.virtual_time, self._floor)
                freed += [r for r in machine.members if r in self.waiting]
        return self.place_all(freed, now_ns)
