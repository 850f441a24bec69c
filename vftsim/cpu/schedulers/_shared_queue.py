"""What the policies with one run queue for all pCPUs have in common.

A policy says in which order waiting vCPUs run (:meth:`SharedQueuePolicy.key`), which may run at all,
for how long, and when a newcomer pre-empts.  A newcomer goes to an idle pCPU of its affinity if there
is one, its last one first, then lowest number; else it may pre-empt the least urgent vCPU that runs
on a pCPU it may use.  A vCPU that was pre-empted looks for a place in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, Protocol, TypeVar

from vftsim.cpu.scheduler import IDLE, Decision, HostView, Policy
from vftsim.cpu.vcpu import Vcpu

Key = tuple[int, ...]


class Entry(Protocol):
    """What every record of a vCPU must have."""

    vcpu: Vcpu
    serial: int
    since_ns: int


R = TypeVar("R", bound=Entry)


class SharedQueuePolicy(Policy, Generic[R]):
    """One run queue; subclasses say how it is ordered.

    A record's ``serial`` grows each time it is queued (first in, first out among equals); ``since_ns``
    is when it got its pCPU.
    """

    def attach(self, host: HostView) -> None:
        """Make a record for every vCPU."""
        super().attach(host)
        self.waiting: list[R] = []
        self.current: list[R | None] = [None] * host.pcpus
        self._serial = 0
        self._allowed = [sorted(vcpu.affinity) for vcpu in host.vcpus]
        for vcpu in host.vcpus:
            vcpu.sched = self.make_record(vcpu)

    def make_record(self, vcpu: Vcpu) -> R:
        """Make the policy's own record of a vCPU."""
        raise NotImplementedError

    def key(self, record: R, now_ns: int) -> Key:
        """Order of urgency, smallest first; must end in the serial number."""
        raise NotImplementedError

    def slice_ns(self, record: R, now_ns: int) -> int | None:
        """Longest time until the pCPU chooses again."""
        raise NotImplementedError

    def eligible(self, record: R) -> bool:
        """Whether the vCPU may run at all now."""
        return True

    def allowed(self, record: R) -> Iterable[int]:
        """List the pCPUs the vCPU may run on, in ascending order."""
        return self._allowed[record.vcpu.index]

    def preempts(self, newcomer: R, running: R, now_ns: int) -> bool:
        """Whether ``newcomer`` takes the pCPU of ``running`` at once."""
        return self.key(newcomer, now_ns)[:-1] < self.key(running, now_ns)[:-1]

    def continues_ns(self, running: R, now_ns: int) -> int:
        """How long the running vCPU must go on before another may be chosen; 0: not at all."""
        return 0

    def on_wake(self, record: R, now_ns: int) -> None:
        """Prepare the record of a vCPU that woke."""

    def on_chosen(self, record: R, now_ns: int) -> None:
        """Take note that the record is about to run."""

    def wake(self, vcpu: Vcpu, now_ns: int) -> Iterable[int]:
        """Queue it and find it a pCPU."""
        record: R = vcpu.sched
        self.on_wake(record, now_ns)
        self.enqueue(record)
        return self.place(record, now_ns)

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Free its pCPU."""
        self.current[vcpu.last_pcpu] = None

    def choose(self, pcpu: int, now_ns: int) -> Decision:
        """Run the most urgent waiting vCPU that may run here."""
        before = self.current[pcpu]
        if before is not None:
            left_ns = self.continues_ns(before, now_ns)
            if left_ns > 0 and self.eligible(before):
                return Decision(before.vcpu, left_ns)
            self.enqueue(before)
        chosen = self._most_urgent(pcpu, now_ns)
        self.current[pcpu] = chosen
        if chosen is not None:
            self.waiting.remove(chosen)
            self.on_chosen(chosen, now_ns)
            if chosen is not before:
                chosen.since_ns = now_ns
        if before is not None and before is not chosen:
            for other in self.place(before, now_ns):
                self.host.tickle(other)
        return IDLE if chosen is None else Decision(chosen.vcpu, self.slice_ns(chosen, now_ns))

    def enqueue(self, record: R) -> None:
        """Put a record behind all its equals."""
        self._serial += 1
        record.serial = self._serial
        self.waiting.append(record)

    def place(self, record: R, now_ns: int, taken: Iterable[int] = ()) -> list[int]:
        """Find the pCPU, outside ``taken``, that should choose again so that ``record`` may run, if any."""
        if not self.eligible(record):
            return []
        allowed = [pcpu for pcpu in self.allowed(record) if pcpu not in taken]
        current = self.current
        idle = [pcpu for pcpu in allowed if current[pcpu] is None]
        if idle:
            last = record.vcpu.last_pcpu
            return [last if last in idle else idle[0]]
        best: tuple[Any, int] | None = None
        for pcpu in allowed:
            running = current[pcpu]
            assert running is not None
            self.host.sync(running.vcpu)
            urgency = (self.key(running, now_ns)[:-1], -pcpu)
            if self.preempts(record, running, now_ns) and (best is None or urgency > best):
                best = urgency
        return [] if best is None else [-best[1]]

    def place_all(self, records: Iterable[R], now_ns: int) -> list[int]:
        """Find pCPUs for several waiting records, most urgent first."""
        taken: list[int] = []
        for record in sorted(records, key=lambda r: self.key(r, now_ns)):
            taken += self.place(record, now_ns, taken)
        return taken

    def _most_urgent(self, pcpu: int, now_ns: int) -> R | None:
        candidates = [r for r in self.waiting if pcpu in self.allowed(r) and self.eligible(r)]
        return min(candidates, key=lambda r: self.key(r, now_ns), default=None)
