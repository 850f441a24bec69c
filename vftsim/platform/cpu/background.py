"""CPU work that a domain does by itself: so much in every period.

Stands for machines that share the host without being modelled further (a management VM, the benchmark's
manager) and for the hypervisor's work on storage and management traffic.
"""

from pydantic import Field, model_validator

from vftsim.kernel import Engine, EventKind, Record, Sim, Table, at, entry, event
from vftsim.platform.cpu.jobs import ensure_process, submit_from_outside
from vftsim.platform.cpu.records import domains, work_done
from vftsim.spec import DurationNs, PositiveDurationNs, Spec


class CyclicLoadSpec(Spec):
    """``busy`` CPU time at the start of every ``period``."""

    busy: DurationNs = Field(description="CPU time in each period.")
    period: PositiveDurationNs = Field(description="Length of a period.")

    @model_validator(mode="after")
    def _fits(self) -> "CyclicLoadSpec":
        if self.busy > self.period:
            raise ValueError("busy must not be longer than period")
        return self


class CyclicLoad(Record):
    """A domain's periodic work; a period's work that is not done in time is added to the next.

    The first period begins ``phase_ns`` after the load.  Work that begins costs ``execution`` times its demand.
    """

    domain: int
    process: int
    entity: int
    busy_ns: int
    period_ns: int
    phase_ns: int
    execution: float
    done: int


cyclic_loads = Table("cyclic_loads", CyclicLoad, 4096)


def add_load(engine: Engine, domain: int, spec: CyclicLoadSpec, entity: int) -> int:
    """Give a domain periodic work, ordered by ``entity`` among timers of one instant; return its row."""
    row, _ = engine.add(
        cyclic_loads, domain=domain, entity=entity, busy_ns=spec.busy, period_ns=spec.period, execution=1.0
    )
    return row


@entry
def begin_load(sim: Sim, row: int) -> None:
    """Let the first period begin, now or when its phase is over."""
    load = cyclic_loads(sim)[row]
    if load.phase_ns > 0:
        at(sim, sim.now_ns + load.phase_ns, EventKind.TIMER, load.entity, on_period, row)
    else:
        begin_period(sim, row)


def begin_period(sim: Sim, row: int) -> None:
    """Give the domain a period's work and plan the next."""
    load = cyclic_loads(sim)[row]
    if load.busy_ns > 0:
        domain = domains(sim)[load.domain]
        load.process = ensure_process(sim, domain, load.process, False)
        submit_from_outside(sim, domain, load.process, int(load.busy_ns * load.execution), on_done, row, 0)
    at(sim, sim.now_ns + load.period_ns, EventKind.TIMER, load.entity, on_period, row)


on_period = event(begin_period)


@work_done
def on_done(sim: Sim, cyclic_load_row: int) -> None:
    """Count a period's work that is done."""
    cyclic_loads(sim)[cyclic_load_row].done += 1
