"""``vftsim sweep``: a model over a grid of values and schedulers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.study.sweep import SweepResult


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("sweep")(sweep)


def sweep(
    model: Annotated[
        str | None, typer.Argument(metavar="[MODEL]", help="A model; without one, the shipped Xen media host.")
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="CPU scheduler, several with commas, or 'all' (default: the model's)."),
    ] = None,
    protection: Annotated[
        str | None,
        typer.Option(metavar="KIND,KIND", help="Mechanism, several with commas, or 'all' (default: the model's)."),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="NAME=V,V",
            help="Axis: weight, cap, streams, calls, a parameter of protection (checkpoint_interval, dirty_rate, "
            "bandwidth, round_trip, lag_limit) or a key of the model; repeatable. Replaces the default grid.",
        ),
    ] = None,
    figure: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="A figure to be told, e.g. web.response.p95 or calls.step_1.cpu; repeatable (default: what leads).",
        ),
    ] = None,
    set_: options.Set = None,
    replications: options.Replications = 3,
    seed: options.Seed = options.DEFAULT_SEED,
    duration: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Measured time of a steady state: short for --set measure.duration=TIME."),
    ] = None,
    jobs: options.Jobs = None,
    cluster: options.Cluster = None,
    shard: options.Shard = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Where results are kept (default: sweep-... here)."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Start over; what DIR holds goes when the new result stands.")
    ] = False,
    quick: options.Quick = False,
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
    """Simulate a grid of settings under the same traffic; killed or interrupted, the same command goes on."""
    options.use_engine(engine, cluster, strict=strict)
    limits = options.read_limits(yes, max_time, max_memory)
    options.one_format(as_json, as_csv)
    options.check_report(report, force)
    from vftsim.study.progress import make_progress
    from vftsim.study.shard import Shard
    from vftsim.study.sweep import run_sweep
    from vftsim.study.sweep_grid import plan_grid, with_duration

    share = Shard.parse(shard)
    if shard is not None and output is None:
        raise UsageError("--shard: goes with -o DIR, a directory for each share")
    axes, overrides = grid or (), tuple(set_ or ())
    if duration is not None:
        if quick:
            raise UsageError("--quick and --duration both set the measured time: choose one")
        overrides = with_duration(model, axes, overrides, _duration_ns(duration))
    plan = plan_grid(model, scheduler, axes, overrides, protection)
    if quick:
        plan = plan.quick()
    about = [text for text in (Path(model).stem if model else None, scheduler, protection) if text]
    folder = output or Path("-".join(["sweep", *(about if scheduler or protection else [*about, "default"])]))
    takes = options.limited(limits, lambda: plan.takes(replications), jobs)
    with takes as words, make_progress(f"sweep of {plan.base.name}", quiet, words) as progress:
        result = run_sweep(
            plan.grid(), folder, replications, seed, jobs, force=force, progress=progress, shard=share,
            figures=figure or (),
        )  # fmt: skip
    options.say_remarks(result.remarks)
    _show(result, folder, as_json, as_csv)
    if report is not None:
        options.write_report(report, result.report())
    if result.interrupted:
        from vftsim.cli.main import interrupted

        raise interrupted(
            f"{result.finished} of {result.wanted} replications are kept in '{folder}'; the same command continues"
        )


def _duration_ns(text: str) -> int:
    from vftsim.composition.model import LONGEST_NS, SHORTEST_NS
    from vftsim.spec import DURATION

    value = int(options.parse_quantity("--duration", text, DURATION, "s"))
    if not SHORTEST_NS <= value <= LONGEST_NS:
        shortest, longest = DURATION.format(SHORTEST_NS), DURATION.format(LONGEST_NS)
        raise UsageError(f"--duration: from {shortest}, five packets of a stream, to {longest}")
    return value


def _show(result: SweepResult, folder: Path, as_json: bool, as_csv: bool) -> None:
    if as_json:
        from vftsim.report.screen import print_json

        print_json(result.for_machines())
    elif as_csv:
        from vftsim.study.results import csv_text

        print(csv_text(result.results), end="")
    else:
        result.print_tables()
        from vftsim.report.screen import print_text

        tables = "results.csv, replications.csv, " + ("crossovers.csv, " if result.grid.protections else "")
        figure = "sweep.png, " if result.is_drawn else "no figure of so many points, "
        print_text(f"Written: {folder}/ ({tables}{figure}manifest.json, vftsim.sqlite)")
