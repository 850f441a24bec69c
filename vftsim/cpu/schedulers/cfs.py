"""Linux CFS as KVM hosts run it: every vCPU a thread, fair by virtual run time.

Rules (Linux ``kernel/sched/fair.c`` and ``core.c``, before EEVDF replaced it in 6.6):

* Virtual run time advances by CPU time x 1024 / weight; the smallest runs next.  A nice level is worth
  a factor of about 1.25 (1024 at nice 0); a domain with ``shares`` splits them over its vCPUs.
* Each gets its part by weight of a scheduling period: 6 ms x scale, or 0.75 ms x scale for each
  runnable thread of a pCPU when there are more than 8; scale = 1 + log2(pCPUs, at most 8).
* A waking thread is placed no further back than half a latency before the least virtual run time,
  takes an idle pCPU, else pre-empts if it is behind the running one by more than the wake-up
  granularity (1 ms x scale).
* Bandwidth control: a domain has ``quota`` in every ``period``, handed to its vCPUs in 5 ms portions;
  without it they are throttled until the next period.

As modelled: one run queue for all pCPUs, which is what load balancing between the real ones aims at;
slices end exactly, not at the next timer tick; groups weigh by their vCPUs, not by load per pCPU.
Left out: cache-hot migration cost, NUMA balancing, autogroups, EEVDF.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import HostView, PeriodicTimer
from vftsim.cpu.schedulers._budget import BudgetPool, draw, give_back, has_budget
from vftsim.cpu.schedulers._shared_queue import Key, SharedQueuePolicy
from vftsim.cpu.vcpu import Vcpu
from vftsim.engine import EventKind
from vftsim.spec.units import PositiveDurationNs

_MS = 1_000_000
_NICE_0 = 1024
_CROWD = 8
_KEPT_NS = _MS
_DEFAULT_PERIOD_NS = 100 * _MS


def nice_weight(nice: int) -> int:
    """Weight of a nice level: 1024 at 0, a factor of 1.25 for each step."""
    return max(round(_NICE_0 / 1.25**nice), 1)


@SCHEDULERS.register
class Cfs(SchedulerSpec):
    """Linux CFS under KVM."""

    kind: Literal["cfs"] = "cfs"
    latency: PositiveDurationNs = Field(
        6 * _MS,
        description="Period in which everyone runs once, before scaling (sched_latency_ns). Default 6 ms: Linux.",
    )
    minimum_granularity: PositiveDurationNs = Field(
        750_000,
        description="Shortest slice, before scaling (sched_min_granularity_ns). Default 0.75 ms: Linux.",
    )
    wakeup_granularity: PositiveDurationNs = Field(
        _MS,
        description="Lead a waking thread needs to pre-empt, before scaling (sched_wakeup_granularity_ns). "
        "Default 1 ms: Linux.",
    )
    scaling: bool = Field(
        True,
        description="Whether the three grow with 1 + log2(pCPUs, at most 8), as Linux does by default.",
    )
    bandwidth_slice: PositiveDurationNs = Field(
        5 * _MS,
        description="Portion of the quota a vCPU draws (sched_cfs_bandwidth_slice_us). Default 5 ms: Linux.",
    )

    def build(self) -> "CfsScheduler":
        """Make the policy."""
        return CfsScheduler(self)


@dataclass(slots=True, eq=False)
class _Record:
    vcpu: Vcpu
    weight: int
    pool: BudgetPool | None
    virtual_ns: int = 0
    residue: int = 0
    drawn_ns: int = 0
    serial: int = 0
    since_ns: int = 0


class CfsScheduler(SharedQueuePolicy[_Record]):
    """The policy."""

    def __init__(self, parameters: Cfs) -> None:
        super().__init__()
        self.parameters = parameters

    def attach(self, host: HostView) -> None:
        """Scale the constants to the host."""
        scale = min(host.pcpus, 8).bit_length() if self.parameters.scaling else 1
        self.latency_ns = self.parameters.latency * scale
        self.minimum_ns = self.parameters.minimum_granularity * scale
        self.wakeup_ns = self.parameters.wakeup_granularity * scale
        self._least_ns = 0
        self._pools: dict[int, tuple[BudgetPool, int]] = {}
        self._sizes: dict[int, int] = {}
        for vcpu in host.vcpus:
            self._sizes[id(vcpu.domain)] = self._sizes.get(id(vcpu.domain), 0) + 1
        super().attach(host)

    def timers(self) -> list[PeriodicTimer]:
        """Refill each domain's quota in its own period."""
        return [
            PeriodicTimer(period_ns, period_ns, EventKind.ACCOUNTING, number, self._refill_of(pool))
            for number, (pool, period_ns) in enumerate(self._pools.values())
        ]

    def make_record(self, vcpu: Vcpu) -> _Record:
        """Weigh the thread and join it to its domain's quota."""
        domain = vcpu.domain
        weight = nice_weight(domain.nice)
        if domain.shares is not None:
            weight = max(domain.shares // self._sizes[id(domain)], 2)
        pool = None
        if domain.quota:
            fresh = BudgetPool(domain.quota, self.parameters.bandwidth_slice, domain.quota)
            pool, _ = self._pools.setdefault(id(domain), (fresh, domain.period or _DEFAULT_PERIOD_NS))
        return _Record(vcpu, weight, pool)

    def key(self, record: _Record, now_ns: int) -> Key:
        """Least virtual run time first."""
        return (record.virtual_ns, record.serial)

    def eligible(self, record: _Record) -> bool:
        """Whether it is not throttled."""
        return has_budget(record)

    def preempts(self, newcomer: _Record, running: _Record, now_ns: int) -> bool:
        """Whether it is behind by more than the wake-up granularity."""
        granularity_ns = self.wakeup_ns * _NICE_0 // newcomer.weight
        return running.virtual_ns - newcomer.virtual_ns > granularity_ns

    def on_wake(self, record: _Record, now_ns: int) -> None:
        """Let a sleeper keep at most half a latency of lead."""
        self._advance()
        record.virtual_ns = max(record.virtual_ns, self._least_ns - self.latency_ns // 2)

    def on_chosen(self, record: _Record, now_ns: int) -> None:
        """Draw quota."""
        draw(record)

    def slice_ns(self, record: _Record, now_ns: int) -> int:
        """Return its part of the period by weight, at least the minimum granularity."""
        runnable = [r for r in (*self.waiting, *self.current) if r is not None and self.eligible(r)]
        pcpus = self.host.pcpus
        crowd = -(-len(runnable) // pcpus)
        period_ns = self.latency_ns if crowd <= _CROWD else crowd * self.minimum_ns
        weight = max(sum(r.weight for r in runnable) // pcpus, record.weight)
        time_ns = max(period_ns * record.weight // weight, self.minimum_ns)
        return time_ns if record.pool is None else min(time_ns, record.drawn_ns)

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Give back all of the quota drawn but 1 ms, as Linux does."""
        super().block(vcpu, now_ns)
        give_back(vcpu.sched, _KEPT_NS)

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Advance virtual run time, spend quota."""
        record: _Record = vcpu.sched
        passed_ns, record.residue = divmod(ran_ns * _NICE_0 + record.residue, record.weight)
        record.virtual_ns += passed_ns
        if record.pool is not None:
            record.drawn_ns -= ran_ns

    def _advance(self) -> None:
        """Bring the least virtual run time up to date; it never goes back."""
        for running in self.current:
            if running is not None:
                self.host.sync(running.vcpu)
        active = [r.virtual_ns for r in (*self.waiting, *self.current) if r is not None and self.eligible(r)]
        if active:
            self._least_ns = max(self._least_ns, min(active))

    def _refill_of(self, pool: BudgetPool) -> Callable[[int], Iterable[int]]:
        def refill(now_ns: int) -> Iterable[int]:
            held = [r for r in self.waiting if r.pool is pool and not self.eligible(r)]
            pool.refill()
            self._advance()
            return self.place_all(held, now_ns)

        return refill
