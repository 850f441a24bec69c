"""What a workload was asked to send beside what it sent."""

from dataclasses import dataclass

SHORT_SHARE = 0.001
"""Less than this share is rounding: the last packet of a test, one that waits for a card at the end."""

FEWEST_SERVED = 2000
"""Requests by which it is judged whether answers keep up: by chance some dozens more are under way at the end."""

UNANSWERED = "Without an answer by the end"
MOST_UNANSWERED = 0.1
"""Share of what was offered that may be under way at the end before a word is said of it."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a workload was asked to send, and what it sent or has a time of: a figure of a run is of the latter."""

    asked: float
    sent: float
    """In ``unit``, of one run."""
    unit: str
    """``Mbit/s``, ``attempts``, ..."""
    limit: str
    """What held it back, and which key changes that."""
    word: str = "Not offered"
    """What became of the rest."""
    tolerated: float = SHORT_SHARE
    """Share of the rest that needs no word."""
    figure: str = ""
    """The workload's figure that lacks the rest; empty: all do."""

    @property
    def is_short(self) -> bool:
        """Whether less was sent than asked."""
        return self.sent < self.asked * (1.0 - self.tolerated)
