"""``vftsim validate``: models against measured data, with the accuracy that was declared."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from vftsim.cli import options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("validate")(validate)


def validate(
    validation: Annotated[
        str, typer.Argument(metavar="VALIDATION", help="A shipped validation (sip-lab/validation) or a file.")
    ] = "sip-lab/validation",
    environment: Annotated[
        list[str] | None, typer.Option("--environment", "-e", help="Only this environment; repeatable.")
    ] = None,
    replications: Annotated[
        int | None,
        typer.Option("--replications", "-n", min=2, help="Replications of each ramp instead of the file's."),
    ] = None,
    set_: options.Set = None,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report", metavar="FILE", help="Write a page that needs nothing else (.html), or every row (.md)."
        ),
    ] = None,
    keep: options.KeepRuns = None,
    force: options.Force = False,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    as_json: options.Json = False,
    quiet: options.Quiet = False,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Predict every measured row; exit code 1 when the declared accuracy is missed."""
    options.use_engine(engine, cluster, strict=strict)
    from vftsim.calibrate import accuracy_page, runs_page
    from vftsim.calibrate.provenance import stamp
    from vftsim.calibrate.validate import Validated, run_validation
    from vftsim.calibrate.validate_runs import ValidatedRuns, is_by_runs, run_runs
    from vftsim.cli.files import check_target, write_whole
    from vftsim.cli.main import OUTSIDE
    from vftsim.study.files import write_file
    from vftsim.study.kept import keep_data, kept_in
    from vftsim.study.progress import make_progress
    from vftsim.study.workers import checked_jobs

    is_page = report is not None and report.suffix.lower() == ".html"
    made_by = ""
    if is_page:
        options.check_report(report, force)
    elif report is not None:
        check_target(report, force)
        made_by = stamp()
    found: Validated | ValidatedRuns
    chosen, workers, settings = environment or [], checked_jobs(jobs), tuple(set_ or ())
    by_runs = is_by_runs(validation)
    with kept_in(keep, "validation") as store, make_progress(f"validate {validation}", quiet) as progress:
        if by_runs:
            found = run_runs(validation, chosen, replications, workers, progress, store=store, settings=settings)
        else:
            found = run_validation(validation, chosen, replications, workers, progress, store, settings)
        keep_data(store, found.for_machines(), found.manifest)
    options.say_remarks(store.remarks if store else ())
    for warning in found.warnings if isinstance(found, Validated) else ():
        typer.echo(f"warning: {warning}", err=True)
    if report is not None and not is_page:
        typed = " ".join([validation, *(f"--set {shlex.quote(text)}" for text in settings)])
        text = (
            accuracy_page.page(found, typed, made_by)
            if isinstance(found, Validated)
            else runs_page.page(found, typed, made_by)
        )
        write_whole(report, lambda path: write_file(path, text.encode()))
    options.show(found, as_json, False, report if is_page else None)
    if not found.passed:
        raise typer.Exit(OUTSIDE)
