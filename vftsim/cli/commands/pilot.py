"""``vftsim pilot``: whether the transient that a model leaves out is long enough."""

from __future__ import annotations

from typing import Annotated

import typer

from vftsim.cli import options
from vftsim.cli.common import ModelStudy


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pilot")(pilot)


def pilot(
    model: options.ModelName,
    load: Annotated[
        float | None, typer.Option(metavar="SAPS", help="Attempts a second (default: the model's first step).")
    ] = None,
    *,
    common: ModelStudy,
) -> None:
    """Say whether the transient that a SIP lab leaves out of a step is long enough, from 20 pilots at one load."""
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
