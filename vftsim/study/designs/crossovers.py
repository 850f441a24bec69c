"""Crossovers: where two curves that were measured at the same points of an axis cross.

Every point has the same replications, so two settings are compared replication by replication.  At a point where all
replications agree which of the two is higher, the order is certain; between two such points with opposite orders,
and nothing certain between them, the curves cross.  Where: each replication's own difference, taken as linear between
the points, has its first zero there; the crossover is the mean of those, with the interval of a mean.

Linear interpolation errs by at most the bracket, the two points between which the crossover lies: a finer grid there
narrows it.  An order that no replication disagrees about may still be chance where there is one replication.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from vftsim.spec.units import number_and_unit, quantity_of
from vftsim.stats import Estimate, mean_interval
from vftsim.study.runs.results import CONFIDENCE


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
    certain = [number for number, gap in enumerate(gaps) if _order(gap)]
    crossings = []
    for before, after in pairwise(certain):
        if _order(gaps[before]) == _order(gaps[after]):
            continue
        zeros = [
            _first_zero(points[before : after + 1], [gap[n] for gap in gaps[before : after + 1]])
            for n in range(len(gaps[before]))
        ]
        at = mean_interval(zeros, confidence)
        crossings.append(Crossover(points[before], points[after], at, _order(gaps[before]) < 0))
    return crossings


def _order(gap: Sequence[float]) -> int:
    """Return the sign that all differences have; 0 if they do not agree, or there are none."""
    if not gap or any(math.isnan(value) for value in gap):
        return 0
    return 1 if min(gap) > 0.0 else -1 if max(gap) < 0.0 else 0


def _first_zero(points: Sequence[float], gap: Sequence[float]) -> float:
    """Return where a difference, linear between the points, is 0 first; its ends have opposite signs."""
    for (here, before), (there, after) in pairwise(zip(points, gap, strict=True)):
        if before * after <= 0.0 and before != after:
            return here + (there - here) * before / (before - after)
    raise AssertionError("the ends of a difference that crosses have opposite signs")


def numbers_of(values: Sequence[str]) -> tuple[list[float], str] | None:
    """Return the values of an axis as numbers with their common unit; ``None`` if they are no numbers.

    Values in different units of one dimension come in its base unit.
    """
    numbers = [each for each in map(number_and_unit, values) if each]
    units = {unit for _, unit in numbers}
    if len(numbers) < len(values):
        return None
    if len(units) == 1:
        return [number for number, _ in numbers], units.pop()
    quantity = quantity_of(*units)
    return None if quantity is None else ([float(quantity.parse(value)) for value in values], quantity.base_unit)
