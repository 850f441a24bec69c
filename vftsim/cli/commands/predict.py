"""``vftsim predict``: what a fitted model predicts, with its whole uncertainty."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.cli.common import ModelStudy

if TYPE_CHECKING:
    from vftsim.calibrate.prediction import Prediction
    from vftsim.study.progress import Progress
    from vftsim.study.store import Store


def predict(
    model: str,
    fit: list[str] | None = None,
    structure: list[str] | None = None,
    held_out: str | None = None,
    draws: int = 20,
    replications: int = 2,
    figure: list[str] | None = None,
    scale: float = 1.0,
    *,
    common: ModelStudy,
) -> None:
    """Predict with the uncertainty of replications, fitted parameters and structure, apart and together.

    Parameters
    ----------
    fit : --fit FIT
        Fit that the model's values come from: a shipped one (sip-lab/virtual), or a file.
    structure : --structure FIT
        Fit of another structure that is accepted beside the model's own.
    held_out : --held-out ROWS
        Held-out rows that tell the structure error: a shipped lab's (linux-lab), or what 'vftsim validate --held-out'
        wrote.
    draws : --draws
        Points drawn from each fit.
    replications : --replications, -n
        Runs of each point.
    figure : --figure NAME
        Figures, e.g. 'cpu', 'SES1/p99', 'step_6/*' (default: the usual ones).
    """
    common.check_force()
    from vftsim.calibrate.drawn import read_fit
    from vftsim.calibrate.prediction import predict as predict_study
    from vftsim.calibrate.prediction import usual
    from vftsim.calibrate.structure_error import read_held_out
    from vftsim.study.estimate import total

    fits, others = ([read_fit(name) for name in names or ()] for names in (fit, structure))
    error = None if held_out is None else read_held_out(held_out)
    chosen = common.model(model, scale)
    wanted = figure or (["*"] if common.as_json or common.as_csv else usual(chosen))
    points = draws * (bool(fits) + len(others))

    def study(store: Store | None, progress: Progress) -> Prediction:
        return predict_study(
            chosen,
            fits,
            others,
            draws,
            replications,
            common.seed,
            common.jobs,
            figures=tuple(wanted),
            structure_error=error,
            progress=progress,
            store=store,
        )

    label = f"predict {chosen.name}"
    common.show(common.answer("predict", label, lambda: total([chosen.spec], points * replications), study))
