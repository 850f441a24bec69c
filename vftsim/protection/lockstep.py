"""VMware vLockstep: the secondary replays the primary's log, outputs wait for the log to arrive.

Rule (Scales, Nelson, Venkitachalam, OSR 44(4) 2010): every non-deterministic input of the primary
(packets with their data, timer interrupts, clock reads, disk reads) becomes a log entry; the entries go
over a logging channel to the secondary, which acknowledges them on arrival and replays them at its own
speed; an output waits for the acknowledgement of its entry; a full log buffer stops the primary; an
execution lag above a second slows it down.  When the primary fails, the secondary consumes the rest of
the log, takes the lock on the shared storage, goes live, announces the MAC address and issues again
what may not have left.  When the secondary or the channel fails, the primary takes the lock and goes on
alone.  Redundancy is restored by a live migration to a third host.

What survives a crash: the guest as it was when the first entry was written that does not reach the
secondary.  Execution between two entries is deterministic, so nothing but that entry is missing.  The
instant of a crash is announced beforehand, therefore that moment is known when it comes: the guest is
stopped there, its packets from then on are lost, and what the real primary would still do is not
simulated, because nobody can ever see it.  An output at that very moment is issued by the new primary.

Left out: several vCPUs (replay was uniprocessor); a crash of both hosts; the secondary's disk.
Parameters and their sources: :mod:`vftsim.protection.lockstep_parameters`.
"""

from typing import Any, Literal

from vftsim.engine import Clock, EventKind
from vftsim.net.link import Link
from vftsim.protection.base import PROTECTIONS, Mechanism, ProtectionSpec
from vftsim.protection.commit import NEVER_NS, Output
from vftsim.protection.detection import Detector
from vftsim.protection.lockstep_pair import ReplicatedPair, State
from vftsim.protection.lockstep_parameters import LockstepFields
from vftsim.protection.log_writer import LogWriter
from vftsim.protection.machine import Machine
from vftsim.protection.reprotection import Reprotection
from vftsim.protection.when import Instant

_ENTITY = 3


@PROTECTIONS.register
class LockstepSpec(LockstepFields, ProtectionSpec):
    """VMware Fault Tolerance by deterministic replay (vSphere 4); one vCPU only."""

    kind: Literal["lockstep"] = "lockstep"

    @property
    def has_backup(self) -> bool:
        """It has."""
        return True

    @property
    def begins(self) -> Instant | None:
        """When protection is turned on."""
        return self.active_from

    @property
    def most_vcpus(self) -> int:
        """Replay handles one."""
        return 1

    def build(self, clock: Clock, machine: Machine, vm_link: Link) -> Mechanism:
        """Make the mechanism."""
        return Lockstep(clock, machine, self, vm_link)


class Lockstep(ReplicatedPair):
    """One protected machine in a run, and what becomes of it when a host or the channel fails.

    Parameters
    ----------
    clock : Clock
    machine : Machine
    spec : LockstepFields
    vm_link : Link
        The primary's transmitter, for a shared logging channel.
    """

    def __init__(self, clock: Clock, machine: Machine, spec: LockstepFields, vm_link: Link) -> None:
        super().__init__(clock, machine, spec, vm_link)
        self.detector = Detector(spec, self.channel)
        self.reprotection = Reprotection(machine, spec.reprotection, self.channel.shared)
        self._limits: list[int] = []

    def expect_primary_crash(self, time_ns: int) -> None:
        """Entries that have not left by then die with the primary."""
        self._add_limit(time_ns)

    def expect_channel_loss(self, time_ns: int, duration_ns: int | None) -> None:
        """If the secondary will win the race, entries that have not arrived by then are lost."""
        if self._loser(time_ns, duration_ns) == "primary":
            self._add_limit(time_ns - self.channel.latency_ns)

    def primary_crash(self) -> None:
        """Fail over, if there is somebody to fail over to."""
        now_ns = self.clock.now_ns
        self._remove_limit(now_ns)
        if self.machine.dead or (self.state is State.FAILING_OVER and not self._cut_waits):
            return
        if self.state in (State.UNPROTECTED, State.BROKEN, State.SPLIT):
            super().primary_crash()
            return
        self.note("primary crash")
        self._fail_over(now_ns, self.detector.crash_declared_ns(now_ns, by_secondary=True))

    def _fail_over(self, limit_ns: int, declared_ns: int) -> None:
        if self.state is State.PROTECTED:
            self.log.advance()
            self._cut()
        self._cut_waits = False
        issued = self.commit.take_over(limit_ns, min(self.log.last_depart_ns, limit_ns))
        failover = self.spec.failover
        ready_ns = declared_ns + (failover.storage_latency if failover.fencing else 0)
        live_ns = max(ready_ns, self.replay.end_ns) + failover.go_live
        self.timeline.append((declared_ns, "failure declared"))
        self.clock.at(live_ns, EventKind.CONTROL, _ENTITY, self._go_live, issued)

    def _go_live(self, issued: list[Output]) -> None:
        self._unprotected(State.UNPROTECTED)
        self.note("secondary live")
        self.count("failovers")
        self.count("outputs_issued_again", sum(output.released for output in issued))
        self.count("outputs_issued_by_secondary", sum(not output.released for output in issued))
        for output in issued:
            output.release(output.argument)
        for release, argument in self._pending:
            release(argument)
        self._pending.clear()
        self.machine.call_after(self.spec.failover.announcement, self._reachable)
        self.machine.resume("failover")
        self.reprotection.start(self)

    def _reachable(self, _: Any) -> None:
        self.machine.connect()
        self.note("reachable")

    # Loss of the secondary or of the channel

    def backup_crash(self) -> None:
        """Hold outputs until the primary notices and goes on alone."""
        self.note("backup crash")
        if self.state is State.UNPROTECTED:
            self.reprotection.start(self)
        elif self.state is State.PROTECTED:
            now_ns = self.clock.now_ns
            self._break(acks_survive=True)
            self._plan_alone(self.detector.crash_declared_ns(now_ns, by_secondary=False), State.UNPROTECTED)

    def channel_loss(self, duration_ns: int | None) -> None:
        """Cut the channel; heartbeats go on over another network."""
        now_ns = self.clock.now_ns
        loser = self._loser(now_ns, duration_ns)
        if loser == "primary":
            self._remove_limit(now_ns - self.channel.latency_ns)
        if self.state is not State.PROTECTED and not (self.state is State.FAILING_OVER and self._cut_waits):
            return
        self.note("channel loss")
        if loser == "primary":
            limit_ns = now_ns - self.channel.latency_ns
            self._fail_over(limit_ns, self.detector.loss_declared_ns(now_ns, by_secondary=True))
            return
        if loser == "both live":
            self._split(now_ns)
        self._break(acks_survive=False)
        if loser == "nobody":
            assert duration_ns is not None
            self.clock.after(duration_ns, EventKind.CHANNEL, _ENTITY, self._restore, self.log)
        else:
            state = State.SPLIT if loser == "both live" else State.UNPROTECTED
            self._plan_alone(self.detector.loss_declared_ns(now_ns, by_secondary=False), state)

    def _loser(self, loss_ns: int, duration_ns: int | None) -> str:
        """Who halts after a channel loss: the second one at the shared storage."""
        primary_ns = self.detector.loss_declared_ns(loss_ns, by_secondary=False)
        secondary_ns = self.detector.loss_declared_ns(loss_ns, by_secondary=True)
        if duration_ns is not None and loss_ns + duration_ns < min(primary_ns, secondary_ns):
            return "nobody"
        if not self.spec.failover.fencing:
            return "both live"
        return "secondary" if primary_ns <= secondary_ns else "primary"

    def _break(self, acks_survive: bool) -> None:
        self.log.advance()
        self.state = State.BROKEN
        self.log.broken = True
        self.commit.lose_channel(acks_survive)

    def _plan_alone(self, declared_ns: int, state: State) -> None:
        failover = self.spec.failover
        if failover.fencing:
            declared_ns += failover.storage_latency
        self.clock.at(declared_ns, EventKind.CONTROL, _ENTITY, self._go_alone, (self.log, state))

    def _go_alone(self, plan: tuple[LogWriter, State]) -> None:
        log, state = plan
        if log is not self.log or self.state is not State.BROKEN or self.machine.dead:
            return
        self.note("primary goes on alone")
        self.count("outputs_held_for_detection", self.commit.release_all())
        self._unprotected(state)
        if state is State.UNPROTECTED:
            self.reprotection.start(self)

    def _restore(self, log: LogWriter) -> None:
        if log is not self.log or self.state is not State.BROKEN or self.machine.dead:
            return
        self.note("channel works again")
        self.state = State.PROTECTED
        log.resend()
        self.commit.resend(log.last_depart_ns, log.last_arrival_ns, log.last_arrival_ns + self.channel.ack_ns)
        self._full = True
        self._buffer_has_room(log)

    def _split(self, now_ns: int) -> None:
        """Without fencing the secondary goes live too, and issues what it cannot be sure of."""
        both = self.commit.uncertain(now_ns - self.channel.latency_ns, self.log.last_depart_ns)
        declared_ns = self.detector.loss_declared_ns(now_ns, by_secondary=True)
        live_ns = max(declared_ns, self.replay.end_ns) + self.spec.failover.go_live
        self.clock.at(live_ns, EventKind.CONTROL, _ENTITY, self._second_live, both)

    def _second_live(self, both: list[Output]) -> None:
        self.note("secondary live too")
        self.count("outputs_issued_by_both", len(both))
        for output in both:
            output.release(output.argument)

    def _add_limit(self, limit_ns: int) -> None:
        self._limits.append(limit_ns)
        self._limit_ns = min(self._limits)

    def _remove_limit(self, limit_ns: int) -> None:
        if limit_ns in self._limits:
            self._limits.remove(limit_ns)
        self._limit_ns = min(self._limits, default=NEVER_NS)
