"""VMware vLockstep: the secondary replays the primary's log, outputs wait for the log to arrive.

Rule (Scales, Nelson, Venkitachalam, OSR 44(4) 2010): every non-deterministic input of the primary
(packets with their data, timer interrupts, clock reads, disk reads) becomes a log entry; the entries go
over a logging channel to the secondary, which acknowledges them on arrival and replays them at its own
speed; an output waits for the acknowledgement of its entry; a full log buffer stops the primary; an
execution lag above a second slows it down.  When the primary fails, the secondary consumes the rest of
the log, takes the lock on the shared storage, goes live, announces the MAC address and issues again
what may not have left.  When the secondary or the channel fails, the primary takes the lock and goes on
alone.  Redundancy is restored by a live migration to a third host.

What survives a crash: the guest as it was when the first entry was written that does not reach the
secondary.  Execution between two entries is deterministic, so nothing but that entry is missing.  The
instant of a crash is announced beforehand, therefore that moment is known when it comes: the guest is
stopped there, its packets from then on are lost, and what the real primary would still do is not
simulated, because nobody can ever see it.  An output at that very moment is issued by the new primary.

Left out: several vCPUs (replay was uniprocessor); a crash of both hosts; the secondary's disk.
Parameters and their sources: :mod:`vftsim.platform.protection._lockstep_parameters`.
"""

from typing import ClassVar, Literal, Self

from vftsim.kernel import Engine, EventKind, Kind, Sim, at, event, part
from vftsim.platform.arithmetic import scaled
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.io.packet import packet_list
from vftsim.platform.protection import commit, log_writer, machine, reprotection
from vftsim.platform.protection._lockstep_costs import counts
from vftsim.platform.protection._lockstep_limits import add_limit, least_limit_ns, remove_limit
from vftsim.platform.protection._lockstep_pair import ENTITY, cut, go_on_with_room, is_logging, unprotect
from vftsim.platform.protection._lockstep_parameters import LockstepFields
from vftsim.platform.protection._lockstep_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    SPLIT,
    STATE_NAMES,
    UNPROTECTED,
    Lockstep,
    install,
    lockstep,
    locksteps,
    plans,
)
from vftsim.platform.protection.account import count, counters, note, note_at, word
from vftsim.platform.protection.channel import change, channels, left_by_ns
from vftsim.platform.protection.detection import crash_declared_ns, loss_declared_ns
from vftsim.platform.protection.guard import Guard, guards, release
from vftsim.platform.protection.mechanism import (
    CRASH,
    NO_DURATION,
    PROTECTIONS,
    ProtectionSpec,
    backup_crash,
    change_channel,
    channel_loss,
    expect_channel_loss,
    expect_primary_crash,
    lose_machine,
    primary_crash,
)
from vftsim.platform.protection.pair import pairs
from vftsim.platform.protection.storage import locked_ns
from vftsim.platform.protection.throttle import throttles
from vftsim.platform.protection.when import Instant

NOBODY, PRIMARY, SECONDARY, BOTH_LIVE = 0, 1, 2, 3
"""Who halts after a channel loss."""

DECLARED = word("failure declared")
LIVE = word("secondary live")
LIVE_TOO = word("secondary live too")
REACHABLE = word("reachable")
BACKUP_CRASH = word("backup crash")
CHANNEL_LOSS = word("channel loss")
CHANNEL_WORKS = word("channel works again")
ALONE = word("primary goes on alone")
FAILOVERS = word("failovers")
ISSUED_AGAIN = word("outputs_issued_again")
ISSUED_BY_SECONDARY = word("outputs_issued_by_secondary")
ISSUED_BY_BOTH = word("outputs_issued_by_both")
HELD_FOR_DETECTION = word("outputs_held_for_detection")


@PROTECTIONS.register
class LockstepSpec(LockstepFields, ProtectionSpec):
    """VMware Fault Tolerance by deterministic replay (vSphere 4); one vCPU only."""

    kind: Literal["lockstep"] = "lockstep"
    part: ClassVar[Kind] = lockstep

    @property
    def has_backup(self) -> bool:
        """It has."""
        return True

    @property
    def begins(self) -> Instant | None:
        """When protection is turned on."""
        return self.active_from

    @property
    def most_vcpus(self) -> int:
        """Replay handles one."""
        return 1

    @property
    def backup_executes(self) -> bool:
        """The secondary replays."""
        return True

    @property
    def slowdown(self) -> tuple[float, float]:
        """What logging costs the guest."""
        return self.cost.slowdown

    @property
    def channel_network(self) -> str | None:
        """Network that carries the log."""
        return self.channel.network

    def on_network(self, rate_bits_per_s: int, latency_ns: int) -> Self:
        """Return these parameters with the channel's rate, and its latency if none is given, those of the network."""
        own_ns = self.channel.latency
        found = {"rate": rate_bits_per_s, "latency": latency_ns if own_ns is None else own_ns}
        return self.model_copy(update={"channel": self.channel.model_copy(update=found)})

    def transmitters(self, engine: Engine, guard: int) -> dict[str, tuple[float, int]]:
        """Return bytes sent and rate of the logging channel, if it is its own."""
        one = engine.rows(channels)[guard]
        if one.shared:
            return {}
        return {"logging channel": (float(one.sent_bytes), int(one.rate_bits_per_s))}

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        """Write these parameters into the records of a guard."""
        install(engine, guard, self, vm_link)

    def summary(self, engine: Engine, guard: int) -> dict[str, int | float]:
        """Return what the mechanism did and cost in the run so far."""
        own = engine.rows(locksteps)[guard]
        pair = engine.rows(pairs)[own.pair]
        return {
            **counters(engine, guard),
            **counts(engine, guard),
            "log_bytes": int(engine.rows(channels)[guard].sent_bytes),
            "secondary_cpu_s": int(own.replayed_ns + pair.secondary.busy_ns) / 1e9,
            "stopped_s": int(engine.rows(guards)[guard].stopped_ns) / 1e9,
            "lowest_cpu_share_percent": float(engine.rows(throttles)[guard].lowest_share),
            "output_wait_ms": int(pair.wait_ns) / 1e6 / max(1, int(pair.released)),
        }


def state_name(engine: Engine, guard: int) -> str:
    """Return where a guard's pair of hosts stands."""
    return STATE_NAMES[int(engine.rows(locksteps)[guard].state)]


# The primary's host fails


@lockstep.implements(expect_primary_crash)
def expect_crash(sim: Sim, guard: Guard, time_ns: int) -> None:
    """Entries that have not left by then die with the primary."""
    add_limit(sim, guard, time_ns, False)


@lockstep.implements(primary_crash)
def crash_primary(sim: Sim, guard: Guard) -> None:
    """Fail over, if there is somebody to fail over to."""
    own = locksteps(sim)[guard.row]
    remove_limit(sim, guard, sim.now_ns, False)
    if guard.dead or (own.state == FAILING_OVER and not own.is_cut):
        return
    if own.state not in (PROTECTED, FAILING_OVER):
        lose_machine(sim, guard)
        return
    note(sim, guard, CRASH)
    fail_over(sim, guard, own, sim.now_ns, crash_declared_ns(sim, guard, sim.now_ns, True))


@part
def fail_over(sim: Sim, guard: Guard, own: Lockstep, limit_ns: int, declared_ns: int) -> None:
    """Plan the secondary's going live; it has what left the primary by ``limit_ns``."""
    pair = pairs(sim)[own.pair]
    if own.state == PROTECTED:
        log_writer.advance(sim, pair)
        cut(sim, guard, own)
    own.is_cut = False
    row = new_plan(sim, guard, own, UNPROTECTED)
    plan = plans(sim)[row]
    last_sent_ns = min(pair.log.last_depart_ns, limit_ns)
    plan.again = commit.take_over(sim, pair, limit_ns, last_sent_ns, plan.packets)
    lock_ns = locked_ns(sim, guard, own.is_fenced, declared_ns, own.storage_ns)
    live_ns = max(lock_ns, pair.secondary.end_ns) + own.go_live_ns
    note_at(sim, guard, declared_ns, DECLARED)
    at(sim, live_ns, EventKind.CONTROL, ENTITY, on_live, row)


@event
def on_live(sim: Sim, place: int, token: int) -> None:
    """The secondary goes live, issues what may not have left, and goes on where the guest was cut."""
    plan = plans(sim)[place]
    guard = guards(sim)[plan.guard]
    own = locksteps(sim)[plan.guard]
    unprotect(sim, guard, own, UNPROTECTED)
    note(sim, guard, LIVE)
    count(sim, guard, FAILOVERS, 1)
    machine.move(sim, guard)
    count(sim, guard, ISSUED_AGAIN, plan.again)
    count(sim, guard, ISSUED_BY_SECONDARY, plan.packets.length - plan.again)
    while plan.packets.length > 0:
        release(sim, packet_list.pop(sim, plan.packets))
    while own.pending.length > 0:
        release(sim, packet_list.pop(sim, own.pending))
    plans.free(sim, place)
    machine.call_after(sim, guard, own.announcement_ns, on_reachable)
    machine.resume(sim, guard, machine.FAILOVER)
    reprotection.start(sim, guard)


@event
def on_reachable(sim: Sim, place: int, token: int) -> None:
    """The switches have learnt where the guest is now."""
    guard = guards(sim)[place]
    machine.connect(sim, guard)
    note(sim, guard, REACHABLE)


# The secondary or the channel fails


@lockstep.implements(backup_crash)
def crash_backup(sim: Sim, guard: Guard) -> None:
    """Hold outputs until the primary notices and goes on alone."""
    note(sim, guard, BACKUP_CRASH)
    own = locksteps(sim)[guard.row]
    if own.state == UNPROTECTED:
        reprotection.start(sim, guard)
    elif own.state == PROTECTED:
        break_pair(sim, own, True)
        plan_alone(sim, guard, own, crash_declared_ns(sim, guard, sim.now_ns, False), UNPROTECTED)


@lockstep.implements(expect_channel_loss)
def expect_loss(sim: Sim, guard: Guard, time_ns: int, duration_ns: int) -> None:
    """If the secondary will win the race, entries that have not arrived by then are lost."""
    own = locksteps(sim)[guard.row]
    if loser(sim, guard, own, time_ns, duration_ns) == PRIMARY:
        add_limit(sim, guard, time_ns, True)


@lockstep.implements(channel_loss)
def lose_channel(sim: Sim, guard: Guard, duration_ns: int) -> None:
    """Cut the channel; heartbeats go on over another network."""
    own = locksteps(sim)[guard.row]
    halts = loser(sim, guard, own, sim.now_ns, duration_ns)
    limit_ns = left_by_ns(channels(sim)[guard.row], sim.now_ns)
    if halts == PRIMARY:
        remove_limit(sim, guard, sim.now_ns, True)
    if own.state != PROTECTED and not (own.state == FAILING_OVER and own.is_cut):
        return
    note(sim, guard, CHANNEL_LOSS)
    if halts == PRIMARY:
        fail_over(sim, guard, own, limit_ns, loss_declared_ns(sim, guard, sim.now_ns, True))
        return
    if halts == BOTH_LIVE:
        plan_second(sim, guard, own, limit_ns)
    break_pair(sim, own, False)
    if halts == NOBODY:
        row = new_plan(sim, guard, own, PROTECTED)
        at(sim, sim.now_ns + duration_ns, EventKind.CHANNEL, ENTITY, on_restored, row)
    else:
        state = SPLIT if halts == BOTH_LIVE else UNPROTECTED
        plan_alone(sim, guard, own, loss_declared_ns(sim, guard, sim.now_ns, False), state)


@lockstep.implements(change_channel)
def change_log_channel(sim: Sim, guard: Guard, rate_bits_per_s: int, latency_ns: int) -> None:
    """Send what is written from now on over a channel that has changed; the log buffer keeps its bytes."""
    own = locksteps(sim)[guard.row]
    if is_logging(own):
        log_writer.advance(sim, pairs(sim)[own.pair])
    change(channels(sim)[guard.row], rate_bits_per_s, latency_ns)
    own.buffer_ns = scaled(own.buffer_bytes, BITS_NS, rate_bits_per_s)
    own.limit_ns = least_limit_ns(sim, guard, own)


@part
def loser(sim: Sim, guard: Guard, own: Lockstep, loss_ns: int, duration_ns: int) -> int:
    """Return who halts after a channel loss: the second one at the shared storage."""
    primary_ns = loss_declared_ns(sim, guard, loss_ns, False)
    secondary_ns = loss_declared_ns(sim, guard, loss_ns, True)
    if duration_ns != NO_DURATION and loss_ns + duration_ns < min(primary_ns, secondary_ns):
        return NOBODY
    if not own.is_fenced:
        return BOTH_LIVE
    return SECONDARY if primary_ns <= secondary_ns else PRIMARY


@part
def break_pair(sim: Sim, own: Lockstep, acks_survive: bool) -> None:
    """Take note that entries do not get through any more."""
    pair = pairs(sim)[own.pair]
    log_writer.advance(sim, pair)
    own.state = BROKEN
    pair.log.broken = True
    commit.lose_channel(sim, pair, acks_survive)


@part
def plan_alone(sim: Sim, guard: Guard, own: Lockstep, declared_ns: int, state: int) -> None:
    """Plan the primary's going on alone, into ``state``, unless the channel works again by then."""
    row = new_plan(sim, guard, own, state)
    lock_ns = locked_ns(sim, guard, own.is_fenced, declared_ns, own.storage_ns)
    at(sim, lock_ns, EventKind.CONTROL, ENTITY, on_alone, row)


@part
def is_still_broken(guard: Guard, own: Lockstep, number: int) -> bool:
    """Tell whether the pair of that number is the present one, and waits for what becomes of it."""
    return number == own.begun and own.state == BROKEN and not guard.dead


@event
def on_alone(sim: Sim, place: int, token: int) -> None:
    """The primary goes on alone: everything held leaves."""
    plan = plans(sim)[place]
    guard = guards(sim)[plan.guard]
    own = locksteps(sim)[plan.guard]
    if is_still_broken(guard, own, plan.pair):
        note(sim, guard, ALONE)
        count(sim, guard, HELD_FOR_DETECTION, commit.release_all(sim, pairs(sim)[own.pair]))
        unprotect(sim, guard, own, plan.state)
        if plan.state == UNPROTECTED:
            reprotection.start(sim, guard)
    plans.free(sim, place)


@event
def on_restored(sim: Sim, place: int, token: int) -> None:
    """The channel works again."""
    plan = plans(sim)[place]
    guard = guards(sim)[plan.guard]
    own = locksteps(sim)[plan.guard]
    if is_still_broken(guard, own, plan.pair):
        note(sim, guard, CHANNEL_WORKS)
        own.state = PROTECTED
        pair = pairs(sim)[own.pair]
        log_writer.resend(sim, pair)
        arrival_ns = pair.log.last_arrival_ns
        ack_ns = arrival_ns + channels(sim)[guard.row].ack_ns
        commit.resend(sim, pair, pair.log.last_depart_ns, arrival_ns, ack_ns)
        own.is_full = True
        go_on_with_room(sim, guard, own)
    plans.free(sim, place)


@part
def plan_second(sim: Sim, guard: Guard, own: Lockstep, limit_ns: int) -> None:
    """Without fencing the secondary goes live too, and issues what it cannot be sure of."""
    pair = pairs(sim)[own.pair]
    row = new_plan(sim, guard, own, SPLIT)
    commit.copy_uncertain(sim, pair, limit_ns, pair.log.last_depart_ns, plans(sim)[row].packets)
    declared_ns = loss_declared_ns(sim, guard, sim.now_ns, True)
    live_ns = max(declared_ns, pair.secondary.end_ns) + own.go_live_ns
    at(sim, live_ns, EventKind.CONTROL, ENTITY, on_second_live, row)


@event
def on_second_live(sim: Sim, place: int, token: int) -> None:
    """The secondary goes live beside the primary."""
    plan = plans(sim)[place]
    guard = guards(sim)[plan.guard]
    note(sim, guard, LIVE_TOO)
    count(sim, guard, ISSUED_BY_BOTH, plan.packets.length)
    while plan.packets.length > 0:
        release(sim, packet_list.pop(sim, plan.packets))
    plans.free(sim, place)


@part
def new_plan(sim: Sim, guard: Guard, own: Lockstep, state: int) -> int:
    """Return the row of a plan for the present pair that leads to ``state``."""
    row = plans.new(sim)
    plan = plans(sim)[row]
    plan.guard = guard.row
    plan.pair = own.begun
    plan.state = state
    plan.again = 0
    return row
