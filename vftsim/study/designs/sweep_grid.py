"""The grid of a sweep: axes with their values, and the model at each point.

An axis is a dotted key of the model (``domains.dom0.weight``) or a short name that stands for one or
several of them.  Short names exist for media streams on a host, where one question touches several domains, and for
parameters of protection (:mod:`.protections`), which mechanisms have under different keys.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.errors import ModelFileError, UsageError
from vftsim.platform.cpu.parameters import schedulers
from vftsim.spec import DURATION, Document, read_document
from vftsim.spec.suggest import instead
from vftsim.study.designs.protections import (
    KEYS,
    MEANINGS,
    WRITTEN,
    has_parameter,
    kinds_named,
    mechanism_of,
    parts_named,
    protection_key,
    switch_of,
)
from vftsim.study.figures.validity import as_fitted, not_covered, with_changes
from vftsim.study.runs.estimate import Needs, total
from vftsim.study.runs.model import Model, first_look_ns, load_model

DEFAULT_MODEL = "xen-media"
SHORT_NAMES = ("weight", "cap", "streams", "calls")
SHORT_MEANINGS = {
    "weight": "weight of the driver domain and of the media VM",
    "cap": "cap of each CPU-bound VM in percent of a pCPU, 0: none",
    "streams": "media streams",
    "calls": "calls per second",
}
DEFAULT_GRID = ("weight=256,512,1024", "cap=0,60,30", "streams=400,600,800")
COMPARISON_GRID = ("weight=256,1024", "cap=0,30", "streams=800")
"""Coarser: every scheduler multiplies it."""
DEFAULT_TIMES = ("measure.duration=1 s", "measure.warm_up=300 ms")
"""Of the default study: ten accounting periods of the credit scheduler and fifteen packet intervals of warm-up."""
DURATION_KEY = "measure.duration"

MOST_POINTS = 100_000
_GOLDEN = 0.6180339887498949  # its multiples, modulo 1, fill a stretch evenly and follow no axis
_MOST_LOOKED_AT = 200
"""Points whose needs are added up before a sweep; making one takes a millisecond."""
MOST_DRAWN = 1000
"""Points that are drawn, and whose models are kept at once."""
_OPEN, _CLOSE = "[{(", "]})"


@dataclass(frozen=True, slots=True)
class Axis:
    """A setting that is varied under one name."""

    name: str
    """As the user said it."""
    keys: tuple[str, ...]
    """Dotted keys of the model that get the value; of a short name about protection, in mechanisms that have it."""
    values: tuple[str, ...]
    """As the user wrote them."""
    unit: str = ""
    """Added to a value that is a bare number."""

    def assignments(self, value: str, kind: str) -> tuple[str, ...]:
        """Return what ``--set`` would say for a value under a mechanism; nothing if that has no such parameter."""
        if self.name in MEANINGS and not has_parameter(kind, self.name):
            return ()
        text = f"{value} {self.unit}" if self.unit and _is_number(value) else WRITTEN.get(self.name, str)(value)
        return tuple(f"{key}={text}" for key in self.keys)


@dataclass(frozen=True, slots=True)
class Variant:
    """A scheduler and a mechanism, with what gives them to the model."""

    scheduler: str
    protection: str
    """Empty if mechanisms are not compared."""
    switch: tuple[str, ...]
    """Assignments."""
    kind: str
    """The mechanism in effect."""

    @property
    def names(self) -> dict[str, str]:
        """The names of the scheduler and the mechanism, where these are compared."""
        both = {"scheduler": self.scheduler, "protection": self.protection}
        return {what: name for what, name in both.items() if name}

    @property
    def name(self) -> str:
        """Both in words."""
        return ", ".join(self.names.values())


@dataclass(frozen=True, slots=True)
class Point:
    """One point of the grid."""

    number: int
    variant: Variant
    values: Mapping[str, str]
    """The value of each axis."""
    made: Callable[[], Model]
    """Makes its model."""
    digest: str
    """Of its model; this and what follows is asked of every point, and making the model again takes a millisecond."""
    times_ns: tuple[int, int]
    """Measured time of a replication and its warm-up, in ns."""
    not_covered: tuple[str, ...]
    """Keys that are something else than when the model was fitted."""

    @property
    def model(self) -> Model:
        """Its model, made when it is asked for: those of a large grid would take hundreds of megabytes."""
        return self.made()

    @property
    def name(self) -> str:
        """In words."""
        return ", ".join([*self.variant.names.values(), *(f"{k}={v}" for k, v in self.values.items())])


@dataclass(frozen=True)
class Grid:
    """The points of a sweep, and how the model of each is made."""

    base: Model
    axes: tuple[Axis, ...]
    variants: tuple[Variant, ...]
    refused: Mapping[str, str]
    """Why, by scheduler and mechanism that the model could not be written with."""
    overrides: tuple[str, ...]
    at: Callable[[tuple[str, ...]], Model]

    @property
    def size(self) -> int:
        return len(self.variants) * math.prod(len(axis.values) for axis in self.axes)

    @property
    def schedulers(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(variant.scheduler for variant in self.variants))

    @property
    def protections(self) -> tuple[str, ...]:
        """The mechanisms it compares, if any."""
        return tuple(dict.fromkeys(variant.protection for variant in self.variants if variant.protection))

    @cached_property
    def points(self) -> tuple[Point, ...]:
        """All points, made when they are asked for; one that nothing can run is refused."""
        return tuple(map(self._point, range(self.size)))

    def quick(self) -> Grid:
        """Return the grid with every point shortened for a first look."""
        least_ns = first_look_ns(self.some_models)
        at = _cached(lambda assignments: self.at(assignments).quick(least_ns), self.size)
        return replace(self, base=self.base.quick(least_ns), at=at)

    @cached_property
    def some_models(self) -> list[Model]:
        """The models of all points; of a large grid, of points spread over it."""
        few = min(self.size, _MOST_LOOKED_AT)
        some = [int(n * _GOLDEN % 1.0 * self.size) for n in range(few)] if few < self.size else range(few)
        return [self._model(number) for number in some]

    def takes(self, replications: int) -> Needs:
        """Return what so many replications of each point take; of a large grid, by points spread over it."""
        some = self.some_models
        return total([model.spec for model in some], replications).times(self.size / len(some))

    def _point(self, number: int) -> Point:
        model = self._model(number)
        times_ns = model.spec.measure.duration, model.spec.measure.warm_up
        made = partial(self._model, number)
        return Point(number, *self._place(number), made, model.digest(), times_ns, tuple(not_covered(model.spec)))

    def _place(self, number: int) -> tuple[Variant, dict[str, str]]:
        """Return where one of the points stands; they are counted with the last axis first."""
        rest, values = number, list[str]()
        for axis in reversed(self.axes):
            rest, place = divmod(rest, len(axis.values))
            values.insert(0, axis.values[place])
        return self.variants[rest], {axis.name: value for axis, value in zip(self.axes, values, strict=True)}

    def _model(self, number: int) -> Model:
        variant, values = self._place(number)
        made = itertools.chain.from_iterable(axis.assignments(values[axis.name], variant.kind) for axis in self.axes)
        return self.at((*variant.switch, *self.overrides, *made))


def _cached(at: Callable[[tuple[str, ...]], Model], points: int) -> Callable[[tuple[str, ...]], Model]:
    """Return what keeps the models of a grid that people look at; of a larger one, where the next is made, the last."""
    return lru_cache(points if points <= MOST_DRAWN else 1)(at)


def plan_grid(
    name: str | None,
    scheduler: str | None,
    grid: Sequence[str] = (),
    overrides: Sequence[str] = (),
    protection: str | None = None,
) -> Grid:
    """Return what the points of a sweep are to be.

    Parameters
    ----------
    name : str, optional
        Model; by default the shipped Xen media host, with :data:`DEFAULT_TIMES` where nothing else is said.
    scheduler : str, optional
        A registered scheduler, several with commas, or ``all``; by default the model's own.
    grid : sequence of str
        Axes such as ``weight=256,512``; by default those of the default study.
    overrides : sequence of str
        Assignments that hold at every point.
    protection : str, optional
        A mechanism, several with commas, or ``all``, each without the model's faults; by default the model's own.
    """
    overrides = (*_default_times(name, grid, overrides), *overrides)
    name = name or DEFAULT_MODEL
    document = read_document(name)
    as_set = load_model(name)
    at = partial(model_at, document, as_set, as_fitted(document))
    with suppress(ModelFileError):  # what holds everywhere may be about one of the mechanisms
        as_set = at(overrides)
    switched = {"--scheduler": scheduler_keys(as_set)} if scheduler is not None else {}
    switched |= {"--protection": (protection_key(as_set),)} if protection is not None else {}
    for key in (text.partition("=")[0].strip() for text in overrides):
        refuse_overwritten(switched | {key: (key,)}, "--set")
    variants = _variants(as_set, scheduler, protection)
    refused: dict[str, str] = {}
    fitting: list[tuple[Variant, Model]] = []
    for variant in variants:
        try:
            fitting.append((variant, at((*variant.switch, *overrides))))
        except ModelFileError as error:
            if len(variants) == 1:
                raise
            refused[variant.name] = str(error)
    if not fitting:
        raise UsageError(f"nothing can run this model: {'; '.join(f'{k}: {m}' for k, m in refused.items())}")
    base = next((model for variant, model in fitting if not variant.switch), fitting[0][1])
    if protection is not None and as_set.assignments == overrides:
        base = as_set
    kinds = tuple(dict.fromkeys(variant.kind for variant, _ in fitting))
    axes = _axes(base, grid, COMPARISON_GRID if len(variants) > 1 else DEFAULT_GRID, kinds)
    refuse_overwritten(switched | {axis.name: axis.keys for axis in axes}, "--grid")
    made = Grid(base, axes, tuple(variant for variant, _ in fitting), refused, tuple(overrides), at)
    if made.size > MOST_POINTS:
        raise UsageError(f"the grid has {made.size} points; at most {MOST_POINTS}")
    return replace(made, at=_cached(at, made.size))


def _variants(model: Model, scheduler: str | None, protection: str | None) -> list[Variant]:
    """Return every scheduler under every mechanism that is asked for."""
    in_use, chosen = mechanism_of(model), _scheduler_of(model) if scheduler is None else scheduler
    mechanisms: list[tuple[str, tuple[str, ...]]] = [("", ())]
    if protection is not None:
        mechanisms = [(kind, switch_of(model, kind, model)) for kind in kinds_named(protection)]
    return [
        Variant(kind, mechanism, (*scheduler_switch(model, kind), *switch), mechanism or in_use)
        for kind in parts_named(chosen, schedulers(), "--scheduler", "scheduler")
        for mechanism, switch in mechanisms
    ]


def with_duration(name: str | None, grid: Sequence[str], overrides: Sequence[str], measured_ns: int) -> tuple[str, ...]:
    """Return the overrides and one more: the measured time of a steady state."""
    if load_model(name or DEFAULT_MODEL).spec.phased is not None:
        raise UsageError(f"--duration is for a steady state; '{name}' is measured for its own load steps")
    if _says(DURATION_KEY, grid, overrides):
        raise UsageError(f"--duration and {DURATION_KEY} are the same: give one")
    return (*overrides, f"{DURATION_KEY}={DURATION.format(measured_ns)}")


def _default_times(name: str | None, grid: Sequence[str], overrides: Sequence[str]) -> tuple[str, ...]:
    if name is not None or _says("measure", grid, overrides):
        return ()
    return tuple(text for text in DEFAULT_TIMES if not _says(text.partition("=")[0], grid, overrides))


def _says(key: str, grid: Sequence[str], overrides: Sequence[str]) -> bool:
    return key in {text.partition("=")[0].strip() for text in (*grid, *overrides)}


def model_at(document: Document, model: Model, fitted: Mapping[str, Any] | None, assignments: tuple[str, ...]) -> Model:
    """Return the model of a document with assignments, named as ``model`` is."""
    spec = document.override(ModelSpec, assignments).validate(ModelSpec)
    return Model(model.label, with_changes(spec, fitted), assignments)


def scheduler_switch(model: Model, kind: str) -> tuple[str, ...]:
    """Return what gives the model a scheduler; one that it has already keeps its parameters."""
    if _scheduler_of(model) == kind:
        return ()
    return tuple(f"{key}={{kind: {kind}}}" for key in scheduler_keys(model))


def scheduler_keys(model: Model) -> tuple[str, ...]:
    """Return the dotted key of each host's scheduler."""
    return tuple(f"hosts.{host}.scheduler" for host in model.spec.hosts)


def _scheduler_of(model: Model) -> str:
    """Return the scheduler of the model's first host."""
    kind: str = next(iter(model.spec.hosts.values())).scheduler.kind  # type: ignore[attr-defined]
    return kind


def refuse_overwritten(keys_of: Mapping[str, Sequence[str]], option: str) -> None:
    """Refuse factors, with their keys in the order in which they are set, of which one undoes another.

    One that sets a key again, or all below which the key is, as a new kind does, would leave points that are not what
    they are called.
    """
    set_by: dict[str, str] = {}
    for name, keys in keys_of.items():
        wholes = [".".join(map(str.strip, key.split("."))).removesuffix(".kind") for key in keys]
        for whole, (key, other) in itertools.product(wholes, set_by.items()):
            if key == whole:
                raise UsageError(f"{option}: '{other}' and '{name}' both set {key}; leave one of them out")
            if key.startswith(f"{whole}."):
                raise UsageError(f"{option}: '{name}' sets all of {whole} and undoes '{other}'; name it first")
        set_by |= dict.fromkeys(wholes, name)


def _axes(model: Model, grid: Sequence[str], default: Sequence[str], kinds: tuple[str, ...]) -> tuple[Axis, ...]:
    if not grid and not _short_keys(model, "streams"):
        raise UsageError(f"a sweep of '{model.label}' needs axes, e.g. --grid domains.sut.cpu_inflation=1,1.3")
    texts = grid or [text for text in default if _short_keys(model, text.split("=")[0])]
    axes = tuple(_axis(model, text, kinds) for text in texts)
    names = [axis.name for axis in axes]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"--grid: '{name}' is given twice; put all its values into one --grid")
    return axes


def _axis(model: Model, text: str, kinds: tuple[str, ...]) -> Axis:
    name, equals, rest = text.partition("=")
    name = name.strip()
    values = tuple(split_values(rest))
    if not equals or not name or not all(values):
        raise UsageError(f"--grid: '{text}' is not of the form name=value,value, e.g. weight=256,512,1024")
    if len(set(values)) < len(values):
        raise UsageError(f"--grid: '{text}' names a value twice")
    return axis_of(model, name, values, kinds)


def axis_of(model: Model, name: str, values: tuple[str, ...], kinds: tuple[str, ...], option: str = "--grid") -> Axis:
    """Return the axis that a dotted key or a short name is; refuse one that means nothing under these mechanisms."""
    if "." in name:
        return Axis(name, (name,), values)
    if name in MEANINGS:
        if not any(has_parameter(kind, name) for kind in kinds):
            means = f"'{name}' ({MEANINGS[name]}) means nothing under {', '.join(kinds)}"
            raise UsageError(f"{option}: {means}; say a protection that has it")
        return Axis(name, (f"{protection_key(model)}.{KEYS[name]}",), values)
    if name not in SHORT_NAMES:
        known = (*SHORT_NAMES, *MEANINGS)
        there = instead(name, known, "short names:")
        raise UsageError(f"{option}: no short name '{name}'{there}; or a dotted key of the model")
    keys = _short_keys(model, name)
    if not keys:
        raise UsageError(f"{option}: '{name}' ({SHORT_MEANINGS[name]}) means nothing in '{model.label}'")
    return Axis(name, keys, values, "%" if name == "cap" else "")


def _short_keys(model: Model, name: str) -> tuple[str, ...]:
    spec = model.spec
    loads = {workload.load_key: workload_name for workload_name, workload in reversed(spec.workloads.items())}
    if key := {"streams": "streams", "calls": "calls_per_s"}.get(name):
        return (f"workloads.{loads[key]}.{key}",) if key in loads else ()
    if name == "weight":
        reached = spec.target_of(spec.workloads[loads["streams"]])[0] if "streams" in loads else None
        domains = dict.fromkeys((*map(spec.driver_of, spec.hosts), reached))
        return tuple(f"domains.{domain}.weight" for domain in domains if domain)
    return tuple(
        f"domains.{domain}.cap"
        for domain, one in spec.domains.items()
        if one.applications and all(program.busy_percent for program in one.applications.values())
    )


def split_values(text: str) -> list[str]:
    """Split at commas that are not inside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in _OPEN) - (letter in _CLOSE)
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
