"""The records of web server and client, and the packets between them.

A packet carries ``what`` = serial number of the connection x 2**24 + piece x 8 + what it is, so that one for a
connection that is over is known as such although its row may have a new user.
"""

from vftsim.kernel import Chain, Record, Sim, Table, part
from vftsim.platform.io.packet import packets

SYN, SYN_ACK, REQUEST, PIECE, FIN, RESET, LAST_PIECE = 1, 2, 3, 4, 5, 6, 7
KINDS = 8
PIECES = 1 << 21
SERIALS = KINDS * PIECES

CLOSED, CONNECTING, WAITING, RECEIVING = 0, 1, 2, 3
"""Stages of the client."""

UNKNOWN, HALF_OPEN, QUEUED, IN_WORK, DONE = 0, 1, 2, 3, 4
"""States of a connection at the server."""


class HttpConnection(Record):
    """One connection.

    Client: its ``stage``, when it reached each, ``pieces`` of the reply received in order; ``timer`` ends the
    stage, ``retry`` repeats what it waits for, ``repeats`` times so far.  Server: ``state``, ``server`` and its
    ``boot`` for which that holds, pieces put out, ``place`` of its process; ``left`` once the client is known to have
    gone.
    """

    row: int
    serial: int
    load: int
    link: int
    stage: int
    start_ns: int
    requested_ns: int
    first_ns: int
    pieces: int
    timer: int
    due_ns: int
    retry: int
    wait_ns: int
    repeats: int
    server: int
    state: int
    boot: int
    put_out: int
    place: int
    left: bool
    is_blocked: bool


class Serials(Record):
    """The last serial number given out."""

    last: int


http_connections = Table("http_connections", HttpConnection, 1 << 19, "lower the rate or the time-out")
http_serials = Table("http_serials", Serials, 2, is_fixed=True)
connection_list = Chain(http_connections, "link")
TABLES = (http_connections, http_serials)


@part
def open_row(sim: Sim, load: int) -> int:
    """Take a row for a new connection."""
    row = http_connections.new(sim)
    http_connection = http_connections(sim)[row]
    http_serials(sim)[1].last += 1
    http_connection.row = row
    http_connection.serial = http_serials(sim)[1].last
    http_connection.load = load
    http_connection.stage = CONNECTING
    http_connection.start_ns = sim.now_ns
    http_connection.requested_ns = 0
    http_connection.first_ns = 0
    http_connection.pieces = 0
    http_connection.timer = 0
    http_connection.retry = 0
    http_connection.repeats = 0
    http_connection.server = 0
    http_connection.state = UNKNOWN
    http_connection.put_out = 0
    http_connection.left = False
    http_connection.is_blocked = False
    return row


@part
def give_back(sim: Sim, http_connection: HttpConnection) -> None:
    """Free the row of a connection that neither end holds any more."""
    if (
        http_connection.stage == CLOSED
        and http_connection.state != QUEUED
        and http_connection.state != IN_WORK
        and http_connection.serial != 0
    ):
        http_connection.serial = 0
        http_connections.free(sim, http_connection.row)


@part
def is_stale(sim: Sim, packet: int) -> bool:
    """Tell whether a packet belongs to a connection that is over."""
    return http_connections(sim)[packets(sim)[packet].stream].serial != packets(sim)[packet].what // SERIALS


@part
def fill_packet(sim: Sim, packet: int, http_connection: HttpConnection, kind: int, piece: int, size_bytes: int) -> None:
    """Write a connection's packet; flow and port are the caller's."""
    made = packets(sim)[packet]
    made.ring = 0
    made.stream = http_connection.row
    made.what = http_connection.serial * SERIALS + piece * KINDS + kind
    made.size_bytes = size_bytes
    made.sent_ns = sim.now_ns
    made.entity = http_connection.row
