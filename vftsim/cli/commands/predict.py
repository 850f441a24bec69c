"""``vftsim predict``: what a fitted model predicts, with its whole uncertainty."""

from __future__ import annotations

from typing import Annotated

import typer

from vftsim.cli import options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("predict")(predict)


def predict(
    model: options.ModelName,
    fit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIT", help="Fit that the model's values come from: a shipped one (sip-lab/virtual), or a file."
        ),
    ] = None,
    structure: Annotated[
        list[str] | None,
        typer.Option(metavar="FIT", help="Fit of another structure that is accepted beside the model's own."),
    ] = None,
    draws: Annotated[int, typer.Option(help="Points drawn from each fit.")] = 20,
    replications: Annotated[int, typer.Option("--replications", "-n", help="Runs of each point.")] = 2,
    figure: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="Figures, e.g. 'cpu', 'SES1/p99', 'step_6/*' (default: the usual ones)."),
    ] = None,
    set_: options.Set = None,
    scale: options.Scale = 1.0,
    quick: options.Quick = False,
    seed: options.Seed = options.DEFAULT_SEED,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    output: options.KeepIn = None,
    force: options.StartOver = False,
    report: options.Report = None,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    quiet: options.Quiet = False,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Predict with the uncertainty of replications, fitted parameters and structure, apart and together."""
    options.use_engine(engine, cluster, strict=strict)
    options.one_format(as_json, as_csv)
    options.check_report(report, force)
    options.check_force(force and report is None, output)
    from vftsim.calibrate.drawn import read_fit
    from vftsim.calibrate.prediction import predict as predict_study
    from vftsim.calibrate.prediction import usual
    from vftsim.study.kept import keep_answer, kept_in
    from vftsim.study.progress import make_progress

    fits, others = ([read_fit(name) for name in names or ()] for names in (fit, structure))
    chosen = options.prepared(model, set_, scale, quick)
    wanted = figure or (["*"] if as_json or as_csv else usual(chosen))
    with kept_in(output, "predict", force) as store, make_progress(f"predict {chosen.name}", quiet) as show:
        found = predict_study(
            chosen, fits, others, draws, replications, seed, jobs, figures=tuple(wanted), progress=show,
            store=store,
        )  # fmt: skip
        keep_answer(store, found)
    options.say_remarks(store.remarks if store else ())
    options.show(found, as_json, as_csv, report)
