"""Parts that a model file chooses by ``kind``.

A family of parts (schedulers, protection mechanisms, workloads) has one base spec and one registry;
each part is a subclass of the base in a file of its own::

    SCHEDULERS: PartRegistry[SchedulerSpec] = PartRegistry("scheduler", SchedulerSpec)

    @SCHEDULERS.register
    class CreditSpec(SchedulerSpec):
        kind: Literal["credit"] = "credit"

    class Host(Spec):
        scheduler: Annotated[SchedulerSpec, OneOf(SCHEDULERS)]

To a type checker ``scheduler`` is the base class; to pydantic it is the union of everything
registered, told apart by ``kind``.  The union is made when the root model is first used (or rebuilt),
so a part only has to be imported before that: :func:`discover` imports a package's every module, and the
modules that installed distributions name as entry points of the group ``vftsim.parts``.  Registering
after that point is refused, as it would have no effect.
"""

import importlib
import pkgutil
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import entry_points
from types import ModuleType
from typing import Any, Generic, Literal, TypeVar, cast, get_args, get_origin

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema

from vftsim.spec.base import Spec
from vftsim.spec.suggest import did_you_mean

S = TypeVar("S", bound=Spec)
Part = TypeVar("Part", bound=Spec)

TAG = "kind"
ENTRY_POINTS = "vftsim.parts"
"""Group of entry points; each names a module whose import registers parts."""


REGISTRIES: "list[PartRegistry[Any]]" = []
"""Every family that has been imported."""


class PartRegistry(Mapping[str, type[S]], Generic[S]):
    """The parts of one family by kind, sorted.

    The family is what they are, for messages (``scheduler``), the base the spec that every one of them derives from;
    ``kinds`` has what a part does in a run, by its kind: its class variable ``part``, unless it says another.
    """

    def __init__(self, family: str, base: type[S], kinds: Mapping[str, Any] | None = None) -> None:
        REGISTRIES.append(self)
        self.kinds = {} if kinds is None else kinds
        self.family = family
        self.base = base
        self._parts: dict[str, type[S]] = {}
        self._in_use = False

    def register(self, part: type[Part]) -> type[Part]:
        """Add a part (a class decorator); its ``kind`` must be one new literal string.

        What the base declares as a class variable without a value must be said.
        """
        base: type = self.base
        if not issubclass(part, base):
            raise TypeError(f"{part.__name__} is no {self.base.__name__}, the base of every {self.family}")
        kind = _kind_of(part)
        if kind in self.kinds and "part" not in part.__dict__:
            part.part = self.kinds[kind]  # type: ignore[attr-defined]
        for name in sorted(part.__class_vars__):
            if not hasattr(part, name):
                raise TypeError(f"{part.__name__} must say its `{name}`, as every {self.family} does")
        if kind in self._parts:
            raise TypeError(f"{self.family} kind '{kind}' is taken by {self._parts[kind].__qualname__}")
        if self._in_use:
            raise TypeError(
                f"{self.family} kind '{kind}' comes too late: a model with a {self.family} is in use; "
                "import the part's module before the first model is made (a notebook needs a new kernel for it)"
            )
        self._parts[kind] = cast(type[S], part)
        return part

    def choices(self) -> dict[str, type[S]]:
        """Return the parts by kind and close the registry."""
        if not self._parts:
            raise TypeError(f"no {self.family} is registered; discover() its package before using the model")
        self._in_use = True
        return {kind: self._parts[kind] for kind in self}

    def has_under(self, kind: str, part: S) -> bool:
        """Tell whether a part is the one that a model file calls so."""
        return type(part) is self._parts.get(kind)

    def did_you_mean(self, name: str) -> str:
        """Return ``"; did you mean 'x'?"``, the empty string, or where a product's name is another family's part."""
        folded = re.sub(r"[\W_]+", "_", name.casefold())
        for registry in (self, *REGISTRIES):
            for kind, part in registry._parts.items():
                if folded in part.__dict__.get("products", ()) or (registry is not self and folded == kind):
                    return f"; did you mean {'' if registry is self else f'the {registry.family} '}'{kind}'?"
            if registry is self and (near := did_you_mean(name, self)):
                return near
        return ""

    def __getitem__(self, kind: str) -> type[S]:
        return self._parts[kind]

    def __iter__(self) -> Iterator[str]:
        return iter(sorted(self._parts))

    def __len__(self) -> int:
        return len(self._parts)

    def __repr__(self) -> str:
        return f"PartRegistry({self.family!r}, {list(self)})"


def _kind_of(part: type[Spec]) -> str:
    field = part.model_fields.get(TAG)
    literals = get_args(field.annotation) if field and get_origin(field.annotation) is Literal else ()
    if len(literals) != 1 or not isinstance(literals[0], str):
        raise TypeError(f'{part.__name__} needs a field such as  kind: Literal["{part.__name__.lower()}"]')
    return literals[0]


@dataclass(frozen=True, eq=False)
class OneOf:
    """Annotation: any part of a registry, chosen by ``kind``."""

    registry: PartRegistry[Any]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        choices = {kind: handler.generate_schema(part) for kind, part in self.registry.choices().items()}
        return core_schema.tagged_union_schema(choices, discriminator=TAG)

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> JsonSchemaValue:
        return handler(schema)


def discover(package: ModuleType | str) -> tuple[str, ...]:
    """Import every module below a package, so that its parts register, and installed parts; return the names below.

    An import that fails is a fault of that module and is passed on.
    """
    root = importlib.import_module(package) if isinstance(package, str) else package
    names = sorted(m.name for m in pkgutil.walk_packages(root.__path__, root.__name__ + "."))
    for name in names:
        importlib.import_module(name)
    _discover_installed()
    return tuple(names)


@cache
def _discover_installed() -> None:
    for point in entry_points(group=ENTRY_POINTS):
        try:
            point.load()
        except Exception as error:
            owner = point.dist.name if point.dist is not None else "an installed distribution"
            error.add_note(f"while importing the part '{point.name}' ({point.value}) of {owner}")
            raise
