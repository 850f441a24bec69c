"""Clients that send datagrams at a rate, as ``iperf -c -u -b``.

A datagram is due every payload / rate; a client that could not send in time (its card had no room, or it needed the
time for the one before) catches up.  What it **offers**, what it **sends** (iperf 2 calls that bandwidth in the
client's report) and what is **received** are three figures.

Left out: the client's last datagrams, which ask for the server's report; the CPU of the clients but for ``send_cost``.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, EventKind, Kind, Record, Sim, Table, at, entry, event, part
from vftsim.platform.io.packet import Flow, delivered, flows, lost, packets, workload
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.units import BitRate, DurationNs, PositiveDurationNs
from vftsim.workloads import stations as station_part
from vftsim.workloads.stations import StationsSpec, add_station, has_room, room, say, stations, wait_for_room
from vftsim.workloads.udp_flow import UdpFlow, udp_flows

bulk_udp = workload.kind("bulk_udp")

HEADER_BYTES = 66
"""Of a datagram on the wire: 28 UDP/IP, 18 Ethernet, 20 preamble and gap."""

_S = 1_000_000_000


class BulkUdpSpec(Spec):
    """Clients that send datagrams at a rate."""

    part: ClassVar[Kind] = bulk_udp

    kind: Literal["bulk_udp"] = "bulk_udp"
    to: str = Field("server", description="Domain that receives.")
    clients: int = Field(1, ge=1, le=1000, description="Flows, each from a machine of its own.")
    rate: BitRate = Field(1_000_000, ge=1_000, description="Payload offered by each. Default: iperf 2, 1 Mbit/s.")
    payload: int = Field(1470, ge=16, le=8972, description="Bytes of a datagram. Default: iperf 2.")
    duration: PositiveDurationNs = Field(10_000_000_000, description="How long they send. Default: iperf, 10 s.")
    spread: DurationNs = Field(1_000_000, description="Clients begin at random within this time. Assumption.")
    send_cost: DurationNs = Field(
        0, description="CPU time that a client needs for a datagram, least time between two. Assumption: none."
    )
    network: StationsSpec = Field(default_factory=StationsSpec, description="How the clients hang on the network.")


class UdpBulk(Record):
    """One workload; its flows stand in consecutive rows.  Gaps are kept in 1/1024 ns, so that rates come out."""

    row: int
    flow: int
    port: int
    first: int
    clients: int
    payload_bytes: int
    frame_bytes: int
    gap_parts: int
    send_ns: int
    duration_ns: int
    dropped: int


udp_bulks = Table("udp_bulks", UdpBulk, 256)


@event
def on_begin(sim: Sim, udp_flow_row: int, token: int) -> None:
    """A client begins."""
    flow = udp_flows(sim)[udp_flow_row]
    flow.first_ns = sim.now_ns
    flow.end_ns = sim.now_ns + udp_bulks(sim)[flow.bulk].duration_ns
    offer(sim, flow)


@event
def on_due(sim: Sim, udp_flow_row: int, token: int) -> None:
    """The next datagram is due."""
    offer(sim, udp_flows(sim)[udp_flow_row])


@room
def on_client_room(sim: Sim, udp_flow_row: int) -> None:
    """The client's card has room again."""
    offer(sim, udp_flows(sim)[udp_flow_row])


@part
def offer(sim: Sim, flow: UdpFlow) -> None:
    """Send a datagram and plan the next, unless time is up; without room wait for it."""
    bulk = udp_bulks(sim)[flow.bulk]
    station = stations(sim)[flow.station]
    if sim.now_ns >= flow.end_ns:
        return
    if not has_room(sim, station, bulk.frame_bytes):
        wait_for_room(sim, station)
        return
    flow.sent += 1
    say(sim, station, new_datagram(sim, bulk, flow))
    # At most 10**10 datagrams of 10**10 parts each would pass 64 bits: a flow of a year.
    flow.due_ns = flow.first_ns + flow.sent * bulk.gap_parts // 1024
    at(sim, max(flow.due_ns, sim.now_ns + bulk.send_ns), EventKind.ARRIVAL, flow.row, on_due, flow.row)


@part
def new_datagram(sim: Sim, bulk: UdpBulk, flow: UdpFlow) -> int:
    """Make the flow's next datagram; they are numbered from 1."""
    row = packets.new(sim)
    packet = packets(sim)[row]
    packet.flow = bulk.flow
    packet.port = bulk.port
    packet.ring = 0
    packet.stream = flow.row
    packet.what = flow.sent
    packet.size_bytes = bulk.frame_bytes
    packet.sent_ns = sim.now_ns
    packet.entity = flow.station
    return row


@bulk_udp.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """Free what a program has sent back; a sink sends nothing."""
    packets.free(sim, packet)


@bulk_udp.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a datagram that was dropped."""
    udp_bulks(sim)[flow.own].dropped += 1


@entry
def start_bulk_udp(sim: Sim, row: int, _: int) -> int:
    """Let the clients begin, each at its time."""
    bulk = udp_bulks(sim)[row]
    for flow_row in range(bulk.first, bulk.first + bulk.clients):
        at(sim, sim.now_ns + udp_flows(sim)[flow_row].first_ns, EventKind.ARRIVAL, flow_row, on_begin, flow_row)
    return 0


ENTRIES = (start_bulk_udp,)
ACTIONS = (on_client_room,)
TABLES = (udp_bulks, udp_flows, *station_part.TABLES)


def add_bulk_udp(engine: Engine, port: int, spec: BulkUdpSpec, streams: Streams, number: int) -> int:
    """Add the clients of a port; ``number`` says whose draws are theirs.  Return the row of the workload."""
    row, bulk = engine.add(
        udp_bulks,
        port=port,
        payload_bytes=spec.payload,
        frame_bytes=spec.payload + HEADER_BYTES,
        gap_parts=spec.payload * 8 * _S * 1024 // spec.rate,
        send_ns=spec.send_cost,
        duration_ns=spec.duration,
    )
    bulk.row = row
    bulk.flow, flow = engine.add(flows, workload=engine.number(bulk_udp), own=row, port=port)
    flow.row = bulk.flow
    bulk.clients = spec.clients
    begins = streams.uniforms("bulk_udp.begin", number, count=spec.clients)
    for n in range(spec.clients):
        made, udp_flow = engine.add(udp_flows, bulk=row, first_ns=int(begins[n] * spec.spread))
        udp_flow.row, udp_flow.station = made, add_station(engine, port, spec.network, on_client_room, made)
        bulk.first = bulk.first or made
    return row


@dataclass(frozen=True)
class UdpFlowResult:
    """What one client and the server would report; ``lost`` as iperf 2 counts, ``socket_drops`` of it in the guest."""

    client: int
    sent: int
    sent_bits_per_s: float
    received: int
    received_bits_per_s: float
    lost: int
    total: int
    late: int
    jitter_ns: float
    mean_difference_ns: float
    socket_drops: int

    @property
    def loss_ratio(self) -> float:
        """Lost of total."""
        return self.lost / self.total if self.total else 0.0


def bulk_udp_result(engine: Engine, row: int) -> list[UdpFlowResult]:
    """Return the reports of each flow of a workload, over the time that clients have sent by now."""
    bulk = engine.rows(udp_bulks)[row]
    return [_flow_result(engine, bulk, n) for n in range(int(bulk.clients))]


def _flow_result(engine: Engine, bulk: UdpBulk, n: int) -> UdpFlowResult:
    udp_flow = engine.rows(udp_flows)[int(bulk.first) + n]
    span_s = max(1, min(engine.now_ns, int(udp_flow.end_ns)) - int(udp_flow.first_ns)) / _S
    bits = int(bulk.payload_bytes) * 8
    return UdpFlowResult(
        client=n + 1,
        sent=int(udp_flow.sent),
        sent_bits_per_s=int(udp_flow.sent) * bits / span_s,
        received=int(udp_flow.received),
        received_bits_per_s=int(udp_flow.received) * bits / span_s,
        lost=int(udp_flow.skipped) - int(udp_flow.late),
        total=int(udp_flow.highest),
        late=int(udp_flow.late),
        jitter_ns=float(udp_flow.jitter_ns),
        mean_difference_ns=int(udp_flow.difference_ns) / max(1, int(udp_flow.received) - 1),
        socket_drops=int(udp_flow.dropped),
    )
