"""Single files that a command writes: refused beforehand if they cannot be, never half written."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from vftsim.errors import StorageError, UsageError
from vftsim.study.store.database import is_noted, note


def check_target(path: Path, force: bool, suffix: str = "", folder: Path | None = None) -> None:
    """Refuse a file that exists, lies nowhere, or does not end as what is written.

    ``folder`` is that of the result, which is made before it; a file that its last command wrote may be written again.
    """
    if suffix and path.suffix.lower() != suffix:
        raise UsageError(f"'{path}' must end in {suffix}")
    try:
        if path.is_dir() or path == folder:
            raise UsageError(f"'{path}' is a directory; name a file")
        if path.exists() and not (force or (folder and is_noted(folder, path))):
            raise UsageError(f"'{path}' exists; --force replaces a file")
        if path.parent == folder and not path.parent.exists():
            return
        if not path.absolute().parent.is_dir():
            raise UsageError(f"cannot write '{path}': there is no such directory")
        temporary = path.with_name(f"{path.stem}.try-{os.getpid()}{path.suffix}")
        temporary.open("xb").close()
    except OSError as error:
        raise UsageError(f"cannot write '{path}': {error.strerror or error}") from None
    temporary.unlink()


def write_whole(path: Path, write: Callable[[Path], None], folder: Path | None = None) -> None:
    """Let ``write`` make the file beside its place, then put it there; the ``folder`` of its result notes it."""
    temporary = path.with_name(f"{path.stem}.tmp-{os.getpid()}{path.suffix}")
    try:
        write(temporary)
        temporary.replace(path)
        if folder is not None:
            note(folder, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StorageError(f"cannot write '{path}': {error.strerror or error}") from None
        raise
