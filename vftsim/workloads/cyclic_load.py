"""CPU work that a domain does by itself: so much in every period.

Stands for machines that share the host without being modelled further (a management VM, the benchmark's
manager) and for the hypervisor's own work on storage and management traffic.
"""

from pydantic import Field, model_validator

from vftsim.kernel import Engine, EventKind, Record, Sim, Table, at, entry, event, part
from vftsim.platform.cpu.jobs import submit
from vftsim.platform.cpu.records import domains, work_done
from vftsim.spec.base import Spec
from vftsim.spec.units import DurationNs, PositiveDurationNs


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
    """The periodic work of a domain; what is not done in time is added to the next period's.

    ``number`` orders simultaneous periods of several.
    """

    domain: int
    number: int
    busy_ns: int
    period_ns: int
    done: int


cyclic_loads = Table("cyclic_loads", CyclicLoad, 4096)


@part
def begin_period(sim: Sim, row: int) -> None:
    """Submit a period's work and plan the next period."""
    own = cyclic_loads(sim)[row]
    if own.busy_ns > 0:
        submit(sim, domains(sim)[own.domain], own.busy_ns, on_period_done, row, 0)
    at(sim, sim.now_ns + own.period_ns, EventKind.TIMER, own.number, on_period, row)


@event
def on_period(sim: Sim, place: int, token: int) -> None:
    """A period begins."""
    begin_period(sim, place)


@work_done
def on_period_done(sim: Sim, place: int, argument: int) -> None:
    """Count the periods whose work has been done."""
    cyclic_loads(sim)[place].done += 1


@entry
def start_cyclic_load(sim: Sim, row: int, _: int) -> int:
    """The first period begins now."""
    begin_period(sim, row)
    return 0


ENTRIES = (start_cyclic_load,)
TABLES = (cyclic_loads,)


def add_cyclic_load(engine: Engine, domain: int, spec: CyclicLoadSpec, number: int) -> int:
    """Give a domain periodic work; return its row."""
    row, _ = engine.add(cyclic_loads, domain=domain, number=number, busy_ns=spec.busy, period_ns=spec.period)
    return row
