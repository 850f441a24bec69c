"""What a fit's data tell about its parameters: the sensitivity matrix against what the bounds say alone.

Every parameter is taken over its own box, 0 at the lower and 1 at the upper bound; residuals are in multiples of
their scale.  Before the data, a parameter is anywhere in its box: standard deviation ``1/sqrt(12)``.  With sensitivity
matrix ``J`` and residual scale ``sigma`` the data leave the covariance ``(J'J / sigma^2 + 12 I)^-1`` (linear model,
Gaussian prior of the box's variance; Bates and Watts, Nonlinear Regression Analysis, 1988, section 2).  A parameter
whose standard deviation the data do not halve is *not identified*: its value is where the search began or wandered to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_BOX_VARIANCE = 1.0 / 12.0
BOX_DEVIATION = _BOX_VARIANCE**0.5
"""Standard deviation of a parameter before the data, as a share of the way between its bounds."""
MOST_REMAINING = 0.5
"""Share of the standard deviation before the data that may remain of an identified parameter."""
_PART_OF_DIRECTION = 0.3


@dataclass(frozen=True, slots=True)
class Identification:
    """How far the data determine the parameters.

    Attributes
    ----------
    remaining : tuple of float
        For each parameter, its standard deviation with the data over that without (1: the data say nothing).
    effect : tuple of float
        For each parameter, the norm of the change of the scaled residuals when it moves through its box.
    partners : tuple of tuple of int
        For each parameter, the others that it can be exchanged for along the direction that the data see least.
    rank : int
        Directions in which the data halve the standard deviation.
    condition : float
        Largest over smallest singular value of the sensitivity matrix; infinite if that is 0.
    """

    remaining: tuple[float, ...]
    effect: tuple[float, ...]
    partners: tuple[tuple[int, ...], ...]
    rank: int
    condition: float

    def identified(self, parameter: int) -> bool:
        """Return whether the data determine a parameter."""
        return self.remaining[parameter] <= MOST_REMAINING


def identification(jacobian: Array, sigma: float) -> Identification:
    """Return what a sensitivity matrix says about the parameters.

    Parameters
    ----------
    jacobian : array
        Scaled residuals (rows) by parameters over their boxes (columns).
    sigma : float
        Standard deviation of a scaled residual; below 1 it counts as 1, what the definition calls one scale.
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


def _partners(parameter: int, directions: Array, remaining_along: Array) -> tuple[int, ...]:
    """Return the others in the direction that leaves the most of a parameter undetermined."""
    shares = directions[:, parameter] ** 2 * remaining_along
    direction = np.abs(directions[int(np.argmax(shares))])
    return tuple(i for i in range(len(direction)) if i != parameter and direction[i] > _PART_OF_DIRECTION)


def told(names: list[str], found: Identification) -> list[str]:
    """Return a line for every parameter that the data do not determine."""
    lines = []
    for i, name in enumerate(names):
        if found.identified(i):
            continue
        others = [names[j] for j in found.partners[i]]
        why = f"only together with {', '.join(others)}" if others else "nothing in the data tells it"
        lines.append(
            f"{name} ({why}: the data leave {100 * found.remaining[i]:.0f} % of the spread between its bounds; "
            f"moving it from bound to bound changes the residuals by {found.effect[i]:.2g} scales)"
        )
    return lines
