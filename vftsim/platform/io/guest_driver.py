"""The receive side of a guest's network driver: from a ring, or its own NIC, to the network stack and the socket.

Here a packet enters the guest, so here a guard takes note of it: what noting costs is part of the driver's
work on the batch.
"""

from vftsim.kernel import Record, Sim, Table
from vftsim.platform.io.marks import ENTERED
from vftsim.platform.io.packet import REFUSED, applications, drop, mark, packets, ports, receive
from vftsim.platform.io.stage import Stage, deliver, price, task
from vftsim.platform.protection.guard import LOST, take_note

guest_driver = task.kind("guest driver")


class Entrance(Record):
    """Where packets are counted that a guard's log has lost."""

    drop_row: int


entrances = Table("entrances", Entrance, 2, is_fixed=True)


@guest_driver.implements(price)
def price_input(sim: Sim, stage: Stage, packet: int) -> int:
    """Let the guard, if any, take note of the packet."""
    port = ports(sim)[packets(sim)[packet].port]
    if port.guard == 0:
        return 0
    cost_ns = take_note(sim, port, packets(sim)[packet].size_bytes)
    if cost_ns == LOST:
        drop(sim, packet, entrances(sim)[1].drop_row)
        return REFUSED
    return cost_ns


@guest_driver.implements(deliver)
def deliver_input(sim: Sim, stage: Stage, packet: int) -> None:
    """Hand a packet to the network stack, which finds the socket."""
    mark(sim, packet, ENTERED, 0, sim.now_ns, 0)
    receive(sim, applications(sim)[ports(sim)[packets(sim)[packet].port].application], packet)
