"""What mechanisms have in common that send states of a guest to a backup: its life from first copy to failover.

Rule (Remus, NSDI 2008, sections 2.1 and 5; thesis, Appendix G): a backup that has heard nothing for a timeout takes the
last state that it has complete, lets its disk apply what belongs to it, writes an activation record and goes live;
the switches learn its place from an announcement.  A primary that waits in vain for an acknowledgement drops its
protection, releases its outputs and continues alone.  Where hosts send heartbeats, to each other (QEMU, COLO-FT: on
both nodes), it does so too when those of its backup stay away.  With both hosts alive and the paths between them lost,
each does so (split brain) unless a lock on shared storage (``fencing``) lets the first one live and halts the other.

A crash rolls the guest back, by two passes: see :mod:`.rollback`.

Left out: what the second of two live copies does; a crash of both hosts; other guests of the backup's host.
"""

from vftsim.kernel import BESIDE, EventKind, Fifo, Sim, at, timer
from vftsim.platform.io.packet import packet_list, packets
from vftsim.platform.protection import (
    account,
    audit,
    machine,
    mechanism,
    output_buffer,
    reprotection,
    rollback,
    state_stream,
)
from vftsim.platform.protection._replication_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    SPLIT,
    UNPROTECTED,
    Replication,
    abandon,
    acknowledged,
    can_take_over,
    channel_restored,
    go_alone,
    outputs_at_risk,
    replicated,
    replications,
    start_cycle,
    start_following,
    stop_following,
    underivable,
)
from vftsim.platform.protection.account import count, note, note_at, word
from vftsim.platform.protection.channel import change, channels, left_by_ns, lost_from_ns
from vftsim.platform.protection.detection import last_heard_ns
from vftsim.platform.protection.guard import LOST, Guard, note_input, protection, release, release_all
from vftsim.platform.protection.memory import memories
from vftsim.platform.protection.output_buffer import output_buffers
from vftsim.platform.protection.state_stream import StateStream, state_streams
from vftsim.platform.protection.storage import lock_from_ns, locked_ns

rolled_back = protection.kind("rolled_back", base=replicated)
"""Its backup goes on from the last state that it has."""
followed = protection.kind("followed", base=replicated)
"""Its backup follows the guest, and goes on from just now, or from where the channel failed: see :mod:`.rollback`."""

ENTITY = 3
"""Orders these events among simultaneous ones of their kind."""

RESTORED = word("state restored")
FENCED = word("primary fenced")


# Under protection


def protect(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Turn protection on with a backup that is in step, or begin to copy the guest there first."""
    if guard.dead:
        return
    if replication.copies_first and not replication.is_copied:
        # The copy comes back here when it is done (reprotection.on_ready()).
        replication.is_copied = True
        audit.end(sim, guard.audit)
        reprotection.copy_now(sim, guard)
        return
    replication.state = PROTECTED
    replication.is_backup_dead = False
    replication.is_split = False
    start_following(sim, guard, replication)
    state_stream.begin(sim, guard)
    note(sim, guard, account.NOW_PROTECTED)
    watch(sim, guard, replication)
    start_cycle(sim, guard)
    # Last: if the guest ends with this very state, what start_cycle() has planned comes to nothing.
    stop_at_cut(sim, guard)


def is_protecting(replication: Replication) -> bool:
    """Tell whether outputs wait for states."""
    return replication.state in (PROTECTED, BROKEN) and not replication.is_cut


def admit(sim: Sim, guard: Guard, size_bytes: int, replication: Replication = BESIDE) -> int:
    """Take note of a packet that enters the guest; :data:`LOST` for one that enters a primary whose life is over."""
    if replication.is_cut or replication.state == FAILING_OVER:
        return LOST
    if replication.state == SPLIT:
        count(sim, guard, account.INPUTS_WHILE_SPLIT, 1)
    memories(sim)[guard.row].requests += 1
    return 0


def send_unheld(sim: Sim, guard: Guard, packet: int, replication: Replication = BESIDE) -> None:
    """Send an output for which nothing waits, or keep one of a guest between two lives for the second."""
    if replication.is_cut or replication.state == FAILING_OVER:
        packet_list.push(sim, replication.pending, packet)
        return
    if replication.state == SPLIT:
        count(sim, guard, account.WHILE_SPLIT, 1)
    if not joins_line(sim, guard, packet):
        release(sim, packet)


def joins_line(sim: Sim, guard: Guard, packet: int) -> bool:
    """Let an output that need not wait leave behind those that wait for their line; False if there are none."""
    if output_buffers(sim)[guard.row].leaving.length == 0:
        return False
    output_buffer.hold(sim, guard, packet)
    output_buffer.release_everything(sim, guard)
    return True


def stop_at_cut(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Stop the guest for good if its life ends with the state that was taken last; that one is still sent.

    Nothing that the backup hears later, in the life that is not simulated, counts for its alarm.
    """
    if not replication.is_cut and rollback.is_cut_at(sim, guard, state_streams(sim)[guard.row].point):
        end_foreseen_incarnation(sim, guard)


def end_foreseen_incarnation(sim: Sim, guard: Guard) -> None:
    """Stop the guest for good where the next cut says; it says too when the backup halts a primary that lives."""
    end_incarnation(sim, guard)
    if rollback.fenced_ns(sim, guard) > 0:
        set_alarm(sim, guard, replications(sim)[guard.row], rollback.fenced_ns(sim, guard))


def end_incarnation(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Stop the guest for good, as far as its primary is concerned: nothing enters it any more."""
    # A token of 0 matches no event: what was planned for this life comes to nothing.
    replication.is_cut = True
    replication.step = 0
    replication.alarm = 0
    replication.alone = 0
    machine.unplug(sim, guard, replication.rings)
    machine.stop(sim, guard, machine.FAILOVER)


def transmit(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Send the state taken last, and wait for its acknowledgement."""
    # On entry the state is taken and the guest runs, or stands still; on exit the acknowledgement is the next step.
    state_stream.send(sim, guard)
    replication.step = at(
        sim, state_stream.ack_arrival_ns(sim, guard), EventKind.CHANNEL, ENTITY, on_acknowledgement, guard.row
    )
    plan_piece(sim, guard, replication)
    extend_alarm(sim, guard, replication)


on_suspended = timer(replications, "step")(transmit)
"""The guest and its replica stand still: the state is sent."""


def extend_alarm(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Let bytes that are sent now call the backup's alarm off, unless the first of them comes too late."""
    if (
        replication.state == PROTECTED
        and not replication.is_cut
        and replication.alarm_ns > sim.now_ns + channels(sim)[guard.row].latency_ns
    ):
        watch(sim, guard, replication)


def plan_piece(sim: Sim, guard: Guard, replication: Replication, stream: StateStream = BESIDE) -> None:
    """Plan the next piece of a state on a shared wire, for when the one before has left."""
    replication.piece = 0
    if stream.rest_bytes > 0:
        replication.piece = at(sim, stream.piece_ns, EventKind.CHANNEL, ENTITY, on_piece, guard.row)


@timer(replications, "piece")
def on_piece(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """A shared wire takes the next piece of a state, if the channel works."""
    if replication.state == PROTECTED and state_streams(sim)[guard.row].is_open:
        # While the channel is lost nothing goes on the wire: restore_channel() takes up what is left.
        state_stream.send_piece(sim, guard)
        state_stream.plan_apply(state_streams(sim)[guard.row], state_stream.arrival_ns(sim, guard))
        plan_piece(sim, guard, replication)
        extend_alarm(sim, guard, replication)


@timer(replications, "step")
def on_acknowledgement(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """The acknowledgement of the state taken last is due."""
    due_ns = state_stream.ack_arrival_ns(sim, guard)
    if replication.state == PROTECTED and sim.now_ns < due_ns:
        # Others have sent on the same wire meanwhile: the state is still on its way.
        replication.step = at(sim, due_ns, EventKind.CHANNEL, ENTITY, on_acknowledgement, guard.row)
        return
    if is_acknowledged(sim, guard, replication):
        state_stream.acknowledge(sim, guard)
        acknowledged(sim, guard)
        return
    give_up_at(sim, guard, replication, state_streams(sim)[guard.row].depart_ns + replication.backup_timeout_ns)


def watch(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Let the backup wait for the next byte after those that are on their way; with heartbeats these keep it calm."""
    if replication.heartbeat_interval_ns == 0:
        set_alarm(sim, guard, replication, state_stream.arrival_ns(sim, guard) + replication.timeout_ns)


def set_alarm(sim: Sim, guard: Guard, replication: Replication, time_ns: int) -> None:
    """Let the backup's patience end at an instant."""
    replication.alarm_ns = max(sim.now_ns, time_ns)
    # An event that comes before will look again (on_silence()): each piece that is sent puts the alarm off.
    if replication.alarm == 0 or replication.look_ns > replication.alarm_ns:
        replication.look_ns = replication.alarm_ns
        replication.alarm = at(sim, replication.alarm_ns, EventKind.CONTROL, ENTITY, on_silence, guard.row)


def give_up_at(sim: Sim, guard: Guard, replication: Replication, time_ns: int) -> None:
    """Let the primary give its backup up at an instant, unless it does so before."""
    if replication.alone == 0 or time_ns < replication.alone_ns:
        replication.alone_ns = max(sim.now_ns, time_ns)
        replication.alone = at(sim, replication.alone_ns, EventKind.CONTROL, ENTITY, on_alone, guard.row)


def miss_heartbeats(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Let the primary, which hears no heartbeat from now on, give its backup up for that."""
    if replication.heartbeat_interval_ns != 0:
        beat_ns = last_heard_ns(sim.now_ns, replication.heartbeat_interval_ns, 0) + channels(sim)[guard.row].latency_ns
        give_up_at(sim, guard, replication, beat_ns + replication.backup_timeout_ns)


def is_acknowledged(sim: Sim, guard: Guard, replication: Replication) -> bool:
    """Tell whether the acknowledgement that is due now has come through; a dead backup may have sent it before."""
    lost_ns = state_streams(sim)[guard.row].lost_ns
    if replication.is_backup_dead:
        return state_stream.arrival_ns(sim, guard) <= lost_ns
    return sim.now_ns <= lost_ns


def heard_ns(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> int:
    """Return when the backup hears of the primary for the last time if nothing leaves it from now on."""
    if replication.heartbeat_interval_ns == 0:
        return state_stream.last_byte_ns(sim, guard)
    sent_ns = min(sim.now_ns, state_streams(sim)[guard.row].lost_ns)
    return last_heard_ns(sent_ns, replication.heartbeat_interval_ns, 0) + channels(sim)[guard.row].latency_ns


# The primary fails


def crash_primary(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Fail over to the last state received, if there is a backup; that state must be foreseen."""
    if guard.dead or replication.state == FAILING_OVER:
        return
    if not can_take_over(replication):
        lose_primary(sim, guard, replication)
    elif not (replication.is_cut and state_stream.is_foreseen(sim, guard)):
        roll_back(sim, guard, False)
    else:
        note(sim, guard, mechanism.CRASH)
        last_heard = use_end(sim, guard)
        fail_over(sim, guard, replication, last_heard + replication.timeout_ns)


def crash_followed_primary(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Fail over to a backup that has followed the guest up to now, or to the loss of the channel; see there."""
    if guard.dead or replication.state == FAILING_OVER:
        return
    if not can_take_over(replication):
        lose_primary(sim, guard, replication)
        return
    if replication.state == BROKEN and not rollback.is_cut_at_loss(sim, guard):
        # Since the loss the backup has not followed: only a pass that ends at the loss can go on from there.
        roll_back(sim, guard, False)
        return
    note(sim, guard, mechanism.CRASH)
    last_heard_ns = rollback.use_loss(sim, guard) if replication.state == BROKEN else heard_ns(sim, guard)
    # A guest that was stopped at the loss, or at its last message, is at its end already.
    if not replication.is_cut:
        end_incarnation(sim, guard)
    fail_over(sim, guard, replication, last_heard_ns + replication.timeout_ns)


def lose_primary(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Lose a primary that nobody takes over."""
    stop_following(sim, guard, replication)
    replication.step = 0
    replication.alarm = 0
    abandon(sim, guard)
    mechanism.lose_machine(sim, guard)


def roll_back_to_loss(sim: Sim, guard: Guard, is_fenced: bool) -> None:
    """End this pass: the guest must be rolled back to the loss of the channel."""
    rollback.request_rollback_to_loss(sim, guard, is_fenced, heard_ns(sim, guard))


@protection.slot
def roll_back(sim: Sim, guard: Guard, is_fenced: bool) -> None:
    """End this pass: the guest must be rolled back to the state received last."""
    find(sim, guard, rollback.foresights(sim)[guard.row].finding, is_fenced)
    rollback.request_rollback(sim, guard)


@protection.slot
def use_end(sim: Sim, guard: Guard) -> int:
    """Come to the end for which the guest was stopped; return when the backup last heard of its primary."""
    audit.claim(sim, guard.audit, state_stream.received_taken_ns(sim, guard))
    return rollback.use_cut(sim, guard, state_stream.received_point(sim, guard))


def find(sim: Sim, guard: Guard, finding: rollback.Finding, is_fenced: bool) -> None:
    """Write down what becomes of the guest if its primary ends now; nothing is changed, for the run ends here."""
    finding.is_fenced = is_fenced
    finding.point = state_stream.received_point(sim, guard)
    finding.heard_ns = heard_ns(sim, guard)
    finding.rollback_ns = sim.now_ns - state_stream.received_taken_ns(sim, guard)
    finding.execution_ns = state_stream.execution_since_ns(sim, guard)
    finding.outputs_lost = outputs_at_risk(sim, guard)
    finding.outputs_underivable = underivable(sim, guard)


def fail_over(sim: Sim, guard: Guard, replication: Replication, declared_ns: int) -> None:
    """Plan the backup's going live, with what its disk has to apply done while it waits for the verdict."""
    # The state first: abandon() asks by it whether the backup issues what waits.
    replication.state = FAILING_OVER
    stop_following(sim, guard, replication)
    replication.step = 0
    replication.alarm = 0
    replication.alone = 0
    replication.restored = 0
    abandon(sim, guard)
    audit.take_over(sim, guard.audit, replication.pending)
    lock_ns = locked_ns(sim, guard, replication.is_fenced, declared_ns, replication.storage_ns)
    restored_ns = max(lock_ns, state_stream.applied_by_ns(sim, guard)) + replication.activation_ns
    note_at(sim, guard, declared_ns, account.DECLARED)
    note_at(sim, guard, restored_ns, RESTORED)
    replication.live = at(
        sim, max(sim.now_ns, restored_ns + replication.go_live_ns), EventKind.CONTROL, ENTITY, on_live, guard.row
    )


def issue_again(sim: Sim, guard: Guard, copies: Fifo) -> None:
    """Have the backup issue outputs again that have left, when it goes live."""
    count(sim, guard, account.ISSUED_AGAIN, copies.length)
    while copies.length > 0:
        packet_list.push(sim, replications(sim)[guard.row].pending, packet_list.pop(sim, copies))


def lose_line(sim: Sim, guard: Guard) -> None:
    """Take what waits for its line at a primary that is gone for lost on its way.

    The guest that the backup goes on with has sent it.
    """
    leaving = output_buffers(sim)[guard.row].leaving
    for held_output in output_buffer.held_outputs.listed(sim, output_buffer.held_list, leaving):
        audit.lose_output(guard.audit, packets(sim)[held_output.packet].issue, False)


def issue_held(sim: Sim, guard: Guard, held: Fifo) -> None:
    """Have the backup issue outputs that wait, when it goes live: it has received everything that led to them."""
    if held.length > 0:
        count(sim, guard, account.ISSUED_BY_SECONDARY, held.length)
        output_buffer.copy_outputs(sim, held, replications(sim)[guard.row].pending)


@timer(replications, "live")
def on_live(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """The backup goes live where the guest was cut, or beside its primary."""
    if replication.is_split:
        note(sim, guard, account.LIVE_TOO)
        return
    # The state first: what is released below, and what the guest then does, is no longer held.
    replication.state = UNPROTECTED
    replication.is_cut = False
    audit.go_live(sim, guard.audit)
    note(sim, guard, account.LIVE)
    count(sim, guard, account.FAILOVERS, 1)
    # On its new host before anything leaves: the card there works.
    if not replication.stays:
        machine.move(sim, guard)
    release_all(sim, replication.pending)
    mechanism.announce(sim, guard, replication.announcement_ns)
    machine.resume(sim, guard, machine.STATE)
    machine.resume(sim, guard, machine.FAILOVER)
    reprotection.start(sim, guard)


@timer(replications, "alarm")
def on_silence(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """The backup has waited in vain, and takes the primary for dead; it may live."""
    if guard.dead:
        return
    if sim.now_ns < replication.alarm_ns:
        set_alarm(sim, guard, replication, replication.alarm_ns)
        return
    back_ns = lock_from_ns(sim, guard, sim.now_ns, 0)
    if not replication.is_fenced:
        live_beside(sim, guard, replication)
    elif back_ns > sim.now_ns:
        # Nobody can be halted before the storage is back; whoever asked first asks first then.
        set_alarm(sim, guard, replication, back_ns)
    elif (replication.is_cut and state_stream.is_foreseen(sim, guard)) or rollback.is_cut_at_loss(sim, guard):
        # A guest that has stood still since before the loss has come to no message that this has kept back.
        if not replication.is_cut:
            end_incarnation(sim, guard)
        note(sim, guard, FENCED)
        use_end(sim, guard)
        fail_over(sim, guard, replication, sim.now_ns)
    else:
        roll_back(sim, guard, True)


def live_beside(sim: Sim, guard: Guard, replication: Replication) -> None:
    """Let the backup go live beside the primary, which hears no acknowledgement from it any more."""
    lock_ns = sim.now_ns + replication.storage_ns
    live_ns = max(lock_ns, state_stream.applied_by_ns(sim, guard)) + replication.activation_ns + replication.go_live_ns
    note(sim, guard, account.DECLARED)
    replication.live = at(sim, live_ns, EventKind.CONTROL, ENTITY, on_live, guard.row)
    replication.is_split = True
    stop_following(sim, guard, replication)
    audit.live_beside(sim, guard.audit)
    if replication.state == PROTECTED:
        replication.state = BROKEN
        state_stream.lose(sim, guard)
    elif replication.state == UNPROTECTED:
        replication.state = SPLIT


# The backup or the channel fails


def crash_backup(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Lose the backup; the primary continues alone when it notices."""
    note(sim, guard, account.BACKUP_CRASH)
    stop_following(sim, guard, replication)
    # A dead backup waits for nothing, and does not come to live beside its primary.
    replication.alarm = 0
    if replication.is_split and replication.live != 0:
        replication.live = 0
        replication.is_split = False
        if replication.state == SPLIT:
            replication.state = UNPROTECTED
    if replication.state == UNPROTECTED:
        reprotection.start(sim, guard)
    elif can_take_over(replication):
        replication.is_backup_dead = True
        if replication.state == PROTECTED:
            replication.state = BROKEN
            state_stream.lose(sim, guard)
            miss_heartbeats(sim, guard, replication)
        else:
            # The channel was lost before: whatever the backup had received, its acknowledgement never comes.
            state_stream.lose_acknowledgements(sim, guard)
    elif replication.state == FAILING_OVER:
        replication.state = UNPROTECTED
        replication.is_cut = False
        replication.live = 0
        machine.kill(sim, guard)


def lose_channel(sim: Sim, guard: Guard, duration_ns: int, replication: Replication = BESIDE) -> None:
    """Lose every path between the hosts, for a time or for good."""
    note(sim, guard, account.CHANNEL_LOSS)
    if replication.state != PROTECTED:
        return
    replication.state = BROKEN
    state_stream.lose(sim, guard)
    channel = channels(sim)[guard.row]
    limit_ns = left_by_ns(channel, sim.now_ns)
    rollback.note_loss(sim, guard, limit_ns, lost_from_ns(channel, limit_ns))
    if not replication.is_cut:
        set_alarm(sim, guard, replication, heard_ns(sim, guard) + replication.timeout_ns)
        miss_heartbeats(sim, guard, replication)
    # The end of an earlier loss must not restore this one.
    replication.restored = 0
    if duration_ns != mechanism.NO_DURATION:
        replication.restored = at(
            sim, sim.now_ns + duration_ns, EventKind.CHANNEL, ENTITY, on_channel_restored, guard.row
        )


def change_state_channel(sim: Sim, guard: Guard, rate_bits_per_s: int, latency_ns: int) -> None:
    """Continue over a channel that has another rate and latency, with what is left of a state on the wire."""
    replication = replications(sim)[guard.row]
    stream = state_streams(sim)[guard.row]
    is_sending = stream.is_open and stream.is_sent and stream.depart_ns > sim.now_ns
    # Read before the change: what is left on the wire is scaled from the old rate to the new one.
    rate_before = channels(sim)[guard.row].rate_bits_per_s
    change(channels(sim)[guard.row], rate_bits_per_s, latency_ns)
    state_stream.send_rest(sim, guard, rate_before)
    if replication.state == PROTECTED and is_sending:
        ack_ns = state_stream.ack_arrival_ns(sim, guard)
        replication.step = at(sim, ack_ns, EventKind.CHANNEL, ENTITY, on_acknowledgement, guard.row)
        if not replication.is_cut:
            watch(sim, guard, replication)


@timer(replications, "restored")
def on_channel_restored(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """The channel works again; if nobody has acted on its loss, all continues where it stood."""
    stream = state_streams(sim)[guard.row]
    if replication.state != BROKEN or replication.is_split:
        return
    note(sim, guard, account.CHANNEL_WORKS)
    # The path works, but nobody answers over it: the primary still gives up.
    if replication.is_backup_dead:
        return
    replication.state = PROTECTED
    # The acknowledgement will come after all.
    replication.alone = 0
    state_stream.restore_channel(sim, guard)
    plan_piece(sim, guard, replication)
    if not replication.is_cut:
        replication.alarm = 0
        watch(sim, guard, replication)
    if stream.is_open and stream.is_sent:
        ack_ns = state_stream.ack_arrival_ns(sim, guard)
        replication.step = at(sim, ack_ns, EventKind.CHANNEL, ENTITY, on_acknowledgement, guard.row)
    # Last: the mechanism sends its messages behind what is left of the state.
    channel_restored(sim, guard)


@timer(replications, "alone")
def on_alone(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """The primary gives its backup up; with fencing it asks for the lock."""
    if guard.dead or replication.is_cut:
        return
    back_ns = lock_from_ns(sim, guard, sim.now_ns, 0)
    if not replication.is_fenced:
        continue_alone(sim, guard)
    elif back_ns > sim.now_ns:
        replication.alone = at(sim, back_ns, EventKind.CONTROL, ENTITY, on_alone, guard.row)
    else:
        # Its backup, which has not asked yet, asks in vain.
        replication.alarm = 0
        lock_ns = locked_ns(sim, guard, True, sim.now_ns, replication.storage_ns)
        replication.alone = at(sim, lock_ns, EventKind.CONTROL, ENTITY, on_locked, guard.row)


def continue_alone(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Go on without a backup: everything held leaves."""
    if guard.dead or replication.is_cut:
        return
    replication.step = 0
    stop_following(sim, guard, replication)
    # The state first: outputs that leave below may make the guest send, and that is not held any more.
    replication.state = SPLIT if replication.is_split else UNPROTECTED
    account.note_alone(sim, guard)
    audit.end(sim, guard.audit)
    go_alone(sim, guard)
    # What waited leaves before anything new.
    machine.resume(sim, guard, machine.STATE)
    if replication.is_fenced or replication.is_backup_dead:
        reprotection.start(sim, guard)


on_locked = timer(replications, "alone")(continue_alone)
"""The primary has the lock."""


# What kinds of such mechanisms share

replicated.implements(mechanism.begin)(protect)
replicated.implements(note_input)(admit)
replicated.implements(mechanism.backup_crash)(crash_backup)
replicated.implements(mechanism.channel_loss)(lose_channel)
replicated.implements(mechanism.change_channel)(change_state_channel)
replicated.implements(mechanism.missing)(output_buffer.unaccounted)

rolled_back.implements(mechanism.primary_crash)(crash_primary)
rolled_back.implements(rollback.reach_point)(stop_at_cut)

followed.implements(mechanism.primary_crash)(crash_followed_primary)
followed.implements(roll_back)(roll_back_to_loss)
followed.implements(use_end)(rollback.use_loss)
