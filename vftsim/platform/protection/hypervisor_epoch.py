"""Hypervisor-based fault tolerance by epochs of instructions.

Rule (Bressoud and Schneider, TOCS 14(1) 1996): primary and backup execute the same instructions.  An epoch is a fixed
number of them; interrupts are buffered and delivered at the end of an epoch, privileged instructions are simulated and
what they read is forwarded.  So is the end of a disk operation, with the data of a read, when it comes.  At the end
of each epoch the primary sends what the backup needs to be the same.

* ``original`` protocol: the primary waits at each end of an epoch until the backup has acknowledged everything;
* ``revised`` protocol: it continues, and waits before it acts on the world: sends a packet, asks a disk.

The backup is an epoch behind.  When the primary fails it executes what it holds, delivers the interrupts it has, and
continues; the operations of the last epoch are repeated, because nobody knows whether they happened: outputs are issued
at least once.

Time a run needs, relative to running without (EL instructions an epoch, VI in all, RT without):
NP = 1 + q + K / EL with q = n_sim h_sim / RT and K = VI h_epoch / RT; here h_epoch is ``boundary`` and, in the original
protocol, the message and its acknowledgement.  Interrupts wait for EL / (2 ips) in the mean.

What survives is the guest as it was when the first message was due that does not reach the backup.  Execution between
two messages is deterministic, so a crash can be announced, as for lockstep, and needs no second pass.  One of a
primary whose messages do not get through does: whether a host acts before it depends on what the guest does.

Left out: the instructions of an idle guest are those of its idle loop, so epochs continue; the backup's speed equals
the primary's; packets that wait for the end of an epoch when the primary fails are lost, and clients send them again;
disk operations under way then go on, which the backup would begin anew; timers of protocols are not buffered.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, EventKind, Fifo, Record, Sim, Table, at, event, timer
from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.records import domains
from vftsim.platform.io.disk import release_requests
from vftsim.platform.io.packet import copy, packet_list
from vftsim.platform.protection import audit, machine, mechanism, output_buffer
from vftsim.platform.protection._lockstep_records import limit_list, limits
from vftsim.platform.protection._replication_parameters import HeartbeatFields
from vftsim.platform.protection._replication_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    SPLIT,
    Replication,
    abandon,
    channel_restored,
    go_alone,
    replications,
    start_cycle,
)
from vftsim.platform.protection.account import INPUTS_WHILE_SPLIT, count, word
from vftsim.platform.protection.channel import Channel, change, channels, push, take_back, transmission_ns
from vftsim.platform.protection.guard import (
    LOST,
    Guard,
    discard_all,
    discard_all_but,
    guards,
    hold_output,
    must_wait,
    note_input,
    note_transfer,
    protection,
    release,
)
from vftsim.platform.protection.output_buffer import OutputBuffer, output_buffers
from vftsim.platform.protection.pair import NEVER_NS
from vftsim.platform.protection.prices import assumed, published
from vftsim.platform.protection.replication import (
    ENTITY,
    crash_followed_primary,
    end_foreseen_incarnation,
    followed,
    give_up_at,
    is_protecting,
    issue_again,
    issue_held,
    joins_line,
    lose_channel,
    send_unheld,
)
from vftsim.platform.protection.rollback import foreseen_limit_ns, reach_point
from vftsim.platform.protection.state_stream import state_streams
from vftsim.spec.units import US, ByteCount, DurationNs, RatePerSecond

EPOCHS = word("epochs")

hypervisor_epoch = protection.kind("hypervisor_epoch", base=followed)


class HypervisorEpochFields(HeartbeatFields):
    """Parameters of epochs of instructions."""

    issues_all: ClassVar[bool] = True
    uncalibrated: ClassVar[str] = (
        "instruction rate, epoch and its boundary, privileged instructions: assumptions (1996)"
    )
    sends_pages: ClassVar[bool] = False
    most_vcpus: ClassVar[int] = 1
    """The order of instructions of several is not forwarded."""
    card_rate_bits_per_s: ClassVar[int] = 10_000_000
    """Ethernet of the default processor's decade.  Assumption: the notes on the source do not name the pair's."""
    card_latency_ns: ClassVar[int] = 200 * US
    """Assumption: 5,000 instructions of that processor at either end for a datagram; 100 us to 1 ms are plausible."""
    protocol: Literal["original", "revised"] = Field("revised", description="Where the primary waits.")
    epoch_instructions: int = Field(50_000, ge=1, le=1 << 40, description="Instructions an epoch. Assumption.")
    instruction_rate: Annotated[RatePerSecond, assumed(20e6, 100e6)] = Field(
        50e6,
        gt=0,
        le=1e12,
        description="Instructions a second, at speed 1 and without `cpu_inflation`. Assumption.",
    )
    boundary: Annotated[DurationNs, published(100 * US, 444 * US, "TOCS 1996")] = Field(
        250 * US, description="Work at the end of an epoch, without waiting for the backup. Assumption."
    )
    simulated_rate: RatePerSecond = Field(
        0.0,
        le=1e9,
        description="Privileged instructions simulated in a second of running, at speed 1. Assumption: none.",
    )
    simulated_cost: DurationNs = Field(15 * US, description="Simulating one of them. Assumption.")
    message: ByteCount = Field(128, description="What ends an epoch, on the wire. Assumption.")
    entry: ByteCount = Field(64, description="What a packet forwarded takes beside its data. Assumption.")

    def without_effect(self) -> Mapping[str, str]:
        unread = {} if self.simulated_rate else {"simulated_cost": "no instructions are simulated (simulated_rate)"}
        return {**super().without_effect(), **unread}

    @property
    def records_reads(self) -> bool:
        """What is read is forwarded."""
        return True

    def executed_ns(self, engine: Engine, guard: int) -> int:
        """Return the CPU time of the backup, which does what the primary does an epoch later."""
        return self.followed_ns(engine, guard)

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        super().install(engine, guard, vm_link)
        epoch = engine.rows(epochs)[guard]
        epoch.is_original = self.protocol == "original"
        instructions_per_s = self.instruction_rate * machine.work_speed(engine, guard)
        epoch.epoch_ns = max(1, round(self.epoch_instructions * 1e9 / instructions_per_s))
        # Those simulated are instructions of the guest: as many an epoch, whatever the speed.
        simulated = self.simulated_rate * self.epoch_instructions / self.instruction_rate
        work_ns = self.boundary + simulated * self.simulated_cost
        epoch.boundary_ns = machine.on_host_ns(engine, guard, work_ns)
        epoch.message_bytes = self.message
        epoch.entry_bytes = self.entry
        epoch.limit_ns = NEVER_NS
        engine.rows(guards)[guard].audit.follows = engine.rows(guards)[guard].audit.hears = True


@mechanism.PROTECTIONS.register
class HypervisorEpochSpec(HypervisorEpochFields):
    """Epochs of instructions (Bressoud and Schneider 1996)."""

    products: ClassVar[tuple[str, ...]] = ("bressoud", "epochs")
    kind: Literal["hypervisor_epoch"] = "hypervisor_epoch"


class Epoch(Record):
    """The epochs of one guard.

    The present one ends at ``due_ns``, or ``left_ns`` of running after the guest goes on; ``is_waiting``: it stands
    still for an acknowledgement.  The backup's last comes at ``acked_ns``, of a message that left at ``departed_ns``.
    Messages that would leave after ``limit_ns``, the least of ``limits``, die with the primary.  ``copies`` are of
    outputs since the epoch began.
    A lost channel keeps ``unsent_bytes`` back.
    """

    is_original: bool
    is_at_boundary: bool
    is_waiting: bool
    epoch_ns: int
    boundary_ns: int
    message_bytes: int
    entry_bytes: int
    due_ns: int
    left_ns: int
    departed_ns: int
    acked_ns: int
    unsent_bytes: int
    limit_ns: int
    limits: Fifo
    copies: Fifo


epochs = Table("epochs", Epoch, beside=guards)


# An epoch


@hypervisor_epoch.implements(start_cycle)
def start_epochs(sim: Sim, guard: Guard, epoch: Epoch = BESIDE) -> None:
    """Begin the first epoch with a backup in step."""
    discard_all(sim, epoch.copies)
    epoch.departed_ns = sim.now_ns
    epoch.acked_ns = sim.now_ns
    epoch.left_ns = epoch.epoch_ns
    epoch.is_at_boundary = True
    epoch.is_waiting = False
    domains(sim)[guard.domain].buffers = True
    continue_epoch(sim, guard, epoch)


def continue_epoch(sim: Sim, guard: Guard, epoch: Epoch) -> None:
    """Let the epoch continue: at its beginning interrupts that are due are delivered, all others wait for the next."""
    epoch.due_ns = sim.now_ns + epoch.left_ns
    replications(sim)[guard.row].step = machine.call_after(sim, guard, epoch.left_ns, on_boundary)
    # By an event of this instant: the interrupts that are due come first, and the mask after them.
    if epoch.is_at_boundary:
        jobs.deliver_buffered(sim, domains(sim)[guard.domain])
        machine.call_after(sim, guard, 0, on_delivered)
    else:
        machine.mask_ports(sim, guard)


@event
def on_delivered(sim: Sim, guard_row: int) -> None:
    """Interrupts of this instant have been delivered: those to come are buffered."""
    if is_protecting(replications(sim)[guard_row]):
        machine.mask_ports(sim, guards(sim)[guard_row])


@timer(replications, "step")
def on_boundary(sim: Sim, guard: Guard, epoch: Epoch = BESIDE) -> None:
    """An epoch ends."""
    # Stopped before the message is written, which may be the first that dies with the primary.
    machine.stop(sim, guard, machine.STATE)
    count(sim, guard, EPOCHS, 1)
    # Before it is written: the end of an epoch tells the backup which outputs it need not repeat.
    audit.mark_released(guard.audit)
    if not write(sim, guard, epoch, epoch.message_bytes):
        return
    # After the message: the backup that has it need not repeat what left before.
    discard_all_but(sim, epoch.copies, output_buffers(sim)[guard.row].leaving.length)
    epoch.left_ns = epoch.epoch_ns
    epoch.is_at_boundary = True
    replications(sim)[guard.row].step = machine.call_after(sim, guard, epoch.boundary_ns, on_boundary_done)


@timer(replications, "step")
def on_boundary_done(sim: Sim, guard_row: int) -> None:
    """The work at the end of an epoch is done; who has sent meanwhile waits, the original protocol always."""
    # What timers have sent while the guest stood still waits.
    if epochs(sim)[guard_row].is_original or is_awaited(sim, guards(sim)[guard_row]):
        wait_for_acknowledgement(sim, guards(sim)[guard_row])
    else:
        resume_epoch(sim, guards(sim)[guard_row])


def wait_for_acknowledgement(sim: Sim, guard: Guard) -> None:
    """Let the guest, which stands still, continue when everything sent is acknowledged."""
    epochs(sim)[guard.row].is_waiting = True
    time_ns = max(sim.now_ns, epochs(sim)[guard.row].acked_ns)
    replications(sim)[guard.row].step = at(sim, time_ns, EventKind.CHANNEL, ENTITY, on_acknowledged, guard.row)


@timer(replications, "step")
def on_acknowledged(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Everything that was sent is acknowledged, unless the backup or the channel is gone."""
    epochs(sim)[guard.row].is_waiting = False
    # No step is planned from here on: resend() plans one when the channel works again.
    if epochs(sim)[guard.row].acked_ns > state_streams(sim)[guard.row].lost_ns:
        give_up_at(sim, guard, replication, epochs(sim)[guard.row].departed_ns + replication.backup_timeout_ns)
        return
    if epochs(sim)[guard.row].acked_ns > sim.now_ns:
        # Meanwhile the channel was away, and what it lost has been sent again.
        wait_for_acknowledgement(sim, guard)
        return
    # What waited leaves before anything new.
    release_waiting(sim, guard)
    resume_epoch(sim, guard)


def resume_epoch(sim: Sim, guard: Guard, epoch: Epoch = BESIDE) -> None:
    """Let the guest run."""
    machine.resume(sim, guard, machine.STATE)
    continue_epoch(sim, guard, epoch)


# What enters and what leaves


def write(sim: Sim, guard: Guard, epoch: Epoch, size_bytes: int, channel: Channel = BESIDE) -> bool:
    """Send a message; False if it is the first that dies with the primary, which is then at its end."""
    if replications(sim)[guard.row].state == BROKEN:
        # A channel that is away carries nothing: it is sent when it works again.
        epoch.unsent_bytes += size_bytes
        depart_ns = sim.now_ns + transmission_ns(channel, epoch.unsent_bytes)
    else:
        depart_ns = push(sim, channel, size_bytes)
    audit.mark(sim, guard.audit)
    audit.send(sim, guard.audit, size_bytes, depart_ns, channel.latency_ns)
    if depart_ns > epoch.limit_ns and not replications(sim)[guard.row].is_backup_dead:
        end_foreseen_incarnation(sim, guard)
        return False
    epoch.departed_ns = depart_ns
    epoch.acked_ns = depart_ns + channel.latency_ns + channel.ack_ns
    return True


@hypervisor_epoch.implements(note_input)
def forward(sim: Sim, guard: Guard, size_bytes: int, state: Replication = BESIDE, epoch: Epoch = BESIDE) -> int:
    """Forward a packet that is delivered."""
    if state.is_cut or state.state == FAILING_OVER:
        return LOST
    if state.state == SPLIT:
        count(sim, guard, INPUTS_WHILE_SPLIT, 1)
    if is_protecting(state) and not write(sim, guard, epoch, epoch.entry_bytes + size_bytes):
        return LOST
    return 0


@hypervisor_epoch.implements(note_transfer)
def forward_transfer(sim: Sim, guard: Guard, size_bytes: int, is_read: bool, replica_ns: int) -> int:
    """Forward the end of a disk operation, of a read with its data; the guest hears of it when its epoch ends."""
    epoch = epochs(sim)[guard.row]
    if is_protecting(replications(sim)[guard.row]):
        write(sim, guard, epoch, epoch.entry_bytes + (size_bytes if is_read else 0))
    return 0


@hypervisor_epoch.implements(must_wait)
def hold_until_acknowledged(sim: Sim, guard: Guard) -> bool:
    """Let a request to a disk go if everything sent is acknowledged; else the guest waits with it."""
    if not is_protecting(replications(sim)[guard.row]) or may_act(sim, guard):
        return False
    stop_for_output(sim, guard, epochs(sim)[guard.row])
    return True


def is_awaited(sim: Sim, guard: Guard) -> bool:
    """Tell whether outputs or requests wait for an acknowledgement."""
    return output_buffers(sim)[guard.row].fresh.length + guard.requests.length > 0


def may_act(sim: Sim, guard: Guard) -> bool:
    """Tell whether everything sent is acknowledged, and nothing waits for that."""
    is_working = replications(sim)[guard.row].state == PROTECTED
    return is_working and epochs(sim)[guard.row].acked_ns <= sim.now_ns and not is_awaited(sim, guard)


@hypervisor_epoch.implements(hold_output)
def release_or_hold(sim: Sim, guard: Guard, packet: int, state: Replication = BESIDE, epoch: Epoch = BESIDE) -> None:
    """Let an output leave if everything sent is acknowledged; else the guest waits with it."""
    if not is_protecting(state):
        send_unheld(sim, guard, packet)
    elif may_act(sim, guard):
        # Copied before it leaves: a backup that takes over repeats the operations of its last epoch.
        packet_list.push(sim, epoch.copies, copy(sim, packet))
        if not joins_line(sim, guard, packet):
            output_buffer.count_unheld(sim, guard)
            release(sim, packet)
    else:
        output_buffer.hold(sim, guard, packet)
        stop_for_output(sim, guard, epoch)


def stop_for_output(sim: Sim, guard: Guard, epoch: Epoch) -> None:
    """Stop the guest before it acts, unless it stands still already; the rest of the epoch comes afterwards."""
    if guard.reasons & machine.STATE == 0:
        epoch.left_ns = max(0, epoch.due_ns - sim.now_ns)
        epoch.is_at_boundary = epoch.left_ns == epoch.epoch_ns
        machine.stop(sim, guard, machine.STATE)
        wait_for_acknowledgement(sim, guard)


def release_waiting(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE, epoch: Epoch = BESIDE) -> None:
    """Send what the guest has waited with."""
    # Copied before they leave, as in release_or_hold().
    output_buffer.copy_outputs(sim, buffer.fresh, epoch.copies)
    output_buffer.release_everything(sim, guard)
    release_requests(sim, guard)


# When a host or the channel fails


@hypervisor_epoch.implements(mechanism.change_channel)
def change_message_channel(sim: Sim, guard: Guard, rate_bits_per_s: int, latency_ns: int) -> None:
    """Send what comes from now on over a channel that has changed."""
    change(channels(sim)[guard.row], rate_bits_per_s, latency_ns)


@hypervisor_epoch.implements(mechanism.channel_loss)
def lose_path(sim: Sim, guard: Guard, duration_ns: int) -> None:
    """Lose the channel: what has not left by now is kept, with what is written until it works again."""
    # Read before the state changes: what is on the wire now is what the loss keeps back.
    if replications(sim)[guard.row].state == PROTECTED:
        channel = channels(sim)[guard.row]
        epochs(sim)[guard.row].unsent_bytes = take_back(channel, sim.now_ns, channel.sent_bytes)
    lose_channel(sim, guard, duration_ns)


@hypervisor_epoch.implements(channel_restored)
def resend(sim: Sim, guard: Guard, epoch: Epoch = BESIDE, channel: Channel = BESIDE) -> None:
    """Send what has not got through; a guest that waits continues when that is acknowledged."""
    epoch.departed_ns = sim.now_ns
    if epoch.unsent_bytes > 0:
        epoch.departed_ns = push(sim, channel, epoch.unsent_bytes)
        audit.send(sim, guard.audit, epoch.unsent_bytes, epoch.departed_ns, channel.latency_ns)
    epoch.acked_ns = epoch.departed_ns + channel.latency_ns + channel.ack_ns
    # Whoever waits already hears earlier of a channel that is faster by now.
    if epoch.is_waiting or replications(sim)[guard.row].step == 0:
        wait_for_acknowledgement(sim, guard)


@hypervisor_epoch.implements(mechanism.expect_primary_crash)
def expect_crash(sim: Sim, guard: Guard, time_ns: int, epoch: Epoch = BESIDE) -> None:
    """Messages that have not left by then die with the primary."""
    row = limits.new(sim, time_ns=time_ns)
    limit_list.push(sim, epoch.limits, row)
    epoch.limit_ns = min(epoch.limit_ns, time_ns)


@hypervisor_epoch.implements(reach_point)
def expect_loss(sim: Sim, guard: Guard, epoch: Epoch = BESIDE) -> None:
    """Messages that a loss to come keeps from the backup die with the primary."""
    epoch.limit_ns = min(epoch.limit_ns, foreseen_limit_ns(sim, guard))


def drop_past_limits(sim: Sim, guard: Guard, epoch: Epoch) -> None:
    """Forget the limits that have come."""
    epoch.limit_ns = foreseen_limit_ns(sim, guard)
    for _ in range(epoch.limits.length):
        row = limit_list.pop(sim, epoch.limits)
        if limits(sim)[row].time_ns <= sim.now_ns:
            limits.free(sim, row)
        else:
            epoch.limit_ns = min(epoch.limit_ns, limits(sim)[row].time_ns)
            limit_list.push(sim, epoch.limits, row)


@hypervisor_epoch.implements(mechanism.primary_crash)
def crash(sim: Sim, guard: Guard) -> None:
    """Let the backup continue where the guest was cut: at the first message that it lacks, or just now."""
    crash_followed_primary(sim, guard)
    drop_past_limits(sim, guard, epochs(sim)[guard.row])


@hypervisor_epoch.implements(abandon)
def hand_over(sim: Sim, guard: Guard, epoch: Epoch = BESIDE) -> None:
    """Let the backup repeat the operations of its last epoch, and those that the primary waited with."""
    if replications(sim)[guard.row].state == FAILING_OVER:
        issue_again(sim, guard, epoch.copies)
        issue_held(sim, guard, output_buffers(sim)[guard.row].fresh)
    drop_past_limits(sim, guard, epoch)
    output_buffer.lose(sim, guard)
    stop_buffering(sim, guard)


@hypervisor_epoch.implements(go_alone)
def release_everything(sim: Sim, guard: Guard) -> None:
    """Continue without a backup: nothing is buffered."""
    output_buffer.release_everything(sim, guard)
    stop_buffering(sim, guard)
    if not guard.stopped:
        machine.unmask_ports(sim, guard)


def stop_buffering(sim: Sim, guard: Guard) -> None:
    """Deliver the interrupts that are buffered, and let the disks begin with what has waited."""
    domains(sim)[guard.domain].buffers = False
    jobs.deliver_buffered(sim, domains(sim)[guard.domain])
    release_requests(sim, guard)
