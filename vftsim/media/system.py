"""What a media host is made of: the spec of :func:`vftsim.media.run.run_media`.

One host, its NICs, a driver domain, guests with their applications, and the traffic from outside.
Domains are a mapping by name, so that a model that extends another changes one key of one domain.
"""

from dataclasses import replace
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from vftsim.platform.cpu.parameters import DomainScheduling, SchedulerSpec, schedulers
from vftsim.platform.io.driver_domain import DriverDomainSpec
from vftsim.platform.io.nic import NicSpec
from vftsim.platform.io.parameters import IoPathSpec, io_paths
from vftsim.spec import DURATION, BitRate, DurationNs, Items, OneOf, PositiveDurationNs, Spec, format_duration
from vftsim.workloads.calls import SignalingSpec
from vftsim.workloads.cpu_bound import CpuBoundSpec
from vftsim.workloads.media_relay import MediaRelaySpec
from vftsim.workloads.rtp import RtpStreamsSpec
from vftsim.workloads.signaling import SignalingServerSpec

_MS = 1_000_000
_S = 1_000_000_000

SHORTEST_NS = 100 * _MS
"""Five packets of a stream."""

LONGEST_NS = 3600 * _S
MeasuredNs = Annotated[int, replace(DURATION, upper=LONGEST_NS, example="2 s")]
WarmUpNs = Annotated[int, replace(DURATION, upper=600 * _S, example="500 ms")]


class HostSpec(Spec):
    """The machine and its hypervisor."""

    pcpus: int = Field(4, ge=1, le=256, description="Physical CPUs. Default: Patnaik 2009, 6.1.")
    scheduler: Annotated[SchedulerSpec, OneOf(schedulers())] = Field(description="CPU scheduler.")
    switch_cost_ns: DurationNs = Field(
        3_000,
        description="Lost when a pCPU starts another vCPU. Assumption: 4,800 cycles at 1.6 GHz.",
    )


Application = Annotated[MediaRelaySpec | SignalingServerSpec | CpuBoundSpec, Field(discriminator="kind")]


class DomainSpec(DomainScheduling):
    """A domain: its vCPUs, how they are scheduled, how it reaches the network, what runs in it."""

    vcpus: int = Field(1, ge=1, le=64, description="Virtual CPUs.")
    affinity: Items[int] | None = Field(None, description="pCPUs its vCPUs may use; all of them if left out.")
    quantum_ns: PositiveDurationNs = Field(
        100 * _MS,
        description="Time slice of the guest's own scheduler. Default: Linux 2.6.18.",
    )
    io_path: Annotated[IoPathSpec, OneOf(io_paths())] | None = Field(None, description="Way to the network.")
    nic: str = Field("eth0", description="Interface its packets use.")
    applications: dict[str, Application] = Field(default_factory=dict, description="Programs by name.")


class LinkedStreamsSpec(RtpStreamsSpec):
    """Media streams and the link that they come by."""

    link_bit_per_s: BitRate = Field(1_000_000_000, description="Speed of the link into the host.")


class WorkloadSpec(Spec):
    """The traffic."""

    rtp: LinkedStreamsSpec | None = Field(None, description="Media streams.")
    signaling: SignalingSpec | None = Field(None, description="Calls.")
    link_latency_ns: DurationNs = Field(
        10_000,
        description="Between client and NIC, each way. Assumption: one switch on a LAN.",
    )
    duration: MeasuredNs = Field(
        2 * _S, description="Measured time of a replication, after the warm-up. From 100 ms (five packets of a stream)."
    )
    warm_up: WarmUpNs = Field(
        500 * _MS,
        description="Simulated before, not measured. Default: 17 accounting periods of the credit scheduler (30 ms), "
        "25 packets of a stream.",
    )

    @field_validator("duration")
    @classmethod
    def _long_enough(cls, duration_ns: int) -> int:
        if duration_ns < SHORTEST_NS:
            raise ValueError(
                f"must be at least {format_duration(SHORTEST_NS)}, five packets of a stream; "
                f"got {format_duration(duration_ns)}"
            )
        return duration_ns


class MediaSystem(Spec):
    """A host that relays media."""

    kind: Literal["media_host"] = "media_host"
    title: str = Field("", description="What this is, in a line.")
    host: HostSpec = Field(description="Machine and hypervisor.")
    nics: dict[str, NicSpec] = Field(default_factory=lambda: {"eth0": NicSpec()}, description="NICs by name.")
    driver_domain: str | None = Field("dom0", description="Which domain drives the NICs; none without hypervisor.")
    driver: DriverDomainSpec = Field(default_factory=DriverDomainSpec, description="Its work for each packet.")
    domains: dict[str, DomainSpec] = Field(description="Domains by name, in order of creation.")
    workload: WorkloadSpec = Field(description="The traffic.")

    @model_validator(mode="after")
    def _names_exist(self) -> Self:
        if self.driver_domain is not None and self.driver_domain not in self.domains:
            raise ValueError(f"driver_domain '{self.driver_domain}' is none of the domains {sorted(self.domains)}")
        for target, program in (
            (self.workload.rtp, "media_relay"),
            (self.workload.signaling, "signaling_server"),
        ):
            if target is not None:
                self._check_target(target.to, program)
        self._check_domains()
        return self

    def _check_target(self, name: str, program: str) -> None:
        domain = self.domains.get(name)
        if domain is None:
            raise ValueError(f"traffic goes to '{name}', which is none of the domains {sorted(self.domains)}")
        if domain.io_path is None:
            raise ValueError(f"domain '{name}' gets traffic but has no io_path")
        if all(application.kind != program for application in domain.applications.values()):
            raise ValueError(f"domain '{name}' gets traffic but has no application of kind {program}")

    def _check_domains(self) -> None:
        owners: dict[str, str] = {}
        for name, domain in self.domains.items():
            outside = [p for p in domain.affinity or () if not 0 <= p < self.host.pcpus]
            if outside or domain.affinity == ():
                raise ValueError(f"domains.{name}.affinity must name pCPUs 0 to {self.host.pcpus - 1}")
            if domain.io_path is None:
                continue
            if domain.nic not in self.nics:
                raise ValueError(f"domains.{name}.nic '{domain.nic}' is none of the NICs {sorted(self.nics)}")
            user = self.driver_domain if domain.io_path.needs_driver_domain else name
            if user is None:
                raise ValueError(f"domains.{name}.io_path needs a driver_domain")
            if owners.setdefault(domain.nic, user) != user:
                raise ValueError(f"NIC '{domain.nic}' belongs to both '{owners[domain.nic]}' and '{user}'; add another")
