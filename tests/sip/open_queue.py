"""The server as a plain queue: REGISTERs at given instants, nobody answers what it sends."""

from __future__ import annotations

from typing import Any

from bench import Server, plain_server
from wires import Wires, give

from vftsim.kernel import EventKind
from vftsim.platform.io.link import transmit
from vftsim.platform.io.packet import packets
from vftsim.sampling import Streams, gamma_ns, poisson_gaps_ns
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.application import SipServerSpec
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Message, streams

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

    def __init__(self, spec: SipServerSpec | None = None, cpu_inflation: float = 1.0, packet_cost_ns: int = 0) -> None:
        self.wires = Wires(spec or plain_server(), ImsBenchSpec(to="server"), 0, cpu_inflation, packet_cost_ns)
        self.server = Server(self.wires)
        self.responses_ns: dict[int, int] = {}
        self.area_ns = 0
        self._since_ns = 0
        self._arrivals_ns: list[int] = []
        self.wires.wrap(transmit, self._departed)

    def play(self, arrivals_ns: list[int], demands: list[float]) -> None:
        """Send one REGISTER for each arrival, with its relative demand, until all are served."""
        self._arrivals_ns = arrivals_ns
        for number, (time_ns, demand) in enumerate(zip(arrivals_ns, demands, strict=True)):
            self.wires.at(time_ns, EventKind.ARRIVAL, number, lambda n=number, d=demand: self._arrive(n, d))  # type: ignore[misc]
        self.wires.engine.run()

    def busy_ns(self) -> int:
        """CPU time used up to now."""
        return self.wires.busy_ns()

    def _count(self) -> None:
        now_ns = self.wires.engine.now_ns
        self.area_ns += self.server.in_progress * (now_ns - self._since_ns)
        self._since_ns = now_ns

    def _arrive(self, number: int, demand: float) -> None:
        self._count()
        engine, wires = self.wires.engine, self.wires
        stream_row, stream = engine.add(streams, number=number, uses=1)
        stream.demands[:] = [demand] * DEMANDS_PER_ATTEMPT
        row, _ = engine.add(
            packets, flow=wires.bench_record.flow, port=wires.port_row, stream=stream_row, message=int(Message.REGISTER)
        )
        engine.call(give, wires.program_row, row)

    def _departed(self, _original: Any, sim: Any, _link: Any, packet: int, _on_arrival: int) -> None:
        assert sim.packets[packet].message == Message.UNAUTHORIZED
        self._count()
        number = sim.packets[packet].entity
        self.responses_ns[number] = self.wires.engine.now_ns - self._arrivals_ns[number]
        self.wires.lose(packet)


def poisson_load(replication: int, count: int, rate_per_s: float, demand_cv: float) -> tuple[list[int], list[float]]:
    """Arrival instants and relative demands of ``count`` messages."""
    streams = Streams(186_008, replication)
    gaps = poisson_gaps_ns(streams.uniforms("arrivals", count=count), rate_per_s)
    demands = gamma_ns(streams.uniforms("demands", count=count), _UNIT_NS, demand_cv) / _UNIT_NS
    return gaps.cumsum().tolist(), demands.tolist()
