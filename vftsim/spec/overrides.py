"""Changes to a model from the command line: ``--set domains.sut.weight=512``.

The value is YAML: a number, text, ``25 ms``, ``[a, b]``, ``{kind: credit, cap: 50 %}``.  The path goes
through mappings by key and through lists by index from 0.  A part that the file leaves to its default
stands there as one that says nothing, so that one of its keys can be set.  The value replaces what stood there;
``null`` removes the key; a new ``kind`` empties its mapping, as in :mod:`vftsim.spec.extends`.
"""

from copy import copy
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Annotated, Any, NoReturn

from pydantic import BaseModel, TypeAdapter
from pydantic_core import PydanticUndefined

from vftsim.errors import ModelFileError
from vftsim.spec.extends import changes_kind
from vftsim.spec.shape import Key, Shape
from vftsim.spec.suggest import instead, or_below, shown
from vftsim.spec.written import WrittenFloat, WrittenInt
from vftsim.spec.yaml_source import Node, parse_yaml

ORIGIN = "--set"


def apply_override(root: type[BaseModel], tree: Node, assignment: str, number: int) -> Node:
    """Return the tree with one assignment made; `number` (from 1) is its place on the command line.

    Nodes that come from it have the file ``--set`` and, for a line, that number.
    """
    change = _Change(assignment, number)
    path, equals, text = assignment.partition("=")
    keys = [key.strip() for key in path.split(".")]
    if not equals or not all(keys):
        change.refuse("is not of the form path.to.key=value, e.g. domains.sut.weight=512")
    if not text.strip():
        change.refuse("has no value; write 'null' to remove a key")
    try:
        value = _value_of(text.strip())
    except ModelFileError as error:
        change.refuse(f"the value {error.message}")
    if keys[0] not in {*Shape(root).fields({}), *_outline(tree)} and (meant := or_below(keys, tree.plain())):
        change.refuse(f"unknown key '{path.strip()}'{meant}")
    return change.assign(tree, keys, [], Shape(root), change.placed(value.plain()))


_value_of = lru_cache(4096)(partial(parse_yaml, label=ORIGIN))
"""What a value says, read once: the points of a grid say the same again and again."""


def _outline(node: Node) -> dict[str, Any]:
    """Return what a mapping says itself, which is what tells its shape; the whole of it is large."""
    return {key: below.value for key, below in node.value.items()} if isinstance(node.value, dict) else {}


@dataclass(frozen=True)
class _Change:
    assignment: str
    number: int

    def refuse(self, message: str) -> NoReturn:
        raise ModelFileError(message, ORIGIN, 0, self.assignment)

    def placed(self, data: Any) -> Node:
        """Return plain data as nodes that come from this assignment."""
        if isinstance(data, dict):
            return Node({k: self.placed(v) for k, v in data.items()}, ORIGIN, self.number)
        if isinstance(data, (list, tuple)):
            return Node([self.placed(v) for v in data], ORIGIN, self.number)
        if isinstance(data, int) and not isinstance(data, bool):
            return Node(WrittenInt(data), ORIGIN, self.number)
        return Node(WrittenFloat(data) if isinstance(data, float) else data, ORIGIN, self.number)

    def assign(self, node: Node, keys: list[str], done: list[str], shape: Shape | None, value: Node) -> Node:
        """Return `node` with the value put at `keys` below it; `done` are the keys above."""
        key = self.key_in(node.value, keys[0], ".".join(done))
        changed: Any = copy(node.value)
        is_there = isinstance(key, int) or key in changed
        if len(keys) > 1:
            below = shape.child(key, _outline(node)) if shape else None
            start = changed[key] if is_there else self.default(node, keys[0], done, shape)
            changed[key] = self.assign(start, keys[1:], [*done, keys[0]], below, value)
        elif value.value is None and is_there:
            del changed[key]
        elif key == "kind" and changes_kind(changed, value):
            return Node({key: value}, ORIGIN, self.number)
        else:
            changed[key] = value
        return Node(changed, node.file, node.line)

    def key_in(self, holder: Any, key: str, holder_key: str) -> Key:
        """Return a key of a mapping, or an index of a list; refuse what is neither, and an index that there is not."""
        if isinstance(holder, dict):
            return key
        if not isinstance(holder, list):
            self.refuse(f"'{holder_key}' is {shown(holder)}, not a mapping; there is no '{key}' in it")
        if not key.isascii() or not key.isdigit() or int(key) >= len(holder):
            self.refuse(f"'{holder_key}' is a list of {len(holder)}; '{key}' is none of its indices from 0")
        return int(key)

    def default(self, node: Node, key: str, done: list[str], shape: Shape | None) -> Node:
        """Return what an absent key stands for, to be changed further."""
        outline = _outline(node)
        fields = shape.fields(outline) if shape else {}
        if key not in fields:
            choices = sorted({*fields, *outline})
            within = f" in '{'.'.join(done)}'" if done else ""
            self.refuse(f"unknown key '{key}'{within}{instead(key, choices, 'allowed:')}")
        field = fields[key]
        default = field.get_default(call_default_factory=True, validated_data={})
        if default is PydanticUndefined or default is None:
            return self.placed({})
        declared: Any = field.annotation
        for extra in field.metadata:
            declared = Annotated[declared, extra]
        # Only what it says itself: the rest keeps its defaults, and with them what is known of those.
        written = TypeAdapter(declared).dump_python(default, mode="json", exclude_unset=True)
        if hasattr(default, "kind"):
            written = {"kind": default.kind, **written}
        return self.placed(written)
