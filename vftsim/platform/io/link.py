"""A link: a transmitter with a bounded queue, a rate and a propagation delay; one record a direction.

Frames leave in order at the link's rate; a frame that would make the backlog longer than the queue allows is dropped.
The backlog has what is left of the frame in transmission, as the memory of a card's ring or a switch's port holds a
frame until its last bit has left.  Linux's queueing disciplines (``bfifo``) count only what has not been handed to the
card: of the same size they take one frame more.

A packet over TCP for which there is no room waits in its connection, in the order of packets, instead of being
dropped (Linux: TCP small queues, two packets of a connection in the queue).  Simplification: it goes as a whole when
all of it fits.  One that is longer than the queue follows in pieces of a quarter of it, as long as that leaves half of
it to others, until the rest fits.  No connection has more that waits than its window.  Left out: what waits on a host
that crashes is not lost with it.

What has left may be lost on its way, each frame independent of others (:func:`set_loss`).  By default nothing is: the
lab's switched gigabit network is not known to drop.  Of a packet that stands for several frames

* a datagram is lost if any is (RFC 791: fragments of an incomplete datagram are discarded);
* a message over TCP comes a round trip of the network later if three frames or more follow the last that is lost
  (fast retransmit, RFC 5681, 3.2; several losses at once, RFC 2018), and is lost otherwise: whoever waits for it asks
  again after a time that stands for TCP's time-out;
* a train of TCP's segments goes on without those that are lost.

Or losses come in bursts (:func:`set_loss_bursts`), as those of radio and of congestion elsewhere: Gilbert's two states
(Bell System Technical Journal 39, 1960) in time, of exponential lengths.  A packet whose last bit leaves in the one is
lost, in the other none is.

Assumption: what TCP sends again is not lost a second time, but in a burst; nor are acknowledgements, for which those
that follow make up.
"""

import math

import numpy as np

from vftsim.kernel import Engine, EventKind, Fifo, Row, Sim, Table, at, event
from vftsim.kernel.inputs import Feeder, draw
from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.io.packet import (
    DATAGRAM,
    FULL_FRAME_BYTES,
    MESSAGE,
    TRAIN,
    Flow,
    copy,
    cut,
    drop,
    drops,
    flows,
    packet_list,
    packets,
)
from vftsim.sampling import Draws
from vftsim.sampling.draws import FloatArray, IntArray
from vftsim.spec.units import BYTE_COUNT

BITS_NS = 8_000_000_000
"""Nanoseconds that a byte takes at one bit a second."""

_LOSSES_AT_ONCE = 1024
"""Losses that may fall on one instant, as of outputs that leave together."""

_DUPLICATES = 3
"""Duplicate acknowledgements after which TCP sends a segment again (RFC 5681, 3.2)."""

LONGEST_NS = 1 << 61
"""Stands for any longer time, so that sums of times stay within 64 bits."""


class Link(Row):
    """One direction of a link.

    ``byte_ns`` is what a byte takes if that is a whole number, else 0.  ``queue_ns`` is the backlog that the
    transmitter accepts, the frame in transmission included; ``queue_full`` the row of ``drops`` that counts the others.
    ``sent`` counts frames offered, ``sent_bytes`` what was taken (:func:`carried_bytes`).  The last frame leaves
    ``rest`` / ``rate_bits_per_s`` of a ns after ``free_ns``.
    ``losses`` is the feed of how many frames come up to the next that is lost on the way, with it, of which
    ``until_lost`` are to come; 0: none is lost.  ``lost`` is the row of ``drops`` that counts them.
    Losses in bursts have the feeds ``burst_gaps`` and ``burst_lengths`` (0: they do not); whether a packet
    ``is_in_burst`` changes for those that leave from ``changes_ns`` on.
    ``held_back`` are packets over TCP that wait for room, the first without ``gone_bytes`` that it has taken already;
    the event ``on_arrival`` gets them when they have arrived.
    """

    rate_bits_per_s: int
    byte_ns: int
    latency_ns: int
    queue_ns: int
    queue_full: int
    sent: int
    delivered: int
    sent_bytes: int
    free_ns: int
    rest: int
    losses: int
    until_lost: int
    lost: int
    burst_gaps: int
    burst_lengths: int
    is_in_burst: bool
    changes_ns: int
    held_back: Fifo
    gone_bytes: int
    on_arrival: int


links = Table("links", Link, 4096)


def add_link(engine: Engine, rate_bits_per_s: int, latency_ns: int, queue_bytes: int) -> int:
    """Add one direction of a link, with a place for its drops; return its row.

    ``latency_ns`` is propagation and switching, after the last bit has left.
    """
    queue_full, _ = engine.add(drops)
    return engine.add(
        links,
        rate_bits_per_s=rate_bits_per_s,
        latency_ns=latency_ns,
        byte_ns=BITS_NS // rate_bits_per_s if BITS_NS % rate_bits_per_s == 0 else 0,
        queue_ns=long_transmission_ns(queue_bytes, rate_bits_per_s),
        queue_full=queue_full,
    )[0]


def set_loss(engine: Engine, feeder: Feeder, row: int, draws: Draws) -> None:
    """Let frames of a link be lost on their way; ``draws`` are of :func:`frames_to_loss`."""
    link = engine.rows(links)[row]
    link.losses = feeder.add(draws, at_once=_LOSSES_AT_ONCE)
    link.lost, _ = engine.add(drops)


def set_loss_bursts(engine: Engine, feeder: Feeder, row: int, gaps_ns: Draws, lengths_ns: Draws) -> None:
    """Let everything be lost that a link sends in bursts of such lengths, with such times between them."""
    link = engine.rows(links)[row]
    link.burst_gaps = feeder.add(gaps_ns, at_once=_LOSSES_AT_ONCE)
    link.burst_lengths = feeder.add(lengths_ns, at_once=_LOSSES_AT_ONCE)
    link.lost, _ = engine.add(drops)
    # A run begins at the end of a burst: the event draws the time up to the first.
    link.is_in_burst = True
    engine.at(engine.now_ns, EventKind.DEVICE, 0, engine.number(on_change), row)


def frames_to_loss(uniforms: FloatArray, share: float) -> IntArray:
    """Return how many frames come up to one that is lost, with it, where each is with the chance ``share`` (0 to 1).

    Geometric: a draw for each loss, and none for the frames between.
    """
    return 1 + np.minimum(np.log1p(-uniforms) / math.log1p(-share), float(1 << 53)).astype(np.int64)


def never_fits(key: str, size_bytes: int, queue_bytes: int) -> str:
    """Return key and reason if what is sent as one datagram is longer than the queue of its line, which drops it."""
    if size_bytes <= queue_bytes:
        return ""
    size, queue = BYTE_COUNT.format(size_bytes), BYTE_COUNT.format(queue_bytes)
    return f"{key}: {size} are one packet here, which never fits into the network's queue of {queue}"


def long_transmission_ns(size_bytes: int, rate_bits_per_s: int) -> int:
    """Return how long any amount of data occupies a transmitter, :data:`LONGEST_NS` at most."""
    return min(size_bytes * BITS_NS // rate_bits_per_s, LONGEST_NS)


def utilization(sent_bytes: float, rate_bits_per_s: int, elapsed_ns: int) -> float:
    """Share of a stretch of time in which a transmitter was busy with what it sent in it."""
    return sent_bytes * BITS_NS / rate_bits_per_s / elapsed_ns if elapsed_ns else 0.0


def carried_bytes(link: Link, now_ns: int) -> int:
    """Return what a transmitter has put on the wire by now: of what it took, all but what waits and what is left.

    What it takes in a while may be a queue more, or less, than the line carries in it.
    """
    waits_ns = max(0, int(link.free_ns) - now_ns)
    return int(link.sent_bytes) - round(waits_ns * int(link.rate_bits_per_s) / BITS_NS)


def transmission_ns(link: Link, size_bytes: int) -> int:
    """Return how long a frame occupies the transmitter; below 1.1 GB, or the product passes 64 bits."""
    if link.byte_ns > 0:
        return size_bytes * link.byte_ns  # a division takes as long as the rest of this function
    return size_bytes * BITS_NS // link.rate_bits_per_s


def backlog_ns(sim: Sim, link: Link) -> int:
    """Return the time until the transmitter is free."""
    return max(0, link.free_ns - sim.now_ns)


def occupy(sim: Sim, link: Link, size_bytes: int) -> int:
    """Put a frame on the wire; return when it arrives, or -1 if the queue has no room for it."""
    link.sent += 1
    end_ns = max(sim.now_ns, link.free_ns) + transmission_ns(link, size_bytes)
    if end_ns - sim.now_ns > link.queue_ns:
        return -1
    link.free_ns = end_ns + carried_ns(sim, link, size_bytes)
    link.sent_bytes += size_bytes
    return link.free_ns + link.latency_ns


def carried_ns(sim: Sim, link: Link, size_bytes: int) -> int:
    """Return 1 if the parts of a ns that frames in a row take make a whole one with this frame's, else 0.

    Without them small frames at 100 Gbit/s would leave too fast: 64 bytes take 5.12 ns.
    """
    if link.byte_ns > 0:
        return 0
    if link.free_ns < sim.now_ns:
        link.rest = 0
    link.rest += size_bytes * BITS_NS % link.rate_bits_per_s
    if link.rest < link.rate_bits_per_s:
        return 0
    link.rest -= link.rate_bits_per_s
    return 1


def reserve(sim: Sim, link: Link, size_bytes: int, duration_ns: int) -> None:
    """Let other traffic go first, for as long as it takes; it is carried but not counted as frames."""
    link.free_ns = max(sim.now_ns, link.free_ns) + duration_ns
    link.sent_bytes += size_bytes


def next_lost(sim: Sim, link: Link, frames: int) -> int:
    """Let frames of a link go as far as to the first that is lost on its way; return its number, 0 if none is."""
    if link.until_lost == 0:
        link.until_lost = draw(sim, link.losses)
    if link.until_lost > frames:
        link.until_lost -= frames
        return 0
    number = link.until_lost
    link.until_lost = 0
    return number


def last_lost(sim: Sim, link: Link, frames: int) -> int:
    """Let frames of a link go; return the number of the last that is lost on its way, 0 if none is."""
    last = 0
    number = next_lost(sim, link, frames)
    while number > 0:
        last += number
        number = next_lost(sim, link, frames - last)
    return last


def is_lost_in_burst(sim: Sim, link: Link, leaves_ns: int) -> bool:
    """Tell whether what leaves now, or later, is lost with all else; asked in order of the times."""
    if link.burst_lengths == 0:
        return False
    while link.changes_ns <= leaves_ns:
        link.is_in_burst = not link.is_in_burst
        link.changes_ns += draw(sim, link.burst_lengths if link.is_in_burst else link.burst_gaps)
    return link.is_in_burst


@event
def on_change(sim: Sim, link: Link) -> None:
    """Let a burst begin or end, so that a packet after a long silence does not draw all that were in it."""
    is_lost_in_burst(sim, link, sim.now_ns)
    at(sim, link.changes_ns, EventKind.DEVICE, 0, on_change, link.row)


def transmit(sim: Sim, link: Link, packet: int, on_arrival: int) -> None:
    """Send a packet; the event ``on_arrival`` gets its row.  It is dropped if the queue is full, or on its way."""
    if not is_held_back(sim, link, packet):
        put_on_wire(sim, link, packet, packets(sim)[packet].size_bytes, on_arrival)
        return
    link.on_arrival = on_arrival
    packet_list.push(sim, link.held_back, packet)
    if link.held_back.length == 1:
        plan_room(sim, link)


def wait_for_room_ns(sim: Sim, link: Link, size_bytes: int) -> int:
    """Return how long until the queue has room if nobody else sends, for a piece of what is longer; 0: it has."""
    need_ns = transmission_ns(link, size_bytes)
    if need_ns > link.queue_ns:
        return max(0, backlog_ns(sim, link) - link.queue_ns // 4)
    return max(0, backlog_ns(sim, link) + need_ns - link.queue_ns)


def is_held_back(sim: Sim, link: Link, packet: int) -> bool:
    """Tell whether a packet waits at its sender for room, or behind others: a message does."""
    frame = packets(sim)[packet]
    # Asked of every packet that leaves: most are no messages.
    if flows(sim)[frame.flow].transport != MESSAGE:
        return False
    if link.held_back.length > 0 or transmission_ns(link, frame.size_bytes) > link.queue_ns:
        return True
    return wait_for_room_ns(sim, link, frame.size_bytes) > 0


def rest_bytes(sim: Sim, link: Link) -> int:
    """Return what is left of the first message that waits."""
    return packets(sim)[link.held_back.first].size_bytes - link.gone_bytes


def plan_room(sim: Sim, link: Link) -> None:
    """Look again when there may be room for the first that waits."""
    due_ns = sim.now_ns + wait_for_room_ns(sim, link, rest_bytes(sim, link))
    at(sim, due_ns, EventKind.DELIVERY, packets(sim)[link.held_back.first].entity, on_room, link.row)


@event
def on_room(sim: Sim, link: Link) -> None:
    """Send the messages that wait as far as there is room, which others may have taken."""
    while link.held_back.length > 0 and wait_for_room_ns(sim, link, rest_bytes(sim, link)) == 0:
        send_first(sim, link)
    if link.held_back.length > 0:
        plan_room(sim, link)


def send_first(sim: Sim, link: Link) -> None:
    """Send what is left of the first message that waits, or a piece of it."""
    left_bytes = rest_bytes(sim, link)
    if transmission_ns(link, left_bytes) > link.queue_ns:
        piece_bytes = max(1, product_quotient(link.queue_ns // 4, link.rate_bits_per_s, BITS_NS))
        link.gone_bytes += piece_bytes
        reserve(sim, link, piece_bytes, transmission_ns(link, piece_bytes) + carried_ns(sim, link, piece_bytes))
        return
    link.gone_bytes = 0
    put_on_wire(sim, link, packet_list.pop(sim, link.held_back), left_bytes, link.on_arrival)


def put_on_wire(sim: Sim, link: Link, packet: int, size_bytes: int, on_arrival: int) -> None:
    """Send a packet now, of which so much is left, or drop it if the queue is full."""
    frame = packets(sim)[packet]
    arrival_ns = occupy(sim, link, size_bytes)
    if arrival_ns < 0:
        drop(sim, packet, link.queue_full)
    elif is_lost_in_burst(sim, link, link.free_ns):
        drop(sim, packet, link.lost)
    elif link.losses != 0:
        transmit_lossy(sim, link, flows(sim)[frame.flow], packet, arrival_ns, on_arrival)
    else:
        at(sim, arrival_ns, EventKind.DELIVERY, frame.entity, on_arrival, packet)


def transmit_lossy(sim: Sim, link: Link, flow: Flow, packet: int, arrival_ns: int, on_arrival: int) -> None:
    """Let a packet arrive as far as its frames do; if all do, at ``arrival_ns``."""
    frame_bytes = flow.frame_bytes if flow.frame_bytes > 0 else FULL_FRAME_BYTES
    frames = max(1, -(-packets(sim)[packet].size_bytes // frame_bytes))
    if flow.transport == TRAIN and frames > 1:
        transmit_train(sim, link, flow, packet, frames, arrival_ns, on_arrival)
        return
    is_acknowledgement = flow.transport == MESSAGE and packets(sim)[packet].acked_bytes > 0
    last = 0 if is_acknowledgement else last_lost(sim, link, frames)
    if last > 0 and (flow.transport == DATAGRAM or frames - last < _DUPLICATES):
        drop(sim, packet, link.lost)
    else:
        again_ns = 2 * link.latency_ns if last > 0 else 0
        at(sim, arrival_ns + again_ns, EventKind.DELIVERY, packets(sim)[packet].entity, on_arrival, packet)


def transmit_train(
    sim: Sim, link: Link, flow: Flow, packet: int, frames: int, arrival_ns: int, on_arrival: int
) -> None:
    """Let what is left of a train between the frames that it loses arrive as packets, and drop each of those."""
    entity = packets(sim)[packet].entity
    frame_ns = transmission_ns(link, packets(sim)[packet].size_bytes) // frames
    number = next_lost(sim, link, frames)
    while number > 0:
        if number > 1:
            head = copy(sim, packet)
            cut(sim, flow, head, 0, number - 1)
            head_ns = arrival_ns - (frames - number + 1) * frame_ns
            at(sim, head_ns, EventKind.DELIVERY, entity, on_arrival, head)
        gone = packet if number == frames else copy(sim, packet)
        cut(sim, flow, gone, number - 1, 1)
        drop(sim, gone, link.lost)
        if gone == packet:
            return
        cut(sim, flow, packet, number, frames - number)
        frames -= number
        number = next_lost(sim, link, frames)
    at(sim, arrival_ns, EventKind.DELIVERY, entity, on_arrival, packet)
