"""Kemari: the guest's state goes to the backup whenever the guest is about to act on the world.

Rule (Kemari; the thesis, Appendix F): on an event to a device (a packet sent, a disk access; reads are events too) the
guest is paused, the pages changed since the last synchronization and the vCPUs' state are sent, the backup
acknowledges, the guest resumes, and the event is passed on.  Outputs need no queue.  A backup that takes over starts
from the last synchronized state and issues its event again: at least once.

With s the suspension, x the transmission and a the round trip the guest stands still for y = s + x + a at each event:
pages are sent while it is paused, not copied first.  All that a guest sends at one instant is one notification of its
event channel, hence one event; what its timers send while it is paused is another event after it.

A program's request to a disk begins when its event is passed on.  Further reads, those of programs that say nothing
of a disk, are evenly spaced in running time (``read_rate``).  What a page cache writes back at once is one event.
Heartbeats tell a silent guest from a dead host.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, Fifo, Record, Sim, Table, event
from vftsim.platform.io.disk import release_requests
from vftsim.platform.protection import machine, output_buffer, state_stream
from vftsim.platform.protection._replication_parameters import DiskMirrorSpec, HeartbeatFields
from vftsim.platform.protection._replication_records import (
    FAILING_OVER,
    abandon,
    acknowledged,
    go_alone,
    outputs_at_risk,
    replications,
    start_cycle,
)
from vftsim.platform.protection.guard import Guard, discard_all, guards, hold_output, must_wait, protection
from vftsim.platform.protection.mechanism import PROTECTIONS
from vftsim.platform.protection.output_buffer import OutputBuffer, output_buffers
from vftsim.platform.protection.prices import assumed
from vftsim.platform.protection.replication import (
    is_protecting,
    issue_again,
    issue_held,
    lose_line,
    on_suspended,
    rolled_back,
    send_unheld,
    stop_at_cut,
)
from vftsim.platform.protection.state_stream import state_streams
from vftsim.spec.units import MS, US, DurationNs, RatePerSecond

event_sync = protection.kind("event_sync", base=rolled_back)


class SharedStorageSpec(DiskMirrorSpec):
    """Disk writes, which go to storage that both hosts reach."""

    mirrored: bool = Field(
        False, description="As under `checkpoint`. Default: Kemari's disks are on storage that both hosts share."
    )


class EventSyncFields(HeartbeatFields):
    """Parameters of synchronization at each event."""

    issues_all: ClassVar[bool] = True
    uncalibrated: ClassVar[str] = "pages dirtied, the time to find them, the driver domain's CPU time: assumptions"
    suspend: Annotated[DurationNs, assumed(100 * US, 5 * MS)] = Field(
        500 * US, description="Suspending the guest and finding its dirty pages. Assumption."
    )
    disk: SharedStorageSpec = Field(default_factory=SharedStorageSpec, description="Mirrored disk writes.")
    read_rate: RatePerSecond = Field(
        0.0, le=1e6, description="Disk reads in a second of running, beside those of programs; each is an event."
    )

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        super().install(engine, guard, vm_link)
        sync = engine.rows(event_syncs)[guard]
        sync.suspend_ns = machine.on_host_ns(engine, guard, self.suspend)
        sync.read_period_ns = round(1e9 / self.read_rate) if self.read_rate else 0


@PROTECTIONS.register
class EventSyncSpec(EventSyncFields):
    """Synchronization at each event (Kemari)."""

    products: ClassVar[tuple[str, ...]] = ("kemari",)
    kind: Literal["event_sync"] = "event_sync"


class EventSync(Record):
    """The synchronizations of one guard: the last one began at ``began_ns``.

    ``copies`` are of the outputs of the last event that was passed on.  If ``read``, its token, is not 0, the next disk
    read is due when the guest has not stood still for ``read_due_ns``; else after ``read_left_ns`` more of running.
    """

    suspend_ns: int
    began_ns: int
    copies: Fifo
    read_period_ns: int
    read_due_ns: int
    read_left_ns: int
    read: int


event_syncs = Table("event_syncs", EventSync, beside=guards)


@event_sync.implements(start_cycle)
def start_syncs(sim: Sim, guard: Guard, sync: EventSync = BESIDE) -> None:
    """Begin with nothing passed on."""
    # An event of an earlier pair is not this backup's to issue again.
    discard_all(sim, sync.copies)
    sync.read_left_ns = sync.read_period_ns
    plan_read(sim, guard, sync)


@event_sync.implements(hold_output)
def synchronize_output(sim: Sim, guard: Guard, packet: int) -> None:
    """Let an output begin a synchronization, belong to the one that its instant began, or wait for the next."""
    if not is_protecting(replications(sim)[guard.row]):
        send_unheld(sim, guard, packet)
        return
    # Held before the guest stops: the barrier of the synchronization that begins stands behind it.
    output_buffer.hold(sim, guard, packet)
    if not state_streams(sim)[guard.row].is_open:
        synchronize(sim, guard)
    elif event_syncs(sim)[guard.row].began_ns == sim.now_ns:
        output_buffer.seal(sim, guard)


@event_sync.implements(must_wait)
def synchronize_request(sim: Sim, guard: Guard) -> bool:
    """Let a request to a disk begin a synchronization, or belong to the one that its instant began."""
    if not is_protecting(replications(sim)[guard.row]):
        return False
    if not state_streams(sim)[guard.row].is_open:
        synchronize(sim, guard)
    return True


def synchronize(sim: Sim, guard: Guard, sync: EventSync = BESIDE) -> None:
    """Pause the guest and take its state; what it sends now is passed on afterwards."""
    sync.began_ns = sim.now_ns
    stop_reads(sim, guard, sync)
    # State and barrier belong to one instant, in which nothing runs; the cut comes last, as at a checkpoint.
    machine.stop(sim, guard, machine.STATE)
    state_stream.take_state(sim, guard)
    output_buffer.seal(sim, guard)
    stop_at_cut(sim, guard)
    replications(sim)[guard.row].step = machine.call_after(sim, guard, sync.suspend_ns, on_suspended)


@event_sync.implements(acknowledged)
def release_event(sim: Sim, guard: Guard, sync: EventSync = BESIDE) -> None:
    """Resume the guest and pass its event on; what its timers have sent meanwhile is the next event."""
    # Copied before they leave: what their receivers do with them is no longer ours.
    retain_copies(sim, guard, sync)
    output_buffer.release_sealed(sim, guard)
    release_requests(sim, guard)
    # The guest stays stopped: its timers have sent while its state was on the way.
    if output_buffers(sim)[guard.row].fresh.length > 0:
        synchronize(sim, guard)
        return
    machine.resume(sim, guard, machine.STATE)
    plan_read(sim, guard, sync)


def retain_copies(sim: Sim, guard: Guard, sync: EventSync) -> None:
    """Keep copies of what is about to leave: a backup that starts from this state issues it again."""
    discard_all(sim, sync.copies)
    output_buffer.copy_outputs(sim, output_buffers(sim)[guard.row].sealed, sync.copies)


# Disk reads


def plan_read(sim: Sim, guard: Guard, sync: EventSync) -> None:
    """Plan the next disk read of a guest that runs."""
    if sync.read_period_ns > 0 and not replications(sim)[guard.row].is_cut:
        sync.read_due_ns = machine.unstopped_ns(sim, guard) + sync.read_left_ns
        sync.read = machine.call_after(sim, guard, sync.read_left_ns, on_read)


def stop_reads(sim: Sim, guard: Guard, sync: EventSync) -> None:
    """Keep what is left until the next disk read of a guest that stops; one that is due now begins the next stretch."""
    if sync.read != 0:
        left_ns = sync.read_due_ns - machine.unstopped_ns(sim, guard)
        sync.read_left_ns = left_ns if left_ns > 0 else sync.read_period_ns
    sync.read = 0


@event
def on_read(sim: Sim, guard: Guard, token: int, sync: EventSync = BESIDE) -> None:
    """The guest reads from its disk, unless another cause has stopped it meanwhile: then that much later."""
    if token != sync.read or not is_protecting(replications(sim)[guard.row]):
        return
    left_ns = sync.read_due_ns - machine.unstopped_ns(sim, guard)
    if left_ns > 0:
        sync.read = machine.call_after(sim, guard, left_ns, on_read)
    else:
        synchronize(sim, guard)


# When a host fails


@event_sync.implements(abandon)
def hand_over(sim: Sim, guard: Guard, sync: EventSync = BESIDE) -> None:
    """Let the backup issue the event of the last synchronization, whether it left or not; lose the rest."""
    sync.read = 0
    if replications(sim)[guard.row].state == FAILING_OVER:
        lose_line(sim, guard)
        if state_streams(sim)[guard.row].is_open:
            issue_held(sim, guard, output_buffers(sim)[guard.row].sealed)
        else:
            issue_again(sim, guard, sync.copies)
    output_buffer.lose(sim, guard)
    release_requests(sim, guard)


@event_sync.implements(outputs_at_risk)
def outputs_not_received(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> int:
    """Count the outputs that wait for a synchronization which the backup will not have."""
    if state_stream.has_received_last(sim, guard):
        return buffer.fresh.length
    return buffer.fresh.length + buffer.sealed.length


@event_sync.implements(go_alone)
def release_everything(sim: Sim, guard: Guard) -> None:
    """Pass everything on: there is no backup to synchronize."""
    event_syncs(sim)[guard.row].read = 0
    output_buffer.release_everything(sim, guard)
    release_requests(sim, guard)
