"""CPU work that a domain does by itself: so much in every period.

Stands for machines that share the host without being modelled further (a management VM, the benchmark's
manager) and for the hypervisor's own work on storage and management traffic.
"""

from typing import Any

from pydantic import Field, model_validator

from vftsim.cpu.guest import Guest
from vftsim.cpu.vcpu import Work
from vftsim.engine import Clock, EventKind
from vftsim.spec import DurationNs, PositiveDurationNs, Spec


class CyclicLoadSpec(Spec):
    """``busy`` CPU time at the start of every ``period``."""

    busy: DurationNs = Field(description="CPU time in each period.")
    period: PositiveDurationNs = Field(description="Length of a period.")

    @model_validator(mode="after")
    def _fits(self) -> "CyclicLoadSpec":
        if self.busy > self.period:
            raise ValueError("busy must not be longer than period")
        return self


class CyclicLoad:
    """Gives a guest its periodic work; a period's work that is not done in time is added to the next."""

    def __init__(self, clock: Clock, guest: Guest, spec: CyclicLoadSpec, entity: int) -> None:
        self.clock = clock
        self.guest = guest
        self.spec = spec
        self.entity = entity
        self.done = 0

    def start(self) -> None:
        """The first period begins now."""
        self._period(None)

    def _period(self, _: Any) -> None:
        if self.spec.busy:
            self.guest.submit(Work(self.spec.busy, self._finished))
        self.clock.after(self.spec.period, EventKind.TIMER, self.entity, self._period)

    def _finished(self, _: Any) -> None:
        self.done += 1
