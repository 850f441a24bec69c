"""The operating system of a domain, as far as it decides which work its vCPUs do next."""

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
        self.frozen = False
        for vcpu in vcpus:
            vcpu.guest = self

    def submit(self, work: Work) -> None:
        """A job becomes runnable."""
        work.quantum_left_ns = self.quantum_ns
        self.jobs.append(work)
        if self.frozen:
            return
        for vcpu in self.vcpus:
            if vcpu.state is VcpuState.BLOCKED:
                self.host.wake(vcpu)
                return

    def raise_interrupt(self, vcpu: Vcpu, work: Work) -> None:
        """Interrupt work for ``vcpu``: before any job, in order of arrival."""
        vcpu.interrupts.append(work)
        work.quantum_left_ns = work.remaining_ns
        if self.frozen:
            return
        if vcpu.state is VcpuState.BLOCKED:
            self.host.wake(vcpu)
        elif vcpu.state is VcpuState.RUNNING and not self._in_interrupt(vcpu):
            self.host.interrupt(vcpu)

    def freeze(self) -> None:
        """Stop executing at once (a pause, a crash); work in progress keeps what it has left."""
        self.frozen = True
        for vcpu in self.vcpus:
            if vcpu.state is VcpuState.RUNNING:
                self.host.interrupt(vcpu)

    def thaw(self) -> None:
        """Go on where :meth:`freeze` stopped."""
        self.frozen = False
        for vcpu in self.vcpus:
            if vcpu.state is VcpuState.BLOCKED and (vcpu.interrupts or self.jobs or vcpu.current):
                self.host.wake(vcpu)

    def suspend(self, vcpu: Vcpu) -> None:
        """Put the piece in progress back where it goes on next."""
        work = vcpu.current
        if work is None:
            return
        if vcpu.interrupts and work is vcpu.interrupts[0]:
            vcpu.current = None
            return
        self.jobs.appendleft(work)
        vcpu.current = None

    def next_run(self, vcpu: Vcpu) -> int | None:
        """Choose what ``vcpu`` does now; returns how long it runs at most, ``None`` if it has nothing to do."""
        if self.frozen:
            return None
        work = vcpu.current
        if work is None:
            if vcpu.interrupts:
                work = vcpu.interrupts[0]
            elif self.jobs:
                work = self.jobs.popleft()
            else:
                return None
            vcpu.current = work
        if self._in_interrupt(vcpu) or not self.jobs:
            return work.remaining_ns
        return min(work.remaining_ns, max(work.quantum_left_ns, 1))

    def finish(self, vcpu: Vcpu) -> Work | None:
        """The piece in progress has run its time; returns it if that was all of it."""
        work = vcpu.current
        assert work is not None
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

    @staticmethod
    def _in_interrupt(vcpu: Vcpu) -> bool:
        return bool(vcpu.interrupts) and vcpu.current is vcpu.interrupts[0]
