"""Faults of devices beside the hosts themselves: the network card, the shared storage, the backup's processor."""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, EventKind, Record, Sim, Table, at, entry, event, timer
from vftsim.platform.io.disk import disk_list, disks, reached
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.nic import catch_up, nics
from vftsim.platform.io.packet import Port, ports
from vftsim.platform.protection import audit, machine, mechanism
from vftsim.platform.protection.account import note, word
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.faults import FAULTS, Fault, LastingFault, announce, fault, plan_end, strike
from vftsim.platform.protection.guard import Guard, guards, port_list
from vftsim.platform.protection.mechanism import NO_DURATION
from vftsim.platform.protection.pair import NEVER_NS
from vftsim.platform.protection.storage import expect_outage, lock_from_ns
from vftsim.spec.units import Percent

CARD_LOST = word("network card lost")
CARD_WORKS = word("network card works again")
STORAGE_LOST = word("storage lost")
STORAGE_BACK = word("storage back")
BACKUP_SLOW = word("backup slow")
BACKUP_AS_BEFORE = word("backup as before")

nic_loss = fault.kind("nic_loss")
storage_loss = fault.kind("storage_loss")
slow_backup = fault.kind("slow_backup")


class Recovery(Record):
    """The token of the end that is planned of the slowness of a guard's backup."""

    backup: int


class CardRecovery(Record):
    """The token of the end that is planned, at ``time_ns``, of the loss of a port's card."""

    card: int
    time_ns: int


recoveries = Table("recoveries", Recovery, beside=guards)
card_recoveries = Table("card_recoveries", CardRecovery, beside=ports)


# The network card


@FAULTS.register
class NicLoss(LastingFault):
    """The host's network cards no longer carry the domain's packets, in or out; after a failover another host's do.

    All cards that it uses, so that a domain on several networks is cut off from each, or that of one `network`.
    No mechanism watches it: heartbeats and channel use cards of their own.  A channel that shares the card is lost too.
    """

    kind: Literal["nic_loss"] = "nic_loss"
    strikes_card: ClassVar[bool] = True
    network: str | None = Field(None, description="Network whose card is lost; all of the domain if not given.")

    @property
    def of_network(self) -> str | None:
        return self.network

    def cuts_channel(self, engine: Engine, blow: int) -> bool:
        """Tell whether the channel leaves by the card."""
        return bool(engine.call(takes_channel, blow))


@nic_loss.implements(announce)
def announce_card(sim: Sim, blow: Fault) -> None:
    """A channel on the same card is lost with it."""
    if is_on_lost_card(sim, blow):
        mechanism.expect_channel_loss(sim, guards(sim)[blow.guard], blow.time_ns, blow.channel_ns)


@nic_loss.implements(strike)
def lose_card(sim: Sim, blow: Fault, guard: Guard = BESIDE) -> None:
    """Lose it, unless the machine is gone already."""
    if guard.dead:
        return
    note(sim, guard, CARD_LOST)
    for port in ports.listed(sim, port_list, guard.ports):
        if is_struck(blow, port):
            lose_port(sim, guard, blow, port)
    if is_on_lost_card(sim, blow):
        # The auditor first, as with every fault.
        audit.lose_channel(sim, guard.audit, blow.channel_ns)
        mechanism.channel_loss(sim, guard, blow.channel_ns)


def lose_port(sim: Sim, guard: Guard, blow: Fault, port: Port) -> None:
    """Lose the card of a port; one that is lost for longer already stays so until then."""
    until_ns = NEVER_NS if blow.duration_ns == NO_DURATION else sim.now_ns + blow.duration_ns
    recovery = card_recoveries(sim)[port.row]
    if port.dead_card == 0 or until_ns > recovery.time_ns:
        recovery.time_ns = until_ns
        recovery.card = 0
        if until_ns != NEVER_NS:
            recovery.card = at(sim, until_ns, EventKind.CONTROL, machine.ENTITY, on_card_restored, port.row)
    set_card(sim, port, guard.card_lost)


@entry
def takes_channel(sim: Sim, blow: Fault) -> int:
    """Tell whether the channel of a guard leaves by the card that a fault strikes."""
    return 1 if is_on_lost_card(sim, blow) else 0


def is_struck(blow: Fault, port: Port) -> bool:
    """Tell whether a fault strikes the card of a port."""
    return blow.network in (0, port.network)


def is_on_lost_card(sim: Sim, blow: Fault, guard: Guard = BESIDE) -> bool:
    """Tell whether the channel of a guard leaves by a card of its guest that a fault strikes."""
    shared = channels(sim)[guard.row].shared
    for port in ports.listed(sim, port_list, guard.ports):
        if shared != 0 and is_struck(blow, port) and cards(sim)[port.card].from_host == shared:
            return True
    return False


def set_card(sim: Sim, port: Port, drop_row: int) -> None:
    """Drop the packets of a port and count them in a row of ``drops``; 0: let them pass."""
    if port.nic != 0:
        # What has come by now has come while the card was as it was.
        catch_up(sim, nics(sim)[port.nic])
    port.dead_card = drop_row


@timer(card_recoveries, "card")
def on_card_restored(sim: Sim, port: Port) -> None:
    """The card works again, if the guest is still behind it."""
    if port.dead_card == 0:
        return
    set_card(sim, port, 0)
    # The last port of those that work again now says so.
    if not is_more_restored_now(sim, guards(sim)[port.guard]):
        note(sim, guards(sim)[port.guard], CARD_WORKS)


def is_more_restored_now(sim: Sim, guard: Guard) -> bool:
    """Tell whether another port of a guest gets its card back at this instant."""
    for port in ports.listed(sim, port_list, guard.ports):
        if port.dead_card != 0 and card_recoveries(sim)[port.row].time_ns == sim.now_ns:
            return True
    return False


# The storage


@FAULTS.register
class StorageLoss(LastingFault):
    """Neither host reaches the storage with the domain's disks and the lock: disks stand still, nobody is fenced."""

    kind: Literal["storage_loss"] = "storage_loss"
    strikes_disks: ClassVar[bool] = True


@storage_loss.implements(announce)
def announce_outage(sim: Sim, blow: Fault) -> None:
    """Whoever wants the lock then has to wait."""
    until_ns = NEVER_NS if blow.duration_ns == NO_DURATION else blow.time_ns + blow.duration_ns
    expect_outage(sim, guards(sim)[blow.guard], blow.time_ns, until_ns)


@storage_loss.implements(strike)
def lose_storage(sim: Sim, blow: Fault, guard: Guard = BESIDE) -> None:
    """Let the disks serve nothing."""
    note(sim, guard, STORAGE_LOST)
    for disk in disks.listed(sim, disk_list, guard.disks):
        disk.is_away = True
    plan_end(sim, guard, blow.duration_ns, on_storage_restored)


@event
def on_storage_restored(sim: Sim, guard: Guard) -> None:
    """The storage can be reached, unless another outage lasts longer."""
    # Another outage lasts longer; its own end, if it has one, comes here again.
    if lock_from_ns(sim, guard, sim.now_ns, 0) > sim.now_ns:
        return
    note(sim, guard, STORAGE_BACK)
    for disk in disks.listed(sim, disk_list, guard.disks):
        if disk.is_away:
            disk.is_away = False
            reached(sim, disk)


# The backup's processor


@FAULTS.register
class SlowBackup(LastingFault):
    """The backup's processor is slower for a while: it executes less, and falls behind."""

    kind: Literal["slow_backup"] = "slow_backup"
    needs_execution: ClassVar[bool] = True
    speed: Percent = Field(50.0, gt=0, lt=100, description="Share of its speed that is left. Assumption.")

    def fill(self, blow: Fault) -> None:
        blow.share = self.speed / 100.0


@slow_backup.implements(strike)
def slow_down(sim: Sim, blow: Fault, guard: Guard = BESIDE) -> None:
    """Slow it down; the newest fault replaces one that lasts."""
    note(sim, guard, BACKUP_SLOW)
    mechanism.set_backup_speed(sim, guard, blow.share)
    recoveries(sim)[guard.row].backup = plan_end(sim, guard, blow.duration_ns, on_backup_restored)


@timer(recoveries, "backup")
def on_backup_restored(sim: Sim, guard_row: int) -> None:
    """The backup is as fast as it was."""
    note(sim, guards(sim)[guard_row], BACKUP_AS_BEFORE)
    mechanism.set_backup_speed(sim, guards(sim)[guard_row], 1.0)
