"""``vftsim pilot``: whether the transient that a model leaves out is long enough."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options

if TYPE_CHECKING:
    from vftsim.study.warm_up import WarmUpStudy


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
    from vftsim.study.warm_up import PILOTS, warm_up_study

    chosen, pilots = options.repeated(options.prepared(model, set_), "pilots", None, PILOTS, quick)
    with make_progress(f"pilots of {chosen.name}", quiet) as progress:
        study = warm_up_study(chosen, seed, jobs, load, pilots=pilots, progress=progress)
    options.show(study, as_json, as_csv, _print)


def _print(study: WarmUpStudy) -> None:
    from vftsim.composition.views import ramp_key, ramp_of
    from vftsim.report.screen import print_table, print_text
    from vftsim.stats import WarmUp

    for note in study.model.notes:
        print_text(note)
    period_s, transient_s = study.period_ns / 1e9, study.transient_ns / 1e9
    body = [
        (name, f"{f.mser_cut * period_s:g}", f"{f.cut * period_s:g}", "")
        if isinstance(f, WarmUp)
        else (name, "", "", f)
        for name, f in study.found.items()
    ]
    print_table(
        f"Start-up at {study.load_saps:g} SAPS", ("series", "MSER-5 s", "needed s", ""), body,
        f"{study.pilots} pilots averaged; needed: twice the cut of MSER-5, at most a quarter of the step.",
    )  # fmt: skip
    if study.needed_ns is None:
        print_text(f"Transient of {transient_s:g} s: not known to be enough, since not everything settled")
    elif study.is_enough:
        print_text(f"Transient of {transient_s:g} s: enough")
    else:
        spec = study.model.spec
        needed = f"--set '{ramp_key(spec, ramp_of(spec).transient_key)}={study.needed_ns / 1e9:g} s'"
        print_text(f"Transient of {transient_s:g} s: too short; {needed}")
