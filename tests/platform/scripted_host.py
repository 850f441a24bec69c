"""A host with the scripted jobs of tests/golden/host_scripts.py, on the kernel; see there for the format."""

from typing import Any

from pydantic import TypeAdapter

from tests.golden.compact import digest
from tests.golden.host_scripts import Script
from vftsim.kernel import Engine, EventKind, Linked, Record, Sim, Table, event, link
from vftsim.platform.cpu import build, jobs, notes
from vftsim.platform.cpu.parameters import DomainScheduling, schedulers
from vftsim.platform.cpu.records import BUSY, domains, hosts, pcpus, vcpus, work_done
from vftsim.platform.cpu.scheduler import scheduler

JOB, BACKGROUND, INTERRUPT, NEXT = 0, 1, 2, 3
_KINDS = {"job": JOB, "background": BACKGROUND, "interrupt": INTERRUPT, "next": NEXT}
NOBODY = -1


class ScriptedJob(Record):
    domain: int
    kind: int
    vcpu: int
    demand_ns: int
    then: int


class Finished(Record):
    time_ns: int
    job: int


scripted_jobs = Table("scripted_jobs", ScriptedJob, 1 << 16)
finished = Table("finished", Finished, 1 << 18)


def start_job(sim: Sim, row: int) -> None:
    job = scripted_jobs(sim)[row]
    domain = domains(sim)[job.domain]
    if job.kind == INTERRUPT:
        jobs.raise_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu + job.vcpu], job.demand_ns, job_done, row, 0)
    elif job.kind == JOB:
        jobs.submit(sim, domain, job.demand_ns, job_done, row, 0)
    elif job.kind == BACKGROUND:
        jobs.submit_background(sim, domain, job.demand_ns, job_done, row, 0)
    else:
        jobs.submit_next(sim, domain, 0, job.demand_ns, job_done, row, 0)


@work_done
def job_done(sim: Sim, place: int) -> None:
    entry = finished(sim)[finished.new(sim)]
    entry.time_ns = sim.now_ns
    entry.job = place
    then = scripted_jobs(sim)[place].then
    if then != 0:
        start_job(sim, then)


@event
def on_job(sim: Sim, place: int) -> None:
    start_job(sim, place)


@event
def on_pause(sim: Sim, place: int) -> None:
    jobs.freeze(sim, domains(sim)[place])


@event
def on_resume(sim: Sim, place: int) -> None:
    jobs.thaw(sim, domains(sim)[place])


def linked(*kinds: str) -> Linked:
    """A kernel of scripted hosts with these schedulers."""
    return link(
        build.ENTRIES,
        {scheduler: [schedulers()[kind].part for kind in kinds]},
        [on_job, on_pause, on_resume],
        [*build.TABLES, scripted_jobs, finished],
    )


class ScriptedHost:
    """A host with the domains of a script, whose jobs it starts."""

    def __init__(self, engine: Engine, script: Script) -> None:
        self.engine = engine
        engine.on_input = self.keep_notes
        parameters = dict(script["scheduler"])
        self.spec = TypeAdapter(schedulers()[parameters["kind"]]).validate_python(parameters)
        self.script = script
        self.last: dict[tuple[int, int], int] = {}
        self.host = build.add_host(
            engine,
            script["pcpus"],
            self.spec,
            script["switch_cost_ns"],
            observed=True,
            cpu_speed=script.get("cpu_speed", 1.0),
        )
        self.domains = [
            build.add_domain(
                engine, self.host, DomainScheduling(**d["scheduling"]), d["vcpus"], d["affinity"], d["quantum_ns"]
            )
            for d in script["domains"]
        ]

    def keep_notes(self) -> None:
        count = self.engine.rows(notes.note_count)[1]
        rows = self.engine.rows(notes.notes)
        for number in range(1, int(count.written) + 1):
            note = rows[number]
            if note.event in (notes.DISPATCHED, notes.STOPPED):
                vcpu = int(note.vcpu) - 1 if note.event == notes.DISPATCHED else NOBODY
                self.last[int(note.time_ns), int(note.pcpu) - 1] = vcpu
        count.written = 0

    def run(self) -> None:
        engine, script = self.engine, self.script
        for at_ns, domain, kind, vcpu, demand_ns, then in script["jobs"]:
            row, _ = engine.add(
                scripted_jobs,
                domain=self.domains[domain],
                kind=_KINDS[kind],
                vcpu=vcpu,
                demand_ns=demand_ns,
                then=then + 1,
            )
            if at_ns >= 0:
                engine.at(at_ns, EventKind.ARRIVAL, row - 1, engine.number(on_job), row)
        for number, (from_ns, to_ns, domain) in enumerate(script["pauses"]):
            engine.at(from_ns, EventKind.CONTROL, 2 * number, engine.number(on_pause), self.domains[domain])
            engine.at(to_ns, EventKind.CONTROL, 2 * number + 1, engine.number(on_resume), self.domains[domain])
        build.start(engine, self.host, self.spec)
        engine.run(script["until_ns"])
        build.check_conservation(engine, self.host)
        self.keep_notes()

    def listed(self) -> list[list[int]]:
        before = [NOBODY] * self.script["pcpus"]
        switches = []
        for (now_ns, pcpu), vcpu in sorted(self.last.items()):
            if vcpu != before[pcpu]:
                before[pcpu] = vcpu
                switches.append([now_ns, pcpu, vcpu])
        return switches


def result(engine: Engine, script: Script) -> dict[str, Any]:
    """Run a script and return what came of it, in the form of tests/golden/host_scripts.py."""
    lab = ScriptedHost(engine, script)
    lab.run()
    ended = [engine.rows(finished)[n] for n in range(1, engine.used(finished) + 1)]
    done = sorted((int(e.time_ns), int(e.job) - 1) for e in ended)
    switches = lab.listed()
    fields = ("run_ns", "wait_ns", "wakeups", "context_switches", "migrations")
    host = engine.rows(hosts)[lab.host]
    counters = {name: n for name, n in lab.spec.counters(engine, lab.host).items() if n}
    return {
        "vcpus": [
            {name: int(getattr(engine.rows(vcpus)[row], name)) for name in fields}
            for row in range(1, engine.used(vcpus) + 1)
        ],
        "pcpus": [_pcpu(engine, row) for row in range(1, engine.used(pcpus) + 1)],
        "context_switches": int(host.context_switches),
        "counters": counters,
        "finished": {
            "count": len(done),
            "sum_ns": sum(time_ns for time_ns, _ in done),
            "sha256": digest(f"{time_ns} {number}" for time_ns, number in done),
        },
        "switches": {
            "count": len(switches),
            "sha256": digest(f"{time_ns} {pcpu} {vcpu}" for time_ns, pcpu, vcpu in switches),
            "first": switches[:50],
        },
    }


def _pcpu(engine: Engine, row: int) -> dict[str, int]:
    pcpu = engine.rows(pcpus)[row]
    now_ns = engine.now_ns
    ahead_ns = max(int(engine.rows(vcpus)[pcpu.running].dispatched_ns) - now_ns, 0) if pcpu.running else 0
    return {
        "busy_ns": int(pcpu.busy_ns),
        "switching_ns": int(pcpu.switching_ns) - ahead_ns,
        "idle_ns": int(pcpu.idle_ns) + (0 if pcpu.idle_since_ns == BUSY else now_ns - int(pcpu.idle_since_ns)),
    }
