"""YAML text to a tree of values that know where they stand.

YAML 1.2 core schema (yaml.org/spec/1.2.2, section 10.3.2): ``yes`` and ``on`` are text, ``0o17`` and
``0x1f`` are whole numbers, a date is text.  ruamel.yaml only splits the text into events; the tree is
built here, so nothing in a file can name a Python object.  Mapping keys are text as written.

Refused, each with its line: tags other than the core ones, a repeated key, a second document, a merge
key ``<<`` (not in YAML 1.2; ``extends`` does that job), an alias inside its own anchor, nesting beyond
`MAX_DEPTH`, more than `MAX_NODES` values after aliases are expanded, files beyond `MAX_BYTES`, and
numbers that are not finite or not representable in 64 bits, and a tag that the value does not fit.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML, events
from ruamel.yaml.error import MarkedYAMLError, YAMLError

from vftsim.errors import ModelFileError
from vftsim.spec.suggest import shown
from vftsim.spec.written import WrittenFloat, WrittenInt

MAX_BYTES = 2**20
MAX_DEPTH = 32
MAX_NODES = 50_000
MAX_DIGITS = 40
_MOST_KEPT = 32
"""Texts of files whose trees are kept: a command reads its model several times, a model those that it extends."""
LARGEST_INT = 2**63 - 1  # what a field of a run's state holds

_CORE = "tag:yaml.org,2002:"
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLS = {word: word.lower() == "true" for word in ("true", "True", "TRUE", "false", "False", "FALSE")}
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)

_OF_TAG: dict[str, type | tuple[type, ...]] = {
    "str": str,
    "int": WrittenInt,
    "float": WrittenFloat,
    "bool": bool,
    "null": type(None),
}

Scalar = str | bool | WrittenInt | WrittenFloat | None


@dataclass(slots=True)
class Node:
    """A value with its place; the line of a mapping's entry is the line of its key."""

    value: "Scalar | dict[str, Node] | list[Node]"
    file: str
    line: int

    def plain(self) -> Any:
        """Return the value without places."""
        if isinstance(self.value, dict):
            return {key: node.plain() for key, node in self.value.items()}
        if isinstance(self.value, list):
            return [node.plain() for node in self.value]
        return self.value

    def at(self, *keys: str | int) -> "Node":
        """Return the value at keys, or the nearest one above it."""
        node = self
        for key in keys:
            if isinstance(node.value, dict) and key in node.value:
                node = node.value[str(key)]
            elif isinstance(node.value, list) and isinstance(key, int) and 0 <= key < len(node.value):
                node = node.value[key]
            else:
                break
        return node

    def error(self, message: str, key: str = "") -> ModelFileError:
        """Return what is raised about the value, with its place."""
        return ModelFileError(message, self.file, self.line, key)


def read_yaml(path: Path) -> Node:
    """Read one model file; every fault is a :class:`~vftsim.errors.ModelFileError`.

    The same text is parsed once, so its nodes are shared: nobody changes them.
    """
    return _parsed(read_text(path, MAX_BYTES, "; a model file is a few KiB of YAML text in UTF-8"), str(path))


def read_text(path: Path, most_bytes: int, form: str = "") -> str:
    """Return a file's text; refuse what cannot be read, is too large or no text; ``form`` says what it has to be."""
    label = str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(most_bytes + 1)
    except (OSError, ValueError) as error:
        raise ModelFileError(f"cannot be read: {getattr(error, 'strerror', None) or error}", label) from None
    if len(content) > most_bytes:
        raise ModelFileError(f"is larger than {most_bytes // 2**20} MiB{form}", label)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ModelFileError(f"is not UTF-8 text{form}", label, line) from None


def parse_yaml(text: str, label: str) -> Node:
    """Build the tree of YAML text; an empty text gives null."""
    reader = _Reader(label, iter(YAML(typ="safe", pure=True).parse(text)))
    try:
        return reader.document()
    except ModelFileError:
        raise
    except MarkedYAMLError as error:
        raise _syntax_error(error, label, reader.line) from None
    except YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else reader.line
        first_line = str(error).partition("\n")[0]
        raise ModelFileError(f"is not YAML text: {first_line}", label, line) from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        # The scanner answers some malformed input with these instead of an error of its own.
        raise ModelFileError("is not well-formed YAML near this line", label, reader.line) from None


_parsed = lru_cache(_MOST_KEPT)(parse_yaml)


def _syntax_error(error: MarkedYAMLError, label: str, line: int) -> ModelFileError:
    mark = error.problem_mark or error.context_mark
    problem = (error.problem or error.context or "malformed text").replace("\n", " ")
    remedy = "; indent with spaces, not tabs" if "\\t" in problem or "\t" in problem else ""
    during = f" {error.context}" if error.context and error.problem else ""
    if during and error.context_mark and mark and error.context_mark.line != mark.line:
        during += f" begun on line {error.context_mark.line + 1}"
    return ModelFileError(f"is not well-formed YAML: {problem}{during}{remedy}", label, mark.line + 1 if mark else line)


class _Reader:
    """Puts a parser's events together to a tree."""

    def __init__(self, label: str, parsed: Iterator[Any]) -> None:
        self.label, self.parsed, self.line, self.nodes = label, parsed, 1, 0
        self.keys: list[str] = []
        """Where the value stands that is read."""
        self.anchors: dict[str, Node | None] = {}
        """None as long as what they name is read."""

    def document(self) -> Node:
        root = None
        while (event := self.next()) is not None:
            if root is not None and isinstance(event, events.DocumentStartEvent):
                self.refuse("holds a second YAML document ('---'); put each model in a file of its own")
            if isinstance(event, events.NodeEvent):
                root = self.value(event)
        return root or Node(None, self.label, 1)

    def next(self) -> Any:
        event: Any = next(self.parsed, None)
        if event is not None and event.start_mark is not None:
            self.line = event.start_mark.line + 1
        return event

    def refuse(self, message: str) -> NoReturn:
        raise ModelFileError(message, self.label, self.line, ".".join(self.keys))

    def value(self, event: Any) -> Node:
        """Return the value that begins with an event."""
        if isinstance(event, events.AliasEvent):
            return self.alias(event.anchor)
        is_mapping = isinstance(event, events.MappingStartEvent)
        tag = self.tag(event, *(_OF_TAG if isinstance(event, events.ScalarEvent) else ["map" if is_mapping else "seq"]))
        self.count(len(self.keys))
        node = Node(None, self.label, self.line)
        if event.anchor:
            self.anchors[event.anchor] = None
        if isinstance(event, events.ScalarEvent):
            is_text = tag in ("!", "str") or (tag is None and not event.implicit[0])
            node.value = event.value if is_text else self.tagged(tag, event.value)
        else:
            node.value = self.entries() if is_mapping else self.items()
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def items(self) -> list[Node]:
        items: list[Node] = []
        while not isinstance(event := self.next(), events.SequenceEndEvent):
            items.append(self.below(str(len(items)), event))
        return items

    def entries(self) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        while not isinstance(event := self.next(), events.MappingEndEvent):
            if not isinstance(event, events.ScalarEvent):
                self.refuse("a mapping or list stands where a key is expected; a key is plain text")
            self.tag(event, *_OF_TAG)
            key, line = event.value, self.line
            if event.implicit[0] and key == "<<":
                self.refuse("merge key '<<' is not part of YAML 1.2; use 'extends' or repeat the keys")
            if key in entries:
                self.keys.append(key)
                self.refuse(f"key {shown(key)} is given twice, first on line {entries[key].line}; remove one")
            entries[key] = self.below(key, self.next())
            entries[key].line = line
        return entries

    def below(self, key: str, event: Any) -> Node:
        self.keys.append(key)
        node = self.value(event)
        self.keys.pop()
        return node

    def tag(self, event: Any, *known: str) -> str | None:
        tag = str(event.tag).removeprefix(_CORE) if event.tag else None
        if tag not in (None, "!", *known):
            written = str(event.tag).replace(_CORE, "!!", 1)
            self.refuse(f"has the YAML tag {shown(written)}; a model file holds plain values only, remove the tag")
        return tag

    def tagged(self, tag: str | None, text: str) -> Scalar:
        """Return the value of a scalar that may say what it is: it must be that by the core schema."""
        value = self.resolve(text)
        if tag == "float" and isinstance(value, int) and not isinstance(value, bool):
            value = WrittenFloat(value)
        if tag is not None and not isinstance(value, _OF_TAG[tag]):
            self.refuse(f"has the YAML tag '!!{tag}', which {shown(text)} is not; remove the tag")
        return value

    def resolve(self, text: str) -> Scalar:
        """Return the value of a plain scalar by the core schema."""
        if text in _NULLS:
            return None
        if text in _BOOLS:
            return _BOOLS[text]
        if not _FLOAT.fullmatch(text) and not _INT.fullmatch(text):
            return text
        if len(text) > MAX_DIGITS:
            self.refuse(f"{shown(text)} has more than {MAX_DIGITS} characters; no number of a model needs that")
        if _INT.fullmatch(text):
            whole = WrittenInt(text, 0 if text[:2] in ("0o", "0x") else 10)
            if abs(whole) > LARGEST_INT:
                self.refuse(f"{shown(text)} is beyond the largest whole number of a model, {LARGEST_INT} (2^63 - 1)")
            return whole
        number = WrittenFloat(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        if not math.isfinite(number):
            self.refuse(f"{shown(text)} is not a finite number; leave a key out where there is no limit")
        return number

    def alias(self, anchor: str) -> Node:
        if anchor not in self.anchors:
            self.refuse(f"alias '*{anchor}' has no anchor '&{anchor}' before it")
        target = self.anchors[anchor]
        if target is None:
            self.refuse(f"alias '*{anchor}' stands inside its own anchor")
        copy = self.copy(target, len(self.keys))
        copy.line = self.line
        return copy

    def copy(self, node: Node, depth: int) -> Node:
        self.count(depth)
        value = node.value
        if isinstance(value, dict):
            return Node({k: self.copy(n, depth + 1) for k, n in value.items()}, node.file, node.line)
        if isinstance(value, list):
            return Node([self.copy(n, depth + 1) for n in value], node.file, node.line)
        return Node(value, node.file, node.line)

    def count(self, depth: int) -> None:
        self.nodes += 1
        if depth > MAX_DEPTH:
            self.refuse(f"is nested deeper than {MAX_DEPTH} levels")
        if self.nodes > MAX_NODES:
            self.refuse(f"holds more than {MAX_NODES} values once its aliases are expanded")
