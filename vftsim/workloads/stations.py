"""Client machines: each on a link of its own to a switch, or alone on the cable to the host.

A client's card never drops: its stack waits until there is room in the transmit queue (Linux: a socket may write
again when a good part of its buffer is free, ``sk_stream_write_space``; here when half of the queue is).  Clients that
share the link to the host take turns in the order in which they began to wait: each fills what is free, and nobody
passes those that wait (Linux: a card's queue is first in, first out, ``pfifo_fast``).  The switch's
port to the host has the queue of the host's link; a frame that does not fit is dropped there.

**Ethernet flow control** (IEEE 802.3x, annex 31B) as a switch: no frame is dropped; what does not fit waits, in
order of arrival, and counts as still in the queue of its sender, which thus stands still.

Frames cross the switch whole (store and forward), and come back to their client over its link.
"""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any

from pydantic import Field

from vftsim.kernel import Chain, Engine, Entry, EventKind, Family, Fifo, Record, Row, Sim, Table, at, event
from vftsim.platform.io.host_cards import cards, send_to_host
from vftsim.platform.io.link import Link, add_link, backlog_ns, links, transmission_ns, transmit
from vftsim.platform.io.packet import packet_list, packets, ports
from vftsim.platform.rows import add_row
from vftsim.spec.base import Spec
from vftsim.spec.units import (
    BYTE_COUNT,
    BitRate,
    ByteCount,
    DurationNs,
    PositiveDurationNs,
    format_duration,
    format_rate,
)
from vftsim.workloads.parts import ApplicationSpec, Driver, RunProfile, Target, WorkloadSpec

room = Family("station_room", 1)
"""What a client does that waited for room in its transmit queue: ``(sim, client_row)``."""


class StationsSpec(Spec):
    """How the client machines hang on the network."""

    switched: bool = Field(
        False, description="Each client has a link of its own to a switch; else all share the link to the host."
    )
    rate: BitRate = Field(1_000_000_000, gt=0, description="Rate of a client's link.")
    latency: DurationNs = Field(5_000, description="One way, beside transmission. Assumption: cable and switch.")
    queue: ByteCount = Field(
        256 * 1024,
        gt=0,
        description="A client with a link of its own that has waited for room sends on when so much is left in its "
        "transmit queue, which holds twice as much. Assumption.",
    )
    flow_control: bool = Field(
        False, description="Switch and cards send pause frames (IEEE 802.3x): a full switch stops the clients."
    )


class Station(Row):
    """A client machine.

    ``out_link`` is where it transmits first, ``in_link`` where frames from the switch reach it (0: no switch).
    ``held_ns`` is the time that its frames which the switch holds back take on ``out_link``; ``on_room`` (a ``room``)
    is called with ``client_row`` when there is room again.
    """

    next_waiting: int
    port: int
    out_link: int
    in_link: int
    flow_control: bool
    held_ns: int
    is_waiting: bool
    on_room: int
    client_row: int


class Egress(Record):
    """The end of a link, stands beside it: frames that flow control holds back at a switch's port, and who waits.

    Clients in ``waiting`` have found the queue full; ``sender`` is the one whose turn it is.
    """

    held: Fifo
    is_planned: bool
    waiting: Fifo
    sender: int


stations = Table("stations", Station, 1 << 14, "use fewer clients")
egresses = Table("egresses", Egress, beside=links)
waiting_list = Chain(stations, "next_waiting")


def has_room(sim: Sim, station: Station, size_bytes: int) -> bool:
    """Tell whether a frame fits into a client's transmit queue, and nobody waits before it."""
    out = links(sim)[station.out_link]
    egress = egresses(sim)[station.out_link]
    if egress.waiting.length > 0 and station.row not in (egress.sender, egress.waiting.first):
        return False
    return backlog_ns(sim, out) + station.held_ns + transmission_ns(out, size_bytes) <= out.queue_ns


def send(sim: Sim, station: Station, packet: int) -> None:
    """Send a client's packet to the host; its queue must have room (:func:`has_room`)."""
    if station.in_link == 0:
        send_to_host(sim, packet)
    else:
        packets(sim)[packet].entity = station.row
        transmit(sim, links(sim)[station.out_link], packet, on_reaching_switch)


@event
def on_reaching_switch(sim: Sim, packet_row: int) -> None:
    """A frame of a client has crossed its link."""
    packet = packets(sim)[packet_row]
    station = stations(sim)[packet.entity]
    links(sim)[station.out_link].delivered += 1
    if not station.flow_control:
        send_to_host(sim, packet_row)
        return
    egress = cards(sim)[ports(sim)[packet.port].card].to_host
    if egresses(sim)[egress].held.length == 0 and fits(sim, links(sim)[egress], packet.size_bytes):
        send_to_host(sim, packet_row)
        return
    packet_list.push(sim, egresses(sim)[egress].held, packet_row)
    station.held_ns += transmission_ns(links(sim)[station.out_link], packet.size_bytes)
    plan_release(sim, egress)


def fits(sim: Sim, link: Link, size_bytes: int) -> bool:
    """Tell whether a frame fits into a link's queue."""
    return backlog_ns(sim, link) + transmission_ns(link, size_bytes) <= link.queue_ns


def plan_release(sim: Sim, row: int) -> None:
    """See to the first frame that is held back, for when it fits."""
    egress = egresses(sim)[row]
    if egress.is_planned or egress.held.length == 0:
        return
    egress.is_planned = True
    link = links(sim)[row]
    missing_ns = (
        backlog_ns(sim, link) + transmission_ns(link, packets(sim)[egress.held.first].size_bytes) - link.queue_ns
    )
    at(sim, sim.now_ns + max(0, missing_ns), EventKind.DEVICE, row, on_release, row)


@event
def on_release(sim: Sim, link_row: int) -> None:
    """Let frames that were held back go as far as they fit, and their senders with them."""
    egress = egresses(sim)[link_row]
    # Before anything leaves: what stays held back is planned for anew below.
    egress.is_planned = False
    while egress.held.length > 0 and fits(sim, links(sim)[link_row], packets(sim)[egress.held.first].size_bytes):
        packet = packet_list.pop(sim, egress.held)
        station = stations(sim)[packets(sim)[packet].entity]
        station.held_ns -= transmission_ns(links(sim)[station.out_link], packets(sim)[packet].size_bytes)
        send_to_host(sim, packet)
        if station.is_waiting:
            plan_room(sim, station)
    plan_release(sim, link_row)


def wait_for_room(sim: Sim, station: Station) -> None:
    """Tell the client when half of its transmit queue is free, and it is its turn."""
    if station.is_waiting:
        return
    station.is_waiting = True
    waiting = egresses(sim)[station.out_link].waiting
    waiting_list.push(sim, waiting, station.row)
    if waiting.length == 1:
        plan_room(sim, station)


def plan_room(sim: Sim, station: Station) -> None:
    """Plan a recheck when half of the queue will be free, unless the switch holds so much back that it says when."""
    out = links(sim)[station.out_link]
    if station.held_ns <= out.queue_ns // 2:
        due_ns = sim.now_ns + max(0, backlog_ns(sim, out) + station.held_ns - out.queue_ns // 2)
        at(sim, due_ns, EventKind.DEVICE, station.row, on_room, station.row)


@event
def on_room(sim: Sim, station: Station) -> None:
    """Resume a client, and see to the next; a second event for one wait finds nobody waiting."""
    if not station.is_waiting:
        return
    egress = egresses(sim)[station.out_link]
    # Before the client resumes: it may fill the queue, and wait again.
    station.is_waiting = False
    waiting_list.pop(sim, egress.waiting)
    others = egress.waiting.length
    egress.sender = station.row
    room.call(sim, station.on_room, station.client_row)
    egress.sender = 0
    if others > 0:
        plan_room(sim, stations(sim)[egress.waiting.first])


def add_station(engine: Engine, port: int, spec: StationsSpec, on_room: Any, client_row: int) -> int:
    """Add the machine of a client, for a port; return its row."""
    station = add_row(engine, stations, spec, port=port, on_room=engine.number(on_room), client_row=client_row)
    if spec.switched:
        station.out_link = add_link(engine, spec.rate, spec.latency, 2 * spec.queue)
        station.in_link = add_link(engine, spec.rate, spec.latency, spec.queue)
    else:
        station.out_link = int(engine.rows(cards)[engine.rows(ports)[port].card].to_host)
    return int(station.row)


_APART = 0.05
"""Clients that begin within this share of their time send together."""


class BulkClientsSpec(WorkloadSpec):
    """Clients with machines of their own, which send or receive for a while."""

    needs_link = True
    packet_drawing_ns = 0.0

    clients: int = Field(1, ge=1, le=1000, description="Clients, each on a machine of its own.")
    duration: PositiveDurationNs = Field(10_000_000_000, description="How long they send. Default: iperf, 10 s.")
    spread: DurationNs = Field(1_000_000, description="Clients begin at random within this time. Assumption.")
    network: StationsSpec = Field(default_factory=StationsSpec, description="How the clients hang on the network.")

    def without_effect(self) -> Mapping[str, str]:
        """Say that without a switch no client has a link of its own."""
        if self.network.switched:
            return {}
        why = "with network.switched off all clients share the link to the host"
        return {f"network.{key}": why for key in StationsSpec.model_fields if key != "switched"}

    @property
    @abstractmethod
    def frame_bytes(self) -> int:
        """The longest frame that a client sends at once."""

    def incompatibility(self, application: ApplicationSpec, rate_bits_per_s: int, queue_bytes: int) -> str:
        """A client goes on when half of its transmit queue is free, and sends frames that fit into that."""
        frame, client_queue, network = self.frame_bytes, self.network.queue, self.network
        if network.switched and client_queue < frame:
            length = BYTE_COUNT.format(client_queue)
            return f"network.queue: {length} is shorter than a frame of {frame} B: none could be sent"
        needed = frame if network.switched else 2 * frame
        if queue_bytes < needed and (network.flow_control or not network.switched):
            why = "which the switch would hold back for ever" if network.switched else "which wait for half of it"
            queue = BYTE_COUNT.format(queue_bytes)
            return f"network: the network's queue of {queue} is too short for frames of {frame} B, {why}"
        return ""

    def remark(self) -> str:
        """Say that rates of clients which do not send at the same time add up to what never was."""
        if self.clients == 1 or self.spread <= _APART * self.duration:
            return ""
        within, lasts = format_duration(self.spread), format_duration(self.duration)
        return (
            f"spread: its clients begin within {within} and send for {lasts} each, not all at the same time; rates of "
            "all are the sum of each client's own, which may be more than the line carries at once"
        )

    def test_ns(self) -> int:
        """Until the last client has sent for its time."""
        return self.spread + self.duration

    def least_test_ns(self) -> int:
        """As long as a client sends."""
        return self.duration

    def sending_ns(self, profile: RunProfile) -> int:
        """Return for how long they send in a run."""
        return min(self.duration, profile.length_ns)

    def add_stations(self, target: Target, bulk: int, table: Table[Any], on_room: Any) -> list[Any]:
        """Add the clients of a workload's row to a table, each with its machine; return their records."""
        added = []
        for level in target.streams.uniforms(f"{self.kind}.begin", target.number, count=self.clients):
            client = add_row(target.engine, table, bulk=bulk, first_ns=int(level * self.spread))
            client.station = add_station(target.engine, target.port, self.network, on_room, int(client.row))
            added.append(client)
        return added


class BulkDriver(Driver):
    """Such clients in a running model: their records stand in consecutive rows of a table."""

    def __init__(self, target: Target, record: Any, start: Entry, spec: BulkClientsSpec, clients: list[Any]) -> None:
        super().__init__(target, record, start)
        self._clients = clients
        self._spec: Any = spec
        self._name, self._line_bits_per_s = target.name, target.rate_bits_per_s

    @property
    def is_testing(self) -> bool:
        """Until the last client has sent for its time; one without an end has not begun."""
        return any(client.end_ns == 0 or self.engine.now_ns < client.end_ns for client in self._clients)


def full_link(workload: str, rate_bits_per_s: int) -> str:
    """Return what holds clients back whose links are full."""
    return f"each client's link of {format_rate(rate_bits_per_s)} is full (workloads.{workload}.network.rate)"
