"""Crossovers of the mechanisms of a sweep: which pair, in which figure, on which axis (:mod:`.crossovers`)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from vftsim.study.crossovers import crossovers, numbers_of
from vftsim.study.sweep_figures import Figures
from vftsim.study.sweep_grid import AnyAxis, Grid, Point

COLUMNS = (
    "metric",
    "before",
    "after",
    "axis",
    "unit",
    "held",
    "estimate",
    "low",
    "high",
    "n",
    "interval",
    "from_point",
    "to_point",
)
"""``before`` and ``after``: the mechanism that has less on either side; ``held``: the values of the other axes."""

_PROTECTION = ".protection."


def sweep_crossovers(grid: Grid, records: Sequence[Mapping[int, Figures]], confidence: float) -> list[dict[str, Any]]:
    """Return a row for every crossover of two mechanisms; the columns are :data:`COLUMNS`.

    Replications that one of the points lacks are left out.
    """
    if len(grid.protections) < 2:
        return []
    return [
        row
        for axis in grid.axes
        if (places := numbers_of(axis.values)) is not None
        for held, lines in _lines(grid, axis, records)
        for first, second in combinations(lines, 2)
        for row in _of_pair(axis, places, held, (first, second), (lines[first], lines[second]), confidence)
    ]


def _lines(
    grid: Grid, axis: AnyAxis, records: Sequence[Mapping[int, Figures]]
) -> Iterator[tuple[str, dict[str, list[Mapping[int, Figures]]]]]:
    """Yield what is held fixed, and what every mechanism measured at each value of an axis."""
    groups: dict[str, dict[str, dict[str, Mapping[int, Figures]]]] = {}
    for point in grid.points:
        by_kind = groups.setdefault(_held(grid, point, axis), {})
        by_kind.setdefault(point.variant.protection, {})[point.values[axis.name]] = records[point.number]
    for held, by_kind in groups.items():
        yield held, {kind: [found[value] for value in axis.values] for kind, found in by_kind.items()}


def _held(grid: Grid, point: Point, axis: AnyAxis) -> str:
    others = [f"{name}={value}" for name, value in point.values.items() if name != axis.name]
    return ", ".join([*([point.variant.scheduler] if len(grid.schedulers) > 1 else []), *others])


def _of_pair(
    axis: AnyAxis,
    places: tuple[list[float], str],
    held: str,
    kinds: tuple[str, str],
    lines: tuple[list[Mapping[int, Figures]], list[Mapping[int, Figures]]],
    confidence: float,
) -> Iterator[dict[str, Any]]:
    numbers, unit = places
    order = sorted(range(len(numbers)), key=lambda n: numbers[n])
    common = sorted(set.intersection(*(set(found) for line in lines for found in line)))
    for metric in _metrics(lines) if common else ():
        first, second = ([[_value(line[n][r], metric) for r in common] for n in order] for line in lines)
        for one in crossovers([numbers[n] for n in order], first, second, confidence):
            before, after = kinds if one.first_is_lower_before else kinds[::-1]
            yield {
                "metric": metric,
                "before": before,
                "after": after,
                "axis": axis.name,
                "unit": unit,
                "held": held,
                "estimate": one.at.mean,
                "low": one.at.low,
                "high": one.at.high,
                "n": one.at.n,
                "interval": one.at.kind,
                "from_point": one.low,
                "to_point": one.high,
            }


def _metrics(lines: Sequence[Sequence[Mapping[int, Figures]]]) -> list[str]:
    """Return the figures that either has."""
    found = dict.fromkeys(name for line in lines for point in line for figures in point.values() for name in figures)
    return list(found)


def _value(figures: Figures, metric: str) -> float:
    """Return a figure of a replication; without a mechanism those of protection are 0."""
    return figures.get(metric, 0.0 if _PROTECTION in metric else math.nan)
