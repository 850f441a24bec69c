"""The points of a design: what each sets, and the model that makes."""

import itertools
import json
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.errors import ModelFileError, UsageError
from vftsim.spec import read_document
from vftsim.spec.overrides import ORIGIN
from vftsim.spec.shipped import is_file
from vftsim.spec.units import number_and_unit, quantity_of
from vftsim.spec.yaml_source import parse_yaml
from vftsim.study.designs.knob import number_of, value_at, written
from vftsim.study.designs.protections import mechanism_of, protection_key, switch_of
from vftsim.study.designs.study_spec import Factor, Grid, LatinHypercube, Listed, ModelEntry, Paired, Sobol, StudySpec
from vftsim.study.designs.sweep_grid import (
    MOST_DRAWN,
    MOST_POINTS,
    axis_of,
    model_at,
    refuse_overwritten,
    scheduler_keys,
    scheduler_switch,
)
from vftsim.study.figures.validity import as_fitted
from vftsim.study.runs.model import Model, labels_apart, load_model

SCHEDULER, PROTECTION = "scheduler", "protection"
_DIGITS = 6


@dataclass(frozen=True, slots=True)
class StudyPoint:
    """A point of a study."""

    number: int
    label: str
    """Of the model."""
    values: Mapping[str, str]
    """The value of each factor, as a model file has it."""
    made: Callable[[], Model]
    """Makes its model; those of a large design would take hundreds of megabytes."""

    @property
    def model(self) -> Model:
        """Its model, made when it is asked for."""
        return self.made()

    @property
    def digest(self) -> str:
        return self.model.digest()

    @property
    def name(self) -> str:
        """In words."""
        return ", ".join([self.label, *(f"{name}={value}" for name, value in self.values.items())])


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
    last = _in_unit(last, other, unit)
    if not first < last:
        raise UsageError(
            f"factor '{name}': a range goes from a lower to a higher number of one unit, not {low} to {high}"
        )
    if is_log and first <= 0.0:
        raise UsageError(f"factor '{name}': a range with scale: log begins above 0, not at {low}")
    is_whole = not unit and all(isinstance(each, int) for each in (low, high))
    return Span(first, last, unit, is_log, is_whole)


def _in_unit(number: float, unit: str, other: str) -> float:
    """Return a number in another unit; NaN where no quantity has both."""
    if unit == other:
        return number
    quantity = quantity_of(unit, other)
    return math.nan if quantity is None else number * float(quantity.units[unit] / quantity.units[other])


def as_text(value: Any) -> str:
    """Return a value as it stands behind ``--set KEY=``."""
    if isinstance(value, str):
        try:
            is_plain = parse_yaml(value, "").plain() == value
        except ModelFileError:
            is_plain = False
        return value if is_plain else json.dumps(value)
    return json.dumps(value)


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
    for place in drawn or [[]]:
        of_ranges = {name: span.drawn_at(share) for (name, span), share in zip(spans.items(), place, strict=False)}
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


def points_of(spec: StudySpec, folder: Path, *, quick: bool = False) -> list[StudyPoint]:
    """Return the points of a study whose models are relative to a folder, models first, then as the design has them."""
    if (count := size_of(spec)) > MOST_POINTS:
        raise UsageError(f"the study has {count} points; at most {MOST_POINTS}")
    rows, points = list(rows_of(spec)), list[StudyPoint]()
    labels = labels_apart([each.label or each.model for each in spec.entries], [each.set for each in spec.entries])
    for entry, label in zip(spec.entries, labels, strict=True):
        named, settings = _named(entry, folder), (*spec.set, *entry.set)
        points += points_at(named, label, settings, rows, spec.factor_of, len(points), quick=quick)
    return points


def points_at(
    name: str,
    label: str,
    settings: tuple[str, ...],
    rows: Sequence[Mapping[str, str]],
    factors: Mapping[str, Factor],
    first: int = 0,
    refused: dict[str, str] | None = None,
    option: str = "factors",
    *,
    quick: bool = False,
) -> list[StudyPoint]:
    """Return points of one model, which the label calls, counted from ``first``; ``quick`` ones for a first look.

    Messages about factors begin with ``option``, where the user wrote them.
    The settings hold at all points, as with ``--set``; each row has the values of factors at one.  Where the model
    cannot have some values, ``refused`` takes why, by the values in words; without it that is an error.
    """
    document, base = read_document(name), Model(label, load_model(name).spec)
    at = partial(model_at, document, base, as_fitted(document))
    cached = lru_cache(MOST_DRAWN)(lambda changes: at(changes).quick() if quick else at(changes))
    held, points = at(settings), list[StudyPoint]()
    kinds = _mechanisms(held, rows, factors)
    refuse_overwritten(_in_order(held, factors, kinds, option), option)
    for number, row in enumerate(rows, first):
        point_settings = (*settings, *assignments(base, held, row, factors, kinds))
        point = StudyPoint(number, label, row, partial(cached, point_settings))
        try:
            point.made()  # one that nothing can run is refused now, not in the middle of the work
        except ModelFileError as error:
            place = option if error.file == ORIGIN else error.file  # the settings hold at all points
            wrong = ModelFileError(error.message, place, error.line, error.key)
            if refused is None:
                raise wrong from None
            refused[point.name] = str(wrong)
            continue
        points.append(point)
    return points


def _named(entry: ModelEntry, folder: Path) -> str:
    return str(folder / entry.model) if is_file(folder / entry.model) else entry.model


def assignments(
    written_model: Model,
    model: Model,
    values: Mapping[str, str],
    factors: Mapping[str, Factor],
    kinds: tuple[str, ...],
) -> tuple[str, ...]:
    """Return what ``--set`` would say for the values of a point, by factor; what switches parts comes first.

    ``model`` has what holds at all points, and keeps what it has already with its parameters.
    A parameter that one of the mechanisms of all points (``kinds``) has says nothing under another.
    """
    switches, others = list[str](), list[str]()
    (kind,) = _mechanisms(model, [values], factors)
    for name, value in values.items():
        if _is_switch(name, factors):
            is_scheduler = name == SCHEDULER
            switches += scheduler_switch(model, value) if is_scheduler else switch_of(model, value, written_model)
        elif keys := _keys(factors[name]):
            others += [f"{key}={value}" for key in keys]
        else:
            others += axis_of(model, name, (value,), kinds).assignments(value, kind)
    return (*switches, *others)


def _mechanisms(model: Model, rows: Sequence[Mapping[str, str]], factors: Mapping[str, Factor]) -> tuple[str, ...]:
    """Return the mechanisms of points, by default the model's own."""
    named = {row[PROTECTION]: None for row in rows if PROTECTION in row and _is_switch(PROTECTION, factors)}
    return tuple(named) or (mechanism_of(model),)


def _in_order(
    model: Model, factors: Mapping[str, Factor], kinds: tuple[str, ...], option: str
) -> dict[str, Sequence[str]]:
    """Return the keys that each factor sets, what switches parts first."""
    keys_of = dict[str, Sequence[str]]()
    for name in sorted(factors, key=lambda name: not _is_switch(name, factors)):
        if _is_switch(name, factors):
            keys_of[name] = scheduler_keys(model) if name == SCHEDULER else (protection_key(model),)
        else:
            keys_of[name] = _keys(factors[name]) or axis_of(model, name, (), kinds, option).keys
    return keys_of


def _is_switch(name: str, factors: Mapping[str, Factor]) -> bool:
    """Tell whether a factor switches a part of the model by the name of its kind."""
    return name in (SCHEDULER, PROTECTION) and not _keys(factors[name])


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


def price_ranges(spec: ModelSpec) -> dict[str, Span]:
    """Return the prices of the model's mechanisms, each over the range declared for it; refuse a model without."""
    ranges = {}
    for name, domain in spec.domains.items():
        for each in domain.protection.prices():
            key = f"domains.{name}.protection.{each.key}"
            unit, size, is_whole = _unit_of(spec, key)
            is_log = each.price.low > 0.0
            ranges[key] = Span(each.price.low / size, each.price.high / size, unit, is_log, is_whole)
    if not ranges:
        raise UsageError("--prices: no mechanism of this model has a price that it does not give itself")
    return ranges


def _unit_of(spec: ModelSpec, key: str) -> tuple[str, float, bool]:
    """Return the unit in which a model writes a key, its size in the base unit, and whether it is a whole number."""
    value = value_at(spec, key, "--prices")
    _, unit = number_of(value) or (0.0, "")
    quantity = quantity_of(unit)
    return unit, float(quantity.units[unit]) if quantity else 1.0, isinstance(value, int)


def values_outside(spec: ModelSpec, spans: Mapping[str, Span]) -> list[str]:
    """Return in words which of the model's own values lie outside of their ranges; a short name says nothing."""
    texts = []
    for name, span in spans.items():
        try:
            value = value_at(spec, name, "")
        except UsageError:
            continue
        number, unit = number_of(value) or (math.nan, "")
        here = _in_unit(number, unit, span.unit)
        if here < span.low or here > span.high:
            texts.append(f"{name} is {value}, outside its range")
    return texts
