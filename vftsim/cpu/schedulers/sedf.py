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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import HostView, home_pcpus
from vftsim.cpu.schedulers._deadline_queue import DeadlineQueuePolicy
from vftsim.cpu.schedulers._shared_queue import Key
from vftsim.cpu.vcpu import Vcpu
from vftsim.engine import Alarm
from vftsim.errors import UsageError
from vftsim.spec.units import PositiveDurationNs

_MS = 1_000_000
_DEFAULT_PERIOD_NS = 100 * _MS
_SCALE = 1 << 20


@SCHEDULERS.register
class Sedf(SchedulerSpec):
    """Xen's sEDF; period, slice, latency, extratime and weight are the domains'."""

    kind: Literal["sedf"] = "sedf"
    extra_quantum: PositiveDurationNs = Field(
        500_000,
        description="Piece in which extra time is given away. Default 0.5 ms: sched_sedf.c.",
    )

    def build(self) -> "SedfScheduler":
        """Make the policy."""
        return SedfScheduler(self)


@dataclass(slots=True, eq=False)
class _Record:
    vcpu: Vcpu
    home: int
    full_period_ns: int
    slice_ns: int
    latency_ns: int
    extratime: bool
    weight: int
    period_ns: int
    deadline_ns: int = 0
    left_ns: int = 0
    on_extra: bool = False
    score: int = 0
    serial: int = 0
    since_ns: int = 0
    alarm: Alarm | None = None


class SedfScheduler(DeadlineQueuePolicy[_Record]):
    """The policy; its one queue is filtered by each vCPU's own pCPU."""

    def __init__(self, parameters: Sedf) -> None:
        super().__init__()
        self.extra_quantum_ns = parameters.extra_quantum

    def attach(self, host: HostView) -> None:
        """Give each vCPU its pCPU; refuse slices that do not fit on it."""
        self._homes = home_pcpus(host.vcpus, host.pcpus)
        self._level = [0] * host.pcpus
        super().attach(host)
        for pcpu in range(host.pcpus):
            here: list[_Record] = [v.sched for v in host.vcpus if v.sched.home == pcpu]
            claimed = sum(r.slice_ns / r.full_period_ns for r in here)
            if claimed > 1 + 1e-9:
                raise UsageError(
                    f"sedf slices of {100 * claimed:.4g} % of a pCPU do not fit on pCPU {pcpu}; "
                    "shorten slices or spread the vCPUs by affinity"
                )

    def make_record(self, vcpu: Vcpu) -> _Record:
        """Take over the domain's period and slice."""
        domain = vcpu.domain
        period_ns = domain.period or _DEFAULT_PERIOD_NS
        home = self._homes[vcpu.index]
        extra = domain.extratime is not False
        return _Record(
            vcpu, home, period_ns, domain.slice, domain.latency, extra, domain.weight, period_ns
        )  # fmt: skip

    def key(self, record: _Record, now_ns: int) -> Key:
        """Earliest deadline first, then extra time by who has had least of it."""
        if record.left_ns > 0:
            return (0, record.deadline_ns, record.serial)
        return (1, record.score, record.serial)

    def allowed(self, record: _Record) -> Iterable[int]:
        """Return its own pCPU only."""
        return (record.home,)

    def eligible(self, record: _Record) -> bool:
        """Whether it has some slice left or may use extra time."""
        return record.left_ns > 0 or record.extratime

    def preempts(self, newcomer: _Record, running: _Record, now_ns: int) -> bool:
        """Whether it has an earlier deadline; nobody pre-empts for extra time."""
        return newcomer.left_ns > 0 and super().preempts(newcomer, running, now_ns)

    def priority(self, vcpu: Vcpu) -> str:
        """Name the kind of time it runs on."""
        return "slice" if vcpu.sched.left_ns > 0 else "extra"

    def slice_ns(self, record: _Record, now_ns: int) -> int:
        """Return the rest of its slice, or one piece of extra time."""
        return self.extra_quantum_ns if record.on_extra else record.left_ns

    def on_chosen(self, record: _Record, now_ns: int) -> None:
        """Remember what kind of time it runs on."""
        record.on_extra = record.left_ns <= 0
        if record.on_extra:
            self._level[record.home] = max(self._level[record.home], record.score)

    def on_wake(self, record: _Record, now_ns: int) -> None:
        """Begin a period if the last one is over."""
        record.score = max(record.score, self._level[record.home])
        if not record.slice_ns:
            return
        if now_ns >= record.deadline_ns:
            record.period_ns = min(record.latency_ns or record.full_period_ns, record.full_period_ns)
            self.begin_period(record, now_ns)
        else:
            self.plan(record)

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Use up slice, or count extra time by weight."""
        record: _Record = vcpu.sched
        if record.on_extra:
            record.score += ran_ns * _SCALE // record.weight
        else:
            record.left_ns -= ran_ns

    def refill(self, record: _Record, now_ns: int) -> None:
        """Give the slice of a period that begins now."""
        record.deadline_ns = now_ns + record.period_ns
        record.left_ns = record.slice_ns * record.period_ns // record.full_period_ns

    def on_deadline(self, record: _Record) -> None:
        """Let a period shortened by a latency hint grow back."""
        record.period_ns = min(2 * record.period_ns, record.full_period_ns)
