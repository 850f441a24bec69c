"""A closed loop of requests and answers."""

from typing import Any, ClassVar

from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import feeds
from vftsim.outcome import Outcome
from vftsim.platform.delays import bucket_ends
from vftsim.workloads import burden, request_response, responder
from vftsim.workloads.composed.rows import RowDriver, RowProgram
from vftsim.workloads.dirty_pages import DirtyPagesFields
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import (
    APPLICATIONS,
    WORKLOADS,
    ApplicationSpec,
    Course,
    Home,
    Target,
    WorkloadSpec,
)
from vftsim.workloads.request_response import RequestResponseSpec, exchanges
from vftsim.workloads.responder import ResponderSpec

_WORK_NS = 30_000


@APPLICATIONS.register
class ResponderApplication(ResponderSpec, DirtyPagesFields, ApplicationSpec):
    """A server that computes and answers each request."""

    speaks: ClassVar[str] = "request"
    tables: ClassVar[tuple[Table[Any], ...]] = (*responder.TABLES, *burden.TABLES, feeds)

    def install(self, home: Home) -> RowProgram:
        """Add it to a domain."""
        number = home.others.get(self.kind, 0)
        row = responder.add_responder(home.engine, home.feeder, home.domain, self, home.streams, number)
        own = responder.responder_of(home.engine, row)
        own.demand_ns = round(own.demand_ns * home.cpu_inflation)
        own.socket_full = home.place(f"{home.name} socket", "full")
        own.lost_in_boot = home.place("guest", "lost in crash")
        return RowProgram(home, row)


@WORKLOADS.register
class RequestResponseWorkload(RequestResponseSpec, WorkloadSpec):
    """Clients in a closed loop."""

    products: ClassVar[tuple[str, ...]] = ("netperf",)
    speaks: ClassVar[str] = "request"
    load_key: ClassVar[str] = "clients"
    needs_link: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = request_response.ENTRIES
    tables: ClassVar[tuple[Table[Any], ...]] = (*request_response.TABLES, feeds, bucket_ends)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (request_response.RequestLoop,)

    def packets(self, course: Course) -> float:
        """A round of each client takes its turn-around, the network both ways and the work on the way."""
        round_ns = self.turn_around + 2 * course.latency_ns + _WORK_NS
        return self.clients * min(course.length_ns / round_ns, course.length_ns / (_WORK_NS * self.clients))

    def install(self, target: Target) -> RowDriver:
        """Add the clients."""
        engine = target.engine
        row = request_response.add_request_response(
            engine, target.feeder, target.port, self, target.streams, target.number, target.window_ns[0]
        )

        def offered() -> Offer:
            """Without repetitions each loss ends the requests of one client."""
            silent = 0 if self.retry else min(int(engine.rows(exchanges)[row].dropped), self.clients)
            why = f"a client whose request or answer was lost never asks again (workloads.{target.name}.retry)"
            return Offer(float(self.clients), float(self.clients - silent), "clients", why)

        flow = int(engine.rows(exchanges)[row].flow)
        return RowDriver(
            target, flow, lambda: engine.call(request_response.start_exchange, row),
            lambda: request_response.request_loop_of(engine, row), offered,
        )  # fmt: skip
