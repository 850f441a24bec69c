"""Recorded schedules of Xen's schedulers, and the same loads on the kernel.

``tests/data/xen_credit`` and ``tests/data/xen_credit2``: loads, each run under the unchanged scheduler of some Xen
releases by a virtual clock in integer nanoseconds; see the READMEs there.
"""

import gzip
import json
from pathlib import Path
from typing import Any

from vftsim.kernel import Engine, EventKind, Linked, Record, Sim, Table, at, event, link
from vftsim.platform.cpu import build, jobs, notes
from vftsim.platform.cpu.parameters import DomainScheduling, SchedulerSpec
from vftsim.platform.cpu.records import domains, hosts, vcpus, work_done
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers._credit_records import credit_vcpus
from vftsim.platform.cpu.schedulers.credit import Credit
from vftsim.platform.cpu.schedulers.credit2 import Credit2, credit2_vcpus

DATA = Path(__file__).parents[2] / "data"
HOMES: dict[type[SchedulerSpec], Table[Any]] = {Credit: credit_vcpus, Credit2: credit2_vcpus}
"""Where a scheduler keeps the pCPU that a vCPU starts from."""
VERSIONS = {
    "3.2.0-rc6": "3.2",
    "RELEASE-4.0.0": "4.0",
    "RELEASE-4.1.0": "4.1",
    "RELEASE-4.12.0": "4.9",
    "RELEASE-4.18.0": "4.18",
}
FOREVER_NS = 10**13
IDLE = -1


class TracedJob(Record):
    """A piece of work of one vCPU; ``then`` follows ``think_ns`` after its end."""

    vcpu: int
    demand_ns: int
    then: int
    think_ns: int


traced_jobs = Table("traced_jobs", TracedJob, 1 << 13)


@event
def on_job(sim: Sim, place: int) -> None:
    job = traced_jobs(sim)[place]
    vcpu = vcpus(sim)[job.vcpu]
    jobs.raise_interrupt(sim, domains(sim)[vcpu.domain], vcpu, job.demand_ns, job_done, place, 0)


@work_done
def job_done(sim: Sim, place: int) -> None:
    job = traced_jobs(sim)[place]
    if job.then != 0:
        at(sim, sim.now_ns + job.think_ns, EventKind.ARRIVAL, job.vcpu, on_job, job.then)


def traces_kernel(spec: type[SchedulerSpec]) -> Linked:
    return link(build.ENTRIES, {scheduler: [spec.part]}, [on_job], [*build.TABLES, traced_jobs])


def loads(name: str) -> list[dict[str, Any]]:
    with gzip.open(DATA / name, "rt", encoding="utf-8") as file:
        read: list[dict[str, Any]] = json.load(file)
    return read


class Replay:
    """One load under one scheduler."""

    def __init__(self, engine: Engine, load: dict[str, Any], spec: SchedulerSpec) -> None:
        self.engine = engine
        self.load = load
        engine.on_input = self._read_notes
        self._on: dict[tuple[int, int], int] = {}
        self.host = build.add_host(engine, load["pcpus"], spec, observed=True)
        self.rows = self._add_domains()
        build.start(engine, self.host, spec)
        for row, vcpu in zip(self.rows, load["vcpus"], strict=True):
            engine.rows(HOMES[type(spec)])[row].processor = engine.rows(hosts)[self.host].first_pcpu + vcpu["home"]
            self._add_jobs(row, vcpu)

    def _add_domains(self) -> list[int]:
        recorded_vcpus = self.load["vcpus"]
        for number, domain in enumerate(self.load["domains"]):
            mine = [vcpu for vcpu in recorded_vcpus if vcpu["domain"] == number]
            build.add_domain(self.engine, self.host, DomainScheduling(**domain), len(mine), mine[0]["affinity"])
        # The vCPUs of a domain stand together, in the order of the domains.
        order = sorted(range(len(recorded_vcpus)), key=lambda n: (recorded_vcpus[n]["domain"], n))
        rows = [0] * len(recorded_vcpus)
        for row, number in enumerate(order, 1):
            rows[number] = row
        return rows

    def _add_jobs(self, row: int, vcpu: dict[str, Any]) -> None:
        engine, before = self.engine, None
        for wait_ns, demand_ns in vcpu["jobs_ns"]:
            job, record = engine.add(
                traced_jobs, vcpu=row, demand_ns=FOREVER_NS if demand_ns is None else demand_ns, then=0, think_ns=0
            )
            if vcpu["arrivals"] == "open" or before is None:
                engine.at(wait_ns, EventKind.ARRIVAL, row, engine.number(on_job), job)
            else:
                before.then, before.think_ns = job, wait_ns
            before = record

    def _read_notes(self) -> None:
        count = self.engine.rows(notes.note_count)[1]
        for number in range(1, int(count.written) + 1):
            note = self.engine.rows(notes.notes)[number]
            if note.event in (notes.DISPATCHED, notes.STOPPED):
                on = self.rows.index(int(note.vcpu)) if note.event == notes.DISPATCHED else IDLE
                self._on[int(note.time_ns), int(note.pcpu) - 1] = on
        count.written = 0

    def run(self) -> "Replay":
        self.engine.run(self.load["until_ns"])
        self._read_notes()
        build.check_conservation(self.engine, self.host)
        return self

    def switches(self) -> list[list[int]]:
        """Who is on which pCPU from when, one entry a pCPU and instant, as recorded."""
        before = [IDLE] * self.load["pcpus"]
        found = []
        for (time_ns, pcpu), on in sorted(self._on.items()):
            if on != before[pcpu]:
                before[pcpu] = on
                found.append([time_ns, pcpu, on])
        return found

    def run_ns(self) -> list[int]:
        return [int(self.engine.rows(vcpus)[row].run_ns) for row in self.rows]


def merged(switches: list[list[int]]) -> list[list[int]]:
    """Recorded switches without entries that change nothing."""
    before: dict[int, int] = {}
    found = []
    for time_ns, pcpu, on in switches:
        if before.get(pcpu, IDLE) != on:
            before[pcpu] = on
            found.append([time_ns, pcpu, on])
    return found
