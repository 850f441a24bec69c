"""What measured data are for: fits, validations, predictions."""

# ruff: noqa: PLC0415 - importing the package imports nothing else; each function imports what it needs

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from vftsim.interface.common import answered, as_model

if TYPE_CHECKING:
    from vftsim.calibrate.prediction import Prediction
    from vftsim.calibrate.run import Calibrated
    from vftsim.calibrate.validate import Validated
    from vftsim.study.model import Model


def calibrate(
    name_or_path: str | Path, jobs: int = 1, *, keep: str | Path | None = None, progress: bool = False
) -> Calibrated:
    """Fit the free parameters of a model to measured data, as a calibration file describes it.

    With ``keep``, a directory, every finished run is kept there; the same call goes on from them.
    """
    from vftsim.calibrate.run import run_calibration

    name = str(name_or_path)
    return answered(
        "calibration",
        f"calibrate {name}",
        keep,
        False,
        progress,
        lambda store, show: run_calibration(name, jobs, show, store),
    )


def predict(
    model: Model | str | Path,
    fit: Sequence[str],
    structure: Sequence[str] = (),
    draws: int = 20,
    replications: int = 2,
    seed: int = 1,
    jobs: int = 1,
    *,
    figures: Sequence[str] = ("*",),
    held_out: str | Path | None = None,
    quick: bool = False,
    directory: str | Path | None = None,
    force: bool = False,
    progress: bool = False,
) -> Prediction:
    """Predict with the uncertainty of replications, fitted parameters and structure.

    Parameters
    ----------
    model : Model, str or Path
    fit, structure : sequence of str
        Fits that the model's values come from, and those of other structures: shipped names, or files.
    draws, replications : int
        Points drawn from each fit, and runs of each point.
    seed, jobs : int
    figures : sequence of str
    held_out : str or Path, optional
        Rows that tell the structure error: a shipped lab's, or a file of a validation.
    quick, force : bool
    directory : str or Path, optional
        Keep every finished run and the answer here; the same call goes on from them.
    progress : bool
        Say on standard error how far it is, in a notebook too.
    """
    from vftsim.calibrate.drawn import read_fit
    from vftsim.calibrate.prediction import predict as predict_study
    from vftsim.calibrate.structure_error import read_held_out

    chosen = as_model(model, quick=quick)
    fits, others = ([read_fit(name) for name in names] for names in (fit, structure))
    error = None if held_out is None else read_held_out(str(held_out))
    return answered(
        "predict",
        f"predict {chosen.name}",
        directory,
        force,
        progress,
        lambda store, show: predict_study(
            chosen,
            fits,
            others,
            draws,
            replications,
            seed,
            jobs,
            figures=tuple(figures),
            structure_error=error,
            progress=show,
            store=store,
        ),
    )


def validate(
    name_or_path: str | Path = "sip-lab/validation",
    environments: Sequence[str] = (),
    replications: int | None = None,
    jobs: int = 1,
    *,
    keep: str | Path | None = None,
    progress: bool = False,
) -> Validated:
    """Predict every measured row of a validation, and say whether the declared accuracy is met.

    With ``keep``, a directory, every finished run is kept there; the same call goes on from them.
    """
    from vftsim.calibrate.validate import run_validation

    name = str(name_or_path)
    return answered(
        "validation",
        f"validate {name}",
        keep,
        False,
        progress,
        lambda store, show: run_validation(name, environments, replications, jobs, show, store),
    )
