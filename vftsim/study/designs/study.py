"""An experiment run: every finished run is kept, and what was killed or interrupted goes on with the same command.

Every point gets the same replications: the same traffic meets every setting, so differences between points are those of
the settings.  A finished replication is on disk before it is counted; the files in the end are the same.

What it found, as blocks: a row a point, charts over the factors, and what was found on the way.
"""

import math
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.files import sha256_of
from vftsim.report.blocks import Answer, Block, Cell, Chart, Marked, Note, Series, Table, with_unit
from vftsim.report.blocks import Point as Dot
from vftsim.spec import DURATION
from vftsim.spec.suggest import counted
from vftsim.spec.units import numbers_of
from vftsim.stats import Estimate, StoppingRule
from vftsim.stats.replications import replicate as rounds_of
from vftsim.study.blocks.head import head, intervals, outside_notes, within
from vftsim.study.blocks.printed import Printed, write_result
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.designs.axes import SHORT_MEANINGS
from vftsim.study.designs.crossovers import CERTAIN, MOST_NEEDED
from vftsim.study.designs.experiment import Experiment, ExperimentResult, PointFigures, Reader, refusals
from vftsim.study.designs.past import write_points
from vftsim.study.designs.points import PROTECTION, SCHEDULER, Point
from vftsim.study.designs.protections import MEANINGS
from vftsim.study.designs.runner import Runner
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import DataFrame, rows, with_numbers
from vftsim.study.figures.names import Address, only
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.summary import Summary, of_no_run, resting_on_some, short_owner, without_value
from vftsim.study.figures.validity import MARK, is_load, is_of_load_outside


@dataclass(frozen=True)
class StudyResult(ExperimentResult, Printed):
    """The result of a study file or a sweep."""

    manifest: dict[str, Any] = field(kw_only=True)
    already: int = field(kw_only=True)
    """Replications that were on disk at the start."""
    remarks: list[str] = field(default_factory=list)
    """Remarks on the directory for the user."""

    def to_pandas(self) -> DataFrame:
        return with_numbers(self.results)

    def blocks(self) -> list[Block]:
        experiment, models, seed = self.experiment, self.manifest["models"], self.manifest["seed"]
        caption = intervals(experiment.confidence)
        return [
            *head([{**model, "not_covered": self.not_covered} for model in models], seed),
            *map(Note, _about(self)),
            Answer(f"{counted(len(self.points), 'point')}, {counted(self.finished, 'run')}", experiment.question),
            *_charts(self),
            _points(self),
            Note(f"n: replications of a point, with the same traffic at every point, seed {seed}. {caption}"),
            *map(Note, _resting_on_some(self)),
            *(outside_notes(*self.bases) if self.outside else []),
            *(_crossovers(self, caption) if experiment.has_crossovers else []),
            *map(Note, _costs(self, models)),
            *map(Note, _findings(self)),
        ]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "confidence": self.experiment.confidence,
            "results": rows(self.results),
            "outside_calibration": self.outside,
            "refused": self.refusals,
            "unreached": self.unreached,
            "without_effect": [list(pair) for pair in self.without_effect()],
            **({"crossovers": rows(self.crossovers)} if self.experiment.has_crossovers else {}),
        }

    def write_files(self, folder: Path) -> None:
        tables = {"results.csv": self.results, "replications.csv": self.replications}
        of_mechanisms = {"crossovers.csv": self.crossovers} if self.experiment.has_crossovers else {}
        write_points(folder, self.points)
        write_result(folder, self, tables | of_mechanisms, has_answer=False)


def run_experiment(experiment: Experiment, execution: Execution) -> StudyResult:
    """Run what the execution's store lacks of an experiment; an interrupted one returns what is done.

    The figures are told from whichever replications are there.  The execution's shard is a share of runs, with a rule
    of points.  Refuses figures that no model has, and points none of which can be run.
    """
    points, rule = experiment.points, experiment.rule
    execution.check(experiment.replications)
    experiment.check(execution.progress)
    interrupted, unreached = False, list[int]()
    counts = [experiment.replications if rule is None else rule.initial + rule.look_ahead] * len(points)
    precise = Precise(rule, [{} for _ in points]) if rule else None
    runner = Runner(points, precise.take if precise else lambda *_: None, execution, precise is not None)
    already = runner.load(counts)
    try:
        if precise is None:
            runner.run(counts, lambda number: points[number].name)
        else:
            unreached = precise.until_known(runner, counts)
    except KeyboardInterrupt:
        interrupted = True
    reasons = refusals(experiment, runner.refused)
    runner.check_any([f"{name}: {why}" for name, why in reasons.items()], interrupted=interrupted)
    bases = points.bases
    manifest = execution.manifest(bases, experiment.command, max(counts), interrupted=interrupted)
    manifest[experiment.command] = {**experiment.about, "points": len(points)}
    of_points = _figures_of(runner, experiment)
    return StudyResult(experiment, bases, of_points, runner.refused, unreached, manifest=manifest, already=already)


def _figures_of(runner: Runner, experiment: Experiment) -> list[PointFigures]:
    """Return the figures of every point, read back one after the other: records of many points are large."""
    figures: list[PointFigures] = []
    first: dict[str, int] = {}
    reader = Reader(experiment.figures, experiment.confidence)
    for number, identity in enumerate(runner.identities):
        twin = first.setdefault(identity["model"], number)
        if twin < number:
            figures.append(figures[twin])
            continue
        data = runner.data(number)
        of_point = reader.read([(n, RunRecord.from_dict(each)) for n, each in data.items()]) if data else PointFigures()
        of_point.marks.update({n: sha256_of(each) for n, each in data.items()})
        figures.append(of_point)
    return figures


@dataclass(frozen=True)
class Precise:
    """A rule that says when a point has enough replications, and the figures that it goes by, of each point's runs."""

    rule: StoppingRule
    figures: list[dict[int, dict[str, float]]]

    def take(self, number: int, replication: int, data: Mapping[str, Any]) -> None:
        """Keep what a run of a point says."""
        summary, figures = Summary([(0, RunRecord.from_dict(data))]), {}
        for name in self.rule.metrics:
            addresses = summary.find(name)
            value = summary.values(only(name, addresses, addresses, "precision").text).get(0) if addresses else None
            if value is None:
                raise UsageError(
                    f"precision: nothing to measure of '{name}' in replication {replication} of point {number}"
                )
            figures[name] = value
        self.figures[number][replication] = figures

    def until_known(self, runner: Runner, counts: list[int]) -> list[int]:
        """Run replications of each point until the rule holds there; return the points where it does not.

        What a point needs follows from its replications, so shares of points are those of the whole.
        """
        asking = {point.number: rounds_of(self.rule) for point in runner.points}
        numbers = {number: next(procedure) for number, procedure in asking.items()}
        unreached = []
        while numbers:
            for number, batch in numbers.items():
                counts[number] = batch.stop
            runner.load(counts)
            runner.run(counts, lambda number: f"point {number}")
            for number, batch in list(numbers.items()):
                del numbers[number]
                figures = self.figures[number]
                if not set(batch) <= figures.keys():
                    continue  # refused, or of another share
                try:
                    numbers[number] = asking[number].send([figures[n] for n in batch])
                except StopIteration as stop:
                    if not stop.value.reached:
                        unreached.append(number)
        return unreached


MOST_PANELS = 3
_MOST_ROWS, _MOST_LISTED = 100, 10
_MOST_LINES, _MOST_CHARTS = 8, 5
_MEANINGS = SHORT_MEANINGS | MEANINGS


def shown(result: ExperimentResult) -> dict[str, Address]:
    """Return the figures in the terminal's table: those asked for; else of the first workload, domains, and mechanisms.

    Of several copies of a domain, and of its clients, those of all together, or of the first where none tell.
    """
    addresses = result.addresses
    if result.experiment.figures:
        return addresses
    owners = {address.owner for address in addresses.values()}
    spec = result.bases[0].spec
    services = ((f"workloads.{name}", f"workloads.{name}-1") for name in spec.workloads)
    order = [*next((each for each in services if not owners.isdisjoint(each)), ())]
    order += [f"domains.{name}" for name in spec.domains]
    if PROTECTION in result.experiment.factors:
        order += [f"domains.{each}.protection" for name in spec.domains for each in (name, f"{name}-1")]
    whole = [(name, address) for name, address in addresses.items() if not address.is_of_copy]
    return {name: address for owner in order for name, address in whole if address.owner == owner}


def _drawn(result: ExperimentResult) -> dict[str, Address]:
    """Return the figures that charts show: the first of the table, of compared mechanisms what they cost."""
    in_table = shown(result)
    if PROTECTION in result.experiment.factors and not result.experiment.figures:
        in_table = {name: each for name, each in in_table.items() if each.owner.endswith(".protection")} or in_table
    return dict(list(in_table.items())[:MOST_PANELS])


def _label(point: Point, result: ExperimentResult, without: Collection[str] = ()) -> str:
    """Return what tells a point from the others: models and kinds of which there are several, factors' last words."""
    factors = result.experiment.factors
    words = [point.label] if len(result.bases) > 1 else []
    last = [name.rpartition(".")[2] for name in factors]
    for (name, value), word in zip(point.values.items(), last, strict=True):
        if name in (SCHEDULER, PROTECTION):
            words += [value] if len(factors[name]) > 1 else []
        elif name not in without:
            words.append(f"{word if last.count(word) == 1 else name}={value}")
    return ", ".join(words) or point.label


def _charts(result: ExperimentResult) -> list[Chart]:
    """Return the charts of each figure that is drawn; nobody reads charts of many points."""
    if not result.experiment.is_drawn:
        return []
    if not result.experiment.is_grid:
        return [chart for name, address in _drawn(result).items() for chart in _scattered(result, name, address)]
    varied = {name: values for name, values in result.experiment.factors.items() if name not in (SCHEDULER, PROTECTION)}
    wide = {name: values for name, values in varied.items() if len(values) > 1}
    if not wide:
        return []
    # The last of the factors with most values varies fastest in the table.
    over = max(reversed(wide), key=lambda name: len(wide[name]))
    rest = [name for name in wide if name != over]
    has_several = len({_label(point, result, varied) for point in result.points}) > 1
    fit = [name for name in rest if len(wide[name]) <= _MOST_CHARTS]
    apart = fit[-1] if fit and (len(rest) > 1 or has_several) else None
    drawn = _drawn(result).items()
    return [chart for name, address in drawn for chart in _of_figure(result, name, address, over, apart)]


def _scattered(result: ExperimentResult, name: str, address: Address) -> list[Chart]:
    """Return a figure over every factor that is a number: a dot a point, the other factors anywhere in theirs."""
    axes = {each: numbers_of([point.values[each] for point in result.points]) for each in result.experiment.factors}
    varied = [(each, axis) for each, axis in axes.items() if axis is not None and len(set(axis[0])) > 1]
    charts = []
    for factor, (positions, unit) in varied[:_MOST_CHARTS]:
        dots: dict[str, list[Dot]] = {}
        for point, of_point in zip(result.points, result.of_points, strict=True):
            if name in of_point.estimates:
                dot = Dot.of(positions[point.number], of_point.estimates[name][1])
                dots.setdefault(_label(point, result, result.experiment.factors), []).append(dot)
        series = [Series(label, of_label, "dots") for label, of_label in dots.items()]
        title = f"{short_owner(address.owner)}: {address.entry.words} over {factor}"
        charts.append(Chart(title, with_unit(factor, unit), address.entry.words, series, scale=scale_of(series)))
    return charts


def _of_figure(result: ExperimentResult, name: str, address: Address, over: str, apart: str | None) -> list[Chart]:
    """Return the charts of one figure over a factor, all on one scale, a line for each setting of the others.

    Where a factor is left that need not tell lines apart, each of its values has a chart of its own.
    """
    spec = result.bases[0].spec
    values = result.experiment.factors[over]
    numbers = numbers_of(values)
    positions = dict(zip(values, range(len(values)) if numbers is None else numbers[0], strict=True))
    lines: dict[str, dict[str, list[Dot]]] = {}
    for point, of_point in zip(result.points, result.of_points, strict=True):
        if name in of_point.estimates:
            without = {over} if apart is None else {over, apart}
            panel = "" if apart is None else f"{apart}={point.values[apart]}"
            line = _label(point, result, without)
            line = address.entry.head if line == point.label and len(result.bases) == 1 else line
            dot = Dot.of(float(positions[point.values[over]]), of_point.estimates[name][1])
            lines.setdefault(panel, {}).setdefault(line, []).append(dot)
    style: Literal["line", "dots"] = "line" if numbers else "dots"
    panels = {
        panel: [Series(words, sorted(dots, key=lambda dot: dot.x), style) for words, dots in lines_of_panel.items()]
        for panel, lines_of_panel in lines.items()
    }
    every = [series for lines_of_panel in panels.values() for series in lines_of_panel]
    ys_drawn = {y for series in every for dot in series.points for y in (dot.y, dot.low, dot.high) if math.isfinite(y)}
    ys = sorted({min(ys_drawn), max(ys_drawn), min((y for y in ys_drawn if y > 0.0), default=0.0)}) if ys_drawn else []
    title = f"{short_owner(address.owner)}: {address.entry.words}"
    keys = result.points.sources[0].axes[over].keys
    return [
        Chart(
            ", ".join(filter(None, (title, panel, _which(begin, lines_of_panel)))),
            with_unit(over, numbers[1] if numbers else ""),
            address.entry.words,
            lines_of_panel[begin : begin + _MOST_LINES],
            within=within(spec) if any(is_load(spec, key) for key in keys) else None,
            scale=scale_of(every),
            names=() if numbers else tuple(values),
            reach=ys if len(panels) > 1 else (),
        )
        for panel, lines_of_panel in panels.items()
        for begin in range(0, min(len(lines_of_panel), 2 * _MOST_LINES), _MOST_LINES)
    ]


def _which(begin: int, lines: list[Series]) -> str:
    """Return which lines a chart has, if not all."""
    end = min(begin + _MOST_LINES, len(lines))
    return f"{begin + 1} to {end} of {len(lines)}" if len(lines) > _MOST_LINES else ""


def _points(result: ExperimentResult) -> Table:
    """Return a row a point: the values of its factors, and the figures that are shown."""
    in_table = shown(result)
    loads = {name for name, address in in_table.items() if address.entry.figure.is_load}
    beyond = {number for number, name in result.outside or () if name not in loads}
    rows: list[list[Cell]] = []
    for point in result.points[:_MOST_ROWS]:
        of_point = result.of_points[point.number]
        if of_point.values:
            label = f"{MARK.strip()} " * (point.number in beyond) + _label(point, result)
            estimates = map(of_point.estimates.get, in_table)
            cells = [None if each is None else _cell(point, *each) for each in estimates]
            rows.append([label, *cells, str(len(of_point.values))])
    return Table(["point", *_headings(result, in_table), "n"], rows)


def _cell(point: Point, address: Address, estimate: Estimate) -> Cell:
    """Return a figure of a point, marked if it is itself a load, and that was not calibrated."""
    if address.entry.figure.is_load and is_of_load_outside(point.model.spec, address, estimate.mean):
        return Marked(estimate, MARK)
    return estimate


def _headings(result: ExperimentResult, in_table: Mapping[str, Address]) -> list[str]:
    """Return what heads the column of each figure that is shown: short where that is clear, else whole addresses."""
    owners = {address.owner for address in in_table.values()}
    services = {owner for owner in owners if owner.startswith("workloads.")}
    heads = []
    for address in in_table.values():
        is_clear = len(owners) == 1 or (services == {address.owner} and not _is_of_first(address, result))
        heads.append(address.entry.head if is_clear else _with_owner(address))
    return [
        head if heads.count(head) == 1 else with_unit(name, address.entry.unit)
        for head, (name, address) in zip(heads, in_table.items(), strict=True)
    ]


def _with_owner(address: Address) -> str:
    return f"{short_owner(address.owner)}: {address.entry.head}"


def _is_of_first(address: Address, result: ExperimentResult) -> bool:
    """Tell whether a figure is of the first of several copies of a domain, or of its clients."""
    spec = result.bases[0].spec
    return address.owner.split(".")[1] not in {*spec.workloads, *spec.domains}


def _resting_on_some(result: ExperimentResult) -> list[str]:
    """Say of the figures that are shown which rest on some of a point's replications only."""
    return resting_on_some(
        (f"{_label(point, result)}: {address.text}", of_point.estimates[name][1].n, len(of_point.values))
        for point, of_point in zip(result.points, result.of_points, strict=True)
        for name, address in shown(result).items()
        if name in of_point.estimates
    )


def _crossovers(result: ExperimentResult, caption: str) -> list[Block]:
    """Return where mechanisms overtake each other in the figures shown."""
    in_table = shown(result)
    crossings: Iterable[Any] = result.crossovers.itertuples()
    rows = [_crossover(row, in_table[row.figure], result) for row in crossings if row.figure in in_table]
    open_orders = _open_orders(result, in_table)
    if not rows:
        none = "Crossovers: no two mechanisms surely change their order on an axis in a figure shown"
        return [Note(none), *open_orders]
    about = (
        "Crossovers: where the order of two mechanisms changes on an axis, linear between its values. "
        f"{CERTAIN} {caption}"
    )
    return [Table(["which has less", "at", "between", "of"], rows, "", about), *open_orders]


def _open_orders(result: ExperimentResult, in_table: Mapping[str, Address]) -> list[Block]:
    """Return in which figures shown means change their order and may do so by chance, and what would tell."""
    needed = [(in_table[name], runs) for name, runs in result.open_orders.items() if name in in_table]
    counts = [f"about {runs:.0f}" if math.isfinite(runs) else f"more than {MOST_NEEDED}" for _, runs in needed]
    texts = [f"{_with_owner(address)} ({count})" for (address, _), count in zip(needed, counts, strict=True)]
    more = f", and {len(texts) - _MOST_LISTED} more" if len(texts) > _MOST_LISTED else ""
    text = f"{', '.join(texts[:_MOST_LISTED])}{more}"
    means = "Means of mechanisms change their order, which may be chance, in (replications that would tell, -n):"
    return [Note(f"{means} {text}")] if texts else []


def _crossover(row: Any, address: Address, result: ExperimentResult) -> list[Cell]:
    half, confidence = (row.high - row.low) / 2.0, result.experiment.confidence
    return [
        f"{_with_owner(address)}: {row.before} below, {row.after} above",
        Estimate(row.estimate, half, row.low, row.high, row.n, confidence, row.interval),
        f"{row.from_point:g} and {row.to_point:g}",
        f"{with_unit(row.axis, row.unit)}{f'; {row.held}' if row.held else ''}",
    ]


def _costs(result: ExperimentResult, models: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return what the costs of mechanisms rest on that are a factor, but for those of which the head tells."""
    firsts = {(point.label, point.values.get(PROTECTION)): point for point in reversed(result.points)}
    in_head = {text for model in models for text in model["costs"]}
    texts = dict.fromkeys(text for point in reversed(firsts.values()) for text in cost_notes(point.model.spec))
    return [f"Costs of {text}" for text in texts if text not in in_head]


def _about(result: ExperimentResult) -> list[str]:
    """Say what short names mean, which of several copies are shown, and how long runs are."""
    axes = result.points.sources[0].axes
    lines = [f"{name}: {_MEANINGS[name]}" for name in result.experiment.factors if axes[name].is_short]
    if not result.experiment.figures and any(_is_of_first(address, result) for address in shown(result).values()):
        lines.append("Of several copies of a domain the table has the first; results.csv has all")
    if not result.experiment.figures and any(address.is_of_copy for address in result.addresses.values()):
        lines.append("Of several copies of a domain the table has all together; results.csv has each")
    if all(base.spec.phased is None for base in result.bases):
        lines.append(_times(result))
    return lines


def _times(result: ExperimentResult) -> str:
    measured, warm_up = (
        ", ".join(DURATION.format(time_ns) for time_ns in dict.fromkeys(times_ns))
        for times_ns in zip(*(point.times_ns for point in result.points), strict=True)
    )
    tests = "its tests, at most " if result.bases[0].spec.tests_ns else ""
    return (
        f"Each replication measures {tests}{measured} after {warm_up} of warm-up (measure.duration, measure.warm_up); "
        "more of it, or more --replications, sharpen the intervals"
    )


def _findings(result: ExperimentResult) -> list[str]:
    lines = [f"The first {_MOST_ROWS} points; results.csv has all."] if len(result.points) > _MOST_ROWS else []
    refused = [f"Refused: {name}: {why}" for name, why in result.refusals.items()]
    lines += refused[:_MOST_LISTED]
    if more := refused[_MOST_LISTED:]:
        lines.append(f"Refused: {counted(len(more), 'more point')}")
    if result.unreached:
        listed = "; ".join(result.points[number].name for number in result.unreached[:_MOST_LISTED])
        count = counted(len(result.unreached), "point")
        lines.append(f"Precision not reached within the most replications: {count}: {listed}")
    lines += of_no_run(without_value(result.experiment.figures, [*result.addresses.values()]))
    for variant, factor in result.without_effect():
        lines.append(f"{factor} changed nothing{f' under {variant}' if variant else ''}, to the last digit")
    return lines
