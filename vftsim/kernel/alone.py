"""A lock between processes: of several that need the same file, one makes it and the others wait."""

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Be the only process inside, as far as file and system know locks; without one all go on, which does no harm.

    The lock is the system's, so it goes with its holder, however that ends.  The file stays: removing it would let two
    processes hold two files of one name.  A directory is locked as it is.
    """
    descriptor = None
    with suppress(OSError, ImportError):
        import fcntl

        path.parent.mkdir(parents=True, exist_ok=True)
        file = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, os.O_RDONLY if path.is_dir() else file, 0o600)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)
