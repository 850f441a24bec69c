"""Parameters of schedulers and of the domains they schedule."""

from typing import Protocol

from pydantic import Field

from vftsim.cpu.scheduler import Scheduler
from vftsim.spec import PartRegistry, Percent, Spec


class SchedulerSpec(Spec):
    """Base of the parameters of every scheduler."""

    def build(self) -> Scheduler:
        """Make the policy."""
        raise TypeError("a scheduler's parameters must say how to build it")


SCHEDULERS: PartRegistry[SchedulerSpec] = PartRegistry("scheduler", SchedulerSpec)


class DomainScheduling(Spec):
    """What schedulers read of a domain."""

    weight: int = Field(256, ge=1, le=65535, description="Share relative to other domains (Xen credit: 256).")
    cap: Percent = Field(0.0, description="Limit in percent of one pCPU, 0 for none.")
