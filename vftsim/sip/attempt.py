"""One scenario attempt: what the test systems and the server know of it while it is under way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.sip.messages import Scenario

if TYPE_CHECKING:
    from vftsim.sip.metrics import PhaseRecord
    from vftsim.sip.retransmission import Retransmitter
    from vftsim.sip.transactions import Transaction


class Attempt:
    """A scenario attempt with its pre-drawn randomness and its progress.

    ``demands`` holds the relative CPU demand of each message the server will receive, ``ring_ns`` and
    ``hold_ns`` the times of a call.  ``counted`` is false during a step's transient.
    """

    __slots__ = (
        "client", "counted", "demands", "destination", "dialog", "ended", "failed", "hold_ns", "index",
        "phase", "request", "ring_ns", "scenario", "seen", "sent_ns", "start_ns", "uas", "user",
    )  # fmt: skip

    def __init__(
        self, index: int, scenario: Scenario, demands: list[float], ring_ns: int, hold_ns: int, start_ns: int
    ) -> None:
        self.index = index
        self.scenario = scenario
        self.demands = demands
        self.ring_ns = ring_ns
        self.hold_ns = hold_ns
        self.start_ns = start_ns
        self.sent_ns = start_ns  # first transmission of the request in progress
        self.phase: PhaseRecord | None = None
        self.counted = True
        self.failed = False
        self.ended = False
        self.user = -1
        self.destination = -1
        self.seen = 0  # bit set of the messages that have reached the test systems
        self.dialog = [0, 0, 0]  # caller got 180, callee sent 200, callee got ACK: times in ns
        self.client: Retransmitter | None = None  # the caller's outstanding request
        self.uas: Retransmitter | None = None  # the callee's 200 awaiting its ACK
        self.request: Transaction | None = None  # the server's transaction in progress


def mark(attempt: Attempt, message: int) -> bool:
    """Note that a test system has received ``message``; true the first time."""
    bit = 1 << message
    if attempt.seen & bit:
        return False
    attempt.seen |= bit
    return True
