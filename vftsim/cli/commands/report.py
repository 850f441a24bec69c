"""``vftsim report``: a page about a result, or about several beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vftsim.cli import options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("report")(report)


def report(
    directories: Annotated[
        list[Path], typer.Argument(metavar="DIR...", help="Results made with -o or --keep; the first leads.")
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="The page: one file that needs nothing else (.html).")
    ],
    force: options.Force = False,
) -> None:
    """Write a page about a result that can be sent to somebody; of several, one beside the other.

    It holds the answer with its interval, what lies outside the calibration, charts, tables, and all that it takes to
    get the result again. Nothing is simulated.
    """
    import vftsim

    options.check_report(output, force)
    options.write_report(output, vftsim.report(directories))
