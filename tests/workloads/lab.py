"""A host with one guest behind a gigabit link, for any program and workload; a mechanism that lets outputs go in beats.

The guest's way in and out is the moderated card, free of cost unless said otherwise.  The mechanism ``beat`` releases
what the guest has sent at every whole period, as checkpoints that cost nothing would.
"""

from functools import cache

from pydantic import TypeAdapter

from tests.installing import Installing
from vftsim.kernel import EventKind, Fifo, Record, Sim, Table, at, entry, event, link
from vftsim.kernel.choose import make_engine
from vftsim.kernel.inputs import Feeder, feeds
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.records import domains, vcpus
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native
from vftsim.platform.delays import bucket_ends
from vftsim.platform.io.host_cards import add_card, cards
from vftsim.platform.io.link import links
from vftsim.platform.io.packet import (
    application,
    applications,
    drops,
    flows,
    lose_state,
    packet_list,
    path,
    ports,
    set_overhead,
    workload,
)
from vftsim.platform.io.paths import moderated
from vftsim.platform.io.paths.moderated import GuestNicSpec, guest_nics
from vftsim.platform.protection import build as protect
from vftsim.platform.protection.faults import FAULTS, fault
from vftsim.platform.protection.guard import Guard, guard_port, guards, hold_output, protection, release
from vftsim.platform.protection.mechanism import protections
from vftsim.sampling import Streams

beat = protection.kind("beat")
FOREVER_QUANTUM_NS = 1 << 61


class Beat(Record):
    period_ns: int
    held: Fifo


beats = Table("beats", Beat, beside=guards)


@beat.implements(hold_output)
def hold(sim: Sim, guard: Guard, packet: int) -> None:
    packet_list.push(sim, beats(sim)[guard.row].held, packet)


@event
def on_beat(sim: Sim, place: int) -> None:
    beat = beats(sim)[place]
    count = beat.held.length
    for _ in range(count):
        release(sim, packet_list.pop(sim, beat.held))
    at(sim, sim.now_ns + beat.period_ns, EventKind.CONTROL, 0, on_beat, place)


@entry
def boot_program(sim: Sim, row: int) -> None:
    """As a hypervisor boots a machine: its CPU work is gone, then what its program had in memory."""
    domain = domains(sim)[applications(sim)[row].domain]
    jobs.freeze(sim, domain)
    jobs.forget(sim, domain)
    set_overhead(sim, applications(sim)[row], 0, 1.0, 1.0)
    lose_state(sim, applications(sim)[row])
    jobs.thaw(sim, domain)


@entry
def add_overhead(sim: Sim, row: int, output_ns: int) -> None:
    """Execution twice as long, and so much for each output."""
    set_overhead(sim, applications(sim)[row], output_ns, 2.0, 1.0)


def kinds_of(parts):
    """Return the kinds of specs' parts, applications and workloads."""
    kinds = [kind for spec in parts for kind in (spec.part, *getattr(spec, "kinds", ()))]
    return {sort: [kind for kind in kinds if kind.sort is sort] for sort in (application, workload)}


@cache
def linked(*parts, guarded=False):
    """Return a kernel of these specs' parts; ``guarded``: with every mechanism and fault too."""
    entries = [entry for spec in parts for entry in spec.entries]
    actions = [action for spec in parts for action in spec.actions]
    tables = [table for spec in parts for table in spec.tables]
    kinds = {
        scheduler: [native],
        path: [moderated.moderated],
        protection: [beat],
        **kinds_of(parts),
    }
    if guarded:
        entries += [each for each in protect.ENTRIES if each is not guard_port]
        actions += protect.ACTIONS
        tables += protect.TABLES
        kinds[protection] = [beat, *(spec.part for spec in protections().values())]
        kinds[fault] = [spec.part for spec in FAULTS.values()]
    return link(
        [*cpu.ENTRIES, guard_port, boot_program, add_overhead, *entries],
        kinds,
        [on_beat, *actions],
        [*cpu.TABLES, cards, drops, flows, beats, bucket_ends, feeds, guest_nics, links, *tables],
    )


class Lab:
    """One guest; ``kernel`` is what :func:`linked` returns for the specs that a test uses."""

    def __init__(
        self,
        kernel,
        engine="compiled",
        *,
        pcpus=1,
        latency_ns=50_000,
        rate=10**9,
        queue=256 * 1024,
        quantum_ns=FOREVER_QUANTUM_NS,
        packet_ns=0,
        interrupt_ns=0,
        seed=1,
        **nic,
    ):
        self.feeder = None
        self.engine = make_engine(kernel, engine, self.on_input)
        self.feeder = Feeder(self.engine)
        self.streams = Streams(seed, 0)
        self.site = Installing(self.engine, self.feeder, self.streams)
        self.rate = rate
        self.host = cpu.add_host(self.engine, pcpus, Native())
        self.domain = cpu.add_domain(self.engine, self.host, DomainScheduling(), pcpus, None, quantum_ns)
        self.card = add_card(self.engine, rate, latency_ns, queue)
        self.port, port = self.engine.add(
            ports, domain=self.domain, card=self.card, path=self.engine.number(moderated.moderated)
        )
        port.row = self.port
        moderated.install(self.engine, self.port, GuestNicSpec(**nic), interrupt_ns, packet_ns)

    def on_input(self):
        if self.feeder is not None:
            self.feeder.fill()

    def run_program(self, spec, warmup_ns=0):
        """Install an application behind the port."""
        self.installed = spec.install(self.site.context(self.domain, warmup_ns))
        self.program = self.engine.rows(ports)[self.port].application = self.installed.row
        return self.installed.record

    def add_clients(self, spec, number=0, warmup_ns=0):
        """Install a workload directed at the port."""
        return spec.install(self.site.target(self.port, number, warmup_ns, self.rate))

    def hold_in_beats(self, period_ns):
        no_room, _ = self.engine.add(drops)
        row, guard = self.engine.add(guards, mechanism=self.engine.number(beat), domain=self.domain, no_room=no_room)
        guard.row = row
        self.engine.call(guard_port, row, self.port)
        self.engine.rows(beats)[row].period_ns = period_ns
        self.engine.at(period_ns, EventKind.CONTROL, 0, self.engine.number(on_beat), row)

    def protect(self, parameters, *blows):
        """Put the guest under a mechanism, and let faults strike."""
        spec = TypeAdapter(protections()[parameters["kind"]]).validate_python(parameters)
        self.guard = protect.add_guard(self.engine, spec, self.domain, [self.port], [self.program])
        found = [TypeAdapter(FAULTS[blow["kind"]]).validate_python(blow) for blow in blows]
        protect.start(self.engine, self.guard, spec, dict(enumerate(found)), lambda instant: instant.offset_ns)

    def start(self):
        cpu.start(self.engine, self.host, Native())

    def run(self, until_ns):
        self.engine.run(until_ns)
        self.engine.check()
        return self

    def link(self, way):
        return self.engine.rows(links)[getattr(self.engine.rows(cards)[self.card], way)]

    def dropped(self):
        return sum(int(self.engine.rows(drops)[row].count) for row in range(1, self.engine.used(drops) + 1))

    def busy_ns(self):
        return int(sum(int(row.run_ns) for row in self.engine.rows(vcpus)[1 : self.engine.used(vcpus) + 1]))
