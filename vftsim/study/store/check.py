"""``vftsim check``: what is wrong with a result's directory, and what can be saved.

Every replication is read and held against its checksum, every study against the hash of what it says, every file
against what was written.  A repair copies what is whole into a new database and keeps the damaged one beside it.
"""

import contextlib
import json
import shutil
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vftsim._version import __version__
from vftsim.errors import UsageError
from vftsim.files import sha256_of_file, sync_directory
from vftsim.spec.suggest import counted
from vftsim.study.store import database
from vftsim.study.store.lock import DirectoryLock
from vftsim.study.store.store import MANIFEST, unpacked

_LAST_MISSES = 2000


@dataclass(frozen=True, slots=True)
class StoredStudy:
    """A study in the store: its identity, and which replications of it are whole."""

    identity: dict[str, Any]
    generation: int
    replications: list[int]


@dataclass(slots=True)
class CheckReport:
    """Content and damage of a result's directory."""

    folder: Path
    command: str = ""
    """The kind of study; empty if the database does not say it any more."""
    studies: list[StoredStudy] = field(default_factory=list)
    damage: list[str] = field(default_factory=list)
    """Damage; damaged rows never count in a result."""
    notes: list[str] = field(default_factory=list)
    """Remarks that are no damage."""
    repaired: str = ""
    """Actions of a repair; empty if there was none."""

    @property
    def whole(self) -> int:
        """Replications that can be used."""
        return sum(len(study.replications) for study in self.studies)

    def for_machines(self) -> dict[str, Any]:
        studies = [{**s.identity, "generation": s.generation, "replications": s.replications} for s in self.studies]
        return {
            "directory": str(self.folder),
            "command": self.command,
            "studies": studies,
            "damage": self.damage,
            "notes": self.notes,
            "repaired": self.repaired,
        }


@dataclass(slots=True)
class _Contents:
    """Readable content of a database."""

    about: dict[str, str] = field(default_factory=dict)
    studies: dict[int, Sequence[Any]] = field(default_factory=dict)
    """Generation, key and identity by number."""
    rows: list[tuple[int, int, bytes, str]] = field(default_factory=list)
    files: list[tuple[str, str]] = field(default_factory=list)


def check(folder: Path, repair: bool = False) -> CheckReport:
    """Look at a result's directory, and make a damaged database whole if asked.

    Repair puts what is whole into a new database, and keeps the old one as ``vftsim.sqlite.damaged``.  What is no
    result of this program, of another format, or in use is refused.
    """
    verb = "write" if repair else "read"
    with database.forbidden(folder, verb):
        if not (folder / database.DATABASE).is_file():
            raise UsageError(f"'{folder}' holds no result of vftsim")
        database.check_directory(folder, is_locked=True)
        lock = DirectoryLock(folder)
        if repair:
            lock.acquire()
        else:
            lock.refuse_taken()
    try:
        with database.forbidden(folder, verb):
            return _check(folder, repair)
    finally:
        lock.release()


def _check(folder: Path, repair: bool) -> CheckReport:
    report = CheckReport(folder)
    contents = _read(folder, report)
    command: object = contents.about.get("command")
    report.command = command if isinstance(command, str) else ""
    if not report.command:
        report.damage.append("the kind of study is lost")
    whole = _judge(contents, report)
    _look_at_files(contents, report)
    if repair and report.damage:
        _repair(folder, contents, whole, report)
    return report


def _read(folder: Path, report: CheckReport) -> _Contents:
    try:
        with database.unchanged(folder) as connection:
            wrong = "; ".join(text for (text,) in connection.execute("PRAGMA integrity_check(3)") if text != "ok")
            wrong = f"the database is damaged: {wrong}" if wrong else database.unsound(connection)
            if not wrong:
                return _contents(connection, report)
    except database.DAMAGED as error:
        wrong = f"the database is damaged: {database.in_words(error)}"
    report.damage.append(wrong)
    with _copy(folder) as connection:
        return _contents(connection, report)


@contextmanager
def _copy(folder: Path) -> Iterator[sqlite3.Connection]:
    """Open a copy of a damaged database for reading what can be read; the original stays as it is."""
    with database.copied(folder) as folder_of_copy:
        copy = folder_of_copy / database.DATABASE
        copy.write_bytes(database.with_our_schema(copy.read_bytes()))
        with contextlib.closing(sqlite3.connect(copy, isolation_level=None)) as connection:
            connection.execute("PRAGMA writable_schema = ON")  # reads a file shorter than its header says
            yield connection


def _contents(connection: sqlite3.Connection, report: CheckReport) -> _Contents:
    contents = _Contents()
    contents.about = dict(_readable(connection, "SELECT name, value FROM about"))
    files = _readable(connection, "SELECT name, sha256 FROM files")
    contents.files = [(name, digest) for name, digest in files if database.is_inside(name)]
    studies = _readable(connection, "SELECT id, generation, key, identity FROM studies")
    contents.studies = {number: study for number, *study in studies}
    unreadable = 0
    for rowid in _rowids(connection):
        try:
            row = connection.execute(
                "SELECT study, replication, data, sha256 FROM replications WHERE rowid = ?", (rowid,)
            ).fetchone()
        except database.DAMAGED:
            unreadable += 1
            continue
        if row is not None:
            contents.rows.append(row)
    if unreadable:
        report.damage.append(f"{counted(unreadable, 'replication')} cannot be read")
    return contents


def _readable(connection: sqlite3.Connection, query: str) -> list[Any]:
    """Return the rows up to the first that cannot be read."""
    rows: list[Any] = []
    with contextlib.suppress(*database.DAMAGED):
        rows.extend(connection.execute(query))
    return rows


def _rowids(connection: sqlite3.Connection) -> Iterator[int]:
    """Yield the numbers of all rows; where the tree is torn, all numbers that there may be."""
    try:
        yield from [number for (number,) in connection.execute("SELECT rowid FROM replications NOT INDEXED").fetchall()]
        return
    except database.DAMAGED:
        pass
    misses, number = 0, 0
    while misses < _LAST_MISSES:
        number += 1
        try:
            row = connection.execute("SELECT 1 FROM replications WHERE rowid = ?", (number,)).fetchone()
        except database.DAMAGED:
            row = None
        misses = misses + 1 if row is None else 0
        if row is not None:
            yield number


def _judge(contents: _Contents, report: CheckReport) -> list[tuple[int, int, bytes, str]]:
    """Tell whole replications from damaged ones; return the whole ones."""
    whole: list[tuple[int, int, bytes, str]] = []
    by_study: dict[int, list[int]] = {}
    for number, (generation, key, identity) in contents.studies.items():
        if isinstance(generation, int) and 0 < generation <= database.LARGEST and database.is_key_of(key, identity):
            by_study[number] = []
            report.studies.append(StoredStudy(json.loads(identity), generation, by_study[number]))
        else:
            report.damage.append(f"study {number} is not what its hash says: none of its replications counts")
    for row in contents.rows:
        study, replication, data, sha256 = row
        if study in by_study and _is_whole(contents.studies[study][1], replication, data, sha256):
            by_study[study].append(replication)
            whole.append(row)
        elif study in by_study:
            report.damage.append(f"replication {replication} of study {study} does not match its checksum")
        elif study not in contents.studies:
            report.damage.append(f"replication {replication} belongs to no study that is here")
    for replications in by_study.values():
        replications.sort()
    return whole


def _is_whole(key: str, replication: object, data: object, sha256: object) -> bool:
    if not isinstance(replication, int) or not 0 <= replication <= database.LARGEST:
        return False
    return unpacked(key, replication, data, sha256) is not None


def _look_at_files(contents: _Contents, report: CheckReport) -> None:
    written: dict[str, set[str]] = {}
    for name, digest in contents.files:
        written.setdefault(name, set()).add(digest)
    for name, digests in sorted(written.items()):
        sha256 = sha256_of_file(report.folder / name)
        if sha256 is None:
            state = "cannot be read" if (report.folder / name).exists() else "is missing"
            report.notes.append(f"'{name}' {state}; {_remedy(report.command)} writes it again")
        elif sha256 not in digests:
            report.notes.append(
                f"'{name}' was changed after it was written, and may say another thing than what was run; "
                f"{_remedy(report.command)} writes it again, and keeps yours beside it"
            )
    if not written and report.whole:
        report.notes.append(f"tables are not written yet; {_remedy(report.command)} goes on")
    ours = {*written, *database.OUR_NAMES, database.DATABASE, f"{database.DATABASE}-wal", f"{database.DATABASE}-shm"}
    others = [path.name for path in sorted(report.folder.iterdir()) if path.is_file() and path.name not in ours]
    if others:
        report.notes.append(
            f"not written by vftsim, and left alone: {', '.join(others[:5])}{' ...' if others[5:] else ''}"
        )
    _compare_manifest(report)
    newest = max((study.generation for study in report.studies if study.replications), default=0)
    if any(study.replications and study.generation < newest for study in report.studies):
        report.notes.append("a run with --force was killed: what it was to replace is still here")
    versions = sorted({str(study.identity.get("vftsim")) for study in report.studies} - {__version__})
    if versions:
        report.notes.append(f"made by vftsim {', '.join(versions)}; version {__version__} does not continue it")


def _compare_manifest(report: CheckReport) -> None:
    if report.command != "run" or not (report.folder / MANIFEST).is_file():
        return
    try:
        numbers = json.loads((report.folder / MANIFEST).read_text())["replications"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    newest = max(report.studies, key=lambda study: study.generation, default=None)
    if newest is not None and numbers != newest.replications:
        report.notes.append(
            f"the tables rest on {len(numbers)} replications, {len(newest.replications)} are here; "
            f"{_remedy(report.command)} writes them anew"
        )


def _remedy(command: str) -> str:
    return "the same command with --resume" if command == "run" else "the same command"


def _repair(folder: Path, contents: _Contents, whole: list[tuple[int, int, bytes, str]], report: CheckReport) -> None:
    if not report.command:
        raise UsageError(f"'{folder / database.DATABASE}' cannot be repaired: {'; '.join(report.damage)}")
    new = folder / f"{database.DATABASE}.new"
    with contextlib.ExitStack() as undo:
        undo.callback(database.remove_unfinished, new)
        _save(new, contents, whole)
        backup = _keep_damaged(folder, undo)
        new.replace(folder / database.DATABASE)
        undo.pop_all()
    sync_directory(folder)
    report.repaired = (
        f"{len(whole)} replications are whole and kept; the damaged database is now '{backup}'; "
        f"{_remedy(report.command)} computes what is missing and writes the tables"
    )


def _save(new: Path, contents: _Contents, whole: list[tuple[int, int, bytes, str]]) -> None:
    """Make a database of what is whole."""
    good = {study for study, *_ in whole}
    with contextlib.closing(database.create_file(new, contents.about)) as connection:
        connection.execute("BEGIN")
        for number, study in contents.studies.items():
            if number in good:
                connection.execute("INSERT INTO studies VALUES (?, ?, ?, ?)", (number, *study))
        connection.executemany("INSERT OR IGNORE INTO replications VALUES (?, ?, ?, ?)", whole)
        connection.executemany("INSERT OR IGNORE INTO files VALUES (?, ?)", contents.files)
        connection.execute("COMMIT")


def _keep_damaged(folder: Path, undo: contextlib.ExitStack) -> str:
    """Copy the damaged database, and move its log, which must not be applied to another one."""
    digest, number, name = sha256_of_file(folder / database.DATABASE), 1, f"{database.DATABASE}.damaged"
    while (folder / name).exists() and sha256_of_file(folder / name) != digest:
        number += 1
        name = f"{database.DATABASE}.damaged-{number}"
    if not (folder / name).exists():
        undo.callback(database.remove_unfinished, folder / name)
        shutil.copyfile(folder / database.DATABASE, folder / name)
    log = folder / f"{database.DATABASE}-wal"
    if log.exists():
        log.replace(folder / f"{name}-wal")
        undo.callback(_move_back, folder / f"{name}-wal", log)
    (folder / f"{database.DATABASE}-shm").unlink(missing_ok=True)
    return name


def _move_back(moved: Path, path: Path) -> None:
    with contextlib.suppress(OSError):
        moved.replace(path)
