"""Measured runs that are runs of the model by themselves: ``environment/phase``, each with its own settings."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.figures import check_units, restated
from vftsim.calibrate.validation import RunValidationSpec
from vftsim.composition.model import ModelSpec
from vftsim.errors import ModelFileError
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.named_files import model_file
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.yaml_source import Node
from vftsim.study.runs.model import load_model


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
    settings = [
        *_settings(tree, "overrides"),
        *_settings(tree, "environments", environment),
        *_settings(tree, "phases", phase),
    ]
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
