"""The SQLite file of a result: its form, the mark that makes it ours, and how it is opened.

Beside it, files of a result apart from the user's own: what was written into its directory, and how that takes its
place.
"""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path, PurePath
from tempfile import TemporaryDirectory
from typing import Any

from vftsim._version import __version__
from vftsim.errors import UsageError
from vftsim.files import sha256_of, sha256_of_file, sync_directory
from vftsim.study.store.lock import LOCK, DirectoryLock

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
            number, aside = 1, target.with_name(f"{target.name}.kept")
            while aside.exists() or aside.is_symlink():
                number += 1
                aside = target.with_name(f"{target.name}.kept-{number}")
            target.rename(aside)
            new_name = aside.name
    source.replace(target)
    return new_name


DATABASE = "vftsim.sqlite"
APPLICATION = 0x76667473  # "vfts", in the header of the file
FORMAT = 2
_HEADER_BYTES, _PAGE_AT, _FORMAT_AT, _APPLICATION_AT = 100, 16, 60, 68  # sqlite.org/fileformat.html, 1.3
_BESIDE = ("-wal", "-shm", "-journal")
DAMAGED = (sqlite3.DatabaseError, UnicodeDecodeError)
"""Exceptions of a damaged database; the second where the text of its message is damaged itself."""
OUR_NAMES = {LOCK, SCRATCH, *(f"{DATABASE}{end}" for end in (".new", ".new-journal", "-journal"))}
_SCHEMA = f"""
PRAGMA auto_vacuum = INCREMENTAL;
BEGIN;
PRAGMA application_id = {APPLICATION};
PRAGMA user_version = {FORMAT};
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE studies (
    id INTEGER PRIMARY KEY,
    generation INTEGER NOT NULL,
    key TEXT NOT NULL,
    identity TEXT NOT NULL,
    UNIQUE (generation, key)
);
CREATE TABLE replications (
    study INTEGER NOT NULL REFERENCES studies (id),
    replication INTEGER NOT NULL,
    data BLOB NOT NULL,
    sha256 TEXT NOT NULL,
    PRIMARY KEY (study, replication)
);
CREATE TABLE files (name TEXT NOT NULL, sha256 TEXT NOT NULL, PRIMARY KEY (name, sha256));
"""


LARGEST = 1 << 53
"""Bound of numbers of generations and replications; JSON readers hold numbers up to there exactly."""
_WRONG = {
    "studies": f"typeof(generation) != 'integer' OR generation NOT BETWEEN 1 AND {LARGEST}",
    "replications": f"typeof(study) != 'integer' OR typeof(replication) != 'integer' "
    f"OR replication NOT BETWEEN 0 AND {LARGEST} "
    "OR study NOT IN (SELECT id FROM studies)",  # a new study would take its number
    "files": "typeof(name) != 'text' OR typeof(sha256) != 'text'",
}
"""Conditions of an invalid row, by table."""


def create(folder: Path, command: str) -> None:
    """Make an empty database aside, then give it its name: the name stands for a whole one."""
    new = folder / f"{DATABASE}.new"
    try:
        create_file(new, {"command": command, "vftsim": __version__}).close()
        new.replace(folder / DATABASE)
    except BaseException:
        remove_unfinished(new)
        raise
    sync_directory(folder)
    sync_directory(folder.parent)


def create_file(path: Path, about: Mapping[str, str]) -> sqlite3.Connection:
    """Make an empty database, open for more."""
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.executescript(_SCHEMA)
        connection.executemany("INSERT INTO about (name, value) VALUES (?, ?)", list(about.items()))
        connection.execute("COMMIT")
    except BaseException:
        connection.close()
        raise
    return connection


def remove_unfinished(path: Path) -> None:
    """Remove a database that was being made, and its journal."""
    for file in (path, path.with_name(f"{path.name}-journal")):
        with contextlib.suppress(OSError):
            file.unlink(missing_ok=True)


def connect(path: Path) -> sqlite3.Connection:
    """Open a database of this program for one writer."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=1.0)
    try:
        for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL"):
            connection.execute(f"PRAGMA {pragma}").fetchall()
        connection.execute("SELECT count(*) FROM studies").fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


@contextmanager
def reading(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a directory's database as :func:`unchanged`; refused while somebody writes it, and where it is damaged."""
    DirectoryLock(folder).refuse_taken()
    try:
        with unchanged(folder) as connection:
            yield connection
    except DAMAGED as error:
        raise damage(folder, error) from None


@contextmanager
def unchanged(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open the database of a directory, which may be read-only, without a change there.

    SQLite would put files of its own beside it.  So it is read as one that nobody changes, and from a copy where a
    killed command has left its log.
    """
    log = folder / f"{DATABASE}-wal"
    with contextlib.ExitStack() as opened:
        folder_read, how = folder, "immutable=1"
        if log.is_file() and log.stat().st_size:
            folder_read, how = opened.enter_context(copied(folder)), "mode=rw"
        (folder_read / DATABASE).open("rb").close()  # says why it cannot be read; SQLite does not
        uri = f"{(folder_read / DATABASE).resolve().as_uri()}?{how}"
        yield opened.enter_context(contextlib.closing(sqlite3.connect(uri, uri=True)))


def is_noted(folder: Path, file: Path) -> bool:
    """Return whether a file, wherever it lies, is as a command of this result noted it."""
    digest = sha256_of_file(file) if (folder / DATABASE).is_file() else None
    if digest is None:
        return False
    with contextlib.suppress(*DAMAGED, OSError), unchanged(folder) as connection:
        return connection.execute("SELECT 1 FROM about WHERE name = ?", (digest,)).fetchone() is not None
    return False


def note(folder: Path, file: Path) -> None:
    """Note a file that a command of this result has just written elsewhere, so that it may take its place again.

    Not where there is no result, or another program has it: the file stays one to be asked about.
    """
    if (folder / DATABASE).is_file() and (digest := sha256_of_file(file)) is not None:
        with contextlib.suppress(*DAMAGED, OSError), contextlib.closing(connect(folder / DATABASE)) as connection:
            connection.execute("INSERT OR IGNORE INTO about (name, value) VALUES (?, 'a file beside')", (digest,))


@contextmanager
def copied(folder: Path) -> Iterator[Path]:
    """Copy the database of a directory, and its log, to another for as long as it is looked at."""
    with TemporaryDirectory() as name:
        for file in (DATABASE, f"{DATABASE}-wal"):
            if (folder / file).exists():
                shutil.copyfile(folder / file, Path(name) / file)
        yield Path(name)


def is_key_of(key: object, identity: object) -> bool:
    """Whether a study's key is the hash of what it says to be."""
    try:
        content = json.loads(str(identity))
        return isinstance(content, dict) and sha256_of(content) == key
    except (ValueError, RecursionError):
        return False


def unsound(connection: sqlite3.Connection) -> str:
    """Return what in a database is not as this program makes it, in words; empty if nothing is.

    What stands in the fields of replications is no matter here: each has its checksum.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        model.executescript(f"{_SCHEMA}COMMIT;")
        if _tables(connection) != _tables(model):
            return "its tables are not those of this program"
    if connection.execute("SELECT 1 FROM about WHERE name = 'command' AND typeof(value) = 'text'").fetchone() is None:
        return "the kind of study is lost"
    for table, wrong in _WRONG.items():
        if connection.execute(f"SELECT 1 FROM {table} WHERE {wrong} LIMIT 1").fetchone() is not None:
            return f"a row of its table '{table}' cannot be"
    if any(not is_key_of(*study) for study in connection.execute("SELECT key, identity FROM studies")):
        return "a study is not what its hash says"
    if not all(is_inside(name) for (name,) in connection.execute("SELECT name FROM files")):
        return "it names files outside of the directory"
    return ""


def is_inside(name: object) -> bool:
    """Whether a name is that of a file in the directory or below."""
    if not isinstance(name, str) or "\0" in name:
        return False
    path = PurePath(name)
    return bool(path.parts) and not path.is_absolute() and ".." not in path.parts


def _tables(connection: sqlite3.Connection) -> set[Any]:
    return set(connection.execute("SELECT type, name, sql FROM sqlite_master"))


def in_words(error: object) -> str:
    """Return what a damaged database is said to have."""
    return "its text is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error)


def with_our_schema(content: bytes) -> bytes:
    """Return a database whose first page, which says what its tables are and where, is that of every new one.

    The tables are made once, in one order, and are never moved, so a damaged first page can be replaced.  Its
    header, which says how much there is, stays.
    """
    with contextlib.closing(sqlite3.connect(":memory:")) as model:
        model.executescript(f"{_SCHEMA}COMMIT;")
        first = model.serialize()
    page = int.from_bytes(first[_PAGE_AT : _PAGE_AT + 2], "big")
    return content[:_HEADER_BYTES] + first[_HEADER_BYTES:page] + content[page:]


def damage(folder: Path, error: object) -> UsageError:
    """Return what a database that cannot be read is answered with."""
    return UsageError(
        f"'{folder / DATABASE}' is damaged ({in_words(error)}); 'vftsim check {folder} --repair' saves what can be read"
    )


def format_of(folder: Path) -> int | None:
    """Return the format of the result that a directory holds, by the mark in the database's header; None: no result."""
    if not (folder / DATABASE).is_file():
        return None
    with (folder / DATABASE).open("rb") as stream:
        header = stream.read(_HEADER_BYTES)
    if int.from_bytes(header[_APPLICATION_AT : _APPLICATION_AT + 4], "big") != APPLICATION:
        return None
    return int.from_bytes(header[_FORMAT_AT : _FORMAT_AT + 4], "big")


def check_directory(folder: Path, *, is_locked: bool) -> None:
    """Refuse a place that is neither free nor a result of this program in this format.

    Before the lock is held, a directory with a lock file passes: its holder may be about to make the database.
    """
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir():
        raise UsageError(f"'{folder}' exists and is no result of vftsim; choose another name")
    for name in (DATABASE, *(f"{DATABASE}{end}" for end in _BESIDE)):
        if (folder / name).exists() and not (folder / name).is_file():  # a pipe would be waited for
            raise UsageError(f"'{folder}' is no result of vftsim: '{name}' is no plain file; choose another name")
    scratch = folder / SCRATCH
    if scratch.is_symlink() or (scratch.exists() and not scratch.is_dir()):
        raise UsageError(f"'{folder}' is no result of vftsim: '{SCRATCH}' is no directory; choose another name")
    format_there = format_of(folder)
    names = {path.name for path in folder.iterdir()} if format_there is None else set()
    if LOCK in names and not is_locked:
        return
    if names - OUR_NAMES:
        raise UsageError(f"'{folder}' exists and is no result of vftsim; choose another name")
    if format_there is not None and format_there != FORMAT:
        raise UsageError(
            f"'{folder}' is a result in format {format_there} of another version of vftsim; this one reads format "
            f"{FORMAT}; choose another name"
        )


@contextmanager
def forbidden(folder: Path, verb: str = "write") -> Iterator[None]:
    """Turn a full disk or a forbidden place into a message that says what cannot be done, before any work."""
    try:
        yield
    except OSError as error:
        raise UsageError(f"cannot {verb} '{folder}': {error.strerror or error}") from None
    except sqlite3.OperationalError as error:
        if "locked" in str(error):
            raise UsageError(f"'{folder / DATABASE}' is open in another program; close it") from None
        raise UsageError(f"cannot {verb} '{folder}': {error}") from None
    except DAMAGED as error:
        raise damage(folder, error) from None
