"""Measured runs that are runs of the model by themselves: ``environment/phase``, each with its own settings."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from vftsim.calibrate.figures import unit_of_figure
from vftsim.calibrate.references import model_file
from vftsim.composition.model import ModelSpec
from vftsim.errors import ModelFileError
from vftsim.labs.dataset import Dataset, Observations, read_dataset
from vftsim.spec.yaml_source import Node
from vftsim.study.model import load_model


class Settings(Protocol):
    """What says how the runs of a dataset are made with a model: settings as with ``--set``."""

    @property
    def overrides(self) -> Sequence[str]:
        """Of all runs."""

    @property
    def environments(self) -> Mapping[str, Sequence[str]]:
        """Of the runs of an environment."""

    @property
    def phases(self) -> Mapping[str, Sequence[str]]:
        """Of the runs of a phase, in whichever environment."""


def run_models(named: Node, settings: Settings, runs: Iterable[tuple[str, str]]) -> dict[str, ModelSpec]:
    """Return the model of each run, by ``environment/phase``.

    Parameters
    ----------
    named : Node
        The model's name with its place.
    settings : Settings
    runs : iterable of (str, str)
        Environment and phase.

    Raises
    ------
    ModelFileError, UsageError
        There is no such model, or a setting does not fit it.
    """
    file = model_file(named, "model")
    return {
        f"{environment}/{phase}": load_model(
            file, (*settings.overrides, *settings.environments[environment], *settings.phases.get(phase, ()))
        ).spec
        for environment, phase in runs
    }


def measured_runs(path: Path, runs: Iterable[tuple[str, str]]) -> Observations:
    """Read the measured numbers of runs; their phases are called ``environment/phase``.

    Raises
    ------
    ModelFileError
        The dataset is wrong, lacks a run, or has a quantity in a unit of another kind than the model's.
    """
    dataset = read_dataset(path)
    check_units(dataset)
    found: Observations = {}
    wanted = dict.fromkeys(runs)
    for environment in dict.fromkeys(environment for environment, _ in wanted):
        own = dataset.observations(environment)
        for phase in (phase for each, phase in wanted if each == environment):
            of_phase = {quantity: value for (name, quantity), value in own.items() if name == phase}
            if not of_phase:
                there = ", ".join(dict.fromkeys(name for name, _ in own))
                raise ModelFileError(
                    f"nothing was measured in the phase '{phase}' of '{environment}'; it has {there}", str(dataset.path)
                )
            found |= {(f"{environment}/{phase}", quantity): value for quantity, value in of_phase.items()}
    return found


def check_units(dataset: Dataset) -> None:
    """Refuse quantities that the model gives in another kind of unit.

    Raises
    ------
    ModelFileError
        File and column.
    """
    for quantity, seen in dataset.units().items():
        unit = unit_of_figure(quantity)
        if unit is not None and unit != seen.unit:
            raise ModelFileError(
                f"{quantity} is in {unit} in the model, not in {seen.unit}; mend the unit in {dataset.path.name}, or "
                "name another metric", seen.file, 1, seen.column,
            )  # fmt: skip
