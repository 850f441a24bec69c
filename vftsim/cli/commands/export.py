"""``vftsim export``: every figure of every run of a result in one table."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from vftsim.errors import UsageError


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("export")(export)


def export(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="Result of a study, a run or a comparison.")],
    parquet: Annotated[
        Path | None, typer.Option("--parquet", metavar="FILE", help="Parquet file to write; needs 'vftsim[parquet]'.")
    ] = None,
    csv: Annotated[Path | None, typer.Option("--csv", metavar="FILE", help="CSV file to write.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
) -> None:
    """Write one table with a row for each run: point, factors, replication, and every figure that the run has."""
    from vftsim.cli.files import check_target, write_whole
    from vftsim.report.screen import print_text
    from vftsim.study.design.past import export as table_of
    from vftsim.study.extras import extra
    from vftsim.study.files import write_file
    from vftsim.study.results import csv_text

    asked = [(path, suffix) for path, suffix in ((parquet, ".parquet"), (csv, ".csv")) if path is not None]
    if not asked:
        raise UsageError("say what to write: --parquet FILE, --csv FILE or both")
    for path, suffix in asked:
        check_target(path, force, suffix)
    if parquet is not None:
        extra("pyarrow", "parquet", "--parquet")
    table = table_of(directory)
    if parquet is not None:
        write_whole(parquet, lambda path: table.to_parquet(path, engine="pyarrow", index=False))
    if csv is not None:
        write_whole(csv, lambda path: write_file(path, csv_text(table).encode()))
    names = " and ".join(str(path) for path, _ in asked)
    print_text(f"Written: {names} ({len(table)} runs, {len(table.columns)} columns)")
