"""The model file of a SIP lab: one server under test, its host, its protection, and the benchmark."""

from typing import Annotated, Literal

from pydantic import Field, model_validator

from vftsim.platform.cpu.background import CyclicLoadSpec
from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS, GuestSchedulerSpec
from vftsim.platform.cpu.guest_schedulers.round_robin import RoundRobinGuest
from vftsim.platform.cpu.parameters import SCHEDULERS, DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.schedulers.native import Native
from vftsim.platform.io.host_cards import NicsSpec
from vftsim.platform.io.paths.moderated import GuestNicSpec
from vftsim.platform.protection.faults import FAULTS, FaultSpec
from vftsim.platform.protection.mechanism import PROTECTIONS, ProtectionSpec
from vftsim.platform.protection.none import NoProtectionSpec
from vftsim.spec import ByteCount, DurationNs, Items, OneOf, RatePerSecond, Spec, discover
from vftsim.workloads.ims_bench.parameters import ImsBenchSpec
from vftsim.workloads.sip.parameters import SipServerSpec, VirtualizationSpec

discover("vftsim.platform.cpu.schedulers")
discover("vftsim.platform.cpu.guest_schedulers")
discover("vftsim.platform.protection")


class HostSpec(Spec):
    """The machine under the server."""

    pcpus: int = Field(1, ge=1, le=1024, description="Physical CPUs (the lab was booted with maxcpus=1).")
    scheduler: Annotated[SchedulerSpec, OneOf(SCHEDULERS)] = Field(default_factory=Native, description="CPU scheduler.")
    switch_cost: DurationNs = Field(0, description="Time a pCPU loses when it changes from one vCPU to another.")


class LabDomainSpec(DomainScheduling):
    """A domain on the host: how it is scheduled."""

    vcpus: int = Field(1, ge=1, le=64, description="Virtual CPUs.")
    affinity: Items[int] | None = Field(None, description="pCPUs it may run on; all if not given.")
    guest_scheduler: Annotated[GuestSchedulerSpec, OneOf(GUEST_SCHEDULERS)] = Field(
        default_factory=RoundRobinGuest, description="Process scheduler of its operating system."
    )
    background: CyclicLoadSpec | None = Field(None, description="CPU work that the domain does by itself.")
    message_cost: DurationNs = Field(
        0, description="CPU time for each SIP message received or sent by user agents that run in this domain (`uac`)."
    )


class SipLabSpec(Spec):
    """A SIP server under the IMS benchmark."""

    kind: Literal["sip_lab"] = "sip_lab"
    name: str = Field(min_length=1, max_length=100, description="Name of the system.")
    description: str = Field("", max_length=4000, description="What the system is, and where its values come from.")
    host: HostSpec = Field(default_factory=HostSpec, description="The machine.")
    domains: dict[str, LabDomainSpec] = Field(description="Domains by name; `sut` is the server under test.")
    server: SipServerSpec = Field(default_factory=SipServerSpec, description="The SIP server in `sut`.")
    virtualization: VirtualizationSpec = Field(
        default_factory=VirtualizationSpec, description="What the hypervisor costs the guest."
    )
    protection: Annotated[ProtectionSpec, OneOf(PROTECTIONS)] = Field(
        default_factory=NoProtectionSpec, description="Fault tolerance of `sut`."
    )
    faults: Items[Annotated[FaultSpec, OneOf(FAULTS)]] = Field(
        (), description="What fails and when; see :mod:`vftsim.platform.protection.faults`."
    )
    nics: NicsSpec = Field(default_factory=NicsSpec, description="The host's network cards and what they carry.")
    nic: GuestNicSpec = Field(default_factory=GuestNicSpec, description="The server's network card.")
    workload: ImsBenchSpec = Field(default_factory=ImsBenchSpec, description="The benchmark.")
    measured_doc: RatePerSecond | None = Field(
        None,
        gt=0,
        description="Measured design objective capacity of this system, attempts a second; shown beside predictions.",
    )
    memory_available: ByteCount = Field(4 * 1024**3, description="Memory free before the run.")

    @model_validator(mode="after")
    def _has_a_server(self) -> "SipLabSpec":
        if "sut" not in self.domains:
            raise ValueError("domains must contain `sut`, the system under test")
        for name, domain in self.domains.items():
            if domain.message_cost and name != "uac":
                raise ValueError(f"message_cost belongs to the domain `uac`, where user agents run, not to `{name}`")
            if domain.affinity is not None and not all(0 <= p < self.host.pcpus for p in domain.affinity):
                raise ValueError(f"domains.{name}.affinity names a pCPU that the host's {self.host.pcpus} do not have")
        return self

    @model_validator(mode="after")
    def _protection_fits(self) -> "SipLabSpec":
        vcpus, most = self.domains["sut"].vcpus, self.protection.most_vcpus
        if vcpus > most:
            raise ValueError(f"this protection mechanism handles {most} vCPU at most, not {vcpus}")
        for fault in self.faults:
            if fault.needs_backup and not self.protection.has_backup:
                raise ValueError("a fault of the backup or its channel needs a mechanism that has them")
        instants = [fault.at for fault in self.faults]
        if self.protection.begins is not None:
            instants.append(self.protection.begins)
        for instant in instants:
            phase, _, step = instant.phase.partition(" ")
            if phase == "step" and int(step) > self.workload.steps.most:
                raise ValueError(f"{instant} comes after the last step ({self.workload.steps.most})")
        return self
