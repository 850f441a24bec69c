"""Scripted arrivals, rings and one stage that writes down what it takes, on a host of one pCPU."""

from itertools import groupby

import numpy as np

from vftsim.kernel import Record, Sim, Table, entry, link
from vftsim.kernel.choose import make_engine
from vftsim.platform.cpu import build as cpu
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.records import domains
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native, native
from vftsim.platform.io import build as io
from vftsim.platform.io.nic import NicSpec, new_packet, nics
from vftsim.platform.io.packet import (
    Application,
    Flow,
    application,
    applications,
    delivered,
    drops,
    flows,
    go_on,
    lost,
    packets,
    path,
    ports,
    workload,
)
from vftsim.platform.io.ring import rings, wait_for_slot
from vftsim.platform.io.stage import Stage, deliver, price, push, stages, take_in, task
from vftsim.platform.protection.guard import protection
from vftsim.workloads.arrivals import NicFeeder

TAKEN, LOST, WENT_ON = 1, 2, 3

noting = task.kind("noting test stage")
sink = workload.kind("test sink")
patient = application.kind("patient test program")


class Noted(Record):
    what: int
    time_ns: int
    stream: int
    sent_ns: int


notings = Table("notings", Noted, 1 << 18)


def write(sim: Sim, what: int, packet: int) -> None:
    row = notings(sim)[notings.new(sim)]
    row.what = what
    row.time_ns = sim.now_ns
    row.stream = packets(sim)[packet].stream
    row.sent_ns = packets(sim)[packet].sent_ns


@noting.implements(price)
def note_taken(sim: Sim, stage: Stage, packet: int) -> int:
    write(sim, TAKEN, packet)
    return 0


@noting.implements(deliver)
def end_packet(sim: Sim, stage: Stage, packet: int) -> None:
    packets.free(sim, packet)


@sink.implements(lost)
def note_lost(sim: Sim, flow: Flow, packet: int) -> None:
    write(sim, LOST, packet)


@sink.implements(delivered)
def end_delivered(sim: Sim, flow: Flow, packet: int) -> None:
    packets.free(sim, packet)


@patient.implements(go_on)
def note_and_push(sim: Sim, program: Application, packet: int) -> None:
    write(sim, WENT_ON, packet)
    push(sim, rings(sim)[ports(sim)[packets(sim)[packet].port].send_ring], packet)


@entry
def send_one(sim: Sim, ring: int, number: int) -> int:
    """Send a packet whose stream is the ring and whose time its number; return whether it had to wait."""
    packet = new_packet(sim, 1, ring, number)
    if push(sim, rings(sim)[ring], packet):
        return 0
    wait_for_slot(sim, ports(sim)[1], packet, 1)
    return 1


@entry
def deliver_one(sim: Sim, nic: int) -> None:
    """A network delivers a packet now."""
    take_in(sim, nics(sim)[nic], new_packet(sim, 1, 0, sim.now_ns))


LINKED = link(
    [*cpu.ENTRIES, *io.ENTRIES, send_one, deliver_one],
    {scheduler: [native], path: [], task: [noting], application: [patient], workload: [sink], protection: []},
    [],
    [*cpu.TABLES, *io.TABLES, notings],
)


class Listed:
    """A source of given arrivals, three or a hundredth of them at once."""

    flow = 1

    def __init__(self, times_ns):
        self._times_ns = list(times_ns)
        self._at_once = max(3, len(self._times_ns) // 100)

    def more(self):
        times_ns, self._times_ns = np.array(self._times_ns[: self._at_once], np.int64), self._times_ns[self._at_once :]
        return times_ns, np.arange(times_ns.size, dtype=np.int64)


class IoLab:
    """One stage that spends ``packet_ns`` on each packet."""

    def __init__(self, engine, packet_ns):
        self.engine = make_engine(LINKED, engine, self.on_input)
        self.host = cpu.add_host(self.engine, 1, Native())
        self.domain = cpu.add_domain(self.engine, self.host, DomainScheduling(), 1)
        self.packet_ns = packet_ns
        self.io = io.Io(self.engine)
        program, _ = self.engine.add(applications, program=self.engine.number(patient), domain=self.domain)
        port, _ = self.engine.add(ports, application=program, domain=self.domain)
        self.engine.add(flows, workload=self.engine.number(sink), port=port)
        self.feeders = []
        cpu.start(self.engine, self.host, Native())

    def on_input(self):
        for feeder in self.feeders:
            feeder.fill()

    def with_nic(self, *sources, **spec):
        self.nic = self.io.add_nic("eth0", NicSpec(**spec))
        if sources:
            self.feeders.append(NicFeeder(self.engine, self.nic, [Listed(times_ns) for times_ns in sources]))
        self.stage = self.add_stage(nic=self.nic)
        return self

    def with_rings(self, *capacities, budget=64):
        self.rings = [self.io.add_ring("", f"ring {n}", capacity) for n, capacity in enumerate(capacities)]
        self.stage = self.add_stage(budget=budget)
        for ring in self.rings:
            self.io.serve(self.stage, ring)
        self.engine.rows(ports)[1].send_ring = self.rings[0]
        return self

    def add_stage(self, **source):
        vcpu = int(self.engine.rows(domains)[self.domain].first_vcpu)
        return self.io.add_stage(
            "", "stage", noting, self.domain, vcpu=vcpu, event_ns=0, packet_ns=self.packet_ns, **source
        )

    def send(self, ring, number):
        """Return whether the packet found a slot at once."""
        return not self.engine.call(send_one, self.rings[ring], number)

    def run(self, until_ns):
        self.io.start()
        self.engine.run(until_ns)
        self.io.catch_up()
        return self

    def noted(self, what):
        rows = [self.engine.rows(notings)[n] for n in range(1, self.engine.used(notings) + 1)]
        return [(int(r.time_ns), int(r.stream), int(r.sent_ns)) for r in rows if r.what == what]

    def batches(self):
        """What was taken, by the time of taking: [(time, [sent, ...]), ...]."""
        return [(key, [t[2] for t in group]) for key, group in groupby(self.noted(TAKEN), key=lambda t: t[0])]

    def interrupts(self):
        return int(self.engine.rows(nics)[self.nic].interrupts)

    def stage_batches(self):
        return int(self.engine.rows(stages)[self.stage].batches)

    def occupied(self):
        return [int(self.engine.rows(rings)[ring].occupied) for ring in self.rings]

    def dropped(self):
        return {place: int(self.engine.rows(drops)[row].count) for place, row in self.io.drop_rows.items()}
