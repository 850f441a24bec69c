"""What paths have in common whose guest drives a NIC of its own."""

from vftsim.platform.io.build import Io
from vftsim.platform.io.packet import ports
from vftsim.platform.io.parameters import Site


def connect(io: Io, site: Site, event_ns: int, receive_ns: int, transmit_ns: int) -> None:
    """Add the guest's driver on its NIC."""
    io.add_guest_driver(site, "guest driver", nic=site.nic, event_ns=event_ns, packet_ns=receive_ns)
    for row in site.ports:
        io.engine.rows(ports)[row].transmit_ns = transmit_ns
