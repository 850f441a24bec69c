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
    batches of both directions on any free vCPU, as with one queue for each CPU; before programs of the domain, device
    models among them (``__do_softirq``), on the first that is free of such work if none is free.

Left out: memory of the driver domain; its other duties (console, disks, tools).
"""

from typing import Literal

from pydantic import Field

from vftsim.kernel import Record, Sim, Table
from vftsim.platform.io.host_cards import leave
from vftsim.platform.io.nic import nics
from vftsim.platform.io.packet import Port, carry_in, packets, ports, reserve
from vftsim.platform.io.stage import NAPI_BUDGET, Stage, deliver, price, take_in, task
from vftsim.spec.base import Spec
from vftsim.spec.units import DurationNs

receiving = task.kind("driver domain receive")
transmitting = task.kind("driver domain transmit")
TASKS = (receiving, transmitting)

Placement = Literal["spread", "one", "any"]


class DriverDomainSpec(Spec):
    """Costs and placement of the work every packet causes in the driver domain."""

    placement: Placement = Field("any", description="Which vCPUs do receive and transmit work.")
    event_cost: DurationNs = Field(
        2_000,
        description="Interrupt or event channel upcall, once a batch. Assumption: 3,200 cycles at 1.6 GHz.",
    )
    receive_cost: DurationNs = Field(
        2_000,
        description="NIC driver and bridge, receive, a packet. Prior: native, 5,000 cycles both ways.",
    )
    transmit_cost: DurationNs = Field(1_000, description="Bridge and NIC driver, transmit, a packet. Same prior.")
    budget_packets: int = Field(NAPI_BUDGET, ge=1, le=256, description="Packets a batch. Default: NAPI weight.")

    @property
    def packet_work_ns(self) -> int:
        """About the CPU time of a packet there and back, for an estimate."""
        return self.event_cost + self.receive_cost + self.transmit_cost


class BackEnd(Record):
    """What a port's packets cost the driver domain on their way out, beyond bridge and driver."""

    transmit_ns: int


back_ends = Table("back_ends", BackEnd, beside=ports)


def arrive_at_driver(sim: Sim, port: Port, packet: int) -> None:
    """To the ring of the driver domain's NIC."""
    take_in(sim, nics(sim)[port.nic], packet)


@receiving.implements(price)
def price_received(sim: Sim, stage: Stage, packet: int) -> int:
    """Ask the packet's path for a place, and for what the copy costs."""
    return reserve(sim, ports(sim)[packets(sim)[packet].port], packet)


@receiving.implements(deliver)
def deliver_received(sim: Sim, stage: Stage, packet: int) -> None:
    """Copy into the place that was kept."""
    carry_in(sim, ports(sim)[packets(sim)[packet].port], packet)


@transmitting.implements(price)
def price_transmitted(sim: Sim, stage: Stage, packet: int) -> int:
    """Take or copy the packet out of the guest."""
    return back_ends(sim)[packets(sim)[packet].port].transmit_ns


@transmitting.implements(deliver)
def deliver_transmitted(sim: Sim, stage: Stage, packet: int) -> None:
    leave(sim, packet)
