"""Finished replications of a study on disk: one SQLite file in the result's directory, one writer.

* **Durable on arrival.** Write-ahead log with ``synchronous=FULL``: when :meth:`Store.keep` returns, the replication
  survives a killed process and a lost power supply.
* **Nothing mixed.** A replication belongs to a study, and a study is the hash of all that determines its replications
  (resolved model, seed, stream scheme, version).  Each replication carries a checksum over the study, its
  number and its data; what does not match is not counted.
* **Nothing of others touched.** A directory is ours by the database's mark, and a file in it by name and content.
* **Replaced last.** With ``REPLACE`` the new replications gather beside the old ones, which go in one transaction
  when the new result stands.

The exclusive locking mode needs no shared memory, so the log works on network file systems too.

*Resumable studies*: a cache of finished and judged runs in the store.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, Self

from vftsim.errors import StorageError, UsageError
from vftsim.files import sha256_of, to_json
from vftsim.spec.suggest import counted, with_article
from vftsim.study.runs.workers import Interrupted, Workers, deferred_interrupts
from vftsim.study.store.database import (
    DAMAGED,
    DATABASE,
    Ledger,
    check_directory,
    connect,
    create,
    damage,
    forbidden,
    publish,
    remove_ours,
    unsound,
)
from vftsim.study.store.lock import DirectoryLock

MANIFEST = "manifest.json"
ANSWER = "answer.json"
MOST_BYTES = 1 << 28
"""Of a replication, unpacked: a foreign file of some kilobytes can unpack to as many gigabytes."""


class Opening(Enum):
    """Treatment of finished replications that exist already."""

    NEW = "refuse them"
    CONTINUE = "go on from them"
    REPLACE = "drop them when the new result stands"


def checksum(key: str, replication: int, data: bytes) -> str:
    """Return what a stored replication must match."""
    return hashlib.sha256(f"{key}:{replication}:".encode() + data).hexdigest()


def unpacked(key: str, replication: int, data: object, sha256: object) -> Any:
    """Return what a stored replication holds; None if it is damaged, or larger than any that is written."""
    if not isinstance(data, bytes) or checksum(key, replication, data) != sha256:
        return None
    unpacking = zlib.decompressobj()
    try:
        text = unpacking.decompress(data, MOST_BYTES)
        return json.loads(text) if unpacking.eof else None
    except (zlib.error, ValueError, RecursionError):
        return None


class Store:
    """The replications of a kind of study in a result's directory, and the right to write there; a context manager.

    The folder is made if it is not there.  One that holds something else, is in use, or cannot be written is refused.
    """

    def __init__(self, folder: Path, command: str, opening: Opening = Opening.NEW) -> None:
        self.folder, self.command = folder, command
        self.remarks: list[str] = []
        """Remarks on the directory for the user."""
        self._damaged: set[tuple[str, int]] = set()
        self._kept: set[tuple[str, int]] = set()
        self._generation, self._fresh = 1, False
        with forbidden(folder):
            self._made = not folder.exists()
            check_directory(folder, is_locked=False)
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = DirectoryLock(folder)
            try:
                self._lock.acquire()
                check_directory(folder, is_locked=True)
                self._connection = self._open(opening)
            except BaseException:
                if self._fresh:
                    self._lose_database()
                self._lock.release()
                self._unmake()
                raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Close the database and give the directory back; take away what was made for nothing."""
        empty = False
        with contextlib.suppress(sqlite3.Error):
            empty = self._fresh and self._connection.execute("SELECT 1 FROM replications LIMIT 1").fetchone() is None
        self._connection.close()
        if empty:
            self._lose_database()
        self._lock.release()
        if empty:
            self._unmake()

    @property
    def going_on(self) -> str:
        """What goes on from here, in words."""
        return "--resume" if self.command == "run" else "the same command"

    def studies(self) -> list[tuple[dict[str, Any], int]]:
        """Return the identity of every study that has replications, and how many."""
        rows = self._connection.execute(
            "SELECT identity, count(*) FROM replications JOIN studies ON studies.id = study "
            "WHERE generation = ? GROUP BY study ORDER BY study",
            (self._generation,),
        )
        return [(json.loads(identity), count) for identity, count in rows]

    def check_only(self, identity: Mapping[str, Any], elsewhere: Iterable[str] = ()) -> None:
        """Refuse to go on with another study than the one that is there, and say in what they differ.

        A model is another one, too, if the source of a part from ``elsewhere`` has changed.
        """
        for other, _ in self.studies():
            different = [key for key in (*identity, *other) if identity.get(key) != other.get(key)]
            if different:
                words = ", ".join(dict.fromkeys(different))
                if "model" in different and (names := " and ".join(elsewhere)):
                    words += f": its values, or the source of {names}"
                raise UsageError(
                    f"'{self.folder}' holds another study (different {words}); "
                    "it cannot be continued; choose another name, or --force to replace it"
                )

    def numbers(self, identity: Mapping[str, Any]) -> list[int]:
        """Return the numbers of a study's replications, without looking at them."""
        return [number for (number,) in self._rows("replication", sha256_of(identity))]

    def known(self, identity: Mapping[str, Any]) -> dict[int, Any]:
        """Return the finished replications of a study; damaged ones are named in the remarks."""
        key, data_of = sha256_of(identity), dict[int, Any]()
        for number, data, sha256 in self._rows("replication, data, sha256", key):
            whole = unpacked(key, number, data, sha256)
            if whole is None:
                self.mark_damaged(identity, number)
            else:
                data_of[number] = whole
        return data_of

    def _rows(self, columns: str, key: str) -> list[Any]:
        """Return columns of a study's replications, in their order."""
        try:
            return self._connection.execute(
                f"SELECT {columns} FROM replications JOIN studies ON studies.id = study "
                "WHERE generation = ? AND key = ? ORDER BY replication",
                (self._generation, key),
            ).fetchall()
        except DAMAGED as error:
            raise damage(self.folder, error) from None

    def is_from_before(self, identity: Mapping[str, Any], replication: int) -> bool:
        """Whether a replication that is here was so when the directory was opened."""
        return (sha256_of(identity), replication) not in self._kept

    def mark_damaged(self, identity: Mapping[str, Any], replication: int) -> None:
        """Treat a replication as damaged: say so once, and let another one take its place."""
        key = sha256_of(identity), replication
        if key not in self._damaged:
            self._damaged.add(key)
            self.remarks.append(f"replication {replication} in '{self.folder}' is damaged and is computed again")

    def keep(self, identity: Mapping[str, Any], replication: int, data: Any) -> None:
        """Put a replication on disk, for good when this returns; see :meth:`keep_all`."""
        self.keep_all([(identity, replication, data)])

    def keep_all(self, replications: Iterable[tuple[Mapping[str, Any], int, Any]]) -> None:
        """Put replications, each with its study and number, on disk: all or none, for good when this returns.

        StorageError: they cannot be written; what was there before is kept.
        """
        with self._writing():
            for identity, replication, data in replications:
                key = sha256_of(identity)
                packed = zlib.compress(self._text_of(data), 6)
                verb = "INSERT OR REPLACE" if (key, replication) in self._damaged else "INSERT"
                self._connection.execute(
                    "INSERT OR IGNORE INTO studies (generation, key, identity) VALUES (?, ?, ?)",
                    (self._generation, key, to_json(identity, indent=None)),
                )
                self._connection.execute(
                    f"{verb} INTO replications SELECT id, ?, ?, ? FROM studies WHERE generation = ? AND key = ?",
                    (replication, packed, checksum(key, replication, packed), self._generation, key),
                )
                self._kept.add((key, replication))

    def _text_of(self, data: Any) -> bytes:
        text = to_json(data, indent=None).encode()
        if len(text) > MOST_BYTES:
            raise StorageError(
                f"'{self.folder}': a replication of {len(text) >> 20} MiB is more than the {MOST_BYTES >> 20} that are "
                "read again; measure less, or less long"
            )
        return text

    def finish(self, write: Callable[[Path], None]) -> None:
        """Let ``write`` make the result's other files, put them in place, and drop what they replace.

        Interrupted: Ctrl-C meanwhile.  StorageError: a file cannot be written.
        """
        try:
            self._finish(write)
        except KeyboardInterrupt:
            finished = sum(count for _, count in self.studies())
            raise Interrupted(
                f"the {finished} finished replications are kept in '{self.folder}', its tables are not written yet; "
                f"{self.going_on} writes them"
            ) from None

    def _finish(self, write: Callable[[Path], None]) -> None:
        ledger = Ledger(self._connection)
        with self._writing(transaction=False):
            files, moved = publish(self.folder, write, ledger, MANIFEST)
            remove_ours(self.folder, sorted(set(ledger.names()) - set(files)), ledger)
        with self._writing():
            self._connection.execute("DELETE FROM files")
            ledger.add(files)
            old = "SELECT id FROM studies WHERE generation < ?"
            self._connection.execute(f"DELETE FROM replications WHERE study IN ({old})", (self._generation,))
            self._connection.execute("DELETE FROM studies WHERE generation < ?", (self._generation,))
        with contextlib.suppress(sqlite3.Error):
            self._connection.execute("PRAGMA incremental_vacuum").fetchall()
        self.remarks += [f"a file of yours stood in the way and is now '{self.folder / name}'" for name in moved]

    def _open(self, opening: Opening) -> sqlite3.Connection:
        if not (self.folder / DATABASE).exists():
            create(self.folder, self.command)
            self._fresh = True
        connection = connect(self.folder / DATABASE)
        try:
            if wrong := unsound(connection):
                raise damage(self.folder, wrong)
            (command,) = connection.execute("SELECT value FROM about WHERE name = 'command'").fetchone()
            if command != self.command:
                held, needed = with_article(command), with_article(self.command)
                raise UsageError(f"'{self.folder}' holds {held}, not {needed}; choose another name")
            self._choose_generation(connection, opening)
            self._file = (self.folder / DATABASE).stat()
        except BaseException:
            connection.close()
            raise
        return connection

    def _choose_generation(self, connection: sqlite3.Connection, opening: Opening) -> None:
        last, finished = connection.execute(
            "SELECT generation, count(*) FROM replications JOIN studies ON studies.id = study "
            "GROUP BY generation ORDER BY generation DESC LIMIT 1"
        ).fetchone() or (1, 0)
        if opening is Opening.NEW and finished:
            raise UsageError(
                f"'{self.folder}' holds {with_article(self.command)} with {finished} finished replications; "
                "--resume continues it, --force replaces it"
            )
        self._generation = last + 1 if opening is Opening.REPLACE and finished else last

    def _lose_database(self) -> None:
        with contextlib.suppress(OSError):
            for suffix in ("-wal", "-shm", "-journal", ""):
                (self.folder / f"{DATABASE}{suffix}").unlink(missing_ok=True)

    def _unmake(self) -> None:
        if self._made:
            with contextlib.suppress(OSError):  # not empty: somebody else's by now
                self.folder.rmdir()

    @contextmanager
    def _writing(self, transaction: bool = True) -> Iterator[None]:
        try:
            if not self._is_in_place():
                raise StorageError(f"'{self.folder}' was removed or replaced while it was written")
            if transaction:
                self._connection.execute("BEGIN IMMEDIATE")
            yield
            if transaction:
                self._connection.execute("COMMIT")
        except (OSError, sqlite3.DatabaseError) as error:
            if isinstance(error, sqlite3.IntegrityError):
                raise
            why = getattr(error, "strerror", None) or error
            raise StorageError(
                f"cannot write '{self.folder}': {why}; the replications that had finished are kept"
            ) from None
        finally:
            if self._connection.in_transaction:
                with contextlib.suppress(sqlite3.Error):
                    self._connection.execute("ROLLBACK")

    def _is_in_place(self) -> bool:
        try:
            return os.path.samestat(self._file, (self.folder / DATABASE).stat())
        except (FileNotFoundError, NotADirectoryError):
            return False


def _same(data: Any) -> Any:
    return data


@dataclass(frozen=True)
class RunCache:
    """Numbered tasks of one study, each kept when it arrives and never done twice."""

    store: Store | None = None
    """Without one nothing is kept."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """All that determines the tasks' results, except their numbers."""
    encode: Callable[[Any], Any] = _same
    decode: Callable[[Any], Any] = _same
    """From a result to plain data, and back without loss."""

    def at(self, **more: Any) -> RunCache:
        """Return the tasks that have more in common."""
        return replace(self, identity={**self.identity, **more})

    def count_stored(self, tasks: Mapping[int, Any]) -> int:
        """Return how many of the tasks are in the store."""
        return 0 if self.store is None else len(tasks.keys() & self.store.numbers(self.identity))

    def known(self) -> dict[int, Any]:
        """Return what is in the store; what cannot be read is done again."""
        results: dict[int, Any] = {}
        if self.store is None:
            return results
        for number, data in self.store.known(self.identity).items():
            try:
                results[number] = self.decode(data)
            except (KeyError, TypeError, ValueError, AttributeError):
                self.store.mark_damaged(self.identity, number)
        return results

    def keep(self, number: int, result: Any) -> None:
        """Put a result on disk, for good when this returns."""
        if self.store is not None:
            self.store.keep(self.identity, number, self.encode(result))

    def in_order(self, workers: Workers[Any, Any], tasks: Mapping[int, Any]) -> list[Any]:
        """Return the results of tasks by number, in their order; what is in the store is not done again."""
        return together([self], workers, [tasks])[0]


def together(
    caches: Sequence[RunCache], workers: Workers[Any, Any], tasks: Sequence[Mapping[int, Any]]
) -> list[list[Any]]:
    """Return the results of the tasks of several studies, done in one go; what is in the store is not done again."""
    results_by_number = [cache.known() for cache in caches]
    missing = [
        (n, number) for n, of_study in enumerate(tasks) for number in of_study if number not in results_by_number[n]
    ]
    done = 0
    try:
        for index, result in workers.unordered([tasks[n][number] for n, number in missing]):
            n, number = missing[index]
            with deferred_interrupts():
                caches[n].keep(number, result)
            results_by_number[n][number] = result
            done += 1
    except KeyboardInterrupt:
        if not done or any(cache.store is not None for cache in caches):
            raise
        raise Interrupted(
            f"{done} of {len(missing)} runs had finished and nobody keeps them; with -o DIR (or --keep) "
            "they stay, and the same command goes on"
        ) from None
    return [[of_study[number] for number in of] for of_study, of in zip(results_by_number, tasks, strict=True)]


@contextmanager
def resumable_store(directory: Path, command: str, opening: Opening = Opening.CONTINUE) -> Iterator[Store]:
    """Open the directory where a study of a kind keeps what it has; an interruption says what is kept there."""
    with Store(directory, command, opening) as store:
        try:
            yield store
        except KeyboardInterrupt as end:
            finished = sum(count for _, count in store.studies())
            if not finished or str(directory) in str(end):
                raise
            in_store = f"{counted(finished, 'finished run')} {'is' if finished == 1 else 'are'} in '{directory}'"
            raise Interrupted("; ".join(filter(None, [str(end), f"{in_store}, {store.going_on} goes on"]))) from None
