"""How much of the start of a steady-state run to throw away.

MSER-5 (White 1997; White, Cobb and Spratt 2000): group the series in batches of five, and cut where
the standard error of the mean of the rest, ``sum((y - mean)^2) / (n - d)^2``, is least.  Applied to
the very run it then truncates, the rule favours cuts that happen to flatter the mean and biases it.
So the rule is applied once, to the average of at least 20 pilot replications that serve for nothing
else, and twice the resulting cut is used for every design of the study.  A cut of more than a
quarter of the run means that the run is too short; the answer is a longer run, not a smaller cut.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vftsim.errors import PrecisionNotReached, UsageError

BATCH = 5
MINIMUM_PILOTS = 20
MINIMUM_BATCHES = 10
SAFETY_FACTOR = 2
LARGEST_SHARE = 0.25


@dataclass(frozen=True, slots=True)
class WarmUp:
    """Result of a pilot study."""

    cut: int
    """Number of observations to discard at the start of every run: twice ``mser_cut``."""
    mser_cut: int
    """What MSER-5 found on the averaged series."""
    length: int
    """Observations per pilot run."""
    pilots: int
    """Number of pilot replications."""
    averaged: tuple[float, ...]
    """The averaged series, for the plot."""

    @property
    def share(self) -> float:
        """The cut as a fraction of the run."""
        return self.cut / self.length


def mser5(series: Sequence[float]) -> int:
    """Return how many observations MSER-5 discards at the start of a series.

    Cuts beyond half the series are not considered: there the statistic rests on too little.
    """
    batches = [math.fsum(series[i : i + BATCH]) / BATCH for i in range(0, len(series) - BATCH + 1, BATCH)]
    n = len(batches)
    if n < MINIMUM_BATCHES:
        raise ValueError(f"MSER-5 needs at least {BATCH * MINIMUM_BATCHES} observations, got {len(series)}")
    # Working from the overall mean keeps the running sums of squares free of cancellation.
    center = math.fsum(batches) / n
    total = squares = 0.0
    best_cut, best_score = 0, math.inf
    for d in range(n - 1, -1, -1):
        deviation = batches[d] - center
        total += deviation
        squares += deviation * deviation
        if d > n // 2:
            continue
        retained = n - d
        score = max(squares - total * total / retained, 0.0) / (retained * retained)
        if score <= best_score:
            best_cut, best_score = d, score
    return best_cut * BATCH


def warm_up(pilots: Sequence[Sequence[float]]) -> WarmUp:
    """Return the cut for a study from pilot replications.

    These are 20 or more series of equal length, sampled at the same simulated times; fewer, or series of different or
    too short length, are refused.  PrecisionNotReached carries the :class:`WarmUp` where the cut exceeds a quarter of
    the run.
    """
    lengths = {len(series) for series in pilots}
    if len(pilots) < MINIMUM_PILOTS:
        raise UsageError(f"a warm-up study needs {MINIMUM_PILOTS} pilot replications or more, got {len(pilots)}")
    if len(lengths) > 1 or min(lengths) < BATCH * MINIMUM_BATCHES:
        raise UsageError(
            f"pilot series must have one common length of {BATCH * MINIMUM_BATCHES} or more, "
            f"got lengths {min(lengths)} to {max(lengths)}"
        )
    averaged = tuple(math.fsum(column) / len(pilots) for column in zip(*pilots, strict=True))
    mser_cut = mser5(averaged)
    result = WarmUp(SAFETY_FACTOR * mser_cut, mser_cut, len(averaged), len(pilots), averaged)
    if result.share > LARGEST_SHARE:
        raise PrecisionNotReached(
            f"the warm-up takes {100 * result.share:.0f} % of the run (limit {100 * LARGEST_SHARE:.0f} %): "
            "make the run longer, or state the study as terminating",
            result,
        )
    return result
