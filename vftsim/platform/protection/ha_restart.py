"""High availability by restart: the VM is booted on another host, what was in memory is lost.

Rule (VMware HA, vSphere availability guide 4.0 to 5.5): hosts send heartbeats every second; a host
that has been silent for 15 s and does not answer a ping is declared failed; its virtual machines are
started on other hosts from their shared disks.

What an application loses with its memory is its own business (``lose_state``).  Further crashes are handled in the same
way: the cluster has hosts enough.
"""

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from vftsim.kernel import BESIDE, Engine, EventKind, Record, Sim, Table, at, event
from vftsim.platform.protection import account, machine
from vftsim.platform.protection.account import count, note, note_at, word
from vftsim.platform.protection.detection import HeartbeatSpec, last_heard_ns
from vftsim.platform.protection.guard import Guard, guards, protection
from vftsim.platform.protection.mechanism import PROTECTIONS, ProtectionSpec, lose_machine, primary_crash
from vftsim.platform.protection.prices import assumed
from vftsim.platform.protection.storage import lock_from_ns
from vftsim.spec.base import Spec
from vftsim.spec.units import DurationNs, PeriodNs, PositiveDurationNs, S

BOOTED = word("booted")
RESTARTS = word("restarts")

ha_restart = protection.kind("ha_restart")


class HostSilenceSpec(HeartbeatSpec):
    """How the cluster notices that a host is gone."""

    heartbeat_interval: PeriodNs = Field(1 * S, description="Heartbeats of a host (VMware HA: 1 s).")
    timeout: PositiveDurationNs = Field(
        15 * S, description="Silence after which a host is declared failed (VMware HA: 15 s)."
    )


class RestartSpec(Spec):
    """How a failure is noticed, and what follows."""

    detection: HostSilenceSpec = Field(default_factory=HostSilenceSpec, description="How a failure is noticed.")
    placement: Annotated[DurationNs, assumed(1 * S, 10 * S)] = Field(
        2 * S, description="Choosing a host and registering the VM there. Assumption."
    )
    boot_time: Annotated[DurationNs, assumed(20 * S, 180 * S)] = Field(
        60 * S, description="From power-on until the service answers: kernel, database, server. Assumption."
    )


class HaRestartFields(ProtectionSpec):
    """Parameters of a restart on another host."""

    uncalibrated: ClassVar[str] = "placement and boot: assumptions; nothing is charged before a failure"
    failover: RestartSpec = Field(default_factory=RestartSpec, description="Detection and restart.")

    @property
    def breaks_promise(self) -> bool:
        """Nothing of what it has sent is known elsewhere."""
        return True

    @property
    def restart_ns(self) -> int:
        """A whole timeout, placement and boot."""
        return self.failover.detection.timeout + self.failover.placement + self.failover.boot_time

    def install(self, engine: Engine, guard: int, vm_link: int) -> None:
        restart, failover = engine.rows(restarts)[guard], self.failover
        restart.heartbeat_interval_ns = failover.detection.heartbeat_interval
        restart.heartbeat_timeout_ns = failover.detection.timeout
        restart.placement_ns, restart.boot_ns = failover.placement, failover.boot_time


@PROTECTIONS.register
class HaRestartSpec(HaRestartFields):
    """Restart on another host (VMware HA)."""

    products: ClassVar[tuple[str, ...]] = ("ha", "vmware_ha", "restart")
    kind: Literal["ha_restart"] = "ha_restart"


class Restart(Record):
    """What restarting one machine takes; ``boot_ns`` is from its placement to the service's answer."""

    heartbeat_interval_ns: int
    heartbeat_timeout_ns: int
    placement_ns: int
    boot_ns: int


restarts = Table("restarts", Restart, beside=guards)


@ha_restart.implements(primary_crash)
def crash(sim: Sim, guard: Guard, restart: Restart = BESIDE) -> None:
    """Lose everything in memory and boot elsewhere."""
    # It is being restarted already: a crash of the lost host changes nothing.
    if guard.dead:
        return
    lose_machine(sim, guard)
    declared_ns = last_heard_ns(sim.now_ns, restart.heartbeat_interval_ns, 0) + restart.heartbeat_timeout_ns
    note_at(sim, guard, declared_ns, account.DECLARED)
    # Its disks are on the shared storage: it boots from them when they can be reached.
    found_ns = lock_from_ns(sim, guard, declared_ns + restart.placement_ns, 0)
    at(sim, found_ns + restart.boot_ns, EventKind.CONTROL, machine.ENTITY, on_booted, guard.row)


@event
def on_booted(sim: Sim, guard: Guard) -> None:
    """The service answers again."""
    machine.reboot(sim, guard)
    count(sim, guard, RESTARTS, 1)
    note(sim, guard, BOOTED)
