"""The points of a design: what each sets, and the model that makes."""

from __future__ import annotations

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any, overload

from vftsim.composition.model import ModelSpec
from vftsim.errors import ModelFileError, UsageError
from vftsim.spec import Document, read_document
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.shipped import is_file
from vftsim.spec.units import converted, number_and_unit, quantity_of
from vftsim.spec.yaml_source import parse_yaml
from vftsim.study.designs.axes import (
    Axis,
    axis_of,
    number_of,
    refuse_overwritten,
    scheduler_keys,
    scheduler_switch,
    value_at,
    written,
)
from vftsim.study.designs.protections import mechanism_of, protection_key, switch_of
from vftsim.study.designs.study_spec import Factor, Grid, LatinHypercube, Listed, Paired, Sobol, StudySpec
from vftsim.study.figures.validity import as_fitted, not_covered, with_changes
from vftsim.study.runs.estimate import Needs, total
from vftsim.study.runs.model import Model, first_look_ns, labels_apart, load_model

SCHEDULER, PROTECTION = "scheduler", "protection"
MOST_POINTS = 100_000
MOST_DRAWN = 1000
"""Points that are drawn, and whose models are kept at once."""
_GOLDEN = 0.6180339887498949  # its multiples, modulo 1, fill a stretch evenly and follow no axis
_MOST_LOOKED_AT = 200
"""Points whose needs are added up before a study; making one takes a millisecond."""
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Point:
    """A point of a design."""

    number: int
    label: str
    """Of the model."""
    values: Mapping[str, str]
    """The value of each factor, as a model file has it."""
    made: Callable[[], Model]
    """Makes its model; those of a large design would take hundreds of megabytes."""
    digest: str
    """Of its model; this and what follows is asked of every point, and making the model again takes a millisecond."""
    times_ns: tuple[int, int]
    """Measured time of a replication and its warm-up, in ns."""
    not_covered: tuple[str, ...]
    """Keys that are something else than when the model was fitted."""

    @classmethod
    def of(cls, number: int, label: str, values: Mapping[str, str], make_model: Callable[[], Model]) -> Point:
        """Return the point of a model; refuse one that nothing can run."""
        model = make_model()
        times_ns = model.spec.measure.duration, model.spec.measure.warm_up
        return cls(number, label, values, make_model, model.digest(), times_ns, tuple(not_covered(model.spec)))

    @property
    def model(self) -> Model:
        """Its model, made when it is asked for."""
        return self.made()

    @property
    def name(self) -> str:
        """In words."""
        return _name_of(self.label, self.values)


def _name_of(label: str, values: Mapping[str, str]) -> str:
    return ", ".join([label, *(f"{name}={value}" for name, value in values.items())])


@dataclass(frozen=True)
class Source:
    """A model file, and what makes models of points of it."""

    document: Document
    plain: Model
    """As the file has it."""
    settings: tuple[str, ...]
    """What holds at all points, as with ``--set``."""
    factors: Mapping[str, Factor]
    kinds: tuple[str, ...]
    """Mechanisms of its points; none named: the model's own."""
    option: str
    """Where the user wrote the factors; messages about them begin so."""

    @cached_property
    def _fitted(self) -> Mapping[str, Any] | None:
        return as_fitted(self.document)

    def _is_of_switched(self, setting: str) -> bool:
        """Tell whether a setting is of a parameter of a part that a factor switches: it holds for every kind of it."""
        match setting.partition("=")[0].strip().split("."):
            case ["hosts", _, "scheduler", *parameter]:
                is_switched = self.is_switch(SCHEDULER)
            case ["domains", _, "protection", *parameter]:
                is_switched = self.is_switch(PROTECTION)
            case _:
                return False
        return is_switched and parameter not in ([], ["kind"])

    @cached_property
    def _parted(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The settings but for those of parameters of parts that factors switch, and these."""
        late = tuple(text for text in self.settings if self._is_of_switched(text))
        return tuple(text for text in self.settings if text not in late), late

    @cached_property
    def held(self) -> Model:
        """The model with what holds at all points, but for parameters of parts that factors switch."""
        try:
            return self.at(self._parted[0])
        except ModelFileError:  # it may be about one of the kinds
            if not any(map(self.is_switch, (SCHEDULER, PROTECTION))):
                raise
            return self.plain

    @cached_property
    def base(self) -> Model | None:
        """The model with all that holds at all points; None if it needs a factor for that."""
        with suppress(ModelFileError):
            return self.at(self.settings)
        return None

    @cached_property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms under which its points are."""
        return self.kinds or (mechanism_of(self.held),)

    @cached_property
    def axes(self) -> dict[str, Axis]:
        """What each factor sets, what switches parts first; refuses factors of which one undoes another."""
        axes = dict[str, Axis]()
        for name in sorted(self.factors, key=lambda name: not self.is_switch(name)):
            if self.is_switch(name):
                keys = scheduler_keys(self.held) if name == SCHEDULER else (protection_key(self.held),)
            else:
                keys = tuple(_keys(self.factors[name]))
            axes[name] = Axis(name, keys) if keys else axis_of(self.held, name, self.mechanisms, self.option)
        refuse_overwritten({name: axis.keys for name, axis in axes.items()}, self.option)
        return axes

    def is_switch(self, name: str) -> bool:
        """Tell whether this is a factor that switches a part of the model by the name of its kind."""
        return name in (SCHEDULER, PROTECTION) and name in self.factors and not _keys(self.factors[name])

    def at(self, assignments: tuple[str, ...]) -> Model:
        """Return the model with assignments as ``--set`` has them."""
        spec = self.document.override(ModelSpec, assignments).validate(ModelSpec)
        return Model(self.plain.label, with_changes(spec, self._fitted), assignments)

    def model(self, values: Mapping[str, str]) -> Model:
        """Return the model with these values of factors; refuse what it cannot have."""
        try:
            return self.at(self._assignments(values))
        except ModelFileError as error:
            is_of_factor = error.file == ORIGIN and error.key not in self.settings
            file = self.option if is_of_factor else error.file
            for name, value in values.items() if is_of_factor else ():
                if ".." in value and error.key in {f"{key}={value}" for key in self.axes[name].keys}:
                    raise ModelFileError(_no_range(name, value), file) from None
            raise ModelFileError(error.message, file, error.line, error.key) from None

    def _assignments(self, values: Mapping[str, str]) -> tuple[str, ...]:
        """Return what ``--set`` would say for the values of a point, by factor; what switches parts comes first.

        A part that the model has already keeps its parameters.  A parameter that one of the mechanisms of all points
        has says nothing under another.
        """
        switches, others = list[str](), list[str]()
        switched = {name: value for name, value in values.items() if self.is_switch(name)}
        kind = switched.get(PROTECTION, self.mechanisms[0])
        if SCHEDULER in switched:
            switches += scheduler_switch(self.held, switched[SCHEDULER])
        if PROTECTION in switched:
            switches += switch_of(self.held, kind, self.plain)
        for name, value in values.items():
            if name not in switched:
                others += self.axes[name].assignments(value, kind)
        early, late = self._parted
        return (*early, *switches, *late, *others)


@dataclass(frozen=True)
class Points(Sequence[Point]):
    """The points of a design: all of one model, then those of the next; each is made when it is asked for."""

    sources: tuple[Source, ...]
    rows: Sequence[Mapping[str, str]]
    """The values of the factors at the points of each model."""
    least_ns: int | None = None
    """What a first look at each measures at least; None: they are as their models say."""

    def __post_init__(self) -> None:
        refuse_many(len(self))
        for source in self.sources:
            source.axes  # noqa: B018 - refuses what makes no sense

    def __len__(self) -> int:
        return len(self.sources) * len(self.rows)

    @overload
    def __getitem__(self, index: int) -> Point: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Point]: ...
    def __getitem__(self, index: int | slice) -> Point | Sequence[Point]:
        return self._all[index]

    @cached_property
    def _all(self) -> tuple[Point, ...]:
        """All of them; one that nothing can run is refused now, not in the middle of the work."""
        return tuple(map(self._point, range(len(self))))

    def possible(self) -> tuple[list[Point], dict[str, str]]:
        """Return the points that their models can have, and why they cannot have the others, by their names."""
        points, refused = list[Point](), dict[str, str]()
        for number in range(len(self)):
            try:
                points.append(self._point(number))
            except ModelFileError as error:
                refused[_name_of(self._source(number).plain.label, self._values(number))] = str(error)
        return points, refused

    def quick(self) -> Points:
        """Return them shortened for a first look, all of them to the same time."""
        return replace(self, least_ns=first_look_ns(self.some_models))

    @cached_property
    def some_models(self) -> list[Model]:
        """The models of all points; of a large design, of points spread over it."""
        few = min(len(self), _MOST_LOOKED_AT)
        some = [int(n * _GOLDEN % 1.0 * len(self)) for n in range(few)] if few < len(self) else range(few)
        return [self._model(number) for number in some]

    def takes(self, replications: int) -> Needs:
        """Return what so many replications of each point take; of a large design, by points spread over it."""
        some = self.some_models
        return total([model.spec for model in some], replications).times(len(self) / len(some))

    @property
    def bases(self) -> list[Model]:
        """The models without values of factors; of one that needs them, the first point's."""
        bases = [source.base or source.model(self.rows[0]) for source in self.sources]
        return bases if self.least_ns is None else [base.quick(self.least_ns) for base in bases]

    def _point(self, number: int) -> Point:
        label = self._source(number).plain.label
        return Point.of(number, label, self._values(number), partial(self._model, number))

    def _source(self, number: int) -> Source:
        return self.sources[number // len(self.rows)]

    def _values(self, number: int) -> Mapping[str, str]:
        return self.rows[number % len(self.rows)]

    @cached_property
    def _models(self) -> dict[int, Model]:
        """Models of points: all of a design that people look at; of a larger one, where the next is made, the last."""
        return {}

    def _model(self, number: int) -> Model:
        if number not in self._models:
            model = self._source(number).model(self._values(number))
            if len(self) > MOST_DRAWN:
                self._models.clear()
            self._models[number] = model if self.least_ns is None else model.quick(self.least_ns)
        return self._models[number]


def refuse_many(count: int) -> None:
    if count > MOST_POINTS:
        raise UsageError(f"the design has {count} points; at most {MOST_POINTS}")


@dataclass(frozen=True, slots=True)
class Span:
    """A range of values with a common unit."""

    low: float
    high: float
    unit: str = ""
    is_log: bool = False
    """Whether its points are spread by ratio."""
    is_whole: bool = False
    """Whether its values are whole numbers."""

    def number_at(self, share: float) -> float:
        """Return the number at a share of the range, with six digits; both ends are reached."""
        number = self._between(self.low, self.high, share)
        return float(round(number)) if self.is_whole else float(f"{number:.{_DIGITS}g}")

    def at(self, share: float) -> str:
        """Return the value at a share of the range, as a model file has it."""
        return self._text(self.number_at(share))

    def drawn_at(self, share: float) -> str:
        """Return the value at a share that was drawn: of shares spread evenly whole numbers have equally many each.

        Spread by ratio, a whole number has what lies up to the next.
        """
        if not self.is_whole:
            return self.at(share)
        low, high = round(self.low), round(self.high)
        lowest = max(low, self.low) if self.is_log else low  # a ratio begins above 0
        return self._text(min(high, math.floor(self._between(lowest, high + 1, share))))

    def _between(self, low: float, high: float, share: float) -> float:
        return low * (high / low) ** share if self.is_log else low + (high - low) * share

    def _text(self, number: float) -> str:
        return as_text(written(number, self.unit, self.is_whole))


def span_of(name: str, low: Any, high: Any, is_log: bool = False) -> Span:
    """Return the range between two values as a model file has them; refuse what is no number, or not in order."""
    ends = [number_of(each) for each in (low, high)]
    (first, unit), (last, other) = (end or (math.nan, "") for end in ends)
    in_its_unit = converted(last, other, unit)
    if in_its_unit is None or not first < in_its_unit:
        raise UsageError(
            f"factor '{name}': a range goes from a lower to a higher number of one unit, not {low} to {high}"
        )
    if is_log and first <= 0.0:
        raise UsageError(f"factor '{name}': a range with scale: log begins above 0, not at {low}")
    is_whole = not unit and all(isinstance(each, int) for each in (low, high))
    return Span(first, in_its_unit, unit, is_log, is_whole)


def as_text(value: Any) -> str:
    """Return a value as it stands behind ``--set KEY=``."""
    return value if isinstance(value, str) and _is_plain(value) else json.dumps(value)


@lru_cache(4096)
def _is_plain(text: str) -> bool:
    """Whether YAML reads a text as itself, without quotes."""
    try:
        return bool(parse_yaml(text, "").plain() == text)
    except ModelFileError:
        return False


def rows_of(spec: StudySpec) -> Iterator[dict[str, str]]:
    """Yield the values of the factors, point by point, as often as the design says."""
    factors, design = spec.factor_of, spec.design
    if isinstance(design, Listed):
        yield from ({name: as_text(point[name]) for name in factors} for point in design.points)
        return
    if isinstance(design, Paired):
        columns = [[as_text(value) for value in factor.values] for factor in factors.values()]
        yield from (dict(zip(factors, row, strict=True)) for row in zip(*columns, strict=True))
        return
    ranges = {name: factor for name, factor in factors.items() if factor.is_range}
    spans = {name: span_of(name, each.low, each.high, each.scale == "log") for name, each in ranges.items()}
    crossed = {name: _values(each, spans.get(name)) for name, each in factors.items() if _is_crossed(each, design)}
    drawn = [] if isinstance(design, Grid) else shares(design, len(spans), spec.seed)
    for drawn_row in drawn or [[]]:
        of_ranges = {name: span.drawn_at(share) for (name, span), share in zip(spans.items(), drawn_row, strict=False)}
        for row in itertools.product(*crossed.values()):
            values = {**of_ranges, **dict(zip(crossed, row, strict=True))}
            yield {name: values[name] for name in factors}


def _is_crossed(factor: Factor, design: Any) -> bool:
    return isinstance(design, Grid) or not factor.is_range


def _values(factor: Factor, span: Span | None) -> list[str]:
    if span is None:
        return [as_text(value) for value in factor.values]
    assert factor.levels is not None
    return list(dict.fromkeys(span.at(n / (factor.levels - 1)) for n in range(factor.levels)))


def shares(design: LatinHypercube | Sobol, dimensions: int, seed: int) -> list[list[float]]:
    """Return points of the unit cube; of a Sobol sequence the first are the same however many there are."""
    from scipy.stats import qmc  # noqa: PLC0415 - takes a second, and only designs that draw need it

    if isinstance(design, LatinHypercube):
        cube = qmc.LatinHypercube(dimensions, seed=seed).random(design.points)
    else:
        cube = qmc.Sobol(dimensions, seed=seed).random_base2(math.ceil(math.log2(design.points)))
    drawn: list[list[float]] = cube[: design.points].tolist()
    return drawn


def size_of(spec: StudySpec) -> int:
    """Return how many points a study has, without making them."""
    design, factors = spec.design, spec.factor_of
    if isinstance(design, Listed):
        return len(design.points) * len(spec.entries)
    if isinstance(design, Paired):
        return max([len(factor.values) for factor in factors.values()], default=1) * len(spec.entries)
    crossed = [factor.levels or len(factor.values) for factor in factors.values() if _is_crossed(factor, design)]
    return math.prod(crossed) * len(spec.entries) * (1 if isinstance(design, Grid) else design.points)


def points_of(spec: StudySpec, folder: Path, *, quick: bool = False) -> Points:
    """Return the points of a study whose models are relative to a folder, models first, then as the design has them."""
    refuse_many(size_of(spec))
    labels = labels_apart([each.label or each.model for each in spec.entries], [each.set for each in spec.entries])
    files = [(folder / each.model, each.model) for each in spec.entries]
    names = [str(file) if is_file(file) else shipped for file, shipped in files]
    rows = list(rows_of(spec))
    settings = [(*spec.set, *each.set) for each in spec.entries]
    of_each = zip(names, labels, settings, strict=True)
    points = Points(tuple(source_of(*each, rows, spec.factor_of) for each in of_each), rows)
    return points.quick() if quick else points


def source_of(
    name: str,
    label: str,
    settings: tuple[str, ...],
    rows: Sequence[Mapping[str, str]],
    factors: Mapping[str, Factor],
    option: str = "factors",
) -> Source:
    """Return a model file, which the label calls, as the source of points with these values of factors."""
    document, plain = read_document(name), Model(label, load_model(name).spec)
    is_switched = PROTECTION in factors and not _keys(factors[PROTECTION])
    kinds = tuple(dict.fromkeys(row[PROTECTION] for row in rows)) if is_switched else ()
    return Source(document, plain, settings, factors, kinds, option)


def _keys(factor: Factor) -> Sequence[str]:
    return factor.keys or ((factor.key,) if factor.key else ())


_FORM = re.compile(r"\s*(?P<name>[^=\s]+)\s*=\s*(?P<low>.+?)\s*\.\.\s*(?P<high>.+?)(?P<log>\s+log)?\s*")


def read_range(text: str, option: str = "--range") -> tuple[str, Span]:
    """Return what an option says, a key or short name and its range; refuse any form but ``key=low..high``."""
    match = _FORM.fullmatch(text)
    if match is None:
        example = "workloads.web.rate=50 /s..200 /s"
        raise UsageError(f"{option}: '{text}' is not of the form key=low..high, e.g. '{example}'")
    low, high = (_plain(match[end]) for end in ("low", "high"))
    return match["name"], span_of(match["name"], low, high, bool(match["log"]))


def _plain(text: str) -> Any:
    parsed = number_and_unit(text)
    if parsed is None or parsed[1]:
        return text
    return int(text) if re.fullmatch(r"[+-]?[0-9]+", text) else parsed[0]


def _no_range(name: str, text: str) -> str:
    """Return a message about a range where single values belong."""
    example = ""
    with suppress(UsageError):
        span = read_range(f"{name}={text}")[1]
        example = f" ({name}={','.join(map(span.at, (0.0, 0.5, 1.0)))})"
    return f"{name}: '{text}' is a range; name values one by one{example}, or low and high of a factor in a study file"


def price_ranges(spec: ModelSpec) -> dict[str, Span]:
    """Return the prices of the model's mechanisms, each over the range declared for it; refuse a model without."""
    ranges = {}
    for name, domain in spec.domains.items():
        for each in domain.protection.prices():
            key = f"domains.{name}.protection.{each.key}"
            value = value_at(spec, key, "--prices")
            _, unit = number_of(value) or (0.0, "")
            quantity = quantity_of(unit)
            size, is_log = float(quantity.units[unit]) if quantity else 1.0, each.price.low > 0.0
            ranges[key] = Span(each.price.low / size, each.price.high / size, unit, is_log, isinstance(value, int))
    if not ranges:
        raise UsageError("--prices: no mechanism of this model has a price that it does not give itself")
    return ranges


def values_outside(spec: ModelSpec, spans: Mapping[str, Span]) -> list[str]:
    """Return in words which of the model's values lie outside of their ranges; a short name says nothing."""
    texts = []
    for name, span in spans.items():
        try:
            value = value_at(spec, name, "")
        except UsageError:
            continue
        number, unit = number_of(value) or (math.nan, "")
        in_unit = converted(number, unit, span.unit)
        if in_unit is not None and (in_unit < span.low or in_unit > span.high):
            texts.append(f"{name} is {value}, outside its range")
    return texts
