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
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, NoReturn

from ruamel.yaml import YAML
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
    builder = _Builder(label)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            builder.take(event)
    except ModelFileError:
        raise
    except MarkedYAMLError as error:
        raise _syntax_error(error, label, builder.line) from None
    except YAMLError as error:
        position = getattr(error, "position", None)
        line = text.count("\n", 0, position) + 1 if isinstance(position, int) else builder.line
        first_line = str(error).partition("\n")[0]
        raise ModelFileError(f"is not YAML text: {first_line}", label, line) from None
    except (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError):
        # The scanner answers some malformed input with these instead of an error of its own.
        raise ModelFileError("is not well-formed YAML near this line", label, builder.line) from None
    return builder.root if builder.root is not None else Node(None, label, 1)


_parsed = lru_cache(_MOST_KEPT)(parse_yaml)


def _syntax_error(error: MarkedYAMLError, label: str, line: int) -> ModelFileError:
    mark = error.problem_mark or error.context_mark
    problem = (error.problem or error.context or "malformed text").replace("\n", " ")
    remedy = "; indent with spaces, not tabs" if "\\t" in problem or "\t" in problem else ""
    during = f" {error.context}" if error.context and error.problem else ""
    if during and error.context_mark and mark and error.context_mark.line != mark.line:
        during += f" begun on line {error.context_mark.line + 1}"
    return ModelFileError(f"is not well-formed YAML: {problem}{during}{remedy}", label, mark.line + 1 if mark else line)


@dataclass(slots=True)
class _Open:
    """A mapping or list whose end has not been read."""

    node: Node
    anchor: str | None
    key: str | None = None
    awaits_value: bool = False
    key_lines: dict[str, int] = field(default_factory=dict)


class _Builder:
    """Puts parser events together to a tree."""

    def __init__(self, label: str) -> None:
        self.label = label
        self.line = 1
        self.root: Node | None = None
        self.documents = 0
        self.nodes = 0
        self.open: list[_Open] = []
        self.anchors: dict[str, Node] = {}

    def take(self, event: Any) -> None:
        if event.start_mark is not None:
            self.line = event.start_mark.line + 1
        match type(event).__name__:
            case "DocumentStartEvent":
                self.documents += 1
                if self.documents > 1:
                    self.refuse("holds a second YAML document ('---'); put each model in a file of its own")
            case "ScalarEvent":
                self.scalar(event)
            case "AliasEvent":
                self.alias(event.anchor)
            case "MappingStartEvent":
                self.begin(event, {})
            case "SequenceStartEvent":
                self.begin(event, [])
            case "MappingEndEvent" | "SequenceEndEvent":
                done = self.open.pop()
                if done.anchor:
                    self.anchors[done.anchor] = done.node

    def refuse(self, message: str) -> NoReturn:
        raise ModelFileError(message, self.label, self.line, self.path())

    def path(self) -> str:
        parts: list[str] = []
        for opened in self.open:
            if isinstance(opened.node.value, list):
                parts.append(str(max(len(opened.node.value) - 1, 0)))
            elif opened.key is not None:
                parts.append(opened.key)
        return ".".join(parts)

    def tag(self, event: Any, *known: str) -> str | None:
        tag = str(event.tag).removeprefix(_CORE) if event.tag else None
        if tag not in (None, "!", *known):
            written = str(event.tag).replace(_CORE, "!!", 1)
            self.refuse(f"has the YAML tag {shown(written)}; a model file holds plain values only, remove the tag")
        return tag

    def scalar(self, event: Any) -> None:
        tag = self.tag(event, "str", "int", "float", "bool", "null")
        here = self.open[-1] if self.open else None
        if here and isinstance(here.node.value, dict) and not here.awaits_value:
            self.begin_entry(here, event)
            return
        is_text = tag in ("!", "str") or (tag is None and not event.implicit[0])
        node = Node(event.value if is_text else self.tagged(tag, event.value), self.label, self.line)
        if event.anchor:
            self.anchors[event.anchor] = node
        self.put(node)

    def begin_entry(self, here: _Open, event: Any) -> None:
        key = event.value
        if event.implicit[0] and key == "<<":
            self.refuse("merge key '<<' is not part of YAML 1.2; use 'extends' or repeat the keys")
        if key in here.key_lines:
            first = here.key_lines[key]
            here.key = key
            self.refuse(f"key {shown(key)} is given twice, first on line {first}; remove one")
        here.key_lines[key] = self.line
        here.key, here.awaits_value = key, True

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

    def alias(self, anchor: str) -> None:
        if any(opened.anchor == anchor for opened in self.open):
            self.refuse(f"alias '*{anchor}' stands inside its own anchor")
        target = self.anchors.get(anchor)
        if target is None:
            self.refuse(f"alias '*{anchor}' has no anchor '&{anchor}' before it")
        copy = self.copy(target, len(self.open))
        copy.line = self.line
        self.put(copy)

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

    def begin(self, event: Any, empty: "dict[str, Node] | list[Node]") -> None:
        self.tag(event, "map" if isinstance(empty, dict) else "seq")
        node = Node(empty, self.label, self.line)
        self.put(node)
        self.open.append(_Open(node, event.anchor))

    def put(self, node: Node) -> None:
        self.count(len(self.open))
        if not self.open:
            self.root = node
            return
        here = self.open[-1]
        if isinstance(here.node.value, list):
            here.node.value.append(node)
        elif here.key is None or not here.awaits_value or not isinstance(here.node.value, dict):
            self.refuse("a mapping or list stands where a key is expected; a key is plain text")
        else:
            here.node.value[here.key] = node
            node.line = here.key_lines[here.key]
            here.awaits_value = False
