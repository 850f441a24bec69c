"""Files of a result apart from the user's own: what was written into its directory, and how that takes its place."""

import contextlib
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from vftsim.files import sha256_of_file, sync_directory

SCRATCH = ".vftsim-writing"


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
