"""A connection of bulk TCP: its records, its receiving and its sending end.

Rules of the receiver: an acknowledgement for at least every second segment (RFC 5681, 4.2), else after the delay; at
once for a segment out of order, and when a gap is filled (RFC 5681, 4.2).

Rules of the sender, in segments:

* **Slow start and congestion avoidance** (RFC 5681, 3.1; RFC 3465: by what is acknowledged, as Linux counts): the
  congestion window grows by the segments acknowledged below the threshold, above it by one for each window of them.
* **Fast retransmit and recovery** (RFC 5681, 3.2; RFC 6582): the third duplicate acknowledgement halves the window and
  sends the missing packet again; each further one lets one more out; a partial acknowledgement sends the next missing
  packet; the acknowledgement of all that had been sent ends it.
* **Time-out** (RFC 6298): smoothed round trip + 4 deviations, between ``min_rto`` and a minute, doubled each time; the
  window becomes one segment and everything not acknowledged is sent again; the first one halves the threshold, those
  that follow for the same segment leave it (RFC 5681, 3.1).  Round trips come from time stamps (RFC 7323), so
  retransmissions need no exception.
* **Segments handled together** (offload) are acknowledged together: how many have come beyond a missing one, and which,
  selective acknowledgements tell (RFC 6675, 4).  Simplification: as the receiver knows it when the sender asks, half a
  round trip early.

Sequence numbers count segments of full size from 0.  A packet of data carries ``message`` = first segment x 256 +
number of segments; an acknowledgement carries the next segment expected x 256.  ``sent_ns`` is the time stamp of
RFC 7323: of data when it was sent, of an acknowledgement the one that it echoes.

Left out: other uses of selective acknowledgement (several losses in one window take a round trip each), limited
transmit (RFC 3042: here its segments take the place that the lost one needs in a full queue), the probe for a loss at
the end of what is under way (RFC 8985), CUBIC, window scaling by the receiver's buffer use (the receive window is
constant), the Nagle algorithm, connection set-up and close.
"""

from typing import Annotated

from vftsim.kernel import BESIDE, EventKind, Failure, Fifo, Record, Row, Sim, Table, at, fail
from vftsim.platform.io.packet import packets
from vftsim.workloads.common import WorkloadRow, new_packet

COUNTS = 256
WORDS = 128
WORD_BITS = 32
MOST_IN_WINDOW = WORDS * WORD_BITS
"""Segments that a receiver can hold out of order."""

NO_SEGMENT = -1

HEADER_BYTES = 90
"""Of a segment on the wire: 20 IP, 32 TCP with time stamp, 14 + 4 Ethernet, 20 preamble and gap."""


class Bulk(WorkloadRow):
    """One workload of bulk TCP; its connections stand in consecutive rows."""

    first_connection: int
    clients: int
    is_upload: bool
    mss: int
    most_segments: int
    window_segments: int
    initial_window: int
    delayed_ack_ns: int
    min_rto_ns: int
    first_rto_ns: int
    duration_ns: int
    interval_ns: int
    dropped: int


class Connection(Row):
    """One connection.

    Identity: its workload, station, the ``program`` at the server's end (an application's row).

    Sender: segments up to ``una`` are acknowledged, up to ``nxt`` sent; ``resend`` is one to be sent again now.
    ``recover`` is the highest segment sent when loss was last found, ``is_backing_off`` whether a time-out has come
    since anything was acknowledged.  A retransmission is due at ``due_ns`` (0: none); ``timer`` is the one event
    planned for it, at ``look_ns``, which is planned anew when it comes early.

    Receiver: everything below ``expected`` is there, ``beyond`` marks segments above; ``pending`` segments are not
    acknowledged; ``echo_ns`` is the time stamp to echo.

    Client: ``reactions`` is a feed of the times it needs before it reacts (0: none), ``is_reacting`` while it does.
    ``process`` at the server's end: packets wait in ``queue``, ``packet`` is in work.
    """

    bulk: int
    station: int
    program: int
    process: int
    link: int
    first_ns: int
    end_ns: int
    una: int
    nxt: int
    window: int
    threshold: int
    credit: int
    duplicates: int
    is_recovering: bool
    is_backing_off: bool
    recover: int
    resend: int
    rtt_ns: int
    deviation_ns: int
    rto_ns: int
    due_ns: int
    timer: int
    look_ns: int
    expected: int
    beyond: Annotated[list[int], WORDS]
    beyond_count: int
    pending: int
    echo_ns: int
    owes: bool
    delay_timer: int
    reactions: int
    is_reacting: bool
    queue: Fifo
    packet: int
    is_busy: bool
    is_blocked: bool
    is_reset: bool
    retransmitted: int
    timeouts: int
    recoveries: int
    acknowledgements: int


class Interval(Record):
    """What a connection's receiver had by the end of an interval."""

    connection: int
    begin_ns: int
    end_ns: int
    segments: int


bulks = Table("tcp_bulks", Bulk, 256)
connections = Table("tcp_connections", Connection, 1 << 14, "use fewer clients")
intervals = Table("tcp_intervals", Interval, 1 << 18, "report longer intervals")


def new_segments(sim: Sim, connection: Connection, segments: int, bulk: Bulk = BESIDE) -> int:
    """Make a packet of data."""
    count = segments % COUNTS
    return new_stamped(sim, bulk, connection, segments, sim.now_ns, count * (bulk.mss + HEADER_BYTES))


def new_acknowledgement(sim: Sim, connection: Connection, bulk: Bulk = BESIDE) -> int:
    """Make an acknowledgement of all that has come in order; nothing is owed then."""
    connection.pending = 0
    connection.owes = False
    connection.delay_timer = 0
    connection.acknowledgements += 1
    return new_stamped(sim, bulk, connection, connection.expected * COUNTS, connection.echo_ns, HEADER_BYTES)


def new_stamped(sim: Sim, bulk: Bulk, connection: Connection, message: int, stamp_ns: int, size_bytes: int) -> int:
    """Make a packet of a connection with a time stamp."""
    row = new_packet(sim, bulk.flow, bulk.port, connection.row, connection.station, message, size_bytes)
    packets(sim)[row].sent_ns = stamp_ns
    return row


TOO_FAR = Failure("a TCP segment lies beyond what a receiver can hold; make the window smaller")


def take_data(sim: Sim, connection: Connection, segments: int, stamp_ns: int, bulk: Bulk = BESIDE) -> bool:
    """Take in a packet of data; True if it must be acknowledged at once (it is ``pending`` otherwise)."""
    first = segments // COUNTS
    end = first + segments % COUNTS
    if first > connection.expected:
        mark_beyond(sim, connection, first, end)
        return True
    # Of what begins no later than the last acknowledgement ends, a segment that comes twice too (RFC 7323, 4.3).
    if first <= connection.expected - connection.pending:
        connection.echo_ns = max(connection.echo_ns, stamp_ns)
    if end <= connection.expected:
        return True
    # Read before segments are taken out of it: a gap that is filled is acknowledged at once.
    had_gap = connection.beyond_count > 0
    connection.pending += end - connection.expected
    connection.expected = end
    unmark_below(connection, first, end)
    skip_marked(connection)
    return had_gap or connection.pending >= 2 or bulk.delayed_ack_ns == 0


def mark_beyond(sim: Sim, connection: Connection, first: int, end: int) -> None:
    """Remember segments that came too early."""
    if end - connection.expected > MOST_IN_WINDOW:
        fail(sim, TOO_FAR)
        return
    for segment in range(first, end):
        word = segment // WORD_BITS % (MOST_IN_WINDOW // WORD_BITS)
        bit = 1 << (segment % WORD_BITS)
        if connection.beyond[word] & bit == 0:
            connection.beyond[word] |= bit
            connection.beyond_count += 1


def is_marked(connection: Connection, segment: int) -> bool:
    """Tell whether a segment has come too early."""
    word = segment // WORD_BITS % (MOST_IN_WINDOW // WORD_BITS)
    return connection.beyond[word] & (1 << (segment % WORD_BITS)) != 0


def unmark(connection: Connection, segment: int) -> bool:
    """Forget that a segment came too early; tell whether it had."""
    if not is_marked(connection, segment):
        return False
    connection.beyond[segment // WORD_BITS % (MOST_IN_WINDOW // WORD_BITS)] -= 1 << (segment % WORD_BITS)
    connection.beyond_count -= 1
    return True


def unmark_below(connection: Connection, first: int, end: int) -> None:
    """Forget marks of segments that have come again, in order."""
    if connection.beyond_count > 0:
        for segment in range(first, end):
            unmark(connection, segment)


def skip_marked(connection: Connection) -> None:
    """Move on over segments that are there already."""
    while connection.beyond_count > 0 and unmark(connection, connection.expected):
        connection.expected += 1


DUPLICATES = 3
LONGEST_RTO_NS = 60_000_000_000


def start_sender(bulk: Bulk, connection: Connection) -> None:
    """Begin a connection that has sent nothing."""
    connection.window = bulk.initial_window
    connection.threshold = bulk.window_segments
    connection.resend = NO_SEGMENT
    connection.rto_ns = bulk.first_rto_ns


def next_segments(sim: Sim, connection: Connection, bulk: Bulk = BESIDE) -> int:
    """Return what may be sent now (as :mod:`.records` writes it), 0 if nothing; it stays to be sent."""
    if connection.resend != NO_SEGMENT:
        return connection.resend * COUNTS + missing_segments(bulk, connection)
    open_segments = connection.una + min(connection.window, bulk.window_segments) - connection.nxt
    # Beyond what was sent before the last loss there is nothing new to send once time is up.
    is_new = connection.nxt >= connection.recover
    if open_segments <= 0 or (is_new and sim.now_ns >= connection.end_ns):
        return 0
    return connection.nxt * COUNTS + min(open_segments, bulk.most_segments)


def missing_segments(bulk: Bulk, connection: Connection) -> int:
    """Return how many segments are sent again at once: those up to the next that has arrived."""
    count = 1
    most = min(bulk.most_segments, connection.recover - connection.resend)
    while count < most and not is_marked(connection, connection.resend + count):
        count += 1
    return count


def note_sent(sim: Sim, connection: Connection, segments: int, on_due: int) -> None:
    """Take note that segments go out; ``on_due`` is the event of the retransmission timer."""
    first = segments // COUNTS
    end = first + segments % COUNTS
    if connection.resend != NO_SEGMENT:
        connection.resend = NO_SEGMENT
        connection.retransmitted += segments % COUNTS
    else:
        connection.retransmitted += max(0, min(end, connection.recover) - first)
        connection.nxt = end
    # It runs for the oldest segment that is not acknowledged: a later one does not start it anew (RFC 6298, 5.1).
    if connection.due_ns == 0:
        set_timer(sim, connection, on_due)


def set_timer(sim: Sim, connection: Connection, on_due: int) -> None:
    """Let the retransmission timer run from now on; an event already planned for earlier plans it anew."""
    connection.due_ns = sim.now_ns + connection.rto_ns
    # The time-out may have become shorter: that before any round trip is known is a second.
    if connection.timer == 0 or connection.look_ns > connection.due_ns:
        plan_look(sim, connection, on_due)


def plan_look(sim: Sim, connection: Connection, on_due: int) -> None:
    """Look at the timer when it is due; what is planned for another time finds that it is not meant any more."""
    connection.look_ns = connection.due_ns
    connection.timer = at(sim, connection.due_ns, EventKind.TIMER, connection.row, on_due, connection.row)


def take_acknowledgement(
    sim: Sim, bulk: Bulk, connection: Connection, expected: int, echo_ns: int, on_due: int
) -> None:
    """Take in an acknowledgement; send what :func:`next_segments` says then."""
    if expected > connection.una:
        acknowledged(sim, connection, expected, echo_ns)
        # The timer starts anew for what is still out, or rests (RFC 6298, 5.2 and 5.3).
        connection.due_ns = 0
        if connection.nxt > connection.una:
            set_timer(sim, connection, on_due)
    elif expected == connection.una and connection.nxt > connection.una:
        take_duplicate_ack(bulk, connection)


def acknowledged(sim: Sim, connection: Connection, expected: int, echo_ns: int, bulk: Bulk = BESIDE) -> None:
    """Take in that segments have arrived."""
    count = expected - connection.una
    connection.una = expected
    # After a time-out it has gone back: what has arrived all the same is not sent again.
    connection.nxt = max(connection.nxt, expected)
    connection.duplicates = 0
    connection.is_backing_off = False
    if echo_ns >= 0:
        measure(bulk, connection, sim.now_ns - echo_ns)
    if not connection.is_recovering:
        grow(connection, count)
        connection.window = min(connection.window, bulk.window_segments)
    elif expected >= connection.recover:
        connection.is_recovering = False
        connection.window = min(connection.threshold, max(connection.nxt - expected, 1) + 1)
        connection.credit = 0
    else:
        connection.resend = expected
        connection.window = max(1, connection.window - count + 1)


def grow(connection: Connection, count: int) -> None:
    """Widen the window for segments acknowledged while nothing is known to be lost."""
    slow = min(count, max(0, connection.threshold - connection.window))
    connection.window += slow
    connection.credit += count - slow
    if connection.credit >= connection.window:
        connection.credit -= connection.window
        connection.window += 1


def take_duplicate_ack(bulk: Bulk, connection: Connection) -> None:
    """Take in a duplicate acknowledgement; of segments handled together it tells how many have come."""
    connection.duplicates += 1
    if bulk.most_segments > 1:
        connection.duplicates = max(connection.duplicates, connection.beyond_count)
    if connection.is_recovering:
        connection.window += 1
        if bulk.most_segments > 1:
            connection.window = max(connection.window, connection.threshold + connection.beyond_count)
    # Not for what was sent before the last recovery or time-out (RFC 6582, 3.2).
    elif connection.duplicates >= DUPLICATES and connection.una >= connection.recover:
        connection.is_recovering = True
        connection.recoveries += 1
        connection.recover = connection.nxt
        connection.threshold = max((connection.nxt - connection.una) // 2, 2)
        connection.window = connection.threshold + DUPLICATES
        connection.resend = connection.una


def measure(bulk: Bulk, connection: Connection, rtt_ns: int) -> None:
    """Take in a round trip (RFC 6298, 2); clock granularity: 0."""
    if connection.rtt_ns == 0:
        connection.rtt_ns = rtt_ns
        connection.deviation_ns = rtt_ns // 2
    else:
        connection.deviation_ns += (abs(connection.rtt_ns - rtt_ns) - connection.deviation_ns) // 4
        connection.rtt_ns += (rtt_ns - connection.rtt_ns) // 8
    longest_ns = max(bulk.min_rto_ns, connection.rtt_ns + 4 * connection.deviation_ns)
    connection.rto_ns = min(longest_ns, LONGEST_RTO_NS)


def is_timed_out(sim: Sim, connection: Connection, on_due: int) -> bool:
    """Look at the timer whose event has come; True if the window has been taken back and sending must begin again."""
    if connection.due_ns == 0:
        return False
    # It was set anew meanwhile: one event is moved on, instead of one planned for each acknowledgement.
    if connection.due_ns > sim.now_ns:
        plan_look(sim, connection, on_due)
        return False
    connection.due_ns = 0
    connection.timeouts += 1
    # A segment that time-outs have sent again already tells nothing new of the path (RFC 5681, 3.1).
    if not connection.is_backing_off:
        connection.threshold = max((connection.nxt - connection.una) // 2, 2)
    connection.is_backing_off = True
    connection.window = 1
    connection.credit = 0
    connection.duplicates = 0
    connection.is_recovering = False
    # What was sent by now may be sent twice: its duplicates must begin no recovery.
    connection.recover = max(connection.recover, connection.nxt)
    connection.nxt = connection.una
    connection.resend = NO_SEGMENT
    connection.rto_ns = min(2 * connection.rto_ns, LONGEST_RTO_NS)
    return True
