"""httperf: connections begun at a rate whatever becomes of them, one call on each, a time-out in every stage.

Rules (httperf 0.9.0, ``core.c``, ``conn.c``, ``stat/basic.c``): connection n begins n gaps after the first; the
time-out runs anew with each progress (connected, a part of the reply received); a connection without progress for
that long is closed and counts as ``client-timo``.  Lifetimes are of connections that had a reply; connect times of
all that were connected; reply rates are samples of 5 s; the test lasts until the last connection has ended.

What a client waits for it asks for again after ``retry``, then after twice as long (its TCP: SYNs after 1, 2, 4 s).
Simplification: so are requests, with the pieces received so far, while real TCP has an acknowledgement of the
request and leaves it to the server to repeat pieces; this adds a few small packets for each connection that waits
for seconds.

Left out: calls beyond the first on a connection, sessions, the client's own processor (httperf polls with all of
it), its limit of open files.
"""

from vftsim.kernel import Engine, EventKind, Sim, at, entry, event, part
from vftsim.kernel.inputs import Feeder
from vftsim.platform.delays import add_delay, delays, install_buckets
from vftsim.platform.io.host_cards import send_to_host
from vftsim.platform.io.packet import Flow, delivered, flows, lost, packets
from vftsim.sampling import Streams
from vftsim.workloads.gamma_feed import duration_ns, gamma_feed
from vftsim.workloads.web.loads import HttpLoad, http_loads
from vftsim.workloads.web.parameters import HEADER_BYTES, MSS, HttperfSpec, httperf
from vftsim.workloads.web.records import (
    CLOSED,
    CONNECTING,
    FIN,
    KINDS,
    LAST_PIECE,
    PIECE,
    PIECES,
    RECEIVING,
    REQUEST,
    RESET,
    SYN,
    SYN_ACK,
    WAITING,
    HttpConnection,
    fill_packet,
    give_back,
    http_connections,
    is_stale,
    open_row,
)

LONGEST_RETRY_NS = 60_000_000_000
_S = 1_000_000_000


@event
def on_begin(sim: Sim, http_load_row: int, token: int) -> None:
    """Begin a connection, and plan the next."""
    load = http_loads(sim)[http_load_row]
    load.begun += 1
    load.active += 1
    load.most_active = max(load.most_active, load.active)
    connection = http_connections(sim)[open_row(sim, http_load_row)]
    set_stage_timer(sim, load, connection)
    say(sim, load, connection, SYN, HEADER_BYTES)
    watch(sim, connection, load.retry_ns)
    if load.begun < load.connections:
        next_ns = sim.now_ns + max(1, duration_ns(sim, load.gaps, load.gap_ns))
        at(sim, next_ns, EventKind.ARRIVAL, http_load_row, on_begin, http_load_row)


@part
def say(sim: Sim, load: HttpLoad, connection: HttpConnection, kind: int, size_bytes: int) -> None:
    """Send a packet; a request says how many pieces of the reply are there."""
    packet = packets.new(sim)
    packets(sim)[packet].flow = load.flow
    packets(sim)[packet].port = load.port
    fill_packet(sim, packet, connection, kind, connection.pieces, size_bytes)
    load.bytes_sent += size_bytes - HEADER_BYTES
    send_to_host(sim, packet)


@part
def set_stage_timer(sim: Sim, load: HttpLoad, connection: HttpConnection) -> None:
    """Let the time-out run from now on; an event planned for earlier looks again."""
    if load.timeout_ns == 0:
        return
    connection.due_ns = sim.now_ns + load.timeout_ns
    if connection.timer == 0:
        connection.timer = at(sim, connection.due_ns, EventKind.TIMER, connection.row, on_timeout, connection.row)


@part
def watch(sim: Sim, connection: HttpConnection, wait_ns: int) -> None:
    """Ask again after a while for what the client waits for."""
    connection.wait_ns = min(wait_ns, LONGEST_RETRY_NS)
    due_ns = sim.now_ns + connection.wait_ns
    connection.retry = at(sim, due_ns, EventKind.TIMER, connection.row, on_retry, connection.row)


@event
def on_retry(sim: Sim, http_connection_row: int, token: int) -> None:
    """Nothing has come: ask again."""
    connection = http_connections(sim)[http_connection_row]
    if connection.serial == 0 or token != connection.retry:
        return
    load = http_loads(sim)[connection.load]
    load.repeated += 1
    connection.repeats += 1
    factor = 2
    if connection.stage == CONNECTING:
        say(sim, load, connection, SYN, HEADER_BYTES)
        if connection.repeats <= load.linear_retries:
            factor = 1
    else:
        say(sim, load, connection, REQUEST, load.request_bytes + HEADER_BYTES)
    watch(sim, connection, factor * connection.wait_ns)


@event
def on_timeout(sim: Sim, http_connection_row: int, token: int) -> None:
    """Give a connection up that has made no progress for too long."""
    connection = http_connections(sim)[http_connection_row]
    if connection.serial == 0 or token != connection.timer:
        return
    connection.timer = 0
    if connection.due_ns > sim.now_ns:
        connection.timer = at(
            sim, connection.due_ns, EventKind.TIMER, http_connection_row, on_timeout, http_connection_row
        )
        return
    load = http_loads(sim)[connection.load]
    load.timeouts += 1
    close(sim, load, connection)


@part
def close(sim: Sim, load: HttpLoad, connection: HttpConnection) -> None:
    """End a connection at the client, and the test with the last one."""
    say(sim, load, connection, FIN, HEADER_BYTES)
    connection.stage = CLOSED
    connection.timer = 0
    connection.retry = 0
    load.active -= 1
    if load.active == 0 and load.begun == load.connections:
        load.end_ns = sim.now_ns
    give_back(sim, connection)


@httperf.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """Act on a packet from the server, and free it."""
    what = packets(sim)[packet].what
    size_bytes = packets(sim)[packet].size_bytes
    connection = http_connections(sim)[packets(sim)[packet].stream]
    stale = is_stale(sim, packet)
    packets.free(sim, packet)
    if stale or connection.stage == CLOSED:
        return
    load = http_loads(sim)[flow.own]
    if what % KINDS == SYN_ACK and connection.stage == CONNECTING:
        connected(sim, load, connection)
    elif what % KINDS == RESET:
        load.resets += 1
        close(sim, load, connection)
    elif connection.stage != CONNECTING and is_next_piece(connection, what):
        load.bytes_received += payload_bytes(size_bytes)
        take_piece(sim, load, connection, what % KINDS == LAST_PIECE)


@part
def is_next_piece(connection: HttpConnection, what: int) -> bool:
    """Tell whether a packet is the piece of the reply that comes next."""
    return (what % KINDS == PIECE or what % KINDS == LAST_PIECE) and what // KINDS % PIECES == connection.pieces


@part
def payload_bytes(size_bytes: int) -> int:
    """Return what a piece carries: without the headers of its segments."""
    return size_bytes - HEADER_BYTES * max(1, -(-size_bytes // (MSS + HEADER_BYTES)))


@part
def connected(sim: Sim, load: HttpLoad, connection: HttpConnection) -> None:
    """Send the request."""
    load.connects += 1
    load.connect_ns += sim.now_ns - connection.start_ns
    load.requests += 1
    connection.stage = WAITING
    connection.requested_ns = sim.now_ns
    set_stage_timer(sim, load, connection)
    say(sim, load, connection, REQUEST, load.request_bytes + HEADER_BYTES)
    watch(sim, connection, load.retry_ns)


@part
def take_piece(sim: Sim, load: HttpLoad, connection: HttpConnection, is_last: bool) -> None:
    """Take in the next piece of the reply."""
    if connection.stage == WAITING:
        connection.stage = RECEIVING
        connection.first_ns = sim.now_ns
        load.responses += 1
        load.response_ns += sim.now_ns - connection.requested_ns
        add_delay(sim, load.response_times, sim.now_ns - connection.requested_ns)
    connection.pieces += 1
    if not is_last:
        set_stage_timer(sim, load, connection)
        watch(sim, connection, load.retry_ns)
        return
    load.replies += 1
    load.transfer_ns += sim.now_ns - connection.first_ns
    add_delay(sim, load.lifetimes, sim.now_ns - connection.start_ns)
    close(sim, load, connection)


@httperf.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a packet that was dropped."""
    http_loads(sim)[flow.own].dropped += 1


@event
def on_sample(sim: Sim, http_load_row: int, token: int) -> None:
    """Take a sample of the reply rate, while the test lasts."""
    load = http_loads(sim)[http_load_row]
    if load.end_ns != 0:
        return
    rate = (load.replies - load.sampled) * 1e9 / load.sample_ns
    load.sampled = load.replies
    if load.samples == 0 or rate < load.sample_min:
        load.sample_min = rate
    load.sample_max = max(load.sample_max, rate)
    load.samples += 1
    load.sample_sum += rate
    load.sample_squares += rate * rate
    at(sim, sim.now_ns + load.sample_ns, EventKind.TIMER, http_load_row, on_sample, http_load_row)


@entry
def start_httperf(sim: Sim, row: int, delay_ns: int) -> int:
    """Begin the test after a while."""
    load = http_loads(sim)[row]
    load.start_ns = sim.now_ns + delay_ns
    at(sim, load.start_ns, EventKind.ARRIVAL, row, on_begin, row)
    at(sim, load.start_ns + load.sample_ns, EventKind.TIMER, row, on_sample, row)
    return 0


def add_httperf(engine: Engine, feeder: Feeder, port: int, spec: HttperfSpec, streams: Streams, number: int) -> int:
    """Add one httperf of a port; ``number`` says whose draws are its own.  Return its row."""
    install_buckets(engine)
    gap_ns = round(_S / spec.rate)
    row, load = engine.add(
        http_loads,
        port=port,
        gap_ns=gap_ns,
        connections=spec.connections,
        timeout_ns=spec.timeout,
        gaps=gamma_feed(feeder, streams, "httperf.gap", number, gap_ns, spec.gap_cv),
        request_bytes=spec.request_size,
        retry_ns=spec.retry,
        linear_retries=spec.linear_retries,
        sample_ns=spec.sample,
        lifetimes=engine.new(delays),
        response_times=engine.new(delays),
    )
    load.row = row
    load.flow, flow = engine.add(flows, workload=engine.number(httperf), own=row, port=port)
    flow.row = load.flow
    return row
