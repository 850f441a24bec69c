"""A lockstep pair while nothing fails: what the primary logs, holds and releases, and when it is stopped.

See :mod:`vftsim.platform.protection.lockstep` for the mechanism as a whole.
"""

from vftsim.kernel import BESIDE, EventKind, Sim, at, event
from vftsim.platform.arithmetic import nearest
from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.io.packet import packet_list
from vftsim.platform.protection import _lockstep_costs as costs
from vftsim.platform.protection import account, audit, commit, log_writer, machine, replay, throttle
from vftsim.platform.protection._lockstep_costs import Recording, recordings
from vftsim.platform.protection._lockstep_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    SPLIT,
    Lockstep,
    Plan,
    lockstep,
    locksteps,
    plans,
)
from vftsim.platform.protection.account import count, note, word
from vftsim.platform.protection.channel import channels
from vftsim.platform.protection.guard import (
    LOST,
    Guard,
    before_stop,
    guards,
    hold_output,
    note_input,
    note_read,
    note_transfer,
    release,
)
from vftsim.platform.protection.mechanism import begin, lag, missing, set_backup_speed, unreplayed
from vftsim.platform.protection.pair import Log, Pair, Train, pairs

ENTITY = 3
"""Orders a pair's events among simultaneous ones of their kind."""

BUFFER_FULL = word("log_buffer_full")


def is_logging(vlockstep: Lockstep) -> bool:
    """Tell whether the guest is recorded."""
    return vlockstep.state in (PROTECTED, BROKEN)


@lockstep.implements(note_input)
def log_input(sim: Sim, guard: Guard, size_bytes: int, vlockstep: Lockstep = BESIDE) -> int:
    """Log a packet with its data; return what that costs the guest, or :data:`LOST`."""
    if not is_logging(vlockstep):
        if vlockstep.state == SPLIT:
            count(sim, guard, account.INPUTS_WHILE_SPLIT, 1)
        return LOST if vlockstep.state == FAILING_OVER else 0
    data_bytes = max(0, size_bytes - vlockstep.framing_bytes)
    # This may be the first entry that dies with the primary: the guest is cut then, and never sees the packet.
    if not write(sim, guard, vlockstep, nearest((vlockstep.packet_bytes + data_bytes) * vlockstep.transport_overhead)):
        return LOST
    log = pairs(sim)[vlockstep.pair].log
    # After the write, which has brought the trains up to now: the packet pays for them too.
    due_ns = log.cost_due_ns
    log.cost_due_ns = 0
    recording = recordings(sim)[guard.row]
    if recording.is_counted:
        recording.packets += 1
        costs.count_exits(sim, guard, recording)
        due_ns += costs.take_due_ns(recording)
    cost_ns = vlockstep.packet_cost_ns + due_ns + vlockstep.kibibyte_cost_ns * data_bytes // 1024
    if recording.is_counted:
        note_recording(sim, guard, log, cost_ns)
    return cost_ns


def note_recording(sim: Sim, guard: Guard, log: Log, cost_ns: int) -> None:
    """Take note of CPU time of the guest that goes into recording, which the secondary does not spend."""
    log.recording_ns += jobs.on_pcpu_ns(domains(sim)[guard.domain], cost_ns)


@lockstep.implements(note_read)
def read_too(sim: Sim, guard: Guard, size_bytes: int, vlockstep: Lockstep = BESIDE) -> int:
    """Return when the secondary has read the same on its own path; 0: it does not, or the pair is not in step."""
    recording = recordings(sim)[guard.row]
    if not recording.secondary_reads or not is_logging(vlockstep):
        return 0
    pair = pairs(sim)[vlockstep.pair]
    work_ns = pair.log.work_ns + machine.run_ns(sim, guard) - pair.log.run_ns
    service_ns = recording.read_ns + int(size_bytes * recording.read_ns_a_byte)
    return replay.read(pair.secondary, sim.now_ns + channels(sim)[guard.row].latency_ns, work_ns, service_ns)


@lockstep.implements(note_transfer)
def log_transfer(sim: Sim, guard: Guard, size_bytes: int, is_read: bool, replica_ns: int) -> int:
    """Log the end of a disk operation, a read with its data; return what that costs the guest."""
    vlockstep = locksteps(sim)[guard.row]
    recording = recordings(sim)[guard.row]
    if not is_logging(vlockstep):
        return 0
    data_bytes = size_bytes if is_read and recording.has_disk_reads else 0
    # Before the entry is written: it is the one that waits for the secondary's own read.
    pairs(sim)[vlockstep.pair].secondary.read_ns = replica_ns
    write(sim, guard, vlockstep, nearest((vlockstep.event_bytes + data_bytes) * vlockstep.transport_overhead))
    copying_ns = vlockstep.kibibyte_cost_ns * data_bytes // 1024
    if not recording.is_counted:
        # The factors have in them what an end costs; a read that is logged has the price of an entry.
        return copying_ns + (vlockstep.packet_cost_ns if data_bytes > 0 else 0)
    recording.disk_operations += 1
    cost_ns = recording.disk_ns + copying_ns
    note_recording(sim, guard, pairs(sim)[vlockstep.pair].log, cost_ns)
    return cost_ns


@lockstep.implements(hold_output)
def log_output(sim: Sim, guard: Guard, packet: int, vlockstep: Lockstep = BESIDE) -> None:
    """Log the output operation and hold the output."""
    if vlockstep.state == FAILING_OVER:
        packet_list.push(sim, vlockstep.pending, packet)
    elif is_logging(vlockstep):
        hold_logged(sim, guard, vlockstep, packet)
    else:
        if vlockstep.state == SPLIT:
            count(sim, guard, account.WHILE_SPLIT, 1)
        release(sim, packet)


def hold_logged(sim: Sim, guard: Guard, vlockstep: Lockstep, packet: int) -> None:
    """Hold an output until its entry is acknowledged; the new primary sends one whose entry dies with the old one."""
    # Asked before the entry is written, which may cut the pair or stop the guest.
    was_broken = vlockstep.state == BROKEN
    count_output(sim, guard, vlockstep)
    if not write(sim, guard, vlockstep, vlockstep.output_bytes):
        packet_list.push(sim, vlockstep.pending, packet)
        return
    pair = pairs(sim)[vlockstep.pair]
    if was_broken:
        commit.hold_unsent(sim, pair, packet)
    else:
        arrival_ns = pair.log.last_arrival_ns
        ack_ns = arrival_ns + channels(sim)[guard.row].ack_ns
        commit.hold(sim, pair, packet, pair.log.last_depart_ns, arrival_ns, ack_ns)


def count_output(sim: Sim, guard: Guard, vlockstep: Lockstep, recording: Recording = BESIDE) -> None:
    """Count an output, whose price the program has paid."""
    recording.outputs += 1
    if recording.is_counted:
        note_recording(sim, guard, pairs(sim)[vlockstep.pair].log, vlockstep.output_cost_ns)


def write(sim: Sim, guard: Guard, vlockstep: Lockstep, size_bytes: int, pair: Pair = BESIDE) -> bool:
    """Write an entry; False if it is the first that dies with the primary."""
    # On entry the guest is logged.  On exit it may stand still (its buffer is full), or be truncated (False): callers
    # read before what they need of the state before, and afterwards what they need of the log.
    if vlockstep.state == BROKEN:
        log_writer.write_unsent(sim, pair, size_bytes)
        stop_if_full(sim, guard, vlockstep)
        return True
    # Asked before the entry is on its way itself.
    count_batch(sim, guard)
    if not log_writer.write(sim, pair, size_bytes, vlockstep.limit_ns):
        truncate(sim, guard, vlockstep)
        return False
    stop_if_full(sim, guard, vlockstep)
    return True


def stop_if_full(sim: Sim, guard: Guard, vlockstep: Lockstep, pair: Pair = BESIDE) -> None:
    """Stop the guest if its log buffer is full, until it has room; of a lost channel, until that works."""
    if vlockstep.state == BROKEN:
        if pair.log.unsent_bytes > vlockstep.buffer_bytes:
            stop_for_buffer(sim, guard)
        return
    over_ns = overflow_ns(sim, guard, vlockstep)
    # Once for a full buffer: what is written until the guest stands still finds it full again.
    if over_ns > 0 and not vlockstep.is_full:
        vlockstep.is_full = True
        stop_for_buffer(sim, guard)
        plan_recheck(sim, guard, vlockstep, over_ns)


def count_batch(sim: Sim, guard: Guard) -> None:
    """Count a batch that begins with the entry to be written: nothing is under way that it could join."""
    if channels(sim)[guard.row].free_ns <= sim.now_ns:
        recording = recordings(sim)[guard.row]
        recording.batches += 1
        recording.due_ns += recording.batch_ns


def overflow_ns(sim: Sim, guard: Guard, vlockstep: Lockstep) -> int:
    """Return how long the primary's log buffer needs until what is in it fits."""
    return channels(sim)[guard.row].free_ns - sim.now_ns - vlockstep.buffer_ns


def stop_for_buffer(sim: Sim, guard: Guard) -> None:
    """Stop the guest: its log buffer is full."""
    count(sim, guard, BUFFER_FULL, 1)
    machine.stop(sim, guard, machine.LOG_BUFFER)


def new_plan(sim: Sim, guard: Guard, vlockstep: Lockstep, state: int) -> int:
    """Return the row of a plan for the present pair that leads to ``state``."""
    row = plans.new(sim, guard=guard.row)
    plan = plans(sim)[row]
    # There may be another pair by then: its number tells.
    plan.pair = vlockstep.begun
    plan.state = state
    plan.again = 0
    return row


def plan_recheck(sim: Sim, guard: Guard, vlockstep: Lockstep, after_ns: int) -> None:
    """Plan another look at the log buffer of this pair."""
    row = new_plan(sim, guard, vlockstep, PROTECTED)
    at(sim, sim.now_ns + after_ns, EventKind.CHANNEL, ENTITY, on_drained, row)


@event
def on_drained(sim: Sim, plan: Plan) -> None:
    """The log buffer may have room again."""
    vlockstep = locksteps(sim)[plan.guard]
    if plan.pair == vlockstep.begun and vlockstep.state == PROTECTED:
        resume_with_room(sim, guards(sim)[plan.guard], vlockstep)
    plans.free(sim, plan.row)


def resume_with_room(sim: Sim, guard: Guard, vlockstep: Lockstep) -> None:
    """Let the guest run if its log buffer has room, else look again later."""
    over_ns = overflow_ns(sim, guard, vlockstep)
    if over_ns > 0:
        plan_recheck(sim, guard, vlockstep, over_ns)
    else:
        # Before the guest runs: the next entry may find the buffer full again, and must be able to say so.
        vlockstep.is_full = False
        machine.resume(sim, guard, machine.LOG_BUFFER)


@lockstep.implements(before_stop)
def sync(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> None:
    """Write the log up to now: a stopped guest takes no timer interrupts."""
    if is_logging(vlockstep):
        log_writer.advance(sim, pairs(sim)[vlockstep.pair])


def start_settling(sim: Sim, guard: Guard, recording: Recording = BESIDE) -> None:
    """Have what is counted paid for, if it is."""
    if not recording.is_counted:
        return
    costs.start(sim, guard, machine.run_ns(sim, guard))
    if not recording.is_settling:
        recording.is_settling = True
        machine.call_after(sim, guard, recording.settling_ns, on_settling)


@event
def on_settling(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE, recording: Recording = BESIDE) -> None:
    """Give the guest interrupt work for what no packet has carried."""
    if guard.dead or not is_logging(vlockstep):
        recording.is_settling = False
        return
    # Planned first: what follows may stop the guest or cut the pair, which the next time finds out.
    machine.call_after(sim, guard, recording.settling_ns, on_settling)
    if not guard.stopped:
        log_clock_reads(sim, guard, vlockstep, recording)
    # Asked anew: clock reads may have filled the buffer or been cut off.
    if is_logging(vlockstep) and not guard.stopped:
        charge_due(sim, guard, vlockstep, recording)


def log_clock_reads(sim: Sim, guard: Guard, vlockstep: Lockstep, recording: Recording) -> None:
    """Log the clock reads of the guest's computation since the last time."""
    reads = costs.fresh_clock_reads(recording, machine.run_ns(sim, guard))
    if reads > 0 and write(
        sim, guard, vlockstep, nearest(reads * vlockstep.event_bytes * vlockstep.transport_overhead)
    ):
        recording.clock_reads += reads
        recording.due_ns += reads * recording.clock_read_ns


def charge_due(sim: Sim, guard: Guard, vlockstep: Lockstep, recording: Recording, pair: Pair = BESIDE) -> None:
    """Let the guest pay what is due."""
    log_writer.advance(sim, pair)
    costs.count_exits(sim, guard, recording)
    due_ns = pair.log.cost_due_ns + costs.take_due_ns(recording)
    pair.log.cost_due_ns = 0
    note_recording(sim, guard, pair.log, due_ns)
    if due_ns > 0:
        domain = domains(sim)[guard.domain]
        jobs.raise_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu], due_ns, on_charged, guard.row, 0)
    # Timer interrupts alone fill it too.
    stop_if_full(sim, guard, vlockstep)


@work_done
def on_charged(sim: Sim) -> None:
    """What was due is paid; nothing follows."""


def new_pair(sim: Sim, guard: Guard, vlockstep: Lockstep) -> None:
    """Begin a pair with a secondary that is in step; what the pair before still holds leaves when acknowledged."""
    # Acknowledgements of the pair before may be on their way; the last of them disposes of it.
    if vlockstep.pair != 0:
        pairs(sim)[vlockstep.pair].is_over = True
        if pairs(sim)[vlockstep.pair].waiting == 0:
            commit.dispose(sim, pairs(sim)[vlockstep.pair])
    vlockstep.pair = pairs.new(sim)
    vlockstep.begun += 1
    vlockstep.is_full = False
    channels(sim)[guard.row].free_ns = sim.now_ns
    pair = pairs(sim)[vlockstep.pair]
    pair.row = vlockstep.pair
    pair.guard = guard.row
    start_pair(sim, vlockstep, pair)


def start_pair(sim: Sim, vlockstep: Lockstep, pair: Pair) -> None:
    """Give a pair its parameters, and begin."""
    set_train(pair.log.timer, vlockstep.timer)
    set_train(pair.log.disk, vlockstep.disk)
    log_writer.start(sim, pair)
    pair.secondary.factor = vlockstep.factor
    pair.secondary.entry_cost_ns = vlockstep.entry_cost_ns
    pair.secondary.kibibyte_ns = vlockstep.kibibyte_replay_ns
    pair.secondary.buffer_bytes = vlockstep.secondary_buffer_bytes
    replay.start(sim, pair.secondary)
    commit.start(sim, pair)


@lockstep.implements(set_backup_speed)
def pace_secondary(sim: Sim, guard: Guard, speed: float, vlockstep: Lockstep = BESIDE) -> None:
    """Let the present secondary replay at this share of its speed; the next one is on another host."""
    if not is_logging(vlockstep):
        return
    pair = pairs(sim)[vlockstep.pair]
    log_writer.advance(sim, pair)
    entry_ns, kibibyte_ns = nearest(vlockstep.entry_cost_ns / speed), nearest(vlockstep.kibibyte_replay_ns / speed)
    replay.set_pace(sim, pair.secondary, vlockstep.factor / speed, entry_ns, kibibyte_ns)


def set_train(train: Train, like: Train) -> None:
    train.period_ns = like.period_ns
    train.size_bytes = like.size_bytes
    train.cost_ns = like.cost_ns


@lockstep.implements(begin)
def protect(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> None:
    """Turn protection on, with a secondary that is in step."""
    if guard.dead:
        return
    # Read before another pair takes its place.
    before = pairs(sim)[vlockstep.pair]
    replay.halt(sim, before.secondary)
    vlockstep.replayed_ns += before.secondary.need_ns
    vlockstep.waited_ns += before.wait_ns
    vlockstep.longest_wait_ns = max(vlockstep.longest_wait_ns, before.longest_ns)
    vlockstep.released += before.released
    new_pair(sim, guard, vlockstep)
    vlockstep.state = PROTECTED
    audit.begin(sim, guard.audit)
    vlockstep.is_backup_dead = False
    vlockstep.resent_ns = 0
    vlockstep.resent_arrival_ns = 0
    machine.set_overhead(sim, guard, vlockstep.output_cost_ns, vlockstep.execution, vlockstep.exits)
    throttle.start(sim, guard)
    start_settling(sim, guard)
    note(sim, guard, account.NOW_PROTECTED)


def unprotect(sim: Sim, guard: Guard, vlockstep: Lockstep, state: int) -> None:
    """Continue without a secondary."""
    # The state first: a guest that runs again may send at once, and nothing holds that any more.
    vlockstep.state = state
    throttle.stop(sim, guard)
    machine.set_overhead(sim, guard, 0, 1.0, 1.0)
    machine.resume(sim, guard, machine.LOG_BUFFER)


def truncate(sim: Sim, guard: Guard, vlockstep: Lockstep) -> None:
    """End the guest as far as the secondary can reproduce it."""
    # The state first: stopping asks the mechanism to write its log up to now (sync), and this one is over.
    vlockstep.is_cut = True
    vlockstep.state = FAILING_OVER
    machine.disconnect(sim, guard)
    machine.stop(sim, guard, machine.FAILOVER)


@lockstep.implements(lag)
def lag_ns(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> int:
    """Return how far the secondary's execution is behind; 0 without one."""
    if vlockstep.state != PROTECTED:
        return 0
    pair = pairs(sim)[vlockstep.pair]
    log_writer.advance(sim, pair)
    return pair.secondary.lag_ns


@lockstep.implements(unreplayed)
def unreplayed_ns(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> int:
    """Return the CPU time that the present secondary still needs for the log."""
    return replay.left_ns(sim, pairs(sim)[vlockstep.pair].secondary)


@lockstep.implements(missing)
def unaccounted(sim: Sim, guard: Guard, vlockstep: Lockstep = BESIDE) -> int:
    """Return how many outputs logged were neither released nor wait."""
    if not is_logging(vlockstep):
        return 0
    pair = pairs(sim)[vlockstep.pair]
    return pair.issued - pair.released - commit.held(sim, pair)
