"""A domain on CPUs of its own whose processes do scripted jobs, in either engine."""

from collections import defaultdict
from functools import cache
from typing import Any

from vftsim.kernel import Engine, EventKind, Linked, Record, Sim, Table, event, link
from vftsim.kernel.choose import make_engine
from vftsim.platform.cpu import build, jobs
from vftsim.platform.cpu.guest_parameters import GuestSchedulerSpec
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.parameters import DomainScheduling
from vftsim.platform.cpu.processes import add_process, processes
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.cpu.scheduler import scheduler
from vftsim.platform.cpu.schedulers.native import Native

MS = 1_000_000


class GuestJob(Record):
    """A job of a process (0: of none), and the one that it begins at its end."""

    domain: int
    process: int
    demand_ns: int
    then: int
    is_interrupt: bool


class GuestEnd(Record):
    time_ns: int
    job: int


guest_jobs = Table("guest_jobs", GuestJob, 1 << 14)
guest_ends = Table("guest_ends", GuestEnd, 1 << 16)


def begin(sim: Sim, row: int) -> None:
    job = guest_jobs(sim)[row]
    domain = domains(sim)[job.domain]
    if job.is_interrupt:
        jobs.raise_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu], job.demand_ns, job_done, row, 0)
    else:
        jobs.submit_for(sim, domain, job.process, job.demand_ns, job_done, row, 0)


@work_done
def job_done(sim: Sim, place: int) -> None:
    ended = guest_ends(sim)[guest_ends.new(sim)]
    ended.time_ns = sim.now_ns
    ended.job = place
    if guest_jobs(sim)[place].then != 0:
        begin(sim, guest_jobs(sim)[place].then)


@event
def on_begin(sim: Sim, place: int) -> None:
    begin(sim, place)


@event
def on_forget(sim: Sim, place: int) -> None:
    jobs.forget(sim, domains(sim)[place])


@event
def on_freeze(sim: Sim, place: int) -> None:
    jobs.freeze(sim, domains(sim)[place])


@event
def on_thaw(sim: Sim, place: int) -> None:
    jobs.thaw(sim, domains(sim)[place])


@cache
def kernel(kind: type[GuestSchedulerSpec]) -> Linked:
    guests = build.guest_kinds([kind()])
    return link(
        build.ENTRIES,
        {scheduler: [Native.part]} | ({guest_scheduler: guests} if guests else {}),
        [on_begin, on_forget, on_freeze, on_thaw],
        [*build.TABLES, guest_jobs, guest_ends],
    )


class GuestLab:
    """``process`` adds processes, ``job`` what they do; times in ms."""

    def __init__(self, spec: GuestSchedulerSpec, vcpu_count: int = 1, engine: str = "simpy") -> None:
        self.spec = spec
        self.engine: Engine = make_engine(kernel(type(spec)), engine)
        self.host = build.add_host(self.engine, vcpu_count, Native())
        self.domain = build.add_domain(
            self.engine, self.host, DomainScheduling(), vcpu_count, quantum_ns=100 * MS, guest_scheduler=spec
        )
        self.processes: dict[str, int] = {}
        self._names: dict[int, str] = {}
        self._serial = 0

    def process(self, name: str, nice: int = 0, table: Any = processes, **values: int) -> int:
        """Add a process; ``values`` are what it has in ``table``."""
        row = self.processes[name] = add_process(self.engine, self.domain, self.spec, nice)
        for field, value in values.items():
            setattr(self.engine.rows(table)[row], field, value)
        return row

    def job(self, name: str, demand_ms: float, at_ms: float | None = None, then: int = 0) -> int:
        """A job of a process, ``irq`` for interrupt work, any other name for a job of no process; return its row."""
        row, _ = self.engine.add(
            guest_jobs,
            domain=self.domain,
            process=self.processes.get(name, 0),
            demand_ns=round(demand_ms * MS),
            then=then,
            is_interrupt=name == "irq",
        )
        self._names[row] = name
        if at_ms is not None:
            self.at(at_ms, on_begin, row)
        return row

    def at(self, at_ms: float, action: Any, place: int) -> None:
        self._serial += 1
        self.engine.at(round(at_ms * MS), EventKind.TIMER, self._serial, self.engine.number(action), place)

    def run(self, until_ms: float) -> list[tuple[float, str]]:
        """Return when whose job ended."""
        build.start(self.engine, self.host, Native())
        self.engine.run(round(until_ms * MS))
        build.check_conservation(self.engine, self.host)
        rows = [self.engine.rows(guest_ends)[row] for row in range(1, self.engine.used(guest_ends) + 1)]
        return [(int(row.time_ns) / MS, self._names[int(row.job)]) for row in rows]

    def ends(self, until_ms: float) -> dict[str, list[float]]:
        """Return the ends of jobs by process."""
        found: dict[str, list[float]] = defaultdict(list)
        for time_ms, name in self.run(until_ms):
            found[name].append(time_ms)
        return dict(found)
