"""No hypervisor: the operating system owns the machine.

Every vCPU is a processor of the one operating system and runs whenever it has work, on the pCPU of
its own number.  Mechanism left out: moving work between processors is the guest's matter.
"""

from collections.abc import Iterable
from typing import Literal

from vftsim.cpu.parameters import SCHEDULERS, SchedulerSpec
from vftsim.cpu.scheduler import IDLE, Decision, HostView, Policy
from vftsim.cpu.vcpu import Vcpu, VcpuState
from vftsim.errors import UsageError


@SCHEDULERS.register
class Native(SchedulerSpec):
    """No hypervisor."""

    kind: Literal["native"] = "native"

    def build(self) -> "NativeScheduler":
        """Make the policy."""
        return NativeScheduler()


class NativeScheduler(Policy):
    """vCPU i runs on pCPU i; nothing is ever pre-empted by a hypervisor."""

    def attach(self, host: HostView) -> None:
        """Refuse more vCPUs than pCPUs: without a hypervisor there is nothing to share."""
        if len(host.vcpus) > host.pcpus:
            raise UsageError(
                f"without a hypervisor each of the {len(host.vcpus)} vCPUs needs a pCPU of its own, "
                f"and the host has {host.pcpus}; use another scheduler or more pCPUs"
            )
        super().attach(host)
        self._vcpus = host.vcpus

    def wake(self, vcpu: Vcpu, now_ns: int) -> Iterable[int]:
        """Run it at once on its own pCPU."""
        return (vcpu.index,)

    def choose(self, pcpu: int, now_ns: int) -> Decision:
        """Run the vCPU of the same number for as long as it has work."""
        if pcpu < len(self._vcpus):
            vcpu = self._vcpus[pcpu]
            if vcpu.state is VcpuState.RUNNABLE:
                return Decision(vcpu, None)
        return IDLE
