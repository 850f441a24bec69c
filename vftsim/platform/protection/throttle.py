"""Slowing a primary whose secondary cannot keep up.

Rule (Scales, Nelson, Venkitachalam 2010): when the execution lag passes about a second, the primary
gets a slightly smaller share of the CPU, at first by a few percent; in a slow feedback loop the share
goes down while the lag is too long and up again after the secondary has caught up.

Here the share is looked at once a period: lag above the limit takes one step off, lag below the
catch-up value gives one step back, between the two nothing changes.  A share below 100 % is a duty
cycle: the guest is stopped for the rest of each cycle.  The real system sets a CPU limit in the
scheduler; a cycle of the order of the scheduler's quantum does the same from outside.
"""

from vftsim.kernel import BESIDE, Record, Sim, Table, event
from vftsim.platform.arithmetic import nearest
from vftsim.platform.protection import machine
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.mechanism import lag

FULL_SHARE = 100.0


class Throttle(Record):
    """The feedback loop of one guard; shares in percent."""

    lag_limit_ns: int
    caught_up_ns: int
    step: float
    period_ns: int
    least_share: float
    cycle_ns: int
    share: float
    lowest_share: float
    is_active: bool
    is_checking: bool
    is_cycling: bool


throttles = Table("throttles", Throttle, beside=guards)


def start(sim: Sim, guard: Guard, throttle: Throttle = BESIDE) -> None:
    """Watch the lag."""
    throttle.is_active = True
    throttle.share = FULL_SHARE
    # The check of an earlier secondary may still be planned: two would take two steps a period.
    if not throttle.is_checking:
        throttle.is_checking = True
        machine.call_after(sim, guard, throttle.period_ns, on_check)


def stop(sim: Sim, guard: Guard) -> None:
    """Stop watching: there is no secondary."""
    throttles(sim)[guard.row].is_active = False
    # The end of a cycle that is under way finds nothing to resume.
    machine.resume(sim, guard, machine.THROTTLE)


@event
def on_check(sim: Sim, guard: Guard, throttle: Throttle = BESIDE) -> None:
    """Look at the lag, once a period."""
    if not throttle.is_active:
        throttle.is_checking = False
        return
    adjust(throttle, lag(sim, guard))
    if throttle.share < FULL_SHARE and not throttle.is_cycling:
        throttle.is_cycling = True
        cycle(sim, guard)
    machine.call_after(sim, guard, throttle.period_ns, on_check)


def adjust(throttle: Throttle, lag_ns: int) -> None:
    """Take a step off the share, or give one back."""
    if lag_ns > throttle.lag_limit_ns:
        throttle.share = max(throttle.least_share, throttle.share - throttle.step)
        throttle.lowest_share = min(throttle.lowest_share, throttle.share)
    elif lag_ns < throttle.caught_up_ns:
        throttle.share = min(FULL_SHARE, throttle.share + throttle.step)


def cycle(sim: Sim, guard: Guard, throttle: Throttle = BESIDE) -> None:
    """Begin a duty cycle with the part in which the guest stands still."""
    # Asked at the end of each cycle, not when the share rises: a cycle that has begun is played to its end.
    if not throttle.is_active or throttle.share >= FULL_SHARE:
        throttle.is_cycling = False
        return
    machine.stop(sim, guard, machine.THROTTLE)
    machine.call_after(sim, guard, nearest(throttle.cycle_ns * (1.0 - throttle.share / 100.0)), on_run)
    machine.call_after(sim, guard, throttle.cycle_ns, on_cycle)


on_cycle = event(cycle)


@event
def on_run(sim: Sim, guard_row: int) -> None:
    """The guest has stood still for its part of a cycle."""
    machine.resume(sim, guards(sim)[guard_row], machine.THROTTLE)
