"""The packet, the port at which it enters and leaves a guest, and the three sorts of part it meets.

The way is the same everywhere and always forward: workload -> network -> NIC -> path -> port -> application -> port ->
path -> NIC -> network -> workload.  A packet carries where it comes from (``flow``), which port it is for, and what it
means to both ends (``stream``, ``message``); there is no switchboard.  Protection stands at the port.
"""

from vftsim.kernel import Chain, Record, Row, Sim, Sort, Table, fail
from vftsim.platform.io.marks import DISCARDED, DROPPED, FULL, MOST_MARKS, RETURNED, mark_logs


class Packet(Record):
    """One packet.

    ``flow`` is the row of the traffic it belongs to and returns to, ``port`` the guest's end of its path, ``stream`` a
    stream, call or attempt within the flow, ``message`` what it carries in the words of both ends (below 0: that
    what was asked for has failed); ``sent_ns`` is when it left its sender (or reached the host's NIC, where the
    sender's link is not modelled).  ``entity`` orders packets that arrive at one instant; ``ring`` is the ring that it
    entered last, ``sender`` who sleeps with it while it waits for room there
    (:func:`~vftsim.platform.io.ring.wait_for_slot`).
    ``date_ns`` is up to when a backup has to know the guest that issued it, and ``issue`` counts its outputs
    (:mod:`~vftsim.platform.protection.audit`).
    Of a message over TCP ``left_bytes`` follow when it is acknowledged; one that acknowledges ``acked_bytes`` has no
    data (:mod:`~vftsim.workloads.windows`).
    """

    link: int
    flow: int
    port: int
    ring: int
    sender: int
    stream: int
    message: int
    size_bytes: int
    sent_ns: int
    entity: int
    date_ns: int
    issue: int
    left_bytes: int
    acked_bytes: int


class Port(Row):
    """A guest's end of an I/O path: which domain, by which kind of path, to which application, guarded by what.

    Ports of several applications of a domain share its path.  ``nic`` is the interface of the path that has rings;
    ``card`` (see :mod:`.host_cards`) has the links on which packets reach the host and leave it, 0: nothing is
    modelled outside; ``network`` is the number of the network there.  ``transmit_ns`` is what a sender pays of its own
    CPU time for each packet, ``send_ring`` the ring its packets enter (0: there is always room).  ``exits_in`` and
    ``exits_out`` are exits to the hypervisor for each packet, as far as the path counts them; ``pages_in`` are pages
    that its application dirties for each it takes.
    ``dead_card`` is the row of ``drops`` where packets end while the host's card does not carry them; 0: it works.
    Over TCP ``first_window_bytes`` of a message leave before the other end is heard, 0: all of it.
    ``saves_ring``: what stands in its receive ring goes with a state of the guest.  ``is_inside``: it leads to programs
    of the domain itself (:mod:`.loopback`).
    """

    domain: int
    path: int
    nic: int
    card: int
    network: int
    application: int
    guard: int
    transmit_ns: int
    send_ring: int
    exits_in: int
    exits_out: int
    pages_in: float
    saves_ring: bool
    is_inside: bool
    dead_card: int
    first_window_bytes: int


class Flow(Row):
    """Traffic from outside, as packets see it; ``state_row`` is the workload's row in the table of its kind.

    ``size_bytes`` is the size on the wire of packets that are drawn beforehand.  Gaps between packets that come out are
    watched together of all flows with the same ``watch``, the row of one of them (0: nobody watches), and kept in that
    one, from ``watched_ns`` until ``unwatched_ns``: ``seen_ns`` is when the last packet came, ``gap_ns`` the longest
    gap that ended in that time, and ``gap_end_ns`` its end.

    A packet stands for frames of ``frame_bytes`` (0: :data:`FULL_FRAME_BYTES`); how the ``transport`` makes up for one
    that is lost, :mod:`.link` says.
    """

    workload: int
    state_row: int
    port: int
    size_bytes: int
    watch: int
    watched_ns: int
    unwatched_ns: int
    seen_ns: int
    gap_ns: int
    gap_end_ns: int
    transport: int
    frame_bytes: int


class Application(Row):
    """A program in a domain: ``program`` is its kind, ``state_row`` its row in the kind's table.

    ``pages_dirtied`` are pages that its work has written by now, beside those of packets and of the working set.  Work
    that begins costs ``execution`` times its demand and ``output_ns`` for each packet that it sends, as protection has
    it (:func:`set_overhead`).
    """

    program: int
    state_row: int
    domain: int
    pages_dirtied: float
    execution: float
    output_ns: int


class Drops(Record):
    """Packets that ended at one place for one cause; the driver knows the names."""

    count: int


packets = Table("packets", Packet, 1 << 20, "shorten rings and queues, or lower the load")
ports = Table("ports", Port, 4096)
flows = Table("flows", Flow, 4096)
applications = Table("applications", Application, 4096)
drops = Table("drops", Drops, 4096)
packet_list = Chain(packets, "link")

DATAGRAM, MESSAGE, TRAIN = 0, 1, 2
"""Transports: UDP; TCP that carries a whole message; TCP whose segments are handled together."""

FULL_FRAME_BYTES = 1538
"""Of Ethernet on the wire: 1500 bytes of data, 14 + 4 of header and check sequence, 20 of preamble and gap."""

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
    """Send a packet of the application; False if there is no room, and then the packet is still the caller's.

    Only a path with a ``send_ring`` may refuse: there the caller waits.
    """
    return False


@path.slot
def mask(sim: Sim, port: Port) -> None:
    """Announce no packet to the domain from now on, because it stands still; its ring takes them as far as they fit."""


@path.slot
def unmask(sim: Sim, port: Port) -> None:
    """Announce packets again; if some have come meanwhile, at this instant, but after this event."""


@path.slot
def disconnect(sim: Sim, port: Port) -> None:
    """Cut the port off the network: packets in its ring and those to come are lost."""


@path.slot
def unplug(sim: Sim, port: Port) -> None:
    """Cut the port off the network, but leave what stands in its ring to the guest."""
    disconnect(sim, port)


@path.slot
def connect(sim: Sim, port: Port) -> None:
    """Connect the port again."""


@path.slot
def forget(sim: Sim, port: Port) -> None:
    """Lose what the ring and the domain's kernel hold: the domain starts with empty memory."""


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
def held(sim: Sim, program: Application) -> int:
    """Return how many packets wait in the application's socket or are in its hands; -1: it does not say."""
    return -1


@application.slot
def refused(sim: Sim, program: Application) -> int:
    """Return how many packets have found no room in its socket."""
    return 0


@application.slot
def set_overhead(sim: Sim, program: Application, output_ns: int, execution: float, exits: float) -> None:
    """Let work that begins from now on cost what protection makes it cost.

    ``output_ns`` of CPU time for each packet sent, ``execution`` times all CPU work, ``exits`` times the cost of
    exits to the hypervisor, which concern programs that make some of their own (those of the I/O path are the path's).
    Without protection these are 0, 1 and 1: so an application begins, and so it is told again before
    :func:`lose_state`.
    """
    program.output_ns = output_ns
    program.execution = execution


@application.slot
def lose_state(sim: Sim, program: Application) -> None:
    """Begin anew: the domain was booted again, what the application had in memory is gone, CPU work included."""


@application.slot
def go_on(sim: Sim, program: Application, packet: int) -> None:
    """Go on with a packet that had no room to be sent: there is room for one now."""


@workload.slot
def delivered(sim: Sim, flow: Flow, packet: int) -> None:
    """Take back a packet that has left the host, or has crossed the network; the flow frees it."""


@workload.slot
def cut(sim: Sim, flow: Flow, packet: int, first: int, count: int) -> None:
    """Let a packet of a train stand for so many of its frames, from number ``first`` (0: the first) on."""


@workload.slot
def window_bytes(sim: Sim, flow: Flow, packet: int) -> int:
    """Return how much of a message to the flow's client may leave at once on its connection; 0: that is a new one."""
    return 0


@workload.slot
def lost(sim: Sim, flow: Flow, packet: int) -> None:
    """Take note of a packet that was dropped on its way; it is freed by whoever dropped it."""


@workload.slot
def copied(sim: Sim, flow: Flow, packet: int) -> None:
    """Take note of a second copy of a packet, which may be sent too or ends in :func:`discarded`."""


@workload.slot
def discarded(sim: Sim, flow: Flow, packet: int) -> None:
    """Take note of a packet that ends unseen and is no loss: a copy not needed, or output of a dead machine."""


def mark(sim: Sim, packet: int, boundary: int, place: int, time_ns: int, spent_ns: int) -> None:
    """Write that a packet passes a boundary, if anybody traces the run."""
    log = mark_logs(sim)[1]
    if not log.is_on:
        return
    slot = log.written
    if slot == MOST_MARKS:
        fail(sim, FULL)
        return
    packet_record = packets(sim)[packet]
    log.packet[slot] = packet
    log.boundary[slot] = boundary
    log.place[slot] = place
    log.time_ns[slot] = time_ns
    log.spent_ns[slot] = spent_ns
    log.flow[slot] = packet_record.flow
    log.port[slot] = packet_record.port
    log.stream[slot] = packet_record.stream
    log.entity[slot] = packet_record.entity
    log.message[slot] = packet_record.message
    log.size_bytes[slot] = packet_record.size_bytes
    log.left_bytes[slot] = packet_record.left_bytes
    log.written = slot + 1
    if log.written > MOST_MARKS // 2:
        sim.wants_input = True


def copy(sim: Sim, packet: int) -> int:
    """Return a copy of a packet; 0 and a named failure of the run if there are too many packets."""
    row = packets.new(sim)
    packet_record = packets(sim)[row]
    original = packets(sim)[packet]
    packet_record.link = 0
    packet_record.flow = original.flow
    packet_record.port = original.port
    packet_record.stream = original.stream
    packet_record.message = original.message
    packet_record.size_bytes = original.size_bytes
    packet_record.sent_ns = original.sent_ns
    packet_record.entity = original.entity
    packet_record.date_ns = original.date_ns
    packet_record.issue = original.issue
    packet_record.left_bytes = original.left_bytes
    packet_record.acked_bytes = original.acked_bytes
    copied(sim, flows(sim)[packet_record.flow], row)
    return row


def discard(sim: Sim, packet: int) -> None:
    """End a packet that nobody misses, and free it."""
    mark(sim, packet, DISCARDED, 0, sim.now_ns, 0)
    discarded(sim, flows(sim)[packets(sim)[packet].flow], packet)
    packets.free(sim, packet)


def hand_back(sim: Sim, packet: int) -> None:
    """Give a packet that has come out to its flow, which frees it.

    One that tells of a failure, or has not come to its client yet, has a message below 0: no service is seen by it.
    """
    mark(sim, packet, RETURNED, 0, sim.now_ns, 0)
    flow = flows(sim)[packets(sim)[packet].flow]
    if flow.watch != 0 and packets(sim)[packet].message >= 0:
        watch = flows(sim)[flow.watch]
        is_watched = watch.watched_ns <= sim.now_ns < watch.unwatched_ns
        if is_watched and sim.now_ns - watch.seen_ns > watch.gap_ns:
            watch.gap_ns = sim.now_ns - watch.seen_ns
            watch.gap_end_ns = sim.now_ns
        watch.seen_ns = sim.now_ns
    delivered(sim, flow, packet)


def drop(sim: Sim, packet: int, drop_row: int) -> None:
    """End a packet at a place of the table ``drops``, and free it."""
    mark(sim, packet, DROPPED, drop_row, sim.now_ns, 0)
    drops(sim)[drop_row].count += 1
    # Before its row is free: the workload reads what was lost.
    lost(sim, flows(sim)[packets(sim)[packet].flow], packet)
    packets.free(sim, packet)
