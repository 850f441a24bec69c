"""Single files that a command writes: refused beforehand if they cannot be, never half written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from vftsim.errors import UsageError


def check_target(path: Path, force: bool, suffix: str = "") -> None:
    """Refuse a file that exists, lies nowhere, or does not end as what is written."""
    if path.is_dir() or (path.exists() and not force):
        raise UsageError(f"'{path}' exists; --force replaces a file")
    if not path.absolute().parent.is_dir():
        raise UsageError(f"cannot write '{path}': there is no such directory")
    if suffix and path.suffix.lower() != suffix:
        raise UsageError(f"'{path}' must end in {suffix}")


def write_whole(path: Path, write: Callable[[Path], None]) -> None:
    """Let ``write`` make the file beside its place, then put it there."""
    temporary = path.with_name(f"{path.stem}.tmp{path.suffix}")
    try:
        write(temporary)
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise UsageError(f"cannot write '{path}': {error.strerror or error}") from None
