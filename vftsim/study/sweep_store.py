"""Finished replications of a sweep on disk: one SQLite file, written by the coordinating process alone.

Write-ahead log with ``synchronous=FULL``: when :meth:`SweepStore.keep` returns, the replication survives
a killed process and a lost power supply.  Replications are found by a key of everything that determines
them (resolved model, seed, version, stream scheme) and their number, so a sweep that is
started again, or with more points, computes only what is missing.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from vftsim._version import __version__
from vftsim.errors import UsageError
from vftsim.sampling import STREAM_SCHEME
from vftsim.study.model import Model
from vftsim.study.store import to_json

DATABASE = "sweep.sqlite"
_SCHEMA = """
CREATE TABLE IF NOT EXISTS replications (
    id INTEGER PRIMARY KEY,
    point_key TEXT NOT NULL,
    replication INTEGER NOT NULL,
    figures TEXT NOT NULL,
    UNIQUE (point_key, replication)
)"""


def point_key(model: Model, seed: int) -> str:
    """Return the SHA-256 of what determines all replications of a point."""
    said = {
        "model": model.digest(), "seed": seed, "stream_scheme": STREAM_SCHEME, "vftsim": __version__,
    }  # fmt: skip
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


class SweepStore:
    """The finished replications in a sweep's directory; a context manager.

    Parameters
    ----------
    folder : Path
        Made if it is not there; refused if it holds something else than a sweep.
    force : bool
        Forget what it holds.
    """

    def __init__(self, folder: Path, force: bool = False) -> None:
        self.folder = folder
        self._made = not folder.exists()
        _check_place(folder)
        try:
            if force:
                for suffix in ("", "-wal", "-shm"):
                    (folder / f"{DATABASE}{suffix}").unlink(missing_ok=True)
            folder.mkdir(parents=True, exist_ok=True)
            self._connection = self._open()
        except OSError as error:
            raise UsageError(f"cannot write '{folder}': {error.strerror or error}") from None
        except sqlite3.OperationalError as error:
            raise UsageError(f"'{folder}' cannot be used now ({error}); is another sweep writing there?") from None
        except sqlite3.DatabaseError as error:
            raise UsageError(f"'{folder / DATABASE}' cannot be read ({error}); --force starts over") from None

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the file; take away a directory that was made for nothing."""
        empty = self._made and self._connection.execute("SELECT 1 FROM replications LIMIT 1").fetchone() is None
        self._connection.close()
        if empty:
            shutil.rmtree(self.folder, ignore_errors=True)

    def known(self, key: str) -> dict[int, dict[str, Any]]:
        """Return the finished replications of a point."""
        found = self._connection.execute("SELECT replication, figures FROM replications WHERE point_key = ?", (key,))
        return {number: json.loads(text) for number, text in found}

    def keep(self, key: str, replication: int, figures: Mapping[str, Any]) -> None:
        """Put a replication on disk, for good when this returns."""
        row = (key, replication, to_json(figures, indent=None))
        try:
            self._connection.execute("INSERT INTO replications (point_key, replication, figures) VALUES (?, ?, ?)", row)
        except sqlite3.OperationalError as error:
            raise UsageError(f"cannot write '{self.folder / DATABASE}': {error}") from None

    def _open(self) -> sqlite3.Connection:
        # Autocommit: each INSERT is a transaction of its own.
        connection = sqlite3.connect(self.folder / DATABASE, isolation_level=None, timeout=1.0)
        try:
            for pragma in ("locking_mode=EXCLUSIVE", "journal_mode=WAL", "synchronous=FULL"):
                connection.execute(f"PRAGMA {pragma}")
            connection.execute(_SCHEMA)
        except BaseException:
            connection.close()
            raise
        return connection


def _check_place(folder: Path) -> None:
    if not folder.exists() and not folder.is_symlink():
        return
    if not folder.is_dir() or (not (folder / DATABASE).is_file() and _has_content(folder)):
        raise UsageError(f"'{folder}' exists and is no sweep of vftsim; choose another name with -o")


def _has_content(folder: Path) -> bool:
    with contextlib.suppress(StopIteration):
        next(folder.iterdir())
        return True
    return False
