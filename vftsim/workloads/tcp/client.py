"""The clients of bulk TCP: machines whose processor is no limit, as iperf 2's client runs on one.

An upload begins with data at once, a download with a packet that asks for them, which is repeated as a SYN is until
some come: after ``first_rto``, doubled each time (RFC 6298, 2.1 and 5.5).  The three-way handshake and the close are
left out.  What has come in order at the receiver by the end of each interval is written down for the report.
"""

import struct
from dataclasses import dataclass
from functools import partial
from typing import Literal

from pydantic import Field

from vftsim.kernel import BESIDE, EventKind, Sim, at, entry, event, timer
from vftsim.kernel.inputs import draw
from vftsim.outcome import Outcome, attribute, declare
from vftsim.platform.io.link import links, transmit
from vftsim.platform.io.packet import TRAIN, Flow, cut, delivered, flows, lost, packets, workload
from vftsim.sampling import Draws, uniform_ns
from vftsim.spec.units import BYTE_COUNT, ByteCount, DurationNs, PeriodNs, PositiveDurationNs, S
from vftsim.workloads.iperf_reports import TcpConnectionResult, iperf2_of_tcp
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, RunProfile, Target
from vftsim.workloads.stations import (
    BulkClientsSpec,
    BulkDriver,
    Station,
    full_link,
    has_room,
    room,
    send,
    stations,
    wait_for_room,
)
from vftsim.workloads.tcp import connection as tcp
from vftsim.workloads.wire import Address, Wire, WirePacket

bulk_tcp = workload.kind("bulk_tcp")

_MBIT = 1e-6
_TCP_IN_IP = 6
_FULL = 0.9
"""Share of its payload from which a client's link counts as full under TCP, which begins slowly."""
_Span = tuple[int, int, int]
"""Begin and end of an interval in ns from the client's begin, segments that had come in order by its end."""


@event
def on_begin(sim: Sim, connection: tcp.Connection, bulk: tcp.Bulk = BESIDE) -> None:
    connection.end_ns = sim.now_ns + bulk.duration_ns
    if bulk.is_upload:
        tcp.start_sender(bulk, connection)
        pump(sim, connection)
    else:
        request_data(sim, connection)
    plan_interval(sim, connection)


def request_data(sim: Sim, connection: tcp.Connection, bulk: tcp.Bulk = BESIDE) -> None:
    """Ask for data, and look later whether some have come: until then there is no acknowledgement to put off."""
    send(sim, stations(sim)[connection.station], tcp.new_acknowledgement(sim, connection))
    passed_ns = sim.now_ns - (connection.end_ns - bulk.duration_ns)
    due_ns = sim.now_ns + min(passed_ns + bulk.first_rto_ns, tcp.LONGEST_RTO_NS)
    connection.delay_timer = at(sim, due_ns, EventKind.TIMER, connection.row, on_request_timeout, connection.row)


@timer(tcp.connections, "delay_timer")
def on_request_timeout(sim: Sim, connection: tcp.Connection) -> None:
    """Ask again, unless data have come or time is up."""
    if sim.now_ns < connection.end_ns:
        request_data(sim, connection)


def pump(sim: Sim, connection: tcp.Connection, station: Station = BESIDE, bulk: tcp.Bulk = BESIDE) -> None:
    """Send what the window allows and the card has room for."""
    segments = tcp.next_segments(sim, connection)
    while segments > 0:
        if not has_room(sim, station, segments % tcp.COUNTS * (bulk.mss + tcp.HEADER_BYTES)):
            wait_for_room(sim, station)
            return
        # Before it is sent, so that the next question finds the window smaller.
        tcp.note_sent(sim, connection, segments, on_client_due)
        send(sim, station, tcp.new_segments(sim, connection, segments))
        segments = tcp.next_segments(sim, connection)


on_client_room = room(pump)


@timer(tcp.connections, "timer")
def on_client_due(sim: Sim, connection: tcp.Connection) -> None:
    """The client's retransmission timer has gone off."""
    if tcp.is_timed_out(sim, connection, on_client_due):
        pump(sim, connection)


@bulk_tcp.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """Take in a packet from the server, over the client's link if it has one."""
    station = stations(sim)[tcp.connections(sim)[packets(sim)[packet].stream].station]
    if station.in_link == 0:
        handle_packet(sim, packet)
    else:
        transmit(sim, links(sim)[station.in_link], packet, on_reaching_client)


@event
def on_reaching_client(sim: Sim, packet_row: int) -> None:
    """A packet has crossed the client's link."""
    station = stations(sim)[tcp.connections(sim)[packets(sim)[packet_row].stream].station]
    links(sim)[station.in_link].delivered += 1
    handle_packet(sim, packet_row)


def handle_packet(sim: Sim, packet: int) -> None:
    """Take in a packet from the server, and free it."""
    connection = tcp.connections(sim)[packets(sim)[packet].stream]
    bulk = tcp.bulks(sim)[connection.bulk]
    # Read before the packet is freed: what follows may take its row.
    message = packets(sim)[packet].message
    stamp_ns = packets(sim)[packet].sent_ns
    packets.free(sim, packet)
    if connection.expected == 0 and connection.beyond_count == 0:
        # The first that comes: nothing is asked for any more.
        connection.delay_timer = 0
    if message % tcp.COUNTS == 0:
        tcp.take_acknowledgement(sim, bulk, connection, message // tcp.COUNTS, stamp_ns, on_client_due)
        respond(sim, connection)
    elif tcp.take_data(sim, connection, message, stamp_ns):
        send(sim, stations(sim)[connection.station], tcp.new_acknowledgement(sim, connection))
    elif connection.delay_timer == 0:
        due_ns = sim.now_ns + bulk.delayed_ack_ns
        connection.delay_timer = at(sim, due_ns, EventKind.TIMER, connection.row, on_client_delay, connection.row)


def respond(sim: Sim, connection: tcp.Connection) -> None:
    """Send what an acknowledgement allows, now or when the client has reacted."""
    if connection.reactions == 0:
        pump(sim, connection)
    elif not connection.is_reacting:
        connection.is_reacting = True
        due_ns = sim.now_ns + draw(sim, connection.reactions)
        at(sim, due_ns, EventKind.TIMER, connection.row, on_reaction, connection.row)


@event
def on_reaction(sim: Sim, connection: tcp.Connection) -> None:
    """The client comes to what it has to send."""
    connection.is_reacting = False
    pump(sim, connection)


@timer(tcp.connections, "delay_timer")
def on_client_delay(sim: Sim, connection: tcp.Connection) -> None:
    """The client has put off an acknowledgement for long enough."""
    send(sim, stations(sim)[connection.station], tcp.new_acknowledgement(sim, connection))


@bulk_tcp.implements(cut)
def cut_segments(sim: Sim, flow: Flow, packet: int, first: int, count: int) -> None:
    """Let a packet carry so many of its segments."""
    carried = packets(sim)[packet]
    carried.message = (carried.message // tcp.COUNTS + first) * tcp.COUNTS + count
    carried.size_bytes = count * flow.frame_bytes


@bulk_tcp.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    tcp.bulks(sim)[flow.state_row].dropped += 1


@event
def on_interval(sim: Sim, connection: tcp.Connection, bulk: tcp.Bulk = BESIDE) -> None:
    """Write down what has come by the end of an interval."""
    interval = tcp.intervals(sim)[tcp.intervals.new(sim)]
    interval.connection = connection.row
    interval.end_ns = sim.now_ns - (connection.end_ns - bulk.duration_ns)
    # The last may be shorter than the others.
    interval.begin_ns = (interval.end_ns - 1) // bulk.interval_ns * bulk.interval_ns
    interval.segments = connection.expected
    if sim.now_ns < connection.end_ns:
        plan_interval(sim, connection)


def plan_interval(sim: Sim, connection: tcp.Connection, bulk: tcp.Bulk = BESIDE) -> None:
    """Let an interval end after its length, or with the test."""
    due_ns = min(sim.now_ns + bulk.interval_ns, connection.end_ns)
    at(sim, due_ns, EventKind.TIMER, connection.row, on_interval, connection.row)


@entry
def start_bulk_tcp(sim: Sim, bulk: tcp.Bulk) -> None:
    """Let the clients begin, each at its time."""
    for connection in tcp.connections.span(sim, bulk.first_connection, bulk.clients):
        first_ns = sim.now_ns + connection.first_ns
        at(sim, first_ns, EventKind.ARRIVAL, connection.row, on_begin, connection.row)


def line_payload_bits_per_s(rate_bits_per_s: float, mss: int = 1448) -> float:
    """Return the payload that a line of full segments carries: frame arithmetic."""
    return rate_bits_per_s * mss / (mss + tcp.HEADER_BYTES)


class TcpFlows(Outcome):
    """What the connections of one iperf, or of several together, carried over the whole test."""

    throughput: dict[str, float] = declare.number(
        by="name", unit="Mbit/s", label="throughput", better="higher", headline=True, known_as=("mbit_per_s",)
    )
    retransmitted: int = declare.total(label="segments sent again", better="lower")
    timeouts: int = declare.total(label="time-outs", better="lower")


class TcpTest(TcpFlows):
    """What one iperf reports of TCP."""

    report: str = attribute()


@dataclass(frozen=True)
class TcpWire(Wire):
    """The sequence number counts bytes from 1, as after a SYN of 0."""

    mss: int
    port = 5001

    def name(self, message: int) -> str:
        """Return the numbers of the segments, or of the one that is expected."""
        first, count = divmod(message, tcp.COUNTS)
        return f"segments {first} to {first + count - 1}" if count else f"ACK {first}"

    def client(self, packet: WirePacket, flow: int, *, is_to_guest: bool) -> Address:
        """A port of each connection."""
        address = super().client(packet, flow, is_to_guest=is_to_guest)
        return Address(address.ip, 32768 + packet.stream % 28000)

    def in_ip(self, packet: WirePacket, source: Address, target: Address) -> tuple[int, bytes, int]:
        """Return the header; data are left out."""
        first, count = divmod(packet.message, tcp.COUNTS)
        number, expected = (1 + first * self.mss, 1) if count else (1, 1 + first * self.mss)
        # 52 bytes of headers are 20 of IP and 32 here: two of padding and the time stamp option (RFC 7323).
        option = struct.pack("!BBBBII", 1, 1, 8, 10, packet.begin_ns // 1_000_000 & 0xFFFFFFFF, 0)
        ports_and_numbers = source.port, target.port, number & 0xFFFFFFFF, expected & 0xFFFFFFFF
        head = struct.pack("!HHIIBBHHH", *ports_and_numbers, 8 << 4, 0x10, 65535, 0, 0) + option
        return _TCP_IN_IP, head, len(head) + count * self.mss


@WORKLOADS.register
class BulkTcpSpec(BulkClientsSpec):
    """Clients that send to the server, or receive from it, as fast as TCP lets them."""

    products = ("iperf", "iperf3")
    speaks = "tcp"
    transport = TRAIN
    entries = (start_bulk_tcp,)
    actions = (on_client_room,)
    outcomes = (TcpTest,)

    kind: Literal["bulk_tcp"] = "bulk_tcp"
    to: str = Field("server", description="Domain at the other end.")
    direction: Literal["upload", "download"] = Field("upload", description="Who sends. Default: iperf, the client.")
    interval: PeriodNs = Field(1_000_000_000, description="Length of the intervals that are reported.")
    window: ByteCount = Field(
        128 * 1024,
        ge=2_000,
        le=5_900_000,
        description="Receive window. Assumption: what Linux tunes itself to in a LAN.",
    )
    mss: int = Field(
        1448,
        ge=536,
        le=8948,
        description="Payload of a segment; above 1448 in jumbo frames (MTU 9000). Default: 1500 less 52 of TCP/IP.",
    )
    initial_window: int = Field(10, ge=1, le=64, description="Segments sent at first. Default: RFC 6928, Linux 2.6.39.")
    delayed_ack: DurationNs = Field(
        40_000_000, description="Longest wait of an acknowledgement (RFC 1122, 4.2.3.2); 0: none. Default: Linux."
    )
    min_rto: PositiveDurationNs = Field(200_000_000, description="Least retransmission time-out. Default: Linux.")
    first_rto: PositiveDurationNs = Field(1_000_000_000, description="Before a round trip is known. Default: RFC 6298.")
    reaction: DurationNs = Field(
        25_000,
        description="A client reacts to an acknowledgement after a random time, uniform up to this; 0: at once. "
        "Assumption: two segments' time. Perfect timing locks clients out at a full queue (traffic phase effects, "
        "Floyd and Jacobson 1992).",
    )
    segmentation_offload: bool = Field(
        False, description="Stacks handle up to 64 KiB as one packet (TSO at the sender, LRO or GRO at the receiver)."
    )

    @property
    def most_segments(self) -> int:
        """Segments that are handled as one packet."""
        return 65_536 // self.mss if self.segmentation_offload else 1

    @property
    def header_bytes(self) -> int:
        """What a segment has on the wire beside its payload."""
        return tcp.HEADER_BYTES

    @property
    def frame_bytes(self) -> int:
        """Segments that are handled as one packet, or acknowledgements."""
        segments = min(self.most_segments, self.window_segments) if self.direction == "upload" else 0
        return max(segments * (self.mss + tcp.HEADER_BYTES), tcp.HEADER_BYTES)

    @property
    def window_segments(self) -> int:
        """Segments that the receive window holds."""
        return self.window // self.mss

    def incompatibility(self, application: ApplicationSpec, rate_bits_per_s: int, queue_bytes: int) -> str:
        """An upload needs a sink, a download a source."""
        end = "tcp_sink" if self.direction == "upload" else "tcp_source"
        if application.kind != end:
            return f"to: '{self.to}': an {self.direction} is directed at a {end}"
        if self.window < self.mss:
            return f"window: {BYTE_COUNT.format(self.window)} hold no segment of {self.mss} B (mss)"
        return super().incompatibility(application, rate_bits_per_s, queue_bytes)

    def packets(self, profile: RunProfile) -> float:
        """As many segments as the line carries."""
        return self.sending_ns(profile) * 1e-9 * profile.rate_bits_per_s / (8 * (self.mss + tcp.HEADER_BYTES))

    def fills(self, profile: RunProfile) -> tuple[float, int]:
        """All of it, as long as the test lasts."""
        return 1.0, self.sending_ns(profile)

    def samples(self, profile: RunProfile) -> float:
        """One an interval of each client."""
        return self.clients * self.sending_ns(profile) / self.interval

    def wire(self, application: ApplicationSpec) -> Wire:
        """Segments."""
        return TcpWire(self.mss)

    def install(self, target: Target) -> "TcpDriver":
        """Add the clients, each with its connection."""
        bulk = target.add_clients(
            tcp.bulks,
            self,
            is_upload=self.direction == "upload",
            most_segments=self.most_segments,
            window_segments=self.window_segments,
        )
        target.engine.rows(flows)[bulk.flow].frame_bytes = self.mss + tcp.HEADER_BYTES
        added = self.add_stations(target, bulk.row, tcp.connections, on_client_room)
        bulk.first_connection = added[0].row
        if self.reaction:
            law = partial(uniform_ns, low_ns=0, high_ns=self.reaction)
            for n, connection in enumerate(added, target.number << 20):
                connection.reactions = target.feeder.add(Draws(target.streams, "bulk_tcp.reaction", n, law))
        return TcpDriver(target, bulk, start_bulk_tcp, self, added)


class TcpDriver(BulkDriver):
    """The clients in a running model."""

    _spec: BulkTcpSpec

    def results(self) -> list[TcpConnectionResult]:
        """Return what each client would report by now."""
        reported = [self.engine.rows(tcp.intervals)[n] for n in range(1, self.engine.used(tcp.intervals) + 1)]
        return [
            _result(number, connection, self._spans(connection, reported), self._spec.mss)
            for number, connection in enumerate(self._clients, 1)
        ]

    def _spans(self, connection: tcp.Connection, reported: list[tcp.Interval]) -> list[_Span]:
        """Return the intervals of a connection; of a test that is not over, the last is up to now."""
        of_connection = [i for i in reported if i.connection == connection.row]
        spans = [(int(i.begin_ns), int(i.end_ns), int(i.segments)) for i in of_connection]
        begin_ns = spans[-1][1] if spans else 0
        now_ns = self.engine.now_ns - int(connection.end_ns) + self._spec.duration
        if connection.end_ns and begin_ns < now_ns < self._spec.duration:
            spans.append((begin_ns, now_ns, int(connection.expected)))
        return spans

    def outcome(self) -> TcpTest:
        """Return the reports of all clients."""
        clients = self.results()
        has_report = any(each.intervals for each in clients)
        return TcpTest(
            throughput={f"client_{each.client}": each.bits_per_s * _MBIT for each in clients},
            retransmitted=sum(each.retransmitted for each in clients),
            timeouts=sum(each.timeouts for each in clients),
            report=iperf2_of_tcp(clients).text() if has_report else "",
        )

    def offer(self) -> Offer | None:
        """TCP asks for all that the line carries; say where the clients' links carry less, and are full."""
        spec, network = self._spec, self._spec.network
        line = line_payload_bits_per_s(self._line_bits_per_s, spec.mss)
        links_bits_per_s = spec.clients * line_payload_bits_per_s(network.rate, spec.mss)
        got = sum(each.bits_per_s for each in self.results())
        if not network.switched or links_bits_per_s >= line or got < _FULL * links_bits_per_s:
            return None
        return Offer(line * _MBIT, got * _MBIT, "Mbit/s", full_link(self._name, network.rate))


def _result(number: int, connection: tcp.Connection, spans: list[_Span], mss: int) -> TcpConnectionResult:
    before, parts = 0, []
    for begin_ns, end_ns, segments in spans:
        parts.append((begin_ns / S, end_ns / S, (segments - before) * mss))
        before = segments
    return TcpConnectionResult(
        number,
        tuple(parts),
        int(connection.retransmitted),
        int(connection.timeouts),
        int(connection.recoveries),
        int(connection.acknowledgements),
    )
