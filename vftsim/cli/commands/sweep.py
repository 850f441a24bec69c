"""``vftsim sweep``: a model over a grid of values and schedulers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.study.sweep import SweepResult
    from vftsim.study.sweep_grid import Grid

_MEDIA_COLUMNS = (
    ("loss %", "loss_percent"), ("p50 ms", "delay_p50_ms"), ("p99 ms", "delay_p99_ms"), ("CPU dom0", "cpu_{driver}"),
    ("CPU media", "cpu_{media}"), ("CPU all", "cpu_all"),
)  # fmt: skip
_SIP_COLUMNS = (
    ("DOC SAPS", "doc_saps"), ("stop step", "stop_step"), ("step 1: CPU %", "step1_cpu_percent"),
    ("IHS %", "step1_ihs_percent"), ("SES1 p50 ms", "step1_ses1_p50_ms"), ("SES1 p99 ms", "step1_ses1_p99_ms"),
)  # fmt: skip


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
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            metavar="NAME=V,V",
            help="Axis: weight, cap, streams, calls or a key of the model; repeatable. Replaces the default grid.",
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
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="DIR", help="Where results are kept (default: sweep-... here)."),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Start over; what DIR holds goes when the new result stands.")
    ] = False,
    as_json: options.Json = False,
    as_csv: options.Csv = False,
    quiet: options.Quiet = False,
    yes: options.Yes = False,
    max_time: options.MaxTime = None,
    max_memory: options.MaxMemory = None,
    engine: options.Engine = options.EngineName.auto,
) -> None:
    """Simulate a grid of settings under the same traffic; killed or interrupted, the same command goes on."""
    options.use_engine(engine)
    limits = options.read_limits(yes, max_time, max_memory)
    options.one_format(as_json, as_csv)
    from vftsim.study.estimate import total
    from vftsim.study.progress import make_progress
    from vftsim.study.sweep import run_sweep
    from vftsim.study.sweep_grid import make_grid, with_duration

    axes, overrides = grid or (), tuple(set_ or ())
    if duration is not None:
        overrides = with_duration(model, axes, overrides, _duration_ns(duration))
    points = make_grid(model, scheduler, axes, overrides)
    folder = output or Path("-".join(["sweep", *([Path(model).stem] if model else []), scheduler or "default"]))
    takes = options.limited(limits, lambda: total([point.model.spec for point in points.points], replications), jobs)
    with takes as words, make_progress(f"sweep of {points.base.name}", quiet, words) as progress:
        result = run_sweep(points, folder, replications, seed, jobs, force=force, progress=progress)
    options.say_remarks(result.remarks)
    _show(result, folder, as_json, as_csv)
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
        _print(result, folder)


def _print(result: SweepResult, folder: Path) -> None:
    from vftsim.report.screen import print_table, print_text
    from vftsim.report.tables import INTERVALS, print_head

    said, grid = result.manifest, result.grid
    print_head(said["models"], said["seed"])
    for line in _about(result):
        print_text(line)
    columns = _columns(grid)
    shown = {(row.point, row.metric): row for row in result.results.itertuples()}
    body = [
        (*([point.scheduler] if point.scheduler else []), *point.values.values(),
         *(_cell(shown.get((point.number, metric))) for _, metric in columns), str(len(result.records[point.number])))
        for point in grid.points
        if result.records[point.number]
    ]  # fmt: skip
    heads = [*(["scheduler"] if grid.schedulers != ("",) else []), *(axis.name for axis in grid.axes)]
    print_table(
        "Sweep", (*heads, *(head for head, _ in columns), "n"), body,
        f"n replications with the same traffic at every point, seed {said['seed']}. {INTERVALS}", texts=len(heads),
    )  # fmt: skip
    for line in _findings(result):
        print_text(line)
    print_text(f"Written: {folder}/ (results.csv, replications.csv, sweep.png, manifest.json, vftsim.sqlite)")


def _about(result: SweepResult) -> list[str]:
    from vftsim.composition.views import has_bench
    from vftsim.study.sweep_grid import SHORT_MEANINGS

    lines = [
        f"{axis.name}: {SHORT_MEANINGS[axis.name]}"
        for axis in result.grid.axes
        if axis.name in SHORT_MEANINGS and "." not in axis.name
    ]
    if not has_bench(result.grid.base.spec):
        lines.append(_times(result.grid))
    if result.already:
        lines.append(f"{result.already} of {result.wanted} replications were on disk already")
    return lines


def _times(grid: Grid) -> str:
    from vftsim.spec import DURATION

    measures = [point.model.spec.measure for point in grid.points]
    measured, warm_up = (
        ", ".join(DURATION.format(time_ns) for time_ns in dict.fromkeys(times_ns))
        for times_ns in ((m.duration for m in measures), (m.warm_up for m in measures))
    )
    return (
        f"Each replication measures {measured} after {warm_up} of warm-up (measure.duration, measure.warm_up); "
        "more of it, or more --replications, sharpen the intervals"
    )


def _columns(grid: Grid) -> list[tuple[str, str]]:
    from vftsim.composition.views import has_bench, rtp_of

    spec = grid.base.spec
    if has_bench(spec):
        return list(_SIP_COLUMNS)
    rtp = rtp_of(spec)
    drivers = [driver for driver in map(spec.driver_of, spec.hosts) if driver]
    names = {"driver": drivers[0] if drivers else "", "media": spec.target_of(rtp)[0] if rtp else ""}
    return [(head, metric.format(**names)) for head, metric in _MEDIA_COLUMNS]


def _cell(row: Any) -> str:
    from vftsim.report.screen import error_bar

    return "" if row is None else error_bar(row.estimate, row.low, row.high, row.interval)


def _findings(result: SweepResult) -> list[str]:
    from vftsim.study.sweep_plot import LOSS_FREE_PERCENT

    lines = [f"Refused by {name}: {why}" for name, why in result.refusals.items()]
    for scheduler, axis in result.without_effect():
        lines.append(f"{axis} changed nothing{f' under {scheduler}' if scheduler else ''}, to the last digit")
    losses = result.results[result.results["metric"] == "loss_percent"]
    if not losses.empty:
        highest = losses["high"].fillna(losses["estimate"])
        where = "upper end of the interval, or highest run"
        free = int((highest < LOSS_FREE_PERCENT).sum())
        lines.append(f"Loss below {LOSS_FREE_PERCENT:g} % ({where}): {free} of {len(losses)} points")
    return lines
