"""Predicted against measured, for every row of a record, and whether a declared accuracy was met.

In-sample and held-out rows are kept apart, and beside each prediction stand null models
(:mod:`vftsim.calibrate.nulls`).  Where one is better, or as good, the table shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from vftsim.calibrate.nulls import NAMES, cannot_tell, is_relative
from vftsim.labs.dataset import Observations
from vftsim.stats import central_range
from vftsim.study.store.files import Number


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
        """Return it as plain data, with its error."""
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
        return not cannot_tell(self.low, self.high, self.nulls)

    def by(self, null: str) -> Row | None:
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

    text: str
    passed: bool
    found: str
    by_nulls: tuple[str, ...] = ()
    """Null models that meet it too: then it says nothing for the model."""
    environment: str = ""

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {
            "environment": self.environment,
            "target": self.text,
            "passed": self.passed,
            "found": self.found,
            "by_nulls": list(self.by_nulls),
        }


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

    Parameters
    ----------
    data : Observations
        Measured, in the order of the rows; phases are called ``environment/phase`` here and in the runs.
    runs : sequence of Observations
        One for each replication; a replication that stopped early lacks the later phases.
    wanted : callable
        Whether a quantity is compared.
    sample_of : callable
        What a run was used for (:attr:`Row.sample`).
    nulls_of : callable
        What null models give of a run and quantity.
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
