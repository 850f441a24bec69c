"""A price of a call that hangs on the rate, read off the Linux lab's base runs alone, on what those runs do not show.

A message that finds all workers waiting costs more (`wakeup_cost`: the processor leaves an idle state, caches are
cold), and fewer do as the rate grows.  One factor on all prices and the cost of waking are read off the CPU of the
fitted base runs, by least squares over two simulations of each; nothing else is changed.  First each base run is left
out in turn, beside one factor alone; then quota, competitor, stops and outage are predicted, beside the shipped prices
and null models.  `CPU a call of its rate` is no mechanism: all prices of a run times what base runs cost at its rate.

    python experiments/linux-lab/rate_price.py [-n REPLICATIONS]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
from score import PRICES, PROXY, label, percentiles, played

from vftsim.calibrate.accuracy import LINE, QUEUE, WITHOUT, Row
from vftsim.calibrate.by_runs import alone_of, nulls_of
from vftsim.calibrate.definition import read_definition, run_of
from vftsim.calibrate.figures import as_run, observe
from vftsim.calibrate.fit import at_measured_traffic
from vftsim.calibrate.validation import RunValidationSpec, measured_runs, run_models
from vftsim.composition.keys import read, with_values
from vftsim.composition.model import ModelSpec
from vftsim.labs.named_files import dataset_path
from vftsim.report.markdown import markdown_table

NAME = "linux-lab/validation"
BASE = ("base/r50", "base/r150", "base/r250", "base/r350", "base/r425")
WAKING = f"{PROXY}.wakeup_cost"
PROBE_NS = 100_000.0
ROUNDS = 3
GROUPS = {
    "quota": ("q40",),
    "competitor": ("eq",),
    "stops": ("p2t50", "p5t50", "p10t50"),
    "outage": ("out1",),
    "base, near saturation": ("base",),
}


def priced(spec: ModelSpec, factor: float, waking_ns: float) -> ModelSpec:
    """Return the model with all prices times a factor and a cost of waking."""
    return with_values(spec, {WAKING: waking_ns, **{path: read(spec, path) * factor for path in PRICES}})


class BaseRuns:
    """The fitted base runs: CPU measured, and by the model at a factor and a cost of waking."""

    def __init__(self) -> None:
        spec, tree = read_definition(NAME, RunValidationSpec)
        runs = [run_of(name, spec.environments) for name in BASE]
        self.seed = spec.seed + 1
        self.data = measured_runs(dataset_path(tree.at("dataset")), runs)
        self.models = run_models(tree, spec, runs)
        self.measured = np.array([self.data[name, "cpu"] for name in BASE])

    def cpu(self, factor: float, waking_ns: float) -> np.ndarray:
        """Return CPU in percent of each run, at its measured load."""
        found = []
        for name in BASE:
            model = priced(self.models[name], factor, waking_ns)
            seen = as_run(observe(model, self.seed, 0), name)
            found.append(at_measured_traffic(seen, self.data, {name: model})[name, "cpu"])
        return np.array(found)

    def factors_by_rate(self) -> dict[str, float]:
        """Return, by predicted run, what a call costs in the base runs at its rate over what it costs in the model."""
        spec, tree = read_definition(NAME, RunValidationSpec)
        runs = [run_of(name, spec.environments) for name in spec.predicted]
        data = measured_runs(dataset_path(tree.at("dataset")), runs)
        loads = np.array([self.data[name, "load"] for name in BASE])
        factors = self.measured / self.cpu(1.0, 0.0)
        return {name: float(np.interp(data[name, "load"], loads, factors)) for name in spec.predicted}

    def read_off(self) -> tuple[float, float, np.ndarray, np.ndarray]:
        """Return factor and cost of waking, and CPU by the prices and by waking alone near them."""
        factor, waking_ns = 1.0, 0.0
        for _ in range(ROUNDS):
            work = self.cpu(factor, 0.0) / factor
            waking = (self.cpu(factor, PROBE_NS) - work * factor) / PROBE_NS
            factor, waking_ns = solved(work, waking, self.measured)
        return factor, waking_ns, work, waking


def solved(work: np.ndarray, waking: np.ndarray, measured: np.ndarray) -> tuple[float, float]:
    """Return the factor and the cost of waking, neither below 0, with the least squares of CPU."""
    (factor, waking_ns), *_ = np.linalg.lstsq(np.column_stack([work, waking]), measured, rcond=None)
    if waking_ns < 0.0:
        return float(work @ measured / (work @ work)), 0.0
    return float(factor), float(waking_ns)


def left_out(runs: BaseRuns, work: np.ndarray, waking: np.ndarray) -> str:
    """Return the error of CPU at each base run that is left out: with waking, one factor alone, and the line."""
    loads = np.array([runs.data[name, "load"] for name in BASE])
    rows = []
    for n, name in enumerate(BASE):
        rest = np.arange(len(BASE)) != n
        factor, waking_ns = solved(work[rest], waking[rest], runs.measured[rest])
        alone = float(work[rest] @ runs.measured[rest] / (work[rest] @ work[rest]))
        line = np.polyval(np.polyfit(loads[rest], runs.measured[rest], 1), loads[n])
        found = (factor * work[n] + waking_ns * waking[n], alone * work[n], line)
        rows.append((name, f"{runs.measured[n]:.1f}", *(f"{each - runs.measured[n]:+.1f}" for each in found)))
    return markdown_table(("left out", "CPU %", "with waking", "one price", "line"), rows)


def scores(rows: Mapping[str, list[Row]]) -> str:
    """Return median errors by group: percentiles in percent and CPU in points, each with the null models'."""
    spec, tree = read_definition(NAME, RunValidationSpec)
    dataset = dataset_path(tree.at("dataset"))
    alone = alone_of(spec, dataset)
    data = measured_runs(dataset, [run_of(name, spec.environments) for name in spec.predicted])
    lines = []
    for group, environments in GROUPS.items():
        for what, chosen in (("percentiles, %", percentiles), ("CPU, points", _cpu)):
            cells = []
            first: list[Row] = []
            for structure_rows in rows.values():
                first = [row for row in chosen(structure_rows) if row.environment in environments]
                relative = what.startswith("p")
                error = median_error([(row.predicted, row.measured) for row in first], relative=relative)
                inside = sum(row.is_inside for row in first)
                cells.append(f"{error * (100 if relative else 1):.1f} ({inside} of {len(first)} inside)")
            for null in (LINE, QUEUE, WITHOUT):
                pairs = []
                for row in first:
                    said = nulls_of(spec, alone, label(row), row.quantity, data[label(row), "load"])
                    if null in said:
                        pairs.append((said[null], row.measured))
                error = median_error(pairs, relative=relative)
                cells.append(f"{error * (100 if relative else 1):.1f}" if pairs else "")
            lines.append((group, what, *cells))
    return markdown_table(("runs", "median error", *rows, LINE, QUEUE, WITHOUT), lines)


def median_error(pairs: Sequence[tuple[float, float]], *, relative: bool) -> float:
    """Return the median error of predictions, each beside what was measured: of one, or in the quantity's unit."""
    errors = [abs(p / m - 1.0) if relative else abs(p - m) for p, m in pairs if m or not relative]
    return float(np.median(errors)) if errors else float("nan")


def _cpu(rows: list[Row]) -> list[Row]:
    return [row for row in rows if row.quantity == "cpu" and row.sample == "out"]


def main() -> None:
    """Read the price off, leave base runs out, predict the others."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=5, help="replications of each predicted run")
    count = parser.parse_args().n
    runs = BaseRuns()
    factor, waking_ns, work, waking = runs.read_off()
    print(f"## Read off\n\nfactor on all prices {factor:.3f}, waking {waking_ns / 1000:.1f} us\n", flush=True)
    print("## Base runs left out in turn\n")
    print(left_out(runs, work, waking), flush=True)
    by_rate = runs.factors_by_rate()
    found = {
        "one price, as shipped": played({}, count),
        "price that hangs on the rate": played({}, count, lambda spec: priced(spec, factor, waking_ns)),
        "CPU a call of its rate": played(by_rate, count),
    }
    print("\n## Predicted\n")
    print(scores(found))


if __name__ == "__main__":
    main()
