"""How a lockstep secondary goes live when its primary fails; see :mod:`vftsim.platform.protection.lockstep`."""

from vftsim.kernel import BESIDE, EventKind, Sim, at, event
from vftsim.platform.protection import account, audit, commit, log_writer, machine, reprotection, rollback
from vftsim.platform.protection._lockstep_pair import ENTITY, new_plan, truncate, unprotect
from vftsim.platform.protection._lockstep_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    UNPROTECTED,
    Lockstep,
    Plan,
    limit_list,
    limits,
    lockstep,
    locksteps,
    plans,
)
from vftsim.platform.protection.account import count, note, note_at
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.detection import crash_declared_ns
from vftsim.platform.protection.guard import Guard, discard_all, release_all
from vftsim.platform.protection.mechanism import CRASH, announce, expect_primary_crash, lose_machine, primary_crash
from vftsim.platform.protection.pair import pairs
from vftsim.platform.protection.rollback import foreseen_limit_ns, foresights
from vftsim.platform.protection.storage import locked_ns

# Instants, announced beforehand, after which no entry of a primary gets through to its secondary


def add_limit(sim: Sim, guard: Guard, time_ns: int, is_arrival: bool, vlockstep: Lockstep = BESIDE) -> None:
    """Let entries be lost that would leave, or arrive, after ``time_ns``."""
    row = limits.new(sim, time_ns=time_ns, is_arrival=is_arrival)
    limit_list.push(sim, vlockstep.limits, row)
    vlockstep.limit_ns = least_limit_ns(sim, guard, vlockstep)


def remove_limit(sim: Sim, guard: Guard, time_ns: int, is_arrival: bool, vlockstep: Lockstep = BESIDE) -> None:
    """Take one such limit away, if there is one."""
    row = vlockstep.limits.first
    while row != 0 and (limits(sim)[row].time_ns != time_ns or limits(sim)[row].is_arrival != is_arrival):
        row = limits(sim)[row].link
    if row != 0:
        limit_list.remove(sim, vlockstep.limits, row)
        limits.free(sim, row)
        vlockstep.limit_ns = least_limit_ns(sim, guard, vlockstep)


def least_limit_ns(sim: Sim, guard: Guard, vlockstep: Lockstep) -> int:
    """Return the instant after which nothing may leave that is written now, or it is lost."""
    least_ns = foreseen_limit_ns(sim, guard)
    for limit in limits.listed(sim, limit_list, vlockstep.limits):
        time_ns = limit.time_ns
        if limit.is_arrival:
            time_ns -= channels(sim)[guard.row].latency_ns
        least_ns = min(least_ns, time_ns)
    return least_ns


# A failover


@lockstep.implements(expect_primary_crash)
def expect_crash(sim: Sim, guard: Guard, time_ns: int) -> None:
    """Entries that have not left by then die with the primary."""
    add_limit(sim, guard, time_ns, False)


@lockstep.implements(primary_crash)
def crash_primary(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> None:
    """Fail over, if there is somebody to fail over to."""
    # The instant has come for which expect_crash() had announced it.
    remove_limit(sim, guard, sim.now_ns, False)
    if guard.dead or (vlockstep.state == FAILING_OVER and not vlockstep.is_cut):
        return
    if not can_take_over(sim, vlockstep):
        lose_machine(sim, guard)
        return
    limit_ns = sim.now_ns
    declared_ns = crash_declared_ns(sim, guard, sim.now_ns, True)
    if rollback.is_cut_at_loss(sim, guard):
        limit_ns = foresights(sim)[guard.row].loss.limit_ns
        declared_ns = min(declared_ns, vlockstep.loss_declared_ns)
        rollback.use_loss(sim, guard)
        # The cut that has been used limits nothing any more.
        vlockstep.limit_ns = least_limit_ns(sim, guard, vlockstep)
    elif vlockstep.state == BROKEN or vlockstep.resent_ns > sim.now_ns:
        rollback.request_rollback_to_loss(sim, guard, False, 0)
        return
    note(sim, guard, CRASH)
    fail_over(sim, guard, vlockstep, limit_ns, declared_ns)


def can_take_over(sim: Sim, vlockstep: Lockstep) -> bool:
    """Tell whether there is a secondary that takes over if the primary fails now.

    Without fencing one that has declared the loss of the channel is live already, beside the primary.
    """
    if vlockstep.is_backup_dead or vlockstep.state not in (PROTECTED, BROKEN, FAILING_OVER):
        return False
    return vlockstep.is_fenced or vlockstep.state != BROKEN or sim.now_ns < vlockstep.loss_declared_ns


def fail_over(sim: Sim, guard: Guard, vlockstep: Lockstep, limit_ns: int, declared_ns: int) -> None:
    """Plan the secondary's going live; it has what left the primary by ``limit_ns``."""
    pair = pairs(sim)[vlockstep.pair]
    if vlockstep.state == PROTECTED:
        # Trains up to the crash belong to the log, and nothing is written after the cut.
        log_writer.advance(sim, pair)
        truncate(sim, guard, vlockstep)
    # From here on a further crash of the primary's host changes nothing (crash_primary()).
    vlockstep.is_cut = False
    row = new_plan(sim, guard, vlockstep, UNPROTECTED)
    plan = plans(sim)[row]
    last_sent_ns = min(pair.log.last_depart_ns, limit_ns)
    plan.again = commit.take_over(sim, pair, limit_ns, last_sent_ns, plan.packets)
    audit.take_over(sim, guard.audit, plan.packets)
    lock_ns = locked_ns(sim, guard, vlockstep.is_fenced, declared_ns, vlockstep.storage_ns)
    live_ns = max(lock_ns, pair.secondary.end_ns) + vlockstep.go_live_ns
    note_at(sim, guard, declared_ns, account.DECLARED)
    at(sim, max(sim.now_ns, live_ns), EventKind.CONTROL, ENTITY, on_live, row)


@event
def on_live(sim: Sim, plan: Plan, guard: Guard = BESIDE) -> None:
    """The secondary goes live, issues what may not have left, and continues where the guest was cut."""
    vlockstep = locksteps(sim)[plan.guard]
    # Its new host has died since the failover was planned.
    if guard.dead:
        discard_all(sim, plan.packets)
        plans.free(sim, plan.row)
        return
    # Unprotected first: what is released below, and what it makes the guest do, is not held any more.
    unprotect(sim, guard, vlockstep, UNPROTECTED)
    note(sim, guard, account.LIVE)
    audit.go_live(sim, guard.audit)
    count(sim, guard, account.FAILOVERS, 1)
    machine.move(sim, guard)
    count(sim, guard, account.ISSUED_AGAIN, plan.again)
    count(sim, guard, account.ISSUED_BY_SECONDARY, plan.packets.length - plan.again)
    release_all(sim, plan.packets)
    release_all(sim, vlockstep.pending)
    plans.free(sim, plan.row)
    announce(sim, guard, vlockstep.announcement_ns)
    # Last: what the backup issues leaves before anything new.
    machine.resume(sim, guard, machine.FAILOVER)
    reprotection.start(sim, guard)
