"""A process that computes and pauses: bursts of computation with idle times between them, drawn beforehand.

Protection makes a burst cost ``execution`` times as much; the process sends nothing and has no exits of its own.  One
that has lost its memory begins anew with a pause.  With ``by_clock`` a burst is a length of time: the process computes
until that is over, as far as it gets the CPU, and neither the machine's speed nor protection makes it longer.
Processes of ``cv`` 0 do not keep step: the first begins after a pause, each other one at a random instant of it.
"""

from typing import Literal

from pydantic import Field

from vftsim.kernel import BESIDE, EventKind, Sim, Table, at, entry, timer
from vftsim.platform.arithmetic import nearest
from vftsim.platform.cpu.jobs import continue_or_submit_for, ensure_process, submit_from_outside
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.packet import Application, application, lose_state
from vftsim.spec.units import Percent, PositiveDurationNs
from vftsim.workloads.common import ProgramRow, duration_ns, with_overhead_ns
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program

cpu_bound = application.kind("cpu_bound")

_LOOK_NS = 100_000
"""Time on a CPU between two looks at the clock, by so much at most a burst ``by_clock`` outlasts its end."""


class CpuBound(ProgramRow):
    """A process; ``serial`` orders simultaneous bursts of several, ``bursts`` and ``pauses`` are feeds.

    ``burst`` is the event planned for its next burst, ``begun`` and ``done`` count bursts.  ``until_ns`` is when the
    present one ends if they go ``by_clock``.  The first pause takes ``phase_ns``, if not 0.
    """

    process: int
    serial: int
    busy_ns: int
    bursts: int
    idle_ns: int
    pauses: int
    burst: int
    begun: int
    done: int
    by_clock: bool
    until_ns: int
    phase_ns: int


cpu_bounds = Table("cpu_bounds", CpuBound, 4096)


def pause(sim: Sim, cpu_bound: CpuBound, phase_ns: int) -> None:
    """Pause until the next burst; for ``phase_ns``, if not 0."""
    pause_ns = phase_ns if phase_ns > 0 else duration_ns(sim, cpu_bound.pauses, cpu_bound.idle_ns)
    due_ns = sim.now_ns + pause_ns
    cpu_bound.burst = at(sim, due_ns, EventKind.TIMER, cpu_bound.serial, on_burst, cpu_bound.row)


@timer(cpu_bounds, "burst")
def on_burst(sim: Sim, cpu_bound: CpuBound) -> None:
    """Begin to compute."""
    demand_ns = begin_burst(sim, cpu_bound)
    domain = domains(sim)[cpu_bound.domain]
    cpu_bound.process = ensure_process(sim, domain, cpu_bound.process, False)
    if cpu_bound.by_clock:
        submit_from_outside(sim, domain, cpu_bound.process, demand_ns, on_look, cpu_bound.row, 0)
    else:
        submit_from_outside(sim, domain, cpu_bound.process, demand_ns, on_burst_done, cpu_bound.row, 0)


def begin_burst(sim: Sim, cpu_bound: CpuBound) -> int:
    """Begin a burst; return how long it computes, or until it looks at the clock."""
    cpu_bound.begun += 1
    burst_ns = max(1, duration_ns(sim, cpu_bound.bursts, cpu_bound.busy_ns))
    if cpu_bound.by_clock:
        cpu_bound.until_ns = sim.now_ns + burst_ns
        return until_look_ns(sim, cpu_bound, burst_ns)
    return with_overhead_ns(sim, cpu_bound.program, burst_ns, 0)


def until_look_ns(sim: Sim, cpu_bound: CpuBound, left_ns: int) -> int:
    """Return the CPU work until the next look at the clock: what a pCPU does in that time, whatever its speed."""
    look_ns, cpu_speed = min(left_ns, _LOOK_NS), domains(sim)[cpu_bound.domain].cpu_speed
    # Up to the next ns: work that takes less would leave the clock where it is, and look at it for ever.
    return look_ns if cpu_speed == 1.0 else nearest(look_ns * cpu_speed + 0.5)


@work_done
def on_look(sim: Sim, cpu_bound: CpuBound) -> None:
    """Look at the clock: go on until the burst's time is over."""
    domain, process = domains(sim)[cpu_bound.domain], cpu_bound.process
    left_ns = cpu_bound.until_ns - sim.now_ns
    if left_ns > 0:
        demand_ns = until_look_ns(sim, cpu_bound, left_ns)
        continue_or_submit_for(sim, domain, process, True, demand_ns, on_look, cpu_bound.row, 0)
        return
    cpu_bound.done += 1
    if cpu_bound.idle_ns > 0:
        pause(sim, cpu_bound, 0)
    else:
        continue_or_submit_for(sim, domain, process, True, begin_burst(sim, cpu_bound), on_look, cpu_bound.row, 0)


@work_done
def on_burst_done(sim: Sim, cpu_bound: CpuBound) -> None:
    """Pause; without a pause keep the CPU."""
    cpu_bound.done += 1
    if cpu_bound.idle_ns > 0:
        pause(sim, cpu_bound, 0)
        return
    # Not by an event of this instant: before it comes the vCPU would have slept, and another be let in.
    domain, demand_ns = domains(sim)[cpu_bound.domain], begin_burst(sim, cpu_bound)
    continue_or_submit_for(sim, domain, cpu_bound.process, True, demand_ns, on_burst_done, cpu_bound.row, 0)


@cpu_bound.implements(lose_state)
def begin_anew(sim: Sim, program: Application, cpu_bound: CpuBound = BESIDE) -> None:
    """Forget the burst or the pause under way, and begin with a pause."""
    pause(sim, cpu_bound, cpu_bound.phase_ns)


@entry
def start_cpu_bound(sim: Sim, row: int) -> None:
    """Start with a pause."""
    pause(sim, cpu_bounds(sim)[row], cpu_bounds(sim)[row].phase_ns)


@APPLICATIONS.register
class CpuBoundSpec(ApplicationSpec):
    """A compute-bound process: bursts of computation with idle times between them."""

    entries = (start_cpu_bound,)

    kind: Literal["cpu_bound"] = "cpu_bound"
    duty: Percent = Field(
        90.0,
        gt=0.0,
        le=100.0,
        description="Computation in percent of a cycle, alone on a pCPU of speed 1. Assumption: 'small idle periods'.",
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

    by_clock: bool = Field(
        False,
        description="Whether bursts are lengths of time, not of CPU time: the process spins until a time has come, and "
        "gets less done where others have its CPU (it looks at the clock every 0.1 ms of CPU time). Assumption.",
    )

    @property
    def busy_percent(self) -> float:
        """Its duty."""
        return self.duty

    def events_per_s(self, vcpus: int) -> float:
        """Begin and end of a burst, and the switches for them; looks at the clock."""
        looks = 2e9 / _LOOK_NS * self.duty / 100.0 if self.by_clock else 0.0
        return 6e9 / self.cycle + looks

    def install(self, context: InstallContext) -> Program:
        """Add the process to a domain."""
        serial = context.serial(self)
        busy_ns = self.cycle * self.duty / 100.0
        idle_ns = self.cycle - busy_ns
        if not self.by_clock:
            busy_ns *= context.cpu_inflation
        # Burst n has draw n, and the first is number 1; the first pause is number 0.  Uniforms depend on that number
        # alone, not on duty and length: common random numbers.
        cpu_bound = context.add_program(
            cpu_bounds,
            self,
            serial=serial,
            busy_ns=round(busy_ns),
            bursts=context.gamma_feed("cpu_bound.busy", serial, busy_ns, self.cv, first=1),
            idle_ns=round(idle_ns),
            pauses=context.gamma_feed("cpu_bound.idle", serial, idle_ns, self.cv),
            phase_ns=context.phase_ns(self.kind, serial, idle_ns, self.cv),
        )
        return Program(context, cpu_bound, start_cpu_bound)
