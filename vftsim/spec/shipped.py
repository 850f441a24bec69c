"""Files that come with vftsim: models, calibrations, experiments.

A source checkout keeps them in rooms at the top of the repository (``models/`` beside the package);
an installed wheel carries the same rooms under ``vftsim/_shipped/``.  A shipped file is named by its
path in the room without suffix: ``lab-virtual``, ``xen-media/mixed-d``.
"""

import os
from pathlib import Path
from typing import Literal

from vftsim.errors import UsageError
from vftsim.spec.suggest import instead, shown

Room = Literal["models", "calibration", "experiments"]

PACKAGE = Path(__file__).resolve().parent.parent
"""Where vftsim is: the folder of its rooms."""
SUFFIXES = (".yaml",)


def shipped_dir(room: Room) -> Path:
    """Return the folder of a room, whether vftsim is installed or runs from its repository."""
    for candidate in (PACKAGE / "_shipped" / room, PACKAGE.parent / room):
        if candidate.is_dir():
            return candidate
    raise UsageError(f"this installation of vftsim lacks its '{room}' files; install it again")


def list_shipped(room: Room, suffixes: tuple[str, ...] = SUFFIXES) -> tuple[str, ...]:
    """Return the names of a room's files, sorted."""
    folder = shipped_dir(room)
    files = (p.relative_to(folder) for p in folder.rglob("*") if p.suffix in suffixes and p.is_file())
    return tuple(sorted({path.with_suffix("").as_posix() for path in files}))


def find(room: Room, name_or_path: str, suffixes: tuple[str, ...] = SUFFIXES) -> Path:
    """Return the file a user means: a path that exists, else a shipped name; refuse what is neither."""
    path = Path(name_or_path)
    if is_file(path):
        return path
    names = list_shipped(room, suffixes)
    bare = name_or_path
    for suffix in suffixes:
        bare = bare.removesuffix(suffix)
    if bare in names:
        for suffix in suffixes:
            shipped = shipped_dir(room) / (bare + suffix)
            if is_file(shipped):
                return shipped
    if name_or_path and os.path.lexists(path):
        raise UsageError(f"{shown(name_or_path)} is a directory or a pipe; name a file, which can be read twice")
    beside = [text for suffix in suffixes if is_file(Path(text := f"{name_or_path}{suffix}"))]
    others = f"; did you mean '{beside[0]}'?" if beside else instead(bare, names, f"shipped {room}:")
    raise UsageError(f"no file {shown(name_or_path)} and none shipped by that name{others}")


def is_file(path: Path) -> bool:
    """Return whether a path is a file; a path the system cannot even look up is none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False
