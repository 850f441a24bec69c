"""Instants, announced beforehand, after which no entry of a primary gets through to its secondary."""

from vftsim.kernel import Sim, part
from vftsim.platform.protection._lockstep_records import Lockstep, limit_list, limits, locksteps
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.guard import Guard
from vftsim.platform.protection.rollback import foreseen_limit_ns


@part
def add_limit(sim: Sim, guard: Guard, time_ns: int, is_arrival: bool) -> None:
    """Let entries be lost that would leave, or arrive, after ``time_ns``."""
    vlockstep = locksteps(sim)[guard.row]
    row = limits.new(sim)
    limits(sim)[row].time_ns = time_ns
    limits(sim)[row].is_arrival = is_arrival
    limit_list.push(sim, vlockstep.limits, row)
    vlockstep.limit_ns = least_limit_ns(sim, guard, vlockstep)


@part
def remove_limit(sim: Sim, guard: Guard, time_ns: int, is_arrival: bool) -> None:
    """Take one such limit away, if there is one."""
    vlockstep = locksteps(sim)[guard.row]
    row = vlockstep.limits.first
    while row != 0 and (limits(sim)[row].time_ns != time_ns or limits(sim)[row].is_arrival != is_arrival):
        row = limits(sim)[row].link
    if row != 0:
        limit_list.remove(sim, vlockstep.limits, row)
        limits.free(sim, row)
        vlockstep.limit_ns = least_limit_ns(sim, guard, vlockstep)


@part
def least_limit_ns(sim: Sim, guard: Guard, vlockstep: Lockstep) -> int:
    """Return the instant after which nothing may leave that is written now, or it is lost."""
    least_ns = foreseen_limit_ns(sim, guard)
    row = vlockstep.limits.first
    while row != 0:
        time_ns = limits(sim)[row].time_ns
        if limits(sim)[row].is_arrival:
            time_ns -= channels(sim)[guard.row].latency_ns
        least_ns = min(least_ns, time_ns)
        row = limits(sim)[row].link
    return least_ns
