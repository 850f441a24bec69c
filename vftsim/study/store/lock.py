"""One writer for each result directory, and a message that names it.

The lock is the operating system's (``flock``, on Windows ``msvcrt.locking``) on a file in the directory, so it
goes with its holder: nothing has to be cleaned up after a killed one.  Linux passes ``flock`` on to NFS servers
(since 2.6.12, as a lock of the whole file).  Where a file system or a platform has no such locks, a second file
that only one process can create stands for it; it is taken for stale when its holder ran on this host and is gone.
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
HOLDER = ".vftsim.holder"
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
    def here(cls) -> Holder:
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

    def is_gone(self) -> bool:
        """Whether the process is known to have ended; of another host's nothing is known."""
        if self.host != socket.gethostname():
            return False
        try:
            os.kill(self.pid, 0)
        except ProcessLookupError:
            return True
        except OSError:
            return False
        return False

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
        path = self.folder / LOCK
        for _ in range(_TRIES):
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _NO_LINK, 0o666)
            try:
                got = _os_lock(descriptor)
                if got and _is_at(descriptor, path):
                    return self._hold(descriptor, path)
            except BaseException:
                os.close(descriptor)
                raise
            if got is None:
                self._remove(descriptor, path)
                return self._acquire_by_name()
            os.close(descriptor)
            if not got:
                raise self._taken(path)
            # Its last holder took the file away between open and lock: try again.
        raise self._taken(path)

    def refuse_taken(self) -> None:
        """Refuse where another process has the lock, without taking it: nothing is made in the directory."""
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(self._path, os.O_RDONLY | _NO_LINK | _NO_WAIT)
            try:
                if _os_lock(descriptor) is False:
                    raise self._taken(self._path)
            finally:
                os.close(descriptor)
        by_name = self.folder / HOLDER
        if by_name.exists() and ((holder := Holder.read(by_name)) is None or not holder.is_gone()):
            raise self._taken(by_name)

    def release(self) -> None:
        """Give the lock back; the file goes while it is still held, so nobody holds a nameless one."""
        if self._descriptor is not None:
            self._remove(self._descriptor, self._path)
            self._descriptor = None

    def _acquire_by_name(self) -> None:
        path = self.folder / HOLDER
        for _ in range(_TRIES):
            try:
                return self._hold(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o666), path)
            except FileExistsError:
                holder = Holder.read(path)
                if holder is None or not holder.is_gone():
                    raise self._taken(path, f"; if that is not so, remove '{path}'") from None
                _take_away(path, holder)
        raise self._taken(path)

    def _hold(self, descriptor: int, path: Path) -> None:
        self._descriptor, self._path = descriptor, path
        with contextlib.suppress(OSError):  # a disk that is full: held all the same, without a name
            os.ftruncate(descriptor, 0)
            os.write(descriptor, json.dumps(asdict(Holder.here())).encode())

    def _taken(self, path: Path, remedy: str = "") -> UsageError:
        return UsageError(f"'{self.folder}' is in use by {_named_soon(path) or 'another process'}{remedy}")

    @staticmethod
    def _remove(descriptor: int, path: Path) -> None:
        with contextlib.suppress(OSError):
            if _is_at(descriptor, path):
                path.unlink()
        os.close(descriptor)


def _named_soon(path: Path) -> Holder | None:
    """Return who holds a lock; who has just taken it writes the name an instant later."""
    end = time.monotonic() + _NAMED_WITHIN_S
    while (holder := Holder.read(path)) is None and time.monotonic() < end:
        time.sleep(0.01)
    return holder


def _take_away(path: Path, stale: Holder) -> None:
    """Remove a stale holder's file; of several that try, one that a newer holder made is put back."""
    aside = path.with_name(f"{path.name}.{os.getpid()}")
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)
        if Holder.read(aside) == stale:
            aside.unlink()
        else:
            aside.rename(path)


def _is_at(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False


def _os_lock(descriptor: int) -> bool | None:
    """Lock an open file: whether it worked; None where there are no such locks."""
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
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return None
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        raise
    return True
