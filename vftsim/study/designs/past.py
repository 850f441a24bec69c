"""Past results: a list of them, any of their runs again, and the figures of all their runs in one table."""

from __future__ import annotations

import copy
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.files import to_json, write_json
from vftsim.spec.suggest import with_article
from vftsim.study.designs.points import PROTECTION, Point
from vftsim.study.designs.runner import simulate
from vftsim.study.execution import Task
from vftsim.study.figures.frames import DataFrame, factor_columns, frame
from vftsim.study.figures.summary import Summary
from vftsim.study.figures.validity import changes
from vftsim.study.runs.model import Model
from vftsim.study.runs.versions import different, source_elsewhere
from vftsim.study.store.database import DATABASE
from vftsim.study.store.opened import last_generation, read_manifest, refuse_lacking, spec_of, stored, stored_of
from vftsim.study.store.store import Opening, Store

_RECORDS = ("run", "compare", "study", "sweep")
"""Kinds of results that keep whole runs, and what each is of."""
_DEEPEST = 3


def results_in(folder: Path) -> tuple[list[tuple[Path, dict[str, Any]]], list[str]]:
    """Return the results in a directory and below it with their manifests, the oldest first, and why others have none.

    Refuses a missing directory.
    """
    if not folder.is_dir():
        raise UsageError(f"'{folder}' is no directory")
    results, refused = list[tuple[Path, dict[str, Any]]](), list[str]()
    for path in (path.parent for depth in range(_DEEPEST) for path in sorted(folder.glob("*/" * depth + DATABASE))):
        try:
            results.append((path, read_manifest(path)))
        except UsageError as error:
            refused.append(str(error))
    return sorted(results, key=lambda each: str(each[1].get("started_utc"))), refused


@dataclass(frozen=True)
class StoredRun:
    """One run of a result, with all that determines it."""

    run: int
    """Its number: replication times points plus point."""
    point: StoredPoint
    replication: int
    seed: int

    @property
    def task(self) -> Task:
        return Task(self.point.spec, self.seed, self.replication)

    @property
    def name(self) -> str:
        """In words."""
        values = "".join(f", {name}={value}" for name, value in self.point.values.items())
        return f"run {self.run}: {self.point.label}{values}, replication {self.replication}, seed {self.seed}"


def stored_run(folder: Path, run: int) -> StoredRun:
    """Return a run of a result by its number; refuse one whose model cannot be made again as it was."""
    manifest, points = read_manifest(folder), _points(folder)
    count = len(points) * manifest["replications_wanted"]
    if not 0 <= run < count:
        raise UsageError(f"--run: '{folder}' has runs 0 to {count - 1}")
    replication, number = divmod(run, len(points))
    point = points[number]
    if digest_of(point) != point.sha256:
        elsewhere = "".join(f", or the source of {name} has changed" for name in source_elsewhere(point.spec))
        raise UsageError(
            f"'{folder}': this version of vftsim reads the model of point {number} as another one{elsewhere}"
        )
    return StoredRun(run, point, replication, manifest["seed"])


def is_reproduced(folder: Path, run: StoredRun) -> bool | None:
    """Run one again; return whether it is what was stored, to the last bit, or None where it was not stored."""
    stored_data = dict(stored(folder, run.point.sha256, read_manifest(folder))).get(run.replication)
    if stored_data is None:
        return None
    return bool(json.loads(to_json(simulate(run.task), indent=None)) == stored_data)


def export(folder: Path) -> DataFrame:
    """Return every run of a result with all its figures, a row a run; refuse a result that does not keep its points."""
    _command(folder)
    points = _points(folder)
    numbers_of: dict[str, list[int]] = {}
    for point in points:
        numbers_of.setdefault(point.sha256, []).append(point.number)
    figures_of: dict[tuple[int, int], dict[str, float | None]] = {}
    for model, n, data in stored_of(folder, numbers_of, read_manifest(folder)):
        summary = Summary([(n, RunRecord.from_dict(data))])
        figures = {address.text: summary.values(address.text).get(n) for address in summary.addresses}
        figures_of |= dict.fromkeys(((n, number) for number in numbers_of[model]), figures)
    texts = {text for figures in figures_of.values() for text in figures}
    table = []
    for (n, number), figures in sorted(figures_of.items()):
        point = points[number]
        about = {"run": n * len(points) + number, "point": number, "model": point.label}
        table.append({**about, **factor_columns(point.values, texts), "replication": n, **figures})
    return frame(table)


def _command(folder: Path) -> str:
    command = str(read_manifest(folder)["command"])
    if command not in _RECORDS:
        raise UsageError(
            f"'{folder}' holds {with_article(command)}, whose points are not kept; those of {', '.join(_RECORDS)} are"
        )
    return command


def _points(folder: Path) -> list[StoredPoint]:
    """Return the points of a result; those of a run or a comparison are its models, or one under each mechanism."""
    if (folder / NAME).is_file() or _command(folder) in ("study", "sweep"):
        return read_points(folder)
    manifest = read_manifest(folder)
    kinds = design_of(manifest).get(PROTECTION)
    values = [{PROTECTION: kind} for kind in kinds] if kinds else [{}] * len(manifest["models"])
    return [
        StoredPoint(n, model["label"], of_model, spec_of(model["resolved"], manifest), model["sha256"])
        for n, (model, of_model) in enumerate(zip(manifest["models"], values, strict=True))
    ]


NAME = "points.json"
_GONE = {"gone": True}


@dataclass(frozen=True)
class StoredPoint:
    """A point as a directory has it."""

    number: int
    label: str
    """Of its model."""
    values: Mapping[str, str]
    """By factor."""
    spec: ModelSpec
    sha256: str
    """Of its model."""


def write_points(folder: Path, points: Sequence[Point]) -> None:
    firsts: dict[str, dict[str, Any]] = {}
    entries = []
    for point in points:
        model = point.model
        resolved = model.resolved()
        first = firsts.setdefault(point.label, resolved)
        changed = [[list(path), value] for path, value in changes(first, resolved, _GONE)]
        entry = {"number": point.number, "model": point.label, "values": dict(point.values)}
        entries.append({**entry, "sha256": model.digest(), "changes": changed})
    write_json(folder / NAME, {"models": firsts, "points": entries}, indent=None)


def read_points(folder: Path) -> list[StoredPoint]:
    """Return the points of a directory; refuse one without them, or with damaged ones."""
    try:
        data = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return [_point(data["models"], entry) for entry in data["points"]]
    except FileNotFoundError:
        raise UsageError(f"'{folder}' has no {NAME}: it holds no finished design of experiments") from None
    except (OSError, ValueError, KeyError, TypeError, IndexError) as error:
        if isinstance(error, ValidationError):
            refuse_lacking(error, read_manifest(folder))
        raise UsageError(f"'{folder / NAME}' is damaged; the command that made '{folder}' writes it again") from None


def _point(models: Mapping[str, Any], entry: Mapping[str, Any]) -> StoredPoint:
    data = copy.deepcopy(models[entry["model"]])
    for path, value in entry["changes"]:
        holder = data
        for key in path[:-1]:
            holder = holder[key]
        if value == _GONE:
            del holder[path[-1]]
        else:
            holder[path[-1]] = value
    spec = ModelSpec.model_validate(data)
    return StoredPoint(entry["number"], entry["model"], entry["values"], spec, entry["sha256"])


def digest_of(point: StoredPoint) -> str:
    """Return the SHA-256 of a point's model as it was made again."""
    return Model(point.label, point.spec).digest()


VERSIONS = "versions"
_DROPPED = ("-o", "--output", "--shard", "-j", "--jobs", "--cluster", "--max-time", "--max-memory", "--report")
_ONCE = ("--force", "--resume", "--json", "--csv", "-q", "--quiet", "-y", "--yes")
"""Options with a value and without one that say nothing of the study, but how a share of it was made and shown."""
_SHORT = ("-o", "-j")
"""Those whose value may follow at once."""
_POINTS = ("factors", "design")
"""Keys by which a sweep and a study say in their manifest at which points models are."""


@dataclass(frozen=True)
class Merged:
    """Result of a merge into a directory."""

    command: str
    """The kind of study."""
    new: int
    """Replications that came."""
    already: int
    """Replications that were there before, or in two directories."""
    next_command: str
    """Command that writes the tables."""
    remarks: list[str] = field(default_factory=list)
    """Damage that was found."""


def merge(sources: Sequence[Path], target: Path) -> Merged:
    """Put the finished replications of directories into another one, which may have some.

    Refuses one that is no result, not finished, of another command, model, grid or seed, or made by other versions, and
    two that say different things of one replication.  They are read alone, and may be read-only.
    """
    if not sources:
        raise UsageError("what is to be put together: name a directory")
    if target.resolve() in {source.resolve() for source in sources}:
        raise UsageError(f"'{target}' is to be made of the others: name a directory of its own with -o")
    manifests = {source: _finished_manifest(source) for source in sources}
    first, expected = next(iter(manifests.items()))
    command = expected["command"]
    for source, manifest in manifests.items():
        if manifest["command"] != command:
            one, other = with_article(manifest["command"]), with_article(command)
            raise UsageError(f"'{source}' holds {one} and '{first}' {other}")
        if wrong := different(expected[VERSIONS], manifest[VERSIONS]):
            raise UsageError(f"'{source}' was made by other versions than '{first}' ({wrong}); nothing is mixed")
        if wrong := different(_study_of(expected), _study_of(manifest)):
            raise UsageError(f"'{source}' is of another study than '{first}' ({wrong}); nothing is mixed")
    new = already = 0
    remarks = list[str]()
    with Store(target, command, Opening.CONTINUE) as store:
        for source in sources:
            missing, present = _missing(source, store, remarks)
            store.keep_all(missing)
            new, already = new + len(missing), already + present
        remarks += store.remarks
    largest = max(manifests.values(), key=lambda manifest: manifest.get("replications_wanted", 0))
    return Merged(command, new, already, _next(largest["command_line"], command, target), remarks)


def design_of(manifest: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a manifest says of the design of its command; nothing where that has none."""
    design: Mapping[str, Any] = manifest.get(manifest["command"], {})
    return design


def _study_of(manifest: Mapping[str, Any]) -> dict[str, str]:
    """Return what the shares of one study have in common."""
    models = [f"{model['label']} {model['sha256'][:8]}" for model in manifest["models"]]
    about = design_of(manifest)
    points = {name: to_json(about[name], indent=None).strip() for name in _POINTS if name in about}
    return {"seed": str(manifest["seed"]), "models": ", ".join(models), **points}


def _missing(part: Path, store: Store, remarks: list[str]) -> tuple[list[tuple[Mapping[str, Any], int, Any]], int]:
    """Return the replications of a part that a store lacks, and how many it has; refuse one with other content."""
    missing, already = list[tuple[Mapping[str, Any], int, Any]](), 0
    for identity, replications in last_generation(part):
        stored = store.known(identity)
        for number, data in replications.items():
            if data is None:
                remarks.append(f"replication {number} in '{part}' is damaged and is computed again")
            elif number not in stored:
                missing.append((identity, number, data))
            elif data == stored[number]:
                already += 1
            else:
                raise UsageError(
                    f"'{part}' and '{store.folder}' differ in replication {number}; was one of them edited?"
                )
    return missing, already


def _finished_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of a finished result; refuse any other directory."""
    manifest = read_manifest(folder)
    if manifest.get("state") == "interrupted" or VERSIONS not in manifest:
        raise UsageError(f"'{folder}' is not finished: the command that made it goes on, then merge again")
    return manifest


def _next(words: Sequence[str], command: str, target: Path) -> str:
    """Return the command line of a shard as that of the whole."""
    words_left, is_value = list[str](), False
    for word in words[1:]:
        name, equals, _ = word.partition("=")
        if not (is_value or name in (*_DROPPED, *_ONCE) or word.startswith(_SHORT)):
            words_left.append(word)
        is_value = not is_value and word in _DROPPED and not equals
    more = ["--resume"] if command == "run" else []
    return shlex.join(["vftsim", *words_left, *more, "-o", str(target)])
