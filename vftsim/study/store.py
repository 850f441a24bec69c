"""A result directory that is whole or not there.

Everything is first written beside it, in ``NAME.partial``, each replication as soon as it arrives; the
finished directory takes its name in one rename.  A killed run leaves ``NAME.partial`` with all
replications that had arrived, and ``--resume`` goes on from there; it also adds replications to a
finished result.  A directory that exists is never overwritten unasked, and never one that holds
anything but a vftsim result.
"""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from vftsim.errors import UsageError

MANIFEST = "manifest.json"
IDENTITY = "identity.json"
REPLICATIONS = "replications"


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there completely or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    with temporary.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    temporary.replace(path)


def to_json(data: Any, indent: int | None = 2) -> str:
    """Return JSON text that is the same for equal data; not-a-number becomes null."""
    return json.dumps(_finite(data), indent=indent, allow_nan=False, ensure_ascii=False)


class ResultDirectory:
    """A result on its way to disk.

    Parameters
    ----------
    path : Path
        The directory to be.
    identity : mapping
        What replications must have in common to belong together (model, seed, stream scheme).
    force : bool
        Replace an existing result.
    resume : bool
        Go on with an existing or interrupted one.

    Raises
    ------
    UsageError
        The place is taken or cannot be written.
    """

    def __init__(self, path: Path, identity: Mapping[str, Any], *, force: bool = False, resume: bool = False) -> None:
        if force and resume:
            raise UsageError("--force discards an existing result and --resume continues it: choose one")
        if path.name in ("", ".."):
            raise UsageError(f"'{path}' cannot be the name of a result; name a directory that is to be made")
        self.path = path
        self.partial = path.with_name(path.name + ".partial")
        self.identity = dict(identity)
        self._check_free(force, resume)
        source = self._source() if resume else None
        if source is not None:
            self._check_identity(source)
        self._begin(source, force)

    def known(self) -> dict[int, Any]:
        """Return the data of the replications that are there already."""
        found = {}
        for file in sorted((self.partial / REPLICATIONS).glob("*.json.gz")):
            found[int(file.name.split(".")[0])] = json.loads(gzip.decompress(file.read_bytes()))
        return found

    def keep(self, replication: int, data: Any) -> None:
        """Store a replication."""
        text = to_json(data, indent=None).encode()
        write_file(self.partial / REPLICATIONS / f"{replication:06d}.json.gz", gzip.compress(text, 6, mtime=0))

    @property
    def is_empty(self) -> bool:
        """Whether no replication is there yet."""
        return next((self.partial / REPLICATIONS).glob("*.json.gz"), None) is None

    def finish(self, write: Callable[[Path], None]) -> None:
        """Let ``write`` put the other files into the directory, and give it its name."""
        with _writing(self.path):
            write(self.partial)
            for leftover in (self.partial / IDENTITY, *self.partial.rglob("*.tmp")):
                leftover.unlink(missing_ok=True)
            old = self.path.with_name(self.path.name + ".old")
            if self.path.exists():
                self.path.rename(old)
            self.partial.rename(self.path)
            shutil.rmtree(old, ignore_errors=True)

    def discard(self) -> None:
        """Remove what was begun."""
        shutil.rmtree(self.partial, ignore_errors=True)

    def _check_free(self, force: bool, resume: bool) -> None:
        for place in (self.path, self.partial):
            if not place.exists() and not place.is_symlink():
                continue
            if not place.is_dir() or (any(place.iterdir()) and not _is_result(place)):
                raise UsageError(f"'{place}' exists and is no result of vftsim; choose another name")
            if not any(place.iterdir()) or force or resume:
                continue
            how = "exists" if place == self.path else "is left from a run that was killed"
            raise UsageError(f"'{place}' {how}; --resume continues it, --force replaces it")

    def _source(self) -> Path | None:
        for place in (self.partial, self.path):
            if _is_result(place):
                return place
        return None

    def _check_identity(self, source: Path) -> None:
        name = MANIFEST if (source / MANIFEST).exists() else IDENTITY
        try:
            there = json.loads((source / name).read_text()).get("identity", {})
        except (OSError, ValueError, AttributeError):
            raise UsageError(f"'{source / name}' cannot be read; --force starts over") from None
        different = [key for key, value in self.identity.items() if there.get(key) != value]
        if different:
            raise UsageError(
                f"'{source}' holds another study (different {', '.join(different)}); it cannot be continued"
            )

    def _begin(self, source: Path | None, force: bool) -> None:
        with _writing(self.path):
            if source != self.partial and self.partial.exists():
                shutil.rmtree(self.partial)
            (self.partial / REPLICATIONS).mkdir(parents=True, exist_ok=True)
            write_file(self.partial / IDENTITY, to_json({"identity": self.identity}).encode())
            if source == self.path:
                for file in (source / REPLICATIONS).glob("*.json.gz"):
                    shutil.copy2(file, self.partial / REPLICATIONS)


def _is_result(place: Path) -> bool:
    return (place / MANIFEST).is_file() or (place / IDENTITY).is_file()


class _writing:  # noqa: N801 - reads as a word of a with statement
    """Turns a full disk or a forbidden place into a message."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> None:
        """Nothing to prepare."""

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, OSError):
            raise UsageError(f"cannot write '{self.path}': {error.strerror or error}") from None


def _finite(data: Any) -> Any:
    """Return data with every number that JSON lacks made None, tuples made lists."""
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data
