"""A server and test systems joined by two wires of constant delay: small enough to work out by hand.

``log`` holds every arrival of a datagram as (time in us, where, message).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vftsim.cpu import Guest, Host
from vftsim.engine import Clock, EventKind
from vftsim.sip.agents import TestSystems
from vftsim.sip.attempt import Attempt
from vftsim.sip.server import SipServer

from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.schedulers.native import Native
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.parameters import ImsBenchSpec
from vftsim.workloads.sip.messages import DEMANDS_PER_ATTEMPT, Message, Scenario
from vftsim.workloads.sip.parameters import SipServerSpec, VirtualizationSpec

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


def one_cpu() -> tuple[Clock, Host, Guest]:
    """A machine with one CPU and no hypervisor."""
    clock = Clock()
    host = Host(clock, 1, Native().build())
    guest = Guest(host, [host.add_vcpu(DomainScheduling())], S)
    host.start()
    return clock, host, guest


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
        virtual: VirtualizationSpec | None = None,
        wire_us: int = 1_000,
        loses: Loss | None = None,
    ) -> None:
        self.clock, self.host, self.guest = one_cpu()
        self.spec = server or plain_server()
        self.workload = workload or ImsBenchSpec()
        self.wire_ns = wire_us * US
        self.loses = loses or (lambda _where, _message, _nth: False)
        self.log: list[tuple[float, str, str]] = []
        self.sent: dict[tuple[str, Message], int] = {}
        self.lost = 0
        self.ended: list[tuple[float, Attempt]] = []
        self.record = PhaseRecord("by hand", 1, 0.0)
        self.server = SipServer(self.clock, self.guest, self.spec, self._to_agents, virtual or VirtualizationSpec())
        self.agents = TestSystems(self.clock, self.workload, self._to_server, self._ended)

    def attempt(self, scenario: Scenario, at_us: float = 0, ring_us: int = 10_000, hold_us: int = 20_000) -> Attempt:
        """Plan an attempt with demands of exactly the mean."""
        demands = [1.0] * DEMANDS_PER_ATTEMPT
        index = 1 + int(at_us)
        attempt = Attempt(index, scenario, demands, ring_us * US, hold_us * US, int(at_us * US))
        attempt.phase = self.record
        self.clock.at(attempt.start_ns, EventKind.ARRIVAL, 1, self._start, attempt)
        return attempt

    def run(self, until_us: float | None = None) -> list[tuple[float, str, str]]:
        """Run and return the log."""
        self.clock.run(None if until_us is None else int(until_us * US))
        return self.log

    def delays_us(self, name: str) -> tuple[int, float]:
        """How many delays of a kind were measured, and their mean in us."""
        histogram = self.record.delays[name]
        return histogram.count, histogram.mean / US

    def _start(self, attempt: Attempt) -> None:
        self.record.attempts[attempt.scenario] += 1
        self.agents.start(attempt)

    def _ended(self, attempt: Attempt) -> None:
        self.ended.append((self.clock.now_ns / US, attempt))

    def _to_server(self, message: int, attempt: Attempt) -> None:
        self._wire("server", message, attempt, self.server.receive)

    def _to_agents(self, message: int, attempt: Attempt) -> None:
        self._wire("agents", message, attempt, self.agents.receive)

    def _wire(self, where: str, number: int, attempt: Attempt, deliver: Callable[[tuple[int, Attempt]], None]) -> None:
        message = Message(number)
        nth = self.sent[where, message] = self.sent.get((where, message), 0) + 1
        if self.loses(where, message, nth):
            self.lost += 1
            return

        def arrive(_: Any) -> None:
            self.log.append((self.clock.now_ns / US, where, message.name))
            deliver((number, attempt))

        self.clock.after(self.wire_ns, EventKind.DELIVERY, attempt.index, arrive)
