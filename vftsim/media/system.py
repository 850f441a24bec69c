"""What a media host is made of: the spec of :func:`vftsim.media.run.run_media`.

One host, its NICs, a driver domain, guests with their applications, and the traffic from outside.
Domains are a mapping by name, so that a model that extends another changes one key of one domain.
"""

from dataclasses import replace
from importlib import import_module
from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from vftsim.cpu.parameters import DomainScheduling, SchedulerSpec, schedulers
from vftsim.net.driver_domain import DriverDomainSpec
from vftsim.net.iopath import IO_PATHS, IoPathSpec
from vftsim.net.nic import NicSpec
from vftsim.spec import DURATION, BitRate, DurationNs, Items, OneOf, Percent, PositiveDurationNs, Spec, format_duration

for _module in ("paravirtual", "direct", "native", "emulated", "stub_domain"):
    import_module(f"vftsim.net.iopath_{_module}")

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


class MediaRelaySpec(Spec):
    """A pool of threads that take a packet, compute, and send it on."""

    kind: Literal["media_relay"] = "media_relay"
    threads: int = Field(8, ge=1, le=1000, description="Threads of the pool. Assumption: any number above the vCPUs.")
    packet_ns: DurationNs = Field(
        18_000, description="Thread: receive call, computation, send call, a packet. Calibrated."
    )
    receive_buffer_bytes: int = Field(
        110_592,
        ge=1,
        description="Socket receive buffer. Default: Linux 2.6.18 net.core.rmem_default, 32-bit.",
    )
    packet_charge_bytes: int = Field(
        496,
        ge=1,
        description="What a packet takes of it: 320 bytes of data and 176 of sk_buff (2.6.18).",
    )


class SignalingServerSpec(Spec):
    """A call server: computes and answers each packet."""

    kind: Literal["signaling_server"] = "signaling_server"
    threads: int = Field(4, ge=1, le=1000, description="Threads. Assumption.")
    packet_ns: DurationNs = Field(
        100_000, description="Computation a packet. Assumption: 'some basic computation' (Patnaik 2009, 4)."
    )
    receive_buffer_bytes: int = Field(110_592, ge=1, description="Socket receive buffer. Default: Linux 2.6.18.")
    packet_charge_bytes: int = Field(496, ge=1, description="What a packet takes of it.")


class CpuBoundSpec(Spec):
    """A compute-bound process: bursts of computation with idle times between them."""

    kind: Literal["cpu_bound"] = "cpu_bound"
    duty: Percent = Field(
        90.0,
        gt=0.0,
        le=100.0,
        description="Computation in percent of a cycle, of its own CPU. Assumption: 'small idle periods'.",
    )
    cycle_ns: PositiveDurationNs = Field(
        100 * _MS, description="Mean length of a burst and the idle time after it. Assumption."
    )
    cv: float = Field(
        0.5,
        ge=0.0,
        le=2.0,
        description="Coefficient of variation of bursts and idle times (gamma). Assumption.",
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
    io_path: Annotated[IoPathSpec, OneOf(IO_PATHS)] | None = Field(None, description="Way to the network.")
    nic: str = Field("eth0", description="Interface its packets use.")
    applications: dict[str, Application] = Field(default_factory=dict, description="Programs by name.")


class RtpStreamsSpec(Spec):
    """Media streams from outside."""

    to: str = Field("media", description="Domain that relays them.")
    streams: int = Field(800, ge=0, le=100_000, description="Streams. Default: Patnaik 2009, 6.3.")
    interval_ns: PositiveDurationNs = Field(20 * _MS, description="Between packets of a stream.")
    frame_bytes: int = Field(
        238,
        ge=64,
        le=9018,
        description="On the wire: 172 payload, 28 UDP/IP, 38 Ethernet with preamble and gap.",
    )
    sending_grid_ns: DurationNs = Field(
        0, description="Clients send at multiples of this only (their kernel's timer tick); 0: any time."
    )
    streams_per_client: int = Field(200, ge=1, le=100_000, description="Streams of one machine (Patnaik 2009, 4).")
    clock_error_ppm: float = Field(
        50.0,
        ge=0.0,
        le=1000.0,
        description="Clocks of client machines err by up to this. Default: usual crystals.",
    )
    playout_ns: PositiveDurationNs = Field(
        60 * _MS, description="Play-out delay; later packets count as lost for voice quality."
    )
    link_bit_per_s: BitRate = Field(1_000_000_000, description="Speed of the link into the host.")


class SignalingSpec(Spec):
    """Calls from outside."""

    to: str = Field("signaling", description="Domain that answers.")
    calls_per_s: float = Field(60.0, ge=0.0, le=1e6, description="Call rate. Default: Patnaik 2009, 6.4.")
    received_packets: int = Field(5, ge=1, le=1000, description="Packets received a call; each is answered.")
    packet_gap_ns: PositiveDurationNs = Field(
        20 * _MS, description="Between packets of one set-up or tear-down. Assumption."
    )
    hold_ns: PositiveDurationNs = Field(60_000 * _MS, description="Call hold time.")


class WorkloadSpec(Spec):
    """The traffic."""

    rtp: RtpStreamsSpec | None = Field(None, description="Media streams.")
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
