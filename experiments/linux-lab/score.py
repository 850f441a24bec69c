"""The scores of the Linux lab's protocol: given prices, given the run's own CPU a call, and two that know less.

Prints, as Markdown, scores by environment, the factors on prices that meet each run's own CPU, and the load at which
`base` saturates.

    python experiments/linux-lab/score.py [-n REPLICATIONS]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise

import numpy as np

from vftsim.calibrate.accuracy import Row
from vftsim.calibrate.by_runs import compared
from vftsim.calibrate.definition import matches, read_definition, run_of
from vftsim.calibrate.figures import as_run, observe
from vftsim.calibrate.fit import at_measured_traffic
from vftsim.calibrate.validation import RunValidationSpec, measured_runs, run_models
from vftsim.composition.keys import read, with_values
from vftsim.composition.model import ModelSpec
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.named_files import dataset_path
from vftsim.report.markdown import markdown_table

NAME = "linux-lab/validation"
OVERLOADED = ("base/r650", "base/r750", "q40/r280", "eq/r320")
LEFT = {"q40": 0.4, "eq": 0.5, "p2t50": 1 - 2.27 / 50, "p5t50": 1 - 5.27 / 50, "p10t50": 1 - 10.27 / 50}
PROXY = "domains.sut.applications.proxy"
INFLATION = "domains.sut.cpu_inflation"
PRICES = (f"{PROXY}.touch_cost", f"{PROXY}.register_touch_cost", f"{PROXY}.script.cost")
SCORED = ("base", "q40", "eq", "p2t50", "p5t50", "p10t50", "out1")
HEAD = ("", "all", *SCORED)
PERCENTILES = ("SES2/p[59]0", "invite200/p[59]0", "REL1/p[59]0")


def label(row: Row) -> str:
    """Name of a row's run."""
    return f"{row.environment}/{row.phase}"


def percentiles(rows: Iterable[Row]) -> list[Row]:
    """Rows of predicted percentiles that count."""
    return [
        row
        for row in rows
        if row.sample == "out"
        and label(row) not in OVERLOADED
        and row.environment not in ("noloop", "register")
        and any(matches(row.quantity, pattern) for pattern in PERCENTILES)
    ]


def knows_less(row: Row, data: dict[str, Observations], share: float) -> float | None:
    """What `base` had at the row's load over a share of the core; a straight line of the logarithm between rates."""
    base = data["base"]
    rates = sorted({phase for phase, quantity in base if quantity == "load"}, key=lambda phase: int(phase[1:]))
    points = [(base[r, "load"], math.log(base[r, row.quantity])) for r in rates if (r, row.quantity) in base]
    load = data[row.environment][row.phase, "load"] / share
    if not points[0][0] <= load <= points[-1][0]:
        return None
    return math.exp(float(np.interp(load, [x for x, _ in points], [y for _, y in points])))


def told(name: str, errors: Mapping[str, list[float]]) -> tuple[str, ...]:
    """Return median errors of all and by environment in percent, how many there are behind them."""
    everything = [error for each in errors.values() for error in each]
    cells = [everything, *(errors.get(environment, []) for environment in SCORED)]
    return name, *(f"{100 * np.median(each):.1f} ({len(each)})" if each else "" for each in cells)


def by_environment(rows: list[Row]) -> dict[str, list[float]]:
    """Relative errors of the predictions."""
    found: dict[str, list[float]] = {}
    for row in rows:
        found.setdefault(row.environment, []).append(abs(row.predicted / row.measured - 1.0))
    return found


def played(
    factors: Mapping[str, float],
    replications: int,
    changed: Callable[[ModelSpec], ModelSpec] = lambda spec: spec,
    speeds: Sequence[float] = (),
    *,
    every: bool = False,
) -> list[Row]:
    """Rows of the predicted runs that are not overloaded, all prices of each run times its factor and a replication's.

    Parameters
    ----------
    speeds : sequence of float
        Factors on all work by replication; 1 if there are none.
    every : bool
        Whether overloaded runs and those without loop or calls are played, too.
    """
    spec, tree = read_definition(NAME, RunValidationSpec)
    labels = [
        name
        for name in spec.predicted
        if every or (name not in OVERLOADED and not name.startswith(("noloop", "register")))
    ]
    runs = [run_of(name, spec.environments) for name in labels]
    data = measured_runs(dataset_path(tree.at("dataset")), runs)
    models = {
        name: scaled(changed(model), factors.get(name, 1.0)) for name, model in run_models(tree, spec, runs).items()
    }
    seen = {
        name: [
            at_measured_traffic(
                as_run(observe(with_values(model, {INFLATION: speed}), spec.seed, r), name), data, models
            )
            for r, speed in enumerate(speeds or [1.0] * replications)
        ]
        for name, model in models.items()
    }
    return compared(spec, data, seen, {})


def own_prices(rows: list[Row]) -> dict[str, float]:
    """Factor on all prices by which each run meets its own measured CPU."""
    return {label(row): row.measured / row.predicted for row in rows if row.quantity == "cpu"}


def scaled(spec: ModelSpec, factor: float) -> ModelSpec:
    """The model with all prices times a factor."""
    return with_values(spec, {path: read(spec, path) * factor for path in PRICES})


def saturation(replications: int) -> None:
    """Print shares of the calls offered that are completed, measured and by the model, and where they pass 99 %."""
    spec, tree = read_definition(NAME, RunValidationSpec)
    runs = [("base", phase) for phase in ("r425", "r475", "r550", "r650")]
    data = measured_runs(dataset_path(tree.at("dataset")), runs)
    measured = [
        (data[f"base/{p}", "load"], data[f"base/{p}", "completed"] / data[f"base/{p}", "load"]) for _, p in runs
    ]
    model = run_models(tree, spec, [("base", "r550")])["base/r550"]
    found: list[tuple[float, float]] = []
    lines = []
    for load in range(500, 651, 25):
        at = with_values(model, {"workloads.calls.steps.initial": float(load)})
        seen = [as_run(observe(at, spec.seed, r), "x") for r in range(replications)]
        shares = [each["x", "completed"] / each["x", "load"] for each in seen]
        found.append((load, float(np.mean(shares))))
        cpu, below = np.mean([each["x", "cpu"] for each in seen]), sum(share < 0.99 for share in shares)
        lines.append((str(load), f"{100 * found[-1][1]:.1f}", f"{cpu:.1f}", f"{below} of {replications}"))
    print("\n## Where base saturates\n")
    print(markdown_table(("calls/s, model", "completed, %", "CPU, %", "runs below 99 %"), lines))
    places = ", ".join(f"{name} {_crossing(points):.0f}" for name, points in (("measured", measured), ("model", found)))
    print(f"\n99 % completed at, calls/s: {places}")


def _crossing(points: list[tuple[float, float]]) -> float:
    """Load at which the share falls below 99 %, a straight line between the loads beside it."""
    for (x, y), (next_x, next_y) in pairwise(points):
        if y >= 0.99 > next_y:
            return x + (next_x - x) * (y - 0.99) / (y - next_y)
    return float("nan")


def main() -> None:
    """Print the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20, help="replications of each run")
    count = parser.parse_args().n
    first = played({}, count)
    spec, tree = read_definition(NAME, RunValidationSpec)
    dataset = read_dataset(dataset_path(tree.at("dataset")))
    data = {name: dataset.observations(name) for name in spec.environments}
    rows = percentiles(first)
    factors = own_prices(first)
    lines = [
        told("given prices", by_environment(rows)),
        told("given the run's own CPU a call", by_environment(percentiles(played(factors, count)))),
    ]
    for name, shares in (("`base` at the same rate", {}), ("`base` at the rate over the share left", LEFT)):
        errors: dict[str, list[float]] = {}
        for row in rows:
            less = knows_less(row, data, shares.get(row.environment, 1.0)) if row.environment != "base" else None
            if less is not None:
                errors.setdefault(row.environment, []).append(abs(less / row.measured - 1.0))
        lines.append(told(name, errors))
    print("## Median error of percentiles, % (rows)\n")
    print(markdown_table(HEAD, lines))
    print("\n## Factor on prices by which a run meets its own CPU\n")
    print(markdown_table(("run", "factor"), [(name, f"{factor:.2f}") for name, factor in factors.items()]))
    saturation(count)


if __name__ == "__main__":
    main()
