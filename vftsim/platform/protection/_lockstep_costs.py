"""What recording costs a guest in the form ``counted``: events are counted, each has its price.

Prices that belong to a packet are part of the interrupt that brings it.  The others (timer interrupts, clock reads by
CPU time, exits, context switches, batches sent) add up and are paid as interrupt work: with the next packet, or after
``settling`` at the latest, so that a guest without packets pays too.
"""

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table
from vftsim.platform.cpu.records import domains
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection._lockstep_parameters import LockstepParameters
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.machine import work_speed
from vftsim.spec.units import S


class Recording(Record):
    """Prices and counts of one guard; ``due_ns`` is not yet paid.

    ``exits_seen``, ``switches_seen`` and ``run_seen_ns`` are how far the counts of others have been looked at;
    ``clock_credit`` is the part of a clock read that is still to come.  A read of the secondary on a path of its own
    takes ``read_ns`` and ``read_ns_a_byte``.
    """

    is_counted: bool
    is_settling: bool
    has_disk_reads: bool
    secondary_reads: bool
    read_ns: int
    read_ns_a_byte: float
    settling_ns: int
    disk_ns: int
    batch_ns: int
    switch_ns: int
    exit_ns: int
    clock_read_ns: int
    clock_reads_a_ns: float
    due_ns: int
    exits_seen: int
    switches_seen: int
    run_seen_ns: int
    clock_credit: float
    packets: int
    outputs: int
    clock_reads: int
    disk_operations: int
    exits: int
    switches: int
    batches: int


recordings = Table("recordings", Recording, beside=guards)
COUNTS = ("packets", "outputs", "clock_reads", "disk_operations", "exits", "switches", "batches")


def install(engine: Engine, guard: int, spec: LockstepParameters) -> None:
    """Write the prices into the record of a guard."""
    recording, cost = engine.rows(recordings)[guard], spec.cost
    recording.is_counted = cost.is_counted
    recording.has_disk_reads = spec.log.disk_reads
    disk = spec.secondary.disk
    recording.secondary_reads = not spec.log.disk_reads and disk is not None
    if disk is not None:
        recording.read_ns = disk.service
        recording.read_ns_a_byte = 0.0 if disk.rate is None else BITS_NS / disk.rate
    recording.settling_ns = cost.settling
    recording.disk_ns = cost.disk_operation
    recording.batch_ns = cost.batch
    recording.switch_ns = cost.context_switch
    recording.exit_ns = cost.exit
    recording.clock_read_ns = cost.clock_read
    recording.clock_reads_a_ns = spec.log.clock_read_rate * work_speed(engine, guard) / S


def counts(engine: Engine, guard: int) -> dict[str, int]:
    """Return what was counted, by name; nothing in the other form."""
    recording = engine.rows(recordings)[guard]
    return {f"logged_{name}": int(getattr(recording, name)) for name in COUNTS} if recording.is_counted else {}


def start(sim: Sim, guard: Guard, run_ns: int, recording: Recording = BESIDE) -> None:
    """Count from now on; the guest has used ``run_ns`` of CPU time."""
    recording.due_ns = 0
    recording.exits_seen = guard.exits
    recording.switches_seen = domains(sim)[guard.domain].switches
    recording.run_seen_ns = run_ns


def count_exits(sim: Sim, guard: Guard, recording: Recording) -> None:
    """Add the price of exits and switches since the last look."""
    fresh = guard.exits - recording.exits_seen
    recording.exits_seen = guard.exits
    recording.exits += fresh
    recording.due_ns += fresh * recording.exit_ns
    switches = domains(sim)[guard.domain].switches
    fresh = switches - recording.switches_seen
    recording.switches_seen = switches
    recording.switches += fresh
    recording.due_ns += fresh * recording.switch_ns


def fresh_clock_reads(recording: Recording, run_ns: int) -> int:
    """Return how many clock reads came with the CPU time since the last look."""
    recording.clock_credit += (run_ns - recording.run_seen_ns) * recording.clock_reads_a_ns
    recording.run_seen_ns = run_ns
    reads = int(recording.clock_credit)
    recording.clock_credit -= reads
    return reads


def take_due_ns(recording: Recording) -> int:
    """Return what is due, which is paid now."""
    due_ns = recording.due_ns
    recording.due_ns = 0
    return due_ns
