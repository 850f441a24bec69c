"""Retransmission over UDP.

RFC 3261 (17.1.1.2, 17.1.2.2): a request is sent again after T1 = 500 ms, then after twice the last
wait; the wait of a non-INVITE request is limited to T2 = 4 s, that of an INVITE is not.  SIPp follows
this with a limit on the number: 5 retransmissions of an INVITE, 9 of any other request; then the
attempt fails.  A server's transaction ends with its timer instead (RFC 3261: B and F, 64 T1 = 32 s; OpenSIPS: 30 s).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from vftsim.engine import Alarm, Clock, EventKind

NO_LIMIT = 1 << 30


class Retransmitter:
    """One unanswered message; sends it again until stopped or given up.

    Parameters
    ----------
    clock : Clock
    entity : int
        Orders simultaneous timers: the attempt's index.
    first_wait_ns, longest_wait_ns : int
        T1 and the ceiling of the doubled wait (T2, or 0 for none).
    limit : int
        How many retransmissions before giving up.
    resend, give_up : callable
        Called with ``argument``.
    lifetime_ns : int
        Time after which it gives up, whatever ``limit`` says; 0 for none.
    """

    __slots__ = ("_alarm", "argument", "clock", "count", "end_ns", "entity", "give_up", "limit", "longest_wait_ns",
                 "resend", "wait_ns")  # fmt: skip

    def __init__(
        self,
        clock: Clock,
        entity: int,
        first_wait_ns: int,
        longest_wait_ns: int,
        limit: int,
        resend: Callable[[Any], None],
        give_up: Callable[[Any], None],
        argument: Any,
        lifetime_ns: int = 0,
    ) -> None:
        self.clock = clock
        self.entity = entity
        self.wait_ns = first_wait_ns
        self.longest_wait_ns = longest_wait_ns
        self.limit = limit
        self.count = 0
        self.resend = resend
        self.give_up = give_up
        self.argument = argument
        self.end_ns = clock.now_ns + lifetime_ns if lifetime_ns else 0
        self._alarm: Alarm | None = None
        self._wait()

    def stop(self) -> None:
        """An answer came."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None

    def _expire(self, _: Any) -> None:
        if self.count >= self.limit or self.clock.now_ns == self.end_ns:
            self._alarm = None
            self.give_up(self.argument)
            return
        self.count += 1
        self.wait_ns *= 2
        if self.longest_wait_ns:
            self.wait_ns = min(self.wait_ns, self.longest_wait_ns)
        self._wait()
        self.resend(self.argument)

    def _wait(self) -> None:
        due_ns = self.clock.now_ns + self.wait_ns
        if self.end_ns:
            due_ns = min(due_ns, self.end_ns)
        self._alarm = self.clock.at(due_ns, EventKind.TIMER, self.entity, self._expire)
