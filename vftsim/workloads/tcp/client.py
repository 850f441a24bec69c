"""The clients of bulk TCP: machines whose processor is no limit, as iperf 2's client runs on one.

An upload begins with data at once, a download with a packet that asks for it; the three-way handshake and the close
are left out.  What has come in order at the receiver by the end of each interval is written down for the report.
"""

from functools import partial

from vftsim.kernel import Engine, EventKind, Sim, at, entry, event, part
from vftsim.kernel.inputs import Feeder, draw
from vftsim.platform.io.link import links, transmit
from vftsim.platform.io.packet import Flow, delivered, flows, lost, packets
from vftsim.sampling import Draws, Streams, uniform_ns
from vftsim.workloads.stations import add_station, has_room, room, say, stations, wait_for_room
from vftsim.workloads.tcp.parameters import HEADER_BYTES, BulkTcpSpec, bulk_tcp
from vftsim.workloads.tcp.receiver import take_data
from vftsim.workloads.tcp.records import (
    COUNTS,
    Bulk,
    Connection,
    bulks,
    connections,
    intervals,
    new_acknowledgement,
    new_segments,
)
from vftsim.workloads.tcp.sender import is_timed_out, next_segments, note_sent, start_sender, take_acknowledgement


@event
def on_begin(sim: Sim, connection_row: int, token: int) -> None:
    """A client begins."""
    connection = connections(sim)[connection_row]
    bulk = bulks(sim)[connection.bulk]
    connection.end_ns = sim.now_ns + bulk.duration_ns
    if bulk.is_upload:
        start_sender(bulk, connection)
        pump(sim, bulk, connection)
    else:
        say(sim, stations(sim)[connection.station], new_acknowledgement(sim, bulk, connection))
    at(sim, sim.now_ns + bulk.interval_ns, EventKind.TIMER, connection_row, on_interval, connection_row)


@part
def pump(sim: Sim, bulk: Bulk, connection: Connection) -> None:
    """Send what the window allows and the card has room for."""
    station = stations(sim)[connection.station]
    what = next_segments(sim, bulk, connection)
    while what > 0:
        if not has_room(sim, station, what % COUNTS * (bulk.segment_bytes + bulk.header_bytes)):
            wait_for_room(sim, station)
            return
        note_sent(sim, connection, what, on_client_due)
        say(sim, station, new_segments(sim, bulk, connection, what))
        what = next_segments(sim, bulk, connection)


@room
def on_client_room(sim: Sim, connection_row: int) -> None:
    """The client's card has room again."""
    pump(sim, bulks(sim)[connections(sim)[connection_row].bulk], connections(sim)[connection_row])


@event
def on_client_due(sim: Sim, connection_row: int, token: int) -> None:
    """The client's retransmission timer has gone off."""
    connection = connections(sim)[connection_row]
    if token == connection.timer and is_timed_out(sim, connection, on_client_due):
        pump(sim, bulks(sim)[connection.bulk], connection)


@bulk_tcp.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """Take in a packet from the server, over the client's own link if it has one."""
    station = stations(sim)[connections(sim)[packets(sim)[packet].stream].station]
    if station.in_link == 0:
        hear(sim, packet)
    else:
        transmit(sim, links(sim)[station.in_link], packet, on_reaching_client)


@event
def on_reaching_client(sim: Sim, packet_row: int, token: int) -> None:
    """A packet has crossed the client's own link."""
    station = stations(sim)[connections(sim)[packets(sim)[packet_row].stream].station]
    links(sim)[station.in_link].delivered += 1
    hear(sim, packet_row)


@part
def hear(sim: Sim, packet: int) -> None:
    """Take in a packet from the server, and free it."""
    connection = connections(sim)[packets(sim)[packet].stream]
    bulk = bulks(sim)[connection.bulk]
    what = packets(sim)[packet].what
    stamp_ns = packets(sim)[packet].sent_ns
    packets.free(sim, packet)
    if what % COUNTS == 0:
        take_acknowledgement(sim, bulk, connection, what // COUNTS, stamp_ns, on_client_due)
        react(sim, bulk, connection)
    elif take_data(sim, bulk, connection, what, stamp_ns):
        say(sim, stations(sim)[connection.station], new_acknowledgement(sim, bulk, connection))
    elif connection.delay_timer == 0:
        due_ns = sim.now_ns + bulk.delayed_ack_ns
        connection.delay_timer = at(sim, due_ns, EventKind.TIMER, connection.row, on_client_delay, connection.row)


@part
def react(sim: Sim, bulk: Bulk, connection: Connection) -> None:
    """Send what an acknowledgement allows, now or when the client comes to it."""
    if connection.reactions == 0:
        pump(sim, bulk, connection)
    elif not connection.is_reacting:
        connection.is_reacting = True
        due_ns = sim.now_ns + draw(sim, connection.reactions)
        at(sim, due_ns, EventKind.TIMER, connection.row, on_reaction, connection.row)


@event
def on_reaction(sim: Sim, connection_row: int, token: int) -> None:
    """The client comes to what it has to send."""
    connection = connections(sim)[connection_row]
    connection.is_reacting = False
    pump(sim, bulks(sim)[connection.bulk], connection)


@event
def on_client_delay(sim: Sim, connection_row: int, token: int) -> None:
    """The client has put off an acknowledgement for long enough."""
    connection = connections(sim)[connection_row]
    if token == connection.delay_timer:
        bulk = bulks(sim)[connection.bulk]
        say(sim, stations(sim)[connection.station], new_acknowledgement(sim, bulk, connection))


@bulk_tcp.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a packet that was dropped."""
    bulks(sim)[flow.own].dropped += 1


@event
def on_interval(sim: Sim, connection_row: int, token: int) -> None:
    """Write down what has come by the end of an interval."""
    connection = connections(sim)[connection_row]
    bulk = bulks(sim)[connection.bulk]
    row = intervals.new(sim)
    end_ns = connection.end_ns - bulk.duration_ns
    intervals(sim)[row].connection = connection_row
    intervals(sim)[row].begin_ns = sim.now_ns - bulk.interval_ns - end_ns
    intervals(sim)[row].end_ns = sim.now_ns - end_ns
    intervals(sim)[row].segments = connection.expected
    if sim.now_ns + bulk.interval_ns <= connection.end_ns:
        at(sim, sim.now_ns + bulk.interval_ns, EventKind.TIMER, connection_row, on_interval, connection_row)


@entry
def start_bulk_tcp(sim: Sim, row: int, _: int) -> int:
    """Let the clients begin, each at its time."""
    bulk = bulks(sim)[row]
    for connection_row in range(bulk.first, bulk.first + bulk.clients):
        at(
            sim,
            sim.now_ns + connections(sim)[connection_row].first_ns,
            EventKind.ARRIVAL,
            connection_row,
            on_begin,
            connection_row,
        )
    return 0


def add_bulk_tcp(engine: Engine, feeder: Feeder, port: int, spec: BulkTcpSpec, streams: Streams, number: int) -> int:
    """Add the clients of a port; ``number`` says whose draws are theirs.  Return the row of the workload."""
    row, bulk = engine.add(
        bulks,
        port=port,
        is_upload=spec.direction == "upload",
        segment_bytes=spec.mss,
        header_bytes=HEADER_BYTES,
        most_segments=spec.most_segments,
        window=max(2, spec.window // spec.mss),
        initial_window=spec.initial_window,
        delayed_ack_ns=spec.delayed_ack,
        min_rto_ns=spec.min_rto,
        first_rto_ns=spec.first_rto,
        duration_ns=spec.duration,
        interval_ns=spec.interval,
    )
    bulk.row = row
    bulk.flow, flow = engine.add(flows, workload=engine.number(bulk_tcp), own=row, port=port)
    flow.row = bulk.flow
    bulk.clients = spec.clients
    begins = streams.uniforms("bulk_tcp.begin", number, count=spec.clients)
    for n in range(spec.clients):
        made, connection = engine.add(connections, bulk=row, first_ns=int(begins[n] * spec.spread))
        connection.row, connection.station = made, add_station(engine, port, spec.network, on_client_room, made)
        bulk.first = bulk.first or made
        if spec.reaction:
            connection.reactions = feeder.add(
                Draws(
                    streams,
                    "bulk_tcp.reaction",
                    (number << 20) + n,
                    partial(uniform_ns, low_ns=0, high_ns=spec.reaction),
                )
            )
    return row
