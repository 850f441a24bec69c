"""Files of golden results: JSON in deterministic gzip, and where two results differ first."""

import gzip
import hashlib
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any


def write(path: Path, content: Any) -> None:
    """Write ``content`` as sorted JSON, gzipped (unless the name ends in ``.json``) without a time or a name."""
    if path.suffix == ".gz":
        text = json.dumps(content, sort_keys=True, separators=(",", ":"))
        path.write_bytes(gzip.compress(text.encode(), 9, mtime=0))
    else:
        path.write_text(json.dumps(content, sort_keys=True, indent=1) + "\n", encoding="utf-8")


def read(path: Path) -> Any:
    """Read what :func:`write` wrote."""
    return json.loads(gzip.decompress(path.read_bytes()))


def digest(lines: Iterable[str]) -> str:
    """SHA-256 of the lines, each with a newline."""
    total = hashlib.sha256()
    for line in lines:
        total.update(line.encode() + b"\n")
    return total.hexdigest()


def differences(expected: Any, found: Any, at: str = "") -> Iterator[str]:
    """Name each place where ``found`` is not ``expected``, in the order of the keys, with both values."""
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in sorted(expected.keys() | found.keys()):
            yield from differences(expected.get(key, "<absent>"), found.get(key, "<absent>"), f"{at}/{key}")
    elif isinstance(expected, list) and isinstance(found, list) and len(expected) == len(found):
        for number, (one, other) in enumerate(zip(expected, found, strict=True)):
            yield from differences(one, other, f"{at}[{number}]")
    elif type(expected) is not type(found) or expected != found:
        yield f"{at.lstrip('/')}: golden {_short(expected)}, found {_short(found)}"


def _short(value: Any) -> str:
    text = json.dumps(value, sort_keys=True)
    return text if len(text) <= 200 else f"{text[:200]}... ({len(text)} characters)"
