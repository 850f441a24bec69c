"""The points of a design on disk, each as what tells it from the first of its model: enough to make it again."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.study.design.points import StudyPoint
from vftsim.study.files import write_json
from vftsim.study.model import Model

NAME = "points.json"
_GONE = {"gone": True}


@dataclass(frozen=True)
class KeptPoint:
    """A point as a directory has it.

    Parameters
    ----------
    label : str
        Of its model.
    values : mapping
        By factor.
    sha256 : str
        Of its model.
    """

    number: int
    label: str
    values: Mapping[str, str]
    spec: ModelSpec
    sha256: str


def write_points(folder: Path, points: Sequence[StudyPoint]) -> None:
    """Write the points of a design into a directory."""
    firsts: dict[str, dict[str, Any]] = {}
    entries = []
    for point in points:
        model = point.model
        own = model.resolved()
        first = firsts.setdefault(point.label, own)
        changes = [[list(path), value] for path, value in _changes(first, own)]
        entries.append(
            {
                "number": point.number,
                "model": point.label,
                "values": dict(point.values),
                "sha256": model.digest(),
                "changes": changes,
            }
        )
    write_json(folder / NAME, {"models": firsts, "points": entries}, indent=None)


def read_points(folder: Path) -> list[KeptPoint]:
    """Return the points of a directory.

    Raises
    ------
    UsageError
        They are not there, or damaged.
    """
    try:
        data = json.loads((folder / NAME).read_text(encoding="utf-8"))
        return [_point(data["models"], entry) for entry in data["points"]]
    except FileNotFoundError:
        raise UsageError(f"'{folder}' has no {NAME}: it holds no finished design of experiments") from None
    except (OSError, ValueError, KeyError, TypeError, IndexError):
        raise UsageError(f"'{folder / NAME}' is damaged; the command that made '{folder}' writes it again") from None


def _point(models: Mapping[str, Any], entry: Mapping[str, Any]) -> KeptPoint:
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
    return KeptPoint(entry["number"], entry["model"], entry["values"], spec, entry["sha256"])


def digest_of(point: KeptPoint) -> str:
    """Return the SHA-256 of a point's model as it was made again."""
    return Model(point.label, point.spec).digest()


def _changes(first: Any, own: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what differs: a path and what stands there; a part of another kind as a whole."""
    if first == own:
        return
    if not (isinstance(first, dict) and isinstance(own, dict)) or first.get("kind") != own.get("kind"):
        yield path, own
        return
    for key in {**first, **own}:
        if key not in own:
            yield (*path, key), _GONE
        elif key not in first:
            yield (*path, key), own[key]
        else:
            yield from _changes(first[key], own[key], (*path, key))
