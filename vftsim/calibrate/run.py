"""A calibration from its file to its record."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

from vftsim.calibrate import fitted
from vftsim.calibrate.definition import (
    CalibrationSpec,
    FreeParameter,
    check_environments,
    check_measured,
    in_unit,
    read_definition,
    run_of,
)
from vftsim.calibrate.figures import check_cpu, is_ratio, measured
from vftsim.calibrate.fit import chosen, coverage_of, profiles_of, search_for
from vftsim.calibrate.fitted import accepted, read_fit
from vftsim.calibrate.intervals import Fit, Profile, replications_of_chance
from vftsim.calibrate.validation import from_observations, measured_runs, run_models
from vftsim.composition.keys import base_unit, read, with_values
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.files import sha256_of
from vftsim.labs.dataset import Dataset, Observations, read_dataset
from vftsim.labs.named_files import dataset_path, model_file
from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table
from vftsim.spec.suggest import counted, listing, shown
from vftsim.spec.units import quantity_of
from vftsim.spec.yaml_source import Node
from vftsim.study.blocks.head import head
from vftsim.study.blocks.printed import Printed
from vftsim.study.execution import Execution
from vftsim.study.runs.model import Model, load_model
from vftsim.study.store.opened import identity_of, model_of, read_answer, read_manifest
from vftsim.study.store.store import RunCache

MOST_LABORATORIES = 1000
_FAR_SCALES, _MOST_FAR = 10.0, 3
_CUT = "the search ended after its {}, perhaps before the least squares: raise most_evaluations"
_ROUNDING = 1e-9
"""Share of the box by which a fit that ended at a bound may lie beyond it."""


@dataclass(slots=True)
class Calibrated(Printed):
    """A finished calibration."""

    definition: CalibrationSpec
    spec: ModelSpec
    fit: Fit
    record: dict[str, Any]

    @property
    def origin(self) -> Mapping[str, Any]:
        manifest: Mapping[str, Any] = self.record["manifest"]
        return manifest

    @classmethod
    def opened(cls, folder: Path) -> Self:
        model, record = model_of(read_manifest(folder)), read_answer(folder)
        definition = CalibrationSpec.model_validate(record["calibration"])
        return cls(definition, model.spec, fitted.from_record(record), record)

    def for_machines(self) -> dict[str, Any]:
        return self.record

    def blocks(self) -> list[Block]:
        """Return the fitted parameters, how well the data tell them, and where the search ended."""
        fit, definition = self.fit, self.definition
        count = len(fit.residuals)
        rms = (2 * fit.cost / count) ** 0.5
        cut = _CUT.format(counted(definition.most_evaluations, "evaluation"))
        shares = ["of chance"] if fit.chance_share else []
        rows = []
        for path, value in fit.values.items():
            ends = (_parameter(self, path, v) for v in (fit.low[path], fit.high[path]))
            value_text = "not identified" if path in fit.undetermined else _parameter(self, path, value)
            rows.append([path, value_text, *ends, *(f"{100.0 * fit.chance_share[path]:.0f} %" for _ in shares)])
        caption = f"{counted(count, 'observation')}, scaled residual {rms:.2f} rms, seed {definition.seed}; " + (
            "of chance: share of the interval's variance that the chance of runs has, by "
            f"{replications_of_chance(definition)} replications"
            if shares
            else "fitted before intervals of one replication held the chance of runs"
        )
        determined = len(fit.values) - len(fit.undetermined)
        columns = ["parameter", "value", "2.5 %", "97.5 %", *shares]
        return [
            *head(self.record["manifest"]["models"], definition.seed),
            Answer(
                f"the data identify {determined} of {counted(len(fit.values), 'parameter')}",
                f"What do the data of {definition.name} say of the model?",
                f"{counted(count, 'observation')}, scaled residual {rms:.2f} rms",
            ),
            _residuals(fit.residuals),
            Table(columns, rows, f"Fitted parameters: {definition.name}", caption),
            *([_ends(self)] if fit.ends else []),
            *(_profile(self, each) for each in fit.profiles),
            *([_coverage(self)] if fit.coverage else []),
            *_far(fit.residuals),
            *([Note(cut, warns=True)] if fit.is_cut else []),
            *(Note(f"not identified by the data: {note}", warns=True) for note in fit.not_identified),
        ]


def sip_model(named: Node, key: str, overrides: tuple[str, ...] = ()) -> tuple[Model, ModelSpec]:
    """Load the SIP model that a calibration or validation names; refuse one that is not there, or of another kind.

    A path is relative to the file that names it, else it is a shipped name.  The key that holds it is for messages.
    """
    model = _model(named, key, overrides)
    if model.spec.ramp is None:
        raise named.error(f"'{model.label}' has no workload of kind ims_bench, which this is about", key)
    return model, model.spec


def _model(named: Node, key: str, overrides: tuple[str, ...]) -> Model:
    return replace(load_model(model_file(named, key), overrides), label=str(named.value))


def run_calibration(
    name_or_path: str,
    execution: Execution,
    *,
    at: str | None = None,
    profile: bool = False,
    laboratories: int = 0,
) -> Calibrated:
    """Run one calibration, a shipped name or file.

    The seed is the definition's; evaluations that the execution's store has are not made again.  ``at`` is an earlier
    fit of the same parameters, whose values stay: nothing is searched.  ``profile`` asks for the least squares over
    each parameter's box, ``laboratories`` (2 or more; 0: none) how often the intervals hold the truth of so many
    simulated ones.
    """
    definition, tree = read_definition(name_or_path, CalibrationSpec)
    model, specs, data = _to_fit(definition, tree)
    units = units_of(definition, tree, specs)
    execution = replace(execution, seed=definition.seed)
    execution.check(definition.replications)
    jobs, progress = execution.worker_count, execution.progress
    values = None if at is None else values_of(at, definition)
    if laboratories and not 2 <= laboratories <= MOST_LABORATORIES:
        raise UsageError(f"--coverage: from 2 to {MOST_LABORATORIES} laboratories, got {laboratories}")
    progress.total(definition.searches * definition.most_evaluations)
    cache = RunCache(execution.store, _identity(definition, specs, data))
    try:
        ended = search_for(
            definition, specs, data, jobs, lambda _, cost: progress.advance(f"cost {cost:.1f}"), cache, values
        )
    except UsageError as error:  # of what is in sample, only a played model tells
        raise tree.at("in_sample").error(str(error), "in_sample") from None
    result = ended.fit
    if profile:
        result.profiles = profiles_of(ended.search, ended.units, ended.matrix, definition.replications)
    if laboratories:
        result.coverage = coverage_of(ended.search, ended.units, ended.matrix, laboratories, jobs)
    how = execution.manifest([model], "calibrate", definition.replications)
    return Calibrated(
        definition, model.spec, result, fitted.as_record(definition, model.spec, data, result, how, units)
    )


def _to_fit(definition: CalibrationSpec, tree: Node) -> tuple[Model, ModelSpec | dict[str, ModelSpec], Observations]:
    """Return the model, that of each run if they are several, and what was measured."""
    named, dataset = tree.at("model"), dataset_path(tree.at("dataset"))
    measurements = read_dataset(dataset)
    specs: ModelSpec | dict[str, ModelSpec]
    if definition.environment is not None:
        check_environments(tree, [definition.environment], measurements.spec.environments, "environment")
        model, specs = sip_model(named, "model", definition.overrides)
        data = measured(dataset, definition.environment)
        check_cpu(measurements, {definition.environment: specs})
    else:
        check_environments(tree, dict(definition.runs), measurements.spec.environments)
        model = _model(named, "model", definition.overrides)
        data, specs = measured_runs(dataset, definition.runs), run_models(tree, definition, definition.runs)
        check_cpu(measurements, specs)
    derived = {"touches"}.intersection(quantity for _, quantity in data)
    quantities_named, quantities = set(definition.quantities) - {"delays"}, [*measurements.units(), *derived]
    check_measured(tree.at("quantities"), quantities_named, quantities, definition.in_sample)
    _check_phases(definition, tree, data, measurements)
    _check_ratios(definition, tree, data)
    return model, specs, data


def _check_phases(definition: CalibrationSpec, tree: Node, data: Observations, dataset: Dataset) -> None:
    """Refuse phases in sample of which nothing is fitted, and held-out ones of which nothing was measured."""
    in_fit = {phase for phase, _ in chosen(definition, data)}
    phases, quantities = listing(dict.fromkeys(phase for phase, _ in data)), listing(definition.quantities)
    for label in definition.in_sample:
        if label not in in_fit:
            message = f"the dataset has no observations of {quantities} for {shown(label)}; its phases are {phases}"
            raise tree.at("in_sample").error(message, "in_sample")
    phases_of = {(each.environment, each.phase) for each in dataset.measurements}
    for label in definition.held_out:
        environments = definition.environments
        if (run_of(label, environments) if environments else (definition.environment, label)) not in phases_of:
            raise tree.at("held_out").error(f"nothing was measured in {shown(label)}", "held_out")


def _check_ratios(definition: CalibrationSpec, tree: Node, data: Observations) -> None:
    """Refuse observations in a fit that are compared by their ratio and have none."""
    for label, quantity in chosen(definition, data):
        if is_ratio(quantity) and data[label, quantity] <= 0.0:
            raise tree.at("quantities").error(
                f"{quantity} is {data[label, quantity]:g} in '{label}', and is compared by its ratio; leave it out, or "
                f"name it with a phase where it is above 0, as '{label}/{quantity}' is written",
                "quantities",
            )


def values_of(name_or_path: str, definition: CalibrationSpec) -> dict[str, float]:
    """Return the values that an earlier fit has for the parameters of a calibration.

    Refuses a fit that lacks one, or has one outside of the calibration's bounds.
    """
    values = read_fit(name_or_path).values
    if missing := [p.path for p in definition.parameters if p.path not in values]:
        raise UsageError(f"--at: '{name_or_path}' has no value for {missing[0]}, which this calibration fits")
    for parameter in definition.parameters:
        (low, high), value = parameter.bounds, values[parameter.path]
        if not low - _ROUNDING * (high - low) <= value <= high + _ROUNDING * (high - low):
            raise UsageError(
                f"--at: {parameter.path} is {value:.6g} in '{name_or_path}', outside of {low:.6g} to {high:.6g}, the "
                "bounds of this calibration"
            )
    return {p.path: values[p.path] for p in definition.parameters}


def _identity(
    definition: CalibrationSpec, specs: ModelSpec | dict[str, ModelSpec], data: Observations
) -> dict[str, Any]:
    """Return all that determines what an evaluation gives, except its point and replication."""
    models = specs if isinstance(specs, dict) else {"": specs}
    settings = definition.model_dump(mode="json", exclude={"most_evaluations", "replications", "starts"})
    of_models = sha256_of({name: Model("", each).digest() for name, each in models.items()})
    of_definition = {"calibration": sha256_of(settings), "data": sha256_of(from_observations(data))}
    return {**identity_of(of_models, definition.seed), **of_definition}


# As blocks


def _parameter(done: Calibrated, path: str, value: float) -> str:
    return in_unit(value, done.record["parameters"][path]["unit"])


def _far(residuals: Mapping[tuple[str, str], float]) -> list[Block]:
    """Return a warning of what the fitted model is farthest from, if that is no scatter."""
    far = sorted((each for each in residuals.items() if abs(each[1]) > _FAR_SCALES), key=lambda each: -abs(each[1]))
    if not far:
        return []
    named = ", ".join(f"{quantity} in '{phase}' by {value:+.0f}" for (phase, quantity), value in far[:_MOST_FAR])
    more = f" and {len(far) - _MOST_FAR} more" if len(far) > _MOST_FAR else ""
    causes = "a unit, a row that is no measurement, a setting of its run, or a model that does something else"
    return [Note(f"warning: scales from the fit: {named}{more}: {causes}", warns=True)]


def _residuals(residuals: Mapping[tuple[str, str], float]) -> Chart:
    """Return how far every observation is from the model, in units of its scatter."""
    names = list(dict.fromkeys(phase for phase, _ in sorted(residuals)))
    # A place is the number of its name: here the phase.
    points = [Point(float(names.index(phase)), value) for (phase, _), value in sorted(residuals.items())]
    axis, series = "simulated less measured, in units of the scatter", Series("observations", points, "dots")
    return Chart("Residuals by phase", "", axis, [series], [(0.0, "")], names=names)


def _profile(done: Calibrated, profile: Profile) -> Chart:
    """Return the least squares over a parameter's box; up to the line the data do not refuse a value."""
    factor, unit = (1e-6, ", ms") if done.record["parameters"][profile.path]["unit"] == "ns" else (1.0, "")
    points = [Point(value * factor, squares) for value, squares in zip(profile.values, profile.squares, strict=True)]
    return Chart(
        f"Profile of {profile.path}",
        f"{profile.path.rpartition('.')[2]}{unit}",
        "squares over the fit's",
        [Series("the other parameters free", points)],
        [(profile.limit, "95 %")],
        scale="log",
        at=[(done.fit.values[profile.path] * factor, "fitted")],
    )


def _coverage(done: Calibrated) -> Table:
    """Return how often intervals of simulated laboratories hold the truth."""
    rows: list[list[Cell]] = []
    for each in done.fit.coverage:
        values = (_parameter(done, each.path, v) for v in (each.truth, each.mean_value, each.mean_half_width))
        counts = (f"{count} of {each.laboratories}" for count in (each.inside, each.left_open))
        rows.append([each.path, *values, *counts])
    return Table(
        ["parameter", "true", "mean of fits", "mean half width", "held", "left open"],
        rows,
        "Coverage by simulated laboratories",
        "The model with the fitted values made the data, seed by seed; each was fitted anew, with intervals as above",
    )


def _ends(done: Calibrated) -> Table:
    ends, replications = done.fit.ends, done.definition.replications
    values = [[path, *(_parameter(done, path, end.values[path]) for end in ends)] for path in done.fit.values]
    return Table(
        ["parameter", *(f"start {number}" for number in range(1, len(ends) + 1))],
        [["cost", *(f"{end.cost:.4g}" for end in ends)], *values],
        "Where the search from each start ended",
        f"with the first of {replications} replications; from the best it goes on with all" if replications > 1 else "",
    )


def units_of(definition: CalibrationSpec, tree: Node, specs: ModelSpec | Mapping[str, ModelSpec]) -> dict[str, str]:
    """Return the unit of each parameter's numbers, by path, empty for plain ones; the tree is the definition's.

    Refuses a parameter that no run has, that is no number of the model, or whose bounds the model cannot have.
    """
    units, nodes = {}, tree.at("parameters").value
    assert isinstance(nodes, list)
    for parameter, node in zip(definition.parameters, nodes, strict=True):
        spec = specs if isinstance(specs, ModelSpec) else _model_with(parameter, node, specs)
        _check(parameter, node, spec)
        units[parameter.path] = base_unit(spec, parameter.path)
    return units


def _model_with(parameter: FreeParameter, node: Node, specs: Mapping[str, ModelSpec]) -> ModelSpec:
    """Return the model of a run in which a parameter is set; refuse one that is set in no run."""
    for run, spec in specs.items():
        if not parameter.environments or run.partition("/")[0] in parameter.environments:
            return spec
    raise node.error(f"no run in sample has {parameter.path}", "environments")


def _number_at(spec: ModelSpec, key: str, node: Node, key_of_parameter: str) -> Any:
    """Return what the model has at a key, which a parameter names at a place; refuse one that the model lacks."""
    try:
        return read(spec, key)
    except UsageError as error:
        raise node.error(str(error), key_of_parameter) from None


def _check(parameter: FreeParameter, node: Node, spec: ModelSpec) -> None:
    """Refuse what is no number of the model, a 0 among those that scale together, and bounds that it cannot have."""
    path, in_model = parameter.path, _number_at(spec, parameter.path, node, "path")
    if isinstance(in_model, bool) or not isinstance(in_model, int | float | None):
        raise node.error(f"{path} is {shown(in_model)} in the model, and no number", "path")
    scales = {key: _number_at(spec, key, node, "scales") for key in parameter.scales}
    together = {path: in_model, **scales} if scales else {}
    for key, value in together.items():
        if not isinstance(value, int | float) or not value:
            raise node.error(f"{key} is {value or 0} in the model, of which there are no multiples", "scales")
    quantity = quantity_of(base_unit(spec, path))
    numbers = {"low": parameter.bounds[0], "high": parameter.bounds[1], "start": parameter.first}
    for key, number in numbers.items():
        unit = parameter.unit(key)
        if in_model is not None and number and unit != quantity and (unit or (quantity and quantity.whole)):
            needs = f"a {quantity.name} such as '{quantity.example}'" if quantity else "a plain number"
            raise node.error(f"{path} is {needs}, not {shown(getattr(parameter, key))}", key)
        scaled = {other: value * number / in_model for other, value in together.items() if in_model}
        if why := accepted(with_values(spec, {path: number} | scaled)):
            raise node.error(f"the model cannot have {shown(getattr(parameter, key))}: {why}", key)
