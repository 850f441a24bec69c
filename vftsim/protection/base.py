"""What a protection mechanism asks of the machine it protects, and the family of mechanisms.

A mechanism sees every non-deterministic input of the protected domain and holds its outputs until the
output-commit rule lets them go: nothing becomes visible outside before the backup can reproduce the
state that produced it.
"""

from collections.abc import Callable
from typing import Any, Protocol

from vftsim.spec import PartRegistry, Spec


class Protection(Protocol):
    """One mechanism at work in a run."""

    def on_input(self, size_bytes: int) -> int:
        """A packet of ``size_bytes`` enters the guest; returns the CPU time in ns that it costs the guest."""

    def on_events(self, count: int) -> int:
        """The guest took ``count`` timer or clock events; returns the CPU time in ns that they cost it."""

    def on_output(self, size_bytes: int, release: Callable[[Any], None], argument: Any) -> None:
        """The guest sends a packet; ``release(argument)`` is called when it may leave."""


class ProtectionSpec(Spec):
    """Base of the parameters of every mechanism."""


PROTECTIONS: PartRegistry[ProtectionSpec] = PartRegistry("protection mechanism", ProtectionSpec)
