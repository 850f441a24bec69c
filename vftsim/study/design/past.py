"""Results that were made before: which there are, any run of theirs again, all figures of all runs in one table."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.study.design.kept_points import NAME, KeptPoint, digest_of, read_points
from vftsim.study.design.runner import simulate
from vftsim.study.figures.summary import Summary
from vftsim.study.files import to_json
from vftsim.study.frames import frame
from vftsim.study.replicate import Task
from vftsim.study.store import MANIFEST, Opening, Store

if TYPE_CHECKING:
    import pandas as pd

_RECORDS = ("run", "compare", "study")
"""Kinds of results that keep whole runs, and what each is of."""
_DEEPEST = 3


def manifest_of(folder: Path) -> dict[str, Any]:
    """Return the manifest of a result.

    Raises
    ------
    UsageError
        There is none.
    """
    try:
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        said = None
    if not isinstance(said, dict) or "vftsim" not in said or "command" not in said:
        raise UsageError(f"'{folder}' is no finished result of vftsim: it has no whole {MANIFEST}")
    return said


def list_results(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Return the results in a directory and below it, each with its manifest, the oldest first.

    Raises
    ------
    UsageError
        There is no such directory.
    """
    if not folder.is_dir():
        raise UsageError(f"'{folder}' is no directory")
    found = []
    for path in sorted(folder.glob(MANIFEST)) + [
        p for d in range(1, _DEEPEST) for p in folder.glob("*/" * d + MANIFEST)
    ]:
        try:
            found.append((path.parent, manifest_of(path.parent)))
        except UsageError:
            continue
    return sorted(found, key=lambda each: str(each[1].get("started_utc")))


@dataclass(frozen=True)
class KeptRun:
    """One run of a result, with all that determines it.

    Parameters
    ----------
    run : int
        Its number: replication times points plus point.
    """

    run: int
    point: KeptPoint
    replication: int
    seed: int

    @property
    def task(self) -> Task:
        """What runs it."""
        return Task(self.point.spec, self.seed, self.replication)

    @property
    def name(self) -> str:
        """In words."""
        values = "".join(f", {name}={value}" for name, value in self.point.values.items())
        return f"run {self.run}: {self.point.label}{values}, replication {self.replication}, seed {self.seed}"


def kept_run(folder: Path, run: int) -> KeptRun:
    """Return a run of a result by its number.

    Raises
    ------
    UsageError
        There is no such run, or its model cannot be made again as it was.
    """
    said, points = manifest_of(folder), _points(folder)
    if not 0 <= run < len(points) * said["replications_wanted"]:
        raise UsageError(f"--run: '{folder}' has runs 0 to {len(points) * said['replications_wanted'] - 1}")
    replication, number = divmod(run, len(points))
    point = points[number]
    if digest_of(point) != point.sha256:
        raise UsageError(f"'{folder}': this version of vftsim reads the model of point {number} as another one")
    return KeptRun(run, point, replication, said["seed"])


def is_as_kept(folder: Path, one: KeptRun) -> bool | None:
    """Run one again; return whether it is what was kept, to the last bit, or None where it was not kept.

    Raises
    ------
    UsageError
        The result does not keep its points.
    """
    kept = _kept(folder, one.point.sha256, one.seed).get(one.replication)
    if kept is None:
        return None
    return bool(json.loads(to_json(simulate(one.task), indent=None)) == kept)


def export(folder: Path) -> pd.DataFrame:
    """Return every run of a result with all its figures, one row a run.

    Raises
    ------
    UsageError
        The result does not keep its points.
    """
    said, points, found = manifest_of(folder), _points(folder), list[dict[str, Any]]()
    with Store(folder, _command(folder), Opening.CONTINUE) as store:
        for point in points:
            known = _known(store, point.sha256, said["seed"])
            for n, data in sorted(known.items()):
                one = Summary("", [(n, RunRecord.from_dict(data))])
                figures = {address.text: one.values(address.text).get(n) for address in one.addresses}
                place = {"run": n * len(points) + point.number, "point": point.number, "model": point.label}
                found.append({**place, **point.values, "replication": n, **figures})
    return frame(sorted(found, key=lambda row: row["run"]))


def _command(folder: Path) -> str:
    command = str(manifest_of(folder)["command"])
    if command not in _RECORDS:
        raise UsageError(f"'{folder}' holds a {command}, whose points are not kept; those of {', '.join(_RECORDS)} are")
    return command


def _points(folder: Path) -> list[KeptPoint]:
    """Return the points of a result; those of a run or a comparison are its models."""
    if (folder / NAME).is_file() or _command(folder) == "study":
        return read_points(folder)
    return [
        KeptPoint(number, model["label"], {}, ModelSpec.model_validate(model["resolved"]), model["sha256"])
        for number, model in enumerate(manifest_of(folder)["models"])
    ]


def _kept(folder: Path, sha256: str, seed: int) -> Mapping[int, Any]:
    with Store(folder, _command(folder), Opening.CONTINUE) as store:
        return _known(store, sha256, seed)


def _known(store: Store, sha256: str, seed: int) -> Mapping[int, Any]:
    for identity, _ in store.studies():
        if identity.get("model") == sha256 and identity.get("seed") == seed:
            return store.known(identity)
    return {}
