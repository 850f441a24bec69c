"""``vftsim calibrate``: fit the free parameters of a model to measured data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options

if TYPE_CHECKING:
    from vftsim.calibrate.run import Calibrated


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("calibrate")(calibrate)


def calibrate(
    calibration: Annotated[
        str, typer.Argument(metavar="CALIBRATION", help="A shipped calibration (sip-lab/virtual) or a file.")
    ],
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write the fitted parameters here (JSON)."),
    ] = None,
    keep: options.KeepRuns = None,
    force: options.Force = False,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Fit a model to data: parameters with intervals, residuals, and what the data do not identify."""
    options.use_engine(engine, cluster, strict=strict)
    from vftsim.calibrate import fitted
    from vftsim.calibrate.run import run_calibration
    from vftsim.cli.files import check_target, write_whole
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.kept import keep_data, kept_in
    from vftsim.study.progress import make_progress
    from vftsim.study.workers import checked_jobs

    if output is not None:
        check_target(output, force)
    with (
        kept_in(keep, "calibration") as store,
        make_progress(f"calibrate {calibration}", quiet) as progress,
    ):
        done = run_calibration(calibration, checked_jobs(jobs), progress, store)
        keep_data(store, done.record, done.record["manifest"])
    options.say_remarks(store.remarks if store else ())
    if output is not None:
        write_whole(output, lambda path: fitted.write(path, done.record))
    if as_json:
        print_json(done.record)
        return
    shares = ["of chance"] if done.fit.chance_share else []
    rows = [
        (
            path,
            "not identified" if path in done.fit.undetermined else fitted.shown(done.spec, path, value),
            *(fitted.shown(done.spec, path, v) for v in (done.fit.low[path], done.fit.high[path])),
            *(f"{100.0 * done.fit.chance_share[path]:.0f} %" for _ in shares),
        )
        for path, value in done.fit.values.items()
    ]
    count = len(done.fit.residuals)
    rms = (2 * done.fit.cost / count) ** 0.5
    print_table(
        f"Fitted parameters: {calibration}", ("parameter", "value", "2.5 %", "97.5 %", *shares), rows,
        f"{count} observations, scaled residual {rms:.2f} rms, seed {done.definition.seed}; "
        + ("of chance: share of the interval's variance that the chance of runs has" if shares else
           "one replication: intervals leave the chance of runs out"),
    )  # fmt: skip
    if done.fit.ends:
        _print_ends(done)
    for note in done.fit.not_identified:
        print_text(f"not identified by the data: {note}")


def _print_ends(done: Calibrated) -> None:
    from vftsim.calibrate.fitted import shown
    from vftsim.report.screen import print_table

    ends, replications = done.fit.ends, done.definition.replications
    values = [(path, *(shown(done.spec, path, end.values[path]) for end in ends)) for path in done.fit.values]
    print_table(
        "Where the search from each start ended",
        ("parameter", *(f"start {number}" for number in range(1, len(ends) + 1))),
        [("cost", *(f"{end.cost:.4g}" for end in ends)), *values],
        f"with the first of {replications} replications; from the best it goes on with all" if replications > 1 else "",
    )
