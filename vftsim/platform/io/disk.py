"""Disks of domains: what a program asks of one, and how it hears that a transfer is over.

A program names itself and a ``tag`` of its own in what it asks.  A transfer that takes time ends with an interrupt on
the domain's first vCPU, so that a guest that stands still hears of it when it runs again; then the program's
:func:`transfer_done` is called.  What is done at once is said so and is followed by nothing.

Left out: what block I/O costs a driver domain or device model.
"""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from vftsim.kernel import Chain, Engine, Kind, Record, Row, Sim, Sort, Table, entry
from vftsim.kernel.inputs import Feeder
from vftsim.outcome import Outcome, attribute, declare
from vftsim.platform.arithmetic import add_time
from vftsim.platform.cpu.jobs import interrupt_from_outside
from vftsim.platform.cpu.records import domains, work_done
from vftsim.platform.io.packet import Application, application, applications
from vftsim.platform.protection.guard import Guard, guards, must_wait, note_read, note_transfer, note_write
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry, discover
from vftsim.spec.units import DurationNs


class Disk(Row):
    """A disk of a domain; ``model`` is its kind, ``interrupt_ns`` the domain's CPU work at the end of a transfer.

    One that ``is_away`` cannot be reached: its kind serves nothing until it is :func:`reached` again.

    ``present`` requests wait or are served, ``busy`` of its disks serve one, both since ``counted_ns``; ``present_ns``
    and ``busy_ns`` add both up over time until then.  ``response_ns`` adds up the time from asking to the end of the
    ``awaited`` ones among the ``served``.
    """

    model: int
    domain: int
    guard: int
    interrupt_ns: int
    is_away: bool
    present: int
    busy: int
    counted_ns: int
    present_ns: int
    busy_ns: int
    served: int
    awaited: int
    response_ns: int


class DiskUse(Outcome):
    """A disk, or an array of ``disks``: what it served, how busy it was, how long a request took.

    A request is a read or a write that has come to the disk; what only the page cache has is none.
    """

    served: int = declare.total(label="reads and writes served")
    busy_ns: int = declare.total(label="time of disks with a request", unit="ns")
    present_ns: int = declare.total(label="time of requests at the disk", unit="ns")
    awaited: int = declare.total(label="reads and writes served that somebody waited for")
    response_ns: int = declare.total(label="time of these from asking to the end", unit="ns")
    disks: int = attribute()
    iops = declare.rate(served, label="reads and writes")
    use = declare.number(
        source=lambda use: 1e-7 * use.busy_ns / use.seconds / use.disks, unit="%", label="busy", headline=True
    )
    queue = declare.rate(present_ns, factor=1e-9, unit="", label="requests waiting or served, mean")
    response_time = declare.ratio(
        response_ns,
        awaited,
        factor=1e-6,
        unit="ms",
        label="read or write, from asking to the end, mean",
        better="lower",
    )


class GuardedDisk(Record):
    """A link to the next disk of one guard."""

    next_row: int


class WaitingRequest(Record):
    """A request that a guard has not let go yet; ``disk`` 0: a program has only a waiting time to begin.

    ``operation`` is :data:`READ`, :data:`WRITE`, or :data:`WRITE_BACK`: of all that is in the page cache.
    """

    link: int
    disk: int
    program: int
    tag: int
    size_bytes: int
    operation: int


READ, WRITE, WRITE_BACK = 1, 2, 3

PAGE_BYTES = 4096
"""Of memory: what is read is written there (x86)."""

disks = Table("disks", Disk, 4096)
waiting_requests = Table("waiting_disk_requests", WaitingRequest, 1 << 16, "lower the load of the disks")
waiting_list = Chain(waiting_requests, "link")
guarded_disks = Table("guarded_disks", GuardedDisk, beside=disks)
disk_list = Chain(guarded_disks, "next_row")
disk = Sort("disk", by="model")


@disk.slot
def begin_read(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> None:
    """Read for a program, which hears of it."""


@disk.slot
def begin_write(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> bool:
    """Write for a program; True: done at once, False: the program will hear of it."""
    return True


@disk.slot
def takes_at_once(sim: Sim, disk: Disk, size_bytes: int) -> bool:
    """Tell whether a write would be done at once: memory takes it, and no device."""
    return False


@disk.slot
def flush(sim: Sim, disk: Disk, program: int, tag: int) -> bool:
    """Wait until all that was written is on the disk; True: it is, False: the program will hear of it."""
    return True


@disk.slot
def begin_write_back(sim: Sim, disk: Disk, program: int, tag: int) -> bool:
    """Write what memory has for the disk, and let a program, if any, wait as :func:`flush` does; answer as there."""
    return True


@disk.slot
def forget(sim: Sim, disk: Disk) -> None:
    """Lose what the domain has in memory for the disk: nobody waits any more, and what is unwritten stays so."""


@disk.slot
def reached(sim: Sim, disk: Disk) -> None:
    """Serve what waits: the disk can be reached again."""


@application.slot
def transfer_done(sim: Sim, program: Application, tag: int) -> None:
    """Take note that a transfer is over which the program has asked for under that tag."""


@application.slot
def begin_wait(sim: Sim, program: Application, tag: int) -> None:
    """Begin the waiting time that stands for a disk operation with that tag: its guard has let it go."""


def read(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> None:
    """Read for a program, which hears of it, as soon as the domain's guard, if any, lets the request go."""
    if not hold_request(sim, disk.guard, disk.row, program, tag, size_bytes, READ):
        begin_read(sim, disk, program, tag, size_bytes)


def write(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> bool:
    """Write likewise; True: done at once, False: the program will hear of it."""
    is_for_device = not takes_at_once(sim, disk, size_bytes)
    if is_for_device and hold_request(sim, disk.guard, disk.row, program, tag, size_bytes, WRITE):
        return False
    return begin_write(sim, disk, program, tag, size_bytes)


def hold_request(sim: Sim, guard: int, disk: int, program: int, tag: int, size_bytes: int, operation: int) -> bool:
    """Hold a request until the guard, if any, releases it; False: it may begin at once."""
    if guard == 0 or not must_wait(sim, guards(sim)[guard]):
        return False
    row = waiting_requests.new(sim, disk=disk, program=program, tag=tag, size_bytes=size_bytes, operation=operation)
    waiting_list.push(sim, guards(sim)[guard].requests, row)
    return True


def release_requests(sim: Sim, guard: Guard) -> None:
    """Let the disks begin with what has waited."""
    while guard.requests.length > 0:
        row = waiting_list.pop(sim, guard.requests)
        request = waiting_requests(sim)[row]
        disk, program, tag = disks(sim)[request.disk], request.program, request.tag
        if request.disk == 0:
            begin_wait(sim, applications(sim)[program], tag)
        elif request.operation == READ:
            begin_read(sim, disk, program, tag, request.size_bytes)
        elif begin_change(sim, disk, request) and program != 0:
            interrupt_from_outside(sim, domains(sim)[disk.domain], 0, on_disk_interrupt, program, tag)
        waiting_requests.free(sim, row)


def begin_change(sim: Sim, disk: Disk, request: WaitingRequest) -> bool:
    """Begin with a request that changes what is on the disk; True: done at once."""
    if request.operation == WRITE_BACK:
        return begin_write_back(sim, disk, request.program, request.tag)
    return begin_write(sim, disk, request.program, request.tag, request.size_bytes)


def count_requests(sim: Sim, disk: Disk, present: int, busy: int) -> None:
    """Note that so many requests more are at a disk from now on, and that so many disks more serve one."""
    passed_ns = sim.now_ns - disk.counted_ns
    disk.present_ns = add_time(sim, disk.present_ns, disk.present * passed_ns)
    disk.busy_ns = add_time(sim, disk.busy_ns, disk.busy * passed_ns)
    disk.counted_ns = sim.now_ns
    disk.present += present
    disk.busy += busy


def count_served(sim: Sim, disk: Disk, asked_ns: int, is_awaited: bool, written_bytes: int) -> None:
    """Count a request that is done, which is at the disk no longer; the domain's guard, if any, notes what it wrote."""
    count_requests(sim, disk, -1, 0)
    disk.served += 1
    if is_awaited:
        disk.awaited += 1
        disk.response_ns += sim.now_ns - asked_ns
    if disk.guard != 0 and written_bytes > 0:
        note_write(sim, guards(sim)[disk.guard], written_bytes)


def replica_reads(sim: Sim, disk: Disk, size_bytes: int) -> int:
    """Let the domain's guard, if any, take note of a read that begins; return what the end of it is to be told."""
    return note_read(sim, guards(sim)[disk.guard], size_bytes) if disk.guard != 0 else 0


def end_transfer(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int, is_read: bool, replica_ns: int) -> None:
    """Let a program hear of the end of a transfer, or only its kernel (0); a guard of the domain takes note of it."""
    domain = domains(sim)[disk.domain]
    demand_ns = disk.interrupt_ns
    # The guard first: what its entry costs is part of the interrupt's work.
    if disk.guard != 0:
        if is_read:
            applications(sim)[program].pages_dirtied += -(-size_bytes // PAGE_BYTES)
        demand_ns += note_transfer(sim, guards(sim)[disk.guard], size_bytes, is_read, replica_ns)
    interrupt_from_outside(sim, domain, demand_ns, on_disk_interrupt, program, tag)


@entry
def guard_disk(sim: Sim, guard: int, disk: int) -> None:
    """Put a disk under a guard."""
    disks(sim)[disk].guard = guard
    disk_list.push(sim, guards(sim)[guard].disks, disk)


@work_done
def on_disk_interrupt(sim: Sim, application_row: int, argument: int) -> None:
    """The domain has handled the interrupt: wake the program, if any waits for it."""
    if application_row != 0:
        transfer_done(sim, applications(sim)[application_row], argument)


class DiskSpec(Spec):
    """Base of the disks; one subclass a file in :mod:`vftsim.platform.io.disks`."""

    part: ClassVar[Kind]
    outcome: ClassVar[type[DiskUse]] = DiskUse

    interrupt: DurationNs = Field(
        5_000, description="CPU work of the domain at the end of a transfer. Assumption: 8,000 cycles at 1.6 GHz."
    )

    @property
    def objectives(self) -> tuple[str, ...]:
        """What its figures say where it keeps up with what is asked of it."""
        return ()

    def remark(self, use: Any) -> str:
        """Return what a reader of a run must know of it by what it did; nothing by default."""
        return ""

    def without_effect(self) -> Mapping[str, str]:
        """Return why parameters have no effect with the others' values, by key."""
        return {}

    def unread(self, is_logged: bool) -> Mapping[str, str]:
        """Return the keys of programs that have no effect with it, each with the reason."""
        return {}

    def install(self, engine: Engine, row: int) -> None:
        """Write these parameters into the records of a disk."""

    def draw(self, engine: Engine, row: int, feeder: Feeder, streams: Streams) -> None:
        """Add the feeds of what is drawn for a disk; nothing is by default."""

    def measured(self, engine: Engine, row: int) -> DiskUse:
        """Return what it has done from the start of the run on."""
        return DiskUse(**use_of(engine, row), disks=1)


DISKS: PartRegistry[DiskSpec] = PartRegistry("disk", DiskSpec, disk.kinds)


def disk_kinds() -> PartRegistry[DiskSpec]:
    """Return the registry with every disk of :mod:`vftsim.platform.io.disks` in it."""
    discover("vftsim.platform.io.disks")
    return DISKS


def add_disk(engine: Engine, domain: int, spec: DiskSpec, feeder: Feeder, streams: Streams) -> int:
    """Give a domain a disk; return its row."""
    row, _ = engine.add(disks, model=engine.number(spec.part), domain=domain, interrupt_ns=spec.interrupt)
    spec.install(engine, row)
    spec.draw(engine, row, feeder, streams)
    return row


def use_of(engine: Engine, row: int) -> dict[str, Any]:
    """Return what the record of a disk counts, up to now, by the names of :class:`DiskUse`."""
    disk: Any = engine.rows(disks)[row]
    passed_ns = engine.now_ns - int(disk.counted_ns)
    return {
        "served": int(disk.served),
        "busy_ns": int(disk.busy_ns) + int(disk.busy) * passed_ns,
        "present_ns": int(disk.present_ns) + int(disk.present) * passed_ns,
        "awaited": int(disk.awaited),
        "response_ns": int(disk.response_ns),
    }
