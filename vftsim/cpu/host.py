"""A host: physical CPUs that run virtual CPUs as its scheduler decides.

The host keeps the accounts: every nanosecond of a pCPU is work of a vCPU, switching, or idle time.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vftsim.cpu.scheduler import PeriodicTimer, Scheduler
from vftsim.cpu.vcpu import Vcpu, VcpuState
from vftsim.engine import Alarm, Clock, EventKind


class Host:
    """``pcpus`` physical CPUs under one scheduler.

    Parameters
    ----------
    clock : Clock
    pcpus : int
    scheduler : Scheduler
    switch_cost_ns : int
        Time a pCPU loses when it starts a vCPU other than the one it ran last.
    """

    def __init__(self, clock: Clock, pcpus: int, scheduler: Scheduler, switch_cost_ns: int = 0) -> None:
        self.clock = clock
        self.pcpus = pcpus
        self.scheduler = scheduler
        self.switch_cost_ns = switch_cost_ns
        self.vcpus: list[Vcpu] = []
        self.running: list[Vcpu | None] = [None] * pcpus
        self.context_switches = 0
        self.switching_ns = 0
        self._last: list[Vcpu | None] = [None] * pcpus
        self._completion: list[Alarm | None] = [None] * pcpus
        self._slice_end: list[Alarm | None] = [None] * pcpus

    def add_vcpu(self, domain: Any, affinity: Iterable[int] | None = None) -> Vcpu:
        """Create a vCPU; ``affinity`` defaults to every pCPU."""
        allowed = frozenset(range(self.pcpus) if affinity is None else affinity)
        vcpu = Vcpu(len(self.vcpus), domain, allowed)
        self.vcpus.append(vcpu)
        return vcpu

    def start(self) -> None:
        """Hand the vCPUs to the scheduler and start its timers."""
        self.scheduler.attach(self)
        for timer in self.scheduler.timers():
            self.clock.after(timer.phase_ns, timer.kind, timer.entity, self._on_timer, timer)

    def wake(self, vcpu: Vcpu) -> None:
        """A blocked vCPU has work."""
        vcpu.state = VcpuState.RUNNABLE
        for pcpu in self.scheduler.wake(vcpu, self.clock.now_ns):
            self.reschedule(pcpu)

    def reschedule(self, pcpu: int) -> None:
        """Charge what runs on ``pcpu`` and let the scheduler choose again."""
        now_ns = self.clock.now_ns
        before = self.running[pcpu]
        if before is not None:
            self._stop(pcpu, before, now_ns)
        decision = self.scheduler.choose(pcpu, now_ns)
        if decision.vcpu is not None:
            self._dispatch(pcpu, decision.vcpu, decision.slice_ns, now_ns)

    def sync(self, vcpu: Vcpu) -> None:
        """Bring the accounts of a running vCPU up to now without stopping it."""
        ran_ns = self.clock.now_ns - vcpu.dispatched_ns
        if vcpu.state is VcpuState.RUNNING and ran_ns > 0:
            self._charge(vcpu, ran_ns)

    def busy_ns(self) -> int:
        """CPU time consumed by all vCPUs up to now."""
        for vcpu in self.running:
            if vcpu is not None:
                self.sync(vcpu)
        return sum(vcpu.run_ns for vcpu in self.vcpus)

    def interrupt(self, vcpu: Vcpu) -> None:
        """Make a running vCPU look at its queues again: something more urgent than its job has come."""
        pcpu = vcpu.pcpu
        completion = self._completion[pcpu]
        if completion is not None:
            completion.cancel()
        self.sync(vcpu)
        vcpu.guest.suspend(vcpu)
        self._run_next(pcpu, vcpu)

    def _charge(self, vcpu: Vcpu, ran_ns: int) -> None:
        now_ns = self.clock.now_ns
        vcpu.run_ns += ran_ns
        vcpu.dispatched_ns = now_ns
        work = vcpu.current
        if work is not None:
            work.remaining_ns -= ran_ns
            work.quantum_left_ns -= ran_ns
        self.scheduler.charge(vcpu, ran_ns, now_ns)

    def _stop(self, pcpu: int, vcpu: Vcpu, now_ns: int) -> None:
        for alarm in (self._completion[pcpu], self._slice_end[pcpu]):
            if alarm is not None:
                alarm.cancel()
        self._completion[pcpu] = self._slice_end[pcpu] = None
        if now_ns > vcpu.dispatched_ns:
            self._charge(vcpu, now_ns - vcpu.dispatched_ns)
        vcpu.state = VcpuState.RUNNABLE
        vcpu.pcpu = -1
        self.running[pcpu] = None

    def _dispatch(self, pcpu: int, vcpu: Vcpu, slice_ns: int | None, now_ns: int) -> None:
        delay_ns = 0
        if self._last[pcpu] is not vcpu:
            self._last[pcpu] = vcpu
            self.context_switches += 1
            delay_ns = self.switch_cost_ns
            self.switching_ns += delay_ns
        self.running[pcpu] = vcpu
        vcpu.pcpu = pcpu
        vcpu.state = VcpuState.RUNNING
        vcpu.dispatched_ns = now_ns + delay_ns
        if slice_ns is not None:
            self._slice_end[pcpu] = self.clock.after(
                delay_ns + slice_ns, EventKind.SLICE, pcpu, self.reschedule, pcpu
            )
        self._run_next(pcpu, vcpu)

    def _run_next(self, pcpu: int, vcpu: Vcpu) -> None:
        """Start the vCPU's next piece of work, or block it."""
        run_ns = vcpu.guest.next_run(vcpu)
        if run_ns is None:
            self._block(pcpu, vcpu)
            return
        self._completion[pcpu] = self.clock.at(
            vcpu.dispatched_ns + run_ns, EventKind.CPU, pcpu, self._on_run_end, pcpu
        )

    def _on_run_end(self, pcpu: int) -> None:
        vcpu = self.running[pcpu]
        assert vcpu is not None
        self.sync(vcpu)
        self._completion[pcpu] = None
        done = vcpu.guest.finish(vcpu)
        if done is not None:
            done.on_done(done.argument)
        if self.running[pcpu] is vcpu and self._completion[pcpu] is None:
            self._run_next(pcpu, vcpu)

    def _block(self, pcpu: int, vcpu: Vcpu) -> None:
        now_ns = self.clock.now_ns
        self._stop(pcpu, vcpu, now_ns)
        vcpu.state = VcpuState.BLOCKED
        self.scheduler.block(vcpu, now_ns)
        self.reschedule(pcpu)

    def _on_timer(self, timer: PeriodicTimer) -> None:
        for vcpu in self.running:
            if vcpu is not None:
                self.sync(vcpu)
        for pcpu in timer.action(self.clock.now_ns):
            self.reschedule(pcpu)
        self.clock.after(timer.period_ns, timer.kind, timer.entity, self._on_timer, timer)
