"""Split driver: back-end in the driver domain, front-end in the guest, shared rings between them.

Way in: the back-end reserves a slot of the guest's receive ring (none free: the packet is dropped in
the driver domain), copies the packet and sends an event if the front-end asked for one; the
front-end's interrupt work runs on the guest's first vCPU, where its event channel is bound, and
hands packets to the network stack.  Way out: the sender pays the front-end's transmit work, puts the
packet into the transmit ring, and sleeps if that is full.

Ring size: 256 slots each way (``xen/include/public/io/netif.h``, one page a direction).
Left out: transmit completion events (the front-end reclaims finished slots when it next runs),
and scatter/gather and offloads, which packets of 172 bytes do not use.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Kind, Record, Sim, Table
from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.driver_domain import TASKS, arrive_at_driver, back_ends
from vftsim.platform.io.guest_driver import guest_driver
from vftsim.platform.io.guest_end import is_gone, send_by_ring, stands_by_its_rings
from vftsim.platform.io.packet import REFUSED, Port, arrive, carry_in, drop, path, ports, reserve, send
from vftsim.platform.io.parameters import IO_PATHS, RingPathSpec
from vftsim.platform.io.ring import keep_slot, rings
from vftsim.platform.io.stage import put
from vftsim.spec.units import DurationNs

paravirtual = path.kind("paravirtual")
stands_by_its_rings(paravirtual)
paravirtual.implements(arrive)(arrive_at_driver)
paravirtual.implements(send)(send_by_ring)


@IO_PATHS.register
class Paravirtual(RingPathSpec):
    """Xen's split driver."""

    events_a_packet: ClassVar[float] = 10.0
    events_a_packet_moderated: ClassVar[float | None] = 4.0
    tasks: ClassVar[tuple[Kind, ...]] = (guest_driver, *TASKS)

    products: ClassVar[tuple[str, ...]] = ("virtio", "vhost", "netfront", "split_driver")
    kind: Literal["paravirtual"] = "paravirtual"
    ring_packets: int = Field(256, ge=1, le=4096, description="Slots each way. Default: Xen netif.h, one page.")
    backend_receive_cost: DurationNs = Field(
        20_000, description="Driver domain: grant, copy, notify; on top of driver and bridge. Calibrated."
    )
    backend_transmit_cost: DurationNs = Field(
        20_000, description="Driver domain: map or copy, respond. Calibrated (tied to receive)."
    )
    frontend_receive_cost: DurationNs = Field(
        3_000, description="Guest: front-end and network stack, receive. Assumption: 4,800 cycles at 1.6 GHz."
    )
    frontend_transmit_cost: DurationNs = Field(
        2_000,
        description="Guest: network stack and front-end, transmit. Assumption: 3,200 cycles at 1.6 GHz.",
    )

    def connect(self, io: Io, site: Site) -> None:
        """Add the rings and the front-end."""
        receive_ring = io.add_ring(site.name, "receive ring", self.ring_packets, "no slot")
        transmit_ring = io.add_ring(site.name, "transmit ring", self.ring_packets)
        io.add_guest_driver(
            site, "front-end", ring=receive_ring, event_ns=self.event_cost, packet_ns=self.frontend_receive_cost
        )
        io.serve(site.transmit, transmit_ring)
        for row in site.ports:
            port, split_driver = io.engine.rows(ports)[row], io.engine.rows(split_drivers)[row]
            port.transmit_ns = self.frontend_transmit_cost
            port.send_ring = transmit_ring
            split_driver.receive_ring = receive_ring
            split_driver.backend_receive_ns = self.backend_receive_cost
            io.engine.rows(back_ends)[row].transmit_ns = self.backend_transmit_cost


class SplitDriver(Record):
    """The rings of a port and the back-end's work on a packet that comes in."""

    receive_ring: int
    backend_receive_ns: int


split_drivers = Table("split_drivers", SplitDriver, beside=ports)


@paravirtual.implements(reserve)
def reserve_slot(sim: Sim, port: Port, packet: int, split_driver: SplitDriver = BESIDE) -> int:
    """Keep a slot of the receive ring, or drop the packet."""
    if is_gone(sim, packet):
        return REFUSED
    ring = rings(sim)[split_driver.receive_ring]
    if keep_slot(ring):
        return split_driver.backend_receive_ns
    drop(sim, packet, ring.drop_row)
    return REFUSED


@paravirtual.implements(carry_in)
def fill_slot(sim: Sim, port: Port, packet: int) -> None:
    """Fill the slot: the back-end has done its work; the port may have been cut off since the slot was kept."""
    ring = rings(sim)[split_drivers(sim)[port.row].receive_ring]
    if is_gone(sim, packet):
        ring.occupied -= 1
    else:
        put(sim, ring, packet)
