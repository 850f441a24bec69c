"""Programs that need no network: batch jobs, and processes bound by a disk."""

from typing import Any, ClassVar

from pydantic import Field

from vftsim.errors import UsageError
from vftsim.kernel.declare import Table
from vftsim.kernel.inputs import feeds
from vftsim.outcome import Outcome, declare
from vftsim.platform.delays import bucket_ends
from vftsim.workloads import batch, burden, disk_bound
from vftsim.workloads.batch import BatchSpec
from vftsim.workloads.composed.rows import RowProgram
from vftsim.workloads.disk_bound import DiskBoundSpec, disk_bounds
from vftsim.workloads.parts import APPLICATIONS, ApplicationSpec, InstallContext


@APPLICATIONS.register
class BatchApplication(BatchSpec, ApplicationSpec):
    """Processes that run transactions of CPU time, disk operations and memory writes."""

    entries: ClassVar[tuple[Any, ...]] = batch.ENTRIES
    tables: ClassVar[tuple[Table[Any], ...]] = (*batch.TABLES, *burden.TABLES, feeds, bucket_ends)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (batch.BatchWork,)

    def events_per_s(self, vcpus: int) -> float:
        """Each process is at a transaction, at its speed alone on a CPU; as many as the vCPUs have time for.

        Where they have no time to spare few transactions find an idle one, which takes half of the events.
        """
        alone_ns = max(self.demand + self.disk_operations * self.disk_wait + self.think, 1)
        asked, most = self.processes * 1e9 / alone_ns, vcpus * 1e9 / max(self.demand, 1)
        of_one = 6 + 4 * self.disk_operations
        return asked * of_one if asked < most else most * (2 + 2 * self.disk_operations)

    def install(self, context: InstallContext) -> RowProgram:
        """Add it to a domain."""
        engine, number = context.engine, context.others.get(self.kind, 0)
        slower = self.model_copy(update={"demand": round(self.demand * context.cpu_inflation)})
        row = batch.add_batch(
            engine, context.feeder, context.domain, slower, context.streams, number, context.window_ns[0]
        )
        return RowProgram(
            context, row, lambda: engine.call(batch.start_batch, row), lambda: batch.batch_work_of(engine, row)
        )


class DiskLoop(Outcome):
    """What processes bound by a disk did, from the start."""

    transfers: int = declare.total(label="disk transfers")
    rate = declare.rate(
        transfers, label="disk transfers", better="higher", headline=True, known_as=("transfers_per_s",)
    )


@APPLICATIONS.register
class DiskBoundApplication(DiskBoundSpec, ApplicationSpec):
    """Processes that compute and read or write in turn."""

    uses_disks: ClassVar[bool] = True
    entries: ClassVar[tuple[Any, ...]] = disk_bound.ENTRIES
    tables: ClassVar[tuple[Table[Any], ...]] = (*disk_bound.TABLES, feeds)
    outcomes: ClassVar[tuple[type[Outcome], ...]] = (DiskLoop,)

    disk: str | None = Field(None, description="Disk of its domain; the first if not given.")

    def events_per_s(self, vcpus: int) -> float:
        """A CPU computes for one process at a time, and the disk takes its time for each transfer."""
        return 10e9 / self.compute

    def install(self, context: InstallContext) -> RowProgram:
        """Add it to a domain that has its disk.

        Raises
        ------
        UsageError
            The domain has no such disk.
        """
        engine, number = context.engine, context.others.get(self.kind, 0)
        disk = context.disks.get(self.disk, 0) if self.disk is not None else next(iter(context.disks.values()), 0)
        if not disk:
            raise UsageError(f"{context.name}: its domain has no disk {self.disk or ''}; give it one under `disks`")
        slower = self.model_copy(update={"compute": round(self.compute * context.cpu_inflation)})
        bound_row = disk_bound.add_disk_bound(
            engine, context.feeder, context.domain, disk, slower, context.streams, number
        )
        record = engine.rows(disk_bounds)[bound_row]

        def measured() -> DiskLoop:
            return DiskLoop(transfers=int(engine.rows(disk_bounds)[bound_row].transfers), seconds=engine.now_ns / 1e9)

        return RowProgram(
            context, int(record.program), lambda: engine.call(disk_bound.start_disk_bound, bound_row), measured
        )
