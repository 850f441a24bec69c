"""The secondary: takes log entries into its buffer, acknowledges them, replays them at its own speed.

Rule (Scales, Nelson, Venkitachalam, OSR 44(4) 2010): an entry is acknowledged when it arrives in the
secondary's log buffer, before it is executed.  The secondary cannot execute past the last entry it
holds, because the next one may take effect at the very next instruction.  So with w_k the primary's
execution since the entry before, entry k is done at

    r_k = max(r_(k-1), a_k) + w_k x factor + cost

and the execution lag is r_k minus the instant at which the primary was there.  A full buffer takes the
next entry only when replay has made room (back-pressure to the primary).

No event of the simulation is needed for any of this; the buffer costs amortized constant time an entry.
"""

from __future__ import annotations

from collections import deque


class Replay:
    """The secondary's execution of the log.

    Parameters
    ----------
    factor : float
        Time the secondary needs for execution that took the primary 1.
    entry_cost_ns : int
        Time for an entry itself.
    buffer_bytes : int
        The secondary's log buffer.
    start_ns : int
        When it began, in step with the primary.
    """

    def __init__(self, factor: float, entry_cost_ns: int, buffer_bytes: int, start_ns: int) -> None:
        self.factor = factor
        self.entry_cost_ns = entry_cost_ns
        self.buffer_bytes = buffer_bytes
        self.end_ns = start_ns
        self.lag_ns = 0
        self.busy_ns = 0
        self._buffer: deque[tuple[int, int]] = deque()
        self._buffered_bytes = 0
        self._arrivals: deque[tuple[int, int]] = deque()
        self._holds = 0

    def has_room(self, size_bytes: int) -> bool:
        """Whether an entry fits; entries replayed since the last :meth:`admit` still count."""
        return self._buffered_bytes + size_bytes <= self.buffer_bytes

    def admit(self, arrival_ns: int, size_bytes: int) -> int:
        """Return when an entry that reaches the host at ``arrival_ns`` gets into the buffer."""
        buffer = self._buffer
        while buffer and buffer[0][0] <= arrival_ns:
            self._buffered_bytes -= buffer.popleft()[1]
        while buffer and self._buffered_bytes + size_bytes > self.buffer_bytes:
            end_ns, freed = buffer.popleft()
            self._buffered_bytes -= freed
            arrival_ns = max(arrival_ns, end_ns)
        return arrival_ns

    def execute(self, written_ns: int, arrival_ns: int, size_bytes: int, work_ns: int) -> None:
        """Replay ``work_ns`` of the primary's execution, then the entry written at ``written_ns``."""
        need_ns = int(work_ns * self.factor) + self.entry_cost_ns
        end_ns = self.end_ns
        self._done((end_ns if end_ns > arrival_ns else arrival_ns) + need_ns, need_ns, size_bytes, written_ns)

    def execute_train(
        self, last_ns: int, arrivals_ns: tuple[int, int], count: int, size_bytes: int, work_ns: int
    ) -> None:
        """Replay evenly spaced entries, ``size_bytes`` in all, and the execution between them.

        ``last_ns`` is when the last was written, ``arrivals_ns`` when the first and the last arrived.
        """
        need_ns = int(work_ns * self.factor) + count * self.entry_cost_ns
        end_ns = max(max(self.end_ns, arrivals_ns[0]) + need_ns, arrivals_ns[1] + need_ns // count)
        self._done(end_ns, need_ns, size_bytes, last_ns)

    def receive(self, sequence: int, arrival_ns: int) -> None:
        """Enter an output's log entry in the record that :meth:`holds` answers from."""
        self._arrivals.append((arrival_ns, sequence))

    def holds(self, now_ns: int) -> int:
        """Return the last output entry in the buffer or executed at ``now_ns``."""
        arrivals = self._arrivals
        while arrivals and arrivals[0][0] <= now_ns:
            self._holds = arrivals.popleft()[1]
        return self._holds

    def cut(self, now_ns: int) -> None:
        """Lose the entries that have not arrived by now."""
        self.holds(now_ns)
        self._arrivals.clear()

    def _done(self, end_ns: int, need_ns: int, size_bytes: int, written_ns: int) -> None:
        self.end_ns = end_ns
        self.busy_ns += need_ns
        self.lag_ns = end_ns - written_ns
        self._buffer.append((end_ns, size_bytes))
        self._buffered_bytes += size_bytes
