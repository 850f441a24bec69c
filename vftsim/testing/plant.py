"""A guarded guest that computes without end and answers requests in no time, and clients that ask it.

The guest's computation is cut into chunks, each of which may end with an output: outputs uniform in run time.  Clients
ask at given instants, or again as soon as they have their answer.  Wires take no time: every delay is the mechanism's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from vftsim.kernel import Engine, EventKind, Kind, Linked, Record, Sim, Table, at, entry, event, link
from vftsim.kernel.compiled_engine import CompiledEngine
from vftsim.kernel.declare import part_of
from vftsim.kernel.inputs import Feeder, feeds
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.cpu import build, jobs
from vftsim.platform.cpu.parameters import DomainScheduling, schedulers
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.io import packet
from vftsim.platform.io import packet as io
from vftsim.platform.io.paths import moderated
from vftsim.platform.protection import account, passes
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import Guard, before_stop, guards, protection, put_out
from vftsim.platform.protection.mechanism import ProtectionSpec, protections
from vftsim.platform.protection.output_buffer import output_buffers
from vftsim.platform.protection.replication import find
from vftsim.platform.protection.rollback import Finding
from vftsim.sampling import Streams
from vftsim.spec.units import S

OWN = 1 << 40
"""Numbers of outputs that end a chunk begin here; below are answers."""

ASKED_AGAIN = 1 << 32
"""Distance of the numbers of requests that follow one another."""


def in_seconds(outcome: Any) -> dict[str, Any]:
    """Return what a mechanism did, its counters by their names, times in s and ms."""
    as_they_are = ("dirty_pages", "most_outputs_held", "outputs_dropped")
    named = {name: getattr(outcome, name) for name in as_they_are if name in outcome.held}
    for name, ours, factor in (
        ("stopped_ns", "stopped_s", 1e-9),
        ("backup_cpu_ns", "secondary_cpu_s", 1e-9),
        ("sender_cpu_ns", "sender_cpu_s", 1e-9),
        ("longest_held_ns", "longest_output_wait_ms", 1e-6),
        ("longest_pause_ns", "longest_pause_ms", 1e-6),
        ("interval_ns", "interval_ms", 1e-6),
        ("channel_bytes", "state_bytes", 1),
        ("channel_bytes", "log_bytes", 1),
        ("most_uncommitted_bytes", "most_uncommitted_disk_bytes", 1),
    ):
        if name in outcome.held and getattr(outcome, name) is not None:
            named[ours] = getattr(outcome, name) * factor
    named["output_wait_ms"] = outcome.held_ns * 1e-6 / max(1, outcome.released)
    if "paused_ns" in outcome.held:
        named["pause_ms"] = outcome.paused_ns * 1e-6 / max(1, outcome.states)
    return {**outcome.counted, **named}


class Moment(Record):
    """Something with a number, at an instant."""

    time_ns: int
    number: int


class Habits(Record):
    """How guest and clients behave: ``turns`` requests follow each other ``think_ns`` apart; -1: without end.

    An answer comes ``service_ns`` after its request, by a timer: also from a guest that stands still then.
    """

    chunk_ns: int
    lengths: int
    chunk_is_output: bool
    chunk: int
    size_bytes: int
    think_ns: int
    turns: int
    service_ns: int


chunk_lengths = Table("chunk_lengths", Moment, 4096)
"""Lengths of chunks that are not all alike."""

stops = Table("stops", Moment, 1 << 18)
habits = Table("habits", Habits, 2, is_fixed=True)
entered = Table("entered", Moment, 1 << 20)
issued = Table("issued", Moment, 1 << 20)
seen = Table("seen", Moment, 1 << 20)
probes = Table("probes", Finding, 1 << 16)

server = io.application.kind("server")
clients = io.workload.kind("clients")
wire = io.path.kind("wire", base=moderated.moderated)


packet_delivered = packet.delivered


def write_down(sim: Sim, row: Moment, number: int) -> None:
    """Note a number at this instant."""
    row.time_ns = sim.now_ns
    row.number = number


def send_at_once(sim: Sim, port: io.Port, packet: int) -> bool:
    """Without cost or delay, and written down."""
    write_down(sim, seen(sim)[seen.new(sim)], io.packets(sim)[packet].message)
    packet_delivered(sim, io.flows(sim)[io.packets(sim)[packet].flow], packet)
    return True


wire.implementations[packet.send.name] = part_of(send_at_once)  # type: ignore[attr-defined]


@clients.implements(packet.delivered)
def on_delivery(sim: Sim, flow: io.Flow, packet: int) -> None:
    """An answer, or an output of the guest's own, has come: ask the next thing."""
    number = io.packets(sim)[packet].message
    io.packets.free(sim, packet)
    habit = habits(sim)[1]
    if number < OWN and (habit.turns < 0 or number // ASKED_AGAIN + 1 < habit.turns):
        at(sim, sim.now_ns + habit.think_ns, EventKind.DELIVERY, number % ASKED_AGAIN, on_ask, number + ASKED_AGAIN)


@clients.implements(packet.discarded)
def forget(sim: Sim, flow: io.Flow, packet: int) -> None:
    """An output has died with its host."""


@event
def on_ask(sim: Sim, number: int) -> None:
    """A request reaches the card."""
    row = io.packets.new(sim)
    reply = io.packets(sim)[row]
    reply.flow = 1
    reply.port = 1
    reply.message = number
    reply.size_bytes = habits(sim)[1].size_bytes
    packet.arrive(sim, io.ports(sim)[1], row)


@server.implements(packet.receive)
def answer(sim: Sim, program: io.Application, packet: int) -> None:
    """Answer at once, or after a while."""
    number = io.packets(sim)[packet].message
    io.packets.free(sim, packet)
    write_down(sim, entered(sim)[entered.new(sim)], number)
    if habits(sim)[1].service_ns > 0:
        at(sim, sim.now_ns + habits(sim)[1].service_ns, EventKind.TIMER, number % ASKED_AGAIN, on_answer, number)
    else:
        put(sim, number)


def put(sim: Sim, number: int) -> None:
    """Send an output, and note that it was issued."""
    write_down(sim, issued(sim)[issued.new(sim)], number)
    row = io.packets.new(sim)
    packet = io.packets(sim)[row]
    packet.flow = 1
    packet.port = 1
    packet.message = number
    packet.size_bytes = habits(sim)[1].size_bytes
    put_out(sim, io.ports(sim)[1], row)


on_answer = event(put)


@work_done
def chunk_done(sim: Sim) -> None:
    """A piece of the computation ends, perhaps with an output; the next begins."""
    habit = habits(sim)[1]
    habit.chunk += 1
    chunk_ns = habit.chunk_ns
    if habit.lengths > 0:
        chunk_ns = chunk_lengths(sim)[habit.chunk % habit.lengths + 1].number
    jobs.continue_with(sim, domains(sim)[1], chunk_ns, chunk_done, 0, 0)
    if habit.chunk_is_output:
        put(sim, OWN + habit.chunk)


@entry
def start_computing(sim: Sim) -> None:
    """Begin the first chunk."""
    jobs.submit(sim, domains(sim)[1], habits(sim)[1].chunk_ns, chunk_done, 0, 0)


@event
def on_probe(sim: Sim, guard_row: int) -> None:
    """Write down what a crash at this instant would find."""
    row = probes.new(sim)
    probes(sim)[row].crash_ns = sim.now_ns
    find(sim, guards(sim)[guard_row], probes(sim)[row], False)


WATCHED = "watched_"


def watched(kind: Kind) -> Kind:
    """A mechanism that does the same, and writes down when it stops the guest and what it had sent by then."""
    watched_kind = Kind(f"{WATCHED}{kind.name}", kind.sort, kind)
    watched_kind.implementations[before_stop.name] = part_of(write_stop)  # type: ignore[attr-defined]
    return watched_kind


def write_stop(sim: Sim, guard: Guard) -> None:
    """The guest is about to be stopped."""
    write_down(sim, stops(sim)[stops.new(sim)], channels(sim)[guard.row].sent_bytes)


@cache
def linked(*others: Kind) -> Linked:
    """A kernel with every mechanism, or with others alone."""
    kinds = others or tuple(spec.part for spec in protections().values())
    return link(
        [*build.ENTRIES, *protect.ENTRIES, start_computing],
        {
            scheduler: [schedulers()["native"].part],
            protection: kinds,
            fault: [spec.part for spec in FAULTS.values()],
            io.path: [wire],
            io.application: [server],
            io.workload: [clients],
        },
        [on_answer, on_ask, on_probe, *protect.ACTIONS],
        [
            *build.TABLES,
            *protect.TABLES,
            habits,
            chunk_lengths,
            feeds,
            entered,
            issued,
            seen,
            probes,
            stops,
            output_buffers,
        ],
    )


@cache
def spec_type(kind: str, part: Kind | None) -> Any:
    """The spec of a mechanism, with another part in its place if there is one."""
    chosen: Any = protections()[kind]
    return chosen if part is None else type("Other", (chosen,), {"__module__": __name__, "part": part})


@cache
def scheduling() -> Any:
    """The scheduler of the host."""
    return TypeAdapter(schedulers()["native"]).validate_python({"kind": "native"})


@dataclass
class Plant:
    """One run: mechanism, guest, clients, faults.

    Parameters
    ----------
    chunk_ns, chunk_is_output, lengths
        How the guest's computation is cut, and whether each piece ends with an output.
    think_ns, turns, service_ns : int
        A client asks so often, so long after its answer; an answer takes so long.
    faults : list of dict
        As a model file has them.
    until_ns : int
    part : Kind, optional
        Other functions in the place of the mechanism's own.
    engine_type : type, optional
        Default: compiled, or as plain Python where there is a ``spoil``.
    spoil : callable, optional
        Called with the engine before it runs, to replace functions of it.
    """

    protection: dict[str, Any] = field(default_factory=dict)
    """What a model file would say of the mechanism; or ``mechanism``, which need not be registered."""
    asks: list[int] = field(default_factory=list)
    """When each client asks first, in ns."""
    chunk_ns: int = S
    chunk_is_output: bool = False
    lengths: list[int] = field(default_factory=list)
    think_ns: int = 0
    service_ns: int = 0
    turns: int = 1
    faults: list[dict[str, Any]] = field(default_factory=list)
    until_ns: int = S
    part: Kind | None = None
    size_bytes: int = 200
    seed: int = 7
    engine_type: type[Engine] | None = None
    guest_runs: bool = True
    spoil: Callable[[Engine], None] | None = None
    mechanism: ProtectionSpec | None = None

    def __post_init__(self) -> None:
        mechanism_part = self.part if self.mechanism is None else self.mechanism.part
        kernel = linked() if mechanism_part is None else linked(mechanism_part)
        spec: Any = self.mechanism
        if spec is None:
            spec = spec_type(self.protection["kind"], self.part).model_validate(self.protection)
        engine_type = self.engine_type or (CompiledEngine if self.spoil is None else SimpyEngine)
        self.engine = engine = engine_type(kernel)
        self.host = build.add_host(engine, 1, scheduling())
        self.domain = build.add_domain(engine, self.host, DomainScheduling(), 1, None, 1 << 60)
        engine.add(io.flows, row=1, workload=engine.number(clients), port=1)
        program, _ = engine.add(io.applications, row=1, program=engine.number(server), domain=self.domain)
        port, _ = engine.add(io.ports, row=1, domain=self.domain, path=engine.number(wire), application=program)
        moderated.install(engine, port, moderated.GuestNicSpec(ring=65536, moderation=0), 0, 0)
        habit = engine.rows(habits)[1]
        habit.chunk_ns, habit.chunk_is_output, habit.size_bytes = self.chunk_ns, self.chunk_is_output, self.size_bytes
        habit.think_ns, habit.turns, habit.service_ns = self.think_ns, self.turns, self.service_ns
        habit.lengths = len(self.lengths)
        for chunk_ns in self.lengths:
            engine.add(chunk_lengths, number=chunk_ns)
        self.spec = spec
        feeder = Feeder(engine)
        engine.on_input = feeder.fill
        streams = Streams(self.seed, 0)
        self.guard = protect.add_guard(engine, spec, self.domain, [port], [program], feeder=feeder, streams=streams)
        self.audit = engine.rows(guards)[self.guard].audit
        # A mechanism that is spoilt on purpose runs on; what it breaks is counted.
        is_whole = (
            self.spoil is None and self.mechanism is None and (self.part is None or self.part.name.startswith(WATCHED))
        )
        self.audit.ends_run = self.audit.ends_run and is_whole
        build.start(engine, self.host, scheduling())
        faults = [TypeAdapter(FAULTS[f["kind"]]).validate_python(dict(f)) for f in self.faults]
        protect.start(engine, self.guard, spec, dict(enumerate(faults)), lambda instant: instant.offset_ns)
        if self.guest_runs:
            engine.call(start_computing)
        for number, at_ns in enumerate(self.asks):
            engine.at(at_ns, EventKind.DELIVERY, number, engine.number(on_ask), number)
        if self.spoil is not None:
            self.spoil(engine)

    def run(self) -> Plant:
        """Play it in this one pass."""
        self.engine.run(self.until_ns)
        protect.check_conservation(self.engine, self.guard)
        build.check_conservation(self.engine, self.host)
        return self

    def listed(self, table: Table[Any]) -> list[tuple[int, int]]:
        """Return what a table has noted, as (instant, number)."""
        rows: Any = self.engine.rows(table)[1 : self.engine.used(table) + 1]
        if isinstance(rows, np.ndarray):  # ten times as fast as row by row
            return list(zip(rows["time_ns"].tolist(), rows["number"].tolist(), strict=True))
        return [(row.time_ns, row.number) for row in rows]

    @property
    def entered(self) -> list[tuple[int, int]]:
        """Requests that the guest has taken, as (instant, number)."""
        return self.listed(entered)

    @property
    def issued(self) -> list[tuple[int, int]]:
        """Outputs of the guest's programs."""
        return self.listed(issued)

    @property
    def seen(self) -> list[tuple[int, int]]:
        """Outputs that the world has seen."""
        return self.listed(seen)

    @property
    def stops(self) -> list[tuple[int, int]]:
        """When a watched mechanism stopped the guest, and the bytes that it had sent by then."""
        return self.listed(stops)

    @property
    def run_ns(self) -> int:
        """CPU time of the guest."""
        return int(self.engine.rows(vcpus)[1].run_ns)

    @property
    def timeline(self) -> list[tuple[int, str]]:
        """What happened to the machine, as (instant, what)."""
        return account.timeline(self.engine, self.guard)

    @property
    def moments(self) -> dict[str, int]:
        """When each thing of the timeline happened last."""
        return {event: time_ns for time_ns, event in self.timeline}

    @property
    def summary(self) -> dict[str, int | float]:
        """What the mechanism did and cost, times in s and ms."""
        return in_seconds(self.spec.measured(self.engine, self.guard))

    def probe(self, times_ns: Iterable[int]) -> list[Any]:
        """Run, and return what crashes at these instants would find."""
        for time_ns in times_ns:
            self.engine.at(time_ns, EventKind.CONTROL, 9, self.engine.number(on_probe), self.guard)
        self.run()
        return [self.engine.rows(probes)[row] for row in range(1, self.engine.used(probes) + 1)]

    @property
    def lost_at_the_card(self) -> int:
        """Packets that the card of a guest without network did not take."""
        nic = self.engine.rows(moderated.guest_nics)[1]
        return int(self.engine.rows(io.drops)[int(nic.down)].count)

    def holds(self) -> list[int]:
        """How long each output seen was held."""
        when = {number: time_ns for time_ns, number in self.issued}
        return [time_ns - when[number] for time_ns, number in self.seen]

    def answer_times(self) -> list[int]:
        """How long each client waited for the last of its answers."""
        last = {number % ASKED_AGAIN: time_ns for time_ns, number in self.seen if number < OWN}
        return [time_ns - self.asks[number] for number, time_ns in last.items()]


def play(**fields: Any) -> passes.Played[Plant]:
    """Play a run in passes."""
    return passes.play(lambda: Plant(**fields), lambda plant: plant.engine, Plant.run)


ENGINES: tuple[type[Engine], ...] = (SimpyEngine, CompiledEngine)
