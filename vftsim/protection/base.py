"""What a protection mechanism asks of the machine it protects, and the family of mechanisms.

A mechanism sees every non-deterministic input of the protected domain and holds its outputs until the
output-commit rule lets them go: nothing becomes visible outside before the backup can reproduce the
state that produced it.

Faults reach it by method calls.  Those that destroy a primary are announced beforehand
(:meth:`Mechanism.expect_primary_crash`): what the primary does after the last input that its backup
will know of can never be seen outside, so a mechanism need not simulate it and roll it back.
"""

from collections.abc import Callable
from typing import Any, Protocol

from vftsim.engine import Clock
from vftsim.errors import UsageError
from vftsim.net.link import Link
from vftsim.protection.machine import Machine
from vftsim.protection.when import Instant
from vftsim.spec import PartRegistry, Spec

LOST = -1
"""Answer of :meth:`Protection.on_input` for a packet that no surviving replica will know of."""


class Protection(Protocol):
    """One mechanism at work in a run, as the I/O path sees it."""

    def on_input(self, size_bytes: int) -> int:
        """Take note of a packet that enters the guest; return its CPU cost in ns, or :data:`LOST`."""

    def on_events(self, count: int) -> int:
        """Take note of ``count`` timer or clock events of the guest; return the CPU cost in ns."""

    def on_output(self, size_bytes: int, release: Callable[[Any], None], argument: Any) -> None:
        """Hold a packet that the guest sends; call ``release(argument)`` when it may leave."""


class Mechanism:
    """Base of the mechanisms: no cost, no delay, and a crash is the end of the service.

    Attributes
    ----------
    counters : dict of str to int
        What happened, by name.
    timeline : list of (int, str)
        Instants in ns of crash, detection, go-live and the like.
    """

    def __init__(self, clock: Clock, machine: Machine) -> None:
        self.clock = clock
        self.machine = machine
        self.counters: dict[str, int] = {}
        self.timeline: list[tuple[int, str]] = []

    def start(self) -> None:
        """Begin, at the start of the run."""

    def begin(self, _: Any = None) -> None:
        """Turn protection on; nothing to do where it is always on."""

    def on_input(self, size_bytes: int) -> int:
        """Cost nothing."""
        return 0

    def on_events(self, count: int) -> int:
        """Cost nothing."""
        return 0

    def on_output(self, size_bytes: int, release: Callable[[Any], None], argument: Any) -> None:
        """Leave at once."""
        release(argument)

    def lag_ns(self) -> int:
        """Return how far the secondary's execution is behind; 0 without one."""
        return 0

    def expect_primary_crash(self, time_ns: int) -> None:
        """Learn of a crash to come."""

    def expect_channel_loss(self, time_ns: int, duration_ns: int | None) -> None:
        """Learn of a channel loss to come."""

    def primary_crash(self) -> None:
        """Lose the primary's host."""
        self.note("primary crash")
        self.machine.kill()

    def backup_crash(self) -> None:
        """Lose the backup's host."""
        raise UsageError("this protection mechanism has no backup that could crash")

    def channel_loss(self, duration_ns: int | None) -> None:
        """Lose the channel between the hosts, for a time or for good."""
        raise UsageError("this protection mechanism has no channel that could be lost")

    def pause(self, duration_ns: int) -> None:
        """Stop the guest for a while; its network card stays connected and fills."""
        self.note("pause")
        self.machine.stop("pause")
        self.machine.call_after(duration_ns, self._end_pause)

    def summary(self) -> dict[str, int | float]:
        """Return what the mechanism did and cost in the run so far."""
        return dict(self.counters)

    def check(self) -> None:
        """Raise :class:`~vftsim.errors.ConservationError` if an invariant is broken."""

    def note(self, what: str) -> None:
        """Put an instant on the timeline."""
        self.timeline.append((self.clock.now_ns, what))

    def count(self, name: str, amount: int = 1) -> None:
        """Add to a counter."""
        self.counters[name] = self.counters.get(name, 0) + amount

    def _end_pause(self, _: Any) -> None:
        self.machine.resume("pause")
        self.note("pause over")


class ProtectionSpec(Spec):
    """Base of the parameters of every mechanism."""

    @property
    def has_backup(self) -> bool:
        """Whether there is a backup host and a channel to it."""
        return False

    @property
    def begins(self) -> Instant | None:
        """When protection is turned on; ``None``: at the start."""
        return None

    @property
    def most_vcpus(self) -> int:
        """How many vCPUs a protected domain may have."""
        return 64

    def build(self, clock: Clock, machine: Machine, vm_link: Link) -> Mechanism:
        """Make the mechanism; ``vm_link`` is the protected host's link for outputs."""
        raise NotImplementedError


PROTECTIONS: PartRegistry[ProtectionSpec] = PartRegistry("protection mechanism", ProtectionSpec)
