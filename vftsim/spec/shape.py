"""What the specs say may stand at a key: the way from a root model along keys to a field.

Error messages and command-line overrides need it: which keys are allowed here, which part a ``kind``
chose, what a default looks like when a file leaves it out.
"""

import types
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from vftsim.spec.registry import TAG, OneOf, PartRegistry
from vftsim.spec.units import Quantity

Key = str | int


@dataclass(frozen=True)
class Shape:
    """A type annotation with its metadata; the field it was declared in, if it was."""

    annotation: Any
    metadata: tuple[Any, ...] = ()
    field: FieldInfo | None = None

    @property
    def registry(self) -> PartRegistry[Any] | None:
        """The registry that a ``kind`` at this place chooses from."""
        return next((m.registry for m in self.metadata if isinstance(m, OneOf)), None)

    @property
    def quantity(self) -> Quantity | None:
        return next((m for m in self.metadata if isinstance(m, Quantity)), None)

    def spec(self, data: Any) -> type[BaseModel] | None:
        """Return the model class at this place, given the data that stands there."""
        if self.registry is not None:
            kind = data.get(TAG) if isinstance(data, Mapping) else None
            return self.registry.get(kind) if isinstance(kind, str) else None
        if isinstance(self.annotation, type) and issubclass(self.annotation, BaseModel):
            return self.annotation
        return None

    def fields(self, data: Any) -> dict[str, FieldInfo]:
        """Return the fields of the model class at this place, empty if there is none."""
        spec = self.spec(data)
        return dict(spec.model_fields) if spec is not None else {}

    def child(self, key: Key, data: Any) -> "Shape | None":
        """Return the shape below `key`, None where the specs do not say."""
        field = self.fields(data).get(str(key))
        if field is not None:
            return shape_of(field.annotation, tuple(field.metadata), field)
        for member in _members(self.annotation):
            args = get_args(member.annotation)
            origin = get_origin(member.annotation)
            if not isinstance(origin, type) or not args:
                continue
            if isinstance(key, str) and issubclass(origin, Mapping):
                return shape_of(args[1])
            if isinstance(key, int) and issubclass(origin, Sequence):
                return shape_of(args[min(key, len(args) - 1)] if Ellipsis not in args else args[0])
        return None


def shape_of(annotation: Any, metadata: tuple[Any, ...] = (), field: FieldInfo | None = None) -> Shape:
    """Return the shape of an annotation; ``X | None`` is the shape of ``X``."""
    if get_origin(annotation) is Annotated:
        inner, *more = get_args(annotation)
        return shape_of(inner, (*more, *metadata), field)
    if get_origin(annotation) in (Union, types.UnionType):
        options = [option for option in get_args(annotation) if option is not type(None)]
        if len(options) == 1:
            return shape_of(options[0], metadata, field)
    return Shape(annotation, metadata, field)


def _members(annotation: Any) -> list[Shape]:
    if get_origin(annotation) in (Union, types.UnionType):
        return [shape_of(option) for option in get_args(annotation)]
    return [Shape(annotation)]


@dataclass(frozen=True)
class Spot:
    """Where an error location of pydantic leads: the user's keys and the shapes on the way."""

    keys: tuple[Key, ...]
    shape: Shape | None
    owner: Shape | None
    owner_data: Any


def locate(root: type[BaseModel], location: tuple[Key, ...], data: Any) -> Spot:
    """Follow an error location through the data, dropping what pydantic adds (kinds, union branches)."""
    keys: list[Key] = []
    shape: Shape | None = Shape(root)
    owner, owner_data = shape, data
    for element in location:
        if shape is not None and shape.registry is not None and element in shape.registry:
            shape = Shape(shape.registry[str(element)], (), shape.field)
            continue
        fields = shape.fields(data) if shape is not None else {}
        in_mapping = isinstance(data, Mapping) and (element in data or element in fields)
        if not in_mapping and not (isinstance(data, list) and isinstance(element, int)):
            continue
        owner, owner_data = shape, data
        shape = shape.child(element, data) if shape is not None else None
        keys.append(element)
        data = _item(data, element)
    return Spot(tuple(keys), shape, owner, owner_data)


def _item(data: Any, key: Key) -> Any:
    if isinstance(data, Mapping):
        return data.get(key)
    return data[key] if isinstance(key, int) and 0 <= key < len(data) else None
