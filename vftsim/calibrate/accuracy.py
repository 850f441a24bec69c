"""Predicted against measured, for every row of a record, and whether a declared accuracy was met.

In-sample and held-out rows are kept apart, and beside each prediction stand null models, which know nothing of
a system: where they are as near, a row says nothing for the model, and the table shows it.

``line`` and ``parabola`` go through the runs that the model was fitted to, over load (of the logarithm for delays).
``M/M/1`` is a queue with one server fitted to them: CPU an attempt is their mean, and a delay grows as 1 / (1 - load
over what the CPU carries).  ``same as without`` is what was measured at the same load without what is predicted;
between measured loads the straight line (of the logarithm for delays).  It has seen runs that the model has not.
"""

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from vftsim.files import Number
from vftsim.labs.dataset import Observations
from vftsim.stats import central_range


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the record and its prediction (mean and central 90 % of the replications)."""

    environment: str
    phase: str
    quantity: str
    sample: str
    """``in``: fitted, ``input``: a saturated calibration input, ``out``: predicted."""
    measured: Number
    predicted: Number
    low: Number
    high: Number
    n: int
    nulls: Mapping[str, float]

    def to_plain(self) -> dict[str, Any]:
        return asdict(self) | {"error": self.error}

    @property
    def run(self) -> str:
        """The run or step, ``environment/phase``."""
        return f"{self.environment}/{self.phase}"

    @property
    def is_inside(self) -> bool:
        """Whether the central 90 % of the replications contain the measured number."""
        return self.low <= self.measured <= self.high

    @property
    def tells(self) -> bool:
        """Whether every null model, if there is one, gives another figure than this model may."""
        return not any(self.low <= value <= self.high for value in self.nulls.values())

    def by(self, null: str) -> Self | None:
        """Return the row as a null model would have it; None where that says nothing."""
        value = self.nulls.get(null)
        return None if value is None else replace(self, predicted=value, low=value, high=value)

    @property
    def error(self) -> float:
        """Relative (1 = 100 %) for delays; of others in their unit: points of shares and CPU, /s of rates."""
        if is_relative(self.quantity):
            return self.predicted / self.measured - 1.0 if self.measured else float("nan")
        return self.predicted - self.measured


@dataclass(frozen=True, slots=True)
class Verdict:
    """One declared target and what came out."""

    target: str
    """In words."""
    passed: bool
    found: str
    by_nulls: tuple[str, ...] = ()
    """Null models that meet it too: then it says nothing for the model."""
    environment: str = ""


def labelled(environment: str, seen: Observations) -> Observations:
    """Return the observations of an environment with the names of its phases in full: ``environment/phase``."""
    return {(f"{environment}/{phase}", quantity): value for (phase, quantity), value in seen.items()}


def rows_of(
    data: Observations,
    runs: Sequence[Observations],
    wanted: Callable[[str], bool],
    sample_of: Callable[[str], str],
    nulls_of: Callable[[str, str], Mapping[str, float]],
) -> list[Row]:
    """Return a row for every measured number that the runs have too.

    Phases are called ``environment/phase`` in the measured data, which have the order of the rows, and in the runs,
    one for each replication; one that stopped early lacks the later phases.  ``wanted`` tells whether a quantity is
    compared, ``sample_of`` what a run was used for (:attr:`Row.sample`), ``nulls_of`` what null models give of a run's
    quantity.
    """
    rows = []
    for (run, quantity), measured in data.items():
        values = [seen[run, quantity] for seen in runs if (run, quantity) in seen]
        if not values or not wanted(quantity):
            continue
        environment, _, phase = run.partition("/")
        low, high = central_range(values)
        nulls = nulls_of(run, quantity) if (run, "load") in data else {}
        mean, n = float(np.mean(values)), len(values)
        rows.append(Row(environment, phase, quantity, sample_of(run), measured, mean, low, high, n, nulls))
    return rows


def beside_nulls(
    judge: Callable[[list[Row]], list[Verdict]], rows: list[Row], *, of_all: bool = False
) -> list[Verdict]:
    """Judge rows, and beside them those of every null model; ``of_all``: where it says something of all of them."""
    verdicts = judge(rows)
    for null in NAMES:
        others = [other for row in rows if (other := row.by(null)) is not None]
        if of_all and not 0 < len(others) == len(rows):
            continue
        verdicts = [
            replace(verdict, by_nulls=(*verdict.by_nulls, null)) if other.passed else verdict
            for verdict, other in zip(verdicts, judge(others), strict=True)
        ]
    return verdicts


LINE, PARABOLA, QUEUE, WITHOUT = "line", "parabola", "M/M/1", "same as without"
NAMES = (LINE, PARABOLA, QUEUE, WITHOUT)
_MOST_LOGARITHM = 700.0
FULL_PERCENT = 100.0


def is_relative(quantity: str) -> bool:
    """Whether errors of a quantity are told in percent of the measured value."""
    return is_percentile(quantity) or quantity.endswith("/max")


def step_number(phase: str) -> int:
    """Return the number of a step; 0 for what is none."""
    match = re.fullmatch(r"step_([0-9]+)", phase)
    return int(match[1]) if match else 0


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
    def of(cls, data: Observations, phases: Sequence[str], quantity: str) -> Self:
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
