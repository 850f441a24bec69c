"""Records: the state of a model, declared once and kept in two forms.

A record is a class with annotated fields and no methods.  The engine ``simpy`` makes slotted Python objects of
it, the engine ``compiled`` rows of a numpy structured array; functions over records read the same in both.
Every field starts at zero.

Fields may be ``int`` (64 bits, signed), ``float`` (64 bits), ``bool``, another record (nested), or a fixed
number of one of these: ``Annotated[list[int], 64]``.
"""

from __future__ import annotations

from collections.abc import Callable
from inspect import getattr_static
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

_SCALARS: dict[type, str] = {int: "i8", float: "f8", bool: "?"}
_MANY = 1 << 16
_FORBIDDEN = frozenset(dir(np.recarray)) | frozenset(dir(np.record))


class _RecordMeta(type):
    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> _RecordMeta:
        names = tuple(namespace.get("__annotations__", {}))
        clash = sorted(_FORBIDDEN.intersection(names))
        if clash:
            raise TypeError(f"{name}: a field must not be named like an attribute of a numpy array: {', '.join(clash)}")
        namespace["__slots__"] = names
        namespace["__init__"] = _first_of_its_type
        return super().__new__(mcs, name, bases, namespace)


def _first_of_its_type(record: Record) -> None:
    """Begin the first record of a type, and have the others of that type begin without asking which it is."""
    fill = _filler(type(record))
    type.__setattr__(type(record), "__init__", fill)
    fill(record)


class Record(metaclass=_RecordMeta):
    """Base of all records."""


class Row(Record):
    """Base of records that know the number of their row."""

    row: int


class _Large:
    """A field with so many numbers that they are made when they are first looked at: most runs write no trace."""

    def __init__(self, slot: Any, make: Callable[[], Any]) -> None:
        self._slot, self._make = slot, make

    def __get__(self, record: Record, _: type[Record]) -> Any:
        try:
            return self._slot.__get__(record)
        except AttributeError:
            self._slot.__set__(record, self._make())
            return self._slot.__get__(record)

    def __set__(self, record: Record, value: Any) -> None:
        self._slot.__set__(record, value)


def fields(record: type[Record]) -> dict[str, Any]:
    """Return the fields of a record with their types, those of its bases first."""
    hints = get_type_hints(record, include_extras=True)
    names = [name for cls in reversed(record.__mro__) for name in cls.__dict__.get("__slots__", ())]
    return {name: hints[name] for name in names}


def _filler(record: type[Record]) -> Callable[[Record], None]:
    """Return what gives each field of a record its first value, written out: tables have thousands of rows."""
    factories = {name: _factory(record, name, hint) for name, hint in fields(record).items()}
    for name in [name for name, hint in fields(record).items() if _count(record, name, hint) >= _MANY]:
        if not isinstance(getattr_static(record, name), _Large):
            type.__setattr__(record, name, _Large(getattr_static(record, name), factories[name]))
        del factories[name]
    zeros: dict[Any, str] = {int: "0", float: "0.0", bool: "False"}
    lines = [f" r.{name} = {zeros.get(make, f'make_{name}()')}" for name, make in factories.items()]
    names: dict[str, Any] = {f"make_{name}": make for name, make in factories.items()}
    exec("\n".join(["def fill(r):", *lines, " return"]), names)
    filler: Callable[[Record], None] = names["fill"]
    return filler


def _factory(record: type[Record], name: str, hint: Any) -> Callable[[], Any]:
    if get_origin(hint) is Annotated:
        element, count = _element(record, name, hint)
        make = _factory(record, name, element)
        if element in _SCALARS:
            zeros = [make()] * count
            return zeros.copy
        return lambda: [make() for _ in range(count)]
    if isinstance(hint, type) and (hint in _SCALARS or issubclass(hint, Record)):
        return hint
    raise TypeError(
        f"{record.__name__}.{name}: {hint!r} is no type of a field; use int, float, bool, a record, or "
        "Annotated[list[...], count]"
    )


def _count(record: type[Record], name: str, hint: Any) -> int:
    return _element(record, name, hint)[1] if get_origin(hint) is Annotated else 1


def _element(record: type[Record], name: str, hint: Any) -> tuple[Any, int]:
    sequence, *sizes = get_args(hint)
    if get_origin(sequence) is not list or len(sizes) != 1 or not isinstance(sizes[0], int):
        raise TypeError(f"{record.__name__}.{name}: an array is written Annotated[list[int], count]")
    return get_args(sequence)[0], sizes[0]


def dtype_of(record: type[Record]) -> np.dtype[Any]:
    """Return the layout of a record in memory."""
    return np.dtype([_column(record, name, hint) for name, hint in fields(record).items()])


def _column(record: type[Record], name: str, hint: Any) -> Any:
    if get_origin(hint) is Annotated:
        element, count = _element(record, name, hint)
        return (name, _column(record, name, element)[1], (count,))
    if hint in _SCALARS:
        return (name, _SCALARS[hint])
    return (name, dtype_of(hint))
