"""Rows that drivers write: what a part's parameters say goes into the fields of the same names."""

from functools import cache
from typing import Any, TypeVar

from vftsim.kernel import Engine, Record, Table
from vftsim.kernel.record import fields
from vftsim.spec.base import Spec

RecordT = TypeVar("RecordT", bound=Record)
_UNITS = ("_bits_per_s", "_ns", "_bytes")


def add_row(engine: Engine, table: Table[RecordT], spec: Spec | None = None, **values: Any) -> RecordT:
    """Take a row of a table and return it, as :func:`fill_row` fills it."""
    return fill_row(engine, table, engine.add(table)[0], spec, **values)


def fill_row(engine: Engine, table: Table[RecordT], row: int, spec: Spec | None = None, **values: Any) -> RecordT:
    """Set fields of a row and return it.

    A field named as a number of ``spec``, with a unit behind the name or not, has that value unless ``values`` has
    another: ``timeout_ns`` that of ``timeout``.  What a spec leaves out (``None``) stays 0.
    """
    record: Any = engine.rows(table)[row]
    of_spec = _of_spec(table.record, spec, values) if spec is not None else {}
    for name, value in {**of_spec, **values}.items():
        setattr(record, name, value)
    return record  # type: ignore[no-any-return]


@cache
def _fields_as_named(record: type[Record], spec: type[Spec]) -> list[tuple[str, str, type]]:
    """Return the numbers of a record that are named as a key of a spec, with the key and the field's type."""
    named = [
        (name, next((name.removesuffix(unit) for unit in _UNITS if name.endswith(unit)), name), hint)
        for name, hint in fields(record).items()
        if hint in (int, float, bool)
    ]
    return [each for each in named if each[1] in spec.model_fields]


def _of_spec(record: type[Record], spec: Spec, values: dict[str, Any]) -> dict[str, Any]:
    fields_of_spec: dict[str, Any] = {}
    for name, key, hint in _fields_as_named(record, type(spec)):
        value = getattr(spec, key)
        if name in values or not isinstance(value, (int, float)):
            continue
        if type(value) is not hint and not (hint is float and type(value) is int):
            raise TypeError(f"{name} is {hint.__name__}, but {key} of {type(spec).__name__} is {type(value).__name__}")
        fields_of_spec[name] = hint(value)
    return fields_of_spec
