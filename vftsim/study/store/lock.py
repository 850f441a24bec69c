"""One writer for each result directory, and a message that names it.

The lock is the operating system's (``flock``, on Windows ``msvcrt.locking``) on a file in the directory, so it
goes with its holder: nothing has to be cleaned up after a killed one.  Linux passes ``flock`` on to NFS servers
(since 2.6.12, as a lock of the whole file).  Where a file system or a platform has no such locks, nobody is kept out
here: SQLite opens a result's database for one process alone, by locks of another kind, and without those not at all.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import socket
import sys
import time
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path

from vftsim.errors import UsageError

LOCK = ".vftsim.lock"
_TRIES = 100
_NAMED_WITHIN_S = 1.0
_NO_LOCKS = {errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}
_BEYOND_THE_TEXT = 1 << 30
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
"""For a pipe in the place of a file, which would be waited for."""


@dataclass(frozen=True, slots=True)
class Holder:
    """User of a directory: process, host, command line, and the time since (UTC)."""

    pid: int
    host: str
    command: str
    since: str

    @classmethod
    def this_process(cls) -> Holder:
        command = " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]) if sys.argv else "python"
        return cls(
            os.getpid(), socket.gethostname(), command[:200], datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
        )

    @classmethod
    def read(cls, path: Path) -> Holder | None:
        """Return who wrote a lock file; None if it does not say so (yet)."""
        try:
            data = json.loads(path.read_text() if path.is_file() else "")
            return cls(int(data["pid"]), str(data["host"]), str(data["command"]), str(data["since"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host} since {self.since}: {self.command}"


class DirectoryLock:
    """The right to write in an existing directory, from :meth:`acquire` to :meth:`release`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._descriptor: int | None = None
        self._path = folder / LOCK

    def acquire(self) -> None:
        """Take the lock; refuse where another process has it, which the message names."""
        for _ in range(_TRIES):
            descriptor, is_free = os.open(self._path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666), False
            try:
                is_free = _os_lock(descriptor)
                if is_free and self._is_at(descriptor):
                    return self._hold(descriptor)
            except BaseException:
                self._give_up(descriptor, has_lock=is_free)
                raise
            os.close(descriptor)
            if not is_free:
                break
            # Its last holder took the file away between open and lock: try again.
        raise self._taken()

    def refuse_taken(self) -> None:
        """Refuse where another process has the lock, without taking it: nothing is made in the directory."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self._path, os.O_RDONLY | _NO_LINK | _NO_WAIT)
            try:
                if not _os_lock(descriptor):
                    raise self._taken()
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Give the lock back; the file goes while it is still held, so nobody holds a nameless one."""
        if self._descriptor is not None:
            self._give_up(self._descriptor, has_lock=True)
            self._descriptor = None

    def _give_up(self, descriptor: int, *, has_lock: bool) -> None:
        with contextlib.suppress(OSError):
            if has_lock and self._is_at(descriptor):
                self._path.unlink()
        os.close(descriptor)

    def _hold(self, descriptor: int) -> None:
        self._descriptor = descriptor
        with contextlib.suppress(OSError):  # a disk that is full: held all the same, without a name
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(asdict(Holder.this_process())).encode())

    def _taken(self) -> UsageError:
        """Return the refusal, which names the holder; who has just taken it writes the name an instant later."""
        end = time.monotonic() + _NAMED_WITHIN_S
        while (holder := Holder.read(self._path)) is None and time.monotonic() < end:
            time.sleep(0.01)
        return UsageError(f"'{self.folder}' is in use by {holder or 'another process'}")

    def _is_at(self, descriptor: int) -> bool:
        try:
            return os.path.samestat(os.fstat(descriptor), self._path.stat())
        except FileNotFoundError:
            return False


def _os_lock(descriptor: int) -> bool:
    """Lock an open file; tell whether nobody else has it locked, which is so where there are no such locks."""
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - there only

        os.lseek(descriptor, _BEYOND_THE_TEXT, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except OSError:
            return False
        finally:
            os.lseek(descriptor, 0, os.SEEK_SET)
        return True
    try:
        import fcntl  # noqa: PLC0415 - not everywhere
    except ImportError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True
