"""What a model file says about the process scheduler of a domain's operating system."""

from typing import ClassVar

from vftsim.kernel import Engine, Kind
from vftsim.platform.cpu.guest_scheduler import guest_scheduler
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry, discover


class GuestSchedulerSpec(Spec):
    """Base of the process schedulers; one subclass a file in :mod:`vftsim.platform.cpu.guest_schedulers`."""

    part: ClassVar[Kind]
    has_slices: ClassVar[bool] = False
    """Whether its parameters say for how long a process runs, and not the domain's `quantum`."""

    def install(self, engine: Engine, domain: int) -> None:
        """Write these parameters into the scheduler's records of a domain that has no process yet."""

    def add(self, engine: Engine, process: int) -> None:
        """Write into the scheduler's records what a process begins with."""


GUEST_SCHEDULERS: PartRegistry[GuestSchedulerSpec] = PartRegistry(
    "guest scheduler", GuestSchedulerSpec, guest_scheduler.kinds
)


def of_any_guest() -> GuestSchedulerSpec:
    """Return the process scheduler of a domain that names none."""
    return GUEST_SCHEDULERS["round_robin"]()


def guest_schedulers() -> PartRegistry[GuestSchedulerSpec]:
    """Return the registry with every process scheduler of :mod:`vftsim.platform.cpu.guest_schedulers` in it."""
    discover("vftsim.platform.cpu.guest_schedulers")
    return GUEST_SCHEDULERS
