"""Single files that a command writes: refused beforehand if they cannot be, never half written."""

import contextlib
import os
from collections.abc import Callable
from pathlib import Path

from vftsim.errors import StorageError, UsageError


def check_target(path: Path, force: bool, suffix: str = "", folder: Path | None = None) -> None:
    """Refuse a file that exists, lies nowhere, or does not end as what is written; ``folder`` is made before it."""
    if suffix and path.suffix.lower() != suffix:
        raise UsageError(f"'{path}' must end in {suffix}")
    try:
        if path.is_dir() or path == folder:
            raise UsageError(f"'{path}' is a directory; name a file")
        if path.exists() and not force:
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


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` make the file beside its place, then put it there."""
    temporary = path.with_name(f"{path.stem}.tmp-{os.getpid()}{path.suffix}")
    try:
        write(temporary)
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise StorageError(f"cannot write '{path}': {error.strerror or error}") from None
        raise
