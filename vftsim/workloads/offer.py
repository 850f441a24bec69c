"""What a workload was asked to send and what it sent: a figure of a run is of the latter."""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.spec.base import Spec

SHORT_SHARE = 0.001
"""Less than this share is rounding: the last packet of a test, one that waits for a card at the end."""


@dataclass(frozen=True, slots=True)
class Offer:
    """What a workload was asked to send, and what it sent.

    Parameters
    ----------
    asked, sent : float
        In ``unit``, of one run.
    unit : str
        ``Mbit/s``, ``attempts``, ...
    limit : str
        What held it back, and which key changes that.
    """

    asked: float
    sent: float
    unit: str
    limit: str

    @property
    def is_short(self) -> bool:
        """Whether less was sent than asked."""
        return self.sent < self.asked * (1.0 - SHORT_SHARE)


class OfferSpec(Spec):
    """What a workload's settings alone say of what it offers."""

    @property
    def wire_bits_per_s(self) -> float:
        """What it asks of the line on average; 0: that hangs on more."""
        return 0.0

    def test_ns(self) -> int:
        """Return how long its own test lasts from the start of a run, without phases; 0: as long as the run."""
        return 0
