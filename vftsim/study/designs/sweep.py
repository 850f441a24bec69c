"""``vftsim sweep``: a model over a grid of values and schedulers, under common random numbers.

Every point gets the same replications: the same traffic meets every setting, so differences between
points are those of the settings.  A finished replication is on disk before it is counted; a sweep that
was killed or interrupted goes on with the same command and ends in the same files.
"""

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.report.blocks import Answer, Block, Cell, Chart, Marked, Note, Series, Table, with_unit
from vftsim.report.blocks import Point as Dot
from vftsim.spec import DURATION
from vftsim.spec.suggest import counted
from vftsim.stats import Estimate
from vftsim.study.blocks.head import INTERVALS, head, outside_notes, within
from vftsim.study.blocks.printed import Printed
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.designs.crossovers import numbers_of
from vftsim.study.designs.protections import MEANINGS
from vftsim.study.designs.runner import Runner
from vftsim.study.designs.sweep_figures import COLUMNS as CROSSOVER_COLUMNS
from vftsim.study.designs.sweep_figures import PointFigures, Reader, sweep_crossovers
from vftsim.study.designs.sweep_grid import MOST_DRAWN, SHORT_MEANINGS, Axis, Grid, Point
from vftsim.study.figures.catalogue import check_names
from vftsim.study.figures.frames import DataFrame, estimate_columns, factor_columns, frame
from vftsim.study.figures.names import Address
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.summary import of_no_run, resting_on_some, without_value
from vftsim.study.figures.tables import short_owner
from vftsim.study.figures.validity import MARK, is_load, is_of_load_outside
from vftsim.study.runs.execution import Execution
from vftsim.study.runs.results import CONFIDENCE, rows
from vftsim.study.store.resumable import resumable_store, write_result

MOST_PANELS = 3


@dataclass(frozen=True)
class SweepResult(Printed):
    """The result of a sweep."""

    grid: Grid
    points: list[PointFigures]
    refused: dict[int, str]
    """Why points have none, by number of the point."""
    manifest: dict[str, Any]
    wanted: int
    """Replications asked for, all points together; refused points count none."""
    already: int
    """Replications that were on disk at the start."""
    named: tuple[str, ...] = ()
    """Figures that were asked for; none: those that lead."""
    remarks: list[str] = field(default_factory=list)
    """Remarks on the directory for the user."""

    @property
    def finished(self) -> int:
        """Replications that are there."""
        return sum(len(point.values) for point in self.points)

    @property
    def refusals(self) -> dict[str, str]:
        """Schedulers and points that could not run, and why."""
        return _refusals(self.grid, self.refused)

    @cached_property
    def results(self) -> DataFrame:
        """Every figure of every point across replications: one row a figure."""
        columns = ["metric", "unit", "estimate", "low", "high", "n", "confidence", "interval"]
        # Column by column: a dict a row takes several times the memory of the table.
        columns_by_name: dict[str, list[Any]] = {name: [] for name in [*self._head_columns, *columns]}
        for point, known in zip(self.grid.points, self.points, strict=True):
            head = _head(point)
            for metric, (address, estimate) in known.found.items():
                about = {**head, "metric": metric, "unit": address.entry.unit}
                for name, value in {**about, **estimate_columns(estimate)}.items():
                    columns_by_name[name].append(value)
        return frame(columns_by_name)

    @cached_property
    def replications(self) -> DataFrame:
        """Every figure of every replication: one row a replication."""
        metrics = {metric for known in self.points for metric in known.found}
        table = [
            {**_head(point, metrics), "replication": n, **known.values[n]}
            for point, known in zip(self.grid.points, self.points, strict=True)
            for n in sorted(known.values)
        ]
        return frame(table) if table else frame(columns=[*self._head_columns, "replication"])

    @cached_property
    def outside(self) -> list[list[Any]] | None:
        """Point and figure where a load is outside of what the model was fitted to; None if it does not say to what."""
        if self.grid.base.spec.calibrated is None:
            return None
        return [
            [point.number, metric]
            for point, known in zip(self.grid.points, self.points, strict=True)
            for metric, (address, estimate) in known.found.items()
            if is_of_load_outside(point.model.spec, address, estimate.mean)
        ]

    @property
    def not_covered(self) -> list[str]:
        """Keys that are something else at a point than when the model was fitted; mechanisms, if compared, left out."""
        keys = dict.fromkeys(key for point in self.grid.points for key in point.not_covered)
        return [key for key in keys if not (self.grid.protections and key.split(".")[2:3] == ["protection"])]

    @property
    def is_drawn(self) -> bool:
        """Whether charts are among the files: nobody reads charts of more points."""
        return len(self.grid.points) <= MOST_DRAWN

    @property
    def shown(self) -> dict[str, Address]:
        """Figures in the terminal's table: those asked for; else of the first workload, domains, and mechanisms.

        Of several copies of a domain, and of its clients, those of all together, or of the first where none tell.
        """
        addresses = {name: address for point in self.points for name, (address, _) in point.found.items()}
        if self.named:
            return addresses
        owners = {address.owner for address in addresses.values()}
        spec = self.grid.base.spec
        services = ((f"workloads.{name}", f"workloads.{name}-1") for name in spec.workloads)
        order = [*next((each for each in services if not owners.isdisjoint(each)), ())]
        order += [f"domains.{name}" for name in spec.domains]
        if self.grid.protections:
            order += [f"domains.{each}.protection" for name in spec.domains for each in (name, f"{name}-1")]
        found = [(name, address) for name, address in addresses.items() if not address.is_of_copy]
        return {name: address for own in order for name, address in found if address.owner == own}

    @property
    def drawn(self) -> dict[str, Address]:
        """Figures that the plot shows: the first of the table, of compared mechanisms what they cost."""
        costs = {name: address for name, address in self.shown.items() if address.owner.endswith(".protection")}
        shown = costs if self.grid.protections and not self.named else self.shown
        return dict(list(shown.items())[:MOST_PANELS])

    @property
    def _head_columns(self) -> list[str]:
        return list(_head(self.grid.points[0]))

    def without_effect(self) -> list[tuple[str, str]]:
        """Return (scheduler and mechanism, axis) where no value of the axis changed anything, to the last digit."""
        pairs = []
        for variant in dict.fromkeys(point.variant for point in self.grid.points):
            points = [p for p in self.grid.points if p.variant == variant and self.points[p.number].marks]
            for axis in self.grid.axes:
                groups: dict[str, list[str]] = {}
                for point in points:
                    others = json.dumps({k: v for k, v in point.values.items() if k != axis.name})
                    groups.setdefault(others, []).append(json.dumps(self.points[point.number].marks, sort_keys=True))
                if any(len(g) > 1 for g in groups.values()) and all(len(set(g)) == 1 for g in groups.values()):
                    pairs.append((variant.name, axis.name))
        return pairs

    @cached_property
    def crossovers(self) -> DataFrame:
        """Crossovers of mechanisms: one row for each figure, pair of mechanisms and crossing."""
        table = sweep_crossovers(self.grid, [point.values for point in self.points])
        return frame(table, columns=[*CROSSOVER_COLUMNS])

    def to_pandas(self) -> DataFrame:
        return self.results

    def blocks(self) -> list[Block]:
        """Return the figures of every point, and what was found on the way."""
        manifest, grid = self.manifest, self.grid
        heads_of = [{**model, "costs": []} if grid.protections else model for model in manifest["models"]]
        count = sum(1 for known in self.points if known.values)
        # Nobody reads more in a terminal, and to lay it out would take longer than the runs.
        table = _points(self) if self.is_drawn else Note(f"{count:,} points are too many to show: see results.csv")
        return [
            *head([{**model, "not_covered": self.not_covered} for model in heads_of], manifest["seed"]),
            *(Note(line) for line in _about(self)),
            Answer(
                f"{counted(count, 'point')}, {counted(self.finished, 'run')}",
                f"What {'do' if grid.axes[1:] else 'does'} {' and '.join(axis.name for axis in grid.axes)} change?",
            ),
            *_charts(self),
            table,
            Note(f"n replications with the same traffic at every point, seed {manifest['seed']}. {INTERVALS}"),
            *map(Note, _resting_on_some(self)),
            *(outside_notes(grid.base) if self.outside else []),
            *(_crossovers(self) if grid.protections else []),
            *(Note(line) for line in _findings(self)),
        ]

    def for_machines(self) -> dict[str, Any]:
        """Return manifest, results and refusals as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest,
            "confidence": CONFIDENCE,
            "results": rows(self.results),
            "outside_calibration": self.outside,
            "refused": self.refusals,
            "without_effect": [list(pair) for pair in self.without_effect()],
            **({"crossovers": rows(self.crossovers)} if self.grid.protections else {}),
        }

    def write_files(self, folder: Path) -> None:
        """Write results, replications, charts and manifest into a directory."""
        tables = {"results.csv": self.results, "replications.csv": self.replications}
        of_mechanisms = {"crossovers.csv": self.crossovers} if self.grid.protections else {}
        write_result(folder, self, tables | of_mechanisms, has_answer=False)


def _head(point: Point, figures: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns that name a point, in a table that has these figures as columns too."""
    return {"point": point.number, **point.variant.names, **factor_columns(point.values, figures)}


def _refusals(grid: Grid, refused: Mapping[int, str]) -> dict[str, str]:
    refusals = dict(grid.refused)
    for number, why in refused.items():
        point = grid.points[number]
        are_all = all(each.number in refused for each in grid.points if each.variant == point.variant)
        refusals[point.variant.name if are_all else point.name] = why
    return refusals


def run_sweep(
    grid: Grid,
    folder: Path,
    replications: int,
    execution: Execution,
    *,
    force: bool = False,
    figures: Sequence[str] = (),
) -> SweepResult:
    """Run what is missing of a sweep; an interrupted one returns what is done.

    The folder has finished replications and results; ``force`` forgets what it holds, once the new result stands.  The
    figures are told from whichever replications are there; none: those that lead.  Refuses, before anything runs, a
    figure that no point has.
    """
    points = grid.points  # one that nothing can run is refused now, not in the middle of the work
    execution.check(replications)
    check_names(figures, _one_of_each_mechanism(grid) or [grid.base.spec])
    interrupted = False
    with resumable_store(folder, "sweep", force) as store:
        runner = Runner(points, lambda *_: None, replace(execution, store=store))
        wanted_of = [replications] * len(points)
        already = runner.load(wanted_of)
        try:
            runner.run(wanted_of, lambda number: points[number].name)
        except KeyboardInterrupt:
            interrupted = True
        refusals = _refusals(grid, runner.refused)
        runner.check_any([f"{name}: {why}" for name, why in refusals.items()], interrupted=interrupted)
        wanted = replications * (len(points) - len(runner.refused))
        manifest = execution.manifest([grid.base], "sweep", replications, interrupted=interrupted)
        manifest["sweep"] = _about_grid(grid)
        point_figures, named = _figures_of(runner, figures), tuple(dict.fromkeys(figures))
        result = SweepResult(grid, point_figures, runner.refused, manifest, wanted, already, named=named)
        store.finish(result.write_files)
        result.remarks.extend(store.remarks)
    return result


def _figures_of(runner: Runner, names: Sequence[str]) -> list[PointFigures]:
    """Return the figures of every point, read back one after the other: records of many points are large."""
    figures: list[PointFigures] = []
    first: dict[str, int] = {}
    reader = Reader(names)
    for number, (identity, numbers) in enumerate(zip(runner.identities, runner.taken, strict=True)):
        twin = first.setdefault(identity["model"], number)
        if twin < number:
            figures.append(figures[twin])
            continue
        data = runner.store.known(identity) if numbers else {}
        records = [(n, RunRecord.from_dict(data[n])) for n in sorted(numbers)]
        figures.append(reader.read(records) if records else PointFigures())
    return figures


def _one_of_each_mechanism(grid: Grid) -> list[ModelSpec]:
    """Return a point's model for each mechanism that is compared: they have figures of their own."""
    points = {point.variant.protection: point for point in grid.points} if grid.protections else {}
    return [point.model.spec for point in points.values()]


def _about_grid(grid: Grid) -> dict[str, Any]:
    """Return what the manifest says of the grid."""
    return {
        "schedulers": grid.schedulers,
        "protections": grid.protections,
        "axes": {axis.name: {"keys": axis.keys, "values": axis.values} for axis in grid.axes},
        "points": len(grid.points),
    }


_MOST_LINES, _MOST_CHARTS = 8, 5
_MEANINGS = SHORT_MEANINGS | MEANINGS


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


def _apart(rest: list[Axis], has_several_variants: bool) -> Axis | None:
    """Return the axis that has a chart for each value."""
    fit = [axis for axis in rest if len(axis.values) <= _MOST_CHARTS]
    return fit[-1] if fit and (len(rest) > 1 or has_several_variants) else None


def _of_figure(result: SweepResult, name: str, over: Axis, apart: Axis | None) -> list[Chart]:
    """Return the charts of one figure, all on one scale."""
    grid, address = result.grid, result.drawn[name]
    numbers = numbers_of(over.values)
    positions = dict(zip(over.values, range(len(over.values)) if numbers is None else numbers[0], strict=True))
    lines: dict[str, dict[str, list[Dot]]] = {}
    for point, known in zip(grid.points, result.points, strict=True):
        if name in known.found:
            without = {over.name} if apart is None else {over.name, apart.name}
            panel = "" if apart is None else f"{apart.name}={point.values[apart.name]}"
            line = _label(point, grid, without) or address.entry.head
            dot = Dot.of(float(positions[point.values[over.name]]), known.found[name][1])
            lines.setdefault(panel, {}).setdefault(line, []).append(dot)
    style: Literal["line", "dots"] = "line" if numbers else "dots"
    panels = {
        panel: [Series(words, sorted(dots, key=lambda dot: dot.x), style) for words, dots in lines_of_panel.items()]
        for panel, lines_of_panel in lines.items()
    }
    every = [series for lines_of_panel in panels.values() for series in lines_of_panel]
    seen = {y for series in every for dot in series.points for y in (dot.y, dot.low, dot.high) if math.isfinite(y)}
    ys = sorted({min(seen), max(seen), min((y for y in seen if y > 0.0), default=0.0)}) if seen else []
    title = f"{short_owner(address.owner)}: {address.entry.words}"
    return [
        Chart(
            ", ".join(filter(None, (title, panel, _which(begin, lines_of_panel)))),
            with_unit(over.name, numbers[1] if numbers else ""),
            address.entry.words,
            lines_of_panel[begin : begin + _MOST_LINES],
            within=within(grid.base.spec) if any(is_load(grid.base.spec, key) for key in over.keys) else None,
            scale=scale_of(every),
            names=() if numbers else over.values,
            reach=ys if len(panels) > 1 else (),
        )
        for panel, lines_of_panel in panels.items()
        for begin in range(0, min(len(lines_of_panel), 2 * _MOST_LINES), _MOST_LINES)
    ]


def _which(begin: int, lines: list[Series]) -> str:
    """Return which lines a chart has, if not all."""
    end = min(begin + _MOST_LINES, len(lines))
    return f"{begin + 1} to {end} of {len(lines)}" if len(lines) > _MOST_LINES else ""


def _points(result: SweepResult) -> Table:
    """Return a row a point: the values of its axes, and the figures that are shown."""
    several = len({address.owner for address in result.shown.values()}) > 1
    heads = [_heading(address, result, several=several) for address in result.shown.values()]
    loads = {name for name, address in result.shown.items() if address.entry.figure.is_load}
    beyond = {number for number, metric in result.outside or () if metric not in loads}
    rows: list[list[Cell]] = []
    for point, known in zip(result.grid.points, result.points, strict=True):
        if known.values:
            label = f"{MARK.strip()} " * (point.number in beyond) + _label(point, result.grid)
            cells = [_cell(point, *known.found[name]) if name in known.found else None for name in result.shown]
            rows.append([label, *cells, str(len(known.values))])
    return Table(["point", *heads, "n"], rows)


def _resting_on_some(result: SweepResult) -> list[str]:
    """Say of the figures that are shown which rest on some of a point's replications only."""
    return resting_on_some(
        (f"{_label(point, result.grid)}: {address.text}", known.found[name][1].n, len(known.values))
        for point, known in zip(result.grid.points, result.points, strict=True)
        for name, address in result.shown.items()
        if name in known.found
    )


def _label(point: Point, grid: Grid, without: Collection[str] = ()) -> str:
    """Return what tells a point from the others: variants of which there are several, axes by their last word."""
    several = {"scheduler": len(grid.schedulers) > 1, "protection": len(grid.protections) > 1}
    names = [name for what, name in point.variant.names.items() if several[what]]
    last = [axis.name.rpartition(".")[2] for axis in grid.axes]
    axes = {axis.name: word if last.count(word) == 1 else axis.name for axis, word in zip(grid.axes, last, strict=True)}
    return ", ".join(
        [*names, *(f"{axes[name]}={value}" for name, value in point.values.items() if name not in without)]
    )


def _heading(address: Address, result: SweepResult, *, several: bool) -> str:
    services = {each.owner for each in result.shown.values() if each.owner.startswith("workloads.")}
    is_clear = not several or (services == {address.owner} and not _is_of_first(address, result))
    return address.entry.head if is_clear else f"{short_owner(address.owner)}: {address.entry.head}"


def _is_of_first(address: Address, result: SweepResult) -> bool:
    """Tell whether a figure is of the first of several copies of a domain, or of its clients."""
    spec = result.grid.base.spec
    return address.owner.split(".")[1] not in {*spec.workloads, *spec.domains}


def _cell(point: Point, address: Address, estimate: Estimate) -> Cell:
    """Return a figure of a point, marked if it is itself a load, and that was not calibrated."""
    if address.entry.figure.is_load and is_of_load_outside(point.model.spec, address, estimate.mean):
        return Marked(estimate, MARK)
    return estimate


def _crossovers(result: SweepResult) -> list[Block]:
    """Return where mechanisms overtake each other in the figures shown, and what their costs rest on."""
    crossings: Iterable[Any] = result.crossovers.itertuples()
    rows = [_crossover(row, result) for row in crossings if row.metric in result.shown]
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
        f"{_heading(result.shown[row.metric], result, several=True)}: {row.before} below, {row.after} above",
        Estimate(row.estimate, half, row.low, row.high, row.n, CONFIDENCE, row.interval),
        f"{row.from_point:g} and {row.to_point:g}",
        f"{with_unit(row.axis, row.unit)}{f'; {row.held}' if row.held else ''}",
    ]


def _about(result: SweepResult) -> list[str]:
    lines = [
        f"{axis.name}: {_MEANINGS[axis.name]}"
        for axis in result.grid.axes
        if axis.name in _MEANINGS and "." not in axis.name
    ]
    if not result.named and any(_is_of_first(address, result) for address in result.shown.values()):
        lines.append("Of several copies of a domain the table has the first; results.csv has all")
    if not result.named and any(each.is_of_copy for point in result.points for each, _ in point.found.values()):
        lines.append("Of several copies of a domain the table has all together; results.csv has each")
    if result.grid.base.spec.phased is None:
        lines.append(_times(result.grid))
    return lines


def _times(grid: Grid) -> str:
    measured, warm_up = (
        ", ".join(DURATION.format(time_ns) for time_ns in dict.fromkeys(times_ns))
        for times_ns in zip(*(point.times_ns for point in grid.points), strict=True)
    )
    tests = "its tests, at most " if grid.base.spec.tests_ns else ""
    return (
        f"Each replication measures {tests}{measured} after {warm_up} of warm-up (measure.duration, measure.warm_up); "
        "more of it, or more --replications, sharpen the intervals"
    )


def _findings(result: SweepResult) -> list[str]:
    lines = [f"Refused by {name}: {why}" for name, why in result.refusals.items()]
    lines += of_no_run(without_value(result.named, [*result.shown.values()]))
    for scheduler, axis in result.without_effect():
        lines.append(f"{axis} changed nothing{f' under {scheduler}' if scheduler else ''}, to the last digit")
    return lines
