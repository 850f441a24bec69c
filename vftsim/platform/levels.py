"""Levels of the state that a driver has watched after each event: packets at a program, the backlog of a link, losses.

A level of losses tells how near the next one is: it counts what was lost at a place since watching began, in units of
:data:`LOSS`, which no queue reaches, and what is in the queue there.
"""

from vftsim.kernel import Engine, Record, Sim, Table, entry, part, watch
from vftsim.platform.io.link import backlog_ns, links
from vftsim.platform.io.packet import applications, drops, held, refused

LOSS = 1 << 40
PROGRAM, LINK = 1, 2


class Watched(Record):
    """What is watched: a row of a program or a link, and whether its losses are.

    ``highest`` is the highest level since watching began; at ``limit`` the run pauses, and ``is_reached``.
    """

    what: int
    row: int
    is_of_losses: bool
    lost_before: int
    limit: int
    highest: int
    is_reached: bool


watched = Table("watched", Watched, 1, is_fixed=True)


@part
def queued(sim: Sim, own: Watched) -> int:
    """Return what is in the queue: packets, or the nanoseconds until a link is free."""
    if own.what == LINK:
        return backlog_ns(sim, links(sim)[own.row])
    return held(sim, applications(sim)[own.row])


@part
def lost_by_now(sim: Sim, own: Watched) -> int:
    """Return how many packets have found no room in it."""
    if own.what == LINK:
        return drops(sim)[links(sim)[own.row].queue_full].count
    return refused(sim, applications(sim)[own.row])


@part
def look(sim: Sim, own: Watched) -> None:
    """Take note of the level, and pause the run at the limit."""
    level = queued(sim, own)
    if own.is_of_losses:
        level += (lost_by_now(sim, own) - own.lost_before) * LOSS
    own.highest = max(own.highest, level)
    if level >= own.limit:
        own.is_reached = True
        sim.wants_input = True


@watch
def look_after_event(sim: Sim) -> None:
    """Look at what is watched."""
    look(sim, watched(sim)[0])


@entry
def begin_watching(sim: Sim, action: int, limit: int) -> int:
    """Watch from now on, ``action`` after each event, until the limit is reached; tell whether it is already."""
    own = watched(sim)[0]
    sim.watching = action
    own.limit = limit
    own.is_reached = False
    own.highest = 0
    look(sim, own)
    sim.wants_input = False
    return int(own.is_reached)


@entry
def end_watching(sim: Sim, _: int, __: int) -> int:
    """Watch nothing."""
    sim.watching = 0
    return 0


@entry
def level_now(sim: Sim, _: int, __: int) -> int:
    """Return what is in the queue that is watched; -1: its program does not say."""
    return queued(sim, watched(sim)[0])


@entry
def forget_losses(sim: Sim, _: int, __: int) -> int:
    """Count losses from now on."""
    own = watched(sim)[0]
    own.lost_before = lost_by_now(sim, own)
    return 0


ACTIONS = (look_after_event,)
ENTRIES = (begin_watching, end_watching, level_now, forget_losses)
TABLES = (watched,)


def choose_level(engine: Engine, what: int, row: int, *, is_of_losses: bool) -> bool:
    """Say what is to be watched; false: it has no level."""
    own = engine.rows(watched)[0]
    own.what, own.row, own.is_of_losses = what, row, is_of_losses
    return engine.call(level_now) >= 0
