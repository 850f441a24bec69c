"""The packet, the port at which it enters and leaves a guest, and the three sorts of part it meets.

The way is the same everywhere and always forward: workload -> network -> NIC -> path -> port -> application -> port
-> path -> NIC -> network -> workload.  A packet carries where it comes from (``flow``), which port it is for, and what
it means to both ends (``stream``, ``what``); there is no switchboard.  Protection stands at the port.
"""

from vftsim.kernel import Chain, Record, Sim, Sort, Table, part
from vftsim.platform.io.marks import DELIVERED, mark, mark_logs


class Packet(Record):
    """One packet.

    ``flow`` is the row of the traffic it belongs to and returns to, ``port`` the guest's end of its path, ``stream`` a
    stream, call or attempt within the flow, ``what`` the message it carries in the words of both ends; ``sent_ns`` is
    when it left its sender (or reached the host's NIC, where the sender's link is not modelled).  ``ring`` is the ring
    that it entered last.
    """

    link: int
    flow: int
    port: int
    ring: int
    stream: int
    what: int
    size_bytes: int
    sent_ns: int


class Port(Record):
    """A guest's end of an I/O path: which domain, by which kind of path, to which application, guarded by what.

    Ports of several applications of a domain share its path.  ``transmit_ns`` is what a sender pays of its own CPU time
    for each packet, ``send_ring`` the ring its packets enter (0: there is always room).
    """

    row: int
    domain: int
    path: int
    nic: int
    application: int
    guard: int
    transmit_ns: int
    send_ring: int


class Flow(Record):
    """Traffic from outside, as packets see it: ``workload`` is the kind of the workload, ``own`` its row there.

    ``size_bytes`` is the size on the wire of packets that are drawn beforehand.
    """

    row: int
    workload: int
    own: int
    port: int
    size_bytes: int


class Application(Record):
    """A program in a domain: ``program`` is its kind, ``own`` its row in the kind's own table."""

    row: int
    program: int
    own: int
    domain: int


class Drops(Record):
    """Packets that ended at one place for one cause; the driver knows the names."""

    count: int


packets = Table("packets", Packet, 1 << 20, "shorten rings and queues, or lower the load")
ports = Table("ports", Port, 4096)
flows = Table("flows", Flow, 4096)
applications = Table("applications", Application, 4096)
drops = Table("drops", Drops, 4096)
packet_list = Chain(packets, "link")

REFUSED = -1
"""Answer of :func:`reserve` for a packet that finds no place."""

path = Sort("I/O path", by="path")
application = Sort("application", by="program")
workload = Sort("workload", by="workload")


@path.slot
def arrive(sim: Sim, port: Port, packet: int) -> None:
    """Take in a packet that the network hands to the port's network card."""


@path.slot
def send(sim: Sim, port: Port, packet: int) -> bool:
    """Send a packet of the application; False if there is no room, and then the packet is still the caller's."""
    return False


@path.slot
def reserve(sim: Sim, port: Port, packet: int) -> int:
    """Keep a place for a packet that the driver domain is about to carry in; return what that costs it in ns.

    :data:`REFUSED` if there was no place; the packet has then been dropped.
    """
    return 0


@path.slot
def carry_in(sim: Sim, port: Port, packet: int) -> None:
    """Put a packet into the place that :func:`reserve` has kept for it."""


@application.slot
def receive(sim: Sim, program: Application, packet: int) -> None:
    """Take in a packet that the domain's network stack hands to the application's socket."""


@application.slot
def go_on(sim: Sim, program: Application, packet: int) -> None:
    """Go on with a packet that had no room to be sent: there is room for one now."""


@workload.slot
def delivered(sim: Sim, flow: Flow, packet: int) -> None:
    """Take back a packet that has left the host, or has crossed the network; the flow frees it."""


@workload.slot
def lost(sim: Sim, flow: Flow, packet: int) -> None:
    """Take note of a packet that was dropped on its way; it is freed by whoever dropped it."""


@part
def drop(sim: Sim, packet: int, place: int) -> None:
    """End a packet at a place of the table ``drops``, and free it."""
    drops(sim)[place].count += 1
    lost(sim, flows(sim)[packets(sim)[packet].flow], packet)
    packets.free(sim, packet)


@part
def leave(sim: Sim, packet: int) -> None:
    """Hand a packet that leaves the host to its flow, which frees it."""
    if mark_logs(sim)[1].is_on:
        mark(sim, packet, DELIVERED, 0, sim.now_ns, 0)
    delivered(sim, flows(sim)[packets(sim)[packet].flow], packet)
