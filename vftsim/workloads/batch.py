"""Jobs that compute, write memory and wait for a disk: benchmarks and users that need no network.

Each process runs transactions without end: a share of the CPU time, a disk operation, a share, ... and a pause
before the next one.  A transaction writes ``pages`` of memory, spread evenly over its CPU time, which are counted:
what a checkpoint has to copy.

A disk operation is a waiting time here, whatever others do: right for a disk array far from its limit.  Its end is an
input of the guest: a mechanism that records inputs takes note of it, of a read with its data.  A machine that is
booted again begins all transactions anew.

Programs whose times do not vary do not keep step: the first begins after a pause, each other one at a random instant of
it, or of a wait for the disk.  So do processes of one program that pause, as users do: with a CPU for each they would
all be in other guests' way at once.  Those that do not pause begin together, as those of ``make -j`` do.

Left out: memory reads and caches (part of the CPU time), the disk's queue.
"""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, EventKind, Row, Sim, Table, at, entry, timer
from vftsim.outcome import Outcome, declare
from vftsim.platform.cpu.jobs import continue_or_submit_for, ensure_process, submit_from_outside
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.delays import add_delay_since, histogram
from vftsim.platform.io.disk import READ, begin_wait, hold_request
from vftsim.platform.io.packet import Application, application, applications, lose_state
from vftsim.platform.protection.guard import guarded_programs, guards, note_read, note_transfer, note_write
from vftsim.platform.rows import add_row
from vftsim.spec.units import ByteCount, DurationNs, Percent
from vftsim.stats import DelayHistogram
from vftsim.workloads.common import ProgramRow, duration_ns, unread_without, with_overhead_ns
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext, Program

batch = application.kind("batch")


class Batch(ProgramRow):
    """The processes of one program; they stand in consecutive rows.

    ``share_ns`` of CPU time lie between two disk operations; ``transactions`` ended after the warm-up.
    """

    first_process: int
    processes: int
    share_ns: int
    disk_operations: int
    disk_wait_ns: int
    disk_size_bytes: int
    read_share: float
    think_ns: int
    pages: int
    warmup_ns: int
    begun: int
    ended: int
    transactions: int
    operations_begun: int
    pages_written: int
    operations_noted: int
    durations: int


class BatchProcess(Row):
    """One process: ``left`` disk operations of its transaction, ``planned`` the event that it waits for.

    It begins after ``phase_ns``, or, if that is 0, after a pause.
    ``guest_process`` is its row among the processes of the guest.
    """

    guest_process: int
    batch: int
    phase_ns: int
    begin_ns: int
    left: int
    planned: int
    is_read: bool
    replica_ns: int
    demands: int
    waits: int
    thinks: int


batches = Table("batch_programs", Batch, 256)
batch_processes = Table("batch_processes", BatchProcess, 1 << 16, "use fewer processes")


def compute(sim: Sim, process: BatchProcess, logging_ns: int, batch: Batch = BESIDE) -> None:
    """Do the next share of a transaction's computation, after what taking note of the disk has cost."""
    demand_ns = logging_ns + next_share_ns(sim, process)
    domain, is_on_disk = domains(sim)[batch.domain], batch.disk_operations > 0 and batch.think_ns == 0
    process.guest_process = ensure_process(sim, domain, process.guest_process, is_on_disk)
    submit_from_outside(sim, domain, process.guest_process, demand_ns, on_computed, process.row, batch.row)


def keep_computing(sim: Sim, process: BatchProcess, logging_ns: int, batch: Batch = BESIDE) -> None:
    """Do the next share of a computation with nothing between, on the same CPU.

    Not by an event of this instant: before it comes the vCPU would have slept, and another be let in.
    """
    demand_ns = logging_ns + next_share_ns(sim, process)
    domain = domains(sim)[batch.domain]
    continue_or_submit_for(sim, domain, process.guest_process, True, demand_ns, on_computed, process.row, batch.row)


def next_share_ns(sim: Sim, process: BatchProcess, batch: Batch = BESIDE) -> int:
    """Draw what the next share of a transaction's computation costs."""
    share_ns = duration_ns(sim, process.demands, batch.share_ns)
    return max(1, with_overhead_ns(sim, batch.program, share_ns, 0))


@work_done
def on_computed(sim: Sim, process: BatchProcess, batch: Batch) -> None:
    """Ask the disk, or end the transaction."""
    # Pages of shares 1 to n of n + 1 add up to all with the last one.
    done = batch.disk_operations - process.left
    pages = batch.pages * (done + 1) // (batch.disk_operations + 1) - batch.pages * done // (batch.disk_operations + 1)
    batch.pages_written += pages
    applications(sim)[batch.program].pages_dirtied += pages
    if process.left == 0:
        end(sim, process)
        return
    process.left -= 1
    batch.operations_begun += 1
    ask_disk(sim, process)
    if batch.disk_wait_ns == 0:
        keep_computing(sim, process, logging_ns(sim, batch, process))
        return
    guard = guarded_programs(sim)[batch.program].guard
    if not hold_request(sim, guard, 0, batch.program, process.row, batch.disk_size_bytes, READ):
        plan_end_of_wait(sim, process)


def plan_end_of_wait(sim: Sim, process: BatchProcess, batch: Batch = BESIDE) -> None:
    due_ns = sim.now_ns + duration_ns(sim, process.waits, batch.disk_wait_ns)
    process.planned = at(sim, due_ns, EventKind.DEVICE, process.row, on_disk, process.row)


@batch.implements(begin_wait)
def wait_for_disk(sim: Sim, program: Application, tag: int) -> None:
    plan_end_of_wait(sim, batch_processes(sim)[tag])


def ask_disk(sim: Sim, process: BatchProcess, batch: Batch = BESIDE) -> None:
    """Decide whether a disk operation reads; of a read, a guard of the domain takes note."""
    guard = guarded_programs(sim)[batch.program].guard
    if guard == 0:
        return
    batch.operations_noted += 1
    process.is_read = int(batch.operations_noted * batch.read_share) > int(
        (batch.operations_noted - 1) * batch.read_share
    )
    process.replica_ns = note_read(sim, guards(sim)[guard], batch.disk_size_bytes) if process.is_read else 0


@timer(batch_processes, "planned")
def on_disk(sim: Sim, process: BatchProcess, batch: Batch = BESIDE) -> None:
    """A disk operation is done."""
    compute(sim, process, logging_ns(sim, batch, process))


def logging_ns(sim: Sim, batch: Batch, process: BatchProcess) -> int:
    """Have a guard of the domain log a disk operation that ends; return what that costs."""
    guard = guarded_programs(sim)[batch.program].guard
    if guard == 0:
        return 0
    if not process.is_read:
        note_write(sim, guards(sim)[guard], batch.disk_size_bytes)
    return note_transfer(sim, guards(sim)[guard], batch.disk_size_bytes, process.is_read, process.replica_ns)


def end(sim: Sim, process: BatchProcess, batch: Batch = BESIDE) -> None:
    """End a transaction, and pause; without a pause the process keeps its CPU."""
    batch.ended += 1
    if sim.now_ns >= batch.warmup_ns:
        batch.transactions += 1
    add_delay_since(sim, batch.durations, process.begin_ns, batch.warmup_ns)
    if batch.think_ns > 0:
        pause(sim, process, duration_ns(sim, process.thinks, batch.think_ns))
        return
    begin(sim, process)
    keep_computing(sim, process, 0)


def pause(sim: Sim, process: BatchProcess, pause_ns: int) -> None:
    """Pause before the next transaction."""
    process.planned = at(sim, sim.now_ns + pause_ns, EventKind.TIMER, process.row, on_begin, process.row)


@timer(batch_processes, "planned")
def on_begin(sim: Sim, process: BatchProcess) -> None:
    begin(sim, process)
    compute(sim, process, 0)


def begin(sim: Sim, process: BatchProcess, batch: Batch = BESIDE) -> None:
    """Count a transaction that begins."""
    batch.begun += 1
    process.begin_ns = sim.now_ns
    process.left = batch.disk_operations


@batch.implements(lose_state)
def lose_memory(sim: Sim, program: Application) -> None:
    """Begin all transactions anew; the CPU work is gone already, and what the disk does is for nobody."""
    begin_all(sim, batches(sim)[program.state_row])


def begin_all(sim: Sim, batch: Batch) -> None:
    """Let every process begin with a pause."""
    for process in batch_processes.span(sim, batch.first_process, batch.processes):
        pause_ns = process.phase_ns if process.phase_ns > 0 else duration_ns(sim, process.thinks, batch.think_ns)
        pause(sim, process, pause_ns)


start_batch = entry(begin_all)


class BatchWork(Outcome):
    """What the processes did: transactions and their durations after the warm-up, the other counts from the start."""

    begun: int = declare.total(label="transactions begun, from the start")
    ended: int = declare.total(label="transactions ended, from the start")
    transactions: int = declare.total()
    disk_operations: int = declare.total(label="disk operations, from the start")
    pages_written: int = declare.total(label="pages written, from the start")
    duration: DelayHistogram = declare.delays(label="transaction", better="lower", headline=("mean", "p95"))
    rate = declare.rate(
        transactions, label="transactions", better="higher", headline=True, known_as=("transactions_per_s",)
    )


@APPLICATIONS.register
class BatchSpec(ApplicationSpec):
    """Processes that run transactions of CPU time, disk operations and memory writes."""

    entries = (start_batch,)
    outcomes = (BatchWork,)

    kind: Literal["batch"] = "batch"
    processes: int = Field(1, ge=1, le=1000, description="Processes, users or threads, each with one transaction.")
    demand: DurationNs = Field(
        10_000_000, gt=0, description="Mean CPU time of a transaction. Assumption: to be taken from the benchmark."
    )
    demand_cv: float = Field(
        0.0, ge=0.0, le=5.0, description="Coefficient of variation of each share of it (gamma); 0: always the same."
    )
    disk_operations: int = Field(0, ge=0, le=1000, description="Disk operations of a transaction.")
    disk_wait: DurationNs = Field(
        8_000_000, description="Mean wait for one. Assumption: a seek and half a turn of a disk of 7,200/min."
    )
    disk_cv: float = Field(0.0, ge=0.0, le=5.0, description="Coefficient of variation of the wait (gamma).")
    disk_size: ByteCount = Field(
        4096, description="Data of an operation, for who records what is read or mirrors what is written. Assumption."
    )
    disk_reads: Percent = Field(50.0, description="Share of the operations that read, evenly among them. Assumption.")
    think: DurationNs = Field(0, description="Mean pause before the next transaction; 0: none, a benchmark's.")
    think_cv: float = Field(0.0, ge=0.0, le=5.0, description="Coefficient of variation of the pause (gamma).")
    pages: int = Field(0, ge=0, le=1_000_000, description="Pages of memory that a transaction writes.")

    @property
    def has_disk_times(self) -> bool:
        """All that a transaction waits for."""
        return self.disk_operations > 0

    def without_effect(self) -> Mapping[str, str]:
        """Name what no disk operation and no pause reads."""
        of_disk = ("disk_wait", "disk_cv", "disk_size", "disk_reads")
        return unread_without(self, {"disk_operations": of_disk, "think": ("think_cv",)})

    def unread_of_transfers(self, records_reads: bool, mirrors_writes: bool) -> Mapping[str, str]:
        """Name what has no effect without either, and the size of operations of which the one at hand sees none."""
        if not records_reads and not mirrors_writes:
            why = "no mechanism records what programs of this domain read, or mirrors what they write"
            return dict.fromkeys(("disk_size", "disk_reads"), why)
        is_seen = (records_reads and self.disk_reads > 0.0) or (mirrors_writes and self.disk_reads < 100.0)
        return {} if is_seen else {"disk_size": f"with disk_reads {self.disk_reads:g} % no data of one is sent"}

    def events_per_s(self, vcpus: int) -> float:
        """Each process is at a transaction, at its speed alone on a CPU; as many as the vCPUs have time for.

        Where they have no time to spare few transactions find an idle one, which takes half of the events.
        """
        alone_ns = max(self.demand + self.disk_operations * self.disk_wait + self.think, 1)
        unlimited, most = self.processes * 1e9 / alone_ns, vcpus * 1e9 / max(self.demand, 1)
        of_one = 6 + 4 * self.disk_operations
        return unlimited * of_one if unlimited < most else most * (2 + 2 * self.disk_operations)

    @property
    def _wait_ns(self) -> int:
        """The pause of a transaction, or its wait for the disk; 0: it only computes."""
        return self.think or (self.disk_wait if self.disk_operations else 0)

    @property
    def _cv(self) -> float:
        """Above 0 if anything in a transaction varies."""
        return self.demand_cv + self.disk_cv * (self.disk_operations > 0) + self.think_cv * (self.think > 0)

    def install(self, context: InstallContext) -> Program:
        """Add it to a domain."""
        share_ns = context.inflated(self.demand) // (self.disk_operations + 1)
        batch = context.add_program(
            batches,
            self,
            share_ns=share_ns,
            read_share=self.disk_reads / 100.0,
            durations=context.add_delays(),
        )
        for n in range(self.processes):
            process = self._add_process(context, batch, n)
            batch.first_process = batch.first_process or process.row

        def measured() -> BatchWork:
            return BatchWork.of_row(
                batch,
                disk_operations=int(batch.operations_begun),
                duration=histogram(context.engine, int(batch.durations)),
                seconds=context.measured_s(),
            )

        return Program(context, batch, start_batch, measured)

    def _add_process(self, context: InstallContext, batch: Batch, number: int) -> BatchProcess:
        serial = context.serial(self)
        entity = (serial << 20) + number
        starter = serial + (number << 20) if self.think else serial
        return add_row(
            context.engine,
            batch_processes,
            batch=batch.row,
            phase_ns=context.phase_ns(self.kind, starter, self._wait_ns, self._cv),
            demands=context.gamma_feed("batch.demand", entity, batch.share_ns, self.demand_cv),
            waits=context.gamma_feed("batch.disk", entity, self.disk_wait, self.disk_cv),
            thinks=context.gamma_feed("batch.think", entity, self.think, self.think_cv),
        )


MIXES: Mapping[str, Mapping[str, Any]] = {
    "specjbb": {"processes": 4, "demand": 500_000, "demand_cv": 0.5, "pages": 40},
    "kernel_compile": {
        "processes": 4,
        "demand": 1_500_000_000,
        "demand_cv": 0.7,
        "disk_operations": 6,
        "pages": 20_000,
    },
    "random_disk_io": {
        "processes": 16,
        "demand": 100_000,
        "disk_operations": 1,
        "disk_wait": 8_000_000,
        "disk_cv": 0.5,
        "pages": 4,
    },
    "database": {
        "processes": 20,
        "demand": 4_000_000,
        "demand_cv": 1.0,
        "disk_operations": 5,
        "disk_wait": 6_000_000,
        "disk_cv": 0.7,
        "pages": 60,
    },
    "exchange_users": {
        "processes": 200,
        "demand": 8_000_000,
        "demand_cv": 1.0,
        "disk_operations": 4,
        "disk_wait": 8_000_000,
        "disk_cv": 0.7,
        "think": 10_000_000_000,
        "think_cv": 1.0,
        "pages": 80,
    },
}
"""Values of :class:`BatchSpec` for kinds of job by name.  Assumption: orders of magnitude, until somebody measures."""


def batch_of_mix(name: str, **changes: Any) -> BatchSpec:
    """Return the spec of a kind of job by name, with other values where they are given; a KeyError for no such kind."""
    return BatchSpec(**{**MIXES[name], **changes})
