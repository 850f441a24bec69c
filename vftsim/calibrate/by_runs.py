"""Validation by runs: each measured run is a run of the model by itself, and targets say how near it must come.

CPU is compared at the measured load of each run.  A run's repeats are averaged; their range is the noise that a
prediction cannot beat, and a target in points may lie beyond it.
"""

import math
from collections import ChainMap
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np

from vftsim.calibrate.accuracy import LINE, QUEUE, WITHOUT, Base, Row, Verdict, beside_nulls, present_nulls, rows_of
from vftsim.calibrate.capacities import left_out, system_of
from vftsim.calibrate.definition import check_environments, check_measured, matches, run_of
from vftsim.calibrate.figures import check_cpu, others, unit_of_figure
from vftsim.calibrate.fit import at_measured_traffic, at_other_loads
from vftsim.calibrate.validated import Validated
from vftsim.calibrate.validation import Play, Plays, RunTarget, RunValidationSpec, measured_runs, run_models
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.ramps import shipped_ramps
from vftsim.spec.suggest import listing, shown
from vftsim.spec.yaml_source import Node
from vftsim.study.runs.model import Model

Repeats = Mapping[tuple[str, str], list[float]]


def planned(
    spec: RunValidationSpec, tree: Node, environments: Sequence[str], dataset: Path, settings: Sequence[str]
) -> Plays:
    labels = (run_of(label, spec.environments) for label in (*spec.fitted, *spec.predicted))
    runs = [run for run in labels if run[0] in environments]
    measurements = read_dataset(dataset)
    check_environments(tree, dict(runs), measurements.spec.environments)
    plays = Plays(dataset, Path(tree.file).parent, data={"": measured_runs(dataset, runs)})
    units = measurements.units()
    check_measured(tree.at("quantities"), spec.quantities, units)
    for number, target in enumerate(spec.targets):
        check_measured(tree.at("targets", number, "quantities"), target.quantities, units)
    plays.models = run_models(tree, spec, runs, settings)
    check_cpu(measurements, plays.models)
    plays.shown = [Model(name, each) for name, each in plays.models.items()]
    plays.plays = {name: Play(each, spec.replications) for name, each in plays.models.items()}
    return plays


def judge(result: Validated, spec: RunValidationSpec, plays: Plays, runs_of: Mapping[str, list[Observations]]) -> None:
    data, dataset = plays.data[""], plays.dataset
    brought = {name: [at_measured_traffic(run, data, plays.models) for run in runs] for name, runs in runs_of.items()}
    result.rows = compared(spec, data, brought, alone_of(spec, dataset))
    result.warnings += [*not_given(spec, data, brought), *at_other_loads(together(runs_of.values()), data)]
    result.warnings += silent_nulls(spec, result.rows)
    for environment in dict.fromkeys(name.partition("/")[0] for name in runs_of):
        if ramp := system_of(shipped_ramps(), dataset, environment):
            runs = together(each for name, each in brought.items() if name.startswith(f"{environment}/"))
            result.left_out += left_out(shipped_ramps(), ramp, runs)
    repeats = {
        (f"{environment}/{phase}", quantity): values
        for environment in spec.environments
        for (phase, quantity), values in read_dataset(dataset).repeats(environment).items()
    }
    for target in spec.targets:
        result.add("", [verdict_beside(spec, target, result.rows, data, repeats)])


def together(runs: Iterable[Sequence[Observations]]) -> list[Observations]:
    """Return the replications of several runs, the first of all as one, and so on."""
    return [dict(ChainMap(*each)) for each in zip(*runs, strict=True)]


def compared(
    spec: RunValidationSpec, data: Observations, runs_of: Mapping[str, Sequence[Observations]], alone: Observations
) -> list[Row]:
    """Return the rows of the runs that were played, by what was measured of them and of the system alone."""
    return rows_of(
        data,
        together(runs_of.values()),
        partial(_is_compared, spec),
        lambda run: "in" if run in spec.fitted else "out",
        lambda run, quantity: nulls_of(spec, alone, run, quantity, data[run, "load"]),
    )


def not_given(spec: RunValidationSpec, data: Observations, played: Mapping[str, Sequence[Observations]]) -> list[str]:
    """Return a line for every quantity to compare that was measured in runs in which the model does not have it."""
    present = {key for runs in played.values() for run in runs for key in run}
    runs_of: dict[str, list[str]] = {}
    for run, quantity in data:
        if run in played and _is_compared(spec, quantity) and (run, quantity) not in present:
            runs_of.setdefault(quantity, []).append(run)
    return [
        f"{shown(quantity)} was measured in {listing(runs)}, but the model does not have it there; nothing is compared"
        f"{others(quantity, (name for _, name in present))}"
        for quantity, runs in runs_of.items()
    ]


def silent_nulls(spec: RunValidationSpec, rows: Iterable[Row]) -> list[str]:
    """Return a line where null models are asked for and none says anything of an environment that they know."""
    known_to_nulls = {spec.nulls.base, *spec.nulls.left} if spec.nulls else set()
    nulls = [row.nulls for row in rows if row.environment in known_to_nulls]
    if spec.nulls is None or not nulls or any(nulls):
        return []
    return [
        f"no null model says anything: each needs load and cpu of '{spec.nulls.base}' beside what is compared, as "
        "measured in fitted runs"
    ]


def alone_of(spec: RunValidationSpec, dataset: Path) -> Observations:
    """Return what was measured of the system alone, by phase; nothing without null models."""
    return read_dataset(dataset).observations(spec.nulls.base) if spec.nulls else {}


def nulls_of(spec: RunValidationSpec, alone: Observations, label: str, quantity: str, load: float) -> dict[str, float]:
    """Return what null models give of a run; nothing of one whose system is another than the base's."""
    environment = label.partition("/")[0]
    if spec.nulls is None or environment not in {spec.nulls.base, *spec.nulls.left}:
        return {}
    base, share = f"{spec.nulls.base}/", spec.nulls.left.get(environment, 100.0) / 100.0
    fitted = Base.of(alone, [run.removeprefix(base) for run in spec.fitted if run.startswith(base)], quantity)
    every = Base.of(alone, list(dict.fromkeys(phase for phase, _ in alone)), quantity)
    without = None if environment == spec.nulls.base else every.between(load)
    return present_nulls({LINE: fitted.curve(load, 1), QUEUE: fitted.queue(load, share), WITHOUT: without})


def verdict_beside(
    spec: RunValidationSpec, target: RunTarget, rows: Iterable[Row], data: Observations, repeats: Repeats
) -> Verdict:
    """Hold the predicted rows that a target is about against it, and null models that say something of all of them."""
    about = [row for row in rows if row.sample == "out" and _is_about(target, row)]
    (verdict,) = beside_nulls(partial(_judged, spec, target, data, repeats), about, of_all=True)
    return verdict


def _judged(
    spec: RunValidationSpec, target: RunTarget, data: Observations, repeats: Repeats, about: list[Row]
) -> list[Verdict]:
    quantities = ", ".join(target.quantities)
    if not about:
        return [Verdict(f"{quantities} of predicted runs", False, "no such row")]
    if target.median is not None:
        median = 100.0 * float(np.median([_relative(row) for row in about]))
        text = f"median error of {quantities} at most {target.median:g} %"
        return [Verdict(text, median <= target.median, f"{median:.1f} % over {len(about)}")]
    assert target.points is not None
    noise = [(row, *_range_of(spec, row, data, repeats)) for row in about]
    beyond = [(max(low - row.predicted, row.predicted - high, 0.0), row) for row, low, high in noise]
    worst, where = max(beyond, key=lambda pair: pair[0])
    met = sum(value <= target.points for value, _ in beyond)
    unit = unit_of_figure(about[0].quantity) or ""
    several = len({row.quantity for row in about}) > 1
    return [
        Verdict(
            f"{quantities} within {target.points:g} {'points' if unit == '%' else unit} beyond the range of repeats",
            met == len(beyond),
            f"{met} of {len(beyond)}; worst {worst:.1f} ({where.run}{f', {where.quantity}' if several else ''})",
        )
    ]


def _is_compared(spec: RunValidationSpec, quantity: str) -> bool:
    return any(matches(quantity, pattern) for pattern in spec.quantities)


def _is_about(target: RunTarget, row: Row) -> bool:
    return (
        any(matches(row.quantity, pattern) for pattern in target.quantities)
        and any(matches(row.run, pattern) for pattern in target.runs)
        and not any(matches(row.run, pattern) for pattern in target.without)
    )


def _relative(row: Row) -> float:
    """Return a prediction's relative error, without its sign; what is not 0 is infinitely far from a measured 0."""
    if row.measured:
        return abs(row.predicted / row.measured - 1.0)
    return math.inf if row.predicted else 0.0


def _range_of(spec: RunValidationSpec, row: Row, data: Observations, repeats: Repeats) -> tuple[float, float]:
    """Return the range of a run's repeats, or that of the nearest load of ``repeats_of`` around what was measured."""
    values = repeats[row.run, row.quantity]
    if len(values) > 1 or spec.repeats_of is None:
        return min(values), max(values)
    others = [
        (abs(float(np.mean(repeats[run, "load"])) - data[row.run, "load"]), each)
        for (run, quantity), each in repeats.items()
        if quantity == row.quantity
        and len(each) > 1
        and any(each)
        and run.partition("/")[0] == spec.repeats_of
        and (run, "load") in repeats
        and (row.run, "load") in data
    ]
    if not others:
        return min(values), max(values)
    nearest = min(others, key=lambda pair: pair[0])[1]
    mean = float(np.mean(nearest))
    return row.measured * min(nearest) / mean, row.measured * max(nearest) / mean
