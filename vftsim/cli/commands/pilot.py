"""``vftsim pilot``: whether the transient that a model leaves out is long enough."""

from __future__ import annotations

from vftsim.cli.common import ModelStudy


def pilot(
    model: str,
    load: float | None = None,
    *,
    common: ModelStudy,
) -> None:
    """Say whether the transient that a SIP lab leaves out of a step is long enough, from 20 pilots at one load.

    Parameters
    ----------
    load : --load SAPS
        Attempts a second (default: the model's first step).
    """
    from vftsim.study.warm_up import pilots_take, warm_up_study

    common.check_force()
    chosen = common.model(model)
    study = common.answer(
        "pilot",
        f"pilots of {chosen.name}",
        lambda: pilots_take(chosen, load),
        lambda store, progress: warm_up_study(chosen, common.seed, common.jobs, load, progress=progress, store=store),
    )
    common.show(study)
