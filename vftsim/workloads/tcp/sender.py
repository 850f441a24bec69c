"""The sending end of a connection: window, slow start, loss recovery.

Rules, in segments:

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

Left out: other uses of selective acknowledgement (several losses in one window take a round trip each), limited
transmit (RFC 3042: here its segments take the place that the lost one needs in a full queue), the probe for a loss at
the end of what is under way (RFC 8985), CUBIC, window scaling by the receiver's buffer use (the receive window is
constant), the Nagle algorithm, connection set-up and close.
"""

from vftsim.kernel import EventKind, Sim, at
from vftsim.workloads.tcp.receiver import is_marked
from vftsim.workloads.tcp.records import COUNTS, NO_SEGMENT, Bulk, Connection

DUPLICATES = 3
LONGEST_RTO_NS = 60_000_000_000


def start_sender(bulk: Bulk, connection: Connection) -> None:
    """Begin a connection that has sent nothing."""
    connection.window = bulk.initial_window
    connection.threshold = bulk.window_segments
    connection.resend = NO_SEGMENT
    connection.rto_ns = bulk.first_rto_ns


def next_segments(sim: Sim, bulk: Bulk, connection: Connection) -> int:
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
        acknowledged(sim, bulk, connection, expected, echo_ns)
        # The timer starts anew for what is still out, or rests (RFC 6298, 5.2 and 5.3).
        connection.due_ns = 0
        if connection.nxt > connection.una:
            set_timer(sim, connection, on_due)
    elif expected == connection.una and connection.nxt > connection.una:
        take_duplicate_ack(bulk, connection)


def acknowledged(sim: Sim, bulk: Bulk, connection: Connection, expected: int, echo_ns: int) -> None:
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
