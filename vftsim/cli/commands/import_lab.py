"""``vftsim import``: what measuring tools write, into a dataset."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from vftsim.cli import options
from vftsim.errors import UsageError

if TYPE_CHECKING:
    from vftsim.labs.imported import Imported
    from vftsim.labs.importing import Window

_NAME = "--{} needs a name of 1 to 200 characters without control characters"
_RENAMED = "--rename '{}': a metric is called by letters, digits and '_./-', its statistics (p95) come by themselves"


def import_lab(
    files: list[Path],
    output: Path,
    environment: str,
    phase: str | None = None,
    repeat: str = "1",
    start: str | None = None,
    until: str | None = None,
    rename: list[str] | None = None,
    kind: str | None = None,
    force: bool = False,
    as_json: bool = False,
) -> None:
    """Read the files of measuring tools into a dataset for 'vftsim calibrate'; several runs, several commands.

    Parameters
    ----------
    files : FILE...
        What SIPp (-trace_stat, -trace_rtt, -trace_counts, -trace_screen), IMS Bench SIPp (report), sar, sadf -d,
        httperf, iperf, iperf3 -J, or a loop over a control group's cpu.stat wrote, of one run.
    output : --output, -o DIR
        Dataset to make, or to add to.
    environment : --environment, -e NAME
        Environment that was measured.
    phase : --phase NAME
        Phase that was measured, e.g. step_1; a report names its own.
    repeat : --repeat NAME
        Which repeat of the phase.
    start : --from TIME
        Leave out what was before, e.g. '4 s'.
    until : --until TIME
        Leave out what was after, e.g. '22 s'.
    rename : --rename OLD=NEW
        Call a metric otherwise, e.g. cpu/1=cpu; repeatable.
    kind : --as KIND
        What the files are, if that is not recognized.
    """
    from vftsim.files import to_json
    from vftsim.kernel.alone import alone
    from vftsim.labs import imported
    from vftsim.labs.definition import DatasetSpec
    from vftsim.report.screen import print_json
    from vftsim.spec import json_schema

    for option, name in (("environment", environment), ("phase", phase), ("repeat", repeat)):
        if name is not None and not (0 < len(name.strip()) <= 200 and name.isprintable()):
            raise UsageError(_NAME.format(option))
    if output.exists() and not output.is_dir():
        raise UsageError(f"'{output}' is a file; a dataset is a folder")
    if not output.absolute().parent.is_dir():
        raise UsageError(f"cannot write '{output}': there is no such directory")
    rows, notes = _read(files, kind, _window(start, until), _renames(rename), (environment, phase, repeat))
    schema = to_json(json_schema(DatasetSpec, "vftsim dataset")) + "\n"
    with alone(output.absolute().parent):  # an import that reads the tables before another's are there would lose them
        growing = imported.Growing(output)
        growing.add(rows, force)
        written = growing.files([environment], schema)
        imported.write(output, written)
    for note in notes:
        typer.echo(f"note: {note}", err=True)
    if as_json:
        print_json({"dataset": str(output), "files": list(written), "figures": [_as_dict(each) for each in rows]})
    else:
        _show(output, rows)


def _read(
    files: list[Path], kind: str | None, window: Window, renames: dict[str, str], keys: tuple[str, str | None, str]
) -> tuple[list[Imported], list[str]]:
    """Return the rows of all files, and in words what was left out; the file named first wins."""
    from vftsim.labs.imported import Imported
    from vftsim.labs.importing import Figure, Source, figures_of, importer_for
    from vftsim.labs.table import MAX_BYTES
    from vftsim.spec.yaml_source import read_text

    environment, phase, repeat = keys
    rows: dict[tuple[str, ...], Imported] = {}
    left_out: dict[tuple[str, str, str], list[str]] = {}
    unused = dict(renames)
    for path in files:
        text = read_text(path, MAX_BYTES)
        importer = importer_for(text, str(path), kind)
        for figure in figures_of(Source(text, str(path), window), importer):
            if bool(figure.phase) == bool(phase):
                raise UsageError(
                    f"'{path}' names its phases itself; leave --phase out"
                    if figure.phase
                    else f"'{path}' does not say which phase it measured; add --phase, e.g. --phase step_1"
                )
            if figure.metric in renames.values() and figure.metric not in renames:
                continue  # another metric takes its name
            unused.pop(figure.metric, None)
            name = renames.get(figure.metric, figure.metric)
            named = Figure(name, figure.unit, figure.statistics, figure.phase)
            row = Imported(environment, figure.phase or str(phase), repeat, importer.name, named)
            if row.key in rows:
                left_out.setdefault((path.name, importer.name, rows[row.key].source), []).append(name)
            rows.setdefault(row.key, row)
    if unused:
        raise UsageError(f"--rename: no file has a metric '{next(iter(unused))}'")
    notes = [
        f"{len(names)} of the figures of {file} ({source}) taken from {winner}, which was named first: "
        f"{', '.join(names[:3])}{', ...' if len(names) > 3 else ''}"
        for (file, source, winner), names in left_out.items()
    ]
    return list(rows.values()), notes


def _window(start: str | None, until: str | None) -> Window:
    from vftsim.labs.importing import Window
    from vftsim.spec import DURATION

    whole = Window()
    begin = options.parse_quantity("--from", start, DURATION) / 1e9 if start else whole.start_s
    end = options.parse_quantity("--until", until, DURATION) / 1e9 if until else whole.end_s
    if end <= begin:
        raise UsageError("--until must be after --from")
    return Window(begin, end)


def _renames(texts: list[str] | None) -> dict[str, str]:
    from vftsim.labs.definition import METRIC, STATISTICS

    names: dict[str, str] = {}
    for text in texts or []:
        old, sign, new = text.partition("=")
        if not (sign and old and new):
            raise UsageError(f"--rename '{text}' must be OLD=NEW, e.g. cpu/1=cpu")
        if not re.match(METRIC, new) or re.match(STATISTICS, new.rpartition("/")[2]):
            raise UsageError(_RENAMED.format(text))
        if other := next((each for each, name in names.items() if name == new and each != old), None):
            raise UsageError(f"--rename: '{other}' and '{old}' would both be called '{new}'")
        names[old] = new
    return names


def _as_dict(row: Imported) -> dict[str, object]:
    figure = row.figure
    names = ("environment", "phase", "repeat", "source")
    keys = {name: getattr(row, name) for name in names}
    return {**keys, "metric": figure.metric, "unit": figure.unit, "statistics": figure.statistics}


def _show(output: Path, rows: list[Imported]) -> None:
    from vftsim.report.screen import print_table

    statistics = {statistic for row in rows for statistic in row.figure.statistics}
    shown = [each for each in ("n", "mean", "p50", "p90", "p99", "max", "total") if each in statistics]
    lines = [
        (
            row.phase,
            row.figure.metric,
            row.figure.unit,
            row.source,
            *(f"{row.figure.statistics[s]:.4g}" if s in row.figure.statistics else "" for s in shown),
        )
        for row in rows
    ]
    print_table(
        f"Imported into {output}",
        ("phase", "metric", "unit", "source", *shown),
        lines,
        f"{len(rows)} figures; {output / 'dataset.yaml'} describes them",
    )
