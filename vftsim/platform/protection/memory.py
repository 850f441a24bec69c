"""Dirty pages: how much of a guest's memory has changed since its state was last taken.

Rule: a guest writes to a working set of W pages, first touching r of them a second of its own CPU time while few are
dirty; with every page as likely as any other the number of dirty pages after E of CPU time is

    D(E) = W (1 - exp(-r E / W))

which is r E for short and W for long stretches. Each request adds pages of its own, which no other request touches
(connection state, buffers), counted once: as many as its application says (``pages_per_request``) for each
packet that enters, or one number for all; transactions without packets add the pages that they write.  What a program
reads from a disk is written to memory too (Xen marks a page that was mapped to be written when it is unmapped,
``common/grant_table.c``).  D is the mean of that model, not a whole number.

Guest time is CPU time: a guest that waits for the network writes nothing.  What writes is work: r is stated for bare
metal of speed 1, a pCPU of twice the speed writes in half the CPU time, and a guest whose work a hypervisor stretches
(``cpu_inflation``) writes no more for that.  Assumption: it stretches all of the guest's CPU time.

Left out: pages that one epoch dirties and no later one does (a growing heap); a working set that wanders.  Assumption:
the default values, which are those of a small server, can be replaced by counts of a real guest's dirty bitmap.
"""

from typing import Annotated

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table
from vftsim.platform.arithmetic import exp_minus
from vftsim.platform.io.packet import applications
from vftsim.platform.protection.guard import Guard, guards, program_list
from vftsim.platform.protection.machine import run_ns, work_speed
from vftsim.platform.protection.prices import assumed
from vftsim.spec.base import Spec
from vftsim.spec.units import RatePerSecond

_S = 1e9


class MemorySpec(Spec):
    """The memory that a guest writes to."""

    working_set: Annotated[int, assumed(500, 20_000)] = Field(
        2000, ge=0, le=1 << 40, description="Pages that are written to again and again. Assumption."
    )
    touch_rate: Annotated[RatePerSecond, assumed(2_000, 50_000)] = Field(
        10_000.0,
        le=1e12,
        description="Pages of the working set first touched, a second of guest CPU time at speed 1 and without "
        "`cpu_inflation`, while few are dirty. Assumption.",
    )
    per_request: float | None = Field(
        None,
        ge=0.0,
        le=1e9,
        description="Further pages that each packet received dirties, whatever takes it; as the applications say "
        "(`pages_per_request`) if not given.",
    )


class Memory(Record):
    """The memory of one guarded guest.

    Its state was last taken when it had used ``run_ns`` of CPU time, its packets had dirtied ``request_pages`` and its
    programs ``program_pages`` beside them; ``requests`` packets have entered since.  ``per_request`` is below 0 where
    applications say what a packet dirties.
    """

    working_set: float
    touched_per_ns: float
    per_request: float
    run_ns: int
    request_pages: float
    program_pages: float
    requests: int


memories = Table("memories", Memory, beside=guards)


def install(engine: Engine, guard: int, spec: MemorySpec) -> None:
    """Write the parameters into the record of a guard."""
    memory = engine.rows(memories)[guard]
    memory.working_set = float(spec.working_set)
    memory.touched_per_ns = float(spec.touch_rate) * work_speed(engine, guard) / _S
    memory.per_request = -1.0 if spec.per_request is None else float(spec.per_request)


def run_since_ns(sim: Sim, guard: Guard) -> int:
    """Return the CPU time that the guest has used since its state was last taken."""
    return run_ns(sim, guard) - memories(sim)[guard.row].run_ns


def program_pages(sim: Sim, guard: Guard) -> float:
    """Return the pages that transactions, and reads of disks, have dirtied by now."""
    pages = 0.0
    for application in applications.listed(sim, program_list, guard.programs):
        pages += application.pages_dirtied
    return pages


def dirty_pages(sim: Sim, guard: Guard, memory: Memory = BESIDE) -> float:
    """Return how many pages have changed since the state was last taken."""
    # The model's number of pages a packet; below 0 it gives none, and the applications say.
    requested = memory.per_request * memory.requests
    if memory.per_request < 0.0:
        requested = guard.request_pages - memory.request_pages
    requested += program_pages(sim, guard) - memory.program_pages
    # Only what requests dirty, and no division by 0 below.
    if memory.working_set <= 0.0:
        return requested
    touched = memory.touched_per_ns * run_since_ns(sim, guard)
    return memory.working_set * (1.0 - exp_minus(touched / memory.working_set)) + requested


def clean(sim: Sim, guard: Guard, memory: Memory = BESIDE) -> None:
    """Take every page as clean from now on."""
    # All marks at one instant: what is written from now on belongs to the next state.
    memory.run_ns = run_ns(sim, guard)
    memory.request_pages = guard.request_pages
    memory.program_pages = program_pages(sim, guard)
    memory.requests = 0
