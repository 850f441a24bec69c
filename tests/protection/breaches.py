"""Breaches of the promise to be planted in mechanisms, and models in which each shows."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from vftsim.kernel import Engine
from vftsim.kernel.declare import part_of
from vftsim.platform.protection import (
    _lockstep_failover,
    coarse_lockstep,
    commit,
    event_sync,
    guard,
    hypervisor_epoch,
    log_writer,
    output_buffer,
    state_stream,
)
from vftsim.platform.protection._replication_records import replications

from .spoilt import replaced

Make = Callable[[Any, dict[str, Any]], Any]

CRASH = "{kind: primary_crash, at: AT}"
LOSS = "{kind: channel_loss, at: 205 ms, duration: 21 ms, repeat: {every: 40 ms, most: 6}}"
LOST = "{kind: channel_loss, at: 205 ms}"


@dataclass(frozen=True)
class Breach:
    """A defect of a mechanism.

    Parameters
    ----------
    kind : str
        The mechanism, as :data:`MODELS` has it.
    spoil : callable
        Plants it in an engine.
    faults : str
        Without which it does not show; ``AT`` is an instant at which a message to the backup has just left.
    settings : mapping
        What the mechanism is set to for it to show.
    nth : int
        Which message that is.
    late_ns : int
        How long after it the host crashes.
    needs_timers : bool
        It takes a guest that sends while it stands still: the plant's, no program of a model does.
    ends : str
        With which words a run ends that the simulation itself cannot go on with.
    """

    kind: str
    spoil: Callable[[Engine], None]
    faults: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    nth: int = 40
    late_ns: int = 0
    needs_timers: bool = False
    ends: str = ""


def at_once(old: Any, namespace: dict[str, Any]) -> Any:
    """A wait of no time."""
    return lambda sim, *arguments: sim.now_ns


def at_first_byte(old: Any, namespace: dict[str, Any]) -> Any:
    """A state counts as received with its first byte."""

    def ack_arrival_ns(sim: Any, guard: Any) -> int:
        stream, channel = sim.state_streams[guard.row], sim.channels[guard.row]
        return max(sim.now_ns, int(stream.sent_from_ns + stream.latency_ns + channel.ack_ns))

    return ack_arrival_ns


def beyond_barrier(old: Any, namespace: dict[str, Any]) -> Any:
    """What was issued after the barrier goes with what was before it."""

    def let_go(sim: Any, guard: Any) -> None:
        namespace[part_of(output_buffer.seal).name](sim, guard)
        old(sim, guard)

    return let_go


def backwards(old: Any, namespace: dict[str, Any]) -> Any:
    """Of two outputs behind one barrier the second leaves first."""

    def seal(sim: Any, guard: Any) -> None:
        buffer = sim.output_buffers[guard.row]
        if buffer.fresh.length > 1:
            rows, first = sim.held_outputs, buffer.fresh.first
            buffer.fresh.first = rows[first].link
            rows[buffer.fresh.last].link = first
            rows[first].link = 0
            buffer.fresh.last = first
        old(sim, guard)

    return seal


def without_pages(old: Any, namespace: dict[str, Any]) -> Any:
    """A state is its fixed part."""
    return lambda repl: repl.fixed_bytes


def incomplete(old: Any, namespace: dict[str, Any]) -> Any:
    """A state of which bytes are missing counts as received."""
    return lambda sim, guard: True


def older(old: Any, namespace: dict[str, Any]) -> Any:
    """The backup takes the state before the last one."""
    return lambda sim, guard: False


def disk_later(old: Any, namespace: dict[str, Any]) -> Any:
    """The backup does not wait for its disk."""
    return lambda sim, guard: 0


def rest_forgotten(old: Any, namespace: dict[str, Any]) -> Any:
    """What had not left when the channel was lost counts as sent when it works again."""

    def repair(sim: Any, guard: Any) -> None:
        old(sim, guard)
        sim.state_streams[guard.row].depart_ns = sim.now_ns
        sim.channels[guard.row].free_ns = sim.now_ns

    return repair


def same_barrier(old: Any, namespace: dict[str, Any]) -> Any:
    """What a guest sends in a pause belongs to the state that was taken before."""

    def synchronize_output(sim: Any, guard: Any, packet: int) -> None:
        old(sim, guard, packet)
        namespace[part_of(output_buffer.seal).name](sim, guard)

    return synchronize_output


def nothing(old: Any, namespace: dict[str, Any]) -> Any:
    """A part that does nothing."""
    return lambda sim, *arguments: None


def unlogged(old: Any, namespace: dict[str, Any]) -> Any:
    """Packets are delivered, and nobody is told."""
    return lambda sim, guard, size_bytes: 0


def by_departure(old: Any, namespace: dict[str, Any]) -> Any:
    """A message counts as received when it has left."""

    def write(sim: Any, guard: Any, repl: Any, size_bytes: int) -> Any:
        done = old(sim, guard, repl, size_bytes)
        repl.acked_ns = repl.departed_ns
        return done

    return write


def at_writing(old: Any, namespace: dict[str, Any]) -> Any:
    """An entry counts as received when it is written."""

    def take_in(sim: Any, pair: Any, depart_ns: int, size_bytes: int) -> int:
        sim.channels[pair.guard].ack_ns = 0
        return int(sim.now_ns)

    return take_in


def not_at_the_crash(old: Any, namespace: dict[str, Any]) -> Any:
    """An entry that left just when the primary crashed is none that the secondary has."""
    return lambda output, limit_ns, last_sent_ns: output.depart_ns < limit_ns and old(output, limit_ns, last_sent_ns)


def one_byte(old: Any, namespace: dict[str, Any]) -> Any:
    """Of what a lost channel has kept back nothing is sent."""

    def resend(sim: Any, pair: Any) -> None:
        pair.log.unsent_bytes = 0
        old(sim, pair)

    return resend


def twice(old: Any, namespace: dict[str, Any]) -> Any:
    """The same once more."""

    def do(sim: Any, *arguments: Any) -> None:
        old(sim, *arguments)
        old(sim, *arguments)

    return do


def compared(old: Any, namespace: dict[str, Any]) -> Any:
    """An output counts as compared before it is."""
    return lambda sim, output: True


def still_compared(old: Any, namespace: dict[str, Any]) -> Any:
    """Outputs are compared while a state replaces one of the replicas."""

    def take_state(sim: Any, guard: Any) -> None:
        old(sim, guard)
        sim.state_streams[guard.row].is_open = False

    return take_state


def unfenced(engine: Engine) -> None:
    """The lock is not asked for."""
    engine.rows(replications)[1].is_fenced = False


FENCED = {"failover": "{fencing: true, detection: {timeout: 300 ms}}"}
DISK = {
    "disk": "{write_rate: 40 MB/s, apply_rate: 100 kB/s}",
    "failover": "{detection: {timeout: 60 ms}, go_live: 0 ms}",
}
PLANTED = {
    "checkpoint at sending": Breach("checkpoint", replaced(state_stream.ack_arrival_ns, at_once)),
    "checkpoint at the first byte": Breach("checkpoint", replaced(state_stream.ack_arrival_ns, at_first_byte)),
    "checkpoint beyond the barrier": Breach("checkpoint", replaced(output_buffer.release_sealed, beyond_barrier)),
    "checkpoint out of order": Breach("checkpoint", replaced(output_buffer.seal, backwards)),
    "states without pages": Breach("checkpoint", replaced(state_stream.state_bytes, without_pages)),
    "an incomplete state": Breach(
        "checkpoint", replaced(state_stream.has_received_last, incomplete), CRASH, nth=8, late_ns=-400_000
    ),
    "an older state": Breach(
        "checkpoint",
        replaced(state_stream.has_received_last, older),
        CRASH,
        nth=8,
        late_ns=2_000_000,
        ends="was foreseen and not reached",
    ),
    "live before the disk": Breach("checkpoint", replaced(state_stream.applied_by_ns, disk_later), CRASH, DISK, nth=8),
    "the rest of a state forgotten": Breach("checkpoint", replaced(state_stream.restore_channel, rest_forgotten), LOSS),
    "fencing ignored": Breach("checkpoint", unfenced, LOST, FENCED),
    "micro-checkpoint at sending": Breach("micro_checkpoint", replaced(state_stream.ack_arrival_ns, at_once)),
    "Kemari at sending": Breach("event_sync", replaced(state_stream.ack_arrival_ns, at_once)),
    "Kemari, sent in a pause": Breach(
        "event_sync", replaced(event_sync.synchronize_output, same_barrier), needs_timers=True
    ),
    "Kemari keeps copies": Breach("event_sync", replaced(guard.discard_all, nothing), CRASH, late_ns=2_000_000),
    "epochs unlogged": Breach("hypervisor_epoch", replaced(hypervisor_epoch.forward, unlogged)),
    "epochs by departure": Breach("hypervisor_epoch", replaced(hypervisor_epoch.write, by_departure)),
    "epochs keep copies": Breach("hypervisor_epoch", replaced(guard.discard_all_but, nothing), CRASH),
    "lockstep at writing": Breach("lockstep", replaced(log_writer.buffered_ns, at_writing)),
    "lockstep sends one byte again": Breach("lockstep", replaced(log_writer.resend, one_byte), LOSS),
    "lockstep, an entry that left at the crash": Breach(
        "lockstep", replaced(commit.is_uncertain, not_at_the_crash), CRASH
    ),
    "lockstep lives twice": Breach("lockstep", replaced(_lockstep_failover.fail_over, twice), CRASH),
    "COLO uncompared": Breach("coarse_lockstep", replaced(coarse_lockstep.is_equal, compared)),
    "COLO compares during a checkpoint": Breach(
        "coarse_lockstep", replaced(state_stream.take_state, still_compared), needs_timers=True
    ),
}
