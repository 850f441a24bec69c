"""The records of bulk TCP, and how a packet says what it carries.

Sequence numbers count segments of full size from 0.  A packet of data carries ``message`` = first segment x 256 +
number of segments; an acknowledgement carries the next segment expected x 256.  ``sent_ns`` is the time stamp of
RFC 7323: of data when it was sent, of an acknowledgement the one that it echoes.
"""

from typing import Annotated

from vftsim.kernel import Fifo, Record, Row, Sim, Table
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


def new_segments(sim: Sim, bulk: Bulk, connection: Connection, segments: int) -> int:
    """Make a packet of data."""
    count = segments % COUNTS
    return new_stamped(sim, bulk, connection, segments, sim.now_ns, count * (bulk.mss + HEADER_BYTES))


def new_acknowledgement(sim: Sim, bulk: Bulk, connection: Connection) -> int:
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
