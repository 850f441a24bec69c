"""The primary's side of the log: entries, the instants at which they travel, and what they cost.

Timer interrupts and disk reads come at constant rates; they are written as trains when the next packet
or output makes it necessary, with the guest's execution shared out between them evenly, so that they
cost no events.  While the guest is stopped it takes no timer interrupts.
"""

from __future__ import annotations

from typing import NamedTuple

from vftsim.protection.channel import LoggingChannel
from vftsim.protection.lockstep_parameters import LockstepFields
from vftsim.protection.machine import Machine
from vftsim.protection.replay import Replay

_S = 1_000_000_000


class Train(NamedTuple):
    """Entries at a constant rate; ``paces``: they let the secondary follow the execution between them."""

    period_ns: int
    size_bytes: int
    cost_ns: int
    paces: bool


class LogWriter:
    """Writes entries of one primary for one secondary.

    Parameters
    ----------
    spec : LockstepFields
    machine : Machine
    channel : LoggingChannel
    replay : Replay
        The secondary that receives the entries.
    """

    def __init__(self, spec: LockstepFields, machine: Machine, channel: LoggingChannel, replay: Replay) -> None:
        self.machine = machine
        self.clock = machine.clock
        self.channel = channel
        self.replay = replay
        self.entries = 0
        self.train_entries = 0
        self.cost_due_ns = 0
        self.last_depart_ns = self.clock.now_ns
        self.last_arrival_ns = 0
        self.unsent_bytes = 0
        self.broken = False
        self._written_ns = self.clock.now_ns
        self._run_ns = machine.run_ns(self.clock.now_ns)
        self._work_ns = 0
        self._trains = _trains(spec)

    def write(self, size_bytes: int, limit_ns: int) -> bool:
        """Write an entry now; false if it would leave the primary after ``limit_ns``, and is lost with it."""
        now_ns = self.clock.now_ns
        self._advance(now_ns)
        channel, replay = self.channel, self.replay
        depart_ns = channel.push(now_ns, size_bytes)
        arrival_ns = depart_ns + channel.latency_ns
        if not replay.has_room(size_bytes):
            arrival_ns = replay.admit(arrival_ns, size_bytes)
            depart_ns = arrival_ns - channel.latency_ns
            channel.hold_until(depart_ns)
        if depart_ns > limit_ns:
            return False
        self.entries += 1
        self.last_depart_ns = depart_ns
        self.last_arrival_ns = arrival_ns
        replay.execute(now_ns, arrival_ns, size_bytes, self._work_ns)
        self._work_ns = 0
        return True

    def write_unsent(self, size_bytes: int) -> None:
        """Write an entry that cannot be sent at present."""
        self.advance()
        self.entries += 1
        self.unsent_bytes += size_bytes

    def resend(self) -> None:
        """Send what could not be sent."""
        self.advance()
        self.broken = False
        size_bytes, self.unsent_bytes = max(1, self.unsent_bytes), 0
        self.channel.hold_until(self._written_ns)
        self.write(size_bytes, 1 << 62)

    def advance(self) -> None:
        """Write the trains up to now."""
        self._advance(self.clock.now_ns)

    def _advance(self, now_ns: int) -> None:
        machine = self.machine
        run_ns = machine.run_ns(now_ns)
        fresh_ns = run_ns - self._run_ns
        self._run_ns = run_ns
        from_ns = max(self._written_ns, machine.resumed_ns)
        self._written_ns = now_ns
        if not machine.stopped:
            for train in self._trains:
                period_ns = train.period_ns
                last = now_ns // period_ns
                count = last - from_ns // period_ns
                if not count:
                    continue
                last_ns = last * period_ns
                if train.paces:
                    before_ns = fresh_ns * (last_ns - from_ns) // (now_ns - from_ns)
                    self._work_ns += before_ns
                    fresh_ns -= before_ns
                self.train_entries += count
                self.cost_due_ns += count * train.cost_ns
                if self.broken:
                    self.unsent_bytes += count * train.size_bytes
                else:
                    self._send_train(train, count, last_ns, now_ns)
        self._work_ns += fresh_ns

    def _send_train(self, train: Train, count: int, last_ns: int, now_ns: int) -> None:
        channel, replay = self.channel, self.replay
        latency_ns, size_bytes = channel.latency_ns, count * train.size_bytes
        first_ns = last_ns - (count - 1) * train.period_ns
        depart_ns = channel.push_train(first_ns, last_ns, count, train.size_bytes, now_ns)
        arrival_ns = depart_ns + latency_ns
        if not replay.has_room(size_bytes):
            arrival_ns = replay.admit(arrival_ns, size_bytes)
            depart_ns = arrival_ns - latency_ns
            channel.hold_until(depart_ns)
        self.last_depart_ns = depart_ns
        work_ns = 0
        if train.paces:
            work_ns, self._work_ns = self._work_ns, 0
        first_arrival_ns = first_ns + channel.transmission_ns(train.size_bytes) + latency_ns
        replay.execute_train(last_ns, (first_arrival_ns, arrival_ns), count, size_bytes, work_ns)


def _trains(spec: LockstepFields) -> list[Train]:
    log, cost = spec.log, spec.cost
    trains = []
    if log.timer_rate:
        size_bytes = round(log.timer_entry * log.transport_overhead)
        trains.append(Train(max(1, round(_S / log.timer_rate)), size_bytes, cost.timer, True))
    if log.disk_read_rate:
        size_bytes = round((log.packet_entry + log.disk_read_size) * log.transport_overhead)
        cost_ns = cost.entry + cost.kibibyte * log.disk_read_size // 1024
        trains.append(Train(max(1, round(_S / log.disk_read_rate)), size_bytes, cost_ns, False))
    return trains
