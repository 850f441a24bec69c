"""Malformed versions of any good model document.

``mutations(document)`` yields files that must each be refused with one clear message.  It needs to know
nothing of the model but the good document, because every change is wrong for whatever field it hits: a
quantity without or with a foreign unit, text or a number turned into a list of lists, a key no spec has
holding a value no open mapping takes, text that is no YAML.  ``removals(document)`` yields
the document less one key each; whether that is wrong depends on the field's default.
"""

import copy
import io
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

QUANTITY = re.compile(r"\s*([0-9.eE+]+)\s*(ns|us|ms|s|min|h|d|[kMGT]?bit/s|[kMGT]i?B|B|/s|/min|/h|%|[kMG]?Hz)\s*")
Keys = tuple[str | int, ...]
NONSENSE = [[[{"no": ["such", "value"]}]]]


@dataclass(frozen=True)
class Mutation:
    """One malformed file, with the files it needs beside it; its text is made where it is needed, not to name it."""

    name: str
    made: bytes | Callable[[], bytes]
    beside: Mapping[str, bytes] = field(default_factory=dict)

    @property
    def content(self) -> bytes:
        return self.made() if callable(self.made) else self.made

    def write(self, folder: Path, name: str = "model.yaml") -> Path:
        """Write the file into a folder; return its path."""
        for other, content in self.beside.items():
            (folder / other).write_bytes(content)
        path = folder / name
        path.write_bytes(self.content)
        return path


def to_yaml(document: Any) -> bytes:
    """Return a document as block-style YAML."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    stream = io.StringIO()
    yaml.dump(document, stream)
    return stream.getvalue().encode()


def mutations(document: Mapping[str, Any]) -> Iterator[Mutation]:
    """Yield malformed versions of a document, the same ones every time."""
    yield from value_mutations(document)
    yield from text_mutations(document)
    yield from extends_mutations(document)


def removals(document: Mapping[str, Any]) -> Iterator[Mutation]:
    """Yield the document less one key each."""
    for keys, _ in _places(document):
        if keys and isinstance(keys[-1], str):
            yield _mutation("removed", keys, document, _REMOVE)


def value_mutations(document: Mapping[str, Any]) -> Iterator[Mutation]:
    """Yield documents with one value made wrong."""
    for keys, value in _places(document):
        if isinstance(value, Mapping):
            yield _mutation("unknown key", (*keys, "wieghtt"), document, NONSENSE)
            yield _mutation("list for mapping", keys, document, [value])
            yield _mutation("text for mapping", keys, document, "oops")
        elif isinstance(value, list):
            yield _mutation("mapping for list", keys, document, {"oops": value})
            yield _mutation("text for list", keys, document, "oops")
        else:
            for name, wrong in _wrong_scalars(value, keys[-1]):
                yield _mutation(name, keys, document, wrong)


def _wrong_scalars(value: Any, key: str | int) -> Iterator[tuple[str, Any]]:
    yield "nonsense", NONSENSE
    yield "mapping for scalar", {"oops": {"deeper": NONSENSE}}
    if key == "kind":
        yield "unknown kind", f"{value}x"
        yield "number for kind", 7
    if isinstance(value, str) and (found := QUANTITY.fullmatch(value)):
        number, unit = found.groups()
        yield "unknown unit", f"{number} parsecs"
        yield "wrong dimension", f"{number} MB" if not unit.endswith("B") else f"{number} ms"
        yield "negative", f"-{number if float(number) else 1} {unit}"
        yield "no unit", float(number) + 1
        yield "no unit in text", f"{float(number) + 1}"
        yield "not finite", f"nan {unit}"
        yield "infinite", f"inf {unit}"
        yield "absurd size", f"1e99 {unit}"
        yield "huge exponent", f"1e999999999 {unit}"
        yield "boolean for quantity", True
        yield "two numbers", f"{number} {number} {unit}"
        yield "decimal comma", f"1,5 {unit}"
    elif isinstance(value, bool):
        yield "text for boolean", "yes"
    elif isinstance(value, (int, float)):
        yield "text for number", f"{value} apples"


def text_mutations(document: Mapping[str, Any]) -> Iterator[Mutation]:
    """Yield files that are no well-formed YAML mapping, or do what a model file may not."""
    good = to_yaml(document)
    lines = good.splitlines(keepends=True)
    key = next(iter(document))
    bomb = b"a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for i in range(1, 12):
        bomb += f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n".encode()
    texts = {
        "empty": b"",
        "only a comment": b"# nothing\n",
        "scalar": b"hello\n",
        "list": b"- a\n- b\n",
        "duplicate key": good + lines[0].split(b":")[0] + b": 1\n",
        "tab indentation": good + b"zz:\n\tkey: 1\n",
        "binary": bytes(range(256)) * 4,
        "not UTF-8": good + b"zz: \xff\xfe\n",
        "UTF-16": good.decode().encode("utf-16"),
        "NUL": good + b"zz: a\0b\n",
        "control character": good + b"zz: a\x07b\n",
        "python object": good + b"zz: !!python/object/apply:os.system ['true']\n",
        "python name": good + b"zz: !!python/name:os.system\n",
        "python tuple": good + b"zz: !!python/tuple [1]\n",
        "private tag": good + b"zz: !mine {a: 1}\n",
        "huge integer": good + b"zz: " + b"9" * 5000 + b"\n",
        "huge float": good + b"zz: 1e999\n",
        "infinity": good + b"zz: .inf\n",
        "not a number": good + b"zz: .nan\n",
        "deep flow nesting": good + b"zz: " + b"[" * 5000 + b"]" * 5000 + b"\n",
        "deep mapping": good + b"zz: " + b"{a: " * 500 + b"1" + b"}" * 500 + b"\n",
        "deep block nesting": good + b"".join(b" " * i + b"k:\n" for i in range(200)),
        "alias bomb": bomb + good,
        "alias in itself": good + b"zz: &self [*self]\n",
        "alias without anchor": good + b"zz: *nobody\n",
        "merge key": good + b"<<: {a: 1}\n",
        "two documents": good + b"---\n" + good,
        "unclosed bracket": good + b"zz: [1, 2\n",
        "unclosed quote": good + b'zz: "abc\n',
        "stray colon": good + b"zz: a: b\n",
        "bad indentation": good + b"   zz: 1\n",
        "complex key": good + b"? [a, b]\n: 1\n",
        "mapping key": good + b"? {a: b}\n: 1\n",
        "bad directive": b"%YAML 9.9.9.9\n---\n" + good,
        "bad escape": good + b'zz: "\\q"\n',
        "too large": good + b"#" * (2**20 + 1),
        "unknown top key": good + b"wieghtt: 1\n",
        "null of unknown key": good + b"wieghtt:\n",
        "top key mistyped": good.replace(key.encode() + b":", key.encode() + b"zq:", 1),
        "cut in the middle of a key": good + key[: len(key) // 2 + 1].encode(),
    }
    for name, content in texts.items():
        yield Mutation(f"text: {name}", content)


def extends_mutations(document: Mapping[str, Any]) -> Iterator[Mutation]:
    """Yield files whose ``extends`` leads nowhere, in circles or too far."""
    good = to_yaml(document)
    link = b"extends: %s\n"
    yield Mutation("extends: itself", good + link % b"model.yaml")
    yield Mutation(
        "extends: cycle",
        good + link % b"one.yaml",
        {"one.yaml": link % b"two.yaml", "two.yaml": link % b"model.yaml"},
    )
    chain = {f"c{i}.yaml": link % (b"c%d.yaml" % (i + 1)) for i in range(12)}
    yield Mutation("extends: too long", good + link % b"c0.yaml", {**chain, "c12.yaml": good})
    for name, target in {
        "missing path": b"nowhere.yaml",
        "missing name": b"no-such-model",
        "absurd name": b"'" + b"x" * 5000 + b"'",
        "a list": b"[a, b]",
        "a number": b"7",
        "empty text": b"''",
        "a folder": b"../",
        "a NUL": b'"a\\0b.yaml"',
        "a NUL name": b'"a\\0b"',
    }.items():
        yield Mutation(f"extends: {name}", good + link % target)
    yield Mutation("extends: broken base", good + link % b"base.yaml", {"base.yaml": b"a: [\n"})
    yield Mutation("extends: list base", good + link % b"base.yaml", {"base.yaml": b"- a\n"})
    yield Mutation("extends: unknown key in base", good + link % b"base.yaml", {"base.yaml": b"wieghtt: 1\n"})


_REMOVE = object()


def _places(value: Any, keys: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    yield keys, value
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, child in items:
        yield from _places(child, (*keys, key))


def _mutation(name: str, keys: Keys, document: Mapping[str, Any], value: Any) -> Mutation:
    label = f"{name}: {'.'.join(map(str, keys)) or 'whole file'}"
    if not keys:
        return Mutation(label, partial(to_yaml, value))
    changed: Any = copy.deepcopy(dict(document))
    parent = changed
    for key in keys[:-1]:
        parent = parent[key]
    if value is _REMOVE:
        del parent[keys[-1]]
    else:
        parent[keys[-1]] = value
    return Mutation(label, partial(to_yaml, changed))
