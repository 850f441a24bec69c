"""Levels of the state that a driver has watched after each event: packets at a program, the backlog of a link, losses.

A level of losses tells how near the next one is: it counts what was lost at a place since watching began, in units of
:data:`LOSS`, which no queue reaches, and what is in the queue there.
"""

from vftsim.kernel import Engine, Row, Sim, Table, entry, watch
from vftsim.platform.io.link import backlog_ns, links
from vftsim.platform.io.packet import applications, drops, held, refused

LOSS = 1 << 40
PROGRAM, LINK = 1, 2


class Watched(Row):
    """What is watched: a row of a program or a link, and whether its losses are.

    ``highest`` is the highest level since watching began; at ``limit`` the run pauses, and ``is_reached``.
    """

    kind: int
    is_of_losses: bool
    lost_before: int
    limit: int
    highest: int
    is_reached: bool


watched = Table("watched", Watched, 1, is_fixed=True)


def queued(sim: Sim, watched: Watched) -> int:
    """Return what is in the queue: packets, or the nanoseconds until a link is free."""
    if watched.kind == LINK:
        return backlog_ns(sim, links(sim)[watched.row])
    return held(sim, applications(sim)[watched.row])


def lost_by_now(sim: Sim, watched: Watched) -> int:
    """Return how many packets have found no room in it, or were lost on the way behind it."""
    if watched.kind == LINK:
        link = links(sim)[watched.row]
        return drops(sim)[link.queue_full].count + (drops(sim)[link.lost].count if link.losses != 0 else 0)
    return refused(sim, applications(sim)[watched.row])


def check_level(sim: Sim, watched: Watched) -> None:
    """Take note of the level, and pause the run at the limit."""
    level = queued(sim, watched)
    if watched.is_of_losses:
        level += (lost_by_now(sim, watched) - watched.lost_before) * LOSS
    watched.highest = max(watched.highest, level)
    if level >= watched.limit:
        watched.is_reached = True
        sim.wants_input = True


@watch
def check_after_event(sim: Sim) -> None:
    """Look at what is watched."""
    check_level(sim, watched(sim)[0])


@entry
def begin_watching(sim: Sim, action: int, limit: int) -> int:
    """Watch from now on, ``action`` after each event, until the limit is reached; tell whether it is already."""
    watched_record = watched(sim)[0]
    sim.watching = action
    watched_record.limit = limit
    watched_record.is_reached = False
    watched_record.highest = 0
    check_level(sim, watched_record)
    sim.wants_input = False
    return int(watched_record.is_reached)


@entry
def level_now(sim: Sim) -> int:
    """Return what is in the queue that is watched; -1: its program does not say."""
    return queued(sim, watched(sim)[0])


@entry
def forget_losses(sim: Sim) -> None:
    """Count losses from now on."""
    watched_record = watched(sim)[0]
    watched_record.lost_before = lost_by_now(sim, watched_record)


ACTIONS = (check_after_event,)
ENTRIES = (begin_watching, level_now, forget_losses)
TABLES = (watched,)


def choose_level(engine: Engine, kind: int, row: int, *, is_of_losses: bool) -> bool:
    """Say what is to be watched; false: it has no level."""
    watched_record = engine.rows(watched)[0]
    watched_record.kind, watched_record.row, watched_record.is_of_losses = kind, row, is_of_losses
    return engine.call(level_now) >= 0
