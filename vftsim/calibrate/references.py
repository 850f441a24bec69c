"""Models and datasets that a calibration or validation names: beside the file that names them, else shipped."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import NoReturn, TypeVar

from pydantic import BaseModel

from vftsim.errors import ModelFileError
from vftsim.labs.dataset import FILE
from vftsim.spec import Room, find, list_shipped, read_document, shipped_dir
from vftsim.spec.shipped import SUFFIXES, is_file
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.spec.yaml_source import Node

T = TypeVar("T", bound=BaseModel)


def read_definition(name_or_path: str, root: type[T]) -> tuple[T, Node]:
    """Return a checked calibration or validation, and its values with their places.

    Raises
    ------
    ModelFileError, UsageError
        The file is wrong; there is none.
    """
    room = partial(find, "calibration")
    document = read_document(name_or_path, room)
    return document.validate(root), document.tree


def place(tree: Node, *keys: str) -> Node:
    """Return the value at a key, or the nearest one above it."""
    node = tree
    for key in keys:
        node = node.value.get(key, node) if isinstance(node.value, dict) else node
    return node


def model_file(node: Node, key: str) -> Path:
    """Return the model file that a value names.

    Raises
    ------
    ModelFileError
        There is none beside the file that names it, and none is shipped by that name.
    """
    name = str(node.value)
    found = next((path for path in _candidates(name, node, "models") if is_file(path)), None)
    return found or _refuse(node, key, "model", list_shipped("models"))


def dataset_path(node: Node, key: str = "dataset") -> Path:
    """Return the dataset that a value names: a file, or a folder that has a ``dataset.yaml``.

    Raises
    ------
    ModelFileError
        There is none beside the file that names it, and none is shipped by that name.
    """
    name = str(node.value)
    candidates = _candidates(name, node, "calibration")
    found = next((path for path in candidates if is_file(path) or path.is_dir()), None)
    return found or _refuse(node, key, "dataset", shipped_datasets())


def shipped_datasets() -> tuple[str, ...]:
    """Return the names of the datasets that come with vftsim: their folders in ``calibration/``."""
    room = shipped_dir("calibration")
    return tuple(sorted(path.parent.relative_to(room).as_posix() for path in room.rglob(FILE)))


def _candidates(name: str, node: Node, room: Room) -> list[Path]:
    beside, shipped = Path(node.file).parent, shipped_dir(room)
    names = [name, *(name + suffix for suffix in SUFFIXES if not name.endswith(suffix))]
    return [folder / each for folder in (beside, shipped) for each in names]


def _refuse(node: Node, key: str, what: str, names: tuple[str, ...]) -> NoReturn:
    name = str(node.value)
    hint = did_you_mean(name, names) or ";"
    raise ModelFileError(
        f"there is no {what} {shown(name)} beside {Path(node.file).name} and none is shipped by that name{hint} "
        f"shipped: {listing(names)}", node.file, node.line, key,
    )  # fmt: skip
