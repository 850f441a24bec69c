"""Files that another file names: beside it, else shipped."""

from pathlib import Path
from typing import NoReturn

from vftsim.labs.dataset import FILE
from vftsim.spec import Room, list_shipped, shipped_dir
from vftsim.spec.shipped import SUFFIX, is_file
from vftsim.spec.suggest import instead, shown
from vftsim.spec.yaml_source import Node


def dataset_path(node: Node) -> Path:
    """Return the dataset that a value names, a file or folder, beside its file or shipped; refuse where none is."""
    dataset = next((path for path in _candidates(node, "calibration") if is_file(path) or path.is_dir()), None)
    return dataset or _refuse(node, "dataset", "dataset", shipped_datasets())


def model_file(node: Node, key: str) -> Path:
    """Return the model file that a value names; it is refused as :func:`dataset_path` refuses."""
    file = next((path for path in _candidates(node, "models") if is_file(path)), None)
    return file or _refuse(node, key, "model", list_shipped("models"))


def shipped_datasets() -> tuple[str, ...]:
    """Return the names of the datasets that come with vftsim: their folders in ``calibration/``."""
    room = shipped_dir("calibration")
    return tuple(sorted(path.parent.relative_to(room).as_posix() for path in room.rglob(FILE)))


def _candidates(node: Node, room: Room) -> list[Path]:
    """Return where the file that a value names may be."""
    name, beside, shipped = str(node.value), Path(node.file).parent, shipped_dir(room)
    names = [name] if name.endswith(SUFFIX) else [name, name + SUFFIX]
    return [folder / each for folder in (beside, shipped) for each in names]


def _refuse(node: Node, key: str, noun: str, names: tuple[str, ...]) -> NoReturn:
    name = str(node.value)
    others = instead(name, names, "shipped:")
    message = f"there is no {noun} {shown(name)} beside {Path(node.file).name} and none is shipped by that name{others}"
    raise node.error(message, key)
