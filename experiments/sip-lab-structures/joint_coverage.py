"""Coverage of the joint fit of growth: refit data that the model made with the fitted values.

Each data set is what the lab measured (the same 140 numbers), played by the model with the fitted values, steps of
900 s, on a seed of its own.  The refit has the calibration's bounds, step lengths, seed and replications, and starts
away from the truth.  A refit by the calibration's optimiser costs fourteen simulations a step and replication; here all
refits share the matrix of derivatives and move by bounded Gauss-Newton steps with it, one simulation each: first with
that at the start, then with that at the mean of where they came to.  Intervals are made as the calibration makes them,
from the second; beside them those that leave the chance of runs out.

    python experiments/sip-lab-structures/joint_coverage.py --fit growth-full --sets 10 --output coverage.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from fit_coverage import FIRST_SEED, table, truth
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.fit import at_measured_traffic, chosen, observed, parameter_values, residual, with_values
from vftsim.calibrate.intervals import fit_at
from vftsim.calibrate.references import read_definition
from vftsim.calibrate.runs import measured_runs, run_models
from vftsim.composition.model import ModelSpec
from vftsim.labs.dataset import Observations
from vftsim.labs.place import dataset_path, place
from vftsim.study.workers import Workers

Array = NDArray[np.float64]
FULL = {"workloads.calls.steps.duration": 900e9, "workloads.calls.steps.transient": 30e9}
STEP, AWAY, FARTHEST = 0.08, 0.04, 0.25
"""In shares of a parameter's box: step of the derivatives (the fit's), of the start from the truth, of one move."""


Seen = Sequence[Observations]
"""What was observed at a point, replication by replication."""


@dataclass(frozen=True, slots=True)
class Point:
    """One run: where (shares of the boxes), with which traffic, and whether steps have their full length."""

    units: Array
    seed: int
    replication: int = 0
    longer: bool = False


@dataclass(frozen=True, slots=True)
class Joint:
    """A calibration over several environments, its models, and what of a data set it uses."""

    definition: CalibrationSpec
    specs: Mapping[str, ModelSpec]
    keys: list[tuple[str, str]]
    jobs: int

    @property
    def low(self) -> Array:
        """Lower bounds."""
        return np.array([p.bounds[0] for p in self.definition.parameters])

    @property
    def span(self) -> Array:
        """Widths of the boxes."""
        return np.array([p.bounds[1] for p in self.definition.parameters]) - self.low

    def play(self, point: Point) -> Observations:
        """Return what the models give at a point."""
        x, parameters = self.low + point.units * self.span, self.definition.parameters
        longer = FULL if point.longer else {}
        at_point = {
            name: with_values(each, parameter_values(each, parameters, x, name) | longer)
            for name, each in self.specs.items()
        }
        return observed(at_point, point.seed, point.replication)

    def all_of(self, points: Sequence[Array]) -> list[Seen]:
        """Return what the fit's replications give at points."""
        each = range(self.definition.replications)
        tasks = [(self, Point(units, self.definition.seed, r)) for units in points for r in each]
        seen = Workers(_played, self.jobs).in_order(tasks)
        return [seen[n * len(each) : (n + 1) * len(each)] for n in range(len(points))]

    def apart(self, seen: Seen, data: Observations) -> list[Array]:
        """Return the residuals of each replication against a data set."""
        brought = [at_measured_traffic(each, data) for each in seen]
        return [np.array([residual(self.definition, k[1], of[k], data[k]) for k in self.keys]) for of in brought]

    def residuals(self, seen: Seen, data: Observations) -> Array:
        """Return the mean residuals of the replications of a point against a data set."""
        return np.mean(self.apart(seen, data), axis=0)


def _played(task: tuple[Joint, Point]) -> Observations:
    own, point = task
    return own.play(point)


def joint(name: str, jobs: int) -> Joint:
    """Read the calibration."""
    definition, tree = read_definition(f"sip-lab/{name}", CalibrationSpec)
    data = measured_runs(dataset_path(place(tree, "dataset")), definition.runs)
    return Joint(definition, run_models(tree, definition, definition.runs), chosen(definition, data), jobs)


def neighbours(start: Array) -> list[Array]:
    """Return the start and one point beside it for each parameter."""
    steps = np.where(start + STEP <= 1.0, STEP, -STEP)
    return [start, *(start + np.eye(len(start))[i] * steps[i] for i in range(len(start)))]


@dataclass(frozen=True, slots=True)
class Slopes:
    """Simulations at a point and beside it in every parameter, from which every data set has its derivatives."""

    points: list[Array]
    seen: list[Seen]

    def of(self, own: Joint, data: Observations) -> tuple[Array, Array]:
        """Return the residuals at the point and their derivatives."""
        first, *rest = (own.residuals(each, data) for each in self.seen)
        moves = [float((point - self.points[0]).sum()) for point in self.points[1:]]
        return first, np.array([(column - first) / move for column, move in zip(rest, moves, strict=True)]).T


def slopes_at(own: Joint, start: Array) -> Slopes:
    """Play a point and those beside it."""
    points = neighbours(start)
    return Slopes(points, own.all_of(points))


def refit(own: Joint, data: Observations, slopes: Slopes, begin: SimpleNamespace, steps: int) -> SimpleNamespace:
    """Move on from where a search is; return what an optimiser would, and the residuals of each replication."""
    _, matrix = slopes.of(own, data)
    at, best, apart, reach = begin.x, begin.fun, begin.apart, FARTHEST
    for _ in range(steps):
        box = np.maximum(-reach, -at) - 1e-9, np.minimum(reach, 1.0 - at) + 1e-9
        there = np.clip(at + lsq_linear(matrix, -best, bounds=box).x, 0.0, 1.0)
        each = own.apart(own.all_of([there])[0], data)
        found = np.mean(each, axis=0)
        if found @ found < best @ best:
            at, best, apart = there, found, each
        else:
            reach /= 4.0
    return SimpleNamespace(x=at, fun=best, apart=apart, jac=matrix, cost=0.5 * float(best @ best), nfev=steps)


def begun(own: Joint, data: Observations, slopes: Slopes) -> SimpleNamespace:
    """Return the start of a search."""
    apart = own.apart(slopes.seen[0], data)
    return SimpleNamespace(x=slopes.points[0], fun=np.mean(apart, axis=0), apart=apart)


def row(own: Joint, known: Mapping[str, float], found: SimpleNamespace) -> dict[str, Any]:
    """Return truth and interval of every parameter; intervals without the chance of runs under ``data``."""
    whole = fit_at(own.definition, own.keys, found, own.low, own.span, found.apart)
    of_data = fit_at(own.definition, own.keys, found, own.low, own.span)
    return {
        path: {
            "truth": value,
            "value": whole.values[path],
            "low": whole.low[path],
            "high": whole.high[path],
            "data": {"low": of_data.low[path], "high": of_data.high[path]},
            "chance_share": whole.chance_share.get(path, 0.0),
            "identified": path not in whole.undetermined,
        }
        for path, value in known.items()
    }


def main() -> None:
    """Refit the data sets; keep each as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", default="growth")
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--first", type=int, default=0, help="number of the first set: its seed is 7000 and so many")
    parser.add_argument("--steps", type=int, nargs=2, default=(2, 3))
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--output", type=Path, help="JSON")
    arguments = parser.parse_args()
    own = joint(arguments.fit, arguments.jobs)
    known = truth(arguments.fit, own.definition)
    true = (np.array(list(known.values())) - own.low) / own.span
    signs = np.where(np.random.default_rng(FIRST_SEED).random(len(true)) < 0.5, -1.0, 1.0)
    (at_truth,) = own.all_of([true])
    numbers = range(arguments.first, arguments.first + arguments.sets)
    data = [own.play(Point(true, FIRST_SEED + number, 0, True)) for number in numbers]
    slopes = slopes_at(own, np.clip(true + AWAY * signs, 0.01, 0.99))
    firsts = [refit(own, d, slopes, begun(own, d, slopes), arguments.steps[0]) for d in data]
    slopes = slopes_at(own, np.clip(np.mean([each.x for each in firsts], axis=0), 0.0, 1.0))
    refits: list[dict[str, Any]] = []
    for d, first in zip(data, firsts, strict=True):
        found = refit(own, d, slopes, first, arguments.steps[1])
        refits.append(row(own, known, found))
        there = own.residuals(at_truth, d)
        print(f"cost {first.cost:.2f}, {found.cost:.2f}; truth {0.5 * float(there @ there):.2f}", file=sys.stderr)
        if arguments.output:
            arguments.output.write_text(json.dumps(refits) + "\n", encoding="utf-8")
    print(table(arguments.fit, refits))
    if own.definition.replications > 1:
        without = [{path: each | each["data"] for path, each in refit.items()} for refit in refits]
        print(table(f"{arguments.fit}, without the chance of runs", without))


if __name__ == "__main__":
    main()
