"""``vftsim pilot``: whether the transient that a model leaves out is long enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options

if TYPE_CHECKING:
    pass


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("pilot")(pilot)


def pilot(
    model: options.ModelName,
    load: Annotated[
        float | None, typer.Option(metavar="SAPS", help="Attempts a second (default: the model's first step).")
    ] = None,
    set_: options.Set = None,
    seed: options.Seed = options.DEFAULT_SEED,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    quick: options.Quick = False,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    quiet: options.Quiet = False,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Say whether the transient that a SIP lab leaves out of a step is long enough, from 20 pilots at one load."""
    options.use_engine(engine, cluster, strict=strict)
    options.one_format(as_json, as_csv)
    from vftsim.study.progress import make_progress
    from vftsim.study.replicate import fewer
    from vftsim.study.warm_up import PILOTS, warm_up_study

    chosen, pilots = fewer(options.prepared(model, set_), "pilots", None, PILOTS, quick)
    with make_progress(f"pilots of {chosen.name}", quiet) as progress:
        study = warm_up_study(chosen, seed, jobs, load, pilots=pilots, progress=progress)
    options.show(study, as_json, as_csv)
