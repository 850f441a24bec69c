"""Figures of a point of a design: of every replication by name, and their estimates.

Of figures that have phases, without names to go by, those of the first step are taken, under its number: the load of
the first step may itself be a factor.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.outcome.declare import Verdict
from vftsim.spec.units import numbers_of
from vftsim.stats import Estimate
from vftsim.study.designs.crossovers import crossovers
from vftsim.study.designs.points import PROTECTION, SCHEDULER, Point
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Summary
from vftsim.study.store.files import sha256_of

FIRST_STEP = "step_1"
Figures = dict[str, float]
"""Of one replication, by name."""


@dataclass(frozen=True)
class PointFigures:
    """Figures of one point."""

    values: dict[int, Figures] = field(default_factory=dict)
    """By replication."""
    found: dict[str, tuple[Address, Estimate]] = field(default_factory=dict)
    """Address and estimate of each figure, by its name in the design."""
    marks: dict[int, str] = field(default_factory=dict)
    """By replication: what tells records apart to the last digit."""


@dataclass(frozen=True)
class Reader:
    """Finds the figures of points."""

    names: Sequence[str]
    """Figures that were asked for; none: those that lead."""
    confidence: float
    _same: dict[tuple[Any, ...], tuple[str, Address]] = field(default_factory=dict)

    def read(self, records: Sequence[tuple[int, RunRecord]]) -> PointFigures:
        summary, figures = Summary(records, self.confidence), PointFigures()
        for asked, address_here in chosen(summary, self.names):
            estimate = summary.estimate(address_here.text)
            if estimate is not None:
                name, address = self._shared(asked, address_here)
                figures.found[name] = address, estimate
                for number, value in summary.values(address_here.text).items():
                    figures.values.setdefault(number, {})[name] = value
        for number, record in records:
            figures.values.setdefault(number, {})
            figures.marks[number] = sha256_of(record.to_dict())
        return figures

    def _shared(self, asked: str, address: Address) -> tuple[str, Address]:
        """Return name and address of a figure, one object for all points: thousands of them take most of the memory."""
        entry = address.entry
        key = asked, address.owner, address.phase, address.step, entry.path, entry.figure, entry.leads
        if key not in self._same:
            self._same[key] = name_of(address, asked), address
        return self._same[key]


def chosen(summary: Summary, names: Collection[str]) -> Iterator[tuple[str, Address]]:
    """Yield each figure that is named, behind the name; without names those that lead, and failed runs if some did."""
    if names:
        yield from ((name, address) for name in names for address in summary.find(name))
        return
    of_run = {(address.owner, address.entry.path) for address in summary.addresses if not address.phase}
    for address in summary.addresses:
        is_of_run = (address.owner, address.entry.path) in of_run
        is_first = not address.phase if is_of_run else FIRST_STEP in (address.phase, address.step)
        is_mixed = address.phase in summary.mixed and isinstance(address.entry.figure, Verdict)
        if is_first and (address.entry.leads or is_mixed):
            yield "", address


def name_of(address: Address, asked: str = "") -> str:
    """Return a figure's address: with the number of its step, unless it was asked for by the load of that."""
    phase = address.phase if address.phase in asked.split(".") else address.step or address.phase
    return ".".join((address.owner, *filter(None, [phase]), *address.entry.path))


_OF_PAIR = ("figure", "before", "after", "axis", "unit", "held")
_OF_PLACE = ("estimate", "low", "high", "n", "interval", "from_point", "to_point")
COLUMNS = (*_OF_PAIR, *_OF_PLACE)
"""``before`` and ``after``: the mechanism that has less on either side; ``held``: the values of the other factors."""

_PROTECTION = ".protection."


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure of two mechanisms over a factor of a grid, in the order of its numbers."""

    figure: str
    kinds: tuple[str, str]
    axis: str
    unit: str
    held: str
    """The values of the other factors."""
    places: Sequence[float]
    values: tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]
    """Of each mechanism, at each place, what every replication measured; those that a point lacks are left out."""

    def crossings(self, confidence: float) -> Iterator[dict[str, Any]]:
        """Yield a row for every crossover; the columns are :data:`COLUMNS`."""
        for crossover in crossovers(self.places, *self.values, confidence):
            before, after = self.kinds if crossover.first_is_lower_before else self.kinds[::-1]
            at = crossover.at
            place = (at.mean, at.low, at.high, at.n, at.kind, crossover.low, crossover.high)
            row = (self.figure, before, after, self.axis, self.unit, self.held, *place)
            yield dict(zip(COLUMNS, row, strict=True))


def mechanism_curves(points: Sequence[Point], figures: Sequence[Mapping[int, Figures]]) -> Iterator[Curves]:
    """Yield the figures of every two mechanisms over every other factor of a grid that has numbers."""
    for axis in points[0].values:
        for held, by_kind in _groups(points, axis).items() if axis != PROTECTION else ():
            if (numbers := numbers_of([*next(iter(by_kind.values()))])) is None:
                continue
            for kinds in combinations(by_kind, 2):
                lines = [[figures[n] for n in by_kind[kind].values()] for kind in kinds]
                yield from _of_pair((axis, numbers, held), kinds, lines)


def _groups(points: Sequence[Point], axis: str) -> dict[str, dict[str, dict[str, int]]]:
    """Return the number of each point, by what is held fixed, by its mechanism, and by its value of an axis."""
    several = len({point.label for point in points}) > 1
    groups: dict[str, dict[str, dict[str, int]]] = {}
    for point in points:
        others = [
            value if name == SCHEDULER else f"{name}={value}"
            for name, value in point.values.items()
            if name not in (axis, PROTECTION)
        ]
        held = ", ".join([*([point.label] if several else []), *others])
        by_kind = groups.setdefault(held, {})
        by_kind.setdefault(point.values[PROTECTION], {})[point.values[axis]] = point.number
    return groups


def _of_pair(
    about: tuple[str, tuple[list[float], str], str],
    kinds: tuple[str, str],
    lines: Sequence[Sequence[Mapping[int, Figures]]],
) -> Iterator[Curves]:
    axis, (numbers, unit), held = about
    order = sorted(range(len(numbers)), key=lambda n: numbers[n])
    common = sorted(set.intersection(*(set(of_point) for line in lines for of_point in line)))
    names = dict.fromkeys(name for line in lines for of_point in line for found in of_point.values() for name in found)
    for name in names if common else ():
        first, second = ([[_value(line[n][r], name) for r in common] for n in order] for line in lines)
        yield Curves(name, kinds, axis, unit, held, [numbers[n] for n in order], (first, second))


def _value(figures: Figures, name: str) -> float:
    """Return a figure of a replication; without a mechanism those of protection are 0."""
    return figures.get(name, 0.0 if _PROTECTION in name else math.nan)
