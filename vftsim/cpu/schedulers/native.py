"""No hypervisor: the operating system owns the machine.

Every vCPU is a processor of the one operating system and runs whenever it has work, on the pCPU of
its own number.  Mechanism left out: moving work between processors is the guest's matter.
"""

from collections.abc import Iterable, Sequence
from typing import Literal

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import Decision, HostView, PeriodicTimer
from vftsim.cpu.vcpu import Vcpu, VcpuState


@SCHEDULERS.register
class Native(SchedulerSpec):
    """No hypervisor."""

    kind: Literal["native"] = "native"

    def build(self) -> "NativeScheduler":
        """Make the policy."""
        return NativeScheduler()


class NativeScheduler:
    """vCPU i runs on pCPU i; nothing is ever pre-empted by a hypervisor."""

    def attach(self, host: HostView) -> None:
        """Refuse more vCPUs than pCPUs: without a hypervisor there is nothing to share."""
        if len(host.vcpus) > host.pcpus:
            raise ValueError("native scheduling needs as many pCPUs as vCPUs")
        self._vcpus = host.vcpus

    def timers(self) -> Sequence[PeriodicTimer]:
        """None."""
        return ()

    def wake(self, vcpu: Vcpu, now_ns: int) -> Iterable[int]:
        """Its own pCPU runs it at once."""
        return (vcpu.index,)

    def block(self, vcpu: Vcpu, now_ns: int) -> None:
        """Nothing to do."""

    def charge(self, vcpu: Vcpu, ran_ns: int, now_ns: int) -> None:
        """Nothing to do."""

    def choose(self, pcpu: int, now_ns: int) -> Decision:
        """The vCPU of the same number, for as long as it has work."""
        if pcpu < len(self._vcpus):
            vcpu = self._vcpus[pcpu]
            if vcpu.state is VcpuState.RUNNABLE:
                return Decision(vcpu, None)
        return Decision(None, None)
