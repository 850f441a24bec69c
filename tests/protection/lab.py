"""The same scripts played by the kernel; a path and a program as somebody outside the package would write them."""

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from vftsim.kernel import Engine, EventKind, Kind, Linked, Record, Sim, Table, entry, event, link
from vftsim.kernel.declare import Part
from vftsim.platform.cpu import build, jobs
from vftsim.platform.cpu.parameters import DomainScheduling, schedulers
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.io import link as io_link
from vftsim.platform.io import packet
from vftsim.platform.io.host_cards import cards, send_from_host
from vftsim.platform.io.packet import (
    Application,
    Flow,
    Port,
    application,
    applications,
    drops,
    flows,
    packets,
    path,
    ports,
    workload,
)
from vftsim.platform.io.paths import moderated
from vftsim.platform.protection import account, guard, mechanism
from vftsim.platform.protection import build as protect
from vftsim.platform.protection._lockstep_records import locksteps
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.commit import held
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import guards, protection, put_out
from vftsim.platform.protection.lockstep import state_name
from vftsim.platform.protection.mechanism import protections
from vftsim.platform.protection.pair import pairs
from vftsim.platform.protection.throttle import throttles
from vftsim.testing.plant import in_seconds

from .scripts import Script

QUANTUM_NS = 100_000_000


class Answer(Record):
    """What the program does for a packet: CPU work, then outputs of these sizes."""

    size_bytes: int
    demand_ns: int
    outputs: int
    first_bytes: int
    second_bytes: int
    third_bytes: int


class Moment(Record):
    time_ns: int
    number: int


class Answerer(Record):
    """The program's burden, as its guard sets it; a program begins with 0 and 1."""

    output_ns: int
    execution: float


answers = Table("answers", Answer, 1 << 16)
answerers = Table("answerers", Answerer, beside=applications)
taps = Table("taps", Moment, 1 << 18)
deliveries = Table("deliveries", Moment, 1 << 18)
lags = Table("lags", Moment, 1 << 16)
log_end = Table("log_end", Moment, 1 << 16)

answerer = application.kind("answerer")
visitors = workload.kind("visitors")
tapped = path.kind("tapped", base=moderated.moderated)


def tap(sim: Sim, number: int) -> None:
    row = taps.new(sim)
    taps(sim)[row].time_ns = sim.now_ns
    taps(sim)[row].number = number


def send_tapped(sim: Sim, port: Port, packet: int) -> bool:
    """As the path it is made of, and written down."""
    tap(sim, packets(sim)[packet].message)
    send_from_host(sim, port, packet)
    return True


tapped.implementations[packet.send.name] = Part(send_tapped)  # type: ignore[attr-defined]


@visitors.implements(packet.delivered)
def visitor_served(sim: Sim, flow: Flow, packet: int) -> None:
    packets.free(sim, packet)


@answerer.implements(packet.receive)
def serve(sim: Sim, program: Application, packet: int) -> None:
    number = packets(sim)[packet].message
    packets.free(sim, packet)
    row = deliveries.new(sim)
    deliveries(sim)[row].time_ns = sim.now_ns
    deliveries(sim)[row].number = number
    answer = answers(sim)[number]
    record = answerers(sim)[program.row]
    demand_ns = int(answer.demand_ns * record.execution) + answer.outputs * record.output_ns
    jobs.submit(sim, domains(sim)[program.domain], demand_ns, served, number, program.row)


@answerer.implements(packet.set_overhead)
def set_burden(sim: Sim, program: Application, output_ns: int, execution: float, exits: float) -> None:
    answerers(sim)[program.row].output_ns = output_ns
    answerers(sim)[program.row].execution = execution


@work_done
def served(sim: Sim, place: int, argument: int) -> None:
    answer = answers(sim)[place]
    if answer.outputs > 0:
        put(sim, argument, place * 10, answer.first_bytes)
    if answer.outputs > 1:
        put(sim, argument, place * 10 + 1, answer.second_bytes)
    if answer.outputs > 2:
        put(sim, argument, place * 10 + 2, answer.third_bytes)


@work_done
def on_end(sim: Sim, place: int) -> None:
    row = log_end.new(sim)
    log_end(sim)[row].time_ns = sim.now_ns
    log_end(sim)[row].number = place


def put(sim: Sim, port: int, number: int, size_bytes: int) -> None:
    row = packets.new(sim)
    made = packets(sim)[row]
    made.flow = 1
    made.message = number
    made.size_bytes = size_bytes
    put_out(sim, ports(sim)[port], row)


@event
def on_visit(sim: Sim, place: int) -> None:
    """A packet reaches the card; its number and the port's are in the answer's row."""
    row = packets.new(sim)
    made = packets(sim)[row]
    made.flow = 1
    made.port = 1
    made.message = place
    made.size_bytes = answers(sim)[place].size_bytes
    packet.arrive(sim, ports(sim)[1], row)


@event
def on_job(sim: Sim, place: int) -> None:
    jobs.submit(sim, domains(sim)[1], place, 0, 0, 0)


@event
def on_look(sim: Sim, place: int) -> None:
    row = lags.new(sim)
    lags(sim)[row].number = mechanism.lag(sim, guards(sim)[place])


@entry
def count_waiting(sim: Sim, pair: int) -> int:
    return held(sim, pairs(sim)[pair])


@cache
def linked(*others: Kind) -> Linked:
    """A kernel with every mechanism, or with others alone."""
    return link(
        [*build.ENTRIES, *protect.ENTRIES, count_waiting],
        {
            scheduler: [schedulers()["native"].part],
            protection: others or [spec.part for spec in protections().values()],
            fault: [spec.part for spec in FAULTS.values()],
            path: [tapped],
            application: [answerer],
            workload: [visitors],
        },
        [on_visit, on_job, on_look, on_end, *protect.ACTIONS],
        [*build.TABLES, *protect.TABLES, answers, taps, deliveries, lags, log_end],
    )


class Lab:
    """Host, guest with a program that answers packets, mechanism."""

    on_end = on_end

    def __init__(self, engine: Engine, script: Script, part: Kind | None = None) -> None:
        self.engine = engine
        self.script = script
        scheduling = TypeAdapter(schedulers()["native"]).validate_python({"kind": "native"})
        self.host = build.add_host(engine, 1, scheduling)
        self.domain = build.add_domain(engine, self.host, DomainScheduling(), 1, None, QUANTUM_NS)
        wire = script["link"]
        self.link = io_link.add_link(engine, wire["rate_bits_per_s"], wire["latency_ns"], wire["queue_bytes"])
        card, _ = engine.add(cards, from_host=self.link, to_host=self.link)
        engine.add(flows, row=1, workload=engine.number(visitors), port=1)
        self.program, _ = engine.add(applications, row=1, program=engine.number(answerer), domain=self.domain)
        engine.rows(answerers)[self.program].execution = 1.0
        self.port, _ = engine.add(
            ports, row=1, domain=self.domain, path=engine.number(tapped), card=card, application=self.program
        )
        nic = script["nic"]
        moderated.install(
            engine,
            self.port,
            moderated.GuestNicSpec(ring=nic["ring"], moderation=nic["moderation_ns"]),
            nic["interrupt_cost_ns"],
            nic["packet_cost_ns"],
        )
        parameters = dict(script["protection"])
        channel = dict(parameters.get("channel", {}))
        is_shared = bool(channel.pop("shared", False))
        if channel:
            parameters["channel"] = channel
        chosen: Any = protections()[parameters["kind"]]
        if part is not None:
            chosen = type("Other", (chosen,), {"__module__": __name__, "part": part})
        self.spec = chosen.model_validate(parameters)
        shared = self.link if is_shared else 0
        self.guard = protect.add_guard(engine, self.spec, self.domain, [self.port], [self.program], shared)
        build.start(engine, self.host, scheduling)
        faults = [TypeAdapter(FAULTS[f["kind"]]).validate_python(dict(f)) for f in script["faults"]]
        protect.start(engine, self.guard, self.spec, dict(enumerate(faults)), lambda instant: instant.offset_ns)

    def run(self) -> dict[str, Any]:
        engine, script = self.engine, self.script
        for number, (at_ns, size, demand_ns, outputs) in enumerate(script["packets"]):
            sizes = [*outputs, 0, 0, 0]
            row, _ = engine.add(
                answers,
                size_bytes=size,
                demand_ns=demand_ns,
                outputs=len(outputs),
                first_bytes=sizes[0],
                second_bytes=sizes[1],
                third_bytes=sizes[2],
            )
            engine.at(at_ns, EventKind.DELIVERY, number, engine.number(on_visit), row)
        for number, (at_ns, demand_ns) in enumerate(script["jobs"]):
            engine.at(at_ns, EventKind.TIMER, number, engine.number(on_job), demand_ns)
        for at_ns in script["looks"]:
            engine.at(at_ns, EventKind.ARRIVAL, 0, engine.number(on_look), self.guard)
        engine.run(script["until_ns"])
        engine.call(mechanism.bring_up_to_date, self.guard)
        protect.check_conservation(engine, self.guard)
        return {**self.machine_values(), **self.pair_values()}

    def listed(self, table: Table[Any], base: int) -> list[tuple[int, int]]:
        """Moments with the numbers that the object model's lab counts from 0."""
        rows = [self.engine.rows(table)[row] for row in range(1, self.engine.used(table) + 1)]
        return [(int(row.time_ns), int(row.number) - base) for row in rows]

    def machine_values(self) -> dict[str, Any]:
        engine = self.engine
        build.check_conservation(engine, self.host)
        record, wire = engine.rows(guards)[self.guard], engine.rows(io_link.links)[self.link]
        nic = engine.rows(moderated.guest_nics)[self.port]
        lost = [int(engine.rows(drops)[place].count) for place in (nic.ring_full, nic.down, wire.queue_full)]
        return {
            "seen": self.listed(taps, 10),
            "delivered": self.listed(deliveries, 1),
            "lags": [number for _, number in self.listed(lags, 0)],
            "timeline": account.timeline(engine, self.guard),
            "counters": account.counters(engine, self.guard),
            "summary": in_seconds(self.spec.measured(engine, self.guard)),
            "stopped_ns": int(record.stopped_ns),
            "stopped": bool(record.stopped),
            "dead": bool(record.dead),
            "run_ns": int(engine.rows(vcpus)[1].run_ns),
            "nic": (int(nic.received), lost[0], lost[1], int(nic.interrupts), int(nic.ring.length + nic.taken.length)),
            "link": (int(wire.sent), lost[2], int(wire.delivered), int(wire.sent_bytes)),
        }

    def pair_values(self) -> dict[str, Any]:
        if self.spec.kind != "lockstep":  # type: ignore[attr-defined]
            return {}
        engine = self.engine
        record, throttle = engine.rows(locksteps)[self.guard], engine.rows(throttles)[self.guard]
        pair = engine.rows(pairs)[record.pair]
        log, replay = pair.log, pair.secondary
        return {
            "state": state_name(engine, self.guard),
            "log": tuple(
                int(v)
                for v in (log.entries, log.train_entries, log.unsent_bytes, log.last_depart_ns, log.last_arrival_ns)
            ),
            "replay": tuple(int(v) for v in (record.replayed_ns + replay.need_ns, replay.end_ns, replay.lag_ns)),
            "commit": tuple(
                int(v)
                for v in (
                    pair.issued,
                    pair.released,
                    engine.call(count_waiting, record.pair),
                    pair.visible,
                    pair.wait_ns,
                )
            ),
            "throttle": (float(throttle.share), float(throttle.lowest_share)),
            "free_ns": int(engine.rows(channels)[self.guard].free_ns),
        }


__all__ = ["Lab", "guard", "linked"]
