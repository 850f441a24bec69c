"""The receiving end of a connection: order, and when to acknowledge.

Rules: an acknowledgement for at least every second segment (RFC 5681, 4.2), else after the delay; at once for a segment
out of order, and when a gap is filled (RFC 5681, 4.2).
"""

from vftsim.kernel import Failure, Sim, fail
from vftsim.workloads.tcp.records import COUNTS, MOST_IN_WINDOW, WORD_BITS, Bulk, Connection

TOO_FAR = Failure("a TCP segment lies beyond what a receiver can hold; make the window smaller")


def take_data(sim: Sim, bulk: Bulk, connection: Connection, segments: int, stamp_ns: int) -> bool:
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
