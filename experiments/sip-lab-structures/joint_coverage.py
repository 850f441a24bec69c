"""Coverage of the joint fit of growth: refit data that the model made with the fitted values.

Each data set is what the lab measured (the same 140 numbers), played by the model with ``fitted/growth.json``, steps of
900 s, on a seed of its own.  The refit has the calibration's bounds, step lengths and seed, and starts away from the
truth.  A refit by the calibration's optimiser costs fourteen simulations a step; here all refits share the matrix of
derivatives and move by bounded Gauss-Newton steps with it, one simulation each: first with that at the start, then with
that at the mean of where they came to.  Intervals are made as the calibration makes them, from the second.

    python experiments/sip-lab-structures/joint_coverage.py --sets 20 --steps 2 3 --output coverage.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from fit_coverage import FIRST_SEED, table, truth
from numpy.typing import NDArray
from scipy.optimize import lsq_linear

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.figures import as_run, observe
from vftsim.calibrate.fit import at_measured_traffic, chosen, parameter_values, residual, with_values
from vftsim.calibrate.intervals import fit_at
from vftsim.calibrate.references import dataset_path, place, read_definition
from vftsim.calibrate.runs import measured_runs, run_models
from vftsim.composition.model import ModelSpec
from vftsim.labs.dataset import Observations

Array = NDArray[np.float64]
FULL = {"workloads.calls.steps.duration": 900e9, "workloads.calls.steps.transient": 30e9}
STEP, AWAY, FARTHEST = 0.08, 0.04, 0.25
"""In shares of a parameter's box: step of the derivatives (the fit's), of the start from the truth, of one move."""


@dataclass(frozen=True, slots=True)
class Joint:
    """A calibration over several environments, its models, and what of a data set it uses."""

    definition: CalibrationSpec
    specs: Mapping[str, ModelSpec]
    keys: list[tuple[str, str]]

    @property
    def low(self) -> Array:
        """Lower bounds."""
        return np.array([p.bounds[0] for p in self.definition.parameters])

    @property
    def span(self) -> Array:
        """Widths of the boxes."""
        return np.array([p.bounds[1] for p in self.definition.parameters]) - self.low

    def play(self, units: Array, seed: int, longer: Mapping[str, float] | None = None) -> Observations:
        """Return what the models give at a point (shares of the boxes); equal models are played once."""
        found: Observations = {}
        played: list[tuple[ModelSpec, Observations]] = []
        for name, each in self.specs.items():
            values = parameter_values(each, self.definition.parameters, self.low + units * self.span, name)
            spec = with_values(each, values | dict(longer or {}))
            seen = next((seen for model, seen in played if model == spec), None)
            if seen is None:
                seen = observe(spec, seed, 0)
                played.append((spec, seen))
            found |= as_run(seen, name)
        return found

    def residuals(self, seen: Observations, data: Observations) -> Array:
        """Return the residuals of a simulation against a data set."""
        of = at_measured_traffic(seen, data)
        return np.array([residual(self.definition, key[1], of[key], data[key]) for key in self.keys])


def joint(name: str) -> Joint:
    """Read the calibration."""
    definition, tree = read_definition(f"sip-lab/{name}", CalibrationSpec)
    data = measured_runs(dataset_path(place(tree, "dataset")), definition.runs)
    return Joint(definition, run_models(tree, definition, definition.runs), chosen(definition, data))


def neighbours(start: Array) -> list[Array]:
    """Return the start and one point beside it for each parameter."""
    steps = np.where(start + STEP <= 1.0, STEP, -STEP)
    return [start, *(start + np.eye(len(start))[i] * steps[i] for i in range(len(start)))]


@dataclass(frozen=True, slots=True)
class Slopes:
    """Simulations at a point and beside it in every parameter, from which every data set has its derivatives."""

    points: list[Array]
    seen: list[Observations]

    def of(self, own: Joint, data: Observations) -> tuple[Array, Array]:
        """Return the residuals at the point and their derivatives."""
        first, *rest = (own.residuals(each, data) for each in self.seen)
        moves = [float((point - self.points[0]).sum()) for point in self.points[1:]]
        return first, np.array([(column - first) / move for column, move in zip(rest, moves, strict=True)]).T


def slopes_at(own: Joint, start: Array) -> Slopes:
    """Play a point and those beside it."""
    points = neighbours(start)
    return Slopes(points, [own.play(point, own.definition.seed) for point in points])


def refit(own: Joint, data: Observations, slopes: Slopes, at: Array, best: Array, steps: int) -> SimpleNamespace:
    """Move from a point with residuals ``best``; return what an optimiser would."""
    _, matrix = slopes.of(own, data)
    reach = FARTHEST
    for _ in range(steps):
        box = np.maximum(-reach, -at) - 1e-9, np.minimum(reach, 1.0 - at) + 1e-9
        there = np.clip(at + lsq_linear(matrix, -best, bounds=box).x, 0.0, 1.0)
        found = own.residuals(own.play(there, own.definition.seed), data)
        if found @ found < best @ best:
            best, at = found, there
        else:
            reach /= 4.0
    return SimpleNamespace(x=at, fun=best, jac=matrix, cost=0.5 * float(best @ best), nfev=steps)


def row(own: Joint, known: Mapping[str, float], found: SimpleNamespace) -> dict[str, Any]:
    """Return truth and interval of every parameter."""
    result = fit_at(own.definition, own.keys, found, own.low, own.span)
    return {
        path: {"truth": value, "value": result.values[path], "low": result.low[path], "high": result.high[path]}
        for path, value in known.items()
    }


def main() -> None:
    """Refit the data sets; keep each as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--fit", default="growth")
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--steps", type=int, nargs=2, default=(2, 3))
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    own = joint(arguments.fit)
    known = truth(arguments.fit, own.definition)
    true = (np.array(list(known.values())) - own.low) / own.span
    signs = np.where(np.random.default_rng(FIRST_SEED).random(len(true)) < 0.5, -1.0, 1.0)
    at_truth = own.play(true, own.definition.seed)
    slopes = slopes_at(own, np.clip(true + AWAY * signs, 0.01, 0.99))
    data = [own.play(true, FIRST_SEED + number, FULL) for number in range(arguments.sets)]
    begun = [refit(own, d, slopes, slopes.points[0], slopes.of(own, d)[0], arguments.steps[0]) for d in data]
    slopes = slopes_at(own, np.clip(np.mean([each.x for each in begun], axis=0), 0.0, 1.0))
    refits: list[dict[str, Any]] = []
    for d, first in zip(data, begun, strict=True):
        found = refit(own, d, slopes, first.x, first.fun, arguments.steps[1])
        refits.append(row(own, known, found))
        there = own.residuals(at_truth, d)
        print(f"cost {first.cost:.2f}, {found.cost:.2f}; truth {0.5 * float(there @ there):.2f}", file=sys.stderr)
        if arguments.output:
            arguments.output.write_text(json.dumps(refits) + "\n", encoding="utf-8")
    print(table(arguments.fit, refits))


if __name__ == "__main__":
    main()
