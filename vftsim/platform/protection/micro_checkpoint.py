"""Micro-checkpoints: memory is copied on write, so that a checkpoint itself hardly stops the guest.

Rule (copy on write; the thesis, section 2.2): at the end of an epoch all pages are write-protected, which takes a short
fixed time; the first write to a page traps and its old content is copied.  With s the fixed time, c the cost of a fault
and D(E) pages touched in E of run time, an epoch of length T holds T = E + c D(E) + s.

Copies stay on the host (``shipped: false``): they let a guest go back whose own software has failed, and are lost with
the host.  Shipped to a backup they are checkpoints as those of Remus, and survive a crash as well.

Outputs wait for the end of their epoch, or for its acknowledgement, because going back takes back what led to them.

Assumption: the faults of an epoch are charged at its end, together, instead of one by one where they occur; the mean is
the same, and so is the instant at which an epoch ends.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, Sim
from vftsim.platform.protection import machine, output_buffer, reprotection
from vftsim.platform.protection._replication_records import (
    BROKEN,
    FAILING_OVER,
    PROTECTED,
    Replication,
    abandon,
    outputs_at_risk,
    replications,
)
from vftsim.platform.protection.account import note
from vftsim.platform.protection.checkpoint import IntervalFields, PauseSpec, checkpoint, checkpoints
from vftsim.platform.protection.guard import Guard, protection
from vftsim.platform.protection.mechanism import GUEST_ERROR, PROTECTIONS, guest_error, lose_machine, primary_crash
from vftsim.platform.protection.output_buffer import OutputBuffer
from vftsim.platform.protection.prices import assumed
from vftsim.platform.protection.replication import crash_primary, fail_over, roll_back
from vftsim.platform.protection.rollback import use_cut
from vftsim.platform.protection.state_stream import is_foreseen, received_point
from vftsim.spec.units import MS, US, DurationNs, PeriodNs

micro_checkpoint = protection.kind("micro_checkpoint", base=checkpoint)


class FaultSpec(PauseSpec):
    """What copy on write costs the guest."""

    fixed: Annotated[DurationNs, assumed(20 * US, 500 * US)] = Field(
        100 * US, description="Write-protecting all pages. Assumption."
    )
    page: Annotated[DurationNs, assumed(2 * US, 10 * US)] = Field(
        5 * US, description="A fault with its copy, for each page written to. Assumption."
    )


class MicroCheckpointFields(IntervalFields):
    """Parameters of checkpoints by copy on write."""

    uncalibrated: ClassVar[str] = "pages dirtied, a fault with its copy, write protection: assumptions"
    interval: PeriodNs = Field(50 * MS, description="Length of an epoch. Assumption.")
    pause: FaultSpec = Field(default_factory=FaultSpec, description="Write protection, and faults.")
    shipped: bool = Field(False, description="States go to a backup; else they stay on the host.")
    restore: Annotated[DurationNs, assumed(5 * MS, 100 * MS)] = Field(
        20 * MS, description="Going back to the last state after a guest error. Assumption."
    )

    @property
    def breaks_promise(self) -> bool:
        """Copies that stay on the host do not survive it."""
        return not self.shipped

    @property
    def has_backup(self) -> bool:
        return self.shipped

    @property
    def lost_with_host(self) -> str:
        return "" if self.shipped else "copies stay on the host and are lost with it; 'shipped: true' sends them away"

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        super().install(engine, guard, vm_link)
        engine.rows(checkpoints)[guard].is_local = not self.shipped
        if not self.shipped:
            self._install_local(engine, guard)

    def _install_local(self, engine: Engine, guard: int) -> None:
        """There is no backup to hear from, to copy to or to announce."""
        replication = engine.rows(replications)[guard]
        # Not 0: with heartbeats nobody sets an alarm for the bytes of states, of which none are sent (watch()).
        replication.heartbeat_interval_ns = replication.timeout_ns
        replication.stays = True
        replication.is_fenced = False
        replication.activation_ns = replication.announcement_ns = replication.storage_ns = 0
        replication.go_live_ns = self.restore
        reprotection.install_at_once(engine, guard)


@PROTECTIONS.register
class MicroCheckpointSpec(MicroCheckpointFields):
    """Checkpoints by copy on write, kept on the host or shipped to a backup."""

    products: ClassVar[tuple[str, ...]] = ("micro_checkpointing", "qemu_mc")
    kind: Literal["micro_checkpoint"] = "micro_checkpoint"


@micro_checkpoint.implements(primary_crash)
def crash_host(sim: Sim, guard: Guard) -> None:
    """Fail over if the states were shipped; copies on the host are lost with it."""
    if not checkpoints(sim)[guard.row].is_local:
        crash_primary(sim, guard)
    elif not guard.dead:
        # What was planned for the guest is stale by these tokens.
        replications(sim)[guard.row].step = 0
        replications(sim)[guard.row].live = 0
        output_buffer.lose(sim, guard)
        lose_machine(sim, guard)


@micro_checkpoint.implements(abandon)
def lose_outputs(sim: Sim, guard: Guard) -> None:
    """Lose what the primary holds; a host that outlives its guest goes on sending what has been acknowledged."""
    if checkpoints(sim)[guard.row].host_lives:
        output_buffer.lose_unacknowledged(sim, guard)
    else:
        output_buffer.lose(sim, guard)


@micro_checkpoint.implements(outputs_at_risk)
def outputs_not_leaving(sim: Sim, guard: Guard, buffer: OutputBuffer = BESIDE) -> int:
    """Return how many outputs those are."""
    return output_buffer.held(buffer) - (buffer.leaving.length if checkpoints(sim)[guard.row].host_lives else 0)


@micro_checkpoint.implements(guest_error)
def restore(sim: Sim, guard: Guard, replication: Replication = BESIDE) -> None:
    """Go back to the last state, which must be foreseen: what was since is lost, outputs that wait for one included."""
    if guard.dead or replication.state == FAILING_OVER:
        return
    if replication.state not in (PROTECTED, BROKEN) or replication.is_split:
        note(sim, guard, GUEST_ERROR)
        machine.kill(sim, guard)
        return
    checkpoints(sim)[guard.row].host_lives = True
    if not (replication.is_cut and is_foreseen(sim, guard)):
        roll_back(sim, guard, False)
    else:
        note(sim, guard, GUEST_ERROR)
        use_cut(sim, guard, received_point(sim, guard))
        # The hypervisor has seen the error itself: there is no silence to wait for.
        fail_over(sim, guard, replication, sim.now_ns)
    checkpoints(sim)[guard.row].host_lives = False
