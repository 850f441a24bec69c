"""Inputs that are wrong somewhere, at random, the same ones for the same seed."""

from __future__ import annotations

import base64
import copy
import io
import os
import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

_TEXTS = (  # noqa: SIM905 - shorter to read
    "| |x|0 s|-1 s|1 ns|1e30 s|3650 d|nan s|inf s|nan|.nan|.inf|1e400|5 %|101 %|-5 %|1 bit/s|0 B|1 EB|1 Hz|0x10|1_000|"
    "½|"
    "１２ ms|±|a\nb|a\tb|\u202e|\x00|{}|[]|null|~|*x|&x 1|!!python/none|../../etc/passwd|/dev/zero|%s%n|$(true)|step 1|"
    "run 1 s|1 s 2|1;2|any|all|none|1 /s|1e9 /s|1000000 /s|0 /s|1 ms|25 ms|1 us|10 Gbit/s|2 GB"
).split("|")
_NUMBERS = [0, -1, 1, 2**31, 2**63, -(2**63), 10**40, 0.5, 1e-320, 1e308]
_PARTS = [[], {}, [[]], [None], {"a": 1}, [1, 2, 3], {"kind": "none"}, {"kind": "lockstep"}, {"kind": []}, [*range(8)]]
ODD = [None, True, False, "a" * 300, *_TEXTS, *_NUMBERS, *_PARTS]
"""Values that fit few places."""
_QUANTITY = re.compile(r"^\s*[0-9.]+\s*\S+\s*$")


@dataclass
class Input:
    """A command line, the files that it meets (``{}`` is their folder), and how it was made."""

    kind: str
    words: list[str]
    files: dict[str, bytes] = field(default_factory=dict)
    others: dict[str, str] = field(default_factory=dict)
    """Names of what is no file: ``dir``, ``fifo``, or ``-> TARGET`` for a link."""

    def lay(self, folder: Path) -> None:
        """Make the files."""
        for name, what in self.others.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if what == "dir":
                path.mkdir(exist_ok=True)
            elif what == "fifo":
                os.mkfifo(path)
            else:
                path.symlink_to(what.removeprefix("-> "))
        for name, data in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_bytes(data)

    def line(self, folder: Path) -> list[str]:
        """Return the command line in a folder."""
        return [word.replace("{}", str(folder)) for word in self.words]

    def as_data(self) -> dict[str, Any]:
        """Return plain data, for a corpus."""
        files = {name: base64.b64encode(data).decode() for name, data in self.files.items()}
        return {"kind": self.kind, "words": self.words, "files": files, "others": self.others}

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Input:
        """Rebuild what :meth:`as_data` returned."""
        files = {name: base64.b64decode(text) for name, text in data["files"].items()}
        return cls(data["kind"], list(data["words"]), files, dict(data["others"]))


def document(text: str) -> Any:
    """Return the data of a YAML text."""
    return YAML(typ="safe", pure=True).load(io.StringIO(text))


def as_text(data: Any) -> str:
    """Return a document as YAML."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def places(value: Any, keys: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if keys:
        yield keys
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from places(child, (*keys, key))


def _at(data: Any, keys: tuple[Any, ...]) -> Any:
    for key in keys:
        data = data[key]
    return data


def changed(choose: random.Random, data: Any) -> Any:
    """Return a document with one to three things changed."""
    data = copy.deepcopy(data)
    for _ in range(choose.choice((1, 1, 1, 2, 3))):
        found = list(places(data))
        if not found:
            break
        keys = choose.choice(found)
        parent, last = _at(data, keys[:-1]), keys[-1]
        _CHANGES[choose.choice(list(_CHANGES))](choose, data, parent, last)
    return data


def _replace(choose: random.Random, _: Any, parent: Any, last: Any) -> None:
    parent[last] = copy.deepcopy(choose.choice(ODD))


def _remove(_: random.Random, __: Any, parent: Any, last: Any) -> None:
    del parent[last]


def _rename(choose: random.Random, _: Any, parent: Any, last: Any) -> None:
    if isinstance(parent, dict):
        name = str(last)
        cut = choose.randrange(len(name) + 1)
        parent[
            choose.choice((name[:cut] + choose.choice("xé 9.-") + name[cut:], name[:cut], name.upper(), 7, True, ""))
        ] = parent.pop(last)


def _swap(choose: random.Random, data: Any, parent: Any, last: Any) -> None:
    other = choose.choice(list(places(data)))
    parent[last] = copy.deepcopy(_at(data, other))


def _number(choose: random.Random, _: Any, parent: Any, last: Any) -> None:
    value = parent[last]
    if isinstance(value, str) and _QUANTITY.match(value):
        factor = choose.choice(("0", "-1", "1e-9", "1e9", "1e18", "1e300", "0.1", "1000"))
        parent[last] = f"{factor} {value.split()[-1]}"
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        parent[last] = choose.choice((0, -value, value * 1000, value * 10**12, value + 0.5, float(value), str(value)))
    else:
        parent[last] = [value]


_CHANGES: dict[str, Callable[[random.Random, Any, Any, Any], None]] = {
    "replace": _replace,
    "remove": _remove,
    "rename": _rename,
    "swap": _swap,
    "number": _number,
    "number again": _number,
}


def torn(choose: random.Random, data: bytes) -> bytes:
    """Return bytes that were damaged somewhere."""
    found = bytearray(data)
    for _ in range(choose.choice((1, 1, 2, 5))):
        at = choose.randrange(len(found) + 1)
        length = choose.choice((1, 1, 2, 10, 300))
        how = choose.randrange(7)
        if how == 0:
            del found[at : at + length]
        elif how == 1:
            found[at:at] = bytes(choose.randrange(256) for _ in range(length))
        elif how == 2:
            del found[at:]
        elif how == 3 and found:
            found[min(at, len(found) - 1)] ^= 1 << choose.randrange(8)
        elif how == 4:
            found[at:at] = found[max(at - length, 0) : at]
        elif how == 5:
            found[at : at + length] = bytes(length)
        else:
            found[at:at] = choose.choice(
                (
                    b"\t",
                    b": ",
                    b"- ",
                    b"{",
                    b"]",
                    b'"',
                    b"&a ",
                    b"*a",
                    b"!!bool ",
                    b"\xff",
                    b"#",
                    b"|",
                    b"%",
                    b",",
                    b";",
                )
            )
    return bytes(found)
