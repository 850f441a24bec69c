"""``vftsim export``: every figure of every run of a result in one table."""

from pathlib import Path

from vftsim.errors import UsageError


def export(directory: Path, parquet: Path | None = None, csv: Path | None = None, force: bool = False) -> None:
    """Write one table with a row for each run: point, factors, replication, and every figure that the run has.

    Parameters
    ----------
    directory : DIR
        Result of a study, a run or a comparison.
    parquet : --parquet FILE
        Parquet file to write; needs 'vftsim[parquet]'.
    csv : --csv FILE
        CSV file to write.
    force : --force
        Replace an existing file.
    """
    from vftsim.cli.files import check_target, write_whole
    from vftsim.files import write_file
    from vftsim.report.screen import print_text
    from vftsim.study.designs.past import export as table_of
    from vftsim.study.figures.frames import csv_text
    from vftsim.study.runs.extras import extra

    outputs = [(path, suffix) for path, suffix in ((parquet, ".parquet"), (csv, ".csv")) if path is not None]
    if not outputs:
        raise UsageError("say what to write: --parquet FILE, --csv FILE or both")
    for path, suffix in outputs:
        check_target(path, force, suffix)
    if parquet is not None:
        extra("pyarrow", "parquet", "--parquet")
    table = table_of(directory)
    if parquet is not None:
        write_whole(parquet, lambda path: table.to_parquet(path, engine="pyarrow", index=False))
    if csv is not None:
        write_whole(csv, lambda path: write_file(path, csv_text(table).encode()))
    names = " and ".join(str(path) for path, _ in outputs)
    print_text(f"Written: {names} ({len(table)} runs, {len(table.columns)} columns)")
