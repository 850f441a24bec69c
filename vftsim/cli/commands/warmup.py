"""``vftsim warmup``: compile the kernels of models before they are needed."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from vftsim.cli import options


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("warmup")(warmup)


def warmup(
    models: Annotated[
        list[str] | None, typer.Argument(metavar="[MODEL]...", help="Models (default: all that are shipped).")
    ] = None,
    set_: options.Set = None,
    quiet: options.Quiet = False,
) -> None:
    """Compile what these models need, so that no later run waits for it; kept in the user's cache folder."""
    from vftsim.kernel.compiled_engine import CompiledEngine
    from vftsim.report.screen import print_text
    from vftsim.spec import list_shipped
    from vftsim.study.composed import kernel

    for name in models or list_shipped("models"):
        model = options.prepared(name, set_)
        begun_s = time.monotonic()
        CompiledEngine(kernel(model.spec))
        if not quiet:
            print_text(f"{model.name}: ready after {time.monotonic() - begun_s:.1f} s")
