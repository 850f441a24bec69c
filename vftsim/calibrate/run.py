"""A calibration from its file to its record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from vftsim.calibrate import fitted
from vftsim.calibrate.around import coverage_of, profiles_of
from vftsim.calibrate.blocks import calibration_blocks
from vftsim.calibrate.definition import CalibrationSpec, read_definition
from vftsim.calibrate.drawn import read_fit
from vftsim.calibrate.figures import measured
from vftsim.calibrate.fit import search_for
from vftsim.calibrate.intervals import Fit
from vftsim.calibrate.patterns import check_measured
from vftsim.calibrate.plays import from_observations
from vftsim.calibrate.runs import measured_runs, run_models
from vftsim.composition.model import ModelSpec
from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.dataset import Observations, read_dataset
from vftsim.labs.place import dataset_path, model_file, place
from vftsim.report.blocks import Block
from vftsim.spec.yaml_source import Node
from vftsim.study.blocks.printed import Printed
from vftsim.study.runs.model import Model, load_model
from vftsim.study.runs.progress import Progress
from vftsim.study.store.files import sha256_of
from vftsim.study.store.manifest import identity_of, manifest, utc_now
from vftsim.study.store.opened import model_of, read_answer, read_manifest
from vftsim.study.store.resumable import RunCache
from vftsim.study.store.store import Store

MOST_LABORATORIES = 1000


@dataclass(slots=True)
class Calibrated(Printed):
    """A finished calibration."""

    definition: CalibrationSpec
    spec: ModelSpec
    fit: Fit
    record: dict[str, Any]

    @property
    def origin(self) -> Mapping[str, Any]:
        """How the fit came to be."""
        found: Mapping[str, Any] = self.record["manifest"]
        return found

    @classmethod
    def opened(cls, folder: Path) -> Calibrated:
        """Return what the directory of a calibration holds."""
        model, record = model_of(read_manifest(folder)), read_answer(folder)
        definition = CalibrationSpec.model_validate(record["calibration"])
        return cls(definition, model.spec, fitted.from_record(record), record)

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return self.record

    def blocks(self) -> list[Block]:
        """Return the fit as blocks."""
        return calibration_blocks(self)


def sip_model(named: Node, key: str, overrides: tuple[str, ...] = ()) -> tuple[Model, ModelSpec]:
    """Load the SIP model that a calibration or validation names.

    Parameters
    ----------
    named : Node
        The name with its place: a path is relative to that file, else it is a shipped name.
    key : str
        Key that holds it, for messages.

    Raises
    ------
    ModelFileError
        There is no such model, or it is of another kind.
    """
    model = _model(named, key, overrides)
    if model.spec.ramp is None:
        raise ModelFileError(
            f"'{model.label}' has no workload of kind ims_bench, which this is about", named.file, named.line, key
        )
    return model, model.spec


def _model(named: Node, key: str, overrides: tuple[str, ...]) -> Model:
    return replace(load_model(model_file(named, key), overrides), label=str(named.value))


def run_calibration(
    name_or_path: str,
    jobs: int,
    progress: Progress,
    store: Store | None = None,
    *,
    at: str | None = None,
    profile: bool = False,
    laboratories: int = 0,
) -> Calibrated:
    """Run one calibration.

    Parameters
    ----------
    name_or_path : str
        Shipped name or file.
    jobs : int
        Worker processes; no influence on the result.
    store : Store, optional
        Where evaluations are that were made already, and where each goes as it arrives.
    at : str, optional
        An earlier fit of the same parameters, whose values stay: nothing is searched.
    profile : bool
        Whether the least squares are asked for over each parameter's box.
    laboratories : int
        Simulated ones, 2 or more, that tell how often the intervals hold the truth; 0: none.

    Raises
    ------
    ModelFileError, UsageError
        The definition, its model or its dataset is wrong; the earlier fit is one of other parameters.
    """
    definition, tree = read_definition(name_or_path, CalibrationSpec)
    model, specs, data = _to_fit(definition, tree)
    started = utc_now()
    values = None if at is None else values_of(at, definition)
    if laboratories and not 2 <= laboratories <= MOST_LABORATORIES:
        raise UsageError(f"--coverage: from 2 to {MOST_LABORATORIES} laboratories, got {laboratories}")
    progress.total(definition.searches * definition.most_evaluations)
    cache = RunCache(store, _said(definition, specs, data))
    found = search_for(
        definition, specs, data, jobs, lambda _, cost: progress.advance(f"cost {cost:.1f}"), cache, values
    )
    result = found.fit
    if profile:
        result.profiles = profiles_of(found.search, found.units, found.matrix, definition.replications)
    if laboratories:
        result.coverage = coverage_of(found.search, found.units, found.matrix, laboratories, jobs)
    how = manifest([model], "calibrate", definition.seed, definition.replications, jobs, started)
    return Calibrated(definition, model.spec, result, fitted.as_record(definition, model.spec, data, result, how))


def _to_fit(definition: CalibrationSpec, tree: Node) -> tuple[Model, ModelSpec | dict[str, ModelSpec], Observations]:
    """Return the model, that of each run if they are several, and what was measured."""
    named, dataset = place(tree, "model"), dataset_path(place(tree, "dataset"))
    specs: ModelSpec | dict[str, ModelSpec]
    if definition.environment is not None:
        model, specs = sip_model(named, "model", definition.overrides)
        data = measured(dataset, definition.environment)
    else:
        model = _model(named, "model", definition.overrides)
        data, specs = measured_runs(dataset, definition.runs), run_models(tree, definition, definition.runs)
    check_measured(
        place(tree, "quantities"),
        set(definition.quantities) - {"delays"},
        [*read_dataset(dataset).units(), "touches"],
        definition.in_sample,
    )
    return model, specs, data


def values_of(name_or_path: str, definition: CalibrationSpec) -> dict[str, float]:
    """Return the values that an earlier fit has for the parameters of a calibration.

    Raises
    ------
    UsageError
        It lacks one of them.
    """
    values = read_fit(name_or_path).values
    if missing := [p.path for p in definition.parameters if p.path not in values]:
        raise UsageError(f"--at: '{name_or_path}' has no value for {missing[0]}, which this calibration fits")
    return {p.path: values[p.path] for p in definition.parameters}


def _said(definition: CalibrationSpec, specs: ModelSpec | dict[str, ModelSpec], data: Observations) -> dict[str, Any]:
    """Return all that determines what an evaluation gives, except its point and replication."""
    models = specs if isinstance(specs, dict) else {"": specs}
    said = definition.model_dump(mode="json", exclude={"most_evaluations", "replications", "starts"})
    of_models = sha256_of({name: Model("", each).digest() for name, each in models.items()})
    return {
        **identity_of(of_models, definition.seed),
        "calibration": sha256_of(said),
        "data": sha256_of(from_observations(data)),
    }
