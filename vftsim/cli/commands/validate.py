"""``vftsim validate``: models against measured data, with the accuracy that was declared."""

from __future__ import annotations

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
    report: Annotated[
        Path | None, typer.Option("--report", metavar="FILE", help="Write every row as a Markdown page.")
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
    from vftsim.calibrate.accuracy_page import as_data, page
    from vftsim.calibrate.provenance import stamp
    from vftsim.calibrate.summary import result, told
    from vftsim.calibrate.validate import run_validation
    from vftsim.calibrate.validate_runs import is_by_runs
    from vftsim.cli.files import check_target, write_whole
    from vftsim.cli.main import OUTSIDE
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.files import write_file
    from vftsim.study.kept import keep_data, kept_in
    from vftsim.study.progress import make_progress
    from vftsim.study.workers import checked_jobs

    made_by = ""
    if report is not None:
        check_target(report, force)
        made_by = stamp()
    if is_by_runs(validation):
        _by_runs(validation, environment or [], replications, checked_jobs(jobs), keep, report, made_by, as_json, quiet)
        return
    with kept_in(keep, "validation") as store, make_progress(f"validate {validation}", quiet) as progress:
        found = run_validation(validation, environment or [], replications, checked_jobs(jobs), progress, store)
        keep_data(store, as_data(found), found.manifest)
    options.say_remarks(store.remarks if store else ())
    for warning in found.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if report is not None:
        write_whole(report, lambda path: write_file(path, page(found, validation, made_by).encode()))
    if as_json:
        print_json(as_data(found))
    else:
        rows = [(name, v.text, result(v, "MISSED"), v.found) for name, v in found.verdicts]
        caption = f"ramp n={found.spec.replications}, seed {found.spec.seed}"
        print_table(f"Declared accuracy: {validation}", ("environment", "target", "", "found"), rows, caption)
        print_text(f"Beside null models: {told(found.rows)}.")
        for name, (bad, n) in found.collapse.items():
            print_text(f"{name}: the edge step collapsed in {bad} of {n} replications")
    if not found.passed:
        raise typer.Exit(OUTSIDE)


def _by_runs(
    validation: str, environments: list[str], replications: int | None, jobs: int, keep: Path | None,
    report: Path | None, made_by: str, as_json: bool, quiet: bool,
) -> None:  # fmt: skip
    """Play every measured run by itself and compare."""
    from vftsim.calibrate.runs_page import as_data, lines, page
    from vftsim.calibrate.summary import result, told
    from vftsim.calibrate.validate_runs import run_runs
    from vftsim.cli.files import write_whole
    from vftsim.cli.main import OUTSIDE
    from vftsim.report.screen import print_json, print_table, print_text
    from vftsim.study.files import write_file
    from vftsim.study.kept import keep_data, kept_in
    from vftsim.study.progress import make_progress

    with kept_in(keep, "validation") as store, make_progress(f"validate {validation}", quiet) as progress:
        found = run_runs(validation, environments, replications, jobs, progress, store=store)
        keep_data(store, as_data(found), found.manifest)
    options.say_remarks(store.remarks if store else ())
    if report is not None:
        write_whole(report, lambda path: write_file(path, page(found, validation, made_by).encode()))
    if as_json:
        print_json(as_data(found))
    else:
        caption = f"n={found.spec.replications}, seed {found.spec.seed}"
        columns = ("run", "", "quantity", "measured", "predicted", "central 90 %", "error")
        print_table(f"Predicted runs: {validation}", columns, lines(found.rows), caption)
        rows = [(v.text, result(v, "MISSED"), v.found) for _, v in found.verdicts]
        print_table("Declared accuracy", ("target", "", "found"), rows, "")
        print_text(f"Beside null models: {told(found.rows)}.")
    if not found.passed:
        raise typer.Exit(OUTSIDE)
