"""``vftsim availability``: a year with each protection mechanism."""

from __future__ import annotations

from typing import Annotated

import typer

from vftsim.cli import options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("availability")(availability)


def availability(
    model: options.ModelName,
    mtbf: Annotated[str, typer.Option(metavar="TIME", help="Mean time between failures of a host, e.g. '8760 h'.")],
    protection: Annotated[
        str, typer.Option(metavar="KIND,KIND", help="Mechanisms, or 'all'.")
    ] = "none,ha_restart,lockstep,checkpoint",
    crashes: Annotated[
        int | None, typer.Option("--crashes", "-n", help="Simulated failovers of each mechanism (default 10).")
    ] = None,
    restart: Annotated[
        str, typer.Option(metavar="TIME", help="Length of an outage that no mechanism shortens.")
    ] = "77 s",
    after: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How long a run goes on after a crash and a restart (default: until queues have gone)."
        ),
    ] = None,
    set_: options.Set = None,
    seed: options.Seed = options.DEFAULT_SEED,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    quick: options.Quick = False,
    output: options.KeepIn = None,
    force: options.StartOver = False,
    report: options.Report = None,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
    max_time: options.MaxTime = None,
    max_memory: options.MaxMemory = None,
    engine: options.Engine = options.EngineName.auto,
    strict: options.Strict = False,
) -> None:
    """Say how long the service is down in a year, how long unprotected, and what clients lose."""
    options.use_engine(engine, cluster, strict=strict)
    limits = options.read_limits(yes, max_time, max_memory)
    options.one_format(as_json, as_csv)
    options.check_report(report, force)
    options.check_force(force and report is None, output)
    from vftsim.spec import DURATION
    from vftsim.study.availability import DEFAULT_CRASHES, availability_study, year_takes
    from vftsim.study.kept import keep_answer, kept_in
    from vftsim.study.progress import make_progress
    from vftsim.study.protections import kinds_named
    from vftsim.study.replicate import fewer

    mtbf_s = options.parse_quantity("--mtbf", mtbf, DURATION) / 1e9
    restart_s = options.parse_quantity("--restart", restart, DURATION) / 1e9
    after_ns = None if after is None else round(options.parse_quantity("--after", after, DURATION))
    chosen, count = fewer(options.prepared(model, set_), "crashes", crashes, DEFAULT_CRASHES, quick)
    kinds = kinds_named(protection)
    with (
        options.limited(limits, lambda: year_takes(chosen, kinds, count, after_ns), jobs) as words,
        kept_in(output, "availability", force) as store,
        make_progress(f"failovers of {chosen.name}", quiet, words) as show,
    ):
        study = availability_study(
            chosen, kinds, mtbf_s, count, seed, jobs, restart_s=restart_s, after_ns=after_ns,
            progress=show, store=store,
        )  # fmt: skip
        keep_answer(store, study)
    options.say_remarks(store.remarks if store else ())
    options.show(study, as_json, as_csv, report)
