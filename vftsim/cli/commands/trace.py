"""``vftsim trace``: who ran where in a window, for Perfetto or as a figure."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.tracing.trace import Trace

_LONGEST_NS = 10_000_000_000

Start = Annotated[str, typer.Option(metavar="TIME", help="Where the window begins in simulated time.")]
Length = Annotated[str, typer.Option(metavar="TIME", help="Length of the window.")]
Replication = Annotated[int, typer.Option(help="Number of the replication, from 0.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("trace")(trace)


def trace(
    model: options.ModelName,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Trace to write (JSON), for ui.perfetto.dev."),
    ] = None,
    gantt: Annotated[
        Path | None,
        typer.Option("--gantt", metavar="FILE", help="Figure to write (.png): who ran on which pCPU."),
    ] = None,
    start: Start = "500 ms",
    length: Length = "100 ms",
    set_: options.Set = None,
    seed: options.Seed = options.DEFAULT_SEED,
    replication: Replication = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    engine: options.Engine = options.EngineName.auto,
) -> None:
    """Write a window of the schedule: as a Chrome trace (pCPUs, vCPUs, rings), as a Gantt chart, or both."""
    options.use_engine(engine)
    from vftsim.cli.files import check_target, write_whole

    if output is None and gantt is None:
        raise UsageError("say what to write: -o schedule.json, --gantt schedule.png or both")
    if output == gantt:
        raise UsageError(f"'{output}' cannot be both the trace and the figure; name two files")
    if output is not None:
        check_target(output, force)
    if gantt is not None:
        check_target(gantt, force, ".png")
    recorded = recorded_window(model, set_, seed, replication, start, length)
    from vftsim.report.screen import print_text
    from vftsim.tracing.trace import write_chrome

    if output is not None:
        write_whole(output, lambda path: write_chrome(recorded, path))
    if gantt is not None:
        write_whole(gantt, lambda path: _write_gantt(recorded, path))
    print_text(
        f"Written: {' and '.join(str(path) for path in (output, gantt) if path is not None)} "
        f"({recorded.start_ns / 1e6:g} to {recorded.end_ns / 1e6:g} ms: {len(recorded.slices)} "
        f"slices, {len(recorded.waits)} waits, {len(recorded.packets)} packets delivered)"
        + ("; open the trace at ui.perfetto.dev" if output is not None else "")
    )


def _write_gantt(recorded: Trace, path: Path) -> None:
    from vftsim.report.plots import new_figure
    from vftsim.study.results import write_figure
    from vftsim.tracing.gantt import draw_gantt

    figure, (ax,) = new_figure(10.0, 1.4 + 0.55 * recorded.pcpus)
    draw_gantt(recorded, ax)
    write_figure(figure, path)


def recorded_window(
    model: str, overrides: list[str] | None, seed: int, replication: int, start: str, length: str
) -> Trace:
    """Run a model up to the end of a window and return what was recorded in it."""
    from vftsim.spec import DURATION
    from vftsim.tracing.trace import longest_ns

    start_ns = int(options.parse_quantity("--start", start, DURATION))
    length_ns = int(options.parse_quantity("--length", length, DURATION))
    if not 0 < length_ns <= _LONGEST_NS:
        raise UsageError("--length: above 0 and at most 10 s")
    chosen = options.prepared(model, overrides)
    end_ns = longest_ns(chosen.spec)
    if start_ns + length_ns > end_ns:
        raise UsageError(
            f"--start, --length: the run ends after {end_ns / 1e9:g} s, before the window does; "
            "--set measure.duration=... makes it longer"
        )
    from vftsim.study.replicate import check_study
    from vftsim.tracing.trace import run_traced

    check_study(1, seed, 1)
    if replication < 0:
        raise UsageError("--replication: 0 or above")
    return run_traced(chosen.spec, seed, replication, start_ns, length_ns)[1]
