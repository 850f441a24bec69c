"""Faults of a run: what fails and when, as the model file says it.

An instant is a duration from the start of the run or from that of a phase (``step 2 + 300 s``).  A fault strikes once,
or again and again (``repeat``): at a fixed period, or with gaps drawn from a distribution.  All instants are known
before the run begins, because every phase has a fixed length and what is drawn is drawn beforehand.

A channel that is degraded for a while (less rate, more delay, loss), again and again, is one that flaps.

Losses of the channel that overlap are one loss: it works again when the last of them is over.
"""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import ClassVar, Literal

from pydantic import Field, model_validator

from vftsim.errors import UsageError
from vftsim.kernel import BESIDE, Engine, EventKind, Kind, Row, Sim, Sort, Table, entry, event, timer
from vftsim.platform.protection import audit, machine, mechanism
from vftsim.platform.protection.account import note, take_back, word
from vftsim.platform.protection.channel import Channel, channels, lossy_rate
from vftsim.platform.protection.guard import Guard, guards
from vftsim.platform.protection.mechanism import NO_DURATION
from vftsim.platform.protection.when import Instant, When
from vftsim.sampling import Streams, renewals_ns
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry
from vftsim.spec.units import DurationNs, Percent, PositiveDurationNs

_FIRST_ENTITY = 4
_SEGMENT_BYTES = 1460
_MATHIS = math.sqrt(1.5)
CHANNEL_DEGRADED = word("channel degraded")
CHANNEL_AS_BEFORE = word("channel as before")


class Fault(Row):
    """A fault to come: its ``kind``, ``time_ns`` when it strikes, ``duration_ns`` how long it lasts.

    Of one that cuts the channel: it is lost for ``channel_ns``, with the losses that begin before this one is over.
    Of a lost card: the number of its ``network``; 0: all cards.

    Of a degraded channel: the ``share`` of its rate that is left, the ``lossless_share`` of segments that get through,
    the bits that TCP has under way at that loss (``window_bits``; 0: no limit), and ``delay_ns`` more of latency.
    """

    kind: int
    guard: int
    time_ns: int
    duration_ns: int
    channel_ns: int
    network: int
    delay_ns: int
    share: float
    lossless_share: float
    window_bits: float


faults = Table("faults", Fault, 1 << 16, "let fewer faults strike")
fault = Sort("fault", by="kind")


@fault.slot
def announce(sim: Sim, blow: Fault) -> None:
    """Tell the mechanism beforehand, where that spares it a rollback."""


announce_fault = entry(announce)


@fault.slot
def strike(sim: Sim, blow: Fault) -> None:
    """Let it happen."""


on_fault = event(strike)


class RepeatSpec(Spec):
    """A fault that strikes again and again."""

    every: PositiveDurationNs | None = Field(
        None, description="Time from one to the next; the first comes at `at`. Either this or `mean`."
    )
    mean: PositiveDurationNs | None = Field(
        None,
        description="Mean of the drawn time from the end of one (the first: from `at`) to the next. Either this or "
        "`every`.",
    )
    cv: float = Field(
        1.0,
        ge=0.0,
        le=10.0,
        description="With `mean`: coefficient of variation of that time (gamma; 1: exponential, a Poisson process).",
    )
    most: int = Field(100, ge=1, le=10_000, description="How often it strikes at most.")

    @model_validator(mode="after")
    def _one_rule(self) -> "RepeatSpec":
        if (self.every is None) == (self.mean is None):
            raise ValueError("give every (a period) or mean (of a distribution), not both")
        return self


class FaultSpec(Spec):
    """Base of the faults."""

    part: ClassVar[Kind]
    needs_backup: ClassVar[bool] = False
    """Whether it only makes sense with a backup host."""
    needs_own_channel: ClassVar[bool] = False
    """Whether it only makes sense with a channel that the guest's traffic does not share."""
    needs_execution: ClassVar[bool] = False
    """Whether it only makes sense with a backup that executes what the guest does."""
    strikes_disks: ClassVar[bool] = False
    """Whether it stops the disks of the domain and what waits for them."""
    strikes_card: ClassVar[bool] = False
    """Whether it stops the packets of the domain's interfaces alone."""

    at: When = Field(description="When it happens: `20 s` of the run, or `step 2 + 300 s`.")
    domain: str | None = Field(
        None, description="Domain that it strikes; the only one that is protected or has an interface if not given."
    )
    repeat: RepeatSpec | None = Field(None, description="It strikes again and again; once if not given.")

    @model_validator(mode="after")
    def _ends_before_the_next(self) -> "FaultSpec":
        if self.repeat is not None and self.repeat.every is not None and self.repeat.every <= self.lasts_ns:
            raise ValueError("repeat.every must be longer than the fault's duration")
        return self

    @property
    def strikes_host(self) -> bool:
        """Whether it strikes every guest of the domain's host, or all their backups, each with its own mechanism."""
        return False

    def fill(self, blow: Fault) -> None:
        """Write what this kind alone has into its record."""

    def cuts_channel(self, engine: Engine, blow: int) -> bool:
        """Tell whether nothing passes between the hosts while it lasts; ``blow`` is the row of its record."""
        return False

    @property
    def of_network(self) -> str | None:
        """The network whose card alone it strikes; ``None``: it is not about one."""
        return None

    @property
    def lasts_ns(self) -> int:
        """How long it lasts; :data:`~vftsim.platform.protection.mechanism.NO_DURATION`: for good."""
        return NO_DURATION

    def instants_ns(self, first_ns: int, streams: Streams | None, entity: int) -> list[int]:
        """Return when it strikes, ``first_ns`` being its ``at``; ``entity`` tells faults of a kind apart.

        Refuses to draw them without streams.
        """
        again = self.repeat
        if again is None:
            return [first_ns]
        if again.every is not None:
            return [first_ns + number * again.every for number in range(again.most)]
        if streams is None:
            raise UsageError("a fault that is drawn needs the random streams of the replication")
        name = f"faults.{self.kind}"  # type: ignore[attr-defined]
        mean_ns = float(again.mean or 0)
        return renewals_ns(streams, name, entity, first_ns, mean_ns, again.cv, max(0, self.lasts_ns), again.most)


class LastingFault(FaultSpec):
    """Base of the faults that are over after a time, or last for good."""

    duration: PositiveDurationNs | None = Field(None, description="How long; for good if not given.")

    @property
    def lasts_ns(self) -> int:
        return NO_DURATION if self.duration is None else self.duration


FAULTS: PartRegistry[FaultSpec] = PartRegistry("fault", FaultSpec, fault.kinds)


def inject(
    engine: Engine,
    guard: int,
    specs: Mapping[int, FaultSpec],
    resolve: Callable[[Instant], int],
    streams: Streams | None = None,
    networks: Mapping[str, int] | None = None,
) -> None:
    """Plan faults of a guard's machine, given by their numbers in the model.

    ``resolve`` gives an instant's time in the run, ``streams`` what is drawn: for all guests of a host that fails the
    same instants.  ``networks`` are the numbers of those that faults may name.
    """
    strikes = [
        (_add(engine, guard, spec, time_ns, networks or {}), time_ns, number, spec)
        for number, spec in specs.items()
        for time_ns in spec.instants_ns(resolve(spec.at), streams, ((not spec.strikes_host) * guard << 16) + number)
    ]
    cuts = [(time_ns, spec.lasts_ns) for row, time_ns, _, spec in strikes if spec.cuts_channel(engine, row)]
    lost_ns = joined_ns(cuts)
    for row, time_ns, number, spec in strikes:
        engine.rows(faults)[row].channel_ns = lost_ns.get((time_ns, spec.lasts_ns), spec.lasts_ns)
        # Announced when the record is whole, and before the run begins: see rollback.py on why a crash must be known.
        engine.call(announce_fault, row)
        engine.at(time_ns, EventKind.CONTROL, _FIRST_ENTITY + number, engine.number(on_fault), row)


def joined_ns(cuts: Iterable[tuple[int, int]]) -> dict[tuple[int, int], int]:
    """Return for how long the channel is lost from the begin of each loss, (begin, duration), on.

    The losses that begin before it is over are part of it.  Earlier ones are not: by then a guest may have been
    protected anew, over a channel to another host.
    """
    in_order = sorted(cuts)
    ends_ns: dict[tuple[int, int], float] = {}
    for index in reversed(range(len(in_order))):
        begin_ns, lasts_ns = in_order[index]
        end_ns = math.inf if lasts_ns == NO_DURATION else begin_ns + lasts_ns
        for later in in_order[index + 1 :]:
            if later[0] > end_ns:
                break
            end_ns = max(end_ns, ends_ns[later])
        ends_ns[in_order[index]] = end_ns
    return {cut: NO_DURATION if end_ns == math.inf else int(end_ns) - cut[0] for cut, end_ns in ends_ns.items()}


def _add(engine: Engine, guard: int, spec: FaultSpec, time_ns: int, networks: Mapping[str, int]) -> int:
    """Write a fault that strikes once; return its row."""
    network = networks[spec.of_network] if spec.of_network is not None else 0
    kind = engine.number(spec.part)
    row, blow = engine.add(faults, kind=kind, guard=guard, time_ns=time_ns, duration_ns=spec.lasts_ns, network=network)
    spec.fill(blow)
    return row


def plan_end(sim: Sim, guard: Guard, duration_ns: int, action: int) -> int:
    """Plan the end of what lasts so long; return its token, 0 if it lasts for good."""
    if duration_ns == NO_DURATION:
        return 0
    return machine.call_after(sim, guard, duration_ns, action)


primary_crash = fault.kind("primary_crash")
backup_crash = fault.kind("backup_crash")
channel_loss = fault.kind("channel_loss")
channel_degradation = fault.kind("channel_degradation")
pause = fault.kind("pause")
guest_error = fault.kind("guest_error")


class HostCrash(FaultSpec):
    """A host stops at once, with everything on it."""

    alone: bool = Field(
        False, description="The other guests of its host, or their backups, go on, as if they were on another host."
    )

    @property
    def strikes_host(self) -> bool:
        """Unless the domain is to fail alone."""
        return not self.alone


@FAULTS.register
class PrimaryCrash(HostCrash):
    """The host of the running VM stops at once, with every guest on it."""

    kind: Literal["primary_crash"] = "primary_crash"


@primary_crash.implements(announce)
def announce_crash(sim: Sim, blow: Fault) -> None:
    """Log entries that have not left by then are lost."""
    mechanism.expect_primary_crash(sim, guards(sim)[blow.guard], blow.time_ns)


@primary_crash.implements(strike)
def crash_primary(sim: Sim, blow: Fault) -> None:
    mechanism.primary_crash(sim, guards(sim)[blow.guard])


@FAULTS.register
class BackupCrash(HostCrash):
    """The backup's host stops at once, with the backups of all guests that are on a host with the domain."""

    kind: Literal["backup_crash"] = "backup_crash"
    needs_backup: ClassVar[bool] = True


@backup_crash.implements(strike)
def crash_backup(sim: Sim, blow: Fault) -> None:
    # The auditor before the mechanism, here and below: it must know what had arrived before anybody acts on the fault.
    audit.lose_backup(sim, guards(sim)[blow.guard].audit)
    take_back(sim, guards(sim)[blow.guard])
    mechanism.backup_crash(sim, guards(sim)[blow.guard])


@FAULTS.register
class ChannelLoss(LastingFault):
    """The logging channel is cut; heartbeats go on over another network."""

    kind: Literal["channel_loss"] = "channel_loss"
    needs_backup: ClassVar[bool] = True

    def cuts_channel(self, engine: Engine, blow: int) -> bool:
        return True


@channel_loss.implements(announce)
def announce_loss(sim: Sim, blow: Fault) -> None:
    """Log entries that have not arrived by then may be lost."""
    mechanism.expect_channel_loss(sim, guards(sim)[blow.guard], blow.time_ns, blow.channel_ns)


@channel_loss.implements(strike)
def lose_channel(sim: Sim, blow: Fault) -> None:
    audit.lose_channel(sim, guards(sim)[blow.guard].audit, blow.channel_ns)
    mechanism.channel_loss(sim, guards(sim)[blow.guard], blow.channel_ns)


@FAULTS.register
class ChannelDegradation(LastingFault):
    """The channel between the hosts has less rate, more delay or loss for a while; heartbeats of lockstep do not."""

    kind: Literal["channel_degradation"] = "channel_degradation"
    needs_backup: ClassVar[bool] = True
    needs_own_channel: ClassVar[bool] = True
    rate: Percent = Field(100.0, gt=0, description="Share of the channel's rate that is left.")
    delay: DurationNs = Field(0, description="Added to its latency, in each direction.")
    loss: Percent = Field(
        0.0,
        lt=100,
        description="Segments lost. TCP has 1.22 segments over the root of the loss under way (Mathis et al. 1997).",
    )

    @model_validator(mode="after")
    def _does_something(self) -> "ChannelDegradation":
        if self.rate == 100.0 and self.delay == 0 and self.loss == 0.0:
            raise ValueError("give rate below 100 %, delay or loss: as it stands nothing is degraded")
        return self

    def fill(self, blow: Fault) -> None:
        loss = self.loss / 100.0
        blow.share, blow.lossless_share, blow.delay_ns = self.rate / 100.0, 1.0 - loss, self.delay
        blow.window_bits = 8.0 * _SEGMENT_BYTES * _MATHIS / math.sqrt(loss) if loss else 0.0


@channel_degradation.implements(strike)
def degrade_channel(sim: Sim, blow: Fault, guard: Guard = BESIDE) -> None:
    """Degrade it; the newest degradation replaces one that lasts."""
    channel = channels(sim)[blow.guard]
    rate = lossy_rate(channel, blow.share, blow.delay_ns, blow.lossless_share, blow.window_bits)
    note(sim, guard, CHANNEL_DEGRADED)
    audit.change_channel(sim, guard.audit, channel.own_latency_ns + blow.delay_ns)
    mechanism.change_channel(sim, guard, rate, channel.own_latency_ns + blow.delay_ns)
    # The token of the degradation before is overwritten: its end comes to nothing.
    channel.ends = plan_end(sim, guard, blow.duration_ns, on_channel_restored)


@timer(channels, "ends")
def on_channel_restored(sim: Sim, guard: Guard, channel: Channel = BESIDE) -> None:
    """The channel is as it was."""
    note(sim, guard, CHANNEL_AS_BEFORE)
    audit.change_channel(sim, guard.audit, channel.own_latency_ns)
    mechanism.change_channel(sim, guard, channel.own_rate_bits_per_s, channel.own_latency_ns)


@FAULTS.register
class Pause(FaultSpec):
    """The guest stops for a while and goes on; packets wait in its network card as far as they fit."""

    kind: Literal["pause"] = "pause"
    duration: PositiveDurationNs = Field(description="How long.")

    @property
    def lasts_ns(self) -> int:
        return self.duration


@pause.implements(strike)
def pause_guest(sim: Sim, blow: Fault) -> None:
    mechanism.pause(sim, guards(sim)[blow.guard], blow.duration_ns)


@FAULTS.register
class GuestError(FaultSpec):
    """The guest's software fails, and its hypervisor notices at once; the host goes on."""

    kind: Literal["guest_error"] = "guest_error"


@guest_error.implements(strike)
def fail_guest(sim: Sim, blow: Fault) -> None:
    mechanism.guest_error(sim, guards(sim)[blow.guard])
