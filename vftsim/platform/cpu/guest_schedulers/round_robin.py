"""Turns: the jobs of a domain wait in one queue, and the processes they belong to do not matter.

Rules: jobs run in order of arrival.  One gives way at the end of its quantum only if another waits by then: one
that has run alone for longer gives way at the next multiple of the quantum, because an expired time slice that
nobody else wants is simply refilled.  Background jobs run when no other job waits, as a process that computes
without sleeping runs after those that sleep much under Linux 2.6.18 (O(1) scheduler: dynamic priority); one
that has begun is not displaced, so make them short.

Assumption: equal turns stand for any scheduler that is fair among processes of equal weight; sleep, priorities
and pre-emption by a newcomer are left out.  The others of this package have them.

The functions are the defaults of :mod:`vftsim.platform.cpu.guest_scheduler`.
"""

from typing import Literal

from vftsim.platform.cpu.guest_parameters import GUEST_SCHEDULERS, GuestSchedulerSpec
from vftsim.platform.cpu.guest_scheduler import guest_scheduler

round_robin = guest_scheduler.kind("round_robin")


@GUEST_SCHEDULERS.register
class RoundRobinGuest(GuestSchedulerSpec):
    """Turns of the domain's quantum, whatever the process."""

    kind: Literal["round_robin"] = "round_robin"
