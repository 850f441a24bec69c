"""The compiled engine's event queue: a wheel of coarse slots before a binary heap.

An event beyond the present slot (half a millisecond) goes into its slot's list unsorted; when time comes to a
slot, its events go through the heap, which puts them in the total order of :mod:`vftsim.kernel.order`.  So the heap
holds few events, however many timers wait; most timers of a protocol are stale when their time comes, and cost little
on the way.  An event more than one turn of the wheel ahead stays in its list until its turn comes round.

(A calendar queue in the sense of Brown 1988 with a heap for the present day; the order does not depend on it.)
"""

from typing import Any

from vftsim.kernel.engine import FOREVER_NS, MOST_EVENTS
from vftsim.kernel.order import ENTITY_BITS

PAST, CROWDED = 900, 901
_SLOT_BITS = 19
_SLOTS = 1 << 14
_FEW, _SOON = 8, 64
"""While no slot holds an event, so few events in all that come within so many slots go to the heap at once."""

# A slot's list is walked by ``ns`` and ``after``: side by side they mostly lie in one line of the cache.
_ENTRY: Any = [("ns", "i8"), ("after", "i4"), ("action", "i4"), ("order", "i8"), ("token", "i8"), ("target", "i8")]
_ITEM: Any = [("ns", "i8"), ("row", "i8")]

NUMBERS: list[Any] = [
    ("tokens", "i8"),
    ("planned", "i8"),
    ("heap_length", "i8"),
    ("has_gap", "i8"),
    ("slot", "i8"),
    ("entries_used", "i8"),
    ("entries_unused", "i4"),
]
ARRAYS: list[Any] = [("heap", _ITEM, MOST_EVENTS), ("slots", "i4", _SLOTS), ("entries", _ENTRY, MOST_EVENTS)]
"""What the queue keeps in the state: events are ``entries``, of which row 0 is nobody; the heap has their times."""

SOURCE = f"""
def at(sim, time_ns, kind, entity, action, target):
    if time_ns < sim.now_ns or sim.planned >= {MOST_EVENTS - 1}:
        fail(sim, {PAST} if time_ns < sim.now_ns else {CROWDED})
        return 0
    sim.tokens += 1
    sim.planned += 1
    row = sim.entries_unused
    if row != 0:
        sim.entries_unused = sim.entries[row].after
    else:
        sim.entries_used += 1
        row = sim.entries_used
    entry = sim.entries[row]
    entry.ns = time_ns
    entry.order = (kind << {ENTITY_BITS}) | entity
    entry.token = sim.tokens
    entry.action = action
    entry.target = target
    slot = time_ns >> {_SLOT_BITS}
    # Nothing waits in a slot: the present slot may move ahead, and what comes soon needs no list.
    if sim.heap_length < {_FEW} and sim.planned - 1 == sim.heap_length - sim.has_gap:
        if sim.slot < slot and slot < (sim.now_ns >> {_SLOT_BITS}) + {_SOON}:
            sim.slot = slot
    if slot <= sim.slot:
        push_event(sim, time_ns, row)
    else:
        entry.after = sim.slots[slot & {_SLOTS - 1}]
        sim.slots[slot & {_SLOTS - 1}] = row
    return entry.token


def is_due_before(sim, kind):
    # Whatever is due at this instant is in the heap.
    # The event that takes place now has left its gap at the top, and must not count.
    close_gap(sim)
    if sim.heap_length == 0:
        return False
    first = sim.heap[0]
    return first.ns == sim.now_ns and sim.entries[first.row].order < kind << {ENTITY_BITS}


def fail(sim, failure):
    if sim.failure == 0:
        sim.failure = failure


def push_event(sim, time_ns, row):
    if sim.has_gap != 0:
        sim.has_gap = 0
        sink(sim, time_ns, row)
        return
    here = sim.heap_length
    sim.heap_length = here + 1
    rise(sim, here, time_ns, row)


def rise(sim, here, time_ns, row):
    while here > 0:
        above = (here - 1) >> 1
        other = sim.heap[above]
        if other.ns < time_ns or (other.ns == time_ns and is_earlier(sim, other.row, row)):
            break
        sim.heap[here].ns = other.ns
        sim.heap[here].row = other.row
        here = above
    sim.heap[here].ns = time_ns
    sim.heap[here].row = row


def is_earlier(sim, one, other):
    # Of two events of one instant.
    if sim.entries[one].order != sim.entries[other].order:
        return sim.entries[one].order < sim.entries[other].order
    return sim.entries[one].token < sim.entries[other].token


def close_gap(sim):
    # An event that takes place leaves its gap at the top of the heap: the first that it plans mostly fills it.
    if sim.has_gap != 0:
        sim.has_gap = 0
        length = sim.heap_length - 1
        sim.heap_length = length
        if length > 0:
            last = sim.heap[length]
            sink(sim, last.ns, last.row)


def sink(sim, time_ns, row):
    length = sim.heap_length
    # The gap goes down to the end before it is filled: what fills it mostly belongs there, so comparing it on the way
    # is lost.  Which child is the earlier is added as a number: a branch would be guessed wrong half the time.
    here = 0
    below = 1
    while below < length:
        if below + 1 < length:
            left = sim.heap[below]
            right = sim.heap[below + 1]
            is_right = right.ns < left.ns
            if right.ns == left.ns:
                is_right = is_earlier(sim, right.row, left.row)
            below += is_right
        sim.heap[here].ns = sim.heap[below].ns
        sim.heap[here].row = sim.heap[below].row
        here = below
        below = 2 * here + 1
    rise(sim, here, time_ns, row)


def turn(sim, until_ns):
    last = until_ns >> {_SLOT_BITS}
    idle = 0
    while sim.heap_length == 0 and sim.planned > 0 and sim.slot < last:
        sim.slot += 1
        if sim.slots[sim.slot & {_SLOTS - 1}] != 0:
            empty_slot(sim)
        idle += 1
        if idle == {_SLOTS} and sim.heap_length == 0:
            # A whole turn without an event: what is planned lies far ahead.
            sim.slot = min(earliest_slot(sim), last) - 1
            idle = 0


def earliest_slot(sim):
    earliest = {FOREVER_NS}
    for number in range({_SLOTS}):
        row = sim.slots[number]
        while row != 0:
            earliest = min(earliest, sim.entries[row].ns >> {_SLOT_BITS})
            row = sim.entries[row].after
    return earliest


def empty_slot(sim):
    # Detached first: events of a later turn of the wheel go back into this same list.
    row = sim.slots[sim.slot & {_SLOTS - 1}]
    sim.slots[sim.slot & {_SLOTS - 1}] = 0
    while row != 0:
        entry = sim.entries[row]
        after = entry.after
        if entry.ns >> {_SLOT_BITS} == sim.slot:
            push_event(sim, entry.ns, row)
        else:
            entry.after = sim.slots[sim.slot & {_SLOTS - 1}]
            sim.slots[sim.slot & {_SLOTS - 1}] = row
        row = after


def run(sim, until_ns, most):
    while sim.events < most:
        if sim.heap_length == 0:
            turn(sim, until_ns)
            if sim.heap_length == 0:
                break
        first = sim.heap[0]
        if first.ns >= until_ns:
            break
        sim.now_ns = first.ns
        row = first.row
        sim.has_gap = 1
        sim.planned -= 1
        sim.events += 1
        entry = sim.entries[row]
        # Free before the call, which may take this very row for the next event.
        entry.after = sim.entries_unused
        sim.entries_unused = row
        call_event(sim, entry.action, entry.target, entry.token)
        close_gap(sim)
        if sim.watching != 0:
            call_watch(sim, sim.watching)
        # Back to the driver between two events, with the queue whole: it calls again to go on.
        if sim.wants_input or sim.failure != 0:
            return 1
    # A run that ends by its count stands before further events: time must not pass them.
    if until_ns < {FOREVER_NS} and sim.events < most:
        sim.now_ns = max(sim.now_ns, until_ns)
    return 0
"""

TOO_MANY = f"more than {MOST_EVENTS - 1} events are planned at one time; lower the rate, or shorten time-outs"
