"""What a model file says of machines, networks and domains."""

from dataclasses import replace
from typing import Annotated

from pydantic import Field, model_validator

from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec, guest_schedulers, of_any_guest
from vftsim.platform.cpu.parameters import DomainScheduling, SchedulerSpec, of_bare_metal, schedulers
from vftsim.platform.io.disk import DiskSpec, disk_kinds
from vftsim.platform.io.driver_domain import DriverDomainSpec
from vftsim.platform.io.host_cards import BackgroundTrafficSpec
from vftsim.platform.io.nic import NicSpec
from vftsim.platform.io.packet import FULL_FRAME_BYTES
from vftsim.platform.io.parameters import IoPathSpec, io_paths
from vftsim.platform.protection.mechanism import ProtectionSpec, protections
from vftsim.platform.protection.none import NoProtectionSpec
from vftsim.spec import BitRate, ByteCount, DurationNs, Items, OneOf, PeriodNs, Spec
from vftsim.spec.units import MS, PERCENT, format_duration
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, discover_parts

discover_parts()


SHORTEST_BURST_NS = 100_000


class HostNicSpec(NicSpec):
    """A network interface of a host, as paths through the host's rings use it."""

    network: str | None = Field(None, description="Network it is plugged into; the model's only one if not given.")


class HostSpec(Spec):
    """A machine and its hypervisor."""

    pcpus: int = Field(1, ge=1, le=1024, description="Physical CPUs.")
    cpu_speed: float = Field(
        1.0,
        ge=0.001,
        le=1000.0,
        description="Speed of its pCPUs, and of those of a mechanism's second host, as a multiple of the one that CPU "
        "work of the model is stated for: that of a mechanism in its pauses, too. Switches take as long at any speed.",
    )
    scheduler: Annotated[SchedulerSpec, OneOf(schedulers())] = Field(
        default_factory=of_bare_metal, description="CPU scheduler of the hypervisor; `native` on bare metal."
    )
    switch_cost: DurationNs = Field(0, description="Time a pCPU loses when it changes from one vCPU to another.")
    nics: dict[str, HostNicSpec] = Field(
        default_factory=dict, description="Network interfaces by name; one for each network with defaults if not given."
    )


class NetworkSpec(Spec):
    """A network: the link between each host and everybody else on it, both directions alike."""

    rate: Annotated[BitRate, Field(gt=0)] = Field(1_000_000_000, description="Rate of a host's link.")
    latency: DurationNs = Field(
        100_000,
        description="One-way delay of a host's link beside transmission: switch, driver, interrupt. What goes from "
        "host to host crosses the links of both, and between guests of one host that link out and back.",
    )
    queue: Annotated[ByteCount, Field(gt=0)] = Field(
        256 * 1024,
        description="Transmit queue of a link's end, with what is left of the frame in transmission. Of two datagrams "
        "of this size at once the second is dropped; a message over TCP waits at its sender.",
    )
    loss: Annotated[float, replace(PERCENT, upper=50)] = Field(
        0.0,
        description="Packets that are lost on the way, in each direction of a host's link, each by itself unless "
        "`loss_burst` is given; one that stands for several frames is a datagram, of which no frame may be missing, a "
        "message over TCP, or a train of segments.",
    )
    loss_burst: DurationNs = Field(
        0,
        description="Mean time for which everything is lost, and after which nothing is until the next burst, both "
        "exponential, so that `loss` of the time is in bursts; 0: each packet is lost by itself.",
    )
    initial_window: int = Field(
        10,
        ge=0,
        le=10_000,
        description="Segments of a message over TCP that leave before the first acknowledgement, then twice as many "
        "with each: slow start. Default: RFC 6928, Linux since 2.6.39; 0: a message leaves as a whole.",
    )
    background: dict[str, BackgroundTrafficSpec] = Field(
        default_factory=dict, description="Traffic that a host sends beside the workloads, by what it is."
    )

    @model_validator(mode="after")
    def _has_few_bursts(self) -> "NetworkSpec":
        if 0 < self.loss_burst < SHORTEST_BURST_NS:
            raise ValueError(
                f"loss_burst: {format_duration(self.loss_burst)} is shorter than a few packets take "
                f"(at least {format_duration(SHORTEST_BURST_NS)}); 0: each is lost by itself"
            )
        return self

    @property
    def first_window_bytes(self) -> int:
        """On the wire, in full frames."""
        return self.initial_window * FULL_FRAME_BYTES

    def channel_problem(self, name: str, protection: ProtectionSpec) -> str:
        """Return key and reason if it cannot carry a mechanism's channel; empty: it can."""
        if self.loss:
            return (
                f"channel.network: what a channel loses on '{name}' (networks.{name}.loss) is not simulated; give it a "
                "line of its own and a fault of the kind channel_degradation"
            )
        return protection.on_network(self.rate, self.latency).taken_for_dead


class InterfaceSpec(Spec):
    """A domain's way to a network."""

    network: str | None = Field(None, description="Network it leads to; that of its `nic`, or the model's only one.")
    nic: str | None = Field(None, description="Interface of the host it uses; the first on the network if not given.")
    path: Annotated[IoPathSpec, OneOf(io_paths())] = Field(description="I/O path.")


class DomainSpec(DomainScheduling):
    """A domain: its vCPUs, how they are scheduled, how it reaches networks, what runs in it, what protects it."""

    host: str | None = Field(None, description="Host it runs on; the model's only one if not given.")
    count: int = Field(1, ge=1, le=10_000, description="So many of it, named `name-1`, `name-2`, ... if above 1.")
    on_every_host: bool = Field(
        False,
        description="It stands for what every host has, such as work of the hypervisor: a crash of its host leaves it.",
    )
    vcpus: int = Field(1, ge=1, le=64, description="Virtual CPUs.")
    affinity: Items[int] | None = Field(None, description="pCPUs its vCPUs may use; all of them if left out.")
    quantum: PeriodNs = Field(
        100 * MS, description="Time slice of the guest's scheduler (Linux 2.6.18 O(1): 100 ms at nice 0)."
    )
    guest_scheduler: Annotated[GuestSchedulerSpec, OneOf(guest_schedulers())] = Field(
        default_factory=of_any_guest, description="Process scheduler of its operating system."
    )
    cpu_inflation: float = Field(
        1.0,
        ge=1.0,
        le=10.0,
        description="Factor on the CPU work of its applications (shadow paging, exits in computation).",
    )
    memory_available: ByteCount = Field(4 * 1024**3, description="Memory free before the run.")
    driver: DriverDomainSpec | None = Field(
        None, description="It is the host's driver domain, which carries the packets of others; its work for each."
    )
    interfaces: dict[str, InterfaceSpec] = Field(default_factory=dict, description="Ways to networks by name.")
    disks: dict[str, Annotated[DiskSpec, OneOf(disk_kinds())]] = Field(
        default_factory=dict, description="Disks by name; the first serves a program that names none."
    )
    applications: dict[str, Annotated[ApplicationSpec, OneOf(APPLICATIONS)]] = Field(
        default_factory=dict, description="Programs by name."
    )
    protection: Annotated[ProtectionSpec, OneOf(protections())] = Field(
        default_factory=NoProtectionSpec, description="Fault tolerance of the domain."
    )

    @property
    def has_stub(self) -> bool:
        """Whether a stub domain runs its device model."""
        return any(interface.path.needs_stub_domain for interface in self.interfaces.values())

    @staticmethod
    def stub_of(name: str) -> str:
        """Return what the stub domain of a domain of this name is called; no other domain has that name."""
        return f"{name}-stub"

    @property
    def stub(self) -> "DomainSpec":
        """The stub domain that runs this one's device model, on an I/O path that needs it."""
        return DomainSpec(weight=self.weight)
