"""Disks of domains: what a program asks of one, and how it hears that a transfer is over.

A program names itself and a ``tag`` of its own in what it asks.  A transfer that takes time ends with an interrupt on
the domain's first vCPU, so that a guest that stands still hears of it when it runs again; then the program's
:func:`transfer_done` is called.  What is done at once is said so and is followed by nothing.

Left out: what block I/O costs a driver domain or device model; the record of disk reads that a replaying secondary
needs where it is priced by factors (there lockstep takes a rate of reads as a parameter).
"""

from typing import ClassVar

from pydantic import Field

from vftsim.kernel import Chain, Engine, Kind, Record, Sim, Sort, Table, entry, part
from vftsim.platform.cpu.jobs import raise_interrupt
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.io.packet import Application, application, applications
from vftsim.platform.protection.guard import guards, note_read, note_transfer
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry, discover
from vftsim.spec.units import DurationNs


class Disk(Record):
    """A disk of a domain; ``model`` is its kind, ``interrupt_ns`` the domain's CPU work at the end of a transfer.

    One that ``is_away`` cannot be reached: its kind serves nothing until it is :func:`reached` again.
    """

    row: int
    model: int
    domain: int
    guard: int
    interrupt_ns: int
    is_away: bool


class GuardedDisk(Record):
    """A link to the next disk of one guard."""

    next_row: int


disks = Table("disks", Disk, 4096)
guarded_disks = Table("guarded_disks", GuardedDisk, beside=disks)
disk_list = Chain(guarded_disks, "next_row")
disk = Sort("disk", by="model")


@disk.slot
def read(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> None:
    """Read for a program, which hears of it."""


@disk.slot
def write(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int) -> bool:
    """Write for a program; True: done at once, False: the program will hear of it."""
    return True


@disk.slot
def flush(sim: Sim, disk: Disk, program: int, tag: int) -> bool:
    """Wait until all that was written is on the disk; True: it is, False: the program will hear of it."""
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


@part
def replica_reads(sim: Sim, disk: Disk, size_bytes: int) -> int:
    """Let the domain's guard, if any, take note of a read that begins; return what the end of it is to be told."""
    return note_read(sim, guards(sim)[disk.guard], size_bytes) if disk.guard != 0 else 0


@part
def end_transfer(sim: Sim, disk: Disk, program: int, tag: int, size_bytes: int, is_read: bool, replica_ns: int) -> None:
    """Let a program hear of the end of a transfer; the domain's guard, if any, takes note of it."""
    domain = domains(sim)[disk.domain]
    demand_ns = disk.interrupt_ns
    # The guard first: what its entry costs is part of the interrupt's work.
    if disk.guard != 0:
        demand_ns += note_transfer(sim, guards(sim)[disk.guard], size_bytes, is_read, replica_ns)
    raise_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu], demand_ns, on_disk_interrupt, program, tag)


@entry
def guard_disk(sim: Sim, guard: int, disk: int) -> int:
    """Put a disk under a guard."""
    disks(sim)[disk].guard = guard
    disk_list.push(sim, guards(sim)[guard].disks, disk)
    return 0


@work_done
def on_disk_interrupt(sim: Sim, application_row: int, argument: int) -> None:
    """The domain has handled the interrupt: wake the program."""
    transfer_done(sim, applications(sim)[application_row], argument)


class DiskSpec(Spec):
    """Base of the disks; one subclass a file in :mod:`vftsim.platform.io.disks`."""

    part: ClassVar[Kind]

    interrupt: DurationNs = Field(
        5_000, description="CPU work of the domain at the end of a transfer. Assumption: 8,000 cycles at 1.6 GHz."
    )

    def install(self, engine: Engine, row: int) -> None:
        """Write these parameters into the records of a disk."""

    def busy_ns(self, engine: Engine, row: int) -> float:
        """Return how long it has worked from the start of the run on; of several disks, on average."""
        return 0.0


DISKS: PartRegistry[DiskSpec] = PartRegistry("disk", DiskSpec)


def disk_kinds() -> PartRegistry[DiskSpec]:
    """Return the registry with every disk of :mod:`vftsim.platform.io.disks` in it."""
    discover("vftsim.platform.io.disks")
    return DISKS


def add_disk(engine: Engine, domain: int, spec: DiskSpec) -> int:
    """Give a domain a disk; return its row."""
    row, record = engine.add(disks, model=engine.number(spec.part), domain=domain, interrupt_ns=spec.interrupt)
    record.row = row
    spec.install(engine, row)
    return row
