"""Identifiability of a fit's parameters: the sensitivity matrix against the information in the bounds alone.

Every parameter is taken over its own box, 0 at the lower and 1 at the upper bound; residuals are in multiples of
their scale.  Before the data, a parameter is anywhere in its box: standard deviation ``1/sqrt(12)``.  With sensitivity
matrix ``J`` and residual scale ``sigma`` the data leave the covariance ``(J'J / sigma^2 + 12 I)^-1`` (linear model,
Gaussian prior of the box's variance; Bates and Watts, Nonlinear Regression Analysis, 1988, section 2).  A parameter
whose standard deviation the data do not halve is *not identified*: its value is where the search began or wandered to.

The matrix knows neither the chance of runs nor other minima.  So a parameter is not identified either if its 95 %
interval, with all that went into it, is as wide as that of a normal distribution with half the spread of its box, or if
searches from other starts ended at like cost outside of the interval.  *Like*: within the joint 95 % region of n
observations and p parameters, squares up to the least times 1 + p / (n - p) F(0.95; p, n - p) (Bates and Watts, 1988,
section 6.1.2).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import chdtri, fdtri

Array = NDArray[np.float64]
_BOX_VARIANCE = 1.0 / 12.0
BOX_DEVIATION: float = _BOX_VARIANCE**0.5
"""Standard deviation of a parameter before the data, as a share of the way between its bounds."""
MOST_REMAINING = 0.5
"""Share of the standard deviation before the data that may remain of an identified parameter."""
MOST_OF_BOX = 2.0 * 1.959964 * MOST_REMAINING * BOX_DEVIATION
"""Share of the box that a 95 % interval of an identified parameter may have."""
_PART_OF_DIRECTION = 0.3


@dataclass(frozen=True, slots=True)
class Identification:
    """Identifiability of the parameters by the data."""

    remaining: tuple[float, ...]
    """For each parameter, its standard deviation with the data over that without (1: the data say nothing)."""
    effect: tuple[float, ...]
    """For each parameter, the norm of the change of the scaled residuals when it moves through its box."""
    partners: tuple[tuple[int, ...], ...]
    """For each parameter, the others that it can be exchanged for along the direction that the data see least."""
    rank: int
    """Directions in which the data halve the standard deviation."""
    condition: float
    """Largest over smallest singular value of the sensitivity matrix; infinite if that is 0."""

    def identified(self, parameter: int) -> bool:
        return self.remaining[parameter] <= MOST_REMAINING


def identification(jacobian: Array, sigma: float) -> Identification:
    """Return what a sensitivity matrix says about the parameters.

    The matrix has scaled residuals (rows) by parameters over their boxes (columns).  Sigma is the standard deviation of
    a scaled residual; below 1 it counts as 1, what the definition calls one scale.
    """
    _, count = jacobian.shape
    _, values, directions = np.linalg.svd(jacobian, full_matrices=True)
    singular = np.zeros(count)
    singular[: len(values)] = values
    information = (singular / max(sigma, 1.0)) ** 2 * _BOX_VARIANCE
    remaining_along = 1.0 / (1.0 + information)
    remaining = np.sqrt((directions.T**2) @ remaining_along)
    partners = [_partners(parameter, directions, remaining_along) for parameter in range(count)]
    return Identification(
        tuple(remaining.tolist()),
        tuple(np.linalg.norm(jacobian, axis=0).tolist()),
        tuple(partners),
        int(np.count_nonzero(remaining_along <= MOST_REMAINING**2)),
        float(singular[0] / singular[-1]) if singular[-1] > 0 else float("inf"),
    )


def is_determined(low: float, high: float, bounds: tuple[float, float]) -> bool:
    """Return whether a 95 % interval says more of a parameter than its bounds do."""
    return high - low < MOST_OF_BOX * (bounds[1] - bounds[0])


def like_costs(costs: Sequence[float], observations: int, parameters: int) -> list[int]:
    """Return which ends of searches the data cannot tell from the best one."""
    freedom = observations - parameters
    if freedom < 1:  # no scatter to go by: residuals have the deviation that their scale says
        most = min(costs) + float(chdtri(parameters, 0.05)) / 2.0
    else:
        most = min(costs) * (1.0 + parameters / freedom * float(fdtri(parameters, freedom, 0.95)))
    return [i for i, cost in enumerate(costs) if cost <= most]


def elsewhere(
    ends: Sequence[tuple[float, Mapping[str, float]]],
    observations: int,
    low: Mapping[str, float],
    high: Mapping[str, float],
) -> dict[str, list[float]]:
    """Return parameters that searches, each with its cost and values, took out of their intervals at like cost."""
    if not ends:
        return {}
    like = like_costs([cost for cost, _ in ends], observations, len(low))
    values_of = {name: [ends[i][1][name] for i in like] for name in low}
    return {
        name: values for name, values in values_of.items() if not low[name] <= min(values) <= max(values) <= high[name]
    }


def _partners(parameter: int, directions: Array, remaining_along: Array) -> tuple[int, ...]:
    """Return the others in the direction that leaves the most of a parameter undetermined."""
    shares = directions[:, parameter] ** 2 * remaining_along
    direction = np.abs(directions[int(np.argmax(shares))])
    return tuple(i for i in range(len(direction)) if i != parameter and direction[i] > _PART_OF_DIRECTION)


def undetermined(names: list[str], identified: Identification) -> list[str]:
    """Return a line for every parameter that the data do not determine."""
    lines = []
    for i, name in enumerate(names):
        if identified.identified(i):
            continue
        others = [names[j] for j in identified.partners[i]]
        why = f"only together with {', '.join(others)}" if others else "nothing in the data tells it"
        lines.append(
            f"{name} ({why}: the data leave {100 * identified.remaining[i]:.0f} % of the spread between its bounds; "
            f"moving it from bound to bound changes the residuals by {identified.effect[i]:.2g} scales)"
        )
    return lines
