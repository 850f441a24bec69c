"""A lockstep pair while nothing fails: what the primary logs, holds and releases, and when it is stopped.

See :mod:`vftsim.protection.lockstep` for the mechanism as a whole.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Any

from vftsim.engine import Clock, EventKind
from vftsim.errors import ConservationError
from vftsim.net.link import Link
from vftsim.protection.base import LOST, Mechanism
from vftsim.protection.channel import LoggingChannel
from vftsim.protection.commit import NEVER_NS, Output, OutputCommit
from vftsim.protection.lockstep_parameters import LockstepFields
from vftsim.protection.log_writer import LogWriter
from vftsim.protection.machine import NO_OVERHEAD, Machine, Overhead
from vftsim.protection.replay import Replay
from vftsim.protection.throttle import LagThrottle

_ENTITY = 3


class State(Enum):
    """Where the pair of hosts stands."""

    UNPROTECTED = 1
    PROTECTED = 2
    BROKEN = 3  # entries do not get through, and the primary has not yet decided to go on alone
    FAILING_OVER = 4
    SPLIT = 5  # both hosts live


_PROTECTED, _BROKEN = State.PROTECTED, State.BROKEN


class ReplicatedPair(Mechanism):
    """A primary and, while there is one, its secondary.

    Parameters
    ----------
    clock : Clock
    machine : Machine
    spec : LockstepFields
    vm_link : Link
        The primary's transmitter, for a shared logging channel.
    """

    def __init__(self, clock: Clock, machine: Machine, spec: LockstepFields, vm_link: Link) -> None:
        super().__init__(clock, machine)
        self.spec = spec
        channel = spec.channel
        self.channel = LoggingChannel(channel.rate, channel.latency, channel.ack, vm_link if channel.shared else None)
        self.throttle = LagThrottle(machine, spec.throttle, self.lag_ns)
        self.state = State.UNPROTECTED
        self._limit_ns = NEVER_NS
        self._buffer_ns = self.channel.transmission_ns(spec.log.buffer)
        self._sequence = 0
        self._full = False
        self._cut_waits = False
        self._pending: list[tuple[Callable[[Any], None], Any]] = []
        self._replayed_ns = 0
        log = spec.log
        reads = log.clock_reads_per_packet
        self._packet_bytes = log.packet_entry + reads * log.event_entry
        self._overhead = log.transport_overhead
        self._kibibyte_cost_ns = spec.cost.kibibyte
        cost = spec.cost
        self._packet_cost_ns = (1 + reads) * cost.entry
        self._overhead_of_recording = Overhead(cost.output, cost.execution, cost.exits)
        self._output_bytes = round(log.output_entry * log.transport_overhead)
        self._new_pair()
        machine.before_stop = self._sync

    # What the guest does

    def on_input(self, size_bytes: int) -> int:
        """Log a packet with its data."""
        state = self.state
        if state is not _PROTECTED and state is not _BROKEN:
            return LOST if state is State.FAILING_OVER else 0
        if not self._write(round((self._packet_bytes + size_bytes) * self._overhead)):
            return LOST
        log = self.log
        due_ns, log.cost_due_ns = log.cost_due_ns, 0
        return self._packet_cost_ns + due_ns + self._kibibyte_cost_ns * size_bytes // 1024

    def on_events(self, count: int) -> int:
        """Log clock reads."""
        if self.state is not _PROTECTED and self.state is not _BROKEN:
            return 0
        self._write(round(count * self.spec.log.event_entry * self._overhead))
        return count * self.spec.cost.entry

    def on_output(self, size_bytes: int, release: Callable[[Any], None], argument: Any) -> None:
        """Log the output operation and hold the output."""
        state = self.state
        if state is not _PROTECTED and state is not _BROKEN and state is not State.FAILING_OVER:
            if state is State.SPLIT:
                self.count("outputs_while_split")
            release(argument)
            return
        if state is State.FAILING_OVER or not self._write(self._output_bytes):
            self._pending.append((release, argument))
            return
        self._sequence += 1
        output = Output(self._sequence, release, argument)
        if state is _BROKEN:
            self.commit.hold_unsent(output)
        else:
            log = self.log
            self.commit.hold(output, log.last_depart_ns, log.last_arrival_ns, log.last_arrival_ns + self.channel.ack_ns)

    def _write(self, size_bytes: int) -> bool:
        """Write an entry; false if it is the first that dies with the primary."""
        log = self.log
        if self.state is _BROKEN:
            log.write_unsent(size_bytes)
            if log.unsent_bytes > self.spec.log.buffer:
                self._stop_for_buffer()
            return True
        if not log.write(size_bytes, self._limit_ns):
            self._cut()
            return False
        over_ns = self.channel.free_ns - self.clock.now_ns - self._buffer_ns
        if over_ns > 0 and not self._full:
            self._full = True
            self._stop_for_buffer()
            self.clock.after(over_ns, EventKind.CHANNEL, _ENTITY, self._buffer_has_room, log)
        return True

    def _stop_for_buffer(self) -> None:
        self.count("log_buffer_full")
        self.machine.stop("log buffer")

    def _buffer_has_room(self, log: LogWriter) -> None:
        if log is not self.log or self.state is not State.PROTECTED:
            return
        over_ns = self.channel.free_ns - self.clock.now_ns - self._buffer_ns
        if over_ns > 0:
            self.clock.after(over_ns, EventKind.CHANNEL, _ENTITY, self._buffer_has_room, log)
        else:
            self._full = False
            self.machine.resume("log buffer")

    def _sync(self) -> None:
        if self.state is State.PROTECTED or self.state is State.BROKEN:
            self.log.advance()

    # Protection on and off

    def _new_pair(self) -> None:
        secondary = self.spec.secondary
        self.replay = Replay(secondary.factor, secondary.entry_cost, secondary.buffer, self.clock.now_ns)
        self.commit = OutputCommit(self.clock, self.replay)
        self.log = LogWriter(self.spec, self.machine, self.channel, self.replay)
        self.channel.free_ns = self.clock.now_ns
        self._sequence = 0
        self._full = False

    def begin(self, _: Any = None) -> None:
        """Turn protection on, with a secondary that is in step."""
        if self.machine.dead:
            return
        self._replayed_ns += self.replay.busy_ns
        self._new_pair()
        self.state = State.PROTECTED
        self.machine.set_overhead(self._overhead_of_recording)
        self.throttle.start()
        self.note("protected")

    def _unprotected(self, state: State) -> None:
        self.state = state
        self.throttle.stop()
        self.machine.set_overhead(NO_OVERHEAD)
        self.machine.resume("log buffer")

    def lag_ns(self) -> int:
        """Return how far the secondary's execution is behind."""
        if self.state is not State.PROTECTED:
            return 0
        self.log.advance()
        return self.replay.lag_ns

    def _cut(self) -> None:
        """End the guest as far as the secondary can reproduce it."""
        self._cut_waits = True
        self.state = State.FAILING_OVER
        self.machine.disconnect()
        self.machine.stop("failover")

    def summary(self) -> dict[str, int | float]:
        """Return what the mechanism did and cost in the run so far."""
        return {
            **self.counters,
            "log_bytes": self.channel.sent_bytes,
            "secondary_cpu_s": (self._replayed_ns + self.replay.busy_ns) / 1e9,
            "stopped_s": self.machine.stopped_ns / 1e9,
            "lowest_cpu_share_percent": self.throttle.lowest_share_percent,
            "output_wait_ms": self.commit.wait_ns / 1e6 / max(1, self.commit.released),
        }

    def check(self) -> None:
        """Every output logged was released or waits."""
        if self.state in (State.PROTECTED, State.BROKEN):
            accounted = self.commit.released + self.commit.waiting
            if accounted != self._sequence:
                raise ConservationError(f"{self._sequence} outputs logged, {accounted} released or waiting")
