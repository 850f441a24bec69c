"""A prefork web server under httperf."""

from typing import Any, ClassVar

from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import feeds
from vftsim.outcome import Outcome
from vftsim.platform.delays import bucket_ends
from vftsim.workloads import burden, web_server
from vftsim.workloads.composed.rows import RowDriver, RowProgram
from vftsim.workloads.dirty_pages import DirtyPagesFields, pages_per_request
from vftsim.workloads.parts import (
    APPLICATIONS,
    WORKLOADS,
    ApplicationSpec,
    InstallContext,
    RunProfile,
    Target,
    WorkloadSpec,
)
from vftsim.workloads.web.loads import http_loads
from vftsim.workloads.web.records import KINDS, PIECES
from vftsim.workloads.web_server import HttperfSpec, PreforkWebServerSpec
from vftsim.workloads.wire import Wire

_PACKETS_A_CONNECTION = 12


@APPLICATIONS.register
class PreforkWebServer(PreforkWebServerSpec, DirtyPagesFields, ApplicationSpec):
    """A web server with a process for each connection, and a script that computes."""

    products: ClassVar[tuple[str, ...]] = ("apache",)
    speaks: ClassVar[str] = "http"
    entries: ClassVar[tuple[Any, ...]] = web_server.ENTRIES
    tables: ClassVar[tuple[Table[Any], ...]] = (*web_server.TABLES, *burden.TABLES, feeds)

    pages_per_request: float = pages_per_request(3.0, "its buffer, and 8 KiB of memory pool")

    def install(self, context: InstallContext) -> RowProgram:
        """Add it to a domain."""
        engine, number = context.engine, context.others.get(self.kind, 0)
        slower = self.model_copy(update={"script": round(self.script * context.cpu_inflation)})
        row = web_server.add_web_server(
            engine, context.domain, slower, context.streams, number, context.guest_scheduler
        )
        return RowProgram(context, row, lambda: engine.call(web_server.start_web_server, row))


class HttpWire(Wire):
    """Names of what opens a connection, asks, answers and closes."""

    _NAMES = ("", "SYN", "SYN ACK", "request", "reply", "FIN", "RST", "reply, last piece")

    def name(self, message: int) -> str:
        """Return what a packet is, of a reply which piece."""
        word = self._NAMES[message % KINDS]
        return f"{word} {message // KINDS % PIECES}" if word == "reply" else word


@WORKLOADS.register
class HttperfWorkload(HttperfSpec, WorkloadSpec):
    """One httperf."""

    speaks: ClassVar[str] = "http"
    load_key: ClassVar[str] = "rate"
    objective: ClassVar[str] = "answered >= 90"
    needs_link: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = web_server.ENTRIES
    tables: ClassVar[tuple[Table[Any], ...]] = (*web_server.TABLES, feeds, bucket_ends)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (web_server.WebTest,)

    def test_ns(self) -> int:
        """Until the last connection has begun, and its time-out is over."""
        return round((self.connections - 1) * 1e9 / self.rate) + self.timeout

    def packets(self, profile: RunProfile) -> float:
        """Three to open, the request, the reply in segments with their acknowledgements, three to close."""
        return min(self.connections, self.rate * profile.seconds) * _PACKETS_A_CONNECTION

    def samples(self, profile: RunProfile) -> float:
        """One a period."""
        return profile.length_ns / self.sample

    @property
    def wire(self) -> Wire:
        """Pieces of connections, as UDP of their size."""
        return HttpWire()

    def install(self, target: Target) -> RowDriver:
        """Add the client."""
        engine = target.engine
        row = web_server.add_httperf(engine, target.feeder, target.port, self, target.streams, target.number)
        flow = int(engine.rows(http_loads)[row].flow)
        return RowDriver(
            target,
            flow,
            lambda: engine.call(web_server.start_httperf, row, 0),
            lambda: web_server.web_test_of(engine, row),
        )
