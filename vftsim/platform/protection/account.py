"""What happened to a guarded machine, and when: a timeline and counters, both in words.

A word is known to the run by a number that follows from the word itself, so that parts outside this package can add
their own.
"""

from zlib import crc32

from vftsim.kernel import Chain, Engine, Record, Sim, Table
from vftsim.platform.protection.guard import Guard, guards


class Moment(Record):
    """An entry of the timeline: what happened to a guard's machine at an instant, which may be still to come."""

    next_row: int
    time_ns: int
    guard: int
    event: int


class Tally(Record):
    """A counter of a guard."""

    next_row: int
    counter: int
    amount: int


moments = Table("moments", Moment, 1 << 20, "let fewer faults strike")
tallies = Table("tallies", Tally, 1 << 14)
moment_list = Chain(moments, "next_row")
tally_list = Chain(tallies, "next_row")

WORDS: dict[int, str] = {}
"""The words by their numbers."""
UNITS: dict[str, str] = {}
"""Units of counters that have one, by their words."""


def word(text: str, unit: str = "") -> int:
    """Return the number of a word for timelines or counters; ``unit`` is what such a counter counts in.

    A TypeError says that another word has that number already.
    """
    number = crc32(text.encode())
    if WORDS.setdefault(number, text) != text:
        raise TypeError(f"'{text}' and '{WORDS[number]}' have the same number; choose another word")
    if unit:
        UNITS[text] = unit
    return number


def note(sim: Sim, guard: Guard, event: int) -> None:
    """Put this instant on the timeline."""
    write(sim, guard, sim.now_ns, event)


def note_at(sim: Sim, guard: Guard, time_ns: int, event: int) -> None:
    """Put an instant on the timeline at which the backup will do something, unless it dies before."""
    moment_list.push(sim, guard.foretold, write(sim, guard, time_ns, event))


def write(sim: Sim, guard: Guard, time_ns: int, event: int) -> int:
    """Write an entry of the timeline; return its row."""
    return moments.new(sim, time_ns=time_ns, guard=guard.row, event=event)


def note_alone(sim: Sim, guard: Guard) -> None:
    """Note that a primary goes on alone, and since when its guest has stood still if it does."""
    if guard.stopped:
        write(sim, guard, guard.stopped_since_ns, STANDS_STILL)
    note(sim, guard, ALONE)


def take_back(sim: Sim, guard: Guard) -> None:
    """Take what is still to come from the timeline: the backup, which would have done it, is dead."""
    while guard.foretold.length > 0:
        moment = moments(sim)[moment_list.pop(sim, guard.foretold)]
        if moment.time_ns > sim.now_ns:
            moment.guard = 0


def count(sim: Sim, guard: Guard, counter: int, amount: int) -> None:
    """Add to a counter; it exists from then on, if only as 0."""
    row = guard.tallies.first
    while row != 0 and tallies(sim)[row].counter != counter:
        row = tallies(sim)[row].next_row
    if row == 0:
        row = tallies.new(sim, counter=counter, amount=0)
        tally_list.push(sim, guard.tallies, row)
    tallies(sim)[row].amount += amount


def timeline(engine: Engine, guard: int) -> list[tuple[int, str]]:
    """Return what has happened to a guard's machine, as (instant in ns, what), in the order in which it was noted."""
    return [each for each in _noted(engine, guard) if each[0] <= engine.now_ns]


def is_more_to_come(engine: Engine, guard: int) -> bool:
    """Tell whether something on a guard's timeline has not happened yet."""
    return any(time_ns > engine.now_ns for time_ns, _ in _noted(engine, guard))


def _noted(engine: Engine, guard: int) -> list[tuple[int, str]]:
    rows = engine.rows(moments)
    noted = [rows[number] for number in range(1, engine.used(moments) + 1)]
    return [(int(moment.time_ns), WORDS[int(moment.event)]) for moment in noted if moment.guard == guard]


def counters(engine: Engine, guard: int) -> dict[str, int]:
    """Return a guard's counters by name."""
    totals: dict[str, int] = {}
    row = int(engine.rows(guards)[guard].tallies.first)
    while row:
        tally = engine.rows(tallies)[row]
        totals[WORDS[int(tally.counter)]] = int(tally.amount)
        row = int(tally.next_row)
    return totals


# What more than one mechanism notes or counts

ALONE = word("primary goes on alone")
BACKUP_CRASH = word("backup crash")
CHANNEL_LOSS = word("channel loss")
CHANNEL_WORKS = word("channel works again")
DECLARED = word("failure declared")
FAILOVERS = word("failovers")
INPUTS_WHILE_SPLIT = word("inputs_while_split")
ISSUED_AGAIN = word("outputs_issued_again")
ISSUED_BY_SECONDARY = word("outputs_issued_by_secondary")
LIVE = word("secondary live")
LIVE_TOO = word("secondary live too")
NOW_PROTECTED = word("protected")
STANDS_STILL = word("guest stands still")
WHILE_SPLIT = word("outputs_while_split")
