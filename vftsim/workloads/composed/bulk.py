"""Bulk TCP and UDP, and the programs that send and receive."""

from typing import Any, ClassVar

from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import feeds
from vftsim.outcome import Outcome, declare, kept
from vftsim.spec.units import format_rate
from vftsim.workloads import bulk_tcp, bulk_udp, burden, udp_sink
from vftsim.workloads.bulk_tcp import BulkTcpSpec, TcpSinkSpec, TcpSourceSpec
from vftsim.workloads.bulk_udp import BulkUdpSpec, udp_bulks
from vftsim.workloads.composed.rows import RowDriver, RowProgram
from vftsim.workloads.dirty_pages import DirtyPagesFields, pages_per_request
from vftsim.workloads.iperf_reports import iperf2_of_tcp
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import (
    APPLICATIONS,
    WORKLOADS,
    ApplicationSpec,
    InstallContext,
    RunProfile,
    Target,
    WorkloadSpec,
)
from vftsim.workloads.tcp.parameters import HEADER_BYTES
from vftsim.workloads.tcp.records import bulks
from vftsim.workloads.tcp.wire import TcpWire
from vftsim.workloads.udp_sink import UdpSinkSpec
from vftsim.workloads.wire import Wire

_MBIT = 1e-6
_FULL = 0.9
"""Share of its payload from which a client's link counts as full under TCP, which begins slowly."""


@APPLICATIONS.register
class TcpSink(TcpSinkSpec, DirtyPagesFields, ApplicationSpec):
    """Takes in what the clients send."""

    speaks: ClassVar[str] = "tcp"
    actions: ClassVar[tuple[Any, ...]] = bulk_tcp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = (*bulk_tcp.TABLES, *burden.TABLES, feeds)

    pages_per_request: float = pages_per_request(1.0, "a segment in its buffer")

    def install(self, context: InstallContext) -> RowProgram:
        """Add it to a domain."""
        return RowProgram(context, bulk_tcp.add_tcp_program(context.engine, context.domain, self))


@APPLICATIONS.register
class TcpSource(TcpSourceSpec, DirtyPagesFields, ApplicationSpec):
    """Sends to every client that asks."""

    speaks: ClassVar[str] = "tcp"
    actions: ClassVar[tuple[Any, ...]] = bulk_tcp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = (*bulk_tcp.TABLES, *burden.TABLES, feeds)

    pages_per_request: float = pages_per_request(1.0, "an acknowledgement in its buffer")

    def install(self, context: InstallContext) -> RowProgram:
        """Add it to a domain."""
        return RowProgram(context, bulk_tcp.add_tcp_program(context.engine, context.domain, self))


class TcpTest(Outcome):
    """What iperf reports of TCP, over the whole test."""

    throughput: dict[str, float] = declare.number(
        by="name", unit="Mbit/s", label="throughput", better="higher", headline=True, known_as=("mbit_per_s",)
    )
    retransmitted: int = declare.total(label="segments sent again", better="lower")
    timeouts: int = declare.total(label="time-outs", better="lower")
    report: str = kept()


@WORKLOADS.register
class BulkTcpWorkload(BulkTcpSpec, WorkloadSpec):
    """Clients that send, or receive, as fast as TCP lets them."""

    products: ClassVar[tuple[str, ...]] = ("iperf", "iperf3")
    speaks: ClassVar[str] = "tcp"
    needs_link: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = bulk_tcp.ENTRIES
    actions: ClassVar[tuple[Any, ...]] = bulk_tcp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = (*bulk_tcp.TABLES, feeds)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (TcpTest,)

    def test_ns(self) -> int:
        """Until the last client has sent for its time."""
        return self.spread + self.duration

    def incompatibility(self, application: ApplicationSpec, rate_bits_per_s: int) -> str:
        """An upload needs a sink, a download a source."""
        wanted = "tcp_sink" if self.direction == "upload" else "tcp_source"
        return "" if application.kind == wanted else f"to: '{self.to}': an {self.direction} is directed at a {wanted}"

    def packets(self, profile: RunProfile) -> float:
        """As many segments as the line carries."""
        return min(self.duration, profile.length_ns) * 1e-9 * profile.rate_bits_per_s / (8 * (self.mss + HEADER_BYTES))

    def drawing_ns(self, profile: RunProfile) -> float:
        """None is drawn."""
        return 0.0

    def fills(self, profile: RunProfile) -> tuple[float, int]:
        """All of it, as long as the test lasts."""
        return 1.0, min(self.duration, profile.length_ns)

    def samples(self, profile: RunProfile) -> float:
        """One an interval of each client."""
        return self.clients * min(self.duration, profile.length_ns) / self.interval

    @property
    def wire(self) -> Wire:
        """Segments."""
        return TcpWire(self.mss)

    def install(self, target: Target) -> RowDriver:
        """Add the clients."""
        engine = target.engine
        row = bulk_tcp.add_bulk_tcp(engine, target.feeder, target.port, self, target.streams, target.number)

        def measured() -> TcpTest:
            clients = bulk_tcp.bulk_tcp_result(engine, row)
            has_report = any(each.intervals for each in clients)
            return TcpTest(
                throughput={f"client_{each.client}": each.bits_per_s * _MBIT for each in clients},
                retransmitted=sum(each.retransmitted for each in clients),
                timeouts=sum(each.timeouts for each in clients),
                report=iperf2_of_tcp(clients).text() if has_report else "",
            )

        def offered() -> Offer | None:
            """TCP asks for all that the line carries; say where the clients' own links carry less, and are full."""
            line = bulk_tcp.line_payload_bits_per_s(target.rate_bits_per_s, self.mss)
            links_bits_per_s = self.clients * bulk_tcp.line_payload_bits_per_s(self.network.rate, self.mss)
            got = sum(each.bits_per_s for each in bulk_tcp.bulk_tcp_result(engine, row))
            if not self.network.switched or links_bits_per_s >= line or got < _FULL * links_bits_per_s:
                return None
            return Offer(line * _MBIT, got * _MBIT, "Mbit/s", _full_link(target.name, self.network.rate))

        flow = int(engine.rows(bulks)[row].flow)
        return RowDriver(target, flow, lambda: engine.call(bulk_tcp.start_bulk_tcp, row), measured, offered)


def _full_link(name: str, rate_bits_per_s: int) -> str:
    return f"each client's own link of {format_rate(rate_bits_per_s)} is full (workloads.{name}.network.rate)"


@APPLICATIONS.register
class UdpSink(UdpSinkSpec, DirtyPagesFields, ApplicationSpec):
    """Reads and counts datagrams."""

    speaks: ClassVar[str] = "udp"
    tables: ClassVar[tuple[Table[Any], ...]] = (*udp_sink.TABLES, *burden.TABLES)

    pages_per_request: float = pages_per_request(1.0, "a segment in its buffer")

    def install(self, context: InstallContext) -> RowProgram:
        """Add it to a domain."""
        return RowProgram(context, udp_sink.add_udp_sink(context.engine, context.domain, self))


class UdpTest(Outcome):
    """What iperf reports of UDP, by client; ``lost`` as its server counts."""

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
    lost: dict[str, int] = declare.total(by="name", label="datagrams lost", better="lower")
    datagrams: dict[str, int] = declare.total(by="name")
    loss = declare.ratio(
        lost, datagrams, unit="%", label="datagrams lost", better="lower", headline=True, known_as=("loss_percent",)
    )


@WORKLOADS.register
class BulkUdpWorkload(BulkUdpSpec, WorkloadSpec):
    """Clients that send datagrams at a rate."""

    speaks: ClassVar[str] = "udp"
    load_key: ClassVar[str] = "rate"
    objective: ClassVar[str] = "loss <= 0"
    needs_link: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = bulk_udp.ENTRIES
    actions: ClassVar[tuple[Any, ...]] = bulk_udp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = bulk_udp.TABLES
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (UdpTest,)

    def test_ns(self) -> int:
        """Until the last client has sent for its time."""
        return self.spread + self.duration

    def packets(self, profile: RunProfile) -> float:
        """What is offered, or what the line carries."""
        offered = min(self.clients * self.rate, profile.rate_bits_per_s)
        return min(self.duration, profile.length_ns) * 1e-9 * offered / (8 * self.payload)

    def drawing_ns(self, profile: RunProfile) -> float:
        """None is drawn."""
        return 0.0

    def fills(self, profile: RunProfile) -> tuple[float, int]:
        """What it offers, as long as the test lasts."""
        return min(self.clients * self.rate / profile.rate_bits_per_s, 1.0), min(self.duration, profile.length_ns)

    def install(self, target: Target) -> RowDriver:
        """Add the clients."""
        engine = target.engine
        row = bulk_udp.add_bulk_udp(engine, target.port, self, target.streams, target.number)

        def measured() -> UdpTest:
            clients = {f"client_{each.client}": each for each in bulk_udp.bulk_udp_result(engine, row)}
            return UdpTest(
                sent={name: each.sent_bits_per_s * _MBIT for name, each in clients.items()},
                received={name: each.received_bits_per_s * _MBIT for name, each in clients.items()},
                jitter={name: each.jitter_ns * 1e-6 for name, each in clients.items()},
                difference={name: each.mean_difference_ns * 1e-6 for name, each in clients.items()},
                lost={name: each.lost for name, each in clients.items()},
                datagrams={name: each.total for name, each in clients.items()},
            )

        def offered() -> Offer:
            sent = sum(each.sent_bits_per_s for each in bulk_udp.bulk_udp_result(engine, row))
            return Offer(self.clients * self.rate * _MBIT, sent * _MBIT, "Mbit/s", self._limit(target))

        flow = int(engine.rows(udp_bulks)[row].flow)
        return RowDriver(target, flow, lambda: engine.call(bulk_udp.start_bulk_udp, row), measured, offered)

    def _limit(self, target: Target) -> str:
        """Return what a client waits for that cannot send in time."""
        on_wire = self.rate * (self.payload + bulk_udp.HEADER_BYTES) / self.payload
        if self.send_cost * self.rate > 8e9 * self.payload:
            return f"a client's CPU is busy (workloads.{target.name}.send_cost)"
        if self.network.switched and on_wire > self.network.rate:
            return _full_link(target.name, self.network.rate)
        if self.clients * on_wire > target.rate_bits_per_s:
            return f"the line of {format_rate(target.rate_bits_per_s)} to the host is full (networks)"
        return f"a client's card had no room at times (workloads.{target.name}.network.queue)"
