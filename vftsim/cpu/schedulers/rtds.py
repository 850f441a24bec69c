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

from dataclasses import dataclass
from typing import Literal

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.schedulers._deadline_queue import DeadlineQueuePolicy
from vftsim.cpu.schedulers._shared_queue import Key
from vftsim.cpu.vcpu import Vcpu
from vftsim.engine import Alarm
from vftsim.errors import UsageError

_MS = 1_000_000
_DEFAULT_PERIOD_NS = 10 * _MS
_DEFAULT_BUDGET_NS = 4 * _MS
_SHORTEST_NS = 10_000


@SCHEDULERS.register
class Rtds(SchedulerSpec):
    """Xen's RTDS; period, budget and extratime are the domains'."""

    kind: Literal["rtds"] = "rtds"

    def build(self) -> "RtdsScheduler":
        """Make the policy."""
        return RtdsScheduler()


@dataclass(slots=True, eq=False)
class _Record:
    vcpu: Vcpu
    period_ns: int
    budget_ns: int
    extratime: bool
    deadline_ns: int = 0
    left_ns: int = 0
    level: int = 0
    serial: int = 0
    since_ns: int = 0
    alarm: Alarm | None = None


class RtdsScheduler(DeadlineQueuePolicy[_Record]):
    """The policy; counters: depletions."""

    def make_record(self, vcpu: Vcpu) -> _Record:
        """Check and take over the vCPU's period and budget."""
        domain = vcpu.domain
        period_ns = domain.period or _DEFAULT_PERIOD_NS
        budget_ns = domain.budget or _DEFAULT_BUDGET_NS
        if not _SHORTEST_NS <= budget_ns <= period_ns:
            raise UsageError(
                f"rtds needs 10 us <= budget <= period, got a budget of {budget_ns} ns and a period of {period_ns} ns"
            )
        return _Record(vcpu, period_ns, budget_ns, domain.extratime is not False)

    def key(self, record: _Record, now_ns: int) -> Key:
        """Level, then deadline."""
        return (record.level, record.deadline_ns, record.serial)

    def eligible(self, record: _Record) -> bool:
        """Whether it has budget."""
        return record.left_ns > 0

    def slice_ns(self, record: _Record, now_ns: int) -> int:
        """Return what is left of its budget."""
        return record.left_ns

    def priority(self, vcpu: Vcpu) -> str:
        """Name the level."""
        return f"level {vcpu.sched.level}"

    def on_wake(self, record: _Record, now_ns: int) -> None:
        """Start a new period if the last one is over."""
        if now_ns >= record.deadline_ns:
            self.begin_period(record, now_ns)
        elif record.alarm is None:
            self.plan(record)

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Use up budget; with extra time go on one level lower."""
        record: _Record = vcpu.sched
        record.left_ns -= ran_ns
        if record.left_ns <= 0:
            self.count("depletions")
            record.left_ns = 0
            if record.extratime:
                self._set_level(record, record.level + 1, now_ns)
                record.left_ns = record.budget_ns

    def refill(self, record: _Record, now_ns: int) -> None:
        """Give the full budget until the next multiple of the period."""
        periods = (now_ns - record.deadline_ns) // record.period_ns + 1
        record.deadline_ns += periods * record.period_ns
        record.left_ns = record.budget_ns
        self._set_level(record, 0, now_ns)

    def _set_level(self, record: _Record, level: int, now_ns: int) -> None:
        if record.level != level:
            record.level = level
            if self.host.observer is not None:
                self.host.observer.on_priority(record.vcpu, now_ns, f"level {level}")
