"""What protection makes a program's work cost: the answer to the slot ``set_overhead``, for programs without more.

Work that begins costs ``execution`` times its demand and ``output_ns`` for each packet that it sends.  Programs that
use this make no exits of their own (those of the I/O path are the path's), so a factor on exits has nothing to act on.
"""

from vftsim.kernel import Engine, Kind, Record, Sim, Table, part
from vftsim.platform.io.packet import Application, applications


class Burden(Record):
    """What a program's work costs at present, beside its own demand."""

    output_ns: int
    execution: float


burdens = Table("burdens", Burden, beside=applications)
TABLES = (burdens,)


@part
def apply_overhead(sim: Sim, program: Application, output_ns: int, execution: float) -> None:
    """Let work that begins from now on cost what protection makes it cost."""
    burdens(sim)[program.row].output_ns = output_ns
    burdens(sim)[program.row].execution = execution


@part
def bear_overhead(sim: Sim, program: Application, output_ns: int, execution: float, exits: float) -> None:
    """Do what the slot ``set_overhead`` asks; a program implements it by this."""
    apply_overhead(sim, program, output_ns, execution)


@part
def burdened_ns(sim: Sim, program: int, demand_ns: int, outputs: int) -> int:
    """Return what work of ``demand_ns`` that sends ``outputs`` packets costs now; demands below 10**15 ns are exact."""
    burden = burdens(sim)[program]
    return int(demand_ns * burden.execution) + outputs * burden.output_ns


def add_program(engine: Engine, kind: Kind, own: int, domain: int) -> int:
    """Make an application row for a program that bears nothing yet; return it."""
    row, program = engine.add(applications, program=engine.number(kind), own=own, domain=domain)
    program.row = row
    engine.rows(burdens)[row].execution = 1.0
    return row
