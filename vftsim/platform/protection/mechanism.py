"""What faults, and the start of protection, ask of a mechanism.

Faults that destroy a primary are announced beforehand (:func:`expect_primary_crash`): what the primary does after the
last input that its backup will know of can never be seen outside, so a mechanism need not simulate it and roll it back.

A mechanism that implements nothing costs nothing and delays nothing, and a crash is the end of the service.
"""

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from vftsim.kernel import Engine, Failure, Kind, Sim, entry, event, fail
from vftsim.kernel.inputs import Feeder
from vftsim.platform.protection import machine
from vftsim.platform.protection.account import note, word
from vftsim.platform.protection.guard import Guard, before_stop, guards, protection
from vftsim.platform.protection.outcome import Protection, held_by_every
from vftsim.platform.protection.prices import Priced, prices_of
from vftsim.platform.protection.when import Instant
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.registry import PartRegistry, discover

NO_DURATION = -1
"""Duration of a loss for good."""

CRASH = word("primary crash")
REACHABLE = word("reachable")
GUEST_ERROR = word("guest error")
PAUSED = word("pause")
PAUSE_OVER = word("pause over")
NO_BACKUP = Failure("this protection mechanism has no backup that could crash")
NO_EXECUTION = Failure("this protection mechanism has no backup that executes at a speed of its own")
NO_CHANNEL = Failure("this protection mechanism has no channel that could be lost")


class ProtectionSpec(Spec):
    """Base of the parameters of every mechanism; one subclass a file in :mod:`vftsim.platform.protection`."""

    part: ClassVar[Kind]
    outcome: ClassVar[type[Protection]] = Protection
    protects: ClassVar[bool] = True
    """Whether there is a mechanism at all."""
    sends_pages: ClassVar[bool] = False
    """Whether it sends states of the guest's memory."""
    uncalibrated: ClassVar[str] = "its defaults are not calibrated for this model"
    """Which of its defaults are not calibrated for the model at hand."""
    issues_all: ClassVar[bool] = False
    """Whether a backup that takes over issues every output that it can derive and that has not left."""
    promises: ClassVar[bool] = True
    """Whether it says that outputs wait for a backup, so that the auditor judges it."""
    most_vcpus: ClassVar[int] = 64
    """How many vCPUs a protected domain may have."""
    backup_executes: ClassVar[bool] = False
    """Whether there is a backup that executes what the guest does, at a speed of its own."""

    @property
    def breaks_promise(self) -> bool:
        """Whether these parameters let outputs leave that no backup can derive: they are counted, and end no run."""
        return False

    @property
    def has_backup(self) -> bool:
        """Whether there is a backup host and a channel to it."""
        return False

    @property
    def lost_with_host(self) -> str:
        """Why a crash of the host ends the service, where a setting of the mechanism decides it; else empty."""
        return ""

    @property
    def is_fenced(self) -> bool:
        """Whether a lock lets one of two hosts live."""
        return False

    @property
    def begins(self) -> Instant | None:
        """When protection is turned on; ``None``: at the start."""
        return None

    @property
    def restart_ns(self) -> int:
        """How long the service is away at most where a crash means booting anew; 0 elsewhere."""
        return 0

    @property
    def patience_ns(self) -> int:
        """How long a side waits at most for another that is silent before it acts; 0: none waits."""
        return 0

    @property
    def cycle_ns(self) -> int:
        """How long a cycle takes at most, about, whose phases differ for those served; 0: it has none, or of no length.

        A mean over few of them depends on where in a cycle the measured time begins and ends.
        """
        return 0

    @property
    def slowdown(self) -> tuple[float, float]:
        """Factors on all CPU work of the guest, and on its exits to the hypervisor, while it is protected."""
        return 1.0, 1.0

    @property
    def calibrated_costs(self) -> str:
        """What its costs rest on, where that is more than assumptions; else empty."""
        return ""

    @property
    def counts_exits(self) -> bool:
        """Whether it charges exits to the hypervisor by their number."""
        return False

    @property
    def pages_a_packet(self) -> float | None:
        """Pages that each packet received dirties, whatever program takes it; None: the program says."""
        return None

    @property
    def records_reads(self) -> bool:
        """Whether it takes note of what programs read from disks, and of how much that is."""
        return False

    @property
    def mirrors_writes(self) -> bool:
        """Whether what programs write to disks goes to a disk of the backup."""
        return False

    def without_sender(self, has_driver_domain: bool) -> Mapping[str, str]:
        """Return the keys about who pays for sending that nothing reads, each with the reason."""
        return {}

    @property
    def sent_by(self) -> str | None:
        """Domain of the model that pays for what the mechanism sends; ``None``: the driver domain, if there is one."""
        return None

    @property
    def backup_disk_bytes_per_s(self) -> int:
        """What a disk of the backup takes of writes that wait for their state; 0 where there is none."""
        return 0

    @property
    def channel_network(self) -> str | None:
        """Network of the model that carries the mechanism's traffic; ``None``: its parameters say its rate."""
        return None

    @property
    def taken_for_dead(self) -> str:
        """Return key and reason if a backup would take over from a primary that works; empty: it does not."""
        return ""

    def on_network(self, rate_bits_per_s: int, latency_ns: int) -> Self:
        """Return these parameters for the network that they name."""
        return self

    def prices(self) -> list[Priced]:
        """Return the prices that nobody has given and that count as it stands."""
        return list(prices_of(self))

    def without_effect(self) -> Mapping[str, str]:
        """Return the keys (dotted where nested) that nothing reads as it stands, each with the reason."""
        return {}

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        """Write these parameters into the mechanism's records of a guard.

        ``vm_link`` is the row of the link of the domain's outputs, if the mechanism's traffic takes it too; 0: it does
        not.
        """

    def transmitters(self, engine: Engine, guard: int) -> dict[str, tuple[float, int]]:
        """Return bytes sent and rate in bits a second of what the mechanism sends over alone, by name."""
        return {}

    def draw(self, engine: Engine, guard: int, feeder: Feeder | None, streams: Streams | None) -> None:
        """Have the random numbers drawn that the mechanism needs; most need none.

        One that needs some refuses to do without ``feeder`` or ``streams``.
        """

    def holds(self, engine: Engine, guard: int) -> dict[str, Any]:
        """Return what :attr:`outcome` holds of the run so far."""
        return held_by_every(engine, guard)

    def measured(self, engine: Engine, guard: int) -> Protection:
        """Return what the mechanism did and cost in the run so far."""
        return self.outcome(**self.holds(engine, guard))

    def forget_extremes(self, engine: Engine, guard: int) -> None:
        """Have the extremes of figures begin anew: a stretch of time begins."""


PROTECTIONS: PartRegistry[ProtectionSpec] = PartRegistry("protection mechanism", ProtectionSpec, protection.kinds)


def protections() -> PartRegistry[ProtectionSpec]:
    """Return the registry with every mechanism of :mod:`vftsim.platform.protection` in it."""
    discover("vftsim.platform.protection")
    return PROTECTIONS


@protection.slot
def begin(sim: Sim, guard: Guard) -> None:
    """Turn protection on; nothing to do where it is always on."""


@protection.slot
def lag(sim: Sim, guard: Guard) -> int:
    """Return how far the secondary's execution is behind, in ns; 0 without one."""
    return 0


lag_now = entry(lag)


@protection.slot
def unreplayed(sim: Sim, guard: Guard) -> int:
    """Return the CPU time that the secondary still needs for what it was sent, in ns; 0 without one."""
    return 0


unreplayed_now = entry(unreplayed)


@protection.slot
def missing(sim: Sim, guard: Guard) -> int:
    """Return how many outputs the mechanism has lost sight of: 0, unless it is defective."""
    return 0


missing_now = entry(missing)


@protection.slot
def expect_primary_crash(sim: Sim, guard: Guard, time_ns: int) -> None:
    """Learn of a crash to come."""


@protection.slot
def expect_channel_loss(sim: Sim, guard: Guard, time_ns: int, duration_ns: int) -> None:
    """Learn of a channel loss to come, for a time or for good (:data:`NO_DURATION`)."""


@protection.slot
def primary_crash(sim: Sim, guard: Guard) -> None:
    """Lose the primary's host."""
    lose_machine(sim, guard)


@protection.slot
def backup_crash(sim: Sim, guard: Guard) -> None:
    """Lose the backup's host."""
    fail(sim, NO_BACKUP)


@protection.slot
def channel_loss(sim: Sim, guard: Guard, duration_ns: int) -> None:
    """Lose the channel between the hosts, for a time or for good (:data:`NO_DURATION`)."""
    fail(sim, NO_CHANNEL)


@protection.slot
def change_channel(sim: Sim, guard: Guard, rate_bits_per_s: int, latency_ns: int) -> None:
    """Give the channel between the hosts another rate and another one-way latency."""
    fail(sim, NO_CHANNEL)


@protection.slot
def set_backup_speed(sim: Sim, guard: Guard, speed: float) -> None:
    """Let the backup's processor have this share of its speed from now on."""
    fail(sim, NO_EXECUTION)


@protection.slot
def guest_error(sim: Sim, guard: Guard) -> None:
    """Lose what the guest's software was doing: a copy of the same state would fail alike."""
    note(sim, guard, GUEST_ERROR)
    machine.kill(sim, guard)


@protection.slot
def pause(sim: Sim, guard: Guard, duration_ns: int) -> None:
    """Stop the guest for a while; its network card stays connected and fills.

    Pauses may overlap: it continues when all are over.
    """
    note(sim, guard, PAUSED)
    # Pauses may overlap: each has an end of its own, and only the latest one counts.
    guard.pause_end_ns = max(guard.pause_end_ns, sim.now_ns + duration_ns)
    machine.stop(sim, guard, machine.PAUSE)
    machine.call_after(sim, guard, duration_ns, on_pause_over)


@event
def on_pause_over(sim: Sim, guard: Guard) -> None:
    """A pause is over; the guest continues unless another one lasts longer."""
    if guard.pause_end_ns != 0 and sim.now_ns >= guard.pause_end_ns:
        guard.pause_end_ns = 0
        machine.resume(sim, guard, machine.PAUSE)
        note(sim, guard, PAUSE_OVER)


@event
def on_begin(sim: Sim, guard_row: int) -> None:
    """The instant has come at which protection is turned on."""
    guards(sim)[guard_row].audit.is_off = False
    turn_on(sim, guards(sim)[guard_row])


def turn_on(sim: Sim, guard: Guard) -> None:
    """Turn protection on for the first time."""
    guard.has_begun = True
    begin(sim, guard)


begin_now = entry(turn_on)


def announce(sim: Sim, guard: Guard, announcement_ns: int) -> None:
    """Tell the switches where the guest is now, which they learn after a time."""
    machine.call_after(sim, guard, announcement_ns, on_reachable)


@event
def on_reachable(sim: Sim, guard: Guard) -> None:
    """The switches have learnt where the guest is now."""
    machine.connect(sim, guard)
    note(sim, guard, REACHABLE)


def lose_machine(sim: Sim, guard: Guard) -> None:
    """Lose a machine that nothing can take over."""
    note(sim, guard, CRASH)
    machine.kill(sim, guard)


bring_up_to_date = entry(before_stop)
