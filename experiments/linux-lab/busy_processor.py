"""Prices that hang on how busy the processor is, beside rivals: all fitted anew to the inputs, on runs not shown them.

What is run, and what counts, stands in calibration/linux-lab/protocol-speed.md.

    python experiments/linux-lab/busy_processor.py [-n REPLICATIONS]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist

import numpy as np
from rate_price import BASE, GROUPS, BaseRuns, scores
from score import INFLATION, NAME, PERCENTILES, PROXY, percentiles, played, scaled
from structures import STRUCTURES

from vftsim.calibrate.accuracy import Row
from vftsim.calibrate.definition import CalibrationSpec, FreeParameter, matches, read_definition
from vftsim.calibrate.fit import parameter_values, search_for
from vftsim.calibrate.validation import RunValidationSpec, measured_runs, run_models
from vftsim.composition.keys import with_values
from vftsim.composition.model import ModelSpec
from vftsim.labs.dataset import read_dataset
from vftsim.labs.named_files import dataset_path
from vftsim.report.markdown import markdown_table

GROWTH = f"{PROXY}.growth_with_utilization"
LIMIT = f"{PROXY}.growth_up_to"
HALF_LIFE = {f"{PROXY}.utilization_time": 32e6 / math.log(2.0)}


@dataclass
class Structure:
    """A structure fitted to the inputs: its values, and factors on all prices of a run."""

    values: dict[str, float] = field(default_factory=dict)
    factors: dict[str, float] = field(default_factory=dict)
    processor: bool = False
    """Whether the utilization is the processor's, which a competitor that spins fills."""

    def on(self, spec: ModelSpec) -> ModelSpec:
        """Return a model with this structure."""
        valued = with_values(spec, self.values)
        if not self.processor or "hog" not in spec.domains:
            return valued
        busy = 1.0 + self.values[GROWTH] * self.values[LIMIT] / 100.0
        return scaled(with_values(valued, {GROWTH: 0.0}), busy)


def fitted(
    name: str,
    extra: tuple[FreeParameter, ...] = (),
    factors: Mapping[str, float] | None = None,
    constant: Mapping[str, float] | None = None,
) -> dict[str, float]:
    """Fit all parameters of the shipped fit, and further ones; print the mean square and the values; return them."""
    whole, tree = read_definition("linux-lab/base", CalibrationSpec)
    definition = whole.model_copy(update={"parameters": (*whole.parameters, *extra)})
    data = measured_runs(dataset_path(tree.at("dataset")), whole.runs)
    models = {
        run: with_values(model, {INFLATION: (factors or {}).get(run, 1.0), **(constant or {})})
        for run, model in run_models(tree, whole, whole.runs).items()
    }
    found = search_for(definition, models, data).fit
    spec = next(iter(models.values()))
    values = [found.values[each.path] for each in definition.parameters]
    told = ", ".join(f"{path.rpartition('.')[2]} {value:.4g}" for path, value in found.values.items())
    print(f"- {name}: mean square {2 * found.cost / len(found.residuals):.2f}; {told}", flush=True)
    return {**parameter_values(spec, definition.parameters, np.array(values)), **(constant or {})}


def hours(count: int) -> list[float]:
    """Return factors on all work, at even quantiles of the spread between repeats of fitted base rates."""
    _, tree = read_definition("linux-lab/base", CalibrationSpec)
    repeats = read_dataset(dataset_path(tree.at("dataset"))).repeats("base")
    squares, free = 0.0, 0
    for run in BASE:
        phase = run.partition("/")[2]
        costs = np.log(np.array(repeats[phase, "cpu"]) / np.array(repeats[phase, "load"]))
        squares += float(((costs - costs.mean()) ** 2).sum())
        free += len(costs) - 1
    spread = math.sqrt(squares / free)
    print(f"\nSpeed of the hour: spread {100 * spread:.1f} %, {free} degrees of freedom\n", flush=True)
    return [math.exp(spread * NormalDist().inv_cdf((n + 0.5) / count)) for n in range(count)]


def signs(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return how many percentiles of quota and competitor are too low, and the middle ratio to what was measured."""
    lines = []
    for name, each in rows.items():
        cells = []
        for group in ("quota", "competitor"):
            ratios = [r.predicted / r.measured for r in percentiles(each) if r.environment in GROUPS[group]]
            low = sum(ratio < 1.0 for ratio in ratios)
            cells.append(f"{low} of {len(ratios)}, {np.median(ratios):.2f}")
        lines.append((name, *cells))
    return markdown_table(("too low, median ratio", "quota", "competitor"), lines)


def by_repeats() -> str:
    """Return how far each repeat of a run is from the mean of its others, median over percentiles: the lab's noise."""
    _, tree = read_definition(NAME, RunValidationSpec)
    dataset = read_dataset(dataset_path(tree.at("dataset")))
    lines = []
    for group in ("quota", "competitor"):
        pairs = []
        for environment in GROUPS[group]:
            for (_, quantity), values in dataset.repeats(environment).items():
                if len(values) > 1 and any(matches(quantity, pattern) for pattern in PERCENTILES):
                    pairs += [(x, (sum(values) - x) / (len(values) - 1)) for x in values]
        errors = [abs(one / others - 1.0) for one, others in pairs]
        lines.append((group, f"{100 * np.median(errors):.1f} ({len(errors)})"))
    return markdown_table(("runs with repeats", "median error, % (values)"), lines)


def by_rate(runs: BaseRuns, power: float) -> Callable[[Sequence[str]], dict[str, float]]:
    """Return what gives runs the factor on all prices of their rate, to a power; REGISTERs have no rate of calls."""
    known = {name: float(each) for name, each in zip(BASE, runs.measured / runs.cpu(1.0, 0.0), strict=True)}
    known |= runs.factors_by_rate() | {"noloop/r150": known["base/r150"]}
    return lambda names: {name: known[name] ** power for name in names if not name.startswith("register")}


def main() -> None:
    """Fit, predict, and print the scores."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20, help="replications of each predicted run")
    count = parser.parse_args().n
    whole, _ = read_definition("linux-lab/base", CalibrationSpec)
    runs = BaseRuns()
    predicted = list(runs.factors_by_rate())
    print(f"## A repeat for the others\n\n{by_repeats()}\n\n## Fitted anew\n", flush=True)
    busy = fitted("busy processor", STRUCTURES["utilization"], constant=HALF_LIFE)
    structures = {
        "one price": Structure(),
        "waking": Structure(fitted("waking", STRUCTURES["wake-up"])),
        "busy processor": Structure(busy, processor=True),
        "busy domain": Structure(busy),
    }
    for name, power in (("price of its rate", 1.0), ("the other way", -1.0)):
        factors = by_rate(runs, power)
        structures[name] = Structure(fitted(name, factors=factors(whole.in_sample)), factors(predicted))
    speeds = hours(count)
    for title, each in (("As it is", [1.0] * count), ("With the speed of the hour", speeds)):
        found = {name: played(s.factors, count, s.on, each) for name, s in structures.items()}
        print(
            f"\n## {title}\n\n{scores(found)}\n\n## Signs: {title[0].lower()}{title[1:]}\n\n{signs(found)}", flush=True
        )


if __name__ == "__main__":
    main()
