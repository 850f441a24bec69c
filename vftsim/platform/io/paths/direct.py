"""The guest owns its NIC: VMM bypass, PCI passthrough, SR-IOV.

No driver domain on the data path.  The guest pays the NIC driver itself; the interrupt still enters
the hypervisor, which sends it on as an event (before posted interrupts), and so costs more than on
bare metal.  Without a software interposer the output of such a guest cannot be held back or logged by a
protection mechanism.  Assumption: one that is under such a mechanism has an interposer that costs nothing.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Kind, Sim
from vftsim.platform.io.build import Io, Site
from vftsim.platform.io.guest_driver import guest_driver
from vftsim.platform.io.guest_end import stands_by_its_rings
from vftsim.platform.io.host_cards import leave
from vftsim.platform.io.nic import nics
from vftsim.platform.io.packet import Port, arrive, path, ports, send
from vftsim.platform.io.parameters import IO_PATHS, RingPathSpec
from vftsim.platform.io.stage import take_in
from vftsim.spec.units import DurationNs

direct = path.kind("direct")
stands_by_its_rings(direct)


def drive_own_nic(io: Io, site: Site, event_ns: int, receive_ns: int, transmit_ns: int) -> None:
    """Add the guest's driver on a NIC of its own."""
    io.add_guest_driver(site, "guest driver", nic=site.nic, event_ns=event_ns, packet_ns=receive_ns)
    for row in site.ports:
        io.engine.rows(ports)[row].transmit_ns = transmit_ns


@IO_PATHS.register
class Direct(RingPathSpec):
    """Direct I/O: the guest drives its own NIC."""

    events_a_packet: ClassVar[float] = 6.0
    tasks: ClassVar[tuple[Kind, ...]] = (guest_driver,)
    needs_driver_domain: ClassVar[bool] = False

    products: ClassVar[tuple[str, ...]] = ("sr_iov", "sriov", "passthrough", "vfio")
    kind: Literal["direct"] = "direct"
    interrupt_exit_cost: DurationNs = Field(
        1_500,
        description="Hypervisor's part in an interrupt, once a batch. Assumption: 2,400 cycles at 1.6 GHz.",
    )
    driver_receive_cost: DurationNs = Field(
        4_000, description="Guest: NIC driver and network stack, receive. Prior: native Linux."
    )
    driver_transmit_cost: DurationNs = Field(
        3_000, description="Guest: network stack and NIC driver, transmit. Prior: native Linux."
    )

    def connect(self, io: Io, site: Site) -> None:
        event_ns = self.event_cost + self.interrupt_exit_cost
        drive_own_nic(io, site, event_ns, self.driver_receive_cost, self.driver_transmit_cost)


@direct.implements(arrive)
def arrive_direct(sim: Sim, port: Port, packet: int) -> None:
    """To the NIC's ring."""
    take_in(sim, nics(sim)[port.nic], packet)


@direct.implements(send)
def send_direct(sim: Sim, port: Port, packet: int) -> bool:
    """Straight to the wire, which is faster than any sender."""
    leave(sim, packet)
    return True
