"""Files that come with vftsim: models, calibrations, experiments.

A source checkout keeps them in rooms at the top of the repository (``models/`` beside the package);
an installed wheel carries the same rooms under ``vftsim/_shipped/``.  A shipped file is named by its
path in the room without suffix: ``lab-virtual``, ``xen-media/mixed-d``.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from vftsim.errors import UsageError
from vftsim.spec.suggest import instead, shown

Room = Literal["models", "calibration", "experiments"]

PACKAGE = Path(__file__).resolve().parent.parent
"""Where vftsim is: the folder of its rooms."""
SUFFIX = ".yaml"


def shipped_dir(room: Room) -> Path:
    """Return the folder of a room, whether vftsim is installed or runs from its repository."""
    for candidate in (PACKAGE / "_shipped" / room, PACKAGE.parent / room):
        if candidate.is_dir():
            return candidate
    raise UsageError(f"this installation of vftsim lacks its '{room}' files; install it again")


def list_shipped(room: Room) -> tuple[str, ...]:
    """Return the names of a room's files, sorted."""
    folder = shipped_dir(room)
    files = (path.relative_to(folder) for path in folder.rglob(f"*{SUFFIX}") if path.is_file())
    return tuple(sorted(path.with_suffix("").as_posix() for path in files))


def find(room: Room, name_or_path: str) -> Path:
    """Return the file a user means: a path that exists, else a shipped name; refuse what is neither."""
    path = Path(name_or_path)
    if is_file(path):
        return path
    names, bare = list_shipped(room), name_or_path.removesuffix(SUFFIX)
    if bare in names:
        return shipped_dir(room) / f"{bare}{SUFFIX}"
    if name_or_path and os.path.lexists(path):
        raise UsageError(f"{shown(name_or_path)} is a directory or a pipe; name a file, which can be read twice")
    beside = f"{name_or_path}{SUFFIX}"
    others = f"; did you mean '{beside}'?" if is_file(Path(beside)) else instead(bare, names, f"shipped {room}:")
    raise UsageError(f"no file {shown(name_or_path)} and none shipped by that name{others}")


def file_or_shipped(name_or_path: str, files: Mapping[str, Path], kind: str, more: str = "") -> Path:
    """Return the file a user means: a path that exists, else one of these by its name; refuse what is neither."""
    path = Path(name_or_path)
    if is_file(path):
        return path
    if name_or_path in files:
        return files[name_or_path]
    others = instead(name_or_path, files, "shipped:")
    raise UsageError(f"no file {shown(name_or_path)} and no shipped {kind} of that name{others}{more}")


def is_file(path: Path) -> bool:
    """Return whether a path is a file; a path the system cannot even look up is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
