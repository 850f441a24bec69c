"""Faults of devices beside the hosts themselves: the network card, the shared storage, the backup's processor."""

from typing import ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table, entry, event, timer
from vftsim.platform.io.disk import disk_list, disks, reached
from vftsim.platform.io.host_cards import cards
from vftsim.platform.io.nic import catch_up, nics
from vftsim.platform.io.packet import ports
from vftsim.platform.protection import audit, mechanism
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
    """Tokens of the ends that are planned for a guard: of its card's loss, at ``card_ns``, of its backup's slowness."""

    card: int
    card_ns: int
    backup: int


recoveries = Table("recoveries", Recovery, beside=guards)


# The network card


@FAULTS.register
class NicLoss(LastingFault):
    """The host's network cards no longer carry the domain's packets, in or out; after a failover another host's do.

    All cards that it uses: a domain on several networks is cut off from each.
    No mechanism watches it: heartbeats and channel use cards of their own.  A channel that shares the card is lost too.
    """

    kind: Literal["nic_loss"] = "nic_loss"
    strikes_card: ClassVar[bool] = True

    def cuts_channel(self, engine: Engine, guard: int) -> bool:
        """Tell whether the channel leaves by the card."""
        return bool(engine.call(shares_card, guard))


@nic_loss.implements(announce)
def announce_card(sim: Sim, blow: Fault) -> None:
    """A channel on the same card is lost with it."""
    if is_on_own_card(sim, guards(sim)[blow.guard]):
        mechanism.expect_channel_loss(sim, guards(sim)[blow.guard], blow.time_ns, blow.channel_ns)


@nic_loss.implements(strike)
def lose_card(sim: Sim, blow: Fault, guard: Guard = BESIDE) -> None:
    """Lose it, unless the machine is gone already."""
    if guard.dead:
        return
    note(sim, guard, CARD_LOST)
    recovery = recoveries(sim)[guard.row]
    until_ns = NEVER_NS if blow.duration_ns == NO_DURATION else sim.now_ns + blow.duration_ns
    # A card that is lost for longer already stays so until then.
    if not is_card_lost(sim, guard) or until_ns > recovery.card_ns:
        recovery.card_ns = until_ns
        recovery.card = plan_end(sim, guard, blow.duration_ns, on_card_restored)
    set_cards(sim, guard, guard.card_lost)
    if is_on_own_card(sim, guard):
        # The auditor first, as with every fault.
        audit.lose_channel(sim, guard.audit, blow.channel_ns)
        mechanism.channel_loss(sim, guard, blow.channel_ns)


@entry
def shares_card(sim: Sim, guard_row: int) -> int:
    """Tell whether the channel of a guard leaves by a card of its guest."""
    return 1 if is_on_own_card(sim, guards(sim)[guard_row]) else 0


def is_card_lost(sim: Sim, guard: Guard) -> bool:
    """Tell whether a guest stands behind a card that is lost."""
    return guard.ports.first != 0 and ports(sim)[guard.ports.first].dead_card != 0


def is_on_own_card(sim: Sim, guard: Guard) -> bool:
    """Tell whether the channel of a guard leaves by a card of its guest."""
    shared = channels(sim)[guard.row].shared
    for port in ports.listed(sim, port_list, guard.ports):
        if shared != 0 and cards(sim)[port.card].from_host == shared:
            return True
    return False


def set_cards(sim: Sim, guard: Guard, drop_row: int) -> None:
    """Drop the packets of a guest's ports and count them in a row of ``drops``; 0: let them pass."""
    for port in ports.listed(sim, port_list, guard.ports):
        if port.nic != 0:
            # What has come by now has come while the card was as it was.
            catch_up(sim, nics(sim)[port.nic])
        port.dead_card = drop_row


@timer(recoveries, "card")
def on_card_restored(sim: Sim, guard: Guard) -> None:
    """The card works again, if the guest is still behind it."""
    if is_card_lost(sim, guard):
        note(sim, guard, CARD_WORKS)
        set_cards(sim, guard, 0)


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
