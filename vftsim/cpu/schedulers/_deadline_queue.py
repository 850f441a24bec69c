"""What the earliest-deadline-first policies have in common: periods that end in a refill.

A vCPU has CPU time for a period, whose end is its deadline.  While it is awake an alarm begins its next
period at the deadline; a running vCPU then makes its pCPU choose again, because its deadline is later and
its time another, and a waiting one looks for a place.  A vCPU that blocks is refilled no more: its next wake
sees to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from vftsim.cpu.schedulers._shared_queue import Entry, SharedQueuePolicy
from vftsim.cpu.vcpu import Vcpu, VcpuState
from vftsim.engine import Alarm, EventKind


class DeadlineEntry(Entry, Protocol):
    """What every record of a vCPU must have."""

    deadline_ns: int
    left_ns: int
    alarm: Alarm | None


D = TypeVar("D", bound=DeadlineEntry)


class DeadlineQueuePolicy(SharedQueuePolicy[D]):
    """One run queue of vCPUs with periods; subclasses say what a period gives."""

    def refill(self, record: D, now_ns: int) -> None:
        """Begin a period: set ``deadline_ns`` and ``left_ns``."""
        raise NotImplementedError

    def on_deadline(self, record: D) -> None:
        """Prepare the record of a vCPU whose period ends while it is awake."""

    def begin_period(self, record: D, now_ns: int) -> None:
        """Begin a period and plan its end."""
        self.refill(record, now_ns)
        self.plan(record)

    def plan(self, record: D) -> None:
        """Plan the end of the period in progress."""
        record.alarm = self.host.call_at(
            record.deadline_ns, EventKind.ACCOUNTING, record.vcpu.index, self._end_of(record)
        )

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Free its pCPU and stop refilling."""
        super().block(vcpu, now_ns)
        record: D = vcpu.sched
        if record.alarm is not None:
            record.alarm.cancel()
            record.alarm = None

    def _end_of(self, record: D) -> Callable[[int], Iterable[int]]:
        def end(now_ns: int) -> Iterable[int]:
            self.on_deadline(record)
            self.begin_period(record, now_ns)
            if record.vcpu.state is VcpuState.RUNNING:
                return [record.vcpu.pcpu]
            return self.place(record, now_ns)

        return end
