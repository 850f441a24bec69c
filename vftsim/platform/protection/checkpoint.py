"""Remus: checkpoints of a running guest several times a second, its outputs held until the backup has them.

Rule (Cully et al., NSDI 2008, section 2; Xen ``tools/remus/remus``): the guest runs for an epoch; it is asked to
suspend, by an event that it handles itself, and stops a little later; the pages that it has dirtied are copied to a
buffer while it stands still; it resumes and the buffer is sent; the backup acknowledges; the outputs of the epoch
leave.  One checkpoint is under way at a time: where transmission takes longer than the interval, the epoch is
stretched.

With p the pause, x the transmission, a the round trip, P from suspend to suspend and T the interval set, three rules
for the next suspension exist:

* ``suspend`` (Xen's tool: the clock is read when the guest has stopped, the rest slept after the commit):
  P = max(T, p + x + a);
* ``resume``: P = p + max(T, x + a);
* ``after_ack`` (QEMU's micro-checkpointing): P = p + x + a + max(0, T - p);

each plus the time from the request to the stop, during which the guest runs.  That was measured where the guest had
its pCPUs; where they are busy with others its vCPUs come to the request when they are next let run.

The interval may follow what is asked of it (``adaptive``): after an epoch with outputs it becomes the pause over the
share of the time that pauses may take, after one without outputs it grows, because nobody waits; both within bounds.
Assumption: neither Remus nor its tool does so; vSphere's successor to lockstep adapts its interval, by a rule not
published.

Real-time packets that must not wait can be let past the queue (``real_time_below``).  That breaks the promise: what
they say may be rolled back.  They are counted, and so are those seen that a crash makes underivable.

See :mod:`.replication` for failures, :mod:`.state_stream` for the wire,
:mod:`.sender` for the driver domain's CPU time.
"""

from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field, model_validator

from vftsim.kernel import BESIDE, Engine, Record, Sim, Table, timer
from vftsim.kernel.inputs import Feeder
from vftsim.outcome import declare
from vftsim.platform.arithmetic import nearest
from vftsim.platform.cpu import jobs
from vftsim.platform.cpu.records import Domain, hosts, vcpus, work_done
from vftsim.platform.cpu.scheduler import must_wait_for_pcpu
from vftsim.platform.io.link import BITS_NS
from vftsim.platform.io.packet import packets
from vftsim.platform.protection import machine, output_buffer, state_stream
from vftsim.platform.protection._replication_parameters import ReplicationFields, StatesSent
from vftsim.platform.protection._replication_records import (
    Replication,
    abandon,
    acknowledged,
    go_alone,
    outputs_at_risk,
    replications,
    start_cycle,
    underivable,
)
from vftsim.platform.protection.account import count, word
from vftsim.platform.protection.guard import Guard, guards, hold_output, protection, release
from vftsim.platform.protection.mechanism import PROTECTIONS
from vftsim.platform.protection.outcome import Protection
from vftsim.platform.protection.prices import assumed
from vftsim.platform.protection.replication import is_protecting, rolled_back, send_unheld, stop_at_cut, transmit
from vftsim.platform.protection.state_stream import received_point, state_streams
from vftsim.sampling import Streams
from vftsim.spec.base import Spec
from vftsim.spec.units import MS, US, ByteCount, DurationNs, Percent, PeriodNs

SUSPEND, RESUME, AFTER_ACK = 1, 2, 3
RULES = {"suspend": SUSPEND, "resume": RESUME, "after_ack": AFTER_ACK}

BYPASSED = word("outputs_past_the_queue")
STRETCHED = word("epochs_stretched")

checkpoint = protection.kind("checkpoint", base=rolled_back)


class Checkpoints(StatesSent):
    """What checkpoints did and cost; ``interval_ns`` is that of the end, if it adapts."""

    states: int = declare.total(label="states taken")
    paused_ns: int = declare.total(label="time in pauses", unit="ns", better="lower")
    longest_pause_ns: int = declare.number(label="pause, longest", unit="ns", better="lower")
    interval_ns: int | None = declare.number(label="interval at the end", unit="ns")
    pause = declare.ratio(paused_ns, states, factor=1e-6, unit="ms", label="pause, mean", better="lower")


class PauseSpec(Spec):
    """How long the guest stands still at a checkpoint.

    The upper ends of the ranges are what two points of NSDI 2008 make (experiments/remus-prices).
    """

    fixed: Annotated[DurationNs, assumed(100 * US, 11 * MS)] = Field(
        500 * US, description="Part that does not depend on the pages. Assumption."
    )
    page: Annotated[DurationNs, assumed(US // 2, 12 * US)] = Field(
        2 * US, description="Copying a page to the buffer. Assumption."
    )


class AdaptiveSpec(Spec):
    """An interval that follows outputs and pauses."""

    shortest: PeriodNs = Field(10 * MS, description="Never shorter. Assumption.")
    longest: PeriodNs = Field(400 * MS, description="Never longer; below `failover.detection.timeout`. Assumption.")
    overhead: Percent = Field(
        5.0, gt=0.0, description="Share of the time that pauses take while outputs wait. Assumption."
    )
    growth: float = Field(
        2.0, ge=1.0, le=100.0, description="Factor after an epoch without outputs; 1: only pauses count. Assumption."
    )

    @model_validator(mode="after")
    def _ordered(self) -> "AdaptiveSpec":
        if self.shortest > self.longest:
            raise ValueError("shortest must not be above longest")
        return self


class IntervalFields(ReplicationFields):
    """Parameters of mechanisms that checkpoint at intervals."""

    outcome: ClassVar[type[Protection]] = Checkpoints

    interval: PeriodNs = Field(200 * MS, description="Interval set (Xen's tool: 200 ms; NSDI 2008: 25 ms).")
    pause: PauseSpec = Field(default_factory=PauseSpec, description="The guest's pause.")

    @property
    def longest_silence_ns(self) -> int:
        """From the start, or the last byte of a state, to the first of the next, if no page is dirty.

        The next is not asked for before the acknowledgement of the last has come all the way.
        """
        return max(self.interval, 2 * self.channel_latency_ns) + self.pause.fixed

    @property
    def cycle_ns(self) -> int:
        """From one state to the next where the whole working set is dirty: interval, pause, and the channel's time."""
        pages = self.memory.working_set
        sent_bytes = self.state.fixed + pages * self.state.page / self.state.compression if self.has_backup else 0.0
        way_ns = sent_bytes * BITS_NS / self.channel_rate_bits_per_s
        return self.longest_silence_ns + round(self.pause.page * pages + way_ns)

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        super().install(engine, guard, vm_link)
        ckpt = engine.rows(checkpoints)[guard]
        ckpt.interval_ns = self.interval
        ckpt.rule = SUSPEND
        ckpt.fixed_pause_ns = machine.on_host_ns(engine, guard, self.pause.fixed)
        ckpt.page_pause_ns = self.pause.page / machine.cpu_speed(engine, guard)

    def draw(self, engine: Engine, guard: int, feeder: Feeder | None, streams: Streams | None) -> None:
        """Have each guest but the first of this mechanism begin at an instant of its own within an interval."""
        mechanism = engine.rows(guards)[guard].mechanism
        before = sum(int(engine.rows(guards)[row].mechanism == mechanism) for row in range(1, guard))
        if before and streams is not None:
            first_ns = streams.phase_ns("checkpoint.phase", before, self.interval)
            engine.rows(checkpoints)[guard].first_ns = max(1, first_ns)

    def holds(self, engine: Engine, guard: int) -> dict[str, Any]:
        ckpt, held = engine.rows(checkpoints)[guard], super().holds(engine, guard)
        return {
            **held,
            "states": held["counted"].get("states_taken", 0),
            "paused_ns": int(ckpt.paused_ns),
            "longest_pause_ns": int(ckpt.longest_pause_ns),
            "interval_ns": self._adapted_ns(engine, guard),
        }

    def _adapted_ns(self, engine: Engine, guard: int) -> int | None:
        """Return the interval that a guard has now, if it adapts."""
        return None

    def forget_extremes(self, engine: Engine, guard: int) -> None:
        super().forget_extremes(engine, guard)
        engine.rows(checkpoints)[guard].longest_pause_ns = 0


class CheckpointFields(IntervalFields):
    """Parameters of asynchronous checkpoints to a backup."""

    uncalibrated: ClassVar[str] = (
        "pages dirtied, pause, disk writes, the driver domain's CPU time for sending: assumptions"
    )
    rule: Literal["suspend", "resume", "after_ack"] = Field("suspend", description="What the interval counts from.")
    adaptive: AdaptiveSpec | None = Field(
        None, description="Let the interval follow outputs and pauses; `interval` is then the first one."
    )
    suspend_request: DurationNs = Field(
        100 * US,
        description="From the request to the stop, during which the guest runs (thesis, Appendix G: 100 us), once its "
        "vCPUs have had their pCPUs; 0: the hypervisor stops it at once.",
    )
    real_time_below: ByteCount = Field(
        0, description="Outputs of fewer bytes do not wait, which breaks the promise for them; 0: all wait."
    )

    @property
    def breaks_promise(self) -> bool:
        """What does not wait does."""
        return self.real_time_below > 0

    @property
    def longest_silence_ns(self) -> int:
        """The request to suspend comes between, and after an acknowledgement its way there and back."""
        longest_ns = self.interval if self.adaptive is None else max(self.interval, self.adaptive.longest)
        way_ns = 2 * self.channel_latency_ns
        if self.rule == "after_ack":
            return max(longest_ns, self.pause.fixed) + self.suspend_request + way_ns
        return max(longest_ns, way_ns) + self.suspend_request + self.pause.fixed

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        super().install(engine, guard, vm_link)
        ckpt = engine.rows(checkpoints)[guard]
        ckpt.rule = RULES[self.rule]
        ckpt.request_ns = self.suspend_request
        ckpt.real_time_bytes = self.real_time_below
        if self.adaptive is not None:
            ckpt.shortest_ns, ckpt.longest_ns = self.adaptive.shortest, self.adaptive.longest
            ckpt.most_overhead, ckpt.growth = self.adaptive.overhead / 100.0, self.adaptive.growth

    def _adapted_ns(self, engine: Engine, guard: int) -> int | None:
        return None if self.adaptive is None else int(engine.rows(checkpoints)[guard].interval_ns)


@PROTECTIONS.register
class CheckpointSpec(CheckpointFields):
    """Asynchronous checkpoints to a backup (Remus)."""

    products: ClassVar[tuple[str, ...]] = ("remus",)
    kind: Literal["checkpoint"] = "checkpoint"


class Checkpoint(Record):
    """The checkpoints of one guard.

    The guest was suspended last at ``suspended_ns``, for ``pause_ns``; for ``paused_ns`` in all.  ``bypassed`` outputs
    have not waited: ``bypassed_then`` of them by the last suspension, ``bypassed_before`` by the one before.

    The last of the ``requests`` to suspend is still to be handled by ``vcpus_pending`` vCPUs.

    The first epoch takes ``first_ns`` (0: an interval).  An interval between ``shortest_ns`` and ``longest_ns`` adapts
    (``longest_ns`` 0: it does not) to the ``held`` outputs of the epoch.

    States that are ``is_local`` go nowhere.  While an error of the guest alone is met, its ``host_lives``.
    """

    rule: int
    interval_ns: int
    first_ns: int
    request_ns: int
    requests: int
    vcpus_pending: int
    fixed_pause_ns: int
    page_pause_ns: float
    real_time_bytes: int
    is_local: bool
    host_lives: bool
    suspended_ns: int
    pause_ns: int
    paused_ns: int
    longest_pause_ns: int
    bypassed: int
    bypassed_then: int
    bypassed_before: int
    shortest_ns: int
    longest_ns: int
    most_overhead: float
    growth: float
    held: int


checkpoints = Table("checkpoints", Checkpoint, beside=guards)

checkpoint.implements(abandon)(output_buffer.lose)
checkpoint.implements(outputs_at_risk)(output_buffer.outputs_held)
checkpoint.implements(go_alone)(output_buffer.release_everything)


# An epoch


@checkpoint.implements(start_cycle)
def start_epochs(sim: Sim, guard: Guard, ckpt: Checkpoint = BESIDE) -> None:
    """Begin the first epoch, which may be shorter once."""
    first_ns = ckpt.first_ns if ckpt.first_ns > 0 else ckpt.interval_ns
    ckpt.first_ns = 0
    ckpt.suspended_ns = sim.now_ns
    ckpt.pause_ns = 0
    # The backup in step counts as the last two states: it derives all that has bypassed it so far.
    ckpt.bypassed_then = ckpt.bypassed
    ckpt.bypassed_before = ckpt.bypassed
    ckpt.held = 0
    ckpt.vcpus_pending = 0
    replications(sim)[guard.row].step = machine.call_after(sim, guard, first_ns, on_request)


@checkpoint.implements(hold_output)
def hold_for_checkpoint(sim: Sim, guard: Guard, packet: int, ckpt: Checkpoint = BESIDE) -> None:
    """Hold an output until the checkpoint that ends this epoch is acknowledged."""
    if not is_protecting(replications(sim)[guard.row]):
        send_unheld(sim, guard, packet)
    elif packets(sim)[packet].size_bytes < ckpt.real_time_bytes:
        ckpt.bypassed += 1
        count(sim, guard, BYPASSED, 1)
        release(sim, packet)
    else:
        ckpt.held += 1
        output_buffer.hold(sim, guard, packet)


@timer(replications, "step")
def on_request(sim: Sim, guard: Guard, ckpt: Checkpoint = BESIDE) -> None:
    """The guest is asked to suspend; it runs until it does."""
    # With no delay at once, not by another event: nothing of this instant comes between.
    if ckpt.request_ns == 0:
        suspend(sim, guard)
        return
    request_suspend(sim, guard, ckpt)
    if ckpt.vcpus_pending == 0:
        plan_suspend(sim, guard, ckpt)


def request_suspend(sim: Sim, guard: Guard, ckpt: Checkpoint, domain: Domain = BESIDE) -> None:
    """Interrupt the vCPUs that wait for a pCPU; a guest that stands still has none that must."""
    ckpt.requests += 1
    ckpt.vcpus_pending = 0
    row = domain.first_vcpu
    while row < domain.first_vcpu + domain.vcpus and not domain.frozen:
        if must_wait_for_pcpu(sim, hosts(sim)[domain.host], vcpus(sim)[row]):
            ckpt.vcpus_pending += 1
            jobs.raise_interrupt(sim, domain, vcpus(sim)[row], 0, on_request_handled, guard.row, ckpt.requests)
        row += 1
    if ckpt.vcpus_pending > 0:
        # A token of 0 matches no event: the next step is planned when the last of them has come to it.
        replications(sim)[guard.row].step = 0


@work_done
def on_request_handled(sim: Sim, guard: Guard, argument: int, ckpt: Checkpoint = BESIDE) -> None:
    """A vCPU has come to the request."""
    if argument != ckpt.requests or ckpt.vcpus_pending == 0 or not is_protecting(replications(sim)[guard.row]):
        return
    ckpt.vcpus_pending -= 1
    if ckpt.vcpus_pending == 0:
        plan_suspend(sim, guard, ckpt)


def plan_suspend(sim: Sim, guard: Guard, ckpt: Checkpoint) -> None:
    """Let the guest, which runs, come to a halt."""
    replications(sim)[guard.row].step = machine.call_after(sim, guard, ckpt.request_ns, on_suspend)


def suspend(sim: Sim, guard: Guard, ckpt: Checkpoint = BESIDE) -> None:
    """End the epoch: state and barrier belong to the same instant, in which nothing runs."""
    machine.stop(sim, guard, machine.STATE)
    state_stream.take_state(sim, guard)
    output_buffer.seal(sim, guard)
    # Both are kept: a crash may roll back to this state or, before it is received, to the one before.
    ckpt.bypassed_before = ckpt.bypassed_then
    ckpt.bypassed_then = ckpt.bypassed
    ckpt.suspended_ns = sim.now_ns
    ckpt.pause_ns = ckpt.fixed_pause_ns + nearest(ckpt.page_pause_ns * state_streams(sim)[guard.row].pages)
    ckpt.paused_ns += ckpt.pause_ns
    ckpt.longest_pause_ns = max(ckpt.longest_pause_ns, ckpt.pause_ns)
    if ckpt.longest_ns > 0:
        adapt(ckpt)
    # Before the next step is planned: a life that ends here still sends this state, and nothing after it.
    stop_at_cut(sim, guard)
    replications(sim)[guard.row].step = machine.call_after(sim, guard, ckpt.pause_ns, on_copied)


on_suspend = timer(replications, "step")(suspend)


def adapt(ckpt: Checkpoint) -> None:
    """Set the interval by the pause that has begun and the outputs of the epoch that it ends."""
    wanted_ns = ckpt.pause_ns / ckpt.most_overhead if ckpt.held > 0 else ckpt.interval_ns * ckpt.growth
    ckpt.interval_ns = nearest(min(float(ckpt.longest_ns), max(float(ckpt.shortest_ns), wanted_ns)))
    # The outputs of the epoch that begins now decide about the next interval.
    ckpt.held = 0


@timer(replications, "step")
def on_copied(sim: Sim, guard: Guard) -> None:
    """The dirty pages are in the buffer: the guest resumes, the buffer is sent, or is the checkpoint already."""
    # Before it is sent: the guest computes on while its state is on the wire.
    machine.resume(sim, guard, machine.STATE)
    if checkpoints(sim)[guard.row].is_local:
        state_stream.acknowledge(sim, guard)
        acknowledged(sim, guard)
    else:
        transmit(sim, guard)


@checkpoint.implements(acknowledged)
def commit(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Let the outputs of the epoch go, whose disk writes the backup has received too, and plan the next suspension."""
    output_buffer.release_sealed(sim, guard)
    # A guest that ends with this state takes no other one; its outputs have left all the same.
    if not replication.is_cut:
        replication.step = machine.call_after(sim, guard, rest_ns(sim, guard), on_request)


def rest_ns(sim: Sim, guard: Guard, ckpt: Checkpoint = BESIDE) -> int:
    """Return the time from an acknowledgement to the next request to suspend."""
    due_ns = ckpt.suspended_ns + ckpt.interval_ns
    if ckpt.rule == RESUME:
        due_ns += ckpt.pause_ns
    elif ckpt.rule == AFTER_ACK:
        due_ns = sim.now_ns + ckpt.interval_ns - ckpt.pause_ns
    if due_ns < sim.now_ns:
        count(sim, guard, STRETCHED, 1)
    return max(0, due_ns - sim.now_ns)


# What becomes of outputs when a host fails


@checkpoint.implements(underivable)
def bypassed_since(sim: Sim, guard: Guard, ckpt: Checkpoint = BESIDE) -> int:
    """Return how many outputs past the queue a crash makes underivable: those since the state received last."""
    if received_point(sim, guard) == state_streams(sim)[guard.row].point:
        return ckpt.bypassed - ckpt.bypassed_then
    return ckpt.bypassed - ckpt.bypassed_before
