"""What of a model can be turned on a page: every key with a number, a quantity, a choice or a kind of part."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

from vftsim.composition.model import ModelSpec
from vftsim.platform.protection.prices import Price
from vftsim.spec import RATE
from vftsim.spec.registry import TAG
from vftsim.spec.shape import Shape
from vftsim.stats.estimate import plain
from vftsim.study.designs.points import as_text
from vftsim.study.figures.validity import COVERED, is_load

_APART = ("format", "name", "description", "measured", "calibrated")
"""What a model file says of itself, which is no knob."""
_OF_HOST, _OF_DOMAIN = ("pcpus", "scheduler.kind"), ("vcpus", "affinity", "protection.kind")
_MOST_FIRST = 12
_BOUNDS = (("ge", "at least"), ("gt", "above"), ("le", "at most"), ("lt", "below"))
_YES_NO = ("true", "false")


@dataclass(frozen=True)
class Knob:
    """A key of a model, as a control shows it."""

    key: str
    """Dotted."""
    value: str
    """The model's own, as ``--set`` has it."""
    help: str
    """What it is, its unit and where its default comes from."""
    bounds: str
    """Which values it may have, in words."""
    choices: tuple[str, ...] = ()
    """All of them, if they are few."""
    mark: str = ""
    """What the calibration, or a source, says of it."""

    @property
    def section(self) -> str:
        """Where in the model it stands: the first two parts of its key."""
        return ".".join(self.key.split(".")[:2])


def knobs_of(spec: ModelSpec) -> dict[str, Knob]:
    """Return the knobs of a model by key, in the order of its file."""
    priced = [(name, each) for name, domain in spec.domains.items() for each in domain.protection.prices()]
    prices = {f"domains.{name}.protection.{each.key}": each.price for name, each in priced}
    knobs = {}
    data = spec.model_dump(mode="json", exclude=set(_APART))
    for key, shape, value, kinds in _leaves(Shape(ModelSpec), data):
        if knob := _knob(key, shape, value, kinds, _marked(spec, key, shape, prices)):
            knobs[key] = knob
    return knobs


def first_of(spec: ModelSpec, knobs: Mapping[str, Knob]) -> list[str]:
    """Return the keys that are shown before anybody has chosen: the loads, and what carries them."""
    reached = [name for name, domain in spec.domains.items() if domain.interfaces] or list(spec.domains)
    keys = [f"workloads.{name}.{each.first_load_key}" for name, each in spec.workloads.items()]
    keys += [f"hosts.{name}.{key}" for name in spec.hosts for key in _OF_HOST]
    keys += [f"domains.{name}.{key}" for name in reached for key in _OF_DOMAIN]
    return [key for key in keys if key in knobs][:_MOST_FIRST]


def _leaves(shape: Shape | None, data: Any, path: str = "") -> Iterator[tuple[str, Shape, Any, tuple[str, ...]]]:
    """Yield key, shape, value and, of a ``kind``, the kinds there are."""
    for name, value in data.items():
        below = shape.child(name, data) if shape is not None else None
        key = f"{path}.{name}" if path else str(name)
        if isinstance(value, dict):
            yield from _leaves(below, value, key)
        elif below is not None:
            registry = shape.registry if shape is not None and name == TAG else None
            yield key, below, value, tuple(registry) if registry else ()


def _knob(key: str, shape: Shape, value: Any, kinds: tuple[str, ...], mark: str) -> Knob | None:
    """Return the knob that a key is; None for names, lists of parts and parts that are not there."""
    help_ = " ".join((shape.field.description or "").split()) if shape.field else ""
    written = as_text(value)
    choices = kinds or _choices(shape.annotation)
    if choices:
        return Knob(key, written, help_ or "Which part it is.", "", choices, mark) if len(choices) > 1 else None
    if shape.quantity is not None:
        bounds = f"a {shape.quantity.name} such as {shape.quantity.example}"
    elif shape.annotation in (int, float):
        bounds = "a whole number" if shape.annotation is int else "a number"
    elif _is_numbers(shape.annotation):
        bounds = "a list of numbers such as [0, 1], or null"
    elif examples := _examples(shape.child(0, value)):
        bounds = f"a list such as [{{{', '.join(examples)}}}]"
    else:
        return None
    declared = ((word, getattr(each, name, None)) for each in shape.metadata for name, word in _BOUNDS)
    limits = [f"{word} {_written(shape, limit)}" for word, limit in declared if limit is not None]
    return Knob(key, written, help_, ", ".join([bounds, *limits]), (), mark)


def _choices(annotation: Any) -> tuple[str, ...]:
    if annotation is bool:
        return _YES_NO
    return tuple(map(as_text, get_args(annotation))) if get_origin(annotation) is Literal else ()


def _is_numbers(annotation: Any) -> bool:
    """Whether a list of numbers may stand there."""
    if get_origin(annotation) in (Union, UnionType):
        return any(_is_numbers(each) for each in get_args(annotation))
    return get_origin(annotation) is tuple and {*get_args(annotation)} <= {int, float, Ellipsis}


def _examples(row: Shape | None) -> list[str]:
    """Return an example of each field of a row of a list; none unless all are quantities, which name nothing."""
    if row is None:
        return []
    quantities = {name: below and below.quantity for name in row.fields(None) for below in [row.child(name, None)]}
    return [f"{name}: {each.example}" for name, each in quantities.items() if each] if all(quantities.values()) else []


def _marked(spec: ModelSpec, key: str, shape: Shape, prices: Mapping[str, Price]) -> str:
    """Return what is known of a key beside its value: the calibrated range, or that the calibration ends with it."""
    if key in prices:
        ends = f"{_written(shape, prices[key].low)} to {_written(shape, prices[key].high)}"
        return f"{prices[key].basis}{f' ({prices[key].source})' if prices[key].source else ''}: {ends}"
    if spec.calibrated is None:
        return ""
    if is_load(spec, key):
        low, high = (RATE.format(load) for load in spec.calibrated.loads)
        return f"calibrated from {low} to {high}"
    return "not calibrated for other values" if key.partition(".")[0] in COVERED else ""


def _written(shape: Shape, limit: float) -> str:
    quantity = shape.quantity
    return plain(limit) if quantity is None else quantity.format(round(limit) if quantity.whole else limit)
