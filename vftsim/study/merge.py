"""``vftsim merge``: the finished replications of several directories in one, as if one command had made them."""

from __future__ import annotations

import json
import shlex
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vftsim.errors import UsageError
from vftsim.study.database import DAMAGED, DATABASE, check_place, damage
from vftsim.study.manifest import different
from vftsim.study.store import MANIFEST, Opening, Store

VERSIONS = "versions"
_DROPPED = ("-o", "--output", "--shard")
_ONCE = ("--force", "--resume")


@dataclass(frozen=True)
class Merged:
    """What went into a directory.

    Parameters
    ----------
    command : str
        The kind of study.
    new : int
        Replications that came.
    already : int
        Replications that were there before, or in two directories.
    next_command : str
        What writes the tables.
    remarks : list of str
        What was damaged.
    """

    command: str
    new: int
    already: int
    next_command: str
    remarks: list[str] = field(default_factory=list)


def merge(sources: Sequence[Path], target: Path) -> Merged:
    """Put the finished replications of directories into another one, which may have some.

    Raises
    ------
    UsageError
        One is no result, not finished, of another command or made by other versions; or two say different things
        of one replication.
    """
    if target.resolve() in {source.resolve() for source in sources}:
        raise UsageError(f"'{target}' is to be made of the others: name a directory of its own with -o")
    saids = {source: _said(source) for source in sources}
    first, said = next(iter(saids.items()))
    for source, other in saids.items():
        if other["command"] != said["command"]:
            raise UsageError(f"'{source}' holds a {other['command']} and '{first}' a {said['command']}")
        if wrong := different(said[VERSIONS], other[VERSIONS]):
            raise UsageError(f"'{source}' was made by other versions than '{first}' ({wrong}); nothing is mixed")
    new = already = 0
    remarks = list[str]()
    with Store(target, said["command"], Opening.CONTINUE) as store:
        for source in sources:
            with Store(source, said["command"], Opening.CONTINUE) as part:
                missing, there = _missing(part, store)
                store.keep_all(missing)
                new, already = new + len(missing), already + there
                remarks += part.remarks
        remarks += store.remarks
    return Merged(said["command"], new, already, _next(said["command_line"], said["command"], target), remarks)


def _missing(part: Store, store: Store) -> tuple[list[tuple[Mapping[str, Any], int, Any]], int]:
    """Return the replications of a part that a store has not, and how many it has.

    Raises
    ------
    UsageError
        It has one with other content.
    """
    missing, already = list[tuple[Mapping[str, Any], int, Any]](), 0
    for identity, _ in part.studies():
        there = store.known(identity)
        for number, data in part.known(identity).items():
            if number not in there:
                missing.append((identity, number, data))
            elif data == there[number]:
                already += 1
            else:
                raise UsageError(
                    f"'{part.folder}' and '{store.folder}' differ in replication {number}; was one of them edited?"
                )
    return missing, already


def _said(folder: Path) -> dict[str, Any]:
    """Return the manifest of a finished result.

    Raises
    ------
    UsageError
        It is none.
    """
    if not (folder / DATABASE).is_file():
        raise UsageError(f"'{folder}' is no result of vftsim")
    check_place(folder, is_locked=False)
    try:
        with closing(sqlite3.connect(f"file:{(folder / DATABASE).resolve()}?mode=ro", uri=True)) as connection:
            connection.execute("SELECT 1 FROM about").fetchone()
        said = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except FileNotFoundError:
        said = {}
    except DAMAGED as error:
        raise damage(folder, error) from None
    except ValueError:
        raise UsageError(
            f"'{folder / MANIFEST}' is damaged; the command that made '{folder}' writes it again"
        ) from None
    if not isinstance(said, dict) or said.get("state") == "interrupted" or VERSIONS not in said:
        raise UsageError(f"'{folder}' is not finished: the command that made it goes on, then merge again")
    return said


def _next(words: Sequence[str], command: str, target: Path) -> str:
    """Return the command line of a shard as that of the whole."""
    kept, is_value = list[str](), False
    for word in words[1:]:
        name, equals, _ = word.partition("=")
        if not is_value and name not in (*_DROPPED, *_ONCE) and not word.startswith("-o"):
            kept.append(word)
        is_value = not is_value and word in _DROPPED and not equals
    more = ["--resume"] if command == "run" else []
    return shlex.join(["vftsim", *kept, *more, "-o", str(target)])
