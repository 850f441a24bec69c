"""Crossovers: where two curves that were measured at the same points of an axis cross.

Every point has the same replications, so two settings are compared replication by replication.  At a point the order
is certain where the interval of the mean difference is on one side of 0, at the confidence that all points together
need (Bonferroni).  Below ten replications, from which no skewness can be told, that is Student's interval, and all of
them agree; of one replication no order is certain.  Between two such points with opposite orders, and nothing certain
between them, the curves cross: where the mean difference, taken as linear between the points, is 0.  The interval has
all places at which the difference, so taken of each replication, is not certain (Fieller): unlike a mean of the
replications' crossings it holds where noise makes their curves cross several times.  Below ten replications the
place is the mean of their own ones, with lowest and highest.

Linear interpolation errs by at most the bracket, the two points between which the crossover lies: a finer grid there
narrows it.  That all agree is not enough: of two replications half the points of two equal curves have an order so, and
66 of 100 such studies of six points a crossover.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from vftsim.stats import Estimate, bonferroni, mean_interval
from vftsim.stats.intervals import FEWEST_RUNS, runs_range, runs_that_tell
from vftsim.study.figures.frames import CONFIDENCE

CERTAIN = (
    "At the two values given the interval of the difference is on one side of 0, all values together; of fewer than "
    "ten replications it is Student's, and all agree."
)
"""What stands below a table of crossovers."""


@dataclass(frozen=True, slots=True)
class Crossover:
    """A place on an axis where two curves change their order."""

    low: float
    high: float
    """The points next to it at which the order is certain."""
    at: Estimate
    first_is_lower_before: bool
    """Whether the first curve is the lower one at ``low``."""


def crossovers(
    points: Sequence[float],
    first: Sequence[Sequence[float]],
    second: Sequence[Sequence[float]],
    confidence: float = CONFIDENCE,
) -> list[Crossover]:
    """Return the crossovers of two curves over the ascending places of an axis.

    Each curve has for each place what every replication measured; replications are in the same order everywhere.
    """
    gaps = [[a - b for a, b in zip(one, other, strict=True)] for one, other in zip(first, second, strict=True)]
    orders = [_order(gap, bonferroni(confidence, len(points))) for gap in gaps]
    certain = [number for number, order in enumerate(orders) if order]
    crossings = []
    for before, after in pairwise(certain):
        if orders[before] != orders[after]:
            within = slice(before, after + 1)
            at = _crossing(points[within], gaps[within], orders[before], confidence)
            crossings.append(Crossover(points[before], points[after], at, orders[before] < 0))
    return crossings


def _order(gap: Sequence[float], confidence: float) -> int:
    """Return the sign that the mean of differences surely has; 0 if it may have either, or there are none."""
    if not gap or any(math.isnan(value) for value in gap):
        return 0
    sign, all_agree = 1 if math.fsum(gap) > 0.0 else -1, min(gap) > 0.0 or max(gap) < 0.0
    if len(gap) < FEWEST_RUNS:
        return sign if all_agree and runs_that_tell(gap, confidence, len(gap)) == len(gap) else 0
    # What is never negative has an interval above 0: where all agree, which is nearly everywhere, none is worked out.
    return sign if all_agree or mean_interval([sign * value for value in gap], confidence).low > 0.0 else 0


MOST_NEEDED = 200
"""Replications beyond which it is not told how many would do."""


def needed_to_tell(
    first: Sequence[Sequence[float]], second: Sequence[Sequence[float]], confidence: float = CONFIDENCE
) -> float:
    """Return about how many replications would tell where two curves cross whose means do, though none is certain.

    So many that Student's interval of the difference is on one side of 0 somewhere before and somewhere behind, if it
    goes on as it is; infinity: more than :data:`MOST_NEEDED`.  0 where the means do not cross, or a crossover is known.
    """
    gaps = [[a - b for a, b in zip(one, other, strict=True)] for one, other in zip(first, second, strict=True)]
    at_each = bonferroni(confidence, len(gaps))
    if {_order(gap, at_each) for gap in gaps} >= {1, -1} or any(map(math.isnan, (x for gap in gaps for x in gap))):
        return 0
    sides = [
        [
            runs_that_tell(gap, at_each, MOST_NEEDED) for gap in gaps if sign * math.fsum(gap) > 0.0
        ]  # of the one order, and of the other
        for sign in (1, -1)
    ]
    return max(map(min, sides)) if all(sides) else 0


def _crossing(points: Sequence[float], gaps: Sequence[Sequence[float]], before: int, confidence: float) -> Estimate:
    """Return where differences, which have the sign ``before`` at the first point and the other at the last, are 0."""
    runs = [list(run) for run in zip(*gaps, strict=True)]
    if len(runs) < FEWEST_RUNS:
        places = [_reach(points, run, before) for run in runs]
        return runs_range(math.fsum(places) / len(places), places, confidence)
    low = _leaves(points, gaps, before, confidence)
    high = -_leaves([-x for x in reversed(points)], [*reversed(gaps)], -before, confidence)
    mean = [math.fsum(gap) / len(gap) for gap in gaps]
    at = _reach(points, mean, before)
    return Estimate(at, (high - low) / 2.0, low, high, len(runs), confidence, "skew-corrected t")


def _reach(points: Sequence[float], gap: Sequence[float], before: int) -> float:
    """Return where a difference, linear between the points, is 0, having a sign before.

    Where it is so several times, as much of the other sign lies before the place as of this one behind.
    """
    reach = points[0]
    for (value, one), (next_value, other) in pairwise(zip(points, gap, strict=True)):
        ends = max(before * one, 0.0), max(before * other, 0.0)
        share = sum(ends) / (abs(one) + abs(other)) if one or other else 0.5
        reach += (next_value - value) * share
    return reach


_STEPS, _HALVINGS = 16, 20
"""Places between two points at which it is tried whether an order is certain; halvings of what is between two."""


def _leaves(points: Sequence[float], gaps: Sequence[Sequence[float]], before: int, confidence: float) -> float:
    """Return the first place at which the order of the first point is no longer certain."""
    certain = points[0]
    for (value, one), (next_value, other) in pairwise(zip(points, gaps, strict=True)):

        def is_certain(share: float, one: Sequence[float] = one, other: Sequence[float] = other) -> bool:
            between = [(1.0 - share) * a + share * b for a, b in zip(one, other, strict=True)]
            return _order(between, confidence) == before

        for step in range(1, _STEPS + 1):
            if not is_certain(step / _STEPS):
                share = _last(is_certain, (step - 1) / _STEPS, step / _STEPS)
                return value + (next_value - value) * share
        certain = next_value
    return certain


def _last(holds: Callable[[float], bool], yes: float, no: float) -> float:
    """Return the last place between two at which something holds that holds at the first and not at the second."""
    for _ in range(_HALVINGS):
        middle = (yes + no) / 2.0
        yes, no = (middle, no) if holds(middle) else (yes, middle)
    return yes
