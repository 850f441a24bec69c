"""A crash of the primary's host under mechanisms that keep a backup in step: who is there to take over, and from where.

A backup that gets states goes on from the last one that it has, one that follows the guest's inputs from just now.
While the channel is lost the latter is where the channel failed: see :mod:`.rollback`.
"""

from vftsim.kernel import Sim, part
from vftsim.platform.protection import rollback
from vftsim.platform.protection._replication_hearing import heard_ns
from vftsim.platform.protection._replication_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    Replication,
    abandon,
    replications,
)
from vftsim.platform.protection.account import note
from vftsim.platform.protection.guard import Guard
from vftsim.platform.protection.mechanism import CRASH, lose_machine
from vftsim.platform.protection.replication import end_life, fail_over, look_back, use_end


@part
def crash_primary(sim: Sim, guard: Guard) -> None:
    """Fail over to the last state received, if there is a backup; that state must be foreseen."""
    replication = replications(sim)[guard.row]
    if guard.dead or replication.state == FAILING_OVER:
        return
    if not can_take_over(replication):
        lose_primary(sim, guard, replication)
    elif not replication.is_cut:
        look_back(sim, guard, False)
    else:
        note(sim, guard, CRASH)
        last_heard = use_end(sim, guard)
        fail_over(sim, guard, replication, last_heard + replication.timeout_ns)


@part
def crash_followed_primary(sim: Sim, guard: Guard) -> None:
    """Fail over to a backup that has followed the guest up to now, or to the loss of the channel; see there."""
    replication = replications(sim)[guard.row]
    if guard.dead or replication.state == FAILING_OVER:
        return
    if not can_take_over(replication):
        lose_primary(sim, guard, replication)
        return
    if replication.state == BROKEN and not rollback.is_cut_at_loss(sim, guard):
        look_back(sim, guard, False)
        return
    note(sim, guard, CRASH)
    last_heard_ns = rollback.use_loss(sim, guard) if replication.state == BROKEN else heard_ns(sim, guard)
    if not replication.is_cut:
        end_life(sim, guard)
    fail_over(sim, guard, replication, last_heard_ns + replication.timeout_ns)


@part
def can_take_over(replication: Replication) -> bool:
    """Tell whether there is a backup that takes over if the primary fails now."""
    return replication.state in (PROTECTED, BROKEN) and not replication.is_backup_dead and not replication.is_split


@part
def lose_primary(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Lose a primary that nobody takes over."""
    replication.step = 0
    replication.alarm = 0
    abandon(sim, guard)
    lose_machine(sim, guard)


@part
def look_back_to_loss(sim: Sim, guard: Guard, is_fenced: bool) -> None:
    """End this pass: the guest must be rolled back to the loss of the channel."""
    rollback.want_loss(sim, guard, is_fenced, heard_ns(sim, guard))
