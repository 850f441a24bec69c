"""The records of mechanisms that send states of a guest to a backup, and what such a mechanism implements."""

from vftsim.kernel import Fifo, Record, Sim, Table
from vftsim.platform.protection.guard import Guard, guards, protection
from vftsim.platform.protection.machine import run_ns

UNPROTECTED, PROTECTED, BROKEN, FAILING_OVER, SPLIT = 1, 2, 3, 4, 5
"""Where a guard stands; ``BROKEN``: nothing gets through to or from the backup, and neither host has acted on it."""

replicated = protection.kind("replicated")


class Replication(Record):
    """The backup of one guard and what becomes of it.

    Parameters: after which silence the backup takes over (``timeout_ns``; of heartbeats every
    ``heartbeat_interval_ns``, or of the states' bytes if that is 0) and after which the primary gives the backup
    up; what a failover takes.

    ``stays``: a takeover is on the same host.  ``rings`` says what becomes of packets in the guest's receive rings
    (:func:`.machine.unplug`).

    ``is_cut``: the guest has come to the end of a life that a crash to come destroys.  ``step`` is the token of the
    mechanism's next event, ``piece`` that of the next piece of a state on a shared wire; ``alarm`` that of the backup's
    timeout, at ``alarm_ns``, planned for ``look_ns``, which is not later; ``alone`` that of the primary's, at
    ``alone_ns``; ``live`` that of its going live.
    ``pending`` are packets that the backup sends when it goes live.
    Backups have had ``follow_ns`` of the guest's CPU time to follow; while one ``follows``, less what it had used by
    then.
    """

    state: int
    is_cut: bool
    is_backup_dead: bool
    is_split: bool
    is_copied: bool
    copies_first: bool
    timeout_ns: int
    heartbeat_interval_ns: int
    backup_timeout_ns: int
    is_fenced: bool
    storage_ns: int
    activation_ns: int
    go_live_ns: int
    announcement_ns: int
    rings: int
    stays: bool
    step: int
    piece: int
    alarm: int
    alarm_ns: int
    look_ns: int
    alone: int
    alone_ns: int
    live: int
    restored: int
    pending: Fifo
    follows: bool
    follow_ns: int


replications = Table("replications", Replication, beside=guards)


def can_take_over(replication: Replication) -> bool:
    """Tell whether there is a backup that takes over if the primary fails now."""
    return replication.state in (PROTECTED, BROKEN) and not replication.is_backup_dead and not replication.is_split


def start_following(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Have a backup follow what the guest does from now on."""
    stop_following(sim, guard, replication)
    replication.follows = True
    replication.follow_ns -= run_ns(sim, guard)


def stop_following(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Have no backup follow the guest any more."""
    if replication.follows:
        replication.follows = False
        replication.follow_ns += run_ns(sim, guard)


@protection.slot
def start_cycle(sim: Sim, guard: Guard) -> None:
    """Begin to protect: the backup is in step."""


@protection.slot
def acknowledged(sim: Sim, guard: Guard) -> None:
    """Continue after the acknowledgement of the state that was taken last."""


@protection.slot
def abandon(sim: Sim, guard: Guard) -> None:
    """Lose what the primary holds; give the backup what it is to send."""


@protection.slot
def go_alone(sim: Sim, guard: Guard) -> None:
    """Release everything and continue without a backup."""


@protection.slot
def channel_restored(sim: Sim, guard: Guard) -> None:
    """Send again what the channel, which works again, has not brought through beside states."""


@protection.slot
def outputs_at_risk(sim: Sim, guard: Guard) -> int:
    """Return how many outputs die with the primary if it fails now."""
    return 0


@protection.slot
def underivable(sim: Sim, guard: Guard) -> int:
    """Return how many outputs have left that the state last received does not derive: 0, by the promise."""
    return 0
