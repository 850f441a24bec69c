"""A program of processes that compute, then read or write, and so on: a closed loop between CPU and disk.

Each process computes for a drawn time, asks the disk for one transfer, and waits for it unless it is done at once.
After every ``flush_every`` writes it waits until all that was written is on the disk, as a database does at the end of
a transaction.  Protection makes the computation cost ``execution`` times as much.  What a crash takes from a program
are its processes: all begin anew, and what was not on the disk is lost.

Left out: network requests that cause the transfers; locks between processes.
"""

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Record, Sim, Table, entry
from vftsim.kernel.inputs import draw
from vftsim.outcome import Outcome, declare
from vftsim.platform.cpu.jobs import continue_or_submit_for, ensure_process, submit_for
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.disk import disks, flush, forget, read, transfer_done, write
from vftsim.platform.io.packet import Application, application, lose_state
from vftsim.sampling import Draws
from vftsim.spec.units import ByteCount, Percent, PositiveDurationNs
from vftsim.workloads.common import AT_ONCE, ProgramRow, duration_ns, with_overhead_ns
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program

disk_bound = application.kind("disk_bound")


class DiskBound(ProgramRow):
    """A program: its processes stand in consecutive rows; ``computes`` and ``choices`` are feeds.

    A choice is 1 for a read, 0 for a write; ``transfers`` counts those that have ended after
    ``warmup_ns``.
    """

    disk: int
    processes: int
    first_process: int
    compute_ns: int
    computes: int
    choices: int
    size_bytes: int
    flush_every: int
    warmup_ns: int
    transfers: int


class Process(Record):
    """A process of a program, ``guest_process`` of the guest; ``unflushed`` writes since it waited for a flush."""

    owner: int
    guest_process: int
    unflushed: int
    is_flushing: bool


disk_bounds = Table("disk_bounds", DiskBound, 4096)
processes = Table("disk_bound_processes", Process, 1 << 20, "give the programs fewer processes")


def next_work_ns(sim: Sim, disk_bound: DiskBound) -> int:
    """Draw how long a process computes."""
    demand_ns = duration_ns(sim, disk_bound.computes, disk_bound.compute_ns)
    return max(1, with_overhead_ns(sim, disk_bound.program, demand_ns, 0))


def count_transfer(sim: Sim, disk_bound: DiskBound) -> None:
    """Count a transfer that has ended, in the measured time."""
    if sim.now_ns >= disk_bound.warmup_ns:
        disk_bound.transfers += 1


def compute(sim: Sim, row: int) -> None:
    """Have a process that has slept compute until its next transfer."""
    process = processes(sim)[row]
    disk_bound = disk_bounds(sim)[process.owner]
    domain = domains(sim)[disk_bound.domain]
    process.guest_process = ensure_process(sim, domain, process.guest_process, True)
    submit_for(sim, domain, process.guest_process, next_work_ns(sim, disk_bound), on_computed, row, 0)


@work_done
def on_computed(sim: Sim, process_row: int) -> None:
    """Ask for a transfer; a process that need not wait continues."""
    process = processes(sim)[process_row]
    disk_bound = disk_bounds(sim)[process.owner]
    if draw(sim, disk_bound.choices) == 1:
        read(sim, disks(sim)[disk_bound.disk], disk_bound.program, process_row, disk_bound.size_bytes)
        return
    process.unflushed += 1
    if write(sim, disks(sim)[disk_bound.disk], disk_bound.program, process_row, disk_bound.size_bytes):
        count_transfer(sim, disk_bound)
        if not must_wait_for_flush(sim, disk_bound, process, process_row):
            domain, demand_ns = domains(sim)[disk_bound.domain], next_work_ns(sim, disk_bound)
            continue_or_submit_for(sim, domain, process.guest_process, True, demand_ns, on_computed, process_row, 0)


def must_wait_for_flush(sim: Sim, disk_bound: DiskBound, process: Process, row: int) -> bool:
    """Tell whether a process must sleep until a flush is over, which it has asked for."""
    if disk_bound.flush_every == 0 or process.unflushed < disk_bound.flush_every:
        return False
    process.unflushed = 0
    process.is_flushing = not flush(sim, disks(sim)[disk_bound.disk], disk_bound.program, row)
    return process.is_flushing


@disk_bound.implements(transfer_done)
def wake(sim: Sim, program: Application, tag: int, bound: DiskBound = BESIDE) -> None:
    """Resume a process that has waited for a transfer or a flush."""
    process = processes(sim)[tag]
    if process.is_flushing:
        process.is_flushing = False
        compute(sim, tag)
        return
    count_transfer(sim, bound)
    if not must_wait_for_flush(sim, bound, process, tag):
        compute(sim, tag)


@disk_bound.implements(lose_state)
def begin_anew(sim: Sim, program: Application, bound: DiskBound = BESIDE) -> None:
    """Forget all transfers under way; every process begins with computing."""
    # Before the processes begin: what the disk does for those of before wakes nobody.
    forget(sim, disks(sim)[bound.disk])
    begin_all(sim, bound)


def begin_all(sim: Sim, disk_bound: DiskBound) -> None:
    """Start every process."""
    for row in range(disk_bound.first_process, disk_bound.first_process + disk_bound.processes):
        processes(sim)[row].unflushed = 0
        processes(sim)[row].is_flushing = False
        compute(sim, row)


start_disk_bound = entry(begin_all)


class DiskLoop(Outcome):
    """What processes bound by a disk did in the measured time."""

    transfers: int = declare.total(label="disk transfers")
    rate = declare.rate(
        transfers, label="disk transfers", better="higher", headline=True, known_as=("transfers_per_s",)
    )


@APPLICATIONS.register
class DiskBoundSpec(ApplicationSpec):
    """Processes that compute and read or write in turn."""

    uses_disks = True
    entries = (start_disk_bound,)
    outcomes = (DiskLoop,)

    kind: Literal["disk_bound"] = "disk_bound"
    processes: int = Field(4, ge=1, le=1000, description="Processes. Assumption.")
    compute: PositiveDurationNs = Field(1_000_000, description="Mean CPU work between two transfers. Assumption.")
    cv: float = Field(1.0, ge=0.0, le=2.0, description="Coefficient of variation of it (gamma). Assumption.")
    reads: Percent = Field(70.0, ge=0.0, le=100.0, description="Share of reads. Assumption: an OLTP database.")
    size: ByteCount = Field(8192, description="Of a transfer. Default: a page of PostgreSQL.")
    flush_every: int = Field(0, ge=0, le=1_000_000, description="Writes until a process waits for a flush; 0: never.")
    disk: str | None = Field(None, description="Disk of its domain; the first if not given.")

    def without_effect(self) -> Mapping[str, str]:
        """Say that reads are not flushed."""
        return {"flush_every": "with reads 100 % nothing is written"} if self.reads == 100.0 else {}

    def events_per_s(self, vcpus: int) -> float:
        """A CPU computes for one process at a time, and the disk takes its time for each transfer."""
        return 10e9 / self.compute

    def install(self, context: InstallContext) -> Program:
        """Add it to a domain that has its disk."""
        engine, serial, compute_ns = context.engine, context.serial(self), context.inflated(self.compute)
        choices = Draws(context.streams, "disk_bound.choice", serial, lambda u: (u < self.reads / 100.0).astype(int))
        disk_bound = context.add_program(
            disk_bounds,
            self,
            disk=context.disk(self.disk),
            compute_ns=compute_ns,
            computes=context.gamma_feed("disk_bound.compute", serial, compute_ns, self.cv, at_once=self.processes),
            choices=context.feeder.add(choices, AT_ONCE, self.processes),
        )
        rows = [engine.add(processes, owner=disk_bound.row)[0] for _ in range(self.processes)]
        disk_bound.first_process = rows[0]

        def measured() -> DiskLoop:
            return DiskLoop(transfers=int(disk_bound.transfers), seconds=context.measured_s())

        return Program(context, disk_bound, start_disk_bound, measured)
