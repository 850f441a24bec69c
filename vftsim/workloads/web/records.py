"""The connections of web server and client, and the packets between them.

A packet carries ``message`` = serial number of the connection x 2**24 + number of its first segment x 8 + what it is,
so that one for a connection that is over is known as such although its row may have a new user.
"""

from vftsim.kernel import Chain, Record, Row, Sim, Table
from vftsim.platform.io.packet import packets
from vftsim.workloads.common import new_packet

SYN, SYN_ACK, REQUEST, PIECE, FIN, RESET, LAST_PIECE = 1, 2, 3, 4, 5, 6, 7
KINDS = 8
SEGMENTS = 1 << 21
SERIALS = KINDS * SEGMENTS

HEADER_BYTES = 90
"""Of a segment on the wire: 20 IP, 32 TCP with time stamp, 18 Ethernet, 20 preamble and gap."""
MSS = 1448

CLOSED, CONNECTING, WAITING, RECEIVING = 0, 1, 2, 3
"""Stages of the client."""

UNKNOWN, HALF_OPEN, QUEUED, IN_WORK, DONE = 0, 1, 2, 3, 4
"""States of a connection at the server."""


class HttpConnection(Row):
    """One connection.

    Client: its ``stage``, when it reached each, segments of the reply ``received`` in order, and those from ``early``
    to ``early_end`` (0: none); ``last`` is how many there are, once it knows.  ``timer`` ends the stage, ``retry``
    repeats what it waits for, ``repeats`` times so far.  Server: ``state``, ``server`` and its ``boot`` for which that
    holds, segments ``made`` by the script, of these ``sent`` and ``acked``, of which ``window`` may be under way, the
    row of its ``process``; ``client_left`` once the client is known to have gone.
    """

    serial: int
    load: int
    flow: int
    link: int
    stage: int
    start_ns: int
    requested_ns: int
    first_ns: int
    received: int
    early: int
    early_end: int
    last: int
    timer: int
    due_ns: int
    retry: int
    wait_ns: int
    repeats: int
    server: int
    state: int
    boot: int
    made: int
    sent: int
    acked: int
    window: int
    process: int
    client_left: bool
    is_blocked: bool


class Serials(Record):
    """The last serial number given out."""

    last: int


http_connections = Table("http_connections", HttpConnection, 1 << 19, "lower the rate or the time-out")
http_serials = Table("http_serials", Serials, 2, is_fixed=True)
connection_list = Chain(http_connections, "link")


def open_row(sim: Sim, load: int, flow: int) -> int:
    """Take a row for a new connection."""
    row = http_connections.new(sim)
    connection = http_connections(sim)[row]
    http_serials(sim)[1].last += 1
    connection.serial = http_serials(sim)[1].last
    connection.load = load
    connection.flow = flow
    connection.stage = CONNECTING
    connection.start_ns = sim.now_ns
    connection.requested_ns = 0
    connection.first_ns = 0
    connection.received = 0
    connection.early = 0
    connection.early_end = 0
    connection.last = 0
    connection.timer = 0
    connection.retry = 0
    connection.repeats = 0
    connection.server = 0
    connection.state = UNKNOWN
    connection.made = 0
    connection.sent = 0
    connection.client_left = False
    connection.is_blocked = False
    return row


def segments_of(message: int) -> int:
    """Return the number of a packet's first segment; of a request: how many its client has."""
    return message // KINDS % SEGMENTS


def segments_in(size_bytes: int) -> int:
    """Return how many segments a packet of data has, as the line carries it."""
    return -(-size_bytes // (MSS + HEADER_BYTES))


def free_if_unused(sim: Sim, connection: HttpConnection) -> None:
    """Free the row of a connection that neither end holds any more."""
    is_at_server = connection.state == QUEUED or connection.state == IN_WORK
    if connection.stage == CLOSED and not is_at_server and connection.serial != 0:
        connection.serial = 0
        http_connections.free(sim, connection.row)


def is_stale(sim: Sim, packet: int) -> bool:
    """Tell whether a packet belongs to a connection that is over."""
    return http_connections(sim)[packets(sim)[packet].stream].serial != packets(sim)[packet].message // SERIALS


def new_http_packet(
    sim: Sim, flow: int, port: int, connection: HttpConnection, kind: int, segment: int, size_bytes: int
) -> int:
    message = connection.serial * SERIALS + segment * KINDS + kind
    return new_packet(sim, flow, port, connection.row, connection.row, message, size_bytes)
