"""``vftsim predict``: what a fitted model predicts, with its whole uncertainty."""

from vftsim.cli.common import ScaledStudy
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.interface import labs


@made_from(labs.predict, ScaledStudy, fit=())
def predict(call: StudyCall, *, common: ScaledStudy) -> None:
    """Predict with the uncertainty of replications, fitted parameters and structure, apart and together."""
    figures = ("*",) if common.as_json or common.as_csv else ()
    common.show(common.conduct(call.plan(**{"fit": (), "figures": figures} | call.arguments)))
