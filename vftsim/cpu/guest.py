"""The operating system of a domain, as far as it decides which work its vCPUs do next.

Rules: interrupt work belongs to one vCPU, goes before any job and in order of arrival; the job it
displaces stays on that vCPU, as a task under an interrupt does in Linux.  Jobs wait in one queue for
all vCPUs.  A job gives way at the end of its quantum only if another waits by then: one that has run
alone for longer gives way at the next multiple of the quantum, because an expired time slice that
nobody else wants is simply refilled.  A vCPU that loses its pCPU keeps what it was doing.  Background
jobs run when no other job waits, as a process that Linux has found to compute without sleeping runs after those
that sleep much (O(1) scheduler of 2.6: dynamic priority); one that has begun is not displaced, so make them short.

Left out: other priorities among jobs, load balancing between run queues, the cost of a process switch
(part of the measured demand).
"""

from __future__ import annotations

from collections import deque

from vftsim.cpu.host import Host
from vftsim.cpu.vcpu import Vcpu, VcpuState, Work


class Guest:
    """Jobs of one domain, shared by its vCPUs; interrupt work belongs to one vCPU and goes first.

    Parameters
    ----------
    host : Host
    vcpus : list of Vcpu
    quantum_ns : int
        Time after which a job yields to the next one that waits (round robin).
    """

    def __init__(self, host: Host, vcpus: list[Vcpu], quantum_ns: int) -> None:
        self.host = host
        self.vcpus = vcpus
        self.quantum_ns = quantum_ns
        self.jobs: deque[Work] = deque()
        self.background: deque[Work] = deque()
        self.frozen = False
        self._unlimited = False
        for vcpu in vcpus:
            vcpu.guest = self

    def submit(self, work: Work) -> None:
        """Make a job runnable."""
        work.quantum_left_ns = self.quantum_ns
        self.jobs.append(work)
        if self.frozen:
            return
        self._wake_idle_vcpu()
        if self._unlimited and self.jobs:
            self._end_unlimited_runs()

    def submit_background(self, work: Work) -> None:
        """Make a job runnable that waits until no other job does."""
        work.quantum_left_ns = self.quantum_ns
        self.background.append(work)
        if not self.frozen:
            self._wake_idle_vcpu()

    def submit_next(self, work: Work) -> None:
        """Go on with ``work`` before any other job; for ``on_done``: the process keeps the CPU."""
        work.quantum_left_ns = self.quantum_ns
        self.jobs.appendleft(work)

    def raise_interrupt(self, vcpu: Vcpu, work: Work) -> None:
        """Give ``vcpu`` interrupt work: before any job, in order of arrival."""
        vcpu.interrupts.append(work)
        if self.frozen:
            return
        if vcpu.state is VcpuState.BLOCKED:
            self.host.wake(vcpu)
        elif vcpu.state is VcpuState.RUNNING and vcpu.interrupts[0] is work:
            self.host.interrupt(vcpu)

    def forget(self) -> None:
        """Lose all jobs: the memory they were in is gone."""
        self.jobs.clear()
        self.background.clear()
        for vcpu in self.vcpus:
            vcpu.current = vcpu.interrupted = None
            vcpu.interrupts.clear()

    def freeze(self) -> None:
        """Stop executing at once (a pause, a crash); work in progress keeps what it has left."""
        self.frozen = True
        for vcpu in self.vcpus:
            if vcpu.state is VcpuState.RUNNING:
                self.host.interrupt(vcpu)

    def thaw(self) -> None:
        """Go on where :meth:`freeze` stopped."""
        self.frozen = False
        jobs_waiting = len(self.jobs) + len(self.background)
        for vcpu in self.vcpus:
            if vcpu.state is not VcpuState.BLOCKED:
                continue
            if not (vcpu.interrupts or vcpu.current or vcpu.interrupted):
                if jobs_waiting <= 0:
                    continue
                jobs_waiting -= 1
            self.host.wake(vcpu)

    def next_run(self, vcpu: Vcpu) -> int | None:
        """Choose what ``vcpu`` does now; return how long at most, ``None`` if it has nothing to do."""
        if self.frozen:
            return None
        work = vcpu.current
        interrupts = vcpu.interrupts
        if interrupts:
            if work is not interrupts[0]:
                if work is not None:
                    vcpu.interrupted = work
                work = vcpu.current = interrupts[0]
            return work.remaining_ns
        if work is None:
            work = vcpu.interrupted
            if work is not None:
                vcpu.interrupted = None
            elif self.jobs:
                work = self.jobs.popleft()
            elif self.background:
                work = self.background.popleft()
            else:
                return None
            vcpu.current = work
        if work.remaining_ns <= work.quantum_left_ns:
            return work.remaining_ns
        if not self.jobs:
            self._unlimited = True
            return work.remaining_ns
        if work.quantum_left_ns <= 0:
            self._refill(work)
        return min(work.remaining_ns, work.quantum_left_ns)

    def finish(self, vcpu: Vcpu) -> Work | None:
        """Take note that the planned run is over; return the piece of work if that was all of it."""
        work = vcpu.current
        if work is None:
            return None
        if work.remaining_ns > 0:
            if work.quantum_left_ns <= 0:
                work.quantum_left_ns = self.quantum_ns
                if self.jobs:
                    self.jobs.append(work)
                    vcpu.current = None
            return None
        if vcpu.interrupts and vcpu.interrupts[0] is work:
            vcpu.interrupts.popleft()
        vcpu.current = None
        return work

    def _wake_idle_vcpu(self) -> None:
        for vcpu in self.vcpus:
            if vcpu.state is VcpuState.BLOCKED:
                self.host.wake(vcpu)
                break

    def _end_unlimited_runs(self) -> None:
        """Let runs that were planned while no job waited end with their quantum."""
        self._unlimited = False
        for vcpu in self.vcpus:
            work = vcpu.current
            if (
                work is not None
                and vcpu.state is VcpuState.RUNNING
                and not vcpu.interrupts
                and work.remaining_ns > work.quantum_left_ns
            ):
                self.host.interrupt(vcpu)

    def _refill(self, work: Work) -> None:
        """Set the rest of the quantum a job that ran alone is in by now: those before expired unnoticed."""
        work.quantum_left_ns = work.quantum_left_ns % self.quantum_ns or self.quantum_ns
