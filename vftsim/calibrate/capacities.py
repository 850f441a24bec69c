"""Capacity under several limits, measured and predicted by one rule, and ratios between environments.

The capacity under a limit is the effective load of the last step before the first in which any scenario, or all
together, has a larger share of inadequately handled attempts; whole attempts a second, as the lab prints it.  It is
read from the figures of the steps, the same for the record and the model; a benchmark that ends at its own limit says
nothing beyond it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from vftsim.labs.dataset import Observations
from vftsim.stats import central_range

LIMITS_PERCENT = (0.1, 1.0, 5.0, 10.0)


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """A capacity of an environment: measured, and the predicted median with its central 90 %."""

    environment: str
    limit_percent: float
    measured: int
    predicted: float
    low: float
    high: float
    n: int


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A capacity relative to that of the first environment, of replications under the same traffic."""

    environment: str
    reference: str
    measured: float
    predicted: float
    low: float
    high: float
    n: int


def capacity_at(steps: Observations, limit_percent: float) -> int:
    """Return the capacity that the figures of a benchmark's steps give under a limit; 0: its first step fails."""
    saps = 0
    for phase in _phases(steps):
        shares = [value for (name, quantity), value in steps.items() if name == phase and quantity.startswith("ihs/")]
        if max(shares, default=0.0) > limit_percent:
            return saps
        saps = int(steps[phase, "load"])
    return saps


def capacity_rows(environment: str, data: Observations, runs: list[Observations]) -> list[CapacityRow]:
    """Return the capacities of an environment under each limit."""
    found = []
    for limit in LIMITS_PERCENT:
        predicted = [float(capacity_at(run, limit)) for run in runs]
        low, high = central_range(predicted)
        middle = float(np.median(predicted))
        found.append(CapacityRow(environment, limit, capacity_at(data, limit), middle, low, high, len(runs)))
    return found


def ratio_rows(measured: dict[str, float], predicted: dict[str, list[float]]) -> list[RatioRow]:
    """Return each environment's capacity relative to the first one's, replication by replication."""
    names = list(predicted)
    found = []
    for name in names[1:]:
        ratios = [mine / first for mine, first in zip(predicted[name], predicted[names[0]], strict=True) if first > 0]
        if ratios:
            low, high = central_range(ratios)
            stated = measured[name] / measured[names[0]]
            found.append(RatioRow(name, names[0], stated, float(np.median(ratios)), low, high, len(ratios)))
    return found


def _phases(steps: Observations) -> list[str]:
    named = {phase for phase, quantity in steps if phase.startswith("step_") and quantity == "load"}
    return sorted(named, key=lambda phase: int(phase.removeprefix("step_")))
