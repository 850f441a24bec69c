"""Bulk TCP and UDP, and the programs that send and receive."""

from __future__ import annotations

from typing import Any, ClassVar

from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import feeds
from vftsim.workloads import bulk_tcp, bulk_udp, burden, udp_sink
from vftsim.workloads.bulk_tcp import BulkTcpSpec, TcpSinkSpec, TcpSourceSpec
from vftsim.workloads.bulk_udp import BulkUdpSpec, udp_bulks
from vftsim.workloads.composed.rows import RowDriver, RowProgram
from vftsim.workloads.dirty_pages import DirtyPagesFields, pages_per_request
from vftsim.workloads.iperf_reports import iperf2_of_tcp
from vftsim.workloads.parts import (
    APPLICATIONS,
    WORKLOADS,
    ApplicationSpec,
    Course,
    Home,
    Measured,
    Target,
    WorkloadSpec,
)
from vftsim.workloads.tcp.parameters import HEADER_BYTES
from vftsim.workloads.tcp.records import bulks
from vftsim.workloads.udp_sink import UdpSinkSpec

_MBIT = 1e-6


@APPLICATIONS.register
class TcpSink(TcpSinkSpec, DirtyPagesFields, ApplicationSpec):
    """Takes in what the clients send."""

    speaks: ClassVar[str] = "tcp"
    actions: ClassVar[tuple[Any, ...]] = bulk_tcp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = (*bulk_tcp.TABLES, *burden.TABLES, feeds)

    pages_per_request: float = pages_per_request(1.0, "a segment in its buffer")

    def install(self, home: Home) -> RowProgram:
        """Add it to a domain."""
        return RowProgram(home, bulk_tcp.add_tcp_program(home.engine, home.domain, self))


@APPLICATIONS.register
class TcpSource(TcpSourceSpec, DirtyPagesFields, ApplicationSpec):
    """Sends to every client that asks."""

    speaks: ClassVar[str] = "tcp"
    actions: ClassVar[tuple[Any, ...]] = bulk_tcp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = (*bulk_tcp.TABLES, *burden.TABLES, feeds)

    pages_per_request: float = pages_per_request(1.0, "an acknowledgement in its buffer")

    def install(self, home: Home) -> RowProgram:
        """Add it to a domain."""
        return RowProgram(home, bulk_tcp.add_tcp_program(home.engine, home.domain, self))


@WORKLOADS.register
class BulkTcpWorkload(BulkTcpSpec, WorkloadSpec):
    """Clients that send, or receive, as fast as TCP lets them."""

    speaks: ClassVar[str] = "tcp"
    needs_link: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = bulk_tcp.ENTRIES
    actions: ClassVar[tuple[Any, ...]] = bulk_tcp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = (*bulk_tcp.TABLES, feeds)

    def misfit(self, application: ApplicationSpec) -> str:
        """An upload needs a sink, a download a source."""
        wanted = "tcp_sink" if self.direction == "upload" else "tcp_source"
        return "" if application.kind == wanted else f"an {self.direction} is directed at a {wanted}"

    def packets(self, course: Course) -> float:
        """As many segments as the line carries."""
        return min(self.duration, course.length_ns) * 1e-9 * course.rate_bits_per_s / (8 * (self.mss + HEADER_BYTES))

    def samples(self, course: Course) -> float:
        """One an interval of each client."""
        return self.clients * min(self.duration, course.length_ns) / self.interval

    def install(self, target: Target) -> RowDriver:
        """Add the clients."""
        engine = target.engine
        row = bulk_tcp.add_bulk_tcp(engine, target.feeder, target.port, self, target.streams, target.number)

        def measured() -> Measured:
            found = bulk_tcp.bulk_tcp_result(engine, row)
            figures = {f"client_{each.client}_mbit_per_s": each.bits_per_s * _MBIT for each in found}
            figures["mbit_per_s"] = sum(figures.values())
            figures["retransmitted"] = float(sum(each.retransmitted for each in found))
            has_report = any(each.intervals for each in found)
            return Measured(figures, report=iperf2_of_tcp(found).text() if has_report else "")

        flow = int(engine.rows(bulks)[row].flow)
        return RowDriver(target, flow, lambda: engine.call(bulk_tcp.start_bulk_tcp, row), measured)


@APPLICATIONS.register
class UdpSink(UdpSinkSpec, DirtyPagesFields, ApplicationSpec):
    """Reads and counts datagrams."""

    speaks: ClassVar[str] = "udp"
    tables: ClassVar[tuple[Table[Any], ...]] = (*udp_sink.TABLES, *burden.TABLES)

    pages_per_request: float = pages_per_request(1.0, "a segment in its buffer")

    def install(self, home: Home) -> RowProgram:
        """Add it to a domain."""
        return RowProgram(home, udp_sink.add_udp_sink(home.engine, home.domain, self))


@WORKLOADS.register
class BulkUdpWorkload(BulkUdpSpec, WorkloadSpec):
    """Clients that send datagrams at a rate."""

    speaks: ClassVar[str] = "udp"
    load_key: ClassVar[str] = "rate"
    objective: ClassVar[str] = "loss_percent <= 0"
    needs_link: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = bulk_udp.ENTRIES
    actions: ClassVar[tuple[Any, ...]] = bulk_udp.ACTIONS
    tables: ClassVar[tuple[Table[Any], ...]] = bulk_udp.TABLES

    def packets(self, course: Course) -> float:
        """What is offered, or what the line carries."""
        offered = min(self.clients * self.rate, course.rate_bits_per_s)
        return min(self.duration, course.length_ns) * 1e-9 * offered / (8 * self.payload)

    def install(self, target: Target) -> RowDriver:
        """Add the clients."""
        engine = target.engine
        row = bulk_udp.add_bulk_udp(engine, target.port, self, target.streams, target.number)

        def measured() -> Measured:
            found = bulk_udp.bulk_udp_result(engine, row)
            figures: dict[str, float] = {}
            for each in found:
                head = f"client_{each.client}"
                figures[f"{head}_sent_mbit_per_s"] = each.sent_bits_per_s * _MBIT
                figures[f"{head}_received_mbit_per_s"] = each.received_bits_per_s * _MBIT
                figures[f"{head}_jitter_ms"] = each.jitter_ns * 1e-6
                figures[f"{head}_loss_percent"] = 100.0 * each.loss_ratio
            figures["received_mbit_per_s"] = sum(each.received_bits_per_s for each in found) * _MBIT
            total = sum(each.total for each in found)
            if total:
                figures["loss_percent"] = 100.0 * sum(each.lost for each in found) / total
            return Measured(figures)

        flow = int(engine.rows(udp_bulks)[row].flow)
        return RowDriver(target, flow, lambda: engine.call(bulk_udp.start_bulk_udp, row), measured)
