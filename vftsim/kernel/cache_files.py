"""Files of the kernel cache: what lies there is run, so only what this user wrote for this very kernel is taken.

A folder that belongs to somebody else, or that others may write to, is not used; nor is a file that is one of these,
or no regular file: a pipe would never end, a link leads elsewhere.  What is kept names what it was made of and its
own content, both by hash, in its first line.  Folders and files are made for their owner only.
"""

import hashlib
import os
import stat
import tempfile
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

_FOR_THE_OWNER = 0o700
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_OPENED = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
_ROOT = 0


class CacheWarning(UserWarning):
    """The kernel cache must not or cannot be used; kernels are compiled in memory, anew by each process."""


def cache_directory() -> Path:
    """Return where kernels are kept: ``VFTSIM_CACHE_DIR``, or ``vftsim`` in the user's cache folder."""
    chosen = os.environ.get("VFTSIM_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vftsim"


def kernel_folder(name: str) -> Path | None:
    """Return the folder of one kernel, made where it is not there; None, with a warning, where it must not be used."""
    cache = cache_directory()
    folders = (cache, cache / "kernels", cache / "kernels" / name)
    try:
        cache.parent.mkdir(parents=True, exist_ok=True)
        refused = next(filter(None, map(_not_ours, folders)), None)
    except OSError as error:
        refused = f"'{error.filename}': {error.strerror}"
    if refused is None:
        return folders[-1]
    text = f"the kernel cache is not used ({refused}); every process compiles for itself, and nothing is kept"
    warnings.warn(text, CacheWarning, stacklevel=2)
    return None


def _not_ours(folder: Path) -> str | None:
    """Make a folder where it is not there; return why it must not be used."""
    folder.mkdir(mode=_FOR_THE_OWNER, exist_ok=True)
    # Where the cache itself lies is the user's choice, also by a link.
    refusal = _refusal(folder.stat() if folder == cache_directory() else folder.lstat(), stat.S_ISDIR)
    return f"'{folder}' {refusal}; removed, it is made again for you alone" if refusal else None


def _refusal(status: os.stat_result, is_kind: Callable[[int], bool]) -> str:
    """Return why a file or folder must not be trusted; nothing where it may."""
    if not is_kind(status.st_mode):
        return "is no folder" if is_kind is stat.S_ISDIR else "is no file"
    if not hasattr(os, "geteuid"):  # Windows keeps others out of a user's folders by other means
        return ""
    if status.st_uid not in (_ROOT, os.geteuid()):
        return "belongs to another user"
    return "may be written to by others" if status.st_mode & _OTHERS_WRITE else ""


def read_own(path: Path) -> bytes | None:
    """Return the content of a file; None where there is none, or somebody else may have written it."""
    try:
        if _refusal(path.lstat(), stat.S_ISREG):  # opening may wait for ever, or set off a device
            return None
        with os.fdopen(os.open(path, _OPENED), "rb") as file:
            return None if _refusal(os.fstat(file.fileno()), stat.S_ISREG) else file.read()
    except OSError:
        return None


def read_made(path: Path, source: str) -> bytes | None:
    """Return what was kept of a source; None where there is none, it is damaged, or it was made of another."""
    head, _, content = (read_own(path) or b"").partition(b"\n")
    return content if head == _head(source, content) else None


def write_made(path: Path, source: str, content: bytes) -> None:
    """Keep what was made of a source (with all else it depends on)."""
    write_whole(path, _head(source, content) + b"\n" + content)


def _head(source: str, content: bytes) -> bytes:
    return f"made of {hashlib.sha256(source.encode()).hexdigest()}: {hashlib.sha256(content).hexdigest()}".encode()


def write_whole(path: Path, content: bytes) -> None:
    """Write a file for its owner only; with several writers at once, it appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(temporary, path)
    except BaseException:  # a full disk must not fill with pieces
        with suppress(OSError):
            os.unlink(temporary)
        raise
