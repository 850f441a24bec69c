"""Fit parameters of a record on stated figures, as the file of its name here and its protocol say.

    python experiments/record-fits/fit.py xen-media --output fit.json

For each case ``fit.json`` has every point of the last grids, the best first, what holds, and the best point on fresh
seeds.  All points see the same traffic (common random numbers).  A point whose first experiments are far off is not
played further.  What vftsim calibrate fits are phases that were measured; here words and bounds of a text are.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from vftsim.files import write_file
from vftsim.records.definition import Expression, Runs
from vftsim.records.expressions import Names, evaluate
from vftsim.records.runner import Record, read
from vftsim.spec import Items, Spec, load
from vftsim.study.runs.progress import Silent
from vftsim.study.runs.workers import Workers

Values = tuple[float, ...]


class Target(Spec):
    """A stated figure that a fit comes near."""

    value: Expression = Field(description="The figure, of what the experiment gives: values of each replication.")
    off: Expression = Field(description="How far `value` is off, in weights; their squares are added up.")
    holds: Expression = Field("True", description="Whether `value` is within the accuracy asked for.")


class FittedRuns(Runs):
    """An experiment of a fit; its templates may name the parameters."""

    targets: Annotated[dict[str, Target], Field(min_length=1)] = Field(description="Stated figures by name.")


class Fit(Spec):
    """Parameters that are fitted on a grid, then on finer ones around the best point, all above 0."""

    over: str = Field(description="Axis of the record: a fit for each of its cases.")
    parameters: Annotated[dict[str, Expression], Field(min_length=1)] = Field(description="Values of the first grid.")
    around: dict[str, Expression] = Field(description="Steps of a finer grid from its middle.")
    rounds: int = Field(1, ge=1, description="Finer grids at most, until the best point is none of an edge.")
    give_up: float | None = Field(None, description="Sum of squares from which a point is not played further.")
    first: dict[str, float] = Field(description="What of the budget differs on the first grid.")
    finer: dict[str, float] = Field(description="The same on the finer ones; if equal, points of both count.")
    fresh: dict[str, float] = Field(default_factory=dict, description="Budget that the best point is played anew with.")
    spans: dict[str, Expression] = Field(
        default_factory=dict, description="Further values by name whose range over the points that hold is told."
    )
    experiments: Annotated[Items[FittedRuns], Field(min_length=1)] = Field(description="In the order of play.")


@dataclass(frozen=True, slots=True)
class Point:
    """Values of the parameters, the figures they give and how far off those are."""

    values: Values
    figures: dict[str, float]
    objective: float
    holds: bool

    @property
    def rank(self) -> tuple[int, float, Values]:
        """Points that were not given up first, then by objective; of equal ones the lowest values."""
        return -len(self.figures), self.objective, self.values


@dataclass(frozen=True, slots=True)
class Case:
    """One fit of a record: what is fitted of which case."""

    study: str
    fit: Fit
    names: Mapping[str, Any]

    def point(self, values: Values, budget: Mapping[str, float]) -> Point:
        record = read(self.study).with_budget(budget)
        at_hand = {**self.names, **dict(zip(self.fit.parameters, values, strict=True))}
        figures: dict[str, float] = {}
        objective, holds = 0.0, True
        for runs in self.fit.experiments:
            seen = {name: np.array(series) for name, series in record.play(runs, at_hand).items()}
            for name, target in runs.targets.items():
                names = {**record.names, **at_hand, **seen}
                names["value"] = figures[name] = float(evaluate(target.value, names))
                objective += float(evaluate(target.off, names)) ** 2
                holds = holds and bool(evaluate(target.holds, names))
            if objective > (math.inf if self.fit.give_up is None else self.fit.give_up):
                return Point(values, figures, objective, False)
        return Point(values, figures, objective, holds)

    def points(self, grid: Iterable[Values], budget: Mapping[str, float], jobs: int) -> list[Point]:
        return Workers(_point, jobs, Silent().say).in_order([(self, values, budget) for values in grid])

    def search(self, jobs: int) -> list[Point]:
        """Return the points of the last grids, the best first."""
        fit, names = self.fit, {**read(self.study).names, **self.names}
        points = self.points(product(*_axes(fit.parameters, names)), fit.first, jobs)
        middle = min(points, key=lambda point: point.rank)
        points = points if fit.first == fit.finer else []
        offsets = _axes({name: fit.around[name] for name in fit.parameters}, names)
        for _ in range(fit.rounds):
            grid = {
                tuple(value + off for value, off in zip(middle.values, by, strict=True)) for by in product(*offsets)
            }
            missing = sorted({values for values in grid if min(values) > 0.0} - {point.values for point in points})
            points = sorted([*points, *self.points(missing, fit.finer, jobs)], key=lambda point: point.rank)
            moved = zip(points[0].values, middle.values, offsets, strict=True)
            if all(abs(best - was) < max(by) for best, was, by in moved):
                break
            middle = points[0]
        return points

    def fitted(self, jobs: int) -> dict[str, Any]:
        points = self.search(jobs)
        held = [dict(zip(self.fit.parameters, point.values, strict=True)) for point in points if point.holds]
        spans = {**{name: name for name in self.fit.parameters}, **self.fit.spans}
        fresh = {"evaluation_on_fresh_seeds": self._plain(self.point(points[0].values, self.fit.fresh))}
        return {
            "best": self._plain(points[0]),
            **(fresh if self.fit.fresh else {}),
            "feasible_points": len(held),
            **{f"feasible_{name}": _range([evaluate(text, each) for each in held]) for name, text in spans.items()},
            "points": [self._plain(point) for point in points],
        }

    def _plain(self, point: Point) -> dict[str, Any]:
        values = dict(zip(self.fit.parameters, point.values, strict=True))
        return {**values, "figures": point.figures, "objective": point.objective, "holds": point.holds}


def cases_of(record: Record) -> dict[str, Case]:
    """Return the fits of a record by their cases."""
    fit = load(Path(__file__).with_name(f"{record.name}.yaml"), Fit)
    cases = record.spec.axes[fit.over].items()
    return {name: Case(record.name, fit, {**values, fit.over: name}) for name, values in cases}


def _axes(grids: Mapping[str, str | float], names: Names) -> list[Sequence[float]]:
    return [evaluate(text, names) for text in grids.values()]


def _point(task: tuple[Case, Values, Mapping[str, float]]) -> Point:
    case, values, budget = task
    return case.point(values, budget)


def _range(values: Sequence[float]) -> list[float] | None:
    return [min(values), max(values)] if values else None


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("study")
    parser.add_argument("-o", "--output", type=Path, default=Path("fit.json"))
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--case", action="append", help="only this one; repeatable")
    given = parser.parse_args()
    results = {}
    for name, case in cases_of(read(given.study)).items():
        if not given.case or name in given.case:
            results[name] = case.fitted(given.jobs)
            write_file(given.output, (json.dumps(results, indent=1) + "\n").encode())
            print(name, results[name]["best"], results[name]["feasible_points"])


if __name__ == "__main__":
    main()
