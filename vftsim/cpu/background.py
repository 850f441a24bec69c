"""CPU work that a domain does by itself: so much in every period.

Stands for machines that share the host without being modelled further (a management VM, the benchmark's
manager) and for the hypervisor's own work on storage and management traffic.
"""

from typing import Any

from vftsim.cpu.guest import Guest
from vftsim.cpu.vcpu import Work
from vftsim.engine import Clock, EventKind
from vftsim.platform.cpu.background import CyclicLoadSpec

__all__ = ["CyclicLoad", "CyclicLoadSpec"]


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
