"""Earliest eligible virtual deadline first, as Linux runs processes since 6.6 (``kernel/sched/fair.c``).

Rules (Stoica and Abdel-Wahab 1995, in the form of Linux 6.6), for ordinary processes on one CPU:

* Virtual run time advances by CPU time x 1024 / weight.  The average of all runnable processes by weight is V;
  the **lag** of a process is V less its own.  One with lag of 0 or more is eligible.
* Each has a **deadline**: the virtual run time at which its ``slice`` began, and slice x 1024 / weight.  At the
  deadline it gets another slice and is weighed against the others.  Of the eligible the earliest deadline runs.
* Sleep keeps the lag, at most two slices either way.  A process that wakes is placed so that its lag is the
  same after it has joined, with a new deadline.
* A process that has been chosen is not pre-empted before the end of its slice while it is eligible
  (``RUN_TO_PARITY``); else a newcomer pre-empts if it would be chosen.

As modelled: slices end exactly where the kernel looks at ticks; several vCPUs share one queue.  Left out:
groups, the half slice of a new process, delayed dequeue (6.12).  Weights up to 88761 and differences of virtual
time up to some 10^13 ns stay within 64 bits.
"""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Chain, Engine, Fifo, Record, Sim, Table
from vftsim.platform.cpu import processes as shared
from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS, GuestSchedulerSpec
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.platform.cpu.processes import NICE_0, NO_LIMIT_NS, ON_CPU, Process, process_domains, processes
from vftsim.platform.cpu.records import Domain, domains
from vftsim.platform.rows import fill_row
from vftsim.spec.units import US, PeriodNs

eevdf = shared.share_processes(guest_scheduler.kind("eevdf"))


class EevdfDomain(Record):
    """A domain's constants and runnable processes; ``base_ns`` is what differences of virtual time are taken to."""

    runnable: Fifo
    weight: int
    base_ns: int
    slice_ns: int
    runs_to_parity: bool


class EevdfProcess(Record):
    """A process: virtual run time with residue, deadline, lag kept in sleep, and the deadline it was chosen with."""

    link: int
    virtual_ns: int
    residue: int
    deadline_ns: int
    lag_ns: int
    chosen_with_ns: int


eevdf_domains = Table("eevdf_domains", EevdfDomain, beside=domains)
eevdf_processes = Table("eevdf_processes", EevdfProcess, beside=processes)
eevdf_list = Chain(eevdf_processes, "link")


@GUEST_SCHEDULERS.register
class EevdfGuest(GuestSchedulerSpec):
    """Linux since 6.6, one CPU."""

    kind: Literal["eevdf"] = "eevdf"
    has_slices: ClassVar[bool] = True
    slice: PeriodNs = Field(
        750 * US, description="Slice. Default 0.75 ms: sched_base_slice of one CPU (3 ms from eight CPUs on)."
    )
    run_to_parity: bool = Field(
        True, description="Whether a slice once begun is run to its end while eligible. Default on: features.h of 6.6."
    )

    def install(self, engine: Engine, domain: int) -> None:
        fill_row(engine, eevdf_domains, domain, self, runs_to_parity=self.run_to_parity)


@eevdf.implements(shared.begin_process)
def begin_process(sim: Sim, domain: Domain, process: Process, eevdf_process: EevdfProcess = BESIDE) -> None:
    """Begin without lag."""
    eevdf_process.lag_ns = 0
    eevdf_process.residue = 0


def lead(sim: Sim, queue: EevdfDomain) -> int:
    """Return the sum of weight x (virtual run time - base) of all runnable processes."""
    total = 0
    for row in eevdf_list.rows(sim, queue.runnable):
        eevdf_process = eevdf_processes(sim)[row]
        total += processes(sim)[row].weight * (eevdf_process.virtual_ns - queue.base_ns)
    return total


def average_ns(sim: Sim, queue: EevdfDomain) -> int:
    """Return V; the base if nothing is runnable."""
    if queue.weight == 0:
        return queue.base_ns
    return queue.base_ns + lead(sim, queue) // queue.weight


def is_eligible(sim: Sim, queue: EevdfDomain, eevdf_process: EevdfProcess) -> bool:
    """Tell whether a process is not ahead of V, without the rounding of V."""
    return lead(sim, queue) >= (eevdf_process.virtual_ns - queue.base_ns) * queue.weight


def virtual_slice_ns(queue: EevdfDomain, process: Process) -> int:
    return queue.slice_ns * NICE_0 // process.weight


@eevdf.implements(shared.awake)
def awake(sim: Sim, domain: Domain, process: Process, by_interrupt: bool, queue: EevdfDomain = BESIDE) -> None:
    """Place it with the lag it had, which its joining must not change."""
    eevdf_process = eevdf_processes(sim)[process.row]
    lag_ns = 0
    if queue.weight > 0:
        lag_ns = eevdf_process.lag_ns * (queue.weight + process.weight) // queue.weight
    eevdf_process.virtual_ns = average_ns(sim, queue) - lag_ns
    eevdf_process.deadline_ns = eevdf_process.virtual_ns + virtual_slice_ns(queue, process)
    queue.weight += process.weight
    eevdf_list.push(sim, queue.runnable, process.row)


@eevdf.implements(shared.asleep)
def asleep(sim: Sim, domain: Domain, process: Process, queue: EevdfDomain = BESIDE) -> None:
    """Keep the lag, within two slices, and leave the queue."""
    eevdf_process = eevdf_processes(sim)[process.row]
    # Read while the process still counts.
    average = average_ns(sim, queue)
    most_ns = 2 * virtual_slice_ns(queue, process)
    eevdf_process.lag_ns = min(max(average - eevdf_process.virtual_ns, -most_ns), most_ns)
    queue.weight -= process.weight
    eevdf_list.remove(sim, queue.runnable, process.row)
    # The base follows V, so that products stay small.
    queue.base_ns = average


@eevdf.implements(shared.ran)
def ran(sim: Sim, domain: Domain, process: Process, ran_ns: int, queue: EevdfDomain = BESIDE) -> None:
    """Advance virtual run time; one that runs alone gets slice after slice."""
    eevdf_process = eevdf_processes(sim)[process.row]
    parts = eevdf_process.residue + ran_ns * NICE_0
    eevdf_process.virtual_ns += parts // process.weight
    eevdf_process.residue = parts % process.weight
    late_ns = eevdf_process.virtual_ns - eevdf_process.deadline_ns
    if late_ns >= 0 and process_domains(sim)[domain.row].ready == 0:
        virtual_ns = virtual_slice_ns(queue, process)
        eevdf_process.deadline_ns += (late_ns // virtual_ns + 1) * virtual_ns


@eevdf.implements(shared.longest_ns)
def longest_ns(sim: Sim, domain: Domain, process: Process, eevdf_process: EevdfProcess = BESIDE) -> int:
    """Run alone without a limit; else to the deadline."""
    if process_domains(sim)[domain.row].ready == 0:
        return NO_LIMIT_NS
    parts = (eevdf_process.deadline_ns - eevdf_process.virtual_ns) * process.weight - eevdf_process.residue
    return (parts + NICE_0 - 1) // NICE_0


@eevdf.implements(shared.used_up)
def used_up(sim: Sim, domain: Domain, process: Process, eevdf_process: EevdfProcess = BESIDE) -> None:
    """Begin another slice."""
    eevdf_process.deadline_ns = eevdf_process.virtual_ns + virtual_slice_ns(eevdf_domains(sim)[domain.row], process)


def earliest(sim: Sim, queue: EevdfDomain, besides: int) -> int:
    """Return the eligible process of earliest deadline, of equals the first to queue; on a vCPU only ``besides``."""
    best = 0
    for row in eevdf_list.rows(sim, queue.runnable):
        eevdf_process = eevdf_processes(sim)[row]
        is_choice = processes(sim)[row].state != ON_CPU or row == besides
        is_first = best == 0 or eevdf_process.deadline_ns < eevdf_processes(sim)[best].deadline_ns
        if is_choice and is_first and is_eligible(sim, queue, eevdf_process):
            best = row
    return best


@eevdf.implements(shared.pick)
def pick(sim: Sim, domain: Domain, queue: EevdfDomain = BESIDE) -> int:
    """Take the eligible one of earliest deadline; the least virtual run time if those that wait are all ahead."""
    row = earliest(sim, queue, 0)
    if row == 0:
        row = least(sim, queue)
    eevdf_process = eevdf_processes(sim)[row]
    eevdf_process.chosen_with_ns = eevdf_process.deadline_ns
    return row


def least(sim: Sim, queue: EevdfDomain) -> int:
    """Return the waiting process of least virtual run time; several vCPUs may hold all that are eligible."""
    best = 0
    for row in eevdf_list.rows(sim, queue.runnable):
        eevdf_process = eevdf_processes(sim)[row]
        if processes(sim)[row].state != ON_CPU and (
            best == 0 or eevdf_process.virtual_ns < eevdf_processes(sim)[best].virtual_ns
        ):
            best = row
    return best


@eevdf.implements(shared.preempts)
def preempts(sim: Sim, domain: Domain, newcomer: Process, process: Process, queue: EevdfDomain = BESIDE) -> bool:
    """It does if it would be chosen, and the slice of the one that runs is not protected."""
    eevdf_process = eevdf_processes(sim)[process.row]
    if (
        queue.runs_to_parity
        and eevdf_process.deadline_ns == eevdf_process.chosen_with_ns
        and is_eligible(sim, queue, eevdf_process)
    ):
        return False
    return earliest(sim, queue, process.row) == newcomer.row
