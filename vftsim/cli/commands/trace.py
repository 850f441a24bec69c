"""``vftsim trace``: who ran where in a window, for Perfetto."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.media.trace import Trace

_LONGEST_NS = 10_000_000_000

Start = Annotated[str, typer.Option(metavar="TIME", help="Where the window begins in simulated time.")]
Length = Annotated[str, typer.Option(metavar="TIME", help="Length of the window.")]
Replication = Annotated[int, typer.Option(help="Number of the replication, from 0.")]


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("trace")(trace)


def trace(
    model: options.ModelName,
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Trace to write (JSON).")],
    start: Start = "500 ms",
    length: Length = "100 ms",
    set_: options.Set = None,
    seed: options.Seed = options.DEFAULT_SEED,
    replication: Replication = 0,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write a window of the schedule as a Chrome trace: pCPUs, vCPUs, rings. Open it at ui.perfetto.dev."""
    if output.is_dir() or (output.exists() and not force):
        raise UsageError(f"'{output}' exists; --force replaces a file")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"cannot write '{output}': there is no such directory")
    recorded = recorded_window(model, set_, seed, replication, start, length)
    from vftsim.media.trace import write_chrome
    from vftsim.report.screen import print_text

    temporary = output.with_name(output.name + ".tmp")
    try:
        write_chrome(recorded, temporary)
        temporary.replace(output)
    except OSError as error:
        raise UsageError(f"cannot write '{output}': {error.strerror or error}") from None
    print_text(
        f"Written: {output} ({recorded.start_ns / 1e6:g} to {recorded.end_ns / 1e6:g} ms: {len(recorded.slices)} "
        f"slices, {len(recorded.waits)} waits, {len(recorded.packets)} packets delivered); open it at ui.perfetto.dev"
    )


def recorded_window(
    model: str, overrides: list[str] | None, seed: int, replication: int, start: str, length: str
) -> Trace:
    """Run a media host up to the end of a window and return what was recorded in it."""
    from vftsim.spec import DURATION

    start_ns = int(options.parse_quantity("--start", start, DURATION))
    length_ns = int(options.parse_quantity("--length", length, DURATION))
    if not 0 < length_ns <= _LONGEST_NS:
        raise UsageError("--length: above 0 and at most 10 s")
    chosen = options.prepared(model, overrides)
    if chosen.kind != "media_host":
        raise UsageError(f"'{model}' is a {chosen.kind}; a schedule is recorded of a media_host")
    from vftsim.media.trace import run_traced
    from vftsim.study.replicate import check_study

    check_study(1, seed, 1)
    if replication < 0:
        raise UsageError("--replication: 0 or above")
    return run_traced(chosen.spec, seed, replication, start_ns, length_ns)[1]
