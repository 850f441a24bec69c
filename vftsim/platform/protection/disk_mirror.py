"""What a guest's programs write to disks, on its way to the disk of the backup.

Rule (Remus, NSDI 2008, on disk buffering; Xen ``tools/blktap2/drivers/block-remus.c``; QEMU
``docs/block-replication.txt``): a write goes to the backup by itself while the guest runs, in the order of writes, and
delays no program.  Under checkpoints it waits in the backup's memory until the state is committed that covers it
(:mod:`.state_stream`); of COLO, whose backup has a disk that runs on, it is applied at once.

It takes the wire of states: one of its own in order, behind what is there; a shared one among the others' traffic.
What a lost channel keeps back is sent when it works again, before anything else.

Assumptions: a write goes when the primary's disk has it (the real driver sends it just before); it has no header.
Where both hosts reach the storage nothing is ``mirrored``, as under Kemari.  4 KiB of it cost both hosts the
CPU time of a page of memory, with the state.  A first copy of the disk is part of :mod:`.reprotection`.
"""

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table
from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection._replication_records import BROKEN, PROTECTED, replicated, replications
from vftsim.platform.protection.channel import Channel, channels, push
from vftsim.platform.protection.guard import Guard, guards, note_write

BUFFERED, AT_ONCE = 1, 2
"""What a backup does with a write; 0: nothing is mirrored."""


class DiskMirror(Record):
    """The writes of one guard that go to the disk of the backup, which are ``applied`` so.

    ``written_bytes`` are since the last state was taken, ``mirrored_bytes`` of the whole run.  What has been put on the
    wire has left at ``depart_ns``; a lost channel keeps ``unsent_bytes`` back.
    """

    applied: int
    written_bytes: int
    mirrored_bytes: int
    depart_ns: int
    unsent_bytes: int


disk_mirrors = Table("disk_mirrors", DiskMirror, beside=guards)


def install(engine: Engine, guard: int, applied: int) -> None:
    """Write down what a backup does with writes."""
    engine.rows(disk_mirrors)[guard].applied = applied


@replicated.implements(note_write)
def mirror_write(sim: Sim, guard: Guard, size_bytes: int) -> None:
    """Send what a disk of a protected guest has written, also of one that was stopped for a crash to come."""
    mirror, replication = disk_mirrors(sim)[guard.row], replications(sim)[guard.row]
    # Its last state may still wait for the wire, and comes no earlier than with the crash unknown.
    if mirror.applied == 0 or replication.state not in (PROTECTED, BROKEN):
        return
    mirror.mirrored_bytes += size_bytes
    mirror.written_bytes += size_bytes
    if replication.state == BROKEN:
        mirror.unsent_bytes += size_bytes
    else:
        mirror.depart_ns = push(sim, channels(sim)[guard.row], size_bytes)


def begin(sim: Sim, guard: Guard, mirror: DiskMirror = BESIDE) -> None:
    """Begin with a backup whose disk is in step."""
    mirror.written_bytes = mirror.unsent_bytes = 0
    mirror.depart_ns = sim.now_ns


def cover(sim: Sim, guard: Guard, mirror: DiskMirror = BESIDE) -> int:
    """Return the bytes that a state covers which is taken now: those since the one before."""
    written_bytes = mirror.written_bytes
    mirror.written_bytes = 0
    return written_bytes


def buffered(mirror: DiskMirror, size_bytes: int) -> int:
    """Return how many of so many bytes wait at the backup for the state that covers them."""
    return size_bytes if mirror.applied == BUFFERED else 0


def lose(sim: Sim, guard: Guard, state_depart_ns: int, mirror: DiskMirror = BESIDE, channel: Channel = BESIDE) -> None:
    """Keep back what has not left by now and is not in front of a state, which keeps it back with its rest."""
    left_ns = mirror.depart_ns - max(sim.now_ns, state_depart_ns)
    if left_ns > 0:
        mirror.unsent_bytes = product_quotient(left_ns, channel.rate_bits_per_s, BITS_NS)
        # It is counted again when it is sent.
        channel.sent_bytes -= mirror.unsent_bytes
        mirror.depart_ns -= left_ns


def send_again(sim: Sim, guard: Guard, mirror: DiskMirror = BESIDE, channel: Channel = BESIDE) -> None:
    """Send what a channel has kept back that works again, and has nothing else to send yet."""
    mirror.depart_ns = channel.free_ns = sim.now_ns
    if mirror.unsent_bytes > 0:
        mirror.depart_ns = push(sim, channel, mirror.unsent_bytes)
        mirror.unsent_bytes = 0


def follow(mirror: DiskMirror, channel: Channel, behind_ns: int, state_depart_ns: int, rate_before: int) -> None:
    """Let writes that were ``behind_ns`` behind a state follow it over a channel that has changed."""
    channel.free_ns = state_depart_ns + product_quotient(max(0, behind_ns), rate_before, channel.rate_bits_per_s)
    # What is in front of the state is through with it.
    mirror.depart_ns = channel.free_ns if behind_ns > 0 else min(mirror.depart_ns, state_depart_ns)
