"""A calibration from its file to its record."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vftsim.calibrate import fitted
from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.fit import Fit, fit
from vftsim.calibrate.observations import measured
from vftsim.errors import ModelFileError
from vftsim.sip.system import SipLabSpec
from vftsim.spec import find, load
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model, load_model
from vftsim.study.progress import Progress


@dataclass(slots=True)
class Calibrated:
    """A finished calibration."""

    definition: CalibrationSpec
    spec: SipLabSpec
    fit: Fit
    record: dict[str, Any]


def sip_model(name: str, overrides: tuple[str, ...], asked_by: Path) -> tuple[Model, SipLabSpec]:
    """Load the SIP model that a calibration or validation names.

    Raises
    ------
    ModelFileError
        The model is of another kind.
    """
    model = load_model(name, overrides)
    if not isinstance(model.spec, SipLabSpec):
        raise ModelFileError(f"'{name}' is a {model.kind}; this needs a sip_lab model", str(asked_by), 0, "model")
    return model, model.spec


def run_calibration(name_or_path: str, jobs: int, progress: Progress) -> Calibrated:
    """Run one calibration.

    Parameters
    ----------
    name_or_path : str
        Shipped name or file.
    jobs : int
        Worker processes; no influence on the result.
    progress : Progress

    Raises
    ------
    ModelFileError, UsageError
        The definition, its model or its dataset is wrong.
    """
    path = find("calibration", name_or_path)
    definition = load(path, CalibrationSpec)
    model, spec = sip_model(definition.model, definition.overrides, path)
    data = measured(path.parent / definition.dataset, definition.environment)
    started = utc_now()
    progress.total(definition.most_evaluations)
    result = fit(definition, spec, data, jobs, lambda _, cost: progress.advance(f"cost {cost:.1f}"))
    how = manifest(
        [model], command="calibrate", seed=definition.seed, replications=range(definition.replications),
        wanted=definition.replications, jobs=jobs, started=started, state="finished",
    )  # fmt: skip
    return Calibrated(definition, spec, result, fitted.as_record(definition, spec, data, result, how))
