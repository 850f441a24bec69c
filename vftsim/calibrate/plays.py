"""Runs of a validation: the ramp of an environment, or measured runs, each in some replications.

A play is called after what it stands for: ``environment`` for all phases, ``environment/phase`` for that phase alone.

Measured runs are runs of the model by themselves, each with its own settings.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.figures import as_run, check_units, observations_of, restated
from vftsim.calibrate.validation import RunValidationSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.views import ramp_of
from vftsim.errors import ModelFileError
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.named_files import model_file
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.yaml_source import Node
from vftsim.study.execution import Execution
from vftsim.study.runs.model import Model, load_model
from vftsim.workloads.ramp import ramp_end

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
    seen = observations_of(record)
    if "/" in name:
        return as_run(seen, name)
    stop = ramp_end(record.steps(), ramp_of(spec).limit_percent).stop_step
    return {**seen, STOP_STEP: float(stop)}


def from_observations(seen: Observations) -> list[list[Any]]:
    """Return observations as plain data; JSON has no infinite numbers and none that are not a number."""
    return [
        [phase, quantity, value if math.isfinite(value) else str(value)] for (phase, quantity), value in seen.items()
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
    wanted = dict.fromkeys(runs)
    measured = {
        name: restated(dataset, dataset.observations(name)) for name in dict.fromkeys(name for name, _ in wanted)
    }
    observations: Observations = {}
    for environment, phase in wanted:
        seen = measured[environment]
        of_phase = {quantity: value for (name, quantity), value in seen.items() if name == phase}
        if not of_phase:
            there = ", ".join(dict.fromkeys(name for name, _ in seen))
            raise ModelFileError(
                f"nothing was measured in the phase '{phase}' of '{environment}'; it has {there}", str(dataset.path)
            )
        observations |= {(f"{environment}/{phase}", quantity): value for quantity, value in of_phase.items()}
    return observations
