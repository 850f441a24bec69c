"""Validation files: which models are held against which measurements, and how close they must come.

A validation of ramps has a model for each environment, which plays all its phases; one by runs names one model at its
top, and each measured run is a run of it by itself.

Its runs are the ramp of an environment, or measured runs, each in some replications.  A play is called after what it
stands for: ``environment`` for all phases, ``environment/phase`` for that phase alone.  Measured runs are runs of the
model by themselves, each with its own settings.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, model_validator

from vftsim.calibrate.definition import CalibrationSpec, read_definition, run_of
from vftsim.calibrate.figures import as_run, check_units, observations_of, restated
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.views import ramp_of
from vftsim.errors import ModelFileError
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.definition import DatasetSpec
from vftsim.labs.named_files import model_file
from vftsim.labs.ramps import BEFORE_THE_STEPS, MeasuredRamps
from vftsim.spec import Items, Percent, PositiveDurationNs, Spec, find, json_schema, read_document
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.suggest import shown
from vftsim.spec.yaml_source import Node
from vftsim.study.execution import Execution
from vftsim.study.runs.model import Model, load_model
from vftsim.workloads.ramp import ramp_end


class EnvironmentSpec(Spec):
    """One measured environment and the model that predicts it."""

    model: str = Field(description="Model: a file relative to this one, or a shipped name.")
    fitted_steps: int = Field(ge=1, description="Steps 1 to this one were used in the fit of the model.")
    pre_registration_fitted: bool = Field(True, description="Whether pre-registration was used in the fit.")
    inputs: Items[str] = Field((), description="Further phases used as calibration inputs.")
    stop_step: int = Field(ge=1, description="Step after which the measured run stopped.")
    cpu_points: float = Field(1.5, gt=0, description="Greatest CPU error of a held-out step below 90 %, in points.")
    edge_step: int | None = Field(None, ge=1, description="A step at the edge of collapse, judged by the ensemble.")


class TargetsSpec(Spec):
    """Accuracy that was declared before fitting."""

    cpu_up_to: Percent = Field(90.0, description="CPU errors count up to this utilization.")
    in_sample_median: Percent = Field(12.0, description="Median error of the percentiles in sample.")
    next_step_median: Percent = Field(15.0, description="Median error of the percentiles one step beyond.")
    next_step_worst: Percent = Field(40.0, description="Worst error of the percentiles one step beyond.")
    stop_ihs_points: float = Field(10.0, gt=0, description="Greatest error of an IHS share in a stop step, in points.")


class ValidationSpec(Spec):
    """One validation: a dataset, its environments, the targets, and how much is simulated."""

    name: str = Field(min_length=1, max_length=100, description="Name.")
    dataset: str = Field(description="Dataset: its folder or dataset.yaml relative to this file, or a shipped name.")
    environments: Annotated[dict[str, EnvironmentSpec], Field(min_length=1)] = Field(description="By name in the data.")
    targets: TargetsSpec = Field(default_factory=TargetsSpec, description="Declared accuracy.")
    step_duration: PositiveDurationNs = Field(description="Simulated length of a step of the ramp.")
    transient: PositiveDurationNs = Field(30_000_000_000, description="Part of it that is not counted.")
    replications: int = Field(10, ge=2, le=1000, description="Replications of the ramp.")
    edge_replications: int = Field(20, ge=2, le=1000, description="Replications of an edge step, at full length.")
    edge_duration: PositiveDurationNs = Field(900_000_000_000, description="Length of an edge step.")
    seed: int = Field(1000, ge=0, description="Root seed; other than that of any fit.")

    @model_validator(mode="after")
    def _measures_something(self) -> Self:
        if self.transient >= min(self.step_duration, self.edge_duration):
            raise ValueError("needs a transient shorter than step_duration and edge_duration: nothing is counted of it")
        return self


class RunTarget(Spec):
    """How near the predictions of some quantities must come, over the predicted runs."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["median"]}, {"required": ["points"]}]})

    quantities: Annotated[Items[str], Field(min_length=1)] = Field(
        description="Names; `*` stands for any part of a name (`*/p50`)."
    )
    runs: Items[str] = Field(("*/*",), description="Of which predicted runs, `environment/phase`.")
    without: Items[str] = Field((), description="But for these.")
    median: Percent | None = Field(None, description="Median error at most, relative.")
    points: float | None = Field(
        None, ge=0, description="Error of each at most so many of its unit beyond the range of the run's repeats."
    )

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        if (self.median is None) == (self.points is None):
            raise ValueError("needs either median (relative) or points (beyond the range of repeats)")
        return self


class NullsSpec(Spec):
    """What null models know, beside which the predictions stand (:mod:`vftsim.calibrate.accuracy`)."""

    base: str = Field(description="Environment of the system alone; line and queue know its fitted runs.")
    left: dict[str, Percent] = Field(
        default_factory=dict, description="Share of the CPU that other environments of the same system leave to it."
    )


class RunValidationSpec(Spec):
    """One validation by runs."""

    name: str = Field(min_length=1, max_length=100, description="Name.")
    model: str = Field(description="Model: a file relative to this one, or a shipped name.")
    dataset: str = Field(description="Dataset: its folder or dataset.yaml relative to this file, or a shipped name.")
    overrides: Items[str] = Field((), description="Settings of all runs, as with --set.")
    environments: Annotated[dict[str, Items[str]], Field(min_length=1)] = Field(
        description="Environments of the dataset, each with settings of the model."
    )
    phases: dict[str, Items[str]] = Field(default_factory=dict, description="Settings of the phases.")
    fitted: Items[str] = Field((), description="Runs whose observations the model was fitted to.")
    predicted: Annotated[Items[str], Field(min_length=1)] = Field(description="Runs that it predicts.")
    quantities: Annotated[Items[str], Field(min_length=1)] = Field(description="What is compared; names or patterns.")
    repeats_of: str | None = Field(
        None,
        description="Environment whose repeats stand in where a run was made once: those of the nearest load, in "
        "percent of the quantity.",
    )
    nulls: NullsSpec | None = Field(None, description="Null models to stand beside the predictions.")
    targets: Items[RunTarget] = Field((), description="Declared accuracy.")
    replications: int = Field(20, ge=2, le=1000, description="Replications of each run.")
    seed: int = Field(2000, ge=0, description="Root seed; other than that of any fit.")

    @model_validator(mode="after")
    def _of_known_environments(self) -> Self:
        for label in (*self.fitted, *self.predicted):
            run_of(label, self.environments)
        if in_both := [label for label in self.fitted if label in self.predicted]:
            raise ValueError(f"'{in_both[0]}' is both fitted and predicted; what was fitted to is no prediction")
        named = [("nulls", name) for name in (self.nulls.base, *self.nulls.left)] if self.nulls else []
        named += [("repeats_of", self.repeats_of)] if self.repeats_of is not None else []
        for key, name in named:
            if name not in self.environments:
                raise ValueError(f"{key}: no environment '{name}'; there are {', '.join(self.environments)}")
        return self


def read_validation(name_or_path: str) -> tuple[ValidationSpec | RunValidationSpec, Node]:
    """Return a checked validation, one by runs where it names the model at its top, and its values with their places.

    Refuses a file that is wrong or missing.
    """
    if "model" in read_document(name_or_path, partial(find, "calibration")).plain():
        return read_definition(name_or_path, RunValidationSpec)
    return read_definition(name_or_path, ValidationSpec)


def _validation() -> dict[str, Any]:
    """A validation is one by runs where it names a model at its top, else one of a ramp.

    A file that extends another may leave that key to it, so it is held to either.
    """
    ramp, runs = json_schema(ValidationSpec, "vftsim validation"), json_schema(RunValidationSpec)
    by_form = {"if": {"required": ["model"]}, "then": runs["else"], "else": ramp["else"]}
    return ramp | {
        "then": {"anyOf": [ramp["then"], runs["then"]]},
        "else": by_form,
        "$defs": {**ramp["$defs"], **runs["$defs"]},
    }


LAB_SCHEMAS: dict[str, Callable[[], dict[str, Any]]] = {
    "dataset": partial(json_schema, DatasetSpec, "vftsim dataset"),
    "calibration": partial(json_schema, CalibrationSpec, "vftsim calibration"),
    "validation": _validation,
    "ramps": partial(json_schema, MeasuredRamps, "vftsim ramps"),
}
"""What returns the JSON Schema of a lab's files, by their kind."""


_OF_RAMPS = re.compile(rf"{BEFORE_THE_STEPS}|step_[0-9]+")
"""Phases that one run of a model has, whatever it is set to."""
STOP_STEP = ("ramp", "stop_step")
"""Beside the figures of a ramp: the first step over its limit, 0 for none."""


@dataclass(frozen=True, slots=True)
class Play:
    """A model, and in how many replications it is played."""

    model: ModelSpec
    replications: int


@dataclass(slots=True)
class Plays:
    """Runs by their name, and measurements by environment."""

    dataset: Path
    folder: Path
    """Of the validation."""
    models: dict[str, ModelSpec] = field(default_factory=dict)
    """By environment or run, as their files have them."""
    plays: dict[str, Play] = field(default_factory=dict)
    data: dict[str, Observations] = field(default_factory=dict)
    shown: list[Model] = field(default_factory=list)
    """Models for the manifest."""


def played(plays: Mapping[str, Play], execution: Execution) -> dict[str, list[Observations]]:
    """Return what was observed in every replication of each play; what the store has is not played again."""
    seed = execution.seed
    tasks = [{r: (name, play.model, seed, r) for r in range(play.replications)} for name, play in plays.items()]
    caches = [execution.cache(Model("", play.model), part=name) for name, play in plays.items()]
    caches = [replace(each, encode=from_observations, decode=to_observations) for each in caches]
    return dict(zip(plays, execution.play(_observed, caches, tasks), strict=True))


def _observed(task: tuple[str, ModelSpec, int, int]) -> Observations:
    """Play a model once; return its figures by phase, of a play for one phase under the name of the play."""
    name, spec, seed, replication = task
    record = run_model(spec, seed, replication)
    observations = observations_of(record)
    if "/" in name:
        return as_run(observations, name)
    stop = ramp_end(record.steps(), ramp_of(spec).limit_percent).stop_step
    return {**observations, STOP_STEP: float(stop)}


def from_observations(data: Observations) -> list[list[Any]]:
    """Return observations as plain data; JSON has no infinite numbers and none that are not a number."""
    return [
        [phase, quantity, value if math.isfinite(value) else str(value)] for (phase, quantity), value in data.items()
    ]


def to_observations(data: Sequence[Sequence[Any]]) -> Observations:
    return {(phase, quantity): float(value) for phase, quantity, value in data}


def run_models(
    tree: Node,
    settings: CalibrationSpec | RunValidationSpec,
    runs: Iterable[tuple[str, str]],
    further: Sequence[str] = (),
) -> dict[str, ModelSpec]:
    """Return the model of each run, by ``environment/phase``; settings of other runs are checked too.

    The tree is the definition's values with their places; further settings of all runs are those it does not have, and
    the last word is theirs.  Refuses a model that is not there, and a setting that does not fit it.
    """
    file, runs = model_file(tree.at("model"), "model"), list(runs)
    for _, phase in runs:
        if settings.phases and phase not in settings.phases and not _OF_RAMPS.fullmatch(phase):
            needs = f"write them, or '{phase}: []' if it has none"
            raise tree.at("phases").error(f"there are none for {shown(phase)}, which is played; {needs}", "phases")
    models = {f"{environment}/{phase}": _set(file, tree, environment, phase, further) for environment, phase in runs}
    for environment in settings.environments.keys() - {environment for environment, _ in runs}:
        _set(file, tree, environment, None)
    for phase in settings.phases.keys() - {phase for _, phase in runs}:
        _set(file, tree, None, phase)
    return models


def _set(file: Path, tree: Node, environment: str | None, phase: str | None, further: Sequence[str] = ()) -> ModelSpec:
    """Return the model with its settings; one that does not fit is told by its place in the definition."""
    places = (("overrides",), ("environments", environment), ("phases", phase))
    settings = [each for keys in places for each in _settings(tree, *keys)]
    try:
        return load_model(file, [*(str(node.value) for _, node in settings), *further]).spec
    except ModelFileError as error:
        if error.file != ORIGIN or error.line > len(settings) or any(error.key == text for text in further):
            raise
        key, node = settings[error.line - 1] if error.line else next(s for s in settings if s[1].value == error.key)
        raise node.error(f"{node.value}: {error.message}", key) from None


def _settings(tree: Node, *keys: str | None) -> list[tuple[str, Node]]:
    """Return the settings under keys, each with the name of its place."""
    node = tree
    for key in keys:
        if key is None or not isinstance(node.value, dict) or key not in node.value:
            return []
        node = node.value[key]
    items = node.value if isinstance(node.value, list) else []
    return [(".".join(str(key) for key in keys), item) for item in items]


def measured_runs(path: Path, runs: Iterable[tuple[str, str]]) -> Observations:
    """Read the measured numbers of runs; their phases are called ``environment/phase``.

    Refuses a dataset that lacks a run, or has a quantity in a unit of another kind than the model's.
    """
    dataset = read_dataset(path)
    check_units(dataset)
    named = dict.fromkeys(runs)
    measured = {
        name: restated(dataset, dataset.observations(name)) for name in dict.fromkeys(name for name, _ in named)
    }
    observations: Observations = {}
    for environment, phase in named:
        of_environment = measured[environment]
        of_phase = {quantity: value for (name, quantity), value in of_environment.items() if name == phase}
        if not of_phase:
            phases = ", ".join(dict.fromkeys(name for name, _ in of_environment))
            raise ModelFileError(
                f"nothing was measured in the phase '{phase}' of '{environment}'; it has {phases}", str(dataset.path)
            )
        observations |= {(f"{environment}/{phase}", quantity): value for quantity, value in of_phase.items()}
    return observations
