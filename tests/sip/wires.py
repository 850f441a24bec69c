"""A kernel of a server and user agents on wires, in the engine for reading, where functions can be listened to."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from vftsim.kernel import EventKind, Linked, Sim, entry, link
from vftsim.kernel.agenda import Agenda, agenda_due
from vftsim.kernel.declare import part_of
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.jobs import freeze, thaw
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.records import domains, vcpus
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native
from vftsim.platform.delays import delays, install_buckets
from vftsim.platform.io.host_cards import cards, on_burst
from vftsim.platform.io.link import add_link
from vftsim.platform.io.packet import application, applications, flows, packets, path, ports, receive, workload
from vftsim.platform.io.paths.moderated import GuestNicSpec, install, moderated
from vftsim.platform.rows import fill_row
from vftsim.workloads.ims_bench.agents import ims_bench, start_attempt
from vftsim.workloads.ims_bench.arrivals import begin_arrivals, begin_batches, judge_overdue
from vftsim.workloads.ims_bench.attempt import benches, phases
from vftsim.workloads.ims_bench.metrics import HISTOGRAMS
from vftsim.workloads.ims_bench.sampler import begin_sampling, end_sampling
from vftsim.workloads.ims_bench.subscribers import fill_pools
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.application import SipServerSpec, add_server
from vftsim.workloads.sip.messages import drop_ref, install_messages
from vftsim.workloads.sip.records import sip_servers
from vftsim.workloads.sip.server import idle_all, set_costs, sip_server, start_server

_WITHOUT_DELAY = 10**16
_QUANTUM_NS = 1_000_000_000


@entry
def start(sim: Sim, bench: int, row: int) -> None:
    start_attempt(sim, benches(sim)[bench], row)


@entry
def make_ready(sim: Sim, server: int) -> None:
    """Let a server take messages without its timers."""
    set_costs(sim, sip_servers(sim)[server], 0, 1.0, 1.0)
    idle_all(sim, sip_servers(sim)[server])


@entry
def give(sim: Sim, program: int, packet: int) -> None:
    receive(sim, applications(sim)[program], packet)


@entry
def freeze_domain(sim: Sim, domain: int) -> None:
    freeze(sim, domains(sim)[domain])


@entry
def thaw_domain(sim: Sim, domain: int) -> None:
    thaw(sim, domains(sim)[domain])


ENTRIES = (
    *cpu.ENTRIES,
    start,
    make_ready,
    give,
    freeze_domain,
    thaw_domain,
    start_server,
    begin_arrivals,
    begin_batches,
    judge_overdue,
    begin_sampling,
    end_sampling,
)


@cache
def linked() -> Linked:
    kinds = {scheduler: [native], path: [moderated], application: [sip_server], workload: [ims_bench]}
    return link(ENTRIES, kinds, [*Agenda.ACTIONS, on_burst], [*cpu.TABLES, agenda_due])


class Wires:
    """One CPU without a hypervisor, a server on it, a wire each way, and the records of user agents."""

    def __init__(
        self,
        server: SipServerSpec,
        workload: ImsBenchSpec,
        wire_ns: int,
        cpu_inflation: float = 1.0,
        packet_cost_ns: int = 0,
    ) -> None:
        self.engine = engine = SimpyEngine(linked(), self.on_input)
        self.agenda = Agenda(engine)
        install_messages(engine)
        install_buckets(engine)
        self.host_row = cpu.add_host(engine, 1, Native())
        self.domain_row = cpu.add_domain(engine, self.host_row, DomainScheduling(), 1, None, _QUANTUM_NS)
        installed = add_server(engine, self.domain_row, server, cpu_inflation, packet_cost_ns)
        self.server_row, self.program_row = int(installed.row), int(installed.program)
        self.port_row = self._add_port(wire_ns)
        self.bench_row, self.bench_record = engine.add(benches, port=self.port_row)
        flow_row, flow = engine.add(
            flows, workload=engine.number(ims_bench), state_row=self.bench_row, port=self.port_row
        )
        self.bench_record.row = self.bench_row
        self.bench_record.flow = flow.row = flow_row
        fill_row(self.engine, benches, self.bench_record.row, workload)
        fill_row(self.engine, benches, self.bench_record.row, workload.thresholds)
        # Attempts are planned by tests and come from no pool; there is room for those who come back from them.
        fill_pools(engine, self.bench_record, 1 << 14, 0)
        self.bench_record.unregistered.count = 0
        self.phase_row, self.phase = engine.add(phases)
        rows = [engine.new(delays) for _ in HISTOGRAMS]
        self.phase.first_delay = rows[0]
        self.bench_record.phase = self.phase_row
        cpu.start(engine, self.host_row, Native())
        engine.call(make_ready, self.server_row)

    def on_input(self) -> None:
        self.agenda.serve()

    def at(self, time_ns: int, kind: EventKind, entity: int, action: Callable[[], None]) -> None:
        self.agenda.at(time_ns, kind, entity, self.agenda.add(action))

    def call(self, part: Any, *arguments: Any) -> Any:
        """Call a function of the kernel."""
        return self.engine._namespace[part_of(part).name](self.engine.sim, *arguments)

    def wrap(self, part: Any, wrapper: Callable[..., Any]) -> None:
        """Let ``wrapper(original, sim, ...)`` stand in a function's place."""
        namespace: dict[str, Any] = self.engine._namespace
        original = namespace[part_of(part).name]
        namespace[part_of(part).name] = lambda *arguments: wrapper(original, *arguments)

    def listen(self, event: Any, listener: Callable[[int], None]) -> None:
        """Call ``listener(place)`` before an event's action."""
        number = self.engine.number(event)
        original = self.engine._actions[number]

        def heard(sim: Any, place: int, token: int) -> None:
            listener(place)
            original(sim, place, token)

        self.engine._actions[number] = heard

    def lose(self, packet: int) -> None:
        """End a packet that nobody will see."""
        self.call(drop_ref, self.engine.rows(packets)[packet].stream)
        self.engine._namespace["packets__free"](self.engine.sim, packet)

    def busy_ns(self) -> int:
        self.engine.call(cpu.bring_up_to_date, self.host_row)
        return sum(int(self.engine.rows(vcpus)[row].run_ns) for row in range(1, 1 + self.engine.used(vcpus)))

    def _add_port(self, wire_ns: int) -> int:
        engine = self.engine
        to_host = add_link(engine, _WITHOUT_DELAY, wire_ns, 1 << 40)
        from_host = add_link(engine, _WITHOUT_DELAY, wire_ns, 1 << 40)
        card_row, card = engine.add(cards, to_host=to_host, from_host=from_host)
        card.row = card_row
        row, port = engine.add(
            ports, domain=self.domain_row, path=engine.number(moderated), card=card_row, application=self.program_row
        )
        port.row = row
        install(engine, row, GuestNicSpec(), 0, 0)
        return row
