"""Files that are there completely or not at all, and those of a result apart from the user's own."""

import contextlib
import hashlib
import json
import math
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import BeforeValidator, TypeAdapter

SCRATCH = ".vftsim-writing"


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there completely or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is not None:
            error.filename = str(path)
        raise


def to_json(data: Any, indent: int | None = 2) -> str:
    """Return JSON text that is the same for equal data; not-a-number becomes null.

    Bytes of file names that are no UTF-8, which Python holds as lone surrogates, are written as escapes.
    """
    try:
        text = _dumped(data, indent)
    except (TypeError, ValueError):  # there is a number that JSON lacks, or a mapping that it does not know
        text = _dumped(_finite(data), indent)
    return text.encode(errors="backslashreplace").decode()


def _dumped(data: Any, indent: int | None) -> str:
    return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)


T = TypeVar("T")
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
Endless = Annotated[float, BeforeValidator(lambda value: math.inf if value is None else value)]
"""Of a class that is read back: a number that may be none, or infinite, where JSON has null."""


@cache
def codec(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return what makes plain data of a dataclass, or of another type with its parts, and what reads it back."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return adapter.dump_python, adapter.validate_python


def read_back(kind: type[T], data: Mapping[str, Any], **known: Any) -> T:
    """Return a dataclass of what is known, and of those other fields that are in plain data under their names."""
    kinds = {name: each for name, each in get_type_hints(kind).items() if name in data and name not in known}
    return kind(**known, **{name: codec(each)[1](data[name]) for name, each in kinds.items()})


def write_json(path: Path, data: Any, indent: int | None = 2) -> None:
    write_file(path, (to_json(data, indent) + "\n").encode())


def sha256_of_file(path: Path) -> str | None:
    """Return the SHA-256 of a file's content; None if there is no such file, or no plain one (a pipe has no end)."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync_directory(folder: Path) -> None:
    """Make names in a directory durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


class Ledger:
    """Table in the database of a result: files that were written into its directory."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def wrote(self, name: str, sha256: str) -> bool:
        """Whether a file of this name and content was written here."""
        rows = self._connection.execute("SELECT 1 FROM files WHERE name = ? AND sha256 = ?", (name, sha256))
        return rows.fetchone() is not None

    def names(self) -> list[str]:
        """Return the names of all files that were written here; a damaged page may hold what is none."""
        names = self._connection.execute("SELECT DISTINCT name FROM files WHERE typeof(name) = 'text'")
        return [name for (name,) in names]

    def add(self, files: Mapping[str, str]) -> None:
        """Note files (name and SHA-256) before they are put in place."""
        self._connection.executemany("INSERT OR IGNORE INTO files (name, sha256) VALUES (?, ?)", list(files.items()))


def publish(folder: Path, write: Callable[[Path], None], ledger: Ledger, last: str) -> tuple[dict[str, str], list[str]]:
    """Let ``write`` fill a directory aside, then put each of its files into the folder in one step.

    A file that stands in the way and is not as this program wrote it is the user's: it is kept under another name.  The
    ``last`` file says what the others are, and is put in place after them.  Returns the files by name with their
    SHA-256, and names that files of the user were given.
    """
    scratch = folder / SCRATCH
    clear(scratch)
    scratch.mkdir()
    try:
        write(scratch)
        files = _fingerprints(scratch)
        ledger.add(files)
        moved = [
            _put(scratch / name, folder / name, name, ledger) for name in sorted(files, key=lambda n: (n == last, n))
        ]
        sync_directory(folder)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return files, [name for name in moved if name]


def clear(scratch: Path) -> None:
    """Remove a directory of unfinished files; anything else of its name is not ours, and a pipe would be waited for."""
    if scratch.is_dir() and not scratch.is_symlink():
        shutil.rmtree(scratch, ignore_errors=True)


def remove_ours(folder: Path, names: Iterable[str], ledger: Ledger) -> None:
    """Remove files that are as this program wrote them, and directories that this leaves empty."""
    for name in names:
        digest = sha256_of_file(folder / name)
        if digest is None or not ledger.wrote(name, digest):
            continue
        (folder / name).unlink()
        with contextlib.suppress(OSError):
            if (folder / name).parent != folder:
                (folder / name).parent.rmdir()


def _fingerprints(scratch: Path) -> dict[str, str]:
    digests = {}
    for path in sorted(scratch.rglob("*")):
        digest = sha256_of_file(path)
        if digest is not None:
            digests[path.relative_to(scratch).as_posix()] = digest
    return digests


def _put(source: Path, target: Path, name: str, ledger: Ledger) -> str:
    target.parent.mkdir(exist_ok=True)
    new_name = ""
    if target.is_symlink() or target.exists():
        digest = None if target.is_symlink() else sha256_of_file(target)
        if digest is None or not ledger.wrote(name, digest):
            new_name = _keep_aside(target)
    source.replace(target)
    return new_name


def _keep_aside(path: Path) -> str:
    number, aside = 1, path.with_name(f"{path.name}.kept")
    while aside.exists() or aside.is_symlink():
        number += 1
        aside = path.with_name(f"{path.name}.kept-{number}")
    path.rename(aside)
    return aside.name


def _finite(data: Any) -> Any:
    """Return data with every number that JSON lacks made None, tuples made lists."""
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data


def sha256_of(data: Any) -> str:
    """Return the SHA-256 of plain data, whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
