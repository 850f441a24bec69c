"""A disk in the host: one request at a time, in order of arrival but for what the page cache writes back.

A request takes ``service`` (seek and half a turn) and its size at ``rate``.  Reads always wait for the disk.  Writes do
too if they are written ``through``; ``buffered`` ones are done as soon as they are in the page cache, from where they
go to the disk ``flush_period`` after the first of them (Linux 2.6: ``dirty_writeback_centisecs``), together and each by
itself, or when somebody waits for a flush.  A writer that would exceed ``dirty_limit`` waits for its own write (Linux
2.6: ``balance_dirty_pages``), behind what is written back.  A crash loses what was not on the disk.

What the page cache writes back lets go first what programs wait for, reads and flushes, which have the disk for 100 ms
of 140 while there is both (Linux 2.6, ``cfq-iosched.c``: ``cfq_should_preempt``, ``cfq_slice_sync`` HZ / 10,
``cfq_slice_async`` HZ / 25).  A flush takes all with it that was written before.

Assumptions: requests are not merged or sorted (an elevator does both); nothing is read from the page cache; data and
order on the disk are as asked.  Left out: the limit of a queue (``nr_requests``, 128): closed programs stay below it.
"""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Chain, Engine, EventKind, Fifo, Record, Sim, Table, at, event
from vftsim.outcome import declare
from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.io.disk import (
    DISKS,
    READ,
    WRITE,
    WRITE_BACK,
    Disk,
    DiskSpec,
    DiskUse,
    begin_read,
    begin_write,
    begin_write_back,
    count_requests,
    count_served,
    disk,
    disks,
    end_transfer,
    flush,
    forget,
    hold_request,
    reached,
    replica_reads,
    takes_at_once,
    use_of,
)
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.rows import fill_row
from vftsim.spec import format_duration
from vftsim.spec.units import DURATION, BitRate, ByteCount, DurationNs, PeriodNs

local = disk.kind("local")

ENTITY = 1 << 20
"""Orders disks behind network interfaces among devices at one instant."""

AWAITED_NS, WRITTEN_BACK_NS = 100_000_000, 40_000_000
"""How long programs have the disk, and then the page cache, while both ask for it."""

BARRIER = 4
"""Beside :data:`READ` and :data:`WRITE`: who asks it waits for all that was asked before."""


class LocalUse(DiskUse):
    """A disk in the host, and what its page cache has for it."""

    unwritten: float = declare.number(
        unit="s", label="time the disk needs for what the page cache has at the end", better="lower"
    )


@DISKS.register
class LocalDiskSpec(DiskSpec):
    """A disk in the host."""

    outcome: ClassVar[type[DiskUse]] = LocalUse

    kind: Literal["local"] = "local"
    service: DurationNs = Field(
        4_000_000, description="Time of a request beside its transfer. Assumption: seek and half a turn at 10,000 rpm."
    )
    rate: Annotated[BitRate, Field(gt=0)] = Field(
        640_000_000, description="Transfer. Assumption: 80 MB/s, a disk of 2008."
    )
    writes: Literal["through", "buffered"] = Field("through", description="What a writer waits for.")
    flush_period: PeriodNs = Field(
        5_000_000_000, description="Buffered data are written after this. Default: Linux 2.6."
    )
    dirty_limit: ByteCount = Field(
        64 << 20,
        description="Buffered data not yet on the disk. Assumption; Linux 2.6 takes 40 % of memory (dirty_ratio).",
    )

    def without_effect(self) -> Mapping[str, str]:
        why = "with writes through nothing waits in the page cache"
        return {} if self.writes == "buffered" else dict.fromkeys(("flush_period", "dirty_limit"), why)

    def install(self, engine: Engine, row: int) -> None:
        fill_row(engine, local_disks, row, self, is_buffered=self.writes == "buffered")

    @property
    def objectives(self) -> tuple[str, ...]:
        """What is dirty is written within the flush period, or there is more of it each time."""
        return (f"unwritten <= {DURATION.format(self.flush_period)}",) if self.writes == "buffered" else ()

    def remark(self, use: Any) -> str:
        if self.writes != "buffered" or 1e9 * use.unwritten <= self.flush_period:
            return ""
        return (
            f"does not keep up: at the end its page cache has {format_duration(1e9 * use.unwritten)} of writes for it, "
            "more than a flush_period; programs do not wait for them before dirty_limit is reached"
        )

    def measured(self, engine: Engine, row: int) -> DiskUse:
        local_disk = engine.rows(local_disks)[row]
        waiting = int(local_disk.dirty.length) + int(local_disk.written_back.length)
        unwritten_s = waiting * self.service / 1e9 + 8 * int(local_disk.dirty_bytes) / self.rate
        return LocalUse(**use_of(engine, row), disks=1, unwritten=unwritten_s)


class LocalDisk(Record):
    """The queue of a disk and what it has done.

    ``in_service`` is the request that the disk works on; ``written_back`` wait behind the ``queue``, with which they
    have shared the disk since ``shared_ns``, if not 0.  ``dirty`` are writes in the page cache; ``dirty_bytes`` counts
    them until they are on the disk.
    """

    service_ns: int
    rate_bits_per_s: int
    is_buffered: bool
    flush_period_ns: int
    dirty_limit_bytes: int
    queue: Fifo
    written_back: Fifo
    shared_ns: int
    in_service: int
    dirty: Fifo
    dirty_bytes: int
    flushing: int
    reads: int
    writes: int
    lost_writes: int


class Request(Record):
    """Something a disk is asked for; ``program`` 0: nobody waits.

    ``is_dirty``: it comes from the page cache; ``is_orphaned``: the domain was booted since.
    """

    link: int
    operation: int
    program: int
    tag: int
    size_bytes: int
    asked_ns: int
    replica_ns: int
    is_dirty: bool
    is_orphaned: bool


local_disks = Table("local_disks", LocalDisk, beside=disks)
requests = Table("disk_requests", Request, 1 << 20, "lower the load of the disks")
request_list = Chain(requests, "link")


@local.implements(begin_read)
def read_local(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> None:
    row = new_request(sim, READ, program, tag, size_bytes)
    requests(sim)[row].replica_ns = replica_reads(sim, disk, size_bytes)
    enqueue(sim, disk, local_disks(sim)[disk.row].queue, row)


@local.implements(takes_at_once)
def has_room(sim: Sim, disk: Disk, size_bytes: int, local_disk: LocalDisk = BESIDE) -> bool:
    """Tell whether the page cache has room."""
    return local_disk.is_buffered and local_disk.dirty_bytes + size_bytes <= local_disk.dirty_limit_bytes


@local.implements(begin_write)
def write_local(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int, local_disk: LocalDisk = BESIDE) -> bool:
    """Into the page cache, if it has room; else wait for the disk."""
    if not has_room(sim, disk, size_bytes):
        row = new_request(sim, WRITE, program, tag, size_bytes)
        if local_disk.is_buffered:
            enqueue(sim, disk, local_disk.written_back, row)
        else:
            enqueue(sim, disk, local_disk.queue, row)
        return False
    row = new_request(sim, WRITE, 0, 0, size_bytes)
    requests(sim)[row].is_dirty = True
    local_disk.dirty_bytes += size_bytes
    request_list.push(sim, local_disk.dirty, row)
    if local_disk.flushing == 0:
        due_ns = sim.now_ns + local_disk.flush_period_ns
        local_disk.flushing = at(sim, due_ns, EventKind.DEVICE, ENTITY + disk.row, on_flush, disk.row)
    return True


@local.implements(flush)
def flush_local(sim: Sim, disk: Disk, program: int, tag: int) -> bool:
    """Write what is dirty, when a guard lets it go, and wait for all that was asked before."""
    return not must_hold(sim, disk, program, tag) and write_back_local(sim, disk, program, tag)


def must_hold(sim: Sim, disk: Disk, program: int, tag: int) -> bool:
    """Tell whether what is dirty waits for the domain's guard: it goes to a device, as what programs write does."""
    if local_disks(sim)[disk.row].dirty.length == 0:
        return False
    return hold_request(sim, disk.guard, disk.row, program, tag, 0, WRITE_BACK)


@local.implements(begin_write_back)
def write_back_local(sim: Sim, disk: Disk, program: int, tag: int, local_disk: LocalDisk = BESIDE) -> bool:
    write_dirty(sim, disk, local_disk)
    if program == 0:
        return True
    move_all(sim, local_disk.written_back, local_disk.queue)
    if local_disk.in_service == 0 and local_disk.queue.length == 0:
        return True
    enqueue(sim, disk, local_disk.queue, new_request(sim, BARRIER, program, tag, 0))
    return False


def move_all(sim: Sim, source: Fifo, target: Fifo) -> None:
    """Put requests behind others."""
    while source.length > 0:
        request_list.push(sim, target, request_list.pop(sim, source))


@local.implements(reached)
def serve_local(sim: Sim, disk: Disk) -> None:
    serve_next(sim, disk)


@local.implements(forget)
def forget_local(sim: Sim, disk: Disk, local_disk: LocalDisk = BESIDE) -> None:
    """Lose the page cache and the queue; what the disk works on, it ends."""
    # The planned flush finds another token: there is nothing left to write.
    local_disk.flushing = 0
    lose_requests(sim, local_disk, local_disk.dirty)
    move_all(sim, local_disk.written_back, local_disk.queue)
    count_requests(sim, disk, -lose_requests(sim, local_disk, local_disk.queue), 0)
    if local_disk.in_service != 0:
        requests(sim)[local_disk.in_service].program = 0
        requests(sim)[local_disk.in_service].is_orphaned = True


def lose_requests(sim: Sim, local_disk: LocalDisk, listed: Fifo) -> int:
    """Free requests that will not be served; return how many reads and writes they were."""
    lost = 0
    while listed.length > 0:
        row = request_list.pop(sim, listed)
        lost += transfers_of(requests(sim)[row])
        if requests(sim)[row].operation == WRITE:
            local_disk.lost_writes += 1
        if requests(sim)[row].is_dirty:
            local_disk.dirty_bytes -= requests(sim)[row].size_bytes
        requests.free(sim, row)
    return lost


def transfers_of(request: Request) -> int:
    """Return 1 for a read or a write, 0 for a flush, which takes no time of the disk."""
    return 0 if request.operation == BARRIER else 1


def new_request(sim: Sim, operation: int, program: int, tag: int, size_bytes: int) -> int:
    """Make a request that waits for its disk."""
    row = requests.new(sim)
    request = requests(sim)[row]
    request.operation = operation
    request.program = program
    request.tag = tag
    request.size_bytes = size_bytes
    request.asked_ns = sim.now_ns
    request.replica_ns = 0
    request.is_dirty = False
    request.is_orphaned = False
    return row


def enqueue(sim: Sim, disk: Disk, queue: Fifo, row: int) -> None:
    """Put a request into a queue."""
    count_requests(sim, disk, transfers_of(requests(sim)[row]), 0)
    request_list.push(sim, queue, row)
    serve_next(sim, disk)


def serve_next(sim: Sim, disk: Disk, local_disk: LocalDisk = BESIDE) -> None:
    """Begin with the next request, if the disk is idle and can be reached."""
    if disk.is_away or local_disk.in_service != 0:
        return
    local_disk.in_service = next_request(sim, local_disk)
    if local_disk.in_service == 0:
        return
    count_requests(sim, disk, 0, 1)
    time_ns = service_ns(local_disk, requests(sim)[local_disk.in_service])
    at(sim, sim.now_ns + time_ns, EventKind.DEVICE, ENTITY + disk.row, on_served, disk.row)


def next_request(sim: Sim, local_disk: LocalDisk) -> int:
    """Take the next request out of its queue, 0 for none."""
    if local_disk.queue.length == 0 or local_disk.written_back.length == 0:
        local_disk.shared_ns = 0
    elif local_disk.shared_ns == 0:
        local_disk.shared_ns = sim.now_ns
    of_programs = local_disk.queue.length > 0
    if of_programs and local_disk.written_back.length > 0:
        of_programs = (sim.now_ns - local_disk.shared_ns) % (AWAITED_NS + WRITTEN_BACK_NS) < AWAITED_NS
    return request_list.pop(sim, local_disk.queue if of_programs else local_disk.written_back)


def service_ns(local_disk: LocalDisk, request: Request) -> int:
    """Return how long the disk works on a request."""
    if request.operation == BARRIER:
        return 0
    return local_disk.service_ns + product_quotient(request.size_bytes, BITS_NS, local_disk.rate_bits_per_s)


@event
def on_served(sim: Sim, disk: Disk, local_disk: LocalDisk = BESIDE) -> None:
    """A request is done: let its program hear, and begin with the next."""
    row = local_disk.in_service
    local_disk.in_service = 0
    count_requests(sim, disk, 0, -1)
    if disk.is_away:
        # Its answer does not get through: it is asked again, first of all, when the disk is back.
        request_list.push_front(sim, local_disk.queue, row)
        return
    take_account(sim, disk, local_disk, requests(sim)[row])
    # Read before the row is free: a program that hears of the end may ask again, and get this very row.
    program, tag, replica_ns = requests(sim)[row].program, requests(sim)[row].tag, requests(sim)[row].replica_ns
    size_bytes, is_read = requests(sim)[row].size_bytes, requests(sim)[row].operation == READ
    is_orphaned = requests(sim)[row].is_orphaned
    requests.free(sim, row)
    serve_next(sim, disk)
    if not is_orphaned:
        end_transfer(sim, disk, program, tag, size_bytes, is_read, replica_ns)


def take_account(sim: Sim, disk: Disk, local_disk: LocalDisk, request: Request) -> None:
    """Count a request that is done."""
    if request.operation == READ:
        local_disk.reads += 1
    elif request.operation == WRITE:
        local_disk.writes += 1
    if request.is_dirty:
        local_disk.dirty_bytes -= request.size_bytes
    if request.operation != BARRIER:
        written_bytes = request.size_bytes if request.operation == WRITE else 0
        count_served(sim, disk, request.asked_ns, request.program != 0, written_bytes)


def write_dirty(sim: Sim, disk: Disk, local_disk: LocalDisk) -> None:
    """Have everything written that is dirty."""
    local_disk.flushing = 0
    count_requests(sim, disk, local_disk.dirty.length, 0)
    move_all(sim, local_disk.dirty, local_disk.written_back)
    serve_next(sim, disk)


@event
def on_flush(sim: Sim, disk_row: int, token: int) -> None:
    """The oldest dirty data have waited long enough."""
    if token == local_disks(sim)[disk_row].flushing and not must_hold(sim, disks(sim)[disk_row], 0, 0):
        write_dirty(sim, disks(sim)[disk_row], local_disks(sim)[disk_row])
