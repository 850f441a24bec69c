"""Capacity under several limits, measured and predicted by one rule, and ratios between environments.

The rule is that of :mod:`vftsim.labs.ramps`, over the figures of the steps, the same for the record and the model.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np

from vftsim.calibrate.accuracy import Verdict
from vftsim.calibrate.nulls import FULL_PERCENT, LINE, PARABOLA, QUEUE, Base
from vftsim.labs.dataset import Observations
from vftsim.labs.ramps import LIMITS_PERCENT, capacity_at, load_steps
from vftsim.stats import central_range
from vftsim.study.store.files import Number


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """A capacity of an environment: measured, and that of each replication."""

    environment: str
    limit_percent: float
    measured: int
    replications: tuple[float, ...]
    nulls: Mapping[str, float] = field(default_factory=dict)
    """Last step at which null models have CPU left."""

    @property
    def predicted(self) -> float:
        """The middle replication."""
        return float(np.median(self.replications))

    @property
    def range(self) -> tuple[float, float]:
        """The central 90 % of the replications."""
        return central_range(self.replications)

    def verdict(self, loads: Sequence[float]) -> Verdict:
        """Hold the middle replication against the record: it must end at the same of the steps with these loads."""
        (low, high), n, apart = self.range, len(self.replications), _apart_at(self.measured, loads)
        return Verdict(
            f"capacity at {self.limit_percent:g} % in the load step of the record ({self.measured})",
            abs(self.predicted - self.measured) < apart / 2.0,
            by_nulls=tuple(n for n, value in self.nulls.items() if abs(value - self.measured) < apart / 2.0),
            found=f"median {self.predicted:.1f}, central 90 % {low:.1f} to {high:.1f}, n={n}",
        )

    def as_data(self) -> dict[str, Any]:
        low, high = self.range
        return {
            "environment": self.environment,
            "limit_percent": self.limit_percent,
            "measured": self.measured,
            "predicted": self.predicted,
            "low": low,
            "high": high,
            "n": len(self.replications),
            "nulls": dict(self.nulls),
            "replications": list(self.replications),
        }


def _apart_at(load: float, loads: Sequence[float]) -> float:
    """Return how far the step at a load is from the nearer of its neighbours."""
    nearest = int(np.argmin(np.abs(np.array(loads) - load)))
    return float(np.min(np.abs(np.diff(loads))[max(nearest - 1, 0) : nearest + 1], initial=np.inf))


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A capacity relative to that of the first environment, of replications under the same traffic."""

    environment: str
    reference: str
    limit_percent: float
    measured: Number
    predicted: Number
    low: Number
    high: Number
    n: int


def capacity_rows(
    environment: str, data: Observations, runs: list[Observations], nulls: Mapping[str, float]
) -> list[CapacityRow]:
    """Return the capacities of an environment under each limit; none where the record has no shares of its steps."""
    steps = load_steps(data)
    return [
        CapacityRow(
            environment,
            limit,
            capacity_at(steps, limit),
            tuple(float(capacity_at(load_steps(run), limit)) for run in runs),
            nulls,
        )
        for limit in LIMITS_PERCENT
        if steps
    ]


def null_capacities(cpu: Base, loads: Sequence[float]) -> dict[str, float]:
    """Return the last of some loads, ascending, at which each null model has CPU left."""
    curves: dict[str, Callable[[float], float | None]] = {
        LINE: partial(cpu.curve, degree=1),
        PARABOLA: partial(cpu.curve, degree=2),
        QUEUE: cpu.queue,
    }
    capacities = {}
    for null, curve in curves.items():
        needed = [curve(load) for load in loads]
        if known := [percent for percent in needed if percent is not None]:
            carried = sum(1 for _ in takewhile(lambda percent: percent < FULL_PERCENT, known))
            capacities[null] = loads[carried - 1] if carried else 0.0
    return capacities


def ratio_rows(rows: Iterable[CapacityRow]) -> list[RatioRow]:
    """Return each environment's capacities relative to the first one's, replication by replication."""
    firsts: dict[float, CapacityRow] = {}
    found = []
    for row in rows:
        first = firsts.setdefault(row.limit_percent, row)
        pairs = zip(row.replications, first.replications, strict=True)
        ratios = [mine / other for mine, other in pairs if other > 0]
        if first is not row and ratios and first.measured:
            low, high = central_range(ratios)
            found.append(
                RatioRow(
                    row.environment,
                    first.environment,
                    row.limit_percent,
                    row.measured / first.measured,
                    float(np.median(ratios)),
                    low,
                    high,
                    len(ratios),
                )
            )
    return found
