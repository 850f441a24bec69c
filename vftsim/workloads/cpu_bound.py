"""A process that computes and pauses: bursts of computation with idle times between them, drawn beforehand.

Protection makes a burst cost ``execution`` times as much; the process sends nothing and has no exits of its own.  One
that has lost its memory begins anew with a pause.
"""

from functools import partial
from typing import Any, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import Engine, EventKind, Kind, Record, Sim, Table, at, entry, event, part
from vftsim.kernel.inputs import Feeder, draw, feeds
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.packet import Application, application, lose_state, set_overhead
from vftsim.sampling import Draws, Streams, gamma_ns
from vftsim.spec.units import Percent, PositiveDurationNs
from vftsim.workloads import burden
from vftsim.workloads.burden import add_program, apply_overhead, bear_overhead, burdened_ns
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program

cpu_bound = application.kind("cpu_bound")

_AT_ONCE = 256


class CpuBound(Record):
    """A process; ``number`` orders simultaneous bursts of several, ``busy`` and ``pause`` are feeds.

    ``program`` is its row as an application, ``burst`` the event planned for its next burst, ``done`` counts bursts
    that have been computed to their end.
    """

    program: int
    domain: int
    number: int
    bursts: int
    done: int
    busy: int
    pause: int
    burst: int


cpu_bounds = Table("cpu_bounds", CpuBound, 4096)


@part
def rest(sim: Sim, row: int) -> None:
    """Pause until the next burst."""
    cpu_bound = cpu_bounds(sim)[row]
    cpu_bound.burst = at(sim, sim.now_ns + draw(sim, cpu_bound.pause), EventKind.TIMER, cpu_bound.number, on_burst, row)


@event
def on_burst(sim: Sim, cpu_bound_row: int, token: int) -> None:
    """Begin to compute."""
    cpu_bound = cpu_bounds(sim)[cpu_bound_row]
    if token != cpu_bound.burst:
        return
    cpu_bound.bursts += 1
    burst_ns = burdened_ns(sim, cpu_bound.program, max(1, draw(sim, cpu_bound.busy)), 0)
    submit(sim, domains(sim)[cpu_bound.domain], burst_ns, on_burst_done, cpu_bound_row, 0)


@work_done
def on_burst_done(sim: Sim, cpu_bound_row: int, argument: int) -> None:
    """Pause."""
    cpu_bounds(sim)[cpu_bound_row].done += 1
    rest(sim, cpu_bound_row)


cpu_bound.implements(set_overhead)(bear_overhead)


@cpu_bound.implements(lose_state)
def begin_anew(sim: Sim, program: Application) -> None:
    """Forget the burst or the pause under way, and begin with a pause."""
    apply_overhead(sim, program, 0, 1.0)
    rest(sim, program.own)


@entry
def start_cpu_bound(sim: Sim, row: int, _: int) -> int:
    """Start with a pause."""
    rest(sim, row)
    return 0


ENTRIES = (start_cpu_bound,)
TABLES = (cpu_bounds, *burden.TABLES)


def add_cpu_bound(
    engine: Engine,
    feeder: Feeder,
    domain: int,
    spec: "CpuBoundSpec",
    streams: Streams,
    number: int,
    cpu_inflation: float = 1.0,
) -> int:
    """Add a process to a domain; ``number`` says whose draws are its own.  Returns its row."""
    busy_ns = spec.cycle * spec.duty / 100.0
    idle_ns = spec.cycle - busy_ns
    busy_ns *= cpu_inflation

    # Burst n has draw n, and the first is number 1; the first pause is number 0.  Uniforms depend on that number
    # alone, not on duty and length: common random numbers.
    busy = feeder.add(
        Draws(streams, "cpu_bound.busy", number, partial(gamma_ns, mean_ns=busy_ns, cv=spec.cv), first=1), _AT_ONCE
    )
    pause = feeder.add(
        Draws(streams, "cpu_bound.idle", number, partial(gamma_ns, mean_ns=idle_ns, cv=spec.cv)), _AT_ONCE
    )
    row, record = engine.add(cpu_bounds, domain=domain, number=number, busy=busy, pause=pause)
    record.program = add_program(engine, cpu_bound, row, domain)
    return row


@APPLICATIONS.register
class CpuBoundSpec(ApplicationSpec):
    """A compute-bound process: bursts of computation with idle times between them."""

    part: ClassVar[Kind] = cpu_bound
    entries: ClassVar[tuple[Any, ...]] = ENTRIES
    tables: ClassVar[tuple[Table[Any], ...]] = (*TABLES, feeds)

    kind: Literal["cpu_bound"] = "cpu_bound"
    duty: Percent = Field(
        90.0,
        gt=0.0,
        le=100.0,
        description="Computation in percent of a cycle, of its own CPU. Assumption: 'small idle periods'.",
    )
    cycle: PositiveDurationNs = Field(
        100_000_000, description="Mean length of a burst and the idle time after it. Assumption."
    )
    cv: float = Field(
        0.5,
        ge=0.0,
        le=2.0,
        description="Coefficient of variation of bursts and idle times (gamma). Assumption.",
    )

    @property
    def busy_percent(self) -> float:
        """Its duty."""
        return self.duty

    def events_per_s(self, vcpus: int) -> float:
        """Begin and end of a burst, and the switches for them."""
        return 6e9 / self.cycle

    def install(self, context: InstallContext) -> "CpuBoundProgram":
        """Add the process to a domain."""
        return CpuBoundProgram(self, context)


class CpuBoundProgram(Program):
    """A compute-bound process in a running model.

    Attributes
    ----------
    process : int
        Its row.
    """

    def __init__(self, spec: CpuBoundSpec, context: InstallContext) -> None:
        self.engine = context.engine
        number = context.others.get(spec.kind, 0)
        self.process = add_cpu_bound(
            context.engine, context.feeder, context.domain, spec, context.streams, number, context.cpu_inflation
        )
        self.row = int(context.engine.rows(cpu_bounds)[self.process].program)

    def start(self) -> None:
        """Start with a pause."""
        self.engine.call(start_cpu_bound, self.process)
