"""A lockstep pair while nothing fails: what the primary logs, holds and releases, and when it is stopped.

See :mod:`vftsim.platform.protection.lockstep` for the mechanism as a whole.
"""

from vftsim.kernel import EventKind, Sim, at, event, part
from vftsim.platform.arithmetic import nearest
from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.records import domains, vcpus, work_done
from vftsim.platform.io.packet import packet_list
from vftsim.platform.protection import _lockstep_costs as costs
from vftsim.platform.protection import audit, commit, log_writer, machine, replay, throttle
from vftsim.platform.protection._lockstep_costs import Recording, recordings
from vftsim.platform.protection._lockstep_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    SPLIT,
    Lockstep,
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
    note_transfer,
    release,
)
from vftsim.platform.protection.mechanism import begin, lag, missing, set_backup_speed
from vftsim.platform.protection.pair import Pair, Train, pairs

ENTITY = 3
"""Orders a pair's events among simultaneous ones of their kind."""

NOW_PROTECTED = word("protected")
BUFFER_FULL = word("log_buffer_full")
WHILE_SPLIT = word("outputs_while_split")
INPUTS_WHILE_SPLIT = word("inputs_while_split")


@part
def is_logging(own: Lockstep) -> bool:
    """Tell whether the guest is recorded."""
    return own.state in (PROTECTED, BROKEN)


@lockstep.implements(note_input)
def log_input(sim: Sim, guard: Guard, size_bytes: int) -> int:
    """Log a packet with its data; return what that costs the guest, or :data:`LOST`."""
    own = locksteps(sim)[guard.row]
    if not is_logging(own):
        if own.state == SPLIT:
            count(sim, guard, INPUTS_WHILE_SPLIT, 1)
        return LOST if own.state == FAILING_OVER else 0
    data_bytes = max(0, size_bytes - own.framing_bytes)
    # This may be the first entry that dies with the primary: the guest is cut then, and never sees the packet.
    if not write(sim, guard, own, nearest((own.packet_bytes + data_bytes) * own.transport_overhead)):
        return LOST
    log = pairs(sim)[own.pair].log
    # After the write, which has brought the trains up to now: the packet pays for them too.
    due_ns = log.cost_due_ns
    log.cost_due_ns = 0
    recording = recordings(sim)[guard.row]
    if recording.is_counted:
        recording.packets += 1
        costs.look(sim, guard, recording)
        due_ns += costs.pay(recording)
    cost_ns = own.packet_cost_ns + due_ns + own.kibibyte_cost_ns * data_bytes // 1024
    if recording.is_counted:
        log.recording_ns += cost_ns
    return cost_ns


@lockstep.implements(note_transfer)
def log_transfer(sim: Sim, guard: Guard, size_bytes: int, is_read: bool) -> int:
    """Log the end of a disk operation, a read with its data; return what that costs the guest."""
    own = locksteps(sim)[guard.row]
    recording = recordings(sim)[guard.row]
    if not recording.is_counted or not is_logging(own):
        return 0
    data_bytes = size_bytes if is_read and recording.has_disk_reads else 0
    write(sim, guard, own, nearest((own.event_bytes + data_bytes) * own.transport_overhead))
    recording.disk_operations += 1
    cost_ns = recording.disk_ns + own.kibibyte_cost_ns * data_bytes // 1024
    pairs(sim)[own.pair].log.recording_ns += cost_ns
    return cost_ns


@lockstep.implements(hold_output)
def log_output(sim: Sim, guard: Guard, packet: int) -> None:
    """Log the output operation and hold the output."""
    own = locksteps(sim)[guard.row]
    if own.state == FAILING_OVER:
        packet_list.push(sim, own.pending, packet)
    elif is_logging(own):
        hold_logged(sim, guard, own, packet)
    else:
        if own.state == SPLIT:
            count(sim, guard, WHILE_SPLIT, 1)
        release(sim, packet)


@part
def hold_logged(sim: Sim, guard: Guard, own: Lockstep, packet: int) -> None:
    """Hold an output until its entry is acknowledged; the new primary sends one whose entry dies with the old one."""
    # Asked before the entry is written, which may cut the pair or stop the guest.
    was_broken = own.state == BROKEN
    count_output(sim, guard, own)
    if not write(sim, guard, own, own.output_bytes):
        packet_list.push(sim, own.pending, packet)
        return
    pair = pairs(sim)[own.pair]
    if was_broken:
        commit.hold_unsent(sim, pair, packet)
    else:
        arrival_ns = pair.log.last_arrival_ns
        ack_ns = arrival_ns + channels(sim)[guard.row].ack_ns
        commit.hold(sim, pair, packet, pair.log.last_depart_ns, arrival_ns, ack_ns)


@part
def count_output(sim: Sim, guard: Guard, own: Lockstep) -> None:
    """Count an output, whose price the program has paid."""
    recording = recordings(sim)[guard.row]
    recording.outputs += 1
    if recording.is_counted:
        pairs(sim)[own.pair].log.recording_ns += own.output_cost_ns


@part
def write(sim: Sim, guard: Guard, own: Lockstep, size_bytes: int) -> bool:
    """Write an entry; False if it is the first that dies with the primary."""
    pair = pairs(sim)[own.pair]
    if own.state == BROKEN:
        log_writer.write_unsent(sim, pair, size_bytes)
        if pair.log.unsent_bytes > own.buffer_bytes:
            stop_for_buffer(sim, guard)
        return True
    # Asked before the entry is on its way itself.
    count_batch(sim, guard)
    if not log_writer.write(sim, pair, size_bytes, own.limit_ns):
        cut(sim, guard, own)
        return False
    over_ns = overflow_ns(sim, guard, own)
    # Once for a full buffer: what is written until the guest stands still finds it full again.
    if over_ns > 0 and not own.is_full:
        own.is_full = True
        stop_for_buffer(sim, guard)
        look_again(sim, guard, own, over_ns)
    return True


@part
def count_batch(sim: Sim, guard: Guard) -> None:
    """Count a batch that begins with the entry to be written: nothing is under way that it could join."""
    if channels(sim)[guard.row].free_ns <= sim.now_ns:
        recording = recordings(sim)[guard.row]
        recording.batches += 1
        recording.due_ns += recording.batch_ns


@part
def overflow_ns(sim: Sim, guard: Guard, own: Lockstep) -> int:
    """Return how long the primary's log buffer needs until what is in it fits."""
    return channels(sim)[guard.row].free_ns - sim.now_ns - own.buffer_ns


@part
def stop_for_buffer(sim: Sim, guard: Guard) -> None:
    """Stop the guest: its log buffer is full."""
    count(sim, guard, BUFFER_FULL, 1)
    machine.stop(sim, guard, machine.LOG_BUFFER)


@part
def look_again(sim: Sim, guard: Guard, own: Lockstep, after_ns: int) -> None:
    """Plan another look at the log buffer of this pair."""
    row = plans.new(sim)
    plans(sim)[row].guard = guard.row
    # There may be another pair by then: its number tells.
    plans(sim)[row].pair = own.begun
    at(sim, sim.now_ns + after_ns, EventKind.CHANNEL, ENTITY, on_drained, row)


@event
def on_drained(sim: Sim, place: int, token: int) -> None:
    """The log buffer may have room again."""
    plan = plans(sim)[place]
    own = locksteps(sim)[plan.guard]
    if plan.pair == own.begun and own.state == PROTECTED:
        go_on_with_room(sim, guards(sim)[plan.guard], own)
    plans.free(sim, place)


@part
def go_on_with_room(sim: Sim, guard: Guard, own: Lockstep) -> None:
    """Let the guest run if its log buffer has room, else look again later."""
    over_ns = overflow_ns(sim, guard, own)
    if over_ns > 0:
        look_again(sim, guard, own, over_ns)
    else:
        own.is_full = False
        machine.resume(sim, guard, machine.LOG_BUFFER)


@lockstep.implements(before_stop)
def sync(sim: Sim, guard: Guard) -> None:
    """Write the log up to now: a stopped guest takes no timer interrupts."""
    own = locksteps(sim)[guard.row]
    if is_logging(own):
        log_writer.advance(sim, pairs(sim)[own.pair])


@part
def start_settling(sim: Sim, guard: Guard) -> None:
    """Have what is counted paid for, if it is."""
    recording = recordings(sim)[guard.row]
    if not recording.is_counted:
        return
    costs.start(sim, guard, machine.run_ns(sim, guard))
    if not recording.is_settling:
        recording.is_settling = True
        machine.call_after(sim, guard, recording.settling_ns, on_settling)


@event
def on_settling(sim: Sim, place: int, token: int) -> None:
    """Give the guest interrupt work for what no packet has carried."""
    guard = guards(sim)[place]
    own = locksteps(sim)[place]
    recording = recordings(sim)[place]
    if guard.dead or not is_logging(own):
        recording.is_settling = False
        return
    # Planned first: what follows may stop the guest or cut the pair, which the next time finds out.
    machine.call_after(sim, guard, recording.settling_ns, on_settling)
    if not guard.stopped:
        log_clock_reads(sim, guard, own, recording)
    # Asked anew: clock reads may have filled the buffer or been cut off.
    if is_logging(own) and not guard.stopped:
        settle(sim, guard, own, recording)


@part
def log_clock_reads(sim: Sim, guard: Guard, own: Lockstep, recording: Recording) -> None:
    """Log the clock reads of the guest's computation since the last time."""
    reads = costs.fresh_clock_reads(recording, machine.run_ns(sim, guard))
    if reads > 0 and write(sim, guard, own, nearest(reads * own.event_bytes * own.transport_overhead)):
        recording.clock_reads += reads
        recording.due_ns += reads * recording.clock_read_ns


@part
def settle(sim: Sim, guard: Guard, own: Lockstep, recording: Recording) -> None:
    """Let the guest pay what is due."""
    pair = pairs(sim)[own.pair]
    log_writer.advance(sim, pair)
    costs.look(sim, guard, recording)
    due_ns = pair.log.cost_due_ns + costs.pay(recording)
    pair.log.cost_due_ns = 0
    pair.log.recording_ns += due_ns
    if due_ns > 0:
        domain = domains(sim)[guard.domain]
        jobs.raise_interrupt(sim, domain, vcpus(sim)[domain.first_vcpu], due_ns, on_settled, guard.row, 0)


@work_done
def on_settled(sim: Sim, place: int, argument: int) -> None:
    """What was due is paid; nothing follows."""


@part
def new_pair(sim: Sim, guard: Guard, own: Lockstep) -> None:
    """Begin a pair with a secondary that is in step; what the pair before still holds leaves when acknowledged."""
    # Acknowledgements of the pair before may be on their way; the last of them disposes of it.
    if own.pair != 0:
        pairs(sim)[own.pair].is_over = True
        if pairs(sim)[own.pair].waiting == 0:
            commit.dispose(sim, pairs(sim)[own.pair])
    own.pair = pairs.new(sim)
    own.begun += 1
    own.is_full = False
    channels(sim)[guard.row].free_ns = sim.now_ns
    pair = pairs(sim)[own.pair]
    pair.row = own.pair
    pair.guard = guard.row
    set_up(sim, own, pair)


@part
def set_up(sim: Sim, own: Lockstep, pair: Pair) -> None:
    """Give a pair its parameters, and begin."""
    set_train(pair.log.timer, own.timer)
    set_train(pair.log.disk, own.disk)
    log_writer.start(sim, pair)
    pair.secondary.factor = own.factor
    pair.secondary.entry_cost_ns = own.entry_cost_ns
    pair.secondary.kibibyte_ns = own.kibibyte_replay_ns
    pair.secondary.buffer_bytes = own.secondary_buffer_bytes
    replay.start(sim, pair.secondary)
    commit.start(sim, pair)


@lockstep.implements(set_backup_speed)
def pace_secondary(sim: Sim, guard: Guard, speed: float) -> None:
    """Let the present secondary replay at this share of its speed; the next one is on another host."""
    own = locksteps(sim)[guard.row]
    if not is_logging(own):
        return
    pair = pairs(sim)[own.pair]
    log_writer.advance(sim, pair)
    entry_ns, kibibyte_ns = nearest(own.entry_cost_ns / speed), nearest(own.kibibyte_replay_ns / speed)
    replay.set_pace(sim, pair.secondary, own.factor / speed, entry_ns, kibibyte_ns)


@part
def set_train(train: Train, like: Train) -> None:
    """Make a train like another."""
    train.period_ns = like.period_ns
    train.size_bytes = like.size_bytes
    train.cost_ns = like.cost_ns


@lockstep.implements(begin)
def protect(sim: Sim, guard: Guard) -> None:
    """Turn protection on, with a secondary that is in step."""
    if guard.dead:
        return
    own = locksteps(sim)[guard.row]
    # Read before another pair takes its place.
    before = pairs(sim)[own.pair]
    own.replayed_ns += before.secondary.busy_ns
    own.waited_ns += before.wait_ns
    own.released += before.released
    new_pair(sim, guard, own)
    own.state = PROTECTED
    audit.begin(sim, guard.audit)
    own.is_backup_dead = False
    own.resent_ns = 0
    own.resent_arrival_ns = 0
    machine.set_overhead(sim, guard, own.output_cost_ns, own.execution, own.exits)
    throttle.start(sim, guard)
    start_settling(sim, guard)
    note(sim, guard, NOW_PROTECTED)


@part
def unprotect(sim: Sim, guard: Guard, own: Lockstep, state: int) -> None:
    """Go on without a secondary."""
    # The state first: a guest that runs again may send at once, and nothing holds that any more.
    own.state = state
    throttle.stop(sim, guard)
    machine.set_overhead(sim, guard, 0, 1.0, 1.0)
    machine.resume(sim, guard, machine.LOG_BUFFER)


@part
def cut(sim: Sim, guard: Guard, own: Lockstep) -> None:
    """End the guest as far as the secondary can reproduce it."""
    # The state first: stopping asks the mechanism to write its log up to now (sync), and this one is over.
    own.is_cut = True
    own.state = FAILING_OVER
    machine.disconnect(sim, guard)
    machine.stop(sim, guard, machine.FAILOVER)


@lockstep.implements(lag)
def lag_ns(sim: Sim, guard: Guard) -> int:
    """Return how far the secondary's execution is behind; 0 without one."""
    own = locksteps(sim)[guard.row]
    if own.state != PROTECTED:
        return 0
    pair = pairs(sim)[own.pair]
    log_writer.advance(sim, pair)
    return pair.secondary.lag_ns


@lockstep.implements(missing)
def unaccounted(sim: Sim, guard: Guard) -> int:
    """Return how many outputs logged were neither released nor wait."""
    own = locksteps(sim)[guard.row]
    if not is_logging(own):
        return 0
    pair = pairs(sim)[own.pair]
    return pair.issued - pair.released - commit.held(sim, pair)
