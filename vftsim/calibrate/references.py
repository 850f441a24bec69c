"""Models that a calibration or validation names, and the definitions themselves; datasets: ``vftsim.labs.place``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel

from vftsim.labs.place import candidates_for, refuse
from vftsim.spec import find, list_shipped, read_document
from vftsim.spec.shipped import is_file
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


def model_file(node: Node, key: str) -> Path:
    """Return the model file that a value names.

    Raises
    ------
    ModelFileError
        There is none beside the file that names it, and none is shipped by that name.
    """
    found = next((path for path in candidates_for(node, "models") if is_file(path)), None)
    return found or refuse(node, key, "model", list_shipped("models"))
