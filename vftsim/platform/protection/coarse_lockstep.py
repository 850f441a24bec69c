"""COLO: both replicas execute, their outputs are compared, and only a difference makes a checkpoint necessary.

Rule (COarse-grain LOck-stepping; QEMU's implementation): requests go to both replicas.  A proxy compares their outputs:
equal ones leave at once, when the slower replica has produced them too; a difference, or a packet that one of them does
not produce within a timeout, forces a checkpoint, during which both stand still and the secondary becomes equal to
the primary; at the latest after a period there is one anyway.

The proxy is on the primary's host (QEMU, ``docs/colo-proxy.txt``): it sends the secondary a copy of each packet that
the guest receives, over the channel, and the secondary's outputs come back over it to be compared.  So the secondary is
behind by the way of what came in last, and its output by the way back, a round trip more than the primary's.

Replicas diverge at random, v times a second of running (threads, timers, random numbers of the guest).  With y the time
of a checkpoint (suspension, transmission, round trip) and T the period a run lasts (1 - exp(-v T)) / v in the mean, and
work is 1 + y / run slower.  Each replica produces an output later than it would alone by a time of its own, exponential
with mean ``jitter`` j.  With a for the round trip an output waits a + j + j exp(-a / j) / 2 in the mean: 1.5 j without.

A secondary that takes over continues from where it is: nothing that has left contradicts it.  It issues the outputs
that waited for the comparison.  Its driver is connected already; what the primary had in its receive ring it has too.
Requests reach it through the primary's proxy: none since the channel was lost.  They come when it works again, and the
secondary then does what the primary has done since.

Assumptions: divergence shows as a difference at once; a secondary that has diverged unseen issues what the primary
would have; a copy has no header, and outputs have their way back to themselves.  Left out: CPU time of the proxy, and
that what is on its way to the secondary at a crash is lost.  Both replicas use CPU and memory all the time.
"""

from functools import partial
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from vftsim.errors import UsageError
from vftsim.kernel import BESIDE, Engine, EventKind, Record, Sim, Table, at, event, timer
from vftsim.kernel.inputs import MOST, Feeder, draw
from vftsim.platform.io.packet import packets
from vftsim.platform.protection import audit, machine, output_buffer, state_stream
from vftsim.platform.protection._replication_parameters import HeartbeatFields
from vftsim.platform.protection._replication_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    abandon,
    acknowledged,
    channel_restored,
    go_alone,
    replications,
    start_cycle,
)
from vftsim.platform.protection.account import count, word
from vftsim.platform.protection.channel import Channel, channels, push, take_back, transmission_ns
from vftsim.platform.protection.disk_mirror import AT_ONCE, disk_mirrors
from vftsim.platform.protection.guard import LOST, Guard, guards, hold_output, note_input, protection
from vftsim.platform.protection.mechanism import PROTECTIONS, channel_loss, set_backup_speed
from vftsim.platform.protection.output_buffer import held_list, held_outputs, output_buffers
from vftsim.platform.protection.prices import assumed
from vftsim.platform.protection.replication import (
    admit,
    end_foreseen_incarnation,
    followed,
    is_protecting,
    issue_held,
    lose_channel,
    lose_line,
    on_suspended,
    send_unheld,
)
from vftsim.platform.protection.rollback import is_cut_at_loss
from vftsim.platform.protection.state_stream import state_streams
from vftsim.sampling import Draws, Streams, exponential_ns
from vftsim.spec.units import MS, US, DurationNs, Percent, PeriodNs, PositiveDurationNs, RatePerSecond, S

_MILLION = 1_000_000
_ENTITY = 6
_DRAWS_AT_ONCE = MOST // 2
"""Two for each output, of which a guest that has stood still issues hundreds when it goes on."""

DIVERGED = word("divergences")
PERIODIC = word("periodic_checkpoints")
TIMED_OUT = word("packets_missing")

coarse_lockstep = protection.kind("coarse_lockstep", base=followed)


def _millionths(uniforms: NDArray[np.float64]) -> NDArray[Any]:
    return (uniforms * _MILLION).astype(np.int64)


class CoarseLockstepFields(HeartbeatFields):
    """Parameters of the comparison of outputs."""

    issues_all: ClassVar[bool] = True
    backup_executes: ClassVar[bool] = True
    applies_writes: ClassVar[int] = AT_ONCE
    uncalibrated: ClassVar[str] = "divergences, distance of replicas, pages dirtied: assumptions; the proxy is free"
    divergence_rate: Annotated[RatePerSecond, assumed(0.01, 2.0)] = Field(
        0.1, gt=0, le=1e6, description="Differences between the replicas' outputs in a second of running. Assumption."
    )
    period: PeriodNs = Field(20 * S, description="Longest run between two checkpoints (QEMU: 20 s).")
    packet_timeout: PositiveDurationNs = Field(
        3 * S, description="Wait for a packet that one replica has not produced (QEMU: 3 s)."
    )
    missing: Percent = Field(0.0, description="Outputs that one replica does not produce. Assumption: none.")
    jitter: Annotated[DurationNs, assumed(20 * US, 1 * MS)] = Field(
        100 * US, description="Mean delay of an output at each replica, exponential. Assumption; 0: none."
    )
    suspend: Annotated[DurationNs, assumed(100 * US, 5 * MS)] = Field(
        500 * US, description="Suspending both at a checkpoint. Assumption."
    )

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        super().install(engine, guard, vm_link)
        coarse = engine.rows(coarse_locksteps)[guard]
        coarse.period_ns = self.period
        coarse.timeout_ns = self.packet_timeout
        coarse.missing_millionths = round(self.missing * _MILLION / 100)
        coarse.suspend_ns = machine.on_host_ns(engine, guard, self.suspend)
        coarse.secondary_speed = 1.0
        if self.state.receive_ring == "by_path":
            engine.rows(replications)[guard].rings = machine.SAVED_RINGS

    def draw(self, engine: Engine, guard: int, feeder: Feeder | None, streams: Streams | None) -> None:
        """Have divergences, delays and missing packets drawn; refuse to where there is nothing to draw them with."""
        if feeder is None or streams is None:
            raise UsageError("coarse_lockstep draws random numbers; this kind of model does not hand it any yet")
        coarse = engine.rows(coarse_locksteps)[guard]
        runs_ns = partial(exponential_ns, mean_ns=S / self.divergence_rate)
        coarse.divergences = feeder.add(Draws(streams, "coarse_lockstep.divergence", guard, runs_ns))
        if self.jitter:
            delays_ns = partial(exponential_ns, mean_ns=self.jitter)
            delays = Draws(streams, "coarse_lockstep.delay", guard, delays_ns)
            coarse.delays = feeder.add(delays, at_once=_DRAWS_AT_ONCE)
        if self.missing:
            misses = Draws(streams, "coarse_lockstep.missing", guard, _millionths)
            coarse.misses = feeder.add(misses, at_once=_DRAWS_AT_ONCE)


@PROTECTIONS.register
class CoarseLockstepSpec(CoarseLockstepFields):
    """Comparison of outputs (COLO)."""

    products: ClassVar[tuple[str, ...]] = ("colo",)
    kind: Literal["coarse_lockstep"] = "coarse_lockstep"


class CoarseLockstep(Record):
    """The comparison of one guard's outputs.

    ``divergences``, ``delays`` and ``misses`` are feeds; 0: none.  The present run ends because replicas differ
    (``is_divergence``) or because its period is over.  No output leaves before ``last_due_ns``: they stay in order.

    What the primary takes in reaches the secondary ``behind_ns`` later.  A lost channel keeps ``unsent_bytes`` of it
    back.

    A secondary at less than its speed (``secondary_speed`` below 1) was ``late_ns`` behind with what the primary did up
    to ``done_ns``, by when the guest had used ``ran_ns`` of CPU time.
    """

    period_ns: int
    timeout_ns: int
    missing_millionths: int
    suspend_ns: int
    divergences: int
    delays: int
    misses: int
    is_divergence: bool
    last_due_ns: int
    behind_ns: int
    unsent_bytes: int
    secondary_speed: float
    late_ns: int
    done_ns: int
    ran_ns: int


class Compared(Record):
    """When an output has been compared; ``is_missing``: one replica does not produce it.

    The guest had used ``ran_ns`` of CPU time when it issued it.  The primary is late with it by ``first_ns``, the
    secondary by ``second_ns``.
    """

    due_ns: int
    ran_ns: int
    first_ns: int
    second_ns: int
    is_missing: bool


coarse_locksteps = Table("coarse_locksteps", CoarseLockstep, beside=guards)
compared = Table("compared", Compared, beside=held_outputs)

coarse_lockstep.implements(go_alone)(output_buffer.release_everything)


# A run of both replicas


@coarse_lockstep.implements(start_cycle)
def start_run(sim: Sim, guard: Guard, coarse: CoarseLockstep = BESIDE) -> None:
    """Begin a run with equal replicas."""
    coarse.last_due_ns = sim.now_ns
    # What has come during the checkpoint follows it on the wire.
    coarse.behind_ns = way_ns(sim, guard)
    catch_up(sim, guard, coarse)
    run_ns = draw(sim, coarse.divergences)
    coarse.is_divergence = run_ns < coarse.period_ns
    replications(sim)[guard.row].step = machine.call_after(sim, guard, min(run_ns, coarse.period_ns), on_run_over)


@timer(replications, "step")
def on_run_over(sim: Sim, guard: Guard) -> None:
    """The replicas differ, or the period is over."""
    if coarse_locksteps(sim)[guard.row].is_divergence:
        count(sim, guard, DIVERGED, 1)
    else:
        count(sim, guard, PERIODIC, 1)
    start_checkpoint(sim, guard)


def start_checkpoint(sim: Sim, guard: Guard) -> None:
    """Stop both replicas and make the secondary equal to the primary."""
    machine.stop(sim, guard, machine.STATE)
    state_stream.take_state(sim, guard)
    output_buffer.seal(sim, guard)
    suspend_ns = coarse_locksteps(sim)[guard.row].suspend_ns
    replications(sim)[guard.row].step = machine.call_after(sim, guard, suspend_ns, on_suspended)


@coarse_lockstep.implements(acknowledged)
def resume_run(sim: Sim, guard: Guard) -> None:
    """The replicas are equal: what waited for comparison by then may leave, and both run."""
    # What waited leaves before anything new.
    output_buffer.release_sealed(sim, guard)
    machine.resume(sim, guard, machine.STATE)
    start_run(sim, guard)
    # What timers have sent meanwhile.
    coarse = coarse_locksteps(sim)[guard.row]
    compare_waiting(sim, guard, coarse, coarse.behind_ns, coarse.ran_ns)


# Inputs and outputs


def way_ns(sim: Sim, guard: Guard, channel: Channel = BESIDE) -> int:
    """Return how long until what has been written to the channel by now has come."""
    return max(0, channel.free_ns - sim.now_ns) + channel.latency_ns


@coarse_lockstep.implements(note_input)
def copy_input(sim: Sim, guard: Guard, size_bytes: int) -> int:
    """Send a packet that enters the guest to the secondary as well."""
    cost_ns = admit(sim, guard, size_bytes)
    replication = replications(sim)[guard.row]
    coarse = coarse_locksteps(sim)[guard.row]
    if cost_ns != LOST and replication.state == PROTECTED:
        push(sim, channels(sim)[guard.row], size_bytes)
        coarse.behind_ns = way_ns(sim, guard)
    elif cost_ns != LOST and replication.state == BROKEN:
        coarse.unsent_bytes += size_bytes
    return cost_ns


@coarse_lockstep.implements(hold_output)
def hold_for_comparison(sim: Sim, guard: Guard, packet: int) -> None:
    """Hold an output until the slower replica has produced it too, or a checkpoint replaces the comparison."""
    if not is_protecting(replications(sim)[guard.row]):
        send_unheld(sim, guard, packet)
        return
    before = output_buffers(sim)[guard.row].issued
    output_buffer.hold(sim, guard, packet)
    # A full queue has dropped it: there is nothing to compare.
    if output_buffers(sim)[guard.row].issued > before:
        coarse, row = coarse_locksteps(sim)[guard.row], output_buffers(sim)[guard.row].fresh.last
        date(sim, guard, coarse, compared(sim)[row])
        # What is issued while the channel is lost, or in a checkpoint, is compared after that.
        if replications(sim)[guard.row].state == PROTECTED and not state_streams(sim)[guard.row].is_open:
            plan_comparison(sim, guard, coarse, row, coarse.behind_ns + lateness_ns(sim, guard, coarse))


def date(sim: Sim, guard: Guard, coarse: CoarseLockstep, output: Compared) -> None:
    """Write down when an output is issued, and draw what becomes of it at the replicas."""
    output.ran_ns = machine.run_ns(sim, guard)
    output.is_missing = coarse.misses != 0 and draw(sim, coarse.misses) < coarse.missing_millionths
    output.first_ns = output.second_ns = 0
    if coarse.delays != 0 and not output.is_missing:
        output.first_ns = draw(sim, coarse.delays)
        output.second_ns = draw(sim, coarse.delays)


def plan_comparison(sim: Sim, guard: Guard, coarse: CoarseLockstep, row: int, behind_ns: int) -> None:
    """Work out when an output has been compared to which the secondary comes so long after now.

    Outputs leave in the order in which they were issued.
    """
    output, channel = compared(sim)[row], channels(sim)[guard.row]
    size_bytes = packets(sim)[held_outputs(sim)[row].packet].size_bytes
    way_back_ns = transmission_ns(channel, size_bytes) + channel.latency_ns
    delay_ns = max(output.first_ns, behind_ns + way_back_ns + output.second_ns)
    # One that a replica produces only after the timeout is one that it does not produce.
    patience_ns = held_outputs(sim)[row].issued_ns + coarse.timeout_ns - sim.now_ns
    output.is_missing = output.is_missing or delay_ns > patience_ns
    if output.is_missing:
        machine.call_after(sim, guard, max(0, patience_ns), on_timeout)
        output.due_ns = sim.now_ns + patience_ns
        return
    # A missing one does not come here: what is behind it waits for the checkpoint, and leaves in order.
    coarse.last_due_ns = max(coarse.last_due_ns, sim.now_ns + delay_ns)
    output.due_ns = coarse.last_due_ns
    audit.learn(sim, guard.audit, output.due_ns)
    at(sim, output.due_ns, EventKind.CHANNEL, _ENTITY, on_compared, guard.row)


def compare_waiting(sim: Sim, guard: Guard, coarse: CoarseLockstep, behind_ns: int, ran_ns: int) -> None:
    """Plan the comparison of what waits: the secondary has, after that, what the guest has done since ``ran_ns``."""
    for row in held_list.rows(sim, output_buffers(sim)[guard.row].fresh):
        work_ns = int(max(0, compared(sim)[row].ran_ns - ran_ns) / coarse.secondary_speed)
        plan_comparison(sim, guard, coarse, row, behind_ns + work_ns)


def catch_up(sim: Sim, guard: Guard, coarse: CoarseLockstep) -> None:
    """The secondary has done what the primary has."""
    coarse.late_ns = 0
    coarse.done_ns = sim.now_ns
    coarse.ran_ns = machine.run_ns(sim, guard)


def lateness_ns(sim: Sim, guard: Guard, coarse: CoarseLockstep) -> int:
    """Return how far the secondary is behind with what the primary has done by now.

    It begins with work when the primary does or when it is through with what came before.  What the primary has done
    since the last look ends now, with an output; before that it had nothing to do.
    """
    ran_ns = machine.run_ns(sim, guard) - coarse.ran_ns
    idle_ns = max(0, sim.now_ns - coarse.done_ns - ran_ns)
    late_ns = max(0, coarse.late_ns - idle_ns) + int(ran_ns * (1.0 / coarse.secondary_speed - 1.0))
    catch_up(sim, guard, coarse)
    coarse.late_ns = late_ns
    return late_ns


@coarse_lockstep.implements(set_backup_speed)
def pace_secondary(sim: Sim, guard: Guard, speed: float, coarse: CoarseLockstep = BESIDE) -> None:
    """Let the secondary execute at this share of its speed; outputs that wait already keep their instants."""
    # At the old speed up to now: only what is left takes longer.
    coarse.late_ns = int(lateness_ns(sim, guard, coarse) * coarse.secondary_speed / speed)
    coarse.secondary_speed = speed


@event
def on_compared(sim: Sim, guard: Guard, buffer: output_buffer.OutputBuffer = BESIDE) -> None:
    """Outputs that both replicas have produced leave; during a checkpoint nothing is compared."""
    if replications(sim)[guard.row].state != PROTECTED or state_streams(sim)[guard.row].is_open:
        return
    while buffer.fresh.length > 0 and is_equal(sim, compared(sim)[buffer.fresh.first]):
        # Off the list before it leaves: its receiver may cause another look at the list within this instant.
        held_list.push(sim, buffer.leaving, held_list.pop(sim, buffer.fresh))
        output_buffer.release_first(sim, buffer)


def is_equal(sim: Sim, output: Compared) -> bool:
    """Tell whether both replicas have produced an output."""
    return not output.is_missing and output.due_ns <= sim.now_ns


@event
def on_timeout(sim: Sim, guard: Guard) -> None:
    """One replica has not produced a packet for too long: a checkpoint, unless one has dealt with it already."""
    first = output_buffers(sim)[guard.row].fresh.first
    if replications(sim)[guard.row].state != PROTECTED or state_streams(sim)[guard.row].is_open or first == 0:
        return
    if compared(sim)[first].is_missing and compared(sim)[first].due_ns <= sim.now_ns:
        count(sim, guard, TIMED_OUT, 1)
        start_checkpoint(sim, guard)


# When a host or the channel fails


@coarse_lockstep.implements(channel_loss)
def lose_path(sim: Sim, guard: Guard, duration_ns: int, coarse: CoarseLockstep = BESIDE) -> None:
    """Lose the channel: a secondary that is to take over before it works again continues from here."""
    # Read before the loss, which breaks the pair.
    was_protected = replications(sim)[guard.row].state == PROTECTED
    if was_protected and not state_streams(sim)[guard.row].is_open:
        channel = channels(sim)[guard.row]
        # Disk writes among them are sent again by themselves.
        from_ns = max(sim.now_ns, disk_mirrors(sim)[guard.row].depart_ns)
        coarse.unsent_bytes = take_back(channel, from_ns, channel.sent_bytes)
        coarse.late_ns = lateness_ns(sim, guard, coarse)
    lose_channel(sim, guard, duration_ns)
    if was_protected and not replications(sim)[guard.row].is_cut and is_cut_at_loss(sim, guard):
        end_foreseen_incarnation(sim, guard)


@coarse_lockstep.implements(channel_restored)
def compare_again(sim: Sim, guard: Guard, coarse: CoarseLockstep = BESIDE) -> None:
    """Send the copies that a lost channel has kept back: the secondary comes to the outputs that wait after them."""
    kept_bytes = coarse.unsent_bytes
    coarse.unsent_bytes = 0
    if state_streams(sim)[guard.row].is_open:
        # The checkpoint under way makes it equal, and lets everything leave that waits.
        return
    if kept_bytes == 0:
        # Through with what the guest has done by now, late as it is.
        late_ns = lateness_ns(sim, guard, coarse)
        compare_waiting(sim, guard, coarse, late_ns, coarse.ran_ns)
        return
    push(sim, channels(sim)[guard.row], kept_bytes)
    coarse.behind_ns = way_ns(sim, guard)
    late_ns, ran_ns = max(0, coarse.late_ns - (sim.now_ns - coarse.done_ns)), coarse.ran_ns
    compare_waiting(sim, guard, coarse, coarse.behind_ns + late_ns, ran_ns)
    catch_up(sim, guard, coarse)
    coarse.late_ns = late_ns + int((coarse.ran_ns - ran_ns) / coarse.secondary_speed)


@coarse_lockstep.implements(abandon)
def hand_over(sim: Sim, guard: Guard) -> None:
    """Let the secondary issue what waited for the comparison: it produces it too."""
    if replications(sim)[guard.row].state == FAILING_OVER:
        lose_line(sim, guard)
        issue_held(sim, guard, output_buffers(sim)[guard.row].sealed)
        issue_held(sim, guard, output_buffers(sim)[guard.row].fresh)
    output_buffer.lose(sim, guard)
