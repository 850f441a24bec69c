"""High availability by restart: the VM is booted on another host, what was in memory is lost.

Rule (VMware HA, vSphere availability guide 4.0 to 5.5): hosts send heartbeats every second; a host
that has been silent for 15 s and does not answer a ping is declared failed; its virtual machines are
started on other hosts from their shared disks.

After the boot the server knows none of its transactions; registrations survive, because the lab's
server keeps them in a database (``usrloc`` db_mode 2 writes them back with a delay of up to a minute,
which is left out).  Further crashes are handled in the same way: the cluster has hosts enough.
"""

from typing import Any, Literal

from pydantic import Field, model_validator

from vftsim.engine import Clock
from vftsim.net.link import Link
from vftsim.protection.base import PROTECTIONS, Mechanism, ProtectionSpec
from vftsim.protection.machine import Machine
from vftsim.spec import DurationNs, PositiveDurationNs

_S = 1_000_000_000


@PROTECTIONS.register
class HaRestartSpec(ProtectionSpec):
    """Restart on another host (VMware HA)."""

    kind: Literal["ha_restart"] = "ha_restart"
    heartbeat_interval: PositiveDurationNs = Field(1 * _S, description="Heartbeats of a host (VMware HA: 1 s).")
    heartbeat_timeout: PositiveDurationNs = Field(
        15 * _S, description="Silence after which a host is declared failed (VMware HA: 15 s)."
    )
    placement: DurationNs = Field(2 * _S, description="Choosing a host and registering the VM there. Assumption.")
    boot_time: DurationNs = Field(
        60 * _S,
        description="From power-on until the service answers: kernel, database, server. Assumption.",
    )

    @model_validator(mode="after")
    def _notices_failures(self) -> "HaRestartSpec":
        if self.heartbeat_timeout < self.heartbeat_interval:
            raise ValueError("heartbeat_timeout must be at least heartbeat_interval, or every pause is a failure")
        return self

    def build(self, clock: Clock, machine: Machine, vm_link: Link) -> Mechanism:
        """Make the mechanism."""
        return HaRestart(clock, machine, self)


class HaRestart(Mechanism):
    """One restartable machine in a run."""

    def __init__(self, clock: Clock, machine: Machine, spec: HaRestartSpec) -> None:
        super().__init__(clock, machine)
        self.spec = spec

    def primary_crash(self) -> None:
        """Lose everything in memory and boot elsewhere."""
        if self.machine.dead:
            return
        super().primary_crash()
        spec = self.spec
        now_ns = self.clock.now_ns
        last_beat_ns = now_ns // spec.heartbeat_interval * spec.heartbeat_interval
        declared_ns = last_beat_ns + spec.heartbeat_timeout
        self.timeline.append((declared_ns, "failure declared"))
        self.machine.call_after(declared_ns - now_ns + spec.placement + spec.boot_time, self._booted)

    def _booted(self, _: Any) -> None:
        self.machine.reboot()
        self.count("restarts")
        self.note("booted")
