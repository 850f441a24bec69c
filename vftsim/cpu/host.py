"""A host: physical CPUs that run virtual CPUs as its scheduler decides.

The host keeps the accounts: every nanosecond of a pCPU is work of a vCPU, switching, or idle time.
Switching cost is lost when a pCPU starts another vCPU than the one it ran last; a switch that is
itself interrupted has cost what had passed of it, and goes on if the same vCPU is chosen again.
A vCPU that is dispatched and finds nothing to do still costs its switch.

Re-entrancy: a finished piece of work may wake anything, freeze guests and make this very pCPU choose
again before its callback returns; the host then leaves the pCPU as the callback put it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Any

from vftsim.cpu.scheduler import PeriodicTimer, ScheduleObserver, Scheduler
from vftsim.cpu.vcpu import Vcpu, VcpuState
from vftsim.engine import Alarm, Clock, EventKind
from vftsim.errors import ConservationError, UsageError

_BUSY = -1


class Host:
    """``pcpus`` physical CPUs under one scheduler.

    Parameters
    ----------
    clock : Clock
    pcpus : int
    scheduler : Scheduler
    switch_cost_ns : int
        Time a pCPU loses when it starts a vCPU other than the one it ran last.
    observer : ScheduleObserver, optional
        Hears every scheduling event.
    """

    def __init__(
        self,
        clock: Clock,
        pcpus: int,
        scheduler: Scheduler,
        switch_cost_ns: int = 0,
        observer: ScheduleObserver | None = None,
    ) -> None:
        self.clock = clock
        self.pcpus = pcpus
        self.scheduler = scheduler
        self.switch_cost_ns = switch_cost_ns
        self.observer = observer
        self.vcpus: list[Vcpu] = []
        self.running: list[Vcpu | None] = [None] * pcpus
        self.context_switches = 0
        self.pcpu_busy_ns = [0] * pcpus
        self.pcpu_switching_ns = [0] * pcpus
        self.pcpu_idle_ns = [0] * pcpus
        self._begin_ns = clock.now_ns
        self._idle_since_ns = [clock.now_ns] * pcpus
        self._switch_left_ns = [0] * pcpus
        self._last: list[Vcpu | None] = [None] * pcpus
        self._completion: list[Alarm | None] = [None] * pcpus
        self._slice_end: list[Alarm | None] = [None] * pcpus
        self._tickled: deque[int] = deque()

    @property
    def switching_ns(self) -> int:
        """Time lost to switching, on all pCPUs; a switch counts when it begins."""
        return sum(self.pcpu_switching_ns)

    def add_vcpu(self, domain: Any, affinity: Iterable[int] | None = None) -> Vcpu:
        """Create a vCPU; ``affinity`` defaults to every pCPU."""
        allowed = frozenset(range(self.pcpus) if affinity is None else affinity)
        if not allowed or not allowed <= set(range(self.pcpus)):
            raise UsageError(f"affinity {sorted(allowed)} must name at least one of the pCPUs 0 to {self.pcpus - 1}")
        vcpu = Vcpu(len(self.vcpus), domain, allowed)
        self.vcpus.append(vcpu)
        return vcpu

    def start(self) -> None:
        """Hand the vCPUs to the scheduler and start its timers."""
        self.scheduler.attach(self)
        for timer in self.scheduler.timers():
            self.clock.after(timer.phase_ns, timer.kind, timer.entity, self._on_timer, timer)

    def wake(self, vcpu: Vcpu) -> None:
        """Tell that a blocked vCPU has work; nothing happens to one that is not blocked."""
        if vcpu.state is not VcpuState.BLOCKED:
            return
        now_ns = self.clock.now_ns
        vcpu.state = VcpuState.RUNNABLE
        vcpu.wakeups += 1
        vcpu.waiting_since_ns = now_ns
        if self.observer is not None:
            self.observer.on_wake(vcpu, now_ns)
        for pcpu in self.scheduler.wake(vcpu, now_ns):
            self.reschedule(pcpu)

    def reschedule(self, pcpu: int) -> None:
        """Charge what runs on ``pcpu`` and let the scheduler choose again."""
        now_ns = self.clock.now_ns
        before = self.running[pcpu]
        if before is not None:
            self._stop(pcpu, before, now_ns)
            before.state = VcpuState.RUNNABLE
            before.waiting_since_ns = now_ns
        self._fill(pcpu, before, now_ns)
        while self._tickled:
            self.reschedule(self._tickled.popleft())

    def tickle(self, pcpu: int) -> None:
        """Make ``pcpu`` choose again at this instant, when the present decision has been carried out."""
        self._tickled.append(pcpu)

    def call_at(self, time_ns: int, kind: EventKind, entity: int, action: Callable[[int], Iterable[int]]) -> Alarm:
        """Plan a scheduler's one-shot timer; ``action(now_ns)`` returns the pCPUs that must choose again."""
        return self.clock.at(time_ns, kind, entity, self._on_call, action)

    def sync(self, vcpu: Vcpu) -> None:
        """Bring the accounts of a running vCPU up to now without stopping it."""
        ran_ns = self.clock.now_ns - vcpu.dispatched_ns
        if ran_ns > 0 and vcpu.state is VcpuState.RUNNING:
            self._charge(vcpu, ran_ns)

    def busy_ns(self) -> int:
        """CPU time consumed by all vCPUs up to now."""
        self._sync_all()
        return sum(vcpu.run_ns for vcpu in self.vcpus)

    def idle_ns(self, pcpu: int) -> int:
        """Time ``pcpu`` has been idle up to now."""
        since_ns = self._idle_since_ns[pcpu]
        return self.pcpu_idle_ns[pcpu] + (0 if since_ns == _BUSY else self.clock.now_ns - since_ns)

    def check_conservation(self) -> None:
        """Raise :class:`ConservationError` unless the time of every pCPU and vCPU adds up."""
        now_ns = self.clock.now_ns
        elapsed_ns = now_ns - self._begin_ns
        busy_ns = self.busy_ns()
        for pcpu, vcpu in enumerate(self.running):
            ahead_ns = max(0, vcpu.dispatched_ns - now_ns) if vcpu is not None else 0
            switching_ns = self.pcpu_switching_ns[pcpu] - ahead_ns
            parts = (self.pcpu_busy_ns[pcpu], switching_ns, self.idle_ns(pcpu))
            if min(parts) < 0 or sum(parts) != elapsed_ns:
                raise ConservationError(
                    f"pCPU {pcpu}: busy + switching + idle = {parts} ns does not make {elapsed_ns} ns"
                )
        if busy_ns != sum(self.pcpu_busy_ns):
            raise ConservationError(f"vCPUs ran {busy_ns} ns, pCPUs {sum(self.pcpu_busy_ns)} ns")
        for vcpu in self.vcpus:
            if vcpu.run_ns < 0 or vcpu.wait_ns < 0 or vcpu.run_ns + vcpu.wait_ns > elapsed_ns:
                raise ConservationError(
                    f"vCPU {vcpu.index}: {vcpu.run_ns} ns run + {vcpu.wait_ns} ns waiting in {elapsed_ns} ns"
                )

    def interrupt(self, vcpu: Vcpu) -> None:
        """Make a running vCPU look at its queues again: something more urgent than its job has come."""
        pcpu = vcpu.pcpu
        completion = self._completion[pcpu]
        if completion is not None:
            completion.cancel()
        self.sync(vcpu)
        self._run_next(pcpu, vcpu)

    def _charge(self, vcpu: Vcpu, ran_ns: int) -> None:
        now_ns = self.clock.now_ns
        vcpu.run_ns += ran_ns
        self.pcpu_busy_ns[vcpu.pcpu] += ran_ns
        vcpu.dispatched_ns = now_ns
        work = vcpu.current
        if work is not None:
            work.remaining_ns -= ran_ns
            work.quantum_left_ns -= ran_ns
        self.scheduler.charge(vcpu, ran_ns, now_ns)

    def _stop(self, pcpu: int, vcpu: Vcpu, now_ns: int) -> None:
        """Take ``vcpu`` off ``pcpu``; the caller says what becomes of it."""
        alarm = self._completion[pcpu]
        if alarm is not None:
            alarm.cancel()
            self._completion[pcpu] = None
        alarm = self._slice_end[pcpu]
        if alarm is not None:
            alarm.cancel()
            self._slice_end[pcpu] = None
        ran_ns = now_ns - vcpu.dispatched_ns
        if ran_ns > 0:
            self._charge(vcpu, ran_ns)
        elif ran_ns < 0:
            self.pcpu_switching_ns[pcpu] += ran_ns
            self._switch_left_ns[pcpu] = -ran_ns
        vcpu.pcpu = -1
        self.running[pcpu] = None

    def _fill(self, pcpu: int, before: Vcpu | None, now_ns: int) -> None:
        """Let the scheduler choose for ``pcpu`` until something runs there or it idles."""
        observer = self.observer
        while True:
            vcpu, slice_ns = self.scheduler.choose(pcpu, now_ns)
            if observer is not None and before is not None and before is not vcpu:
                blocked = before.state is VcpuState.BLOCKED
                observer.on_stop(pcpu, before, now_ns, "blocked" if blocked else "preempted")
            if vcpu is None:
                if self._idle_since_ns[pcpu] == _BUSY:
                    self._idle_since_ns[pcpu] = now_ns
                return
            if observer is not None and before is not vcpu:
                observer.on_dispatch(pcpu, vcpu, now_ns, self.scheduler.priority(vcpu))
            self._dispatch(pcpu, vcpu, slice_ns, now_ns)
            run_ns = vcpu.guest.next_run(vcpu)
            if run_ns is None and vcpu.dispatched_ns <= now_ns:
                self._block(pcpu, vcpu, now_ns)
                before = vcpu
                continue
            self._plan(pcpu, vcpu, run_ns)
            return

    def _dispatch(self, pcpu: int, vcpu: Vcpu, slice_ns: int | None, now_ns: int) -> None:
        delay_ns = self._switch_left_ns[pcpu]
        if self._last[pcpu] is not vcpu:
            self._last[pcpu] = vcpu
            self.context_switches += 1
            vcpu.context_switches += 1
            delay_ns = self.switch_cost_ns
        if delay_ns:
            self.pcpu_switching_ns[pcpu] += delay_ns
        self._switch_left_ns[pcpu] = 0
        idle_since_ns = self._idle_since_ns[pcpu]
        if idle_since_ns != _BUSY:
            self.pcpu_idle_ns[pcpu] += now_ns - idle_since_ns
            self._idle_since_ns[pcpu] = _BUSY
        self.running[pcpu] = vcpu
        if vcpu.last_pcpu != pcpu:
            vcpu.migrations += vcpu.last_pcpu >= 0
            vcpu.last_pcpu = pcpu
        vcpu.pcpu = pcpu
        vcpu.state = VcpuState.RUNNING
        vcpu.wait_ns += now_ns - vcpu.waiting_since_ns
        vcpu.dispatched_ns = now_ns + delay_ns
        if slice_ns is not None:
            self._slice_end[pcpu] = self.clock.after(
                delay_ns + max(slice_ns, 1), EventKind.SLICE, pcpu, self.reschedule, pcpu
            )

    def _run_next(self, pcpu: int, vcpu: Vcpu) -> None:
        """Start the vCPU's next piece of work, or block it."""
        run_ns = vcpu.guest.next_run(vcpu)
        if run_ns is None and vcpu.dispatched_ns <= self.clock.now_ns:
            now_ns = self.clock.now_ns
            self._block(pcpu, vcpu, now_ns)
            self._fill(pcpu, vcpu, now_ns)
            while self._tickled:
                self.reschedule(self._tickled.popleft())
            return
        self._plan(pcpu, vcpu, run_ns)

    def _plan(self, pcpu: int, vcpu: Vcpu, run_ns: int | None) -> None:
        self._completion[pcpu] = self.clock.at(
            vcpu.dispatched_ns + (run_ns or 0), EventKind.CPU, pcpu, self._on_run_end, pcpu
        )

    def _on_run_end(self, pcpu: int) -> None:
        vcpu = self.running[pcpu]
        assert vcpu is not None
        self._completion[pcpu] = None
        self.sync(vcpu)
        done = vcpu.guest.finish(vcpu)
        if done is not None:
            done.on_done(done.argument)
        if self.running[pcpu] is vcpu and self._completion[pcpu] is None:
            self._run_next(pcpu, vcpu)

    def _block(self, pcpu: int, vcpu: Vcpu, now_ns: int) -> None:
        self._stop(pcpu, vcpu, now_ns)
        vcpu.state = VcpuState.BLOCKED
        self.scheduler.block(vcpu, now_ns)

    def _on_timer(self, timer: PeriodicTimer) -> None:
        self._on_call(timer.action)
        self.clock.after(timer.period_ns, timer.kind, timer.entity, self._on_timer, timer)

    def _on_call(self, action: Callable[[int], Iterable[int]]) -> None:
        self._sync_all()
        for pcpu in action(self.clock.now_ns):
            self.reschedule(pcpu)

    def _sync_all(self) -> None:
        for vcpu in self.running:
            if vcpu is not None:
                self.sync(vcpu)
