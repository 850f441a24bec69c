"""Between programs of one domain: what one sends the other has, within the guest.

Rule: its kernel puts what is sent to an address of its own into the receiver's socket (Linux,
``drivers/net/loopback.c``: ``loopback_xmit`` hands it to ``netif_rx`` at once).  It takes no path, no link and no time,
and no packet leaves the machine, so that no mechanism holds it or takes note of it.

Simplification: what the system calls cost is part of what the programs' work costs.
"""

from vftsim.kernel import EventKind, Sim, at, event
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.packet import Port, applications, hand_back, packets, path, ports, receive, send

loopback = path.kind("loopback")

INSIDE = "inside "
"""Before a domain's name: a network of its own that no model file can name."""


@loopback.implements(send)
def send_inside(sim: Sim, port: Port, packet: int) -> bool:
    """Let the flow say to whom a packet goes."""
    hand_back(sim, packet)
    return True


@event
def on_crossing(sim: Sim, packet_row: int) -> None:
    """Put a packet into its program's socket; it dirties pages as one from outside does."""
    port = ports(sim)[packets(sim)[packet_row].port]
    program = applications(sim)[port.application]
    program.pages_dirtied += port.pages_in
    receive(sim, program, packet_row)


def send_across(sim: Sim, packet: int) -> None:
    """Send a packet to the port of another program: over the network, or within the domain.

    There it is handed over at this instant, but after this event: its sender may be about to send more.
    """
    port = ports(sim)[packets(sim)[packet].port]
    if port.is_inside:
        at(sim, sim.now_ns, EventKind.DELIVERY, port.row, on_crossing, packet)
    else:
        send_to_host(sim, packet)
