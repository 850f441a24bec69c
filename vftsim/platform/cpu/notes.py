"""The trace of a host's schedule: which virtual CPU ran on which physical one, and when.

Notes are rows of a log that the driver empties; writing them changes nothing in the run.
"""

from vftsim.kernel import Record, Sim, Table

WOKEN, DISPATCHED, STOPPED, PRIORITY = 1, 2, 3, 4
MOST_NOTES = 1 << 12


class Note(Record):
    """One scheduling event; ``value`` is a class of priority, or a state for ``STOPPED``."""

    time_ns: int
    event: int
    pcpu: int
    vcpu: int
    value: int


class NoteCount(Record):
    """How many notes the log holds."""

    written: int


notes = Table("notes", Note, MOST_NOTES, is_fixed=True)
note_count = Table("note_count", NoteCount, 2, is_fixed=True)


def note(sim: Sim, event: int, pcpu: int, vcpu: int, value: int) -> None:
    """Write a note; the driver is called when the log is three quarters full."""
    count = note_count(sim)[1]
    if count.written + 1 < MOST_NOTES:
        count.written += 1
    row = notes(sim)[count.written]
    row.time_ns = sim.now_ns
    row.event = event
    row.pcpu = pcpu
    row.vcpu = vcpu
    row.value = value
    if count.written > MOST_NOTES * 3 // 4:
        sim.wants_input = True
