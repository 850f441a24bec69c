"""The server's transaction table (OpenSIPS ``tm``), and its one-second timer.

Rule (OpenSIPS 1.6 ``tm``): a forwarded request creates a transaction; a retransmitted request meets
it and is answered from it without being forwarded again.  The server itself repeats a forwarded
request over UDP after T1, doubling to T2, until any reply (INVITE) or the final reply (other requests)
has come, and answers 408 itself when none comes within ``fr_timer`` = 30 s (INVITE that rings:
``fr_inv_timer`` = 120 s, seen by the one-second timer).  A transaction stays in memory for ``wt_timer``
= 5 s after its final reply; expired ones are removed by a timer process that runs once a second.
Registrations are answered without a transaction (``sl_send_reply``).

Assumption: removing expired transactions is what holds the CPU once a second; the lab's delay
percentiles show such bursts in the mix and not in pre-registration, which creates no transactions.
``removal_cost`` and ``housekeeping_cost`` of the server set it; zero turns it off.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from vftsim.sip.attempt import Attempt
    from vftsim.sip.retransmission import Retransmitter


class Transaction:
    """One request under way at the server."""

    __slots__ = ("attempt", "final", "forward", "message", "replied")

    def __init__(self, attempt: Attempt, message: int) -> None:
        self.attempt = attempt
        self.message = message
        self.replied = -1  # last reply sent upstream, -1 for none
        self.final = False
        self.forward: Retransmitter | None = None  # the forwarded copy awaiting its reply


class TransactionTable:
    """How many transactions the server holds (``held``), how many of them are completed (``waiting``).

    Parameters
    ----------
    wait_periods : int
        Timer periods that a completed transaction stays in memory.
    """

    def __init__(self, wait_periods: int) -> None:
        self.held = 0
        self.created = 0
        self.waiting = 0
        self._expiring = [0] * (wait_periods + 1)
        self._slot = 0

    def create(self) -> None:
        """A request was forwarded."""
        self.held += 1
        self.created += 1

    def complete(self) -> None:
        """A transaction got its final reply or was given up; it expires ``wait_periods`` ticks from now."""
        self.waiting += 1
        self._expiring[self._slot - 1] += 1

    def tick(self) -> int:
        """One period has passed; returns how many transactions expire now."""
        expired = self._expiring[self._slot]
        self._expiring[self._slot] = 0
        self._slot = (self._slot + 1) % len(self._expiring)
        self.held -= expired
        self.waiting -= expired
        return expired
