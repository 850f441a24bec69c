"""The server as a plain queue: REGISTERs at given instants, nobody answers what it sends."""

from __future__ import annotations

from typing import Any

from bench import one_cpu, plain_server
from vftsim.engine import EventKind
from vftsim.sip.attempt import Attempt
from vftsim.sip.server import SipServer

from vftsim.sampling import Streams, gamma_ns, poisson_gaps_ns
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Message, Scenario
from vftsim.workloads.sip.parameters import SipServerSpec, VirtualizationSpec

_UNIT_NS = 1 << 30


class OpenQueue:
    """Feeds a server and notes departures.

    Attributes
    ----------
    responses_ns : dict of int
        By number of the message; dropped messages have none.
    area_ns : int
        Integral of the number of messages in progress over time.
    """

    def __init__(self, spec: SipServerSpec | None = None, virtual: VirtualizationSpec | None = None) -> None:
        self.clock, self.host, self.guest = one_cpu()
        self.spec = spec or plain_server()
        self.server = SipServer(self.clock, self.guest, self.spec, self._departed, virtual or VirtualizationSpec())
        self.responses_ns: dict[int, int] = {}
        self.area_ns = 0
        self._since_ns = 0

    def play(self, arrivals_ns: list[int], demands: list[float]) -> None:
        """Send one REGISTER for each arrival, with its relative demand, until all are served."""
        for number, (time_ns, demand) in enumerate(zip(arrivals_ns, demands, strict=True)):
            attempt = Attempt(number, Scenario.IMS_REG, [demand] * DEMANDS_PER_ATTEMPT, 1, 1, time_ns)
            self.clock.at(time_ns, EventKind.ARRIVAL, number, self._arrive, attempt)
        self.clock.run()

    def _count(self) -> None:
        now_ns = self.clock.now_ns
        self.area_ns += self.server.in_progress * (now_ns - self._since_ns)
        self._since_ns = now_ns

    def _arrive(self, attempt: Any) -> None:
        self._count()
        self.server.receive((Message.REGISTER, attempt))

    def _departed(self, message: int, attempt: Attempt) -> None:
        assert message == Message.UNAUTHORIZED
        self._count()
        self.responses_ns[attempt.index] = self.clock.now_ns - attempt.start_ns


def poisson_load(replication: int, count: int, rate_per_s: float, demand_cv: float) -> tuple[list[int], list[float]]:
    """Arrival instants and relative demands of ``count`` messages."""
    streams = Streams(186_008, replication)
    gaps = poisson_gaps_ns(streams.uniforms("arrivals", count=count), rate_per_s)
    demands = gamma_ns(streams.uniforms("demands", count=count), _UNIT_NS, demand_cv) / _UNIT_NS
    return gaps.cumsum().tolist(), demands.tolist()
