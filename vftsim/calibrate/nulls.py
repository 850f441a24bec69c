"""What models that know nothing of a system give: where they are as near, a row says nothing for the model.

``line`` and ``parabola`` go through the runs that the model was fitted to, over load (of the logarithm for delays).
``M/M/1`` is a queue with one server fitted to them: CPU an attempt is their mean, and a delay grows as 1 / (1 - load
over what the CPU carries).  ``same as without`` is what was measured at the same load without what is predicted;
between measured loads the straight line (of the logarithm for delays).  It has seen runs that the model has not.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from vftsim.labs.dataset import Observations

LINE, PARABOLA, QUEUE, WITHOUT = "line", "parabola", "M/M/1", "same as without"
NAMES = (LINE, PARABOLA, QUEUE, WITHOUT)
_MOST_LOGARITHM = 700.0
FULL_PERCENT = 100.0


def is_relative(quantity: str) -> bool:
    """Whether errors of a quantity are told in percent of the measured value."""
    return is_percentile(quantity) or quantity.endswith("/max")


def is_percentile(quantity: str) -> bool:
    return "/p" in quantity


@dataclass(frozen=True, slots=True)
class Base:
    """What a null model knows: loads, CPU in percent and a quantity of some runs."""

    quantity: str
    loads: Sequence[float]
    cpu: Sequence[float]
    values: Sequence[float]

    @classmethod
    def of(cls, data: Observations, phases: Sequence[str], quantity: str) -> Base:
        """Return it, without the phases in which something was not measured."""
        keys = ("load", "cpu", quantity)
        rows = [[data[phase, key] for key in keys] for phase in phases if all((phase, key) in data for key in keys)]
        return cls(quantity, *map(list, zip(*sorted(rows), strict=True))) if rows else cls(quantity, [], [], [])

    @property
    def is_of_logarithms(self) -> bool:
        """Whether straight lines are drawn through logarithms."""
        return is_relative(self.quantity) and bool(self.values) and min(self.values) > 0.0

    def curve(self, load: float, degree: int) -> float | None:
        """Return the line or parabola at a load; None for too few runs."""
        if len(self.loads) <= degree:
            return None
        values = np.log(self.values) if self.is_of_logarithms else self.values
        value = float(np.polyval(np.polyfit(self.loads, values, degree), load))
        return math.exp(min(value, _MOST_LOGARITHM)) if self.is_of_logarithms else value

    def queue(self, load: float, share: float = 1.0) -> float | None:
        """Return what a queue whose server has a share of the CPU gives at a load; None where it says nothing."""
        prices = [cpu / at for cpu, at in zip(self.cpu, self.loads, strict=True) if at > 0.0]
        price = float(np.mean(prices)) if prices else 0.0
        if not price > 0.0:
            return None
        most = share * FULL_PERCENT / price
        if self.quantity == "cpu":
            return min(price * load, share * FULL_PERCENT)
        if self.quantity == "completed":
            return min(load, most)
        if self.quantity.startswith("ihs/"):
            return 100.0 * (1.0 - most / load) if load > most else 0.0
        idle = [1.0 - cpu / FULL_PERCENT for cpu in self.cpu]
        if not self.is_of_logarithms or load >= most or min(idle) <= 0.0:
            return None
        mean_log = np.mean([math.log(value * free) for value, free in zip(self.values, idle, strict=True)])
        return float(math.exp(mean_log) / (1.0 - load / most))

    def between(self, load: float) -> float | None:
        """Return what was measured at a load, between two of the runs; None outside of them."""
        if not self.loads or not self.loads[0] <= load <= self.loads[-1]:
            return None
        values = np.log(self.values) if self.is_of_logarithms else self.values
        value = float(np.interp(load, self.loads, values))
        return math.exp(value) if self.is_of_logarithms else value


def known(nulls: Mapping[str, float | None]) -> dict[str, float]:
    """Return the nulls that say something."""
    return {name: value for name, value in nulls.items() if value is not None}


def cannot_tell(low: float, high: float, nulls: Mapping[str, float]) -> bool:
    """Whether a null model's figure lies within the model's own central range, so that the row tells neither."""
    return any(low <= value <= high for value in nulls.values())
