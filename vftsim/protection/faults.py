"""Faults of a run: what fails and when, as the model file says it.

An instant is a duration from the start of the run or from that of a phase (``step 2 + 300 s``).  All
instants are known before the run begins, because every phase has a fixed length.

Left out: faults drawn from a distribution (draw the instants outside and write them here); partial
degradation of the channel (set its rate and latency instead).
"""

from collections.abc import Callable
from typing import Literal

from pydantic import Field

from vftsim.engine import Clock, EventKind
from vftsim.protection.base import Mechanism
from vftsim.protection.when import Instant, When
from vftsim.spec import PartRegistry, PositiveDurationNs, Spec

_ENTITY = 4


class FaultSpec(Spec):
    """Base of the faults."""

    at: When = Field(description="When it happens: `20 s` of the run, or `step 2 + 300 s`.")

    @property
    def needs_backup(self) -> bool:
        """Whether it only makes sense with a backup host."""
        return False

    def announce(self, mechanism: Mechanism, time_ns: int) -> None:
        """Tell the mechanism beforehand, where that spares it a rollback."""

    def strike(self, mechanism: Mechanism) -> None:
        """Let it happen."""
        raise NotImplementedError


FAULTS: PartRegistry[FaultSpec] = PartRegistry("fault", FaultSpec)


@FAULTS.register
class PrimaryCrash(FaultSpec):
    """The host of the running VM stops at once."""

    kind: Literal["primary_crash"] = "primary_crash"

    def announce(self, mechanism: Mechanism, time_ns: int) -> None:
        """Log entries that have not left by then are lost."""
        mechanism.expect_primary_crash(time_ns)

    def strike(self, mechanism: Mechanism) -> None:
        """Crash."""
        mechanism.primary_crash()


@FAULTS.register
class BackupCrash(FaultSpec):
    """The backup's host stops at once."""

    kind: Literal["backup_crash"] = "backup_crash"

    @property
    def needs_backup(self) -> bool:
        """It does."""
        return True

    def strike(self, mechanism: Mechanism) -> None:
        """Crash."""
        mechanism.backup_crash()


@FAULTS.register
class ChannelLoss(FaultSpec):
    """The logging channel is cut; heartbeats go on over another network."""

    kind: Literal["channel_loss"] = "channel_loss"
    duration: PositiveDurationNs | None = Field(None, description="How long; for good if not given.")

    @property
    def needs_backup(self) -> bool:
        """It does."""
        return True

    def announce(self, mechanism: Mechanism, time_ns: int) -> None:
        """Log entries that have not arrived by then may be lost."""
        mechanism.expect_channel_loss(time_ns, self.duration)

    def strike(self, mechanism: Mechanism) -> None:
        """Cut it."""
        mechanism.channel_loss(self.duration)


@FAULTS.register
class Pause(FaultSpec):
    """The guest stops for a while and goes on; packets wait in its network card as far as they fit."""

    kind: Literal["pause"] = "pause"
    duration: PositiveDurationNs = Field(description="How long.")

    def strike(self, mechanism: Mechanism) -> None:
        """Stop it."""
        mechanism.pause(self.duration)


def inject(
    clock: Clock, faults: tuple[FaultSpec, ...], mechanism: Mechanism, resolve: Callable[[Instant], int]
) -> None:
    """Plan the faults; ``resolve`` gives an instant's time in the run."""
    for number, fault in enumerate(faults):
        time_ns = resolve(fault.at)
        fault.announce(mechanism, time_ns)
        clock.at(time_ns, EventKind.CONTROL, _ENTITY + number, _strike, (fault, mechanism))


def _strike(job: tuple[FaultSpec, Mechanism]) -> None:
    fault, mechanism = job
    fault.strike(mechanism)
