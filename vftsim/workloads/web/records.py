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
    own = http_connections(sim)[row]
    http_serials(sim)[1].last += 1
    own.row = row
    own.serial = http_serials(sim)[1].last
    own.load = load
    own.stage = CONNECTING
    own.start_ns = sim.now_ns
    own.requested_ns = 0
    own.first_ns = 0
    own.pieces = 0
    own.timer = 0
    own.retry = 0
    own.repeats = 0
    own.server = 0
    own.state = UNKNOWN
    own.put_out = 0
    own.left = False
    own.is_blocked = False
    return row


@part
def give_back(sim: Sim, own: HttpConnection) -> None:
    """Free the row of a connection that neither end holds any more."""
    if own.stage == CLOSED and own.state != QUEUED and own.state != IN_WORK and own.serial != 0:
        own.serial = 0
        http_connections.free(sim, own.row)


@part
def is_stale(sim: Sim, packet: int) -> bool:
    """Tell whether a packet belongs to a connection that is over."""
    return http_connections(sim)[packets(sim)[packet].stream].serial != packets(sim)[packet].what // SERIALS


@part
def fill_packet(sim: Sim, packet: int, own: HttpConnection, kind: int, piece: int, size_bytes: int) -> None:
    """Write a connection's packet; flow and port are the caller's."""
    made = packets(sim)[packet]
    made.ring = 0
    made.stream = own.row
    made.what = own.serial * SERIALS + piece * KINDS + kind
    made.size_bytes = size_bytes
    made.sent_ns = sim.now_ns
    made.entity = own.row
