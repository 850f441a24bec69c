"""A host on the kernel with named domains whose every scheduling decision is written down."""

from dataclasses import dataclass, field
from functools import cache
from typing import Any

from tests.platform.scripted_host import (
    BACKGROUND,
    INTERRUPT,
    JOB,
    finished,
    on_job,
    on_pause,
    on_resume,
    scripted_jobs,
    start_job,
)
from vftsim.errors import UsageError
from vftsim.kernel import EventKind, Linked, Sim, entry, link
from vftsim.kernel.declare import Action
from vftsim.kernel.simpy_engine import SimpyEngine
from vftsim.platform.cpu import build, host, jobs, notes
from vftsim.platform.cpu.parameters import DomainScheduling, PlacedDomain, SchedulerSpec
from vftsim.platform.cpu.records import BUSY, domains, hosts, pcpus, vcpus
from vftsim.platform.cpu.scheduler import scheduler

MS = 1_000_000
HOG_NS = 10**15
IDLE = "-"
KINDS = {"job": JOB, "background": BACKGROUND, "interrupt": INTERRUPT}


@entry
def reschedule(sim: Sim, pcpu: int) -> None:
    host.reschedule(sim, pcpus(sim)[pcpu])


@entry
def wake_again(sim: Sim, vcpu: int) -> None:
    host.wake(sim, vcpus(sim)[vcpu])


@entry
def freeze(sim: Sim, domain: int) -> None:
    jobs.freeze(sim, domains(sim)[domain])


@entry
def thaw(sim: Sim, domain: int) -> None:
    jobs.thaw(sim, domains(sim)[domain])


@entry
def start_now(sim: Sim, job: int) -> None:
    start_job(sim, job)


_ENTRIES = (*build.ENTRIES, reschedule, wake_again, freeze, thaw, start_now)


@cache
def lab_kernel(spec: type[SchedulerSpec], *actions: Any) -> Linked:
    return link(
        _ENTRIES,
        {scheduler: [spec.part]},
        [on_job, on_pause, on_resume, *actions],
        [*build.TABLES, scripted_jobs, finished],
    )


@dataclass
class Recorder:
    """Keeps (time, pCPU, who), one entry a change; two at an instant are one; and in which class who was dispatched."""

    names: dict[int, str] = field(default_factory=dict)
    affinity: dict[int, frozenset[int]] = field(default_factory=dict)
    decisions: list[tuple[float, int, str]] = field(default_factory=list)
    priorities: list[tuple[float, str, str]] = field(default_factory=list)
    classes: list[tuple[float, str, str]] = field(default_factory=list)
    on: dict[int, int] = field(default_factory=dict)

    def dispatched(self, time_ns: int, pcpu: int, vcpu: int) -> None:
        assert pcpu in self.affinity[vcpu]
        assert pcpu not in self.on
        assert vcpu not in self.on.values()
        self.on[pcpu] = vcpu
        self._note(time_ns, pcpu, self.names[vcpu])

    def stopped(self, time_ns: int, pcpu: int, vcpu: int) -> None:
        assert self.on.pop(pcpu) == vcpu
        self._note(time_ns, pcpu, IDLE)

    def _note(self, time_ns: int, pcpu: int, name: str) -> None:
        if self.decisions and self.decisions[-1] == (time_ns / MS, pcpu, IDLE):
            self.decisions.pop()
        self.decisions.append((time_ns / MS, pcpu, name))


class Lab:
    """One host; domains are added, then ``run`` starts it."""

    def __init__(
        self, spec: SchedulerSpec, pcpus: int = 1, switch_cost_ns: int = 0, actions: tuple[Any, ...] = ()
    ) -> None:
        self.spec = spec
        self.pcpu_count = pcpus
        self.engine: SimpyEngine = SimpyEngine(lab_kernel(type(spec), *actions), self._read_notes)
        self.recorder = Recorder()
        self.host = build.add_host(self.engine, pcpus, spec, switch_cost_ns, observed=True)
        self.domains: dict[str, int] = {}
        self._placed: list[PlacedDomain] = []
        self._started = False
        self._serial = 0

    def domain(
        self, name: str, vcpus: int = 1, affinity: Any = None, quantum_ns: int = 100 * MS, **parameters: Any
    ) -> int:
        scheduling = DomainScheduling(**parameters)
        row = build.add_domain(self.engine, self.host, scheduling, vcpus, affinity, quantum_ns)
        self._placed.append(PlacedDomain(scheduling, vcpus, affinity))
        self.domains[name] = row
        for number, vcpu in enumerate(self.vcpu_rows(name)):
            self.recorder.names[vcpu] = name if vcpus == 1 else f"{name}{number}"
            self.recorder.affinity[vcpu] = frozenset(range(self.pcpu_count) if affinity is None else affinity)
        return row

    def vcpu_rows(self, name: str) -> range:
        domain = self.engine.rows(domains)[self.domains[name]]
        return range(domain.first_vcpu, domain.first_vcpu + domain.vcpus)

    def vcpus(self, name: str) -> list[Any]:
        return [self.engine.rows(vcpus)[row] for row in self.vcpu_rows(name)]

    def pcpu(self, number: int) -> Any:
        return self.engine.rows(pcpus)[self.engine.rows(hosts)[self.host].first_pcpu + number]

    def hog(self, *names: str, at_ms: float = 0) -> None:
        """Give every vCPU of the domains work without end."""
        for name in names:
            for _ in self.vcpu_rows(name):
                self.work(name, at_ms, HOG_NS)

    def burst(self, name: str, *at_ms: float, demand_ms: float) -> None:
        """A job of ``demand_ms`` at each of the times."""
        for time_ms in at_ms:
            self.work(name, time_ms, round(demand_ms * MS))

    def job(self, name: str, demand_ns: int, kind: str = "job", vcpu: int = 0) -> int:
        """A piece of work that something starts by its row."""
        row, _ = self.engine.add(
            scripted_jobs, domain=self.domains[name], kind=KINDS[kind], vcpu=vcpu, demand_ns=demand_ns, then=0
        )
        return row

    def work(self, name: str, at_ms: float, demand_ns: int, kind: str = "job", vcpu: int = 0) -> None:
        self._serial += 1
        row = self.job(name, demand_ns, kind, vcpu)
        event = EventKind.DEVICE if kind == "interrupt" else EventKind.ARRIVAL
        self.at(at_ms, event, on_job, row, self._serial)

    def pause(self, name: str, from_ms: float, to_ms: float) -> None:
        self.at(from_ms, EventKind.CONTROL, on_pause, self.domains[name])
        self.at(to_ms, EventKind.CONTROL, on_resume, self.domains[name])

    def at(self, at_ms: float, kind: EventKind, action: Action | int, place: int, entity: int = 0) -> None:
        self.engine.at(round(at_ms * MS), kind, entity, self.engine.number(action), place)

    def start(self) -> None:
        self._started = True
        if why := self.spec.refusal(self.pcpu_count, self._placed):
            raise UsageError(why)
        build.start(self.engine, self.host, self.spec)

    def run(self, until_ms: float) -> "Lab":
        if not self._started:
            self.start()
        self.engine.run(round(until_ms * MS))
        self._read_notes()
        build.check_conservation(self.engine, self.host)
        return self

    def _read_notes(self) -> None:
        count = self.engine.rows(notes.note_count)[1]
        first_pcpu = self.engine.rows(hosts)[self.host].first_pcpu
        for row in range(1, count.written + 1):
            note = self.engine.rows(notes.notes)[row]
            if note.event == notes.DISPATCHED:
                self.recorder.dispatched(note.time_ns, note.pcpu - first_pcpu, note.vcpu)
                entry = (note.time_ns / MS, self.recorder.names[note.vcpu], self.spec.priority_name(note.value))
                self.recorder.classes.append(entry)
            elif note.event == notes.STOPPED:
                self.recorder.stopped(note.time_ns, note.pcpu - first_pcpu, note.vcpu)
            elif note.event == notes.PRIORITY:
                entry = (note.time_ns / MS, self.recorder.names[note.vcpu], self.spec.priority_name(note.value))
                self.recorder.priorities.append(entry)
        count.written = 0

    @property
    def finished(self) -> list[tuple[float, str]]:
        """When which domain's work ended, in order; interrupt work is ``irq``."""
        ended = [self.engine.rows(finished)[row] for row in range(1, self.engine.used(finished) + 1)]
        return [(one.time_ns / MS, self._name_of(self.engine.rows(scripted_jobs)[one.job])) for one in ended]

    def _name_of(self, job: Any) -> str:
        return "irq" if job.kind == INTERRUPT else next(n for n, row in self.domains.items() if row == job.domain)

    def decisions(self, pcpu: int = 0) -> list[tuple[float, str]]:
        return [(time_ms, name) for time_ms, p, name in self.recorder.decisions if p == pcpu]

    def running(self) -> list[str]:
        """Who is on each pCPU now."""
        rows = [self.pcpu(number).running for number in range(self.pcpu_count)]
        return [self.recorder.names[row] if row else IDLE for row in rows]

    def idle_ns(self, pcpu: int) -> int:
        pcpu_record = self.pcpu(pcpu)
        return int(pcpu_record.idle_ns) + (
            0 if pcpu_record.idle_since_ns == BUSY else self.engine.now_ns - pcpu_record.idle_since_ns
        )

    @property
    def switching_ns(self) -> int:
        return sum(self.pcpu(number).switching_ns for number in range(self.pcpu_count))

    @property
    def counters(self) -> dict[str, int]:
        return self.spec.counters(self.engine, self.host)

    def run_ns(self, name: str) -> int:
        self.engine.call(build.bring_up_to_date, self.host)
        return sum(vcpu.run_ns for vcpu in self.vcpus(name))

    def percent(self, name: str) -> float:
        """CPU time so far in percent of one pCPU."""
        return 100 * self.run_ns(name) / self.engine.now_ns
