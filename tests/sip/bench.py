"""A server and test systems joined by two wires of constant delay: small enough to work out by hand.

``log`` holds every arrival of a datagram as (time in us, where, message).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wires import Wires, freeze_domain, start, thaw_domain

from vftsim.kernel import EventKind
from vftsim.platform.delays import histogram
from vftsim.platform.io.host_cards import on_leaving_network, on_reaching_host
from vftsim.platform.io.link import transmit
from vftsim.platform.io.packet import drops, packets
from vftsim.stats import DelayHistogram
from vftsim.workloads.ims_bench.attempt import attempts
from vftsim.workloads.ims_bench.metrics import HISTOGRAMS
from vftsim.workloads.ims_bench.verdict import end
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.application import SipServerSpec
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Message, Scenario, streams
from vftsim.workloads.sip.records import sip_rules, sip_servers
from vftsim.workloads.sip.server import set_costs, start_server

US = 1_000
MS = 1_000_000
S = 1_000_000_000

Loss = Callable[[str, Message, int], bool]

PLAIN_SERVER: dict[str, Any] = {
    "touch_cost": 100 * US,
    "register_touch_cost": 100 * US,
    "work_after_send": 0.0,
    "demand_cv": 0.0,
}


def plain_server(**changes: Any) -> SipServerSpec:
    """100 us for each message received or sent, nothing else."""
    return SipServerSpec(**(PLAIN_SERVER | changes))


class Attempt:
    """An attempt of a bench, as its rows have it."""

    def __init__(self, wires: Wires, row: int) -> None:
        self._row = wires.engine.rows(attempts)[row]
        self._stream = wires.engine.rows(streams)[row]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)

    def give_demands(self, demands: list[float]) -> None:
        self._stream.demands[:] = demands

    def leave_uncounted(self) -> None:
        self._row.counted = False


class Record:
    """What the phase of a bench has counted."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires

    @property
    def delays(self) -> dict[str, DelayHistogram]:
        first = self._wires.phase.first_delay
        return {name: histogram(self._wires.engine, first + n) for n, name in enumerate(HISTOGRAMS)}

    @property
    def inadequate(self) -> list[int]:
        return list(self._wires.phase.inadequate)


class Server:
    """What the server of a bench has counted."""

    def __init__(self, wires: Wires) -> None:
        self._wires = wires
        self._row = wires.engine.rows(sip_servers)[wires.server_row]

    def __getattr__(self, name: str) -> Any:
        return getattr(self._row, name)

    @property
    def dropped(self) -> int:
        return int(self._wires.engine.rows(drops)[self._row.buffer_full].count)

    @property
    def in_progress(self) -> int:
        processes = self._wires.engine.rows(sip_rules)[self._wires.server_row].processes
        return int(self._row.buffer.length + processes - self._row.idle.length)

    def start(self) -> None:
        """Start its timers too."""
        while self._row.idle.length:
            self._wires.engine._namespace["sip_workers_link__pop"](self._wires.engine.sim, self._row.idle)
        self._wires.engine.call(start_server, self._wires.server_row)

    def set_overhead(self, output_ns: int = 0, execution: float = 1.0, exits: float = 1.0) -> None:
        self._wires.call(set_costs, self._row, output_ns, execution, exits)


class Bench:
    """One server, all user agents, and a wire each way.

    Parameters
    ----------
    wire_us : int
        Delay of each wire.
    loses : callable
        ``loses(where_to, message, nth)``: whether the n-th (from 1) of these datagrams is lost.
    """

    def __init__(
        self,
        server: SipServerSpec | None = None,
        workload: ImsBenchSpec | None = None,
        wire_us: int = 1_000,
        loses: Loss | None = None,
        cpu_inflation: float = 1.0,
        packet_cost_ns: int = 0,
    ) -> None:
        self.workload = workload or ImsBenchSpec(to="server")
        self.wires = Wires(server or plain_server(), self.workload, wire_us * US, cpu_inflation, packet_cost_ns)
        self.loses = loses or (lambda _where, _message, _nth: False)
        self.log: list[tuple[float, str, str]] = []
        self.sent: dict[tuple[str, Message], int] = {}
        self.lost = 0
        self.ended: list[tuple[float, Attempt]] = []
        self.record = Record(self.wires)
        self.server = Server(self.wires)
        self.agents = self.wires.bench_record
        self._attempts: dict[int, Attempt] = {}  # by the identity of its row, which the engine keeps
        self.wires.wrap(transmit, self._transmit)
        self.wires.wrap(end, self._end)
        self.wires.listen(on_reaching_host, lambda packet: self._arrived("server", packet))
        self.wires.listen(on_leaving_network, lambda packet: self._arrived("agents", packet))

    @property
    def now_ns(self) -> int:
        return self.wires.engine.now_ns

    def busy_ns(self) -> int:
        """CPU time used up to now."""
        return self.wires.busy_ns()

    def freeze(self) -> None:
        self.wires.engine.call(freeze_domain, self.wires.domain_row)

    def thaw(self) -> None:
        self.wires.engine.call(thaw_domain, self.wires.domain_row)

    def attempt(self, scenario: Scenario, at_us: float = 0, ring_us: int = 10_000, hold_us: int = 20_000) -> Attempt:
        """Plan an attempt with demands of exactly the mean."""
        demands = [1.0] * DEMANDS_PER_ATTEMPT
        return self.plan(1 + int(at_us), scenario, demands, ring_us * US, hold_us * US, int(at_us * US))

    def plan(
        self, number: int, scenario: Scenario, demands: list[float], ring_ns: int, hold_ns: int, start_ns: int
    ) -> Attempt:
        """Plan an attempt; its rows are kept to be looked at."""
        wires = self.wires
        row, stream = wires.engine.add(streams, number=number, uses=1)
        stream.demands[: len(demands)] = demands
        attempt = wires.engine.rows(attempts)[row]
        attempt.bench, attempt.scenario, attempt.phase, attempt.counted = (
            wires.bench_row,
            int(scenario),
            wires.phase_row,
            True,
        )
        attempt.ring_ns, attempt.hold_ns, attempt.start_ns, attempt.destination = ring_ns, hold_ns, start_ns, -1
        made = self._attempts[id(attempt)] = Attempt(wires, row)
        wires.at(start_ns, EventKind.ARRIVAL, 1, lambda: self._start(row))
        return made

    def run(self, until_us: float | None = None) -> list[tuple[float, str, str]]:
        """Run and return the log."""
        if until_us is None:
            self.wires.engine.run()
        else:
            self.wires.engine.run(int(until_us * US))
        return self.log

    def delays_us(self, name: str) -> tuple[int, float]:
        """How many delays of a kind were measured, and their mean in us."""
        found = self.record.delays[name]
        return found.count, found.mean / US

    def _start(self, row: int) -> None:
        self.wires.bench_record.begun += 1
        self.wires.engine.call(start, self.wires.bench_row, row)

    def _end(self, original: Any, sim: Any, bench: Any, attempt: Any) -> None:
        if not attempt.ended:
            self.ended.append((self.now_ns / US, self._attempts[id(attempt)]))
        original(sim, bench, attempt)

    def _transmit(self, original: Any, sim: Any, link: Any, packet: int, on_arrival: int) -> None:
        where = "server" if on_arrival == self.wires.engine.number(on_reaching_host) else "agents"
        message = Message(sim.packets[packet].message)
        nth = self.sent[where, message] = self.sent.get((where, message), 0) + 1
        if self.loses(where, message, nth):
            self.lost += 1
            self.wires.lose(packet)
        else:
            original(sim, link, packet, on_arrival)

    def _arrived(self, where: str, packet: int) -> None:
        message = Message(self.wires.engine.rows(packets)[packet].message)
        self.log.append((self.now_ns / US, where, message.name))
