"""``vftsim replay``: one run of a result again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vftsim.cli import options
from vftsim.cli.output import OUTSIDE
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.study.designs.past import StoredRun


def replay(
    directory: Path,
    run: int,
    trace: Path | None = None,
    start: str | None = None,
    length: str | None = None,
    debugger: bool = False,
    force: bool = False,
    engine: options.EngineName = options.EngineName.auto,
) -> None:
    """Run one run of a result again, and say whether it is what was kept, to the last bit; else exit code 1.

    Parameters
    ----------
    directory : DIR
        Result of a study, a run or a comparison.
    run : --run N
        Number of the run (replications.csv), from 0.
    trace : --trace FILE
        Write a window of its schedule, for ui.perfetto.dev.
    start : --start TIME
        With --trace: where the window begins, as for vftsim trace.
    length : --length TIME
        With --trace: length of the window.
    debugger : --debugger
        Run it in Python's debugger (pdb), by the engine simpy.
    force : --force
        Replace an existing file.
    """
    if debugger and engine is options.EngineName.compiled:
        raise UsageError("--debugger looks into plain Python: it goes with --engine simpy")
    if trace is None and (start, length) != (None, None):
        raise UsageError("--start and --length are about the window of --trace FILE")
    options.use_engine(options.EngineName.simpy if debugger else engine)
    from vftsim.cli.files import check_target
    from vftsim.report.screen import print_text
    from vftsim.study.designs.past import is_reproduced, stored_run

    if trace is not None:
        check_target(trace, force)
    stored = stored_run(directory, run)
    if trace is not None:
        _write_trace(stored, trace, start, length)
    if debugger:
        _debug(stored)
        return
    is_same = is_reproduced(directory, stored)
    outcomes = {None: "not kept, so not compared", True: "equal to what was kept, to the last bit"}
    print_text(f"{stored.name}: {outcomes.get(is_same, 'NOT what was kept')}.")
    if is_same is False:
        raise typer.Exit(OUTSIDE)


def _write_trace(stored: StoredRun, path: Path, start: str | None, length: str | None) -> None:
    from vftsim.cli.files import write_whole
    from vftsim.cli.window import Window
    from vftsim.report.screen import print_text
    from vftsim.tracing.chrome import write_chrome

    window = Window(start=start, length=length, seed=stored.seed, replication=stored.replication)
    recorded = window.recorded(stored.point.spec)
    write_whole(path, lambda file: write_chrome(recorded, file))
    print_text(
        f"Written: {path} ({recorded.start_ns / 1e6:g} to {recorded.end_ns / 1e6:g} ms); open it at ui.perfetto.dev"
    )


def _debug(stored: StoredRun) -> None:
    import pdb

    from vftsim.composition.run import run_model

    pdb.Pdb(nosigint=True).runcall(run_model, stored.point.spec, stored.seed, stored.replication)
