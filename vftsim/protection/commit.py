"""The output-commit rule, and the auditor that watches it on every output.

Rule (Scales, Nelson, Venkitachalam 2010): an output leaves the primary only after the backup has
acknowledged the log entry of that output operation, hence all entries before it.  The primary goes on
executing; only the output waits.

After a crash the backup cannot know whether the outputs that were allowed to leave at the very end did
leave.  It issues again every output whose entry it holds and whose release it cannot be sure of: those
not released before the last entry that it received was sent.  Clients may see duplicates, never a gap
in what was logged and never an output that the backup cannot derive.

The auditor asks the secondary itself which entries it holds at the instant of a release, and does not
look at how that instant was computed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from vftsim.engine import Alarm, Clock, EventKind
from vftsim.errors import ConservationError
from vftsim.protection.replay import Replay

NEVER_NS = 1 << 62
_ENTITY = 1


class Output:
    """One output: its log entry and its instants, ``NEVER_NS`` for those that will not come."""

    __slots__ = ("ack_ns", "alarm", "argument", "arrival_ns", "depart_ns", "release", "released", "sequence")

    def __init__(self, sequence: int, release: Callable[[Any], None], argument: Any) -> None:
        self.sequence = sequence
        self.release = release
        self.argument = argument
        self.depart_ns = NEVER_NS
        self.arrival_ns = NEVER_NS
        self.ack_ns = NEVER_NS
        self.released = False
        self.alarm: Alarm | None = None


class OutputCommit:
    """The outputs of one primary, from their issue to their release.

    Parameters
    ----------
    clock : Clock
    replay : Replay
        The secondary, which the auditor asks.
    """

    def __init__(self, clock: Clock, replay: Replay) -> None:
        self.clock = clock
        self.replay = replay
        self.visible = 0
        self.released = 0
        self.wait_ns = 0
        self.backup_is_gone = False
        self._outputs: deque[Output] = deque()

    @property
    def waiting(self) -> int:
        """Outputs issued and not released."""
        return sum(not output.released for output in self._outputs)

    def hold(self, output: Output, depart_ns: int, arrival_ns: int, ack_ns: int) -> None:
        """Keep an output until its acknowledgement arrives at ``ack_ns``."""
        outputs = self._outputs
        # Those whose release the secondary can be sure of once this entry has arrived are forgotten.
        while outputs and outputs[0].released and outputs[0].ack_ns < depart_ns:
            outputs.popleft()
        outputs.append(output)
        self._expect(output, depart_ns, arrival_ns, ack_ns)

    def hold_unsent(self, output: Output) -> None:
        """Keep an output whose log entry cannot be sent at present."""
        self._outputs.append(output)

    def lose_channel(self, acks_survive: bool) -> None:
        """Stop outputs whose acknowledgement will not come; those on the wire do if ``acks_survive``."""
        now_ns = self.clock.now_ns
        for output in self._outputs:
            arrived = output.arrival_ns <= now_ns
            if not output.released and not (arrived and acks_survive):
                self._cancel(output)
                if not arrived:
                    output.depart_ns = output.arrival_ns = NEVER_NS
        self.replay.cut(now_ns)

    def resend(self, depart_ns: int, arrival_ns: int, ack_ns: int) -> None:
        """Expect the acknowledgement of everything still held: the channel works again."""
        for output in self._outputs:
            if not output.released and output.alarm is None:
                self._expect(output, depart_ns, arrival_ns, ack_ns)

    def release_all(self) -> int:
        """Let everything go that is held: the primary goes on alone; return how many."""
        self.backup_is_gone = True
        held = [output for output in self._outputs if not output.released]
        for output in held:
            self._cancel(output)
            self._release(output)
        self._outputs.clear()
        return len(held)

    def uncertain(self, limit_ns: int, last_sent_ns: int) -> list[Output]:
        """Return the outputs that a secondary issues when it goes live.

        Parameters
        ----------
        limit_ns : int
            Entries that have left the primary by then reach the secondary.
        last_sent_ns : int
            When the last entry that the secondary holds was sent: the primary lived then.
        """
        return [
            output
            for output in self._outputs
            if output.depart_ns <= limit_ns and (not output.released or output.ack_ns >= last_sent_ns)
        ]

    def take_over(self, limit_ns: int, last_sent_ns: int) -> list[Output]:
        """Stop all releases by the primary; return what the secondary issues, as :meth:`uncertain`."""
        issued = self.uncertain(limit_ns, last_sent_ns)
        for output in self._outputs:
            self._cancel(output)
            if output.released and output.depart_ns > limit_ns:
                raise ConservationError(f"output {output.sequence} was seen, its log entry died with the primary")
        self._outputs.clear()
        return issued

    def _expect(self, output: Output, depart_ns: int, arrival_ns: int, ack_ns: int) -> None:
        output.depart_ns, output.arrival_ns, output.ack_ns = depart_ns, arrival_ns, ack_ns
        self.wait_ns += ack_ns - self.clock.now_ns
        self.replay.receive(output.sequence, arrival_ns)
        output.alarm = self.clock.at(ack_ns, EventKind.CHANNEL, _ENTITY, self._release, output)

    def _cancel(self, output: Output) -> None:
        if output.alarm is not None:
            output.alarm.cancel()
            output.alarm = None

    def _release(self, output: Output) -> None:
        output.alarm = None
        if not self.backup_is_gone and output.sequence > self.replay.holds(self.clock.now_ns):
            raise ConservationError(
                f"output {output.sequence} leaves before the secondary holds its log entry (output commit)"
            )
        if output.sequence <= self.visible:
            raise ConservationError(f"output {output.sequence} leaves after output {self.visible}")
        self.visible = output.sequence
        self.released += 1
        output.released = True
        output.release(output.argument)
