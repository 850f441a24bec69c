"""Requests and answers, in a closed loop and an open one."""

from collections.abc import Callable
from typing import Any, ClassVar

from vftsim.kernel import Kind
from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import feeds
from vftsim.outcome import Outcome
from vftsim.platform.delays import bucket_ends
from vftsim.workloads import request_response
from vftsim.workloads.composed.rows import RowDriver
from vftsim.workloads.offer import Offer
from vftsim.workloads.parts import WORKLOADS, ApplicationSpec, RunProfile, Target, WorkloadSpec
from vftsim.workloads.request_response import OpenRequestsSpec, RequestResponseSpec, exchanges

_WORK_NS = 30_000


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

    def packets(self, profile: RunProfile) -> float:
        """A round of each client takes its turn-around, the network both ways and the work on the way."""
        round_ns = self.turn_around + 2 * profile.latency_ns + _over_tiers(profile.application, profile, _work_ns)
        at_most = profile.length_ns / _work_ns(profile.application)
        return min(self.clients * profile.length_ns / round_ns, at_most) * _over_tiers(
            profile.application, profile, _one
        )

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
            target,
            flow,
            lambda: engine.call(request_response.start_exchange, row),
            lambda: request_response.request_loop_of(engine, row),
            offered,
        )


@WORKLOADS.register
class OpenRequestsWorkload(OpenRequestsSpec, WorkloadSpec):
    """Requests that come at a rate."""

    part: ClassVar[Kind] = request_response.open_requests
    speaks: ClassVar[str] = "request"
    load_key: ClassVar[str] = "rate"
    objective: ClassVar[str] = "failed <= 0.1"
    needs_link: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = (request_response.start_exchange,)
    tables: ClassVar[tuple[Table[Any], ...]] = (*request_response.TABLES, feeds, bucket_ends)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (request_response.OpenLoop,)

    @property
    def wire_bits_per_s(self) -> float:
        """Of its requests."""
        return 8 * self.rate * self.request_size

    def packets(self, profile: RunProfile) -> float:
        """Return its requests, and those that they make services send each other."""
        return self.rate * profile.seconds * _over_tiers(profile.application, profile, _one)

    def in_flight(self, profile: RunProfile) -> float:
        """Those that take as long as their time-out."""
        return self.rate * self.timeout / 1e9

    def install(self, target: Target) -> RowDriver:
        """Add the requests."""
        engine = target.engine
        row = request_response.add_open_requests(
            engine, target.feeder, target.port, self, target.streams, target.number, target.window_ns[0]
        )
        return RowDriver(
            target,
            int(engine.rows(exchanges)[row].flow),
            lambda: engine.call(request_response.start_exchange, row),
            lambda: request_response.open_loop_of(engine, row),
        )


def _over_tiers(
    server: ApplicationSpec | None, profile: RunProfile, of: Callable[[ApplicationSpec | None], float]
) -> float:
    """Return the sum of a figure over all requests that one of a client causes."""
    total = of(server)
    if server is not None and profile.peer is not None:
        total += sum(times * _over_tiers(profile.peer(to), profile, of) for to, times in server.asks_on_average)
    return total


def _one(server: ApplicationSpec | None) -> float:
    return 1.0


def _work_ns(server: ApplicationSpec | None) -> float:
    return max(_WORK_NS, 0 if server is None else server.packet_work_ns)
