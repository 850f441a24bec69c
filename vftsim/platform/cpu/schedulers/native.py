"""No hypervisor: the operating system's CPUs are the machine's.

vCPU i runs on pCPU i and keeps it; what shares a CPU is processes of one guest, and that is the guest's business.
"""

from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal

from vftsim.kernel import Engine, Sim
from vftsim.platform.cpu import scheduler
from vftsim.platform.cpu.host import request_reschedule
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, PlacedDomain, SchedulerSpec
from vftsim.platform.cpu.records import IDLE_FOREVER, RUNNABLE, Host, Pcpu, Vcpu, hosts, pcpus, vcpus

native = scheduler.scheduler.kind("native")
_ITS_OWN = "each vCPU has the pCPU of its number"


@SCHEDULERS.register
class Native(SchedulerSpec):
    """No hypervisor."""

    products: ClassVar[tuple[str, ...]] = ("bare_metal",)

    kind: Literal["native"] = "native"
    reads: ClassVar[frozenset[str] | None] = frozenset()

    def unread(self, domain: DomainScheduling) -> dict[str, str]:
        """Add the affinity: which pCPU a vCPU has follows from its number."""
        return super().unread(domain) | {"affinity": _ITS_OWN}

    def without_effect(self, domains: Sequence[DomainScheduling]) -> Mapping[str, str]:
        return {"switch_cost": _ITS_OWN}

    def install(self, engine: Engine, host: int) -> None:
        """Do nothing: there is nothing to set."""

    def refusal(self, pcpus: int, domains: Sequence[PlacedDomain]) -> str:
        """Return why more vCPUs than pCPUs cannot be: without a hypervisor there is nothing to share."""
        if (needed := sum(domain.vcpus for domain in domains)) <= pcpus:
            return ""
        return (
            f"without a hypervisor each of the {needed} vCPUs needs a pCPU of its own, and the host has {pcpus}; use "
            "another scheduler or more pCPUs"
        )

    def own_pcpu(self, engine: Engine, vcpu: int) -> int:
        """Every vCPU has a pCPU of its own."""
        vcpu_record = engine.rows(vcpus)[vcpu]
        return int(engine.rows(hosts)[vcpu_record.host].first_pcpu + vcpu_record.number)


@native.implements(scheduler.wake)
def wake(sim: Sim, host: Host, vcpu: Vcpu) -> None:
    """Run it at once on its pCPU."""
    request_reschedule(sim, pcpus(sim)[host.first_pcpu + vcpu.number])


@native.implements(scheduler.choose)
def choose(sim: Sim, host: Host, pcpu: Pcpu) -> int:
    """Run the vCPU of the same number for as long as it has work."""
    if pcpu.number < host.vcpus and vcpus(sim)[host.first_vcpu + pcpu.number].state == RUNNABLE:
        pcpu.slice_ns = IDLE_FOREVER
        return host.first_vcpu + pcpu.number
    return 0
