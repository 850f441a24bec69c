"""Links and cards of the kernel with nothing behind them, in the engine for reading: what arrives is noted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from vftsim.kernel import EventKind, Linked, Sim, entry, link
from vftsim.kernel.agenda import Agenda, agenda_due
from vftsim.kernel.declare import part_of
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native
from vftsim.platform.io.host_cards import cards, on_burst, send_from_host
from vftsim.platform.io.link import Link, add_link, backlog_ns, links, reserve
from vftsim.platform.io.packet import (
    Application,
    Flow,
    application,
    applications,
    delivered,
    drops,
    flows,
    packets,
    path,
    ports,
    receive,
    workload,
)
from vftsim.platform.io.packet import arrive as arrive_at_port
from vftsim.platform.io.packet import disconnect as disconnect_port
from vftsim.platform.io.paths.moderated import moderated
from vftsim.platform.protection.guard import protection

sink = application.kind("sink")
source = workload.kind("source")
meter = protection.kind("meter")


@sink.implements(receive)
def take(sim: Sim, program: Application, packet: int) -> None:
    packets.free(sim, packet)


@source.implements(delivered)
def take_back(sim: Sim, flow: Flow, packet: int) -> None:
    packets.free(sim, packet)


@entry
def send(sim: Sim, packet: int) -> None:
    send_from_host(sim, ports(sim)[packets(sim)[packet].port], packet)


@entry
def arrive(sim: Sim, port: int, packet: int) -> None:
    arrive_at_port(sim, ports(sim)[port], packet)


@entry
def disconnect(sim: Sim, port: int) -> None:
    disconnect_port(sim, ports(sim)[port])


@entry
def reserve_now(sim: Sim, row: int, size_bytes: int) -> int:
    link = links(sim)[row]
    reserve(sim, link, size_bytes, size_bytes * 8_000_000_000 // link.rate_bits_per_s)
    return backlog_ns(sim, link)


@work_done
def job_over(sim: Sim) -> None:
    pass


@entry
def start_job(sim: Sim, domain: int, demand_ns: int) -> None:
    jobs.submit(sim, domains(sim)[domain], demand_ns, job_over, 0, 0)


@cache
def linked(*, is_guarded: bool = False) -> Linked:
    kinds: dict[Any, Any] = {scheduler: [native], path: [moderated], application: [sink], workload: [source]}
    if is_guarded:
        kinds[protection] = [meter]
    entries = [*cpu.ENTRIES, send, arrive, disconnect, reserve_now, start_job]
    return link(entries, kinds, [*Agenda.ACTIONS, on_burst], [*cpu.TABLES, agenda_due])


class Network:
    """An engine with a domain on one CPU, whose port has a card; frames are numbered by their ``entity``."""

    def __init__(self, *, is_guarded: bool = False) -> None:
        self.engine = engine = SimpyEngine(linked(is_guarded=is_guarded), self.on_input)
        self.agenda = Agenda(engine)
        self.host = cpu.add_host(engine, 1, Native())
        self.domain = cpu.add_domain(engine, self.host, DomainScheduling(), 1, None, 100_000_000)
        cpu.start(engine, self.host, Native())
        self.program, program = engine.add(applications, program=engine.number(sink))
        program.row = self.program
        self.port, port = engine.add(ports, domain=self.domain, path=engine.number(moderated), application=self.program)
        port.row = self.port
        self.flow, flow = engine.add(flows, workload=engine.number(source), port=self.port)
        flow.row = self.flow
        self.log: list[tuple[int, int]] = []
        self.note(take, 2)
        self.note(take_back, 2)

    def on_input(self) -> None:
        self.agenda.serve()

    def note(self, part: Any, argument: int) -> None:
        """Log the packet that a function is called with, and when."""
        namespace: dict[str, Any] = self.engine._namespace
        original = namespace[part_of(part).name]

        def noted(*arguments: Any) -> None:
            self.log.append((self.engine.now_ns, self.engine.rows(packets)[arguments[argument]].entity))
            original(*arguments)

        namespace[part_of(part).name] = noted

    def wire(self, rate: int, latency_ns: int, queue_bytes: int) -> Link:
        """Put a card with a link out of the host behind the port."""
        row = add_link(self.engine, rate, latency_ns, queue_bytes)
        card, _ = self.engine.add(cards, from_host=row, to_host=row)
        self.use_card(card)
        found: Link = self.engine.rows(links)[row]
        return found

    def use_card(self, card: int) -> None:
        self.engine.rows(ports)[self.port].card = card

    def at(self, time_ns: int, kind: EventKind, entity: int, action: Callable[[], Any]) -> None:
        self.agenda.at(time_ns, kind, entity, self.agenda.add(action))

    def send(self, size_bytes: int, number: int) -> None:
        self.engine.call(send, self._packet(size_bytes, number))

    def arrive(self, size_bytes: int, number: int) -> None:
        self.engine.call(arrive, self.port, self._packet(size_bytes, number))

    def dropped(self, place: int) -> int:
        return int(self.engine.rows(drops)[place].count)

    def busy_ns(self) -> int:
        self.engine.call(cpu.bring_up_to_date, self.host)
        return int(self.engine.rows(vcpus)[1].run_ns)

    def _packet(self, size_bytes: int, number: int) -> int:
        row, _ = self.engine.add(packets, flow=self.flow, port=self.port, size_bytes=size_bytes, entity=number)
        return row
