"""A sweep as blocks: a row a point of the grid, and charts over the axis with most values."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING, Any, Literal

from vftsim.report.blocks import Answer, Block, Cell, Chart, Marked, Note, Series, Table
from vftsim.report.blocks import Point as Dot
from vftsim.spec import DURATION
from vftsim.stats import Estimate
from vftsim.study.blocks.head import INTERVALS, head, outside_notes, within
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.crossovers import numbers_of
from vftsim.study.figures.names import Address
from vftsim.study.figures.tables import short_owner
from vftsim.study.protection_costs import cost_notes
from vftsim.study.sweep_grid import SHORT_MEANINGS
from vftsim.study.sweep_protection import MEANINGS
from vftsim.study.validity import MARK, is_load, is_of_load_outside

if TYPE_CHECKING:
    from vftsim.study.sweep import SweepResult
    from vftsim.study.sweep_grid import AnyAxis, Grid, Point

_MOST_LINES, _MOST_CHARTS = 8, 5
_MEANINGS = SHORT_MEANINGS | MEANINGS


def sweep_blocks(result: SweepResult) -> list[Block]:
    """Return the figures of every point, and what was found on the way."""
    said, grid = result.manifest, result.grid
    heads_of = [{**model, "costs": []} if grid.protections else model for model in said["models"]]
    count = sum(1 for known in result.points if known.values)
    # Nobody reads more in a terminal, and to lay it out would take longer than the runs.
    table = _points(result) if result.is_drawn else Note(f"{count:,} points are too many to show: see results.csv")
    return [
        *head([{**model, "not_covered": result.not_covered} for model in heads_of], said["seed"]),
        *(Note(line) for line in _about(result)),
        Answer(
            f"{count} points, {result.finished} runs",
            f"What do {' and '.join(axis.name for axis in grid.axes)} change?",
        ),
        *_charts(result),
        table,
        Note(f"n replications with the same traffic at every point, seed {said['seed']}. {INTERVALS}"),
        *(outside_notes(grid.base) if result.outside else []),
        *(_crossovers(result) if grid.protections else []),
        *(Note(line) for line in _findings(result)),
    ]


def _charts(result: SweepResult) -> list[Chart]:
    """Return each figure that is drawn over the axis with most values, a line for each setting of the others.

    Where an axis is left that need not tell lines apart, each of its values has a chart of its own.
    """
    grid = result.grid
    wide = [axis for axis in grid.axes if len(axis.values) > 1]
    if not wide or not result.is_drawn:
        return []
    # The last of the axes with most values varies fastest in the table.
    over = max(reversed(wide), key=lambda axis: len(axis.values))
    apart = _apart([axis for axis in wide if axis is not over], len(grid.schedulers) > 1 or len(grid.protections) > 1)
    return [chart for name in result.drawn for chart in _of_figure(result, name, over, apart)]


def _apart(rest: list[AnyAxis], has_several_variants: bool) -> AnyAxis | None:
    """Return the axis that has a chart for each value."""
    fit = [axis for axis in rest if len(axis.values) <= _MOST_CHARTS]
    return fit[-1] if fit and (len(rest) > 1 or has_several_variants) else None


def _of_figure(result: SweepResult, name: str, over: AnyAxis, apart: AnyAxis | None) -> list[Chart]:
    """Return the charts of one figure, all on one scale."""
    grid, address = result.grid, result.drawn[name]
    found = numbers_of(over.values)
    places = dict(zip(over.values, range(len(over.values)) if found is None else found[0], strict=True))
    lines: dict[str, dict[str, list[Dot]]] = {}
    for point, known in zip(grid.points, result.points, strict=True):
        if name in known.found:
            without = {over.name} if apart is None else {over.name, apart.name}
            panel = "" if apart is None else f"{apart.name}={point.values[apart.name]}"
            line = _label(point, grid, without) or address.entry.head
            dot = Dot.of(float(places[point.values[over.name]]), known.found[name][1])
            lines.setdefault(panel, {}).setdefault(line, []).append(dot)
    style: Literal["line", "dots"] = "line" if found else "dots"
    panels = {
        panel: [Series(words, sorted(dots, key=lambda dot: dot.x), style) for words, dots in own.items()]
        for panel, own in lines.items()
    }
    every = [series for own in panels.values() for series in own]
    seen = {y for series in every for dot in series.points for y in (dot.y, dot.low, dot.high) if math.isfinite(y)}
    ys = sorted({min(seen), max(seen), min((y for y in seen if y > 0.0), default=0.0)}) if seen else []
    title = f"{short_owner(address.owner)}: {address.entry.words}"
    return [
        Chart(
            ", ".join(filter(None, (title, panel, _which(begin, own)))),
            f"{over.name} ({found[1]})" if found and found[1] else over.name,
            address.entry.words,
            own[begin : begin + _MOST_LINES],
            within=within(grid.base.spec) if any(is_load(grid.base.spec, key) for key in over.keys) else None,
            scale=scale_of(every),
            names=() if found else over.values,
            reach=ys if len(panels) > 1 else (),
        )
        for panel, own in panels.items()
        for begin in range(0, min(len(own), 2 * _MOST_LINES), _MOST_LINES)
    ]


def _which(begin: int, lines: list[Series]) -> str:
    """Return which lines a chart has, if not all."""
    end = min(begin + _MOST_LINES, len(lines))
    return f"{begin + 1} to {end} of {len(lines)}" if len(lines) > _MOST_LINES else ""


def _points(result: SweepResult) -> Table:
    """Return a row a point: the values of its axes, and the figures that are shown."""
    several = len({address.owner for address in result.shown.values()}) > 1
    heads = [_head(address, several=several) for address in result.shown.values()]
    loads = {name for name, address in result.shown.items() if address.entry.figure.is_load}
    beyond = {number for number, metric in result.outside or () if metric not in loads}
    rows: list[list[Cell]] = []
    for point, known in zip(result.grid.points, result.points, strict=True):
        if known.values:
            label = f"{MARK.strip()} " * (point.number in beyond) + _label(point, result.grid)
            cells = [_cell(point, *known.found[name]) if name in known.found else None for name in result.shown]
            rows.append([label, *cells, str(len(known.values))])
    return Table(["point", *heads, "n"], rows)


def _label(point: Point, grid: Grid, without: Collection[str] = ()) -> str:
    """Return what tells a point from the others: variants of which there are several, axes by their last word."""
    several = {"scheduler": len(grid.schedulers) > 1, "protection": len(grid.protections) > 1}
    names = [name for what, name in point.variant.names.items() if several[what]]
    last = [axis.name.rpartition(".")[2] for axis in grid.axes]
    axes = {axis.name: word if last.count(word) == 1 else axis.name for axis, word in zip(grid.axes, last, strict=True)}
    return ", ".join(
        [*names, *(f"{axes[name]}={value}" for name, value in point.values.items() if name not in without)]
    )


def _head(address: Address, *, several: bool) -> str:
    is_service = address.owner.startswith("workloads.")
    return address.entry.head if is_service or not several else f"{short_owner(address.owner)}: {address.entry.head}"


def _cell(point: Point, address: Address, estimate: Estimate) -> Cell:
    """Return a figure of a point, marked if it is itself a load, and that was not calibrated."""
    if address.entry.figure.is_load and is_of_load_outside(point.model.spec, address, estimate.mean):
        return Marked(estimate, MARK)
    return estimate


def _crossovers(result: SweepResult) -> list[Block]:
    """Return where mechanisms overtake each other in the figures shown, and what their costs rest on."""
    found: Iterable[Any] = result.crossovers.itertuples()
    rows = [_crossover(row, result) for row in found if row.metric in result.shown]
    blocks: list[Block] = [Note("Crossovers: no two mechanisms change their order on an axis in a figure shown")]
    if rows:
        caption = (
            "Crossovers: where the order of two mechanisms changes on an axis, linear between its values; every "
            f"replication agrees on the order at the two values given. {INTERVALS}"
        )
        blocks = [Table(["which has less", "at", "between", "of"], rows, "", caption)]
    specs = (
        next(point.model.spec for point in result.grid.points if point.variant.protection == kind)
        for kind in result.grid.protections
    )
    return [*blocks, *(Note(f"Costs of {text}") for spec in specs for text in cost_notes(spec))]


def _crossover(row: Any, result: SweepResult) -> list[Cell]:
    half = (row.high - row.low) / 2.0
    return [
        f"{_head(result.shown[row.metric], several=True)}: {row.before} below, {row.after} above",
        Estimate(row.estimate, half, row.low, row.high, row.n, result.confidence, row.interval),
        f"{row.from_point:g} and {row.to_point:g}",
        _axis_of(row),
    ]


def _axis_of(row: Any) -> str:
    """Return the axis of a crossover, with its unit and the values of the other axes."""
    unit, held = (f" ({row.unit})" if row.unit else ""), (f"; {row.held}" if row.held else "")
    return f"{row.axis}{unit}{held}"


def _about(result: SweepResult) -> list[str]:
    lines = [
        f"{axis.name}: {_MEANINGS[axis.name]}"
        for axis in result.grid.axes
        if axis.name in _MEANINGS and "." not in axis.name
    ]
    if result.grid.base.spec.phased is None:
        lines.append(_times(result.grid))
    if result.already:
        lines.append(f"{result.already} of {result.wanted} replications were on disk already")
    return lines


def _times(grid: Grid) -> str:
    measured, warm_up = (
        ", ".join(DURATION.format(time_ns) for time_ns in dict.fromkeys(times_ns))
        for times_ns in zip(*(point.times_ns for point in grid.points), strict=True)
    )
    return (
        f"Each replication measures {measured} after {warm_up} of warm-up (measure.duration, measure.warm_up); "
        "more of it, or more --replications, sharpen the intervals"
    )


def _findings(result: SweepResult) -> list[str]:
    lines = [f"Refused by {name}: {why}" for name, why in result.refusals.items()]
    for scheduler, axis in result.without_effect():
        lines.append(f"{axis} changed nothing{f' under {scheduler}' if scheduler else ''}, to the last digit")
    return lines
