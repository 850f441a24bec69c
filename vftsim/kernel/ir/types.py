"""Types of values: numbers, rows, arrays in rows, tuples."""

from typing import Any

from vftsim.kernel.link import LinkError

INT, REAL, TRUTH, NOTHING = "i64", "double", "i1", "void"


class UntranslatableError(LinkError):
    """A function's code that no compiled kernel can contain: a defect of the part, not of a model."""


class Number:
    """A number in memory: numpy's short name, and the number of the field that it is, for LLVM."""

    def __init__(self, name: str, memory: int) -> None:
        self.name = name
        self.memory = memory


class Row:
    """A record: where its fields are.  Two of the same layout are one object."""

    text, zero = "ptr", "null"

    def __init__(self, size: int) -> None:
        self.size = size
        self.fields: dict[str, tuple[int, Any]] = {}
        """Offset and kind of each: a row, an array, or a number."""


class Array:
    """An array in a record; ``item`` is a row or a number."""

    text, zero = "ptr", "null"

    def __init__(self, item: Any, count: int, size: int) -> None:
        self.item = item
        self.count = count
        self.size = size


class Tuple:
    """Several values at once: what a function returns or two names are given."""

    zero = "zeroinitializer"

    def __init__(self, types: list[Any]) -> None:
        self.types: tuple[Any, ...] = tuple(INT if t == TRUTH else t for t in types)
        self.text = "{" + ", ".join(map(text_of, self.types)) + "}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Tuple) and self.types == other.types

    def __hash__(self) -> int:
        return hash(self.types)


Type = str | Row | Array | Tuple
Value = tuple[str, Any]
"""A value's text in IR and its type."""

_ORDER = (TRUTH, INT, REAL)


def text_of(kind: Type) -> str:
    """Return a type as IR has it."""
    return kind if isinstance(kind, str) else kind.text


def zero_of(kind: Type) -> str:
    """Return what a variable holds before it is given a value."""
    if isinstance(kind, str):
        return "0.0" if kind == REAL else "0"
    return kind.zero


def wider(one: Type, other: Type) -> Type:
    """Return the type that holds both; an error: rows or tuples of two kinds."""
    if one == other:
        return one
    if one not in _ORDER or other not in _ORDER:
        raise UntranslatableError("one name or result is a number here and a row there, or rows of two tables")
    return _ORDER[max(_ORDER.index(str(one)), _ORDER.index(str(other)))]
