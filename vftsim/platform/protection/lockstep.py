"""VMware vLockstep: the secondary replays the primary's log, outputs wait for the log to arrive.

Rule (Scales, Nelson, Venkitachalam, OSR 44(4) 2010): every non-deterministic input of the primary
(packets with their data, timer interrupts, clock reads, disk reads) becomes a log entry; the entries go
over a logging channel to the secondary, which acknowledges them on arrival and replays them at its own
speed; an output waits for the acknowledgement of its entry; a full log buffer stops the primary; an
execution lag above a second slows it down.  When the primary fails, the secondary consumes the rest of
the log, takes the lock on the shared storage, goes live, announces the MAC address and issues again
what may not have left.  When the secondary or the channel fails, the primary takes the lock and continues
alone.  Redundancy is restored by a live migration to a third host.

What survives a crash: the guest as it was when the first entry was written that does not reach the
secondary.  Execution between two entries is deterministic, so nothing but that entry is missing.  The
instant of a crash is announced beforehand, therefore that moment is known when it comes: the guest is
stopped there, its packets from then on are lost, and what the real primary would still do is not
simulated, because nobody can ever see it.  An output at that very moment is issued by the new primary.
A crash while the channel is lost, or before what was held back has left again, takes a second pass
(:mod:`.rollback`): that moment is then the first entry that the loss has kept from the secondary.

Left out: several vCPUs (replay was uniprocessor); a crash of both hosts; what a secondary that reads the shared disk
by itself takes of it from the primary.
Parameters and their sources: :mod:`vftsim.platform.protection._lockstep_parameters`.
"""

from typing import Any, ClassVar, Literal

from vftsim.kernel import BESIDE, Engine, EventKind, Sim, at, event
from vftsim.outcome import declare
from vftsim.platform.arithmetic import product_quotient
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.protection import (
    account,
    audit,
    commit,
    log_writer,
    machine,
    mechanism,
    replay,
    reprotection,
    rollback,
)
from vftsim.platform.protection._lockstep_costs import counts
from vftsim.platform.protection._lockstep_failover import add_limit, fail_over, least_limit_ns, remove_limit
from vftsim.platform.protection._lockstep_pair import (
    ENTITY,
    is_logging,
    new_plan,
    resume_with_room,
    truncate,
    unprotect,
)
from vftsim.platform.protection._lockstep_parameters import LockstepParameters
from vftsim.platform.protection._lockstep_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    SPLIT,
    STATE_NAMES,
    UNPROTECTED,
    Lockstep,
    Plan,
    install,
    lockstep,
    locksteps,
    plans,
)
from vftsim.platform.protection.account import count, note, word
from vftsim.platform.protection.channel import change, channels, left_by_ns, lost_from_ns
from vftsim.platform.protection.detection import crash_declared_ns, loss_declared_ns
from vftsim.platform.protection.guard import Guard, discard_all, guards, release_all
from vftsim.platform.protection.outcome import Protection
from vftsim.platform.protection.pair import Pair, pairs
from vftsim.platform.protection.prices import Priced
from vftsim.platform.protection.rollback import foresights, reach_point
from vftsim.platform.protection.storage import locked_ns
from vftsim.platform.protection.throttle import throttles
from vftsim.platform.protection.when import Instant

_MB = 1e6
NOBODY, PRIMARY, SECONDARY, BOTH_LIVE = 0, 1, 2, 3
"""Who halts after a channel loss."""

ISSUED_BY_BOTH = word("outputs_issued_by_both")
HELD_FOR_DETECTION = word("outputs_held_for_detection")


class Replay(Protection):
    """What logging and replay did and cost."""

    lowest_cpu_share: float = declare.number(label="CPU left to a slowed primary, least", unit="%", better="higher")


class LockstepFields(LockstepParameters):
    """Parameters of deterministic replay, and what they say of it."""

    issues_all: ClassVar[bool] = True
    backup_executes: ClassVar[bool] = True
    most_vcpus: ClassVar[int] = 1
    outcome: ClassVar[type[Protection]] = Replay
    channel_name: ClassVar[str] = "logging channel"

    @property
    def calibrated_costs(self) -> str:
        return self.cost.remark()

    @property
    def counts_exits(self) -> bool:
        return self.cost.is_counted

    @property
    def has_backup(self) -> bool:
        return True

    @property
    def is_fenced(self) -> bool:
        return self.failover.fencing

    @property
    def begins(self) -> Instant | None:
        return self.active_from

    @property
    def records_reads(self) -> bool:
        """What is read travels over the log, or the secondary reads it, too."""
        return self.log.disk_reads or self.secondary.disk is not None

    def prices(self) -> list[Priced]:
        """Leave out those of clock reads where none are logged, and of counted events where costs are factors."""
        prices, log = super().prices(), self.log
        if not (log.clock_reads_per_packet or log.clock_read_rate):
            prices = [each for each in prices if each.key not in ("log.event_entry", "cost.clock_read")]
        vain = set(self.without_effect())
        return [each for each in prices if each.key not in vain]

    @property
    def slowdown(self) -> tuple[float, float]:
        return self.cost.slowdown

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        install(engine, guard, self, vm_link)
        engine.rows(guards)[guard].audit.hears = True

    def holds(self, engine: Engine, guard: int) -> dict[str, Any]:
        vlockstep, held = engine.rows(locksteps)[guard], super().holds(engine, guard)
        pair = engine.rows(pairs)[vlockstep.pair]
        sent_ns = int(vlockstep.replayed_ns + pair.secondary.need_ns)
        return {
            **held,
            "counted": {**held["counted"], **counts(engine, guard)},
            "channel_bytes": int(engine.rows(channels)[guard].sent_bytes),
            "backup_cpu_ns": sent_ns - engine.call(mechanism.unreplayed_now, guard),
            "memory": self.log.buffer / _MB,
            "backup_memory": (self.memory_bytes + self.secondary.buffer) / _MB,
            "held_ns": int(vlockstep.waited_ns + pair.wait_ns),
            "released": int(vlockstep.released + pair.released),
            "longest_held_ns": max(int(vlockstep.longest_wait_ns), int(pair.longest_ns)),
            "lowest_cpu_share": float(engine.rows(throttles)[guard].lowest_share),
        }

    def forget_extremes(self, engine: Engine, guard: int) -> None:
        """Have the lowest share begin with the present one, and the longest wait anew."""
        vlockstep = engine.rows(locksteps)[guard]
        vlockstep.longest_wait_ns = engine.rows(pairs)[vlockstep.pair].longest_ns = 0
        engine.rows(throttles)[guard].lowest_share = engine.rows(throttles)[guard].share


@mechanism.PROTECTIONS.register
class LockstepSpec(LockstepFields):
    """VMware Fault Tolerance by deterministic replay (vSphere 4); one vCPU only."""

    products: ClassVar[tuple[str, ...]] = ("vmware", "vmware_ft", "ft")
    kind: Literal["lockstep"] = "lockstep"


def state_name(engine: Engine, guard: int) -> str:
    """Return where a guard's pair of hosts stands."""
    return STATE_NAMES[int(engine.rows(locksteps)[guard].state)]


# The secondary or the channel fails


@lockstep.implements(mechanism.backup_crash)
def crash_backup(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> None:
    """Hold outputs until the primary notices and continues alone; end the service if the primary has failed already."""
    note(sim, guard, account.BACKUP_CRASH)
    if vlockstep.state == PROTECTED:
        # The channel works: acknowledgements that are on the wire still arrive.
        break_pair(sim, vlockstep, True)
    replay.halt(sim, pairs(sim)[vlockstep.pair].secondary)
    if vlockstep.state == SPLIT and vlockstep.second != 0:
        # It was about to live beside the primary, and never does: see on_second_live().
        vlockstep.is_backup_dead = True
        vlockstep.state = UNPROTECTED
    if vlockstep.state == UNPROTECTED:
        reprotection.start(sim, guard)
        return
    vlockstep.is_backup_dead = True
    if vlockstep.state == SPLIT:
        return
    if vlockstep.state == FAILING_OVER and not vlockstep.is_cut:
        vlockstep.state = UNPROTECTED
        machine.kill(sim, guard)
        # Nobody is left to issue them.
        discard_all(sim, vlockstep.pending)
    elif vlockstep.state == FAILING_OVER:
        # The guest is cut for a crash to come, its primary lives: it hears of what had arrived by now, and no more.
        commit.lose_channel(sim, pairs(sim)[vlockstep.pair], True)
    else:
        plan_alone(sim, guard, vlockstep, crash_declared_ns(sim, guard, sim.now_ns, False), UNPROTECTED)


@lockstep.implements(mechanism.expect_channel_loss)
def expect_loss(sim: Sim, guard: Guard, time_ns: int, duration_ns: int, vlockstep: Lockstep = BESIDE) -> None:
    """If the secondary will win the race, entries that have not arrived by then are lost."""
    if loser(sim, guard, vlockstep, time_ns, duration_ns) == PRIMARY:
        add_limit(sim, guard, time_ns, True)


@lockstep.implements(mechanism.channel_loss)
def lose_channel(sim: Sim, guard: Guard, duration_ns: int, vlockstep: Lockstep = BESIDE) -> None:
    """Cut the channel; heartbeats continue over another network."""
    halts = loser(sim, guard, vlockstep, sim.now_ns, duration_ns)
    # Read before the log is written up to now, which would put more on the channel.
    limit_ns = left_by_ns(channels(sim)[guard.row], sim.now_ns)
    if halts == PRIMARY:
        # The instant has come for which expect_loss() had announced it.
        remove_limit(sim, guard, sim.now_ns, True)
    # A guest that was cut before this loss, for a later limit, still has its log on the channel.
    if vlockstep.state != PROTECTED and not (vlockstep.state == FAILING_OVER and vlockstep.is_cut):
        return
    note(sim, guard, account.CHANNEL_LOSS)
    note_loss(sim, guard, vlockstep, limit_ns)
    # A later loss may be the one that a crash finds, and this one what keeps the log from the secondary until then.
    if rollback.is_cut_at_loss(sim, guard) or rollback.foreseen_limit_ns(sim, guard) <= limit_ns:
        log_writer.advance(sim, pairs(sim)[vlockstep.pair])
        truncate(sim, guard, vlockstep)
        commit.lose_channel(sim, pairs(sim)[vlockstep.pair], False)
        return
    if halts == PRIMARY:
        fail_over(sim, guard, vlockstep, limit_ns, loss_declared_ns(sim, guard, sim.now_ns, True))
        return
    if halts == BOTH_LIVE:
        plan_second(sim, guard, vlockstep, limit_ns)
    break_pair(sim, vlockstep, False)
    if halts == NOBODY:
        row = new_plan(sim, guard, vlockstep, PROTECTED)
        at(sim, sim.now_ns + duration_ns, EventKind.CHANNEL, ENTITY, on_channel_restored, row)
    else:
        state = SPLIT if halts == BOTH_LIVE else UNPROTECTED
        plan_alone(sim, guard, vlockstep, loss_declared_ns(sim, guard, sim.now_ns, False), state)


def note_loss(sim: Sim, guard: Guard, vlockstep: Lockstep, limit_ns: int) -> None:
    """Take note of what does not reach the secondary: what an earlier loss has kept from it too, if still under way."""
    vlockstep.loss_declared_ns = loss_declared_ns(sim, guard, sim.now_ns, True)
    written_ns = lost_from_ns(channels(sim)[guard.row], limit_ns)
    if vlockstep.resent_arrival_ns > sim.now_ns:
        loss = foresights(sim)[guard.row].loss
        limit_ns, written_ns = loss.limit_ns, loss.written_ns
    rollback.note_loss(sim, guard, limit_ns, written_ns)


@lockstep.implements(reach_point)
def foresee_loss(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> None:
    """Entries that a loss to come keeps from the secondary die with the primary."""
    vlockstep.limit_ns = least_limit_ns(sim, guard, vlockstep)


@lockstep.implements(mechanism.change_channel)
def change_log_channel(sim: Sim, guard: Guard, rate_bits_per_s: int, latency_ns: int) -> None:
    """Send what is written from now on over a channel that has changed; the log buffer keeps its bytes."""
    vlockstep = locksteps(sim)[guard.row]
    if is_logging(vlockstep):
        log_writer.advance(sim, pairs(sim)[vlockstep.pair])
    change(channels(sim)[guard.row], rate_bits_per_s, latency_ns)
    vlockstep.buffer_ns = product_quotient(vlockstep.buffer_bytes, BITS_NS, rate_bits_per_s)
    vlockstep.limit_ns = least_limit_ns(sim, guard, vlockstep)


def loser(sim: Sim, guard: Guard, vlockstep: Lockstep, loss_ns: int, duration_ns: int) -> int:
    """Return who halts after a channel loss: the second one at the shared storage."""
    primary_ns = loss_declared_ns(sim, guard, loss_ns, False)
    secondary_ns = loss_declared_ns(sim, guard, loss_ns, True)
    if duration_ns != mechanism.NO_DURATION and loss_ns + duration_ns < min(primary_ns, secondary_ns):
        return NOBODY
    if not vlockstep.is_fenced:
        return BOTH_LIVE
    return SECONDARY if primary_ns <= secondary_ns else PRIMARY


def break_pair(sim: Sim, vlockstep: Lockstep, acks_survive: bool, pair: Pair = BESIDE) -> None:
    """Take note that entries do not get through any more."""
    log_writer.stop_sending(sim, pair)
    vlockstep.state = BROKEN
    commit.lose_channel(sim, pair, acks_survive)


def plan_alone(sim: Sim, guard: Guard, vlockstep: Lockstep, declared_ns: int, state: int) -> None:
    """Plan the primary's continuing alone, into ``state``, unless the channel works again by then."""
    row = new_plan(sim, guard, vlockstep, state)
    lock_ns = locked_ns(sim, guard, vlockstep.is_fenced, declared_ns, vlockstep.storage_ns)
    at(sim, lock_ns, EventKind.CONTROL, ENTITY, on_alone, row)


def is_still_broken(guard: Guard, vlockstep: Lockstep, number: int) -> bool:
    """Tell whether the pair of that number is the present one, and waits for what becomes of it."""
    return number == vlockstep.begun and vlockstep.state == BROKEN and not guard.dead


@event
def on_alone(sim: Sim, plan: Plan, guard: Guard = BESIDE) -> None:
    """The primary continues alone: everything held leaves."""
    vlockstep = locksteps(sim)[plan.guard]
    if is_still_broken(guard, vlockstep, plan.pair):
        account.note_alone(sim, guard)
        audit.end(sim, guard.audit)
        # What waited leaves before the guest, which may stand still for its full buffer, runs again.
        count(sim, guard, HELD_FOR_DETECTION, commit.release_all(sim, pairs(sim)[vlockstep.pair]))
        # A secondary that has died since lives beside nobody.
        state = UNPROTECTED if vlockstep.is_backup_dead else plan.state
        unprotect(sim, guard, vlockstep, state)
        if state == UNPROTECTED:
            replay.halt(sim, pairs(sim)[vlockstep.pair].secondary)
            reprotection.start(sim, guard)
    plans.free(sim, plan.row)


@event
def on_channel_restored(sim: Sim, plan: Plan, guard: Guard = BESIDE) -> None:
    """The channel works again."""
    vlockstep = locksteps(sim)[plan.guard]
    if is_still_broken(guard, vlockstep, plan.pair) and vlockstep.is_backup_dead:
        note(sim, guard, account.CHANNEL_WORKS)
    elif is_still_broken(guard, vlockstep, plan.pair):
        note(sim, guard, account.CHANNEL_WORKS)
        vlockstep.state = PROTECTED
        pair = pairs(sim)[vlockstep.pair]
        log_writer.resend(sim, pair)
        arrival_ns = pair.log.last_arrival_ns
        vlockstep.resent_ns = pair.log.last_depart_ns
        vlockstep.resent_arrival_ns = arrival_ns
        ack_ns = arrival_ns + channels(sim)[guard.row].ack_ns
        commit.resend(sim, pair, pair.log.last_depart_ns, arrival_ns, ack_ns)
        # Whether the guest stood still for want of room or not: what has been sent again decides when there is some.
        vlockstep.is_full = True
        resume_with_room(sim, guard, vlockstep)
    plans.free(sim, plan.row)


def plan_second(sim: Sim, guard: Guard, vlockstep: Lockstep, limit_ns: int, pair: Pair = BESIDE) -> None:
    """Without fencing the secondary goes live too, and issues what it cannot be sure of."""
    audit.live_beside(sim, guard.audit)
    row = new_plan(sim, guard, vlockstep, SPLIT)
    commit.copy_uncertain(sim, pair, limit_ns, pair.log.last_depart_ns, plans(sim)[row].packets)
    declared_ns = loss_declared_ns(sim, guard, sim.now_ns, True)
    live_ns = max(declared_ns, pair.secondary.end_ns) + vlockstep.go_live_ns
    vlockstep.second = at(sim, live_ns, EventKind.CONTROL, ENTITY, on_second_live, row)


@event
def on_second_live(sim: Sim, plan: Plan, token: int, guard: Guard = BESIDE) -> None:
    """The secondary goes live beside the primary, unless it has died since, or was replaced."""
    vlockstep = locksteps(sim)[plan.guard]
    if token == vlockstep.second:
        vlockstep.second = 0
    if plan.pair != vlockstep.begun or vlockstep.is_backup_dead:
        discard_all(sim, plan.packets)
    else:
        note(sim, guard, account.LIVE_TOO)
        audit.end(sim, guard.audit)
        count(sim, guard, ISSUED_BY_BOTH, plan.packets.length)
        release_all(sim, plan.packets)
    plans.free(sim, plan.row)
