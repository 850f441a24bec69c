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

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import HostView, PeriodicTimer
from vftsim.cpu.schedulers._budget import BudgetPool, draw, give_back, has_budget
from vftsim.cpu.schedulers._shared_queue import Key, SharedQueuePolicy
from vftsim.cpu.vcpu import Vcpu
from vftsim.engine import EventKind
from vftsim.spec.units import DurationNs, PositiveDurationNs

_MS = 1_000_000
CREDIT_INIT = 10 * _MS
_CREDIT_FLOOR = -CREDIT_INIT
_CARRY_OVER = _MS // 2
_SHORTEST_NS = _MS // 2
_LONGEST_NS = 10 * _MS
_TOLERANCE_NS = 50_000


@SCHEDULERS.register
class Credit2(SchedulerSpec):
    """Xen's credit2 scheduler."""

    kind: Literal["credit2"] = "credit2"
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
    cap_period: PositiveDurationNs = Field(
        10 * _MS,
        description="Period of the cap's budget (credit2_cap_period_ms). Default 10 ms: Xen's.",
    )

    def build(self) -> "Credit2Scheduler":
        """Make the policy."""
        return Credit2Scheduler(self)


@dataclass(slots=True, eq=False)
class _Record:
    vcpu: Vcpu
    weight: int
    pool: BudgetPool | None
    credit: int = CREDIT_INIT
    residue: int = 0
    drawn_ns: int = 0
    serial: int = 0
    since_ns: int = 0


class Credit2Scheduler(SharedQueuePolicy[_Record]):
    """The policy; counters: resets, rate_limited."""

    def __init__(self, parameters: Credit2) -> None:
        super().__init__()
        self.rate_limit_ns = parameters.rate_limit
        self.resistance = parameters.migration_resistance
        self.cap_period_ns = parameters.cap_period

    def attach(self, host: HostView) -> None:
        """Find the highest weight, by which all burn."""
        self._pools: dict[int, BudgetPool] = {}
        self._sizes: dict[int, int] = {}
        for vcpu in host.vcpus:
            self._sizes[id(vcpu.domain)] = self._sizes.get(id(vcpu.domain), 0) + 1
        super().attach(host)
        self.records: list[_Record] = [vcpu.sched for vcpu in host.vcpus]
        self._highest = max((r.weight for r in self.records), default=1)

    def timers(self) -> Sequence[PeriodicTimer]:
        """Refill the capped domains' budgets, if there are any."""
        if not self._pools:
            return ()
        period_ns = self.cap_period_ns
        return (PeriodicTimer(period_ns, period_ns, EventKind.ACCOUNTING, 0, self._refill),)

    def make_record(self, vcpu: Vcpu) -> _Record:
        """Start with the initial credit and a share of the domain's budget."""
        domain = vcpu.domain
        pool = self._pools.get(id(domain))
        if pool is None and domain.cap > 0:
            budget_ns = max(round(domain.cap * self.cap_period_ns / 100), 1)
            portion_ns = max(budget_ns // self._sizes[id(domain)], _SHORTEST_NS)
            pool = self._pools[id(domain)] = BudgetPool(budget_ns, portion_ns, budget_ns)
        return _Record(vcpu, domain.weight, pool)

    def key(self, record: _Record, now_ns: int) -> Key:
        """Most credit first."""
        return (-record.credit, record.serial)

    def eligible(self, record: _Record) -> bool:
        """Whether its domain's cap leaves it something."""
        return has_budget(record)

    def preempts(self, newcomer: _Record, running: _Record, now_ns: int) -> bool:
        """Whether it has more credit, and the other one's rate limit is over or nearly so."""
        if now_ns - running.since_ns < self.rate_limit_ns - _TOLERANCE_NS:
            return False
        moves = newcomer.vcpu.last_pcpu != running.vcpu.pcpu
        return newcomer.credit - (self.resistance if moves else 0) > running.credit

    def continues_ns(self, running: _Record, now_ns: int) -> int:
        """Return the rest of the rate limit."""
        left_ns = self.rate_limit_ns - (now_ns - running.since_ns)
        if left_ns <= _TOLERANCE_NS or (running.pool is not None and running.drawn_ns <= 0):
            return 0
        self.count("rate_limited")
        return left_ns if running.pool is None else min(left_ns, running.drawn_ns)

    def on_chosen(self, record: _Record, now_ns: int) -> None:
        """Draw budget; hand out credit when the best has none."""
        draw(record)
        if record.credit <= 0:
            self._reset(record)

    def slice_ns(self, record: _Record, now_ns: int) -> int:
        """Return the time until its credit reaches 0 or that of the first one waiting."""
        rivals = [r.credit for r in self.waiting if self.eligible(r)]
        until = max(0, max(rivals, default=0))
        time_ns = (record.credit - until) * record.weight // self._highest
        time_ns = min(max(time_ns, _SHORTEST_NS, self.rate_limit_ns), _LONGEST_NS)
        return time_ns if record.pool is None else min(time_ns, record.drawn_ns)

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Give unused budget back."""
        super().block(vcpu, now_ns)
        give_back(vcpu.sched, 0)

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Burn credit; what is less than one credit waits."""
        record: _Record = vcpu.sched
        burnt, record.residue = divmod(ran_ns * self._highest + record.residue, record.weight)
        record.credit = max(record.credit - burnt, _CREDIT_FLOOR)
        if record.pool is not None:
            record.drawn_ns -= ran_ns

    def _most_urgent(self, pcpu: int, now_ns: int) -> _Record | None:
        """Like the base, but one that was elsewhere must be ahead of the best from here by the resistance."""
        best = super()._most_urgent(pcpu, now_ns)
        if best is None or best.vcpu.last_pcpu == pcpu:
            return best
        here = [r for r in self.waiting if r.vcpu.last_pcpu == pcpu and pcpu in r.vcpu.affinity and self.eligible(r)]
        local = min(here, key=lambda r: self.key(r, now_ns), default=None)
        return local if local is not None and local.credit + self.resistance > best.credit else best

    def _reset(self, chosen: _Record) -> None:
        self.count("resets")
        for running in self.current:
            if running is not None and running is not chosen:
                self.host.sync(running.vcpu)
        added = CREDIT_INIT * (1 - chosen.credit // CREDIT_INIT if chosen.credit <= _CREDIT_FLOOR else 1)
        for record in self.records:
            record.credit = min(record.credit + added, CREDIT_INIT + _CARRY_OVER)

    def _refill(self, now_ns: int) -> Iterable[int]:
        held = [r for r in self.waiting if not self.eligible(r)]
        for pool in self._pools.values():
            pool.refill()
        return self.place_all(held, now_ns)
