"""A dataset that grows by imports: one table for each dimension, and the ``dataset.yaml`` that describes them.

What is already there stays, the user's words in ``dataset.yaml`` too: an import adds rows, environments it did
not know and tables it did not have.
"""

import csv
import io
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML
from ruamel.yaml.comments import CommentedMap

from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.dataset import FILE, read_dataset
from vftsim.labs.importing import Figure
from vftsim.labs.table import read_rows
from vftsim.spec.suggest import listing

SCHEMA_FILE = "dataset.schema.json"
_KEYS = ["environment", "phase", "repeat", "metric", "source"]
_STATISTICS = ("n", "mean", "sd", "min", "p50", "p90", "p95", "p99", "max")
_DIMENSIONS = {
    "ms": ("delays", "_ms"),
    "/s": ("rates", "_per_s"),
    "%": ("shares", "_percent"),
    "MB": ("sizes", "_mb"),
    "Mbit/s": ("throughputs", "_mbit_per_s"),
    "count": ("counts", "_count"),
}
_DIGITS = 10
_HEAD = (
    f"# yaml-language-server: $schema={SCHEMA_FILE}\n# Written by vftsim import; names and descriptions are yours.\n"
)


@dataclass(frozen=True, slots=True)
class Imported:
    """One figure with what it was measured in and which tool told it."""

    environment: str
    phase: str
    repeat: str
    source: str
    figure: Figure

    @property
    def key(self) -> tuple[str, ...]:
        """What makes a row its own."""
        return self.environment, self.phase, self.repeat, self.figure.metric


class Growing:
    """The dataset of a folder, as it will be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.file = folder / FILE
        self.exists = self.file.is_file()
        self.rows: dict[str, list[dict[str, str]]] = {}
        self.changed: set[str] = set()
        if self.exists:
            read_dataset(folder)  # a wrong dataset is told before anything is added to it
        for name, suffix in _DIMENSIONS.values():
            path = folder / f"{name}.csv"
            self.rows[name] = _read_own(path, _columns(name, suffix)) if path.is_file() else []

    def add(self, new: Iterable[Imported], replace: bool) -> None:
        """Add rows; refuse one whose environment, phase, repeat and metric are there, if it must not be replaced."""
        for each in new:
            name, suffix = _DIMENSIONS[each.figure.unit]
            same = [row for row in self.rows[name] if tuple(row[key] for key in _KEYS[:4]) == each.key]
            if same and not replace:
                environment, phase, repeat, metric = each.key
                raise UsageError(
                    f"{self.folder} already has {metric} of '{environment}', '{phase}', repeat '{repeat}' "
                    f"(from {same[0]['source']}); --force replaces it, --repeat adds a repeat"
                )
            for row in same:
                self.rows[name].remove(row)
            self.rows[name].append(_as_row(each, name, suffix))
            self.changed.add(name)

    def files(self, environments: Iterable[str], schema: str) -> dict[str, str]:
        """Return name and text of every file to write, the description last."""
        texts = {}
        for name, suffix in _DIMENSIONS.values():
            if name in self.changed:
                texts[f"{name}.csv"] = _table_text(_columns(name, suffix), self.rows[name])
        if not (self.folder / SCHEMA_FILE).exists():
            texts[SCHEMA_FILE] = schema
        texts[FILE] = self._description(environments)
        return texts

    def _description(self, environments: Iterable[str]) -> str:
        # Round trips keep the user's comments; what is read here has passed the strict reader before.
        yaml = YAML(typ="rt")
        yaml.width = 120
        before = self.file.read_text(encoding="utf-8-sig") if self.exists else ""
        data: Any = yaml.load(before) if self.exists else _new(self.folder)
        unchanged = True
        for name in environments:
            if name not in data.setdefault("environments", CommentedMap()):
                data["environments"][name] = _flow({"description": ""})
                unchanged = False
        for unit, (name, suffix) in _DIMENSIONS.items():
            if not self.rows[name]:
                continue
            tables = data.setdefault("tables", CommentedMap())
            if all(table.get("file") != f"{name}.csv" for table in tables.values()):
                tables[name] = _table(name, suffix, unit)
                unchanged = False
        if before and unchanged:
            return before
        stream = io.StringIO()
        yaml.dump(data, stream)
        return stream.getvalue() if self.exists else _HEAD + stream.getvalue()


def write(folder: Path, files: Mapping[str, str]) -> None:
    """Put the files in their places if the dataset that they make is right, all of them or none.

    The dataset is put together and read aside; what then moves files into their places needs no more room on the disk,
    nor does what moves them back when one of them cannot be moved.  Refuses rows that ``dataset.yaml`` forbids (a phase
    that it does not name), and a folder that cannot be written.
    """
    is_new = not folder.exists()
    scratch = (folder.parent if is_new else folder) / f".{folder.name}.importing-{os.getpid()}"
    try:
        new = scratch / folder.resolve().name
        new.mkdir(parents=True)
        _put_together(new, folder, files)
        if is_new:
            new.replace(folder)
        else:
            _move(new, folder, files, scratch)
    except ModelFileError as error:
        file = error.file.replace(str(new), str(folder))
        raise ModelFileError(error.message, file, error.line, error.key) from None
    except OSError as error:
        raise UsageError(f"cannot write '{folder}': {error.strerror or error}") from None
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        shutil.rmtree(scratch, ignore_errors=True)  # it passes over what fails once


def _put_together(new: Path, folder: Path, files: Mapping[str, str]) -> None:
    """Make the dataset as it will be, what stays the same by links, and read it."""
    for name, text in files.items():
        _write(new / name, text.encode("utf-8"))
    if folder.exists():
        for path in folder.iterdir():
            if path.is_file() and path.name not in files:
                (new / path.name).symlink_to(path.resolve())
    read_dataset(new)


def _write(path: Path, content: bytes) -> None:
    with path.open("wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())


def _move(new: Path, folder: Path, files: Iterable[str], scratch: Path) -> None:
    """Move files to their places; if one cannot be moved, move the others back."""
    old = scratch / "old"
    old.mkdir()
    # A table that is not described yet harms nobody, a description of one that is not there would.
    names = sorted(files, key=lambda name: ((folder / name).exists(), name != FILE))
    for name in names:
        if (folder / name).is_file():
            shutil.copyfile(folder / name, old / name)
    moved = []
    try:
        for name in names:
            (new / name).replace(folder / name)
            moved.append(name)
    except OSError:
        for name in reversed(moved):
            if (old / name).exists():
                (old / name).replace(folder / name)
            else:
                (folder / name).unlink()
        raise


def _new(folder: Path) -> dict[str, Any]:
    return {
        "name": folder.resolve().name[:100] or "lab",
        "environments": {},
        "phases": {"meaning": "a run of constant load", "repeats": "the same run again"},
        "tables": {},
    }


def _flow(values: dict[str, Any]) -> CommentedMap:
    """Return a mapping that is written on one line."""
    flow = CommentedMap(values)
    flow.fa.set_flow_style()
    return flow


def _table(name: str, suffix: str, unit: str) -> dict[str, Any]:
    """Return the description of a table that this module writes."""
    columns = {
        column: _flow({"unit": "count" if statistic == "n" else unit, "statistic": statistic, "optional": True})
        for statistic, column in _statistic_columns(name, suffix).items()
    }
    return {
        "file": f"{name}.csv",
        "keys": _flow({key: key for key in _KEYS[:3]}),
        "metric_column": "metric",
        "columns": columns,
    }


def _statistic_columns(name: str, suffix: str) -> dict[str, str]:
    if name == "counts":
        return {"total": f"total{suffix}"}
    return {s: s if s == "n" else f"{s}{suffix}" for s in _STATISTICS}


def _columns(name: str, suffix: str) -> list[str]:
    return [*_KEYS, *_statistic_columns(name, suffix).values()]


def _as_row(each: Imported, name: str, suffix: str) -> dict[str, str]:
    row = dict(zip(_KEYS, (*each.key, each.source), strict=True))
    columns = _statistic_columns(name, suffix)
    return row | {
        column: f"{each.figure.statistics[s]:.{_DIGITS}g}" if s in each.figure.statistics else ""
        for s, column in columns.items()
    }


def _read_own(path: Path, columns: list[str]) -> list[dict[str, str]]:
    rows = [row.cells for row in read_rows(path, ",", columns)]
    others = [name for row in rows[:1] for name in row if name not in columns]
    if others:
        raise ModelFileError(
            f"has columns that an import does not write ({listing(others)}); import into another folder", str(path), 1
        )
    return rows


def _table_text(columns: list[str], rows: list[dict[str, str]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return stream.getvalue()
