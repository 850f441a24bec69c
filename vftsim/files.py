"""Plain data, and files of it that are there completely or not at all: JSON, digests, dataclasses read back."""

import contextlib
import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

from pydantic import BeforeValidator, TypeAdapter


def write_file(path: Path, data: bytes) -> None:
    """Write a file so that it is there completely or not at all."""
    temporary = path.with_name(path.name + ".tmp")
    try:
        with temporary.open("wb") as stream:
            stream.write(data)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.replace(path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename is not None:
            error.filename = str(path)
        raise


def to_json(data: Any, indent: int | None = 2) -> str:
    """Return JSON text that is the same for equal data; not-a-number becomes null.

    Bytes of file names that are no UTF-8, which Python holds as lone surrogates, are written as escapes.
    """
    try:
        text = _dumped(data, indent)
    except (TypeError, ValueError):  # there is a number that JSON lacks, or a mapping that it does not know
        text = _dumped(_finite(data), indent)
    return text.encode(errors="backslashreplace").decode()


def _dumped(data: Any, indent: int | None) -> str:
    return json.dumps(data, indent=indent, allow_nan=False, ensure_ascii=False)


T = TypeVar("T")
Number = Annotated[float, BeforeValidator(lambda value: math.nan if value is None else value)]
Endless = Annotated[float, BeforeValidator(lambda value: math.inf if value is None else value)]
"""Of a class that is read back: a number that may be none, or infinite, where JSON has null."""


@cache
def codec(kind: Any) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
    """Return what makes plain data of a dataclass, or of another type with its parts, and what reads it back."""
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    return adapter.dump_python, adapter.validate_python


def read_back(kind: type[T], data: Mapping[str, Any], **known: Any) -> T:
    """Return a dataclass of what is known, and of those other fields that are in plain data under their names."""
    kinds = {name: each for name, each in get_type_hints(kind).items() if name in data and name not in known}
    return kind(**known, **{name: codec(each)[1](data[name]) for name, each in kinds.items()})


def write_json(path: Path, data: Any, indent: int | None = 2) -> None:
    write_file(path, (to_json(data, indent) + "\n").encode())


def sha256_of_file(path: Path) -> str | None:
    """Return the SHA-256 of a file's content; None if there is no such file, or no plain one (a pipe has no end)."""
    if not path.is_file():
        return None
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def sync_directory(folder: Path) -> None:
    """Make names in a directory durable, where the system can."""
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _finite(data: Any) -> Any:
    """Return data with every number that JSON lacks made None, tuples made lists."""
    if isinstance(data, float):
        return data if data - data == 0 else None
    if isinstance(data, Mapping):
        return {str(key): _finite(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(value) for value in data]
    return data


def sha256_of(data: Any) -> str:
    """Return the SHA-256 of plain data, whatever the order of its keys."""
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
