"""The driver domain: the domain that owns the NIC and carries every other domain's packets.

Receive: NIC interrupt -> driver -> bridge -> back-end, which copies the packet into a buffer that the
guest has posted in its receive ring, and sends an event.  A guest without a free buffer loses the
packet at this point, before the copy (Linux 2.6.18-xen, ``netback.c``, ``netif_be_start_xmit``).
Transmit: the guest's event -> back-end maps or copies the packet -> bridge -> driver -> wire.

Each direction is one tasklet, which Linux runs on one CPU at a time: that of the interrupt that
scheduled it.  Which vCPU that is depends on where the interrupts are bound, hence ``placement``:

``spread``
    NIC interrupt on the first vCPU, event channels on the second, as an interrupt balancer leaves them.
``one``
    everything on the first vCPU, where Xen binds event channels at first.
``any``
    batches of both directions on any free vCPU, as with one queue and thread for each CPU.

Left out: memory of the driver domain; its other duties (console, disks, tools).
"""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from vftsim.cpu import Guest, Vcpu
from vftsim.net.iopath import NAPI_BUDGET, Port, Stage
from vftsim.net.nic import Nic
from vftsim.net.rings import Packet, RingSet
from vftsim.spec.base import Spec
from vftsim.spec.units import DurationNs

Placement = Literal["spread", "one", "any"]


class DriverDomainSpec(Spec):
    """Costs and placement of the work every packet causes in the driver domain."""

    placement: Placement = Field("any", description="Which vCPUs do receive and transmit work.")
    event_ns: DurationNs = Field(
        2_000,
        description="Interrupt or event channel upcall, once a batch. Assumption: 3,200 cycles at 1.6 GHz.",
    )
    receive_ns: DurationNs = Field(
        2_000,
        description="NIC driver and bridge, receive, a packet. Prior: native, 5,000 cycles both ways.",
    )
    transmit_ns: DurationNs = Field(1_000, description="Bridge and NIC driver, transmit, a packet. Same prior.")
    budget_packets: int = Field(NAPI_BUDGET, ge=1, le=256, description="Packets a batch. Default: NAPI weight.")


class _Receive(Stage):
    """Takes packets from the NIC to the ports of the guests."""

    def admit(self, batch: list[Packet]) -> tuple[list[Packet], int]:
        demand_ns = 0
        kept = []
        for packet in batch:
            cost_ns = packet.port.admit(packet)
            demand_ns += self.packet_ns
            if cost_ns >= 0:
                demand_ns += cost_ns
                kept.append(packet)
        return kept, demand_ns


class _Transmit(Stage):
    """Takes packets from the guests' rings to the NIC."""

    def admit(self, batch: list[Packet]) -> tuple[list[Packet], int]:
        return batch, sum([self.packet_ns + packet.port.backend_transmit_ns for packet in batch])


class DriverDomain:
    """Receive work for each NIC and transmit work for all guests."""

    def __init__(self, spec: DriverDomainSpec, guest: Guest, nics: list[Nic], out: Callable[[Packet], None]) -> None:
        self.spec = spec
        self.guest = guest
        vcpus = guest.vcpus
        receive_vcpu: Vcpu | None = vcpus[0]
        transmit_vcpu: Vcpu | None = vcpus[0] if spec.placement == "one" else vcpus[1 % len(vcpus)]
        parallel = 1
        if spec.placement == "any":
            receive_vcpu = transmit_vcpu = None
            parallel = len(vcpus)
        self.transmit_rings = RingSet()
        self.receive = [
            _Receive(
                "driver domain receive", guest, receive_vcpu, nic, _to_port, event_ns=spec.event_ns,
                packet_ns=spec.receive_ns, budget=spec.budget_packets, parallel=parallel,
            )
            for nic in nics
        ]  # fmt: skip
        self.transmit = _Transmit(
            "driver domain transmit", guest, transmit_vcpu, self.transmit_rings, out, event_ns=spec.event_ns,
            packet_ns=spec.transmit_ns, budget=spec.budget_packets, parallel=parallel,
        )  # fmt: skip

    def serve(self, port: Port) -> None:
        """Carry the packets of one more guest."""
        self.transmit_rings.add(port.transmit_ring)

    def start(self) -> None:
        """Ask for the first events."""
        for stage in (*self.receive, self.transmit):
            stage.start()

    def in_flight(self) -> int:
        """Packets in batches being worked on."""
        return sum(stage.held for stage in self.receive) + self.transmit.held


def _to_port(packet: Packet) -> None:
    packet.port.receive(packet)
