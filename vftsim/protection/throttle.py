"""Slowing a primary whose secondary cannot keep up.

Rule (Scales, Nelson, Venkitachalam 2010): when the execution lag passes about a second, the primary
gets a slightly smaller share of the CPU, at first by a few percent; in a slow feedback loop the share
goes down while the lag is too long and up again after the secondary has caught up.

Here the share is looked at once a period: lag above the limit takes one step off, lag below the
catch-up value gives one step back, between the two nothing changes.  A share below 100 % is a duty
cycle: the guest is stopped for the rest of each cycle.  The real system sets a CPU limit in the
scheduler; a cycle of the order of the scheduler's quantum does the same from outside.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vftsim.protection.lockstep_parameters import ThrottleSpec
from vftsim.protection.machine import Machine


class LagThrottle:
    """The feedback loop.

    Parameters
    ----------
    machine : Machine
    spec : ThrottleSpec
    lag_ns : callable
        The execution lag now.
    """

    def __init__(self, machine: Machine, spec: ThrottleSpec, lag_ns: Callable[[], int]) -> None:
        self.machine = machine
        self.spec = spec
        self.lag_ns = lag_ns
        self.share_percent = 100.0
        self.lowest_share_percent = 100.0
        self.active = False
        self._looking = False
        self._cycling = False

    def start(self) -> None:
        """Watch the lag."""
        self.active = True
        self.share_percent = 100.0
        if not self._looking:
            self._looking = True
            self.machine.call_after(self.spec.period, self._look)

    def stop(self) -> None:
        """Stop watching: there is no secondary."""
        self.active = False
        self.machine.resume("throttle")

    def _look(self, _: Any) -> None:
        if not self.active:
            self._looking = False
            return
        spec = self.spec
        lag_ns = self.lag_ns()
        if lag_ns > spec.lag_limit:
            self.share_percent = max(spec.least_share, self.share_percent - spec.step)
            self.lowest_share_percent = min(self.lowest_share_percent, self.share_percent)
        elif lag_ns < spec.caught_up:
            self.share_percent = min(100.0, self.share_percent + spec.step)
        if self.share_percent < 100.0 and not self._cycling:
            self._cycling = True
            self._cycle(None)
        self.machine.call_after(spec.period, self._look)

    def _cycle(self, _: Any) -> None:
        if not self.active or self.share_percent >= 100.0:
            self._cycling = False
            return
        cycle_ns = self.spec.cycle
        self.machine.stop("throttle")
        self.machine.call_after(round(cycle_ns * (1.0 - self.share_percent / 100.0)), self._run)
        self.machine.call_after(cycle_ns, self._cycle)

    def _run(self, _: Any) -> None:
        self.machine.resume("throttle")
