"""Clients that send datagrams at a rate, as ``iperf -c -u -b``.

A datagram is due every payload / rate; a client that could not send in time (its card had no room, or it needed the
time for the one before) catches up.  What it **offers**, what it **sends** (iperf 2 calls that bandwidth in the
client's report) and what is **received** are three figures.

Left out: the client's last datagrams, which ask for the server's report; the CPU of the clients but for ``send_cost``.
"""

from typing import Literal

from pydantic import Field

from vftsim.kernel import BESIDE, EventKind, Sim, Table, at, entry, event
from vftsim.outcome import Outcome, declare
from vftsim.platform.io.packet import Flow, delivered, flows, lost, packets, workload
from vftsim.spec.units import BitRate, DurationNs, S, format_rate
from vftsim.workloads.common import WorkloadRow, new_packet
from vftsim.workloads.iperf_reports import UdpFlowResult
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import WORKLOADS, RunProfile, Target
from vftsim.workloads.stations import (
    BulkClientsSpec,
    BulkDriver,
    Station,
    full_link,
    has_room,
    room,
    send,
    wait_for_room,
)
from vftsim.workloads.udp_sink import UdpFlow, udp_flows

bulk_udp = workload.kind("bulk_udp")

HEADER_BYTES = 66
"""Of a datagram on the wire: 28 UDP/IP, 18 Ethernet, 20 preamble and gap."""
SMALLEST_FRAME_BYTES = 84
"""46 bytes of data, padded if there are fewer (IEEE 802.3), 18 of Ethernet, 20 of preamble and gap."""

_MBIT = 1e-6


class UdpBulk(WorkloadRow):
    """One workload; its flows stand in consecutive rows.  Gaps are kept in 1/1024 ns, so that rates come out."""

    first_flow: int
    clients: int
    frame_bytes: int
    gap_parts: int
    send_cost_ns: int
    duration_ns: int
    dropped: int


udp_bulks = Table("udp_bulks", UdpBulk, 256)


@event
def on_begin(sim: Sim, flow: UdpFlow) -> None:
    flow.first_ns = sim.now_ns
    flow.end_ns = sim.now_ns + udp_bulks(sim)[flow.bulk].duration_ns
    send_datagram(sim, flow)


def send_datagram(sim: Sim, flow: UdpFlow, bulk: UdpBulk = BESIDE, station: Station = BESIDE) -> None:
    """Send what is due and plan the next datagram, unless time is up; without room wait for it."""
    next_ns = sim.now_ns
    while next_ns == sim.now_ns and sim.now_ns < flow.end_ns:
        if not has_room(sim, station, bulk.frame_bytes):
            wait_for_room(sim, station)
            return
        # Datagrams are numbered from 1.
        flow.sent += 1
        send(sim, station, new_packet(sim, bulk.flow, bulk.port, flow.row, flow.station, flow.sent, bulk.frame_bytes))
        # At most 10**10 datagrams of 10**10 parts each would pass 64 bits: a flow of a year.
        flow.due_ns = flow.first_ns + flow.sent * bulk.gap_parts // 1024
        next_ns = max(flow.due_ns, sim.now_ns + bulk.send_cost_ns)
    if next_ns > sim.now_ns:
        at(sim, next_ns, EventKind.ARRIVAL, flow.row, on_due, flow.row)


on_due = event(send_datagram)
on_client_room = room(send_datagram)


@bulk_udp.implements(delivered)
def take_delivery(sim: Sim, flow: Flow, packet: int) -> None:
    """Free what a program has sent back; a sink sends nothing."""
    packets.free(sim, packet)


@bulk_udp.implements(lost)
def count_drop(sim: Sim, flow: Flow, packet: int) -> None:
    """Count a datagram that was dropped."""
    udp_bulks(sim)[flow.state_row].dropped += 1
    udp_flows(sim)[packets(sim)[packet].stream].lost += 1


@entry
def start_bulk_udp(sim: Sim, bulk: UdpBulk) -> None:
    """Let the clients begin, each at its time."""
    for udp_flow in udp_flows.span(sim, bulk.first_flow, bulk.clients):
        at(sim, sim.now_ns + udp_flow.first_ns, EventKind.ARRIVAL, udp_flow.row, on_begin, udp_flow.row)


class UdpTest(Outcome):
    """What became of datagrams, by client; ``lost`` of ``datagrams`` is what iperf's server reports."""

    sent: dict[str, float] = declare.number(by="name", unit="Mbit/s", label="sent", known_as=("sent_mbit_per_s",))
    received: dict[str, float] = declare.number(
        by="name", unit="Mbit/s", label="received", better="higher", headline=True, known_as=("received_mbit_per_s",)
    )
    jitter: dict[str, float] = declare.number(
        by="name", joined="mean", unit="ms", better="lower", known_as=("jitter_ms",)
    )
    difference: dict[str, float] = declare.number(
        by="name", joined="mean", unit="ms", label="difference of transit times, mean", better="lower"
    )
    offered: dict[str, int] = declare.total(by="name", label="datagrams sent")
    dropped: dict[str, int] = declare.total(by="name", label="datagrams dropped on the way", better="lower")
    lost: dict[str, int] = declare.total(by="name", label="datagrams lost, by their numbers", better="lower")
    datagrams: dict[str, int] = declare.total(by="name", label="datagrams, highest number received")
    loss = declare.ratio(
        dropped, offered, unit="%", label="datagrams lost", better="lower", headline=True, known_as=("loss_percent",)
    )
    reported_loss = declare.ratio(lost, datagrams, unit="%", label="datagrams lost, by their numbers", better="lower")
    """As iperf's server counts, which does not see a flow that loses everything, nor the end of one."""


@WORKLOADS.register
class BulkUdpSpec(BulkClientsSpec):
    """Clients that send datagrams at a rate."""

    speaks = "udp"
    load_key = "rate"
    objectives = ("loss <= 0",)
    entries = (start_bulk_udp,)
    actions = (on_client_room,)
    outcomes = (UdpTest,)

    kind: Literal["bulk_udp"] = "bulk_udp"
    to: str = Field("server", description="Domain that receives.")
    rate: BitRate = Field(1_000_000, ge=1_000, description="Payload offered by each. Default: iperf 2, 1 Mbit/s.")
    payload: int = Field(
        1470,
        ge=16,
        le=8972,
        description="Bytes of a datagram; above 1472 it is a jumbo frame (MTU 9000), not fragments. Default: iperf 2.",
    )
    send_cost: DurationNs = Field(
        0, description="CPU time that a client needs for a datagram, least time between two. Assumption: none."
    )

    @property
    def bearers(self) -> str:
        return f"{self.clients} clients" if self.clients > 1 else ""

    @property
    def frame_bytes(self) -> int:
        """A datagram on the wire."""
        return max(self.payload + HEADER_BYTES, SMALLEST_FRAME_BYTES)

    def packets(self, profile: RunProfile) -> float:
        """What is offered, or what the line carries."""
        offered = min(self.clients * self.rate, profile.rate_bits_per_s)
        return self.sending_ns(profile) * 1e-9 * offered / (8 * self.payload)

    def events_a_packet(self, profile: RunProfile) -> float:
        """A client that waits for the line sends several at once."""
        return -1.0 if self.fills(profile)[0] >= 1.0 and self.send_cost == 0 else 0.0

    def fills(self, profile: RunProfile) -> tuple[float, int]:
        """What it offers, as long as the test lasts."""
        return min(self.clients * self.rate / profile.rate_bits_per_s, 1.0), self.sending_ns(profile)

    def install(self, target: Target) -> "UdpDriver":
        """Add the clients, each with its flow."""
        gap_parts = self.payload * 8 * S * 1024 // self.rate
        bulk = target.add_clients(udp_bulks, self, frame_bytes=self.frame_bytes, gap_parts=gap_parts)
        target.engine.rows(flows)[bulk.flow].frame_bytes = self.frame_bytes
        clients = self.add_stations(target, bulk.row, udp_flows, on_client_room)
        bulk.first_flow = clients[0].row
        return UdpDriver(target, bulk, start_bulk_udp, self, clients)


class UdpDriver(BulkDriver):
    """The clients in a running model."""

    _spec: BulkUdpSpec

    def results(self) -> list[UdpFlowResult]:
        """Return what each client and the server would report by now.

        Each end has its own time, as with iperf 2: the client's is that of sending by now; the server reads on until
        its last datagram.  What waits in a queue when sending ends would else arrive at more than the rate of the line.
        """
        return [self._result(number, flow) for number, flow in enumerate(self._clients, 1)]

    def _result(self, number: int, flow: UdpFlow) -> UdpFlowResult:
        sending_ns = max(1, min(self.engine.now_ns, int(flow.end_ns)) - int(flow.first_ns))
        return UdpFlowResult(
            client=number,
            sent=int(flow.sent),
            sent_bytes=int(flow.sent) * self._spec.payload,
            sending_s=sending_ns / S,
            received=int(flow.received),
            received_bytes=int(flow.received) * self._spec.payload,
            receiving_s=max(sending_ns, int(flow.last_read_ns) - int(flow.first_ns)) / S,
            lost=int(flow.skipped) - int(flow.late),
            total=int(flow.highest),
            late=int(flow.late),
            jitter_ns=float(flow.jitter_ns),
            mean_difference_ns=int(flow.difference_ns) / max(1, int(flow.received) - 1),
            socket_drops=int(flow.dropped),
            dropped=int(flow.lost),
        )

    def outcome(self) -> UdpTest:
        """Return the reports by client."""
        clients = {f"client_{each.client}": each for each in self.results()}
        return UdpTest(
            sent={name: each.sent_bits_per_s * _MBIT for name, each in clients.items()},
            received={name: each.received_bits_per_s * _MBIT for name, each in clients.items()},
            jitter={name: each.jitter_ns * 1e-6 for name, each in clients.items()},
            difference={name: each.mean_difference_ns * 1e-6 for name, each in clients.items()},
            offered={name: each.sent for name, each in clients.items()},
            dropped={name: each.dropped for name, each in clients.items()},
            lost={name: each.lost for name, each in clients.items()},
            datagrams={name: each.total for name, each in clients.items()},
        )

    def offer(self) -> Offer:
        """Return the rate of all clients, and what they sent."""
        sent = sum(each.sent_bits_per_s for each in self.results())
        return Offer(self._spec.clients * self._spec.rate * _MBIT, sent * _MBIT, "Mbit/s", self._limit())

    def _limit(self) -> str:
        """Return what a client waits for that cannot send in time."""
        spec = self._spec
        if any(flow.end_ns == 0 for flow in self._clients):
            return f"a run ends before all clients have begun (workloads.{self._name}.spread)"
        on_wire = spec.rate * spec.frame_bytes / spec.payload
        if spec.send_cost * spec.rate > 8e9 * spec.payload:
            return f"a client's CPU is busy (workloads.{self._name}.send_cost)"
        if spec.network.switched and on_wire > spec.network.rate:
            return full_link(self._name, spec.network.rate)
        if spec.clients * on_wire > self._line_bits_per_s:
            return f"the line of {format_rate(self._line_bits_per_s)} to the host is full (networks)"
        return f"a client's card had no room at times (workloads.{self._name}.network.queue)"
