"""Figures of a sweep's point: of every replication by name, and their estimates.

Of figures that have phases those of the first step are taken, under its number: the load of the first step may itself
be an axis.
"""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.outcome.declare import Verdict
from vftsim.stats import Estimate
from vftsim.study.designs.crossovers import crossovers, numbers_of
from vftsim.study.designs.sweep_grid import Axis, Grid, Point
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.results import CONFIDENCE
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
    """Address and estimate of each figure, by its name in the sweep."""
    marks: dict[int, str] = field(default_factory=dict)
    """By replication: what tells records apart to the last digit."""


@dataclass(frozen=True)
class Reader:
    """Finds the figures of points."""

    names: Sequence[str]
    """Figures that were asked for; none: those that lead."""
    _same: dict[tuple[Any, ...], tuple[str, Address]] = field(default_factory=dict)

    def read(self, records: Sequence[tuple[int, RunRecord]]) -> PointFigures:
        summary, figures = Summary(records, CONFIDENCE), PointFigures()
        for chosen_one in chosen(summary, self.names):
            estimate = summary.estimate(chosen_one.text)
            if estimate is not None:
                name, address = self._shared(chosen_one)
                figures.found[name] = address, estimate
                for number, value in summary.values(chosen_one.text).items():
                    figures.values.setdefault(number, {})[name] = value
        for number, record in records:
            figures.values.setdefault(number, {})
            figures.marks[number] = sha256_of(record.to_dict())
        return figures

    def _shared(self, address: Address) -> tuple[str, Address]:
        """Return name and address of a figure, one object for all points: thousands of them take most of the memory."""
        entry = address.entry
        key = address.owner, address.phase, address.step, entry.path, entry.figure, entry.leads
        if key not in self._same:
            self._same[key] = name_of(address), address
        return self._same[key]


def chosen(summary: Summary, names: Collection[str]) -> Iterator[Address]:
    """Yield the figures that are named; without names those that lead, and how many runs failed if some did."""
    if names:
        yield from (address for name in names for address in summary.find(name))
        return
    of_run = {(address.owner, address.entry.path) for address in summary.addresses if not address.phase}
    for address in summary.addresses:
        is_of_run = (address.owner, address.entry.path) in of_run
        is_first = not address.phase if is_of_run else FIRST_STEP in (address.phase, address.step)
        is_mixed = address.phase in summary.mixed and isinstance(address.entry.figure, Verdict)
        if is_first and (address.entry.leads or is_mixed):
            yield address


def name_of(address: Address) -> str:
    """Return a figure's address with the number of its step."""
    return ".".join((address.owner, *filter(None, [address.step or address.phase]), *address.entry.path))


_OF_PAIR = ("metric", "before", "after", "axis", "unit", "held")
_OF_PLACE = ("estimate", "low", "high", "n", "interval", "from_point", "to_point")
COLUMNS = (*_OF_PAIR, *_OF_PLACE)
"""``before`` and ``after``: the mechanism that has less on either side; ``held``: the values of the other axes."""

_PROTECTION = ".protection."


def sweep_crossovers(grid: Grid, records: Sequence[Mapping[int, Figures]]) -> list[dict[str, Any]]:
    """Return a row for every crossover of two mechanisms; the columns are :data:`COLUMNS`.

    Replications that one of the points lacks are left out.
    """
    if len(grid.protections) < 2:
        return []
    return [
        row
        for axis in grid.axes
        if (numbers := numbers_of(axis.values)) is not None
        for held, lines in _lines(grid, axis, records)
        for first, second in combinations(lines, 2)
        for row in _of_pair(axis, numbers, held, (first, second), (lines[first], lines[second]))
    ]


def _lines(
    grid: Grid, axis: Axis, records: Sequence[Mapping[int, Figures]]
) -> Iterator[tuple[str, dict[str, list[Mapping[int, Figures]]]]]:
    """Yield what is held fixed, and what every mechanism measured at each value of an axis."""
    groups: dict[str, dict[str, dict[str, Mapping[int, Figures]]]] = {}
    for point in grid.points:
        by_kind = groups.setdefault(_held(grid, point, axis), {})
        by_kind.setdefault(point.variant.protection, {})[point.values[axis.name]] = records[point.number]
    for held, by_kind in groups.items():
        yield held, {kind: [figures_at[value] for value in axis.values] for kind, figures_at in by_kind.items()}


def _held(grid: Grid, point: Point, axis: Axis) -> str:
    others = [f"{name}={value}" for name, value in point.values.items() if name != axis.name]
    return ", ".join([*([point.variant.scheduler] if len(grid.schedulers) > 1 else []), *others])


def _of_pair(
    axis: Axis,
    positions: tuple[list[float], str],
    held: str,
    kinds: tuple[str, str],
    lines: tuple[list[Mapping[int, Figures]], list[Mapping[int, Figures]]],
) -> Iterator[dict[str, Any]]:
    numbers, unit = positions
    order = sorted(range(len(numbers)), key=lambda n: numbers[n])
    common = sorted(set.intersection(*(set(figures) for line in lines for figures in line)))
    for metric in _metrics(lines) if common else ():
        first, second = ([[_value(line[n][r], metric) for r in common] for n in order] for line in lines)
        for one in crossovers([numbers[n] for n in order], first, second):
            before, after = kinds if one.first_is_lower_before else kinds[::-1]
            at, bracket = one.at, (one.low, one.high)
            where = (axis.name, unit, held, at.mean, at.low, at.high, at.n, at.kind, *bracket)
            yield dict(zip(COLUMNS, (metric, before, after, *where), strict=True))


def _metrics(lines: Sequence[Sequence[Mapping[int, Figures]]]) -> list[str]:
    """Return the figures that either has."""
    metrics = dict.fromkeys(name for line in lines for point in line for figures in point.values() for name in figures)
    return list(metrics)


def _value(figures: Figures, metric: str) -> float:
    """Return a figure of a replication; without a mechanism those of protection are 0."""
    return figures.get(metric, 0.0 if _PROTECTION in metric else math.nan)
