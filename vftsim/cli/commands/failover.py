"""``vftsim failover``: what clients see when the primary's host crashes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options

if TYPE_CHECKING:
    from vftsim.study.estimate import Needs


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("failover")(failover)


def failover(
    model: options.ModelName,
    crashes: Annotated[
        int | None, typer.Option("--crashes", "-n", help="How many crashes, spread over the span (default 20).")
    ] = None,
    load: Annotated[
        float | None, typer.Option(metavar="SAPS", help="Attempts a second (default: the benchmark's first step).")
    ] = None,
    domain: Annotated[
        str | None, typer.Option(metavar="NAME", help="Whose host crashes (default: the one that is protected).")
    ] = None,
    over: Annotated[str, typer.Option(metavar="TIME", help="Stretch of time over which crashes are spread.")] = "1 s",
    after: Annotated[
        str | None,
        typer.Option(
            metavar="TIME", help="How long a run goes on after a crash and a restart (default: until queues have gone)."
        ),
    ] = None,
    protection: Annotated[
        str | None, typer.Option(metavar="KIND", help="Protect the domain with this mechanism and its defaults.")
    ] = None,
    prices: Annotated[
        bool,
        typer.Option(
            "--prices/--no-prices", help="Play prices of the mechanism at both ends of their ranges, for bands."
        ),
    ] = True,
    plot: Annotated[
        Path | None, typer.Option("--plot", metavar="FILE", help="Figure to write (.png): a timeline, the outages.")
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
    """Let the primary's host crash at many instants; show detection, takeover, outage, and what clients lost."""
    options.use_engine(engine, cluster, strict=strict)
    limits = options.read_limits(yes, max_time, max_memory)
    options.one_format(as_json, as_csv)
    options.check_report(report, force)
    options.check_force(force and plot is None and report is None, output)
    from vftsim.cli.files import check_target, write_whole
    from vftsim.spec import DURATION
    from vftsim.study.failover import DEFAULT_CRASHES, bands_take, crashes_take, failover_study, with_bands
    from vftsim.study.kept import keep_answer, kept_in
    from vftsim.study.progress import make_progress
    from vftsim.study.protections import under
    from vftsim.study.replicate import fewer

    if plot is not None:
        check_target(plot, force, ".png")
    chosen, count = fewer(options.prepared(model, set_), "crashes", crashes, DEFAULT_CRASHES, quick)
    if protection is not None:
        chosen = under(chosen, protection, domain)
    span_ns = round(options.parse_quantity("--over", over, DURATION))
    after_ns = None if after is None else round(options.parse_quantity("--after", after, DURATION))

    def needs() -> Needs:
        found = crashes_take(chosen, count, load, span_ns, after_ns, domain)
        return found + bands_take(chosen, load, domain, after_ns) if prices else found

    takes = options.limited(limits, needs, jobs)
    with (
        takes as words,
        kept_in(output, "failover", force) as store,
        make_progress(f"failovers of {chosen.name}", quiet, words) as progress,
    ):
        study = failover_study(
            chosen, count, seed, jobs, load=load, domain=domain, span_ns=span_ns, after_ns=after_ns,
            progress=progress, store=store,
        )  # fmt: skip
        if prices:
            study = with_bands(
                study, seed, jobs, load=load, domain=domain, after_ns=after_ns, progress=progress, store=store
            )
        keep_answer(store, study)
    if plot is not None:
        from vftsim.report.charts import figure_of
        from vftsim.study.blocks.failover import failover_charts
        from vftsim.study.results import write_figure

        figure = figure_of(failover_charts(study))
        write_whole(plot, lambda path: write_figure(figure, path))
    options.say_remarks(store.remarks if store else ())
    options.show(study, as_json, as_csv, report)
