"""``vftsim schema``: JSON Schema of model files, for editors."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("schema")(schema)


def schema(
    kind: Annotated[
        str | None, typer.Argument(metavar="[KIND]", help="Only this kind of system, e.g. sip_lab.")
    ] = None,
) -> None:
    """Print the JSON Schema of model files (draft 2020-12)."""
    from vftsim.report.screen import print_json
    from vftsim.study.model import models_schema

    print_json(models_schema(kind))
