"""What an experiment found, as blocks: a row a point, charts over the factors, and what was found on the way."""

import math
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from vftsim.report.blocks import Answer, Block, Cell, Chart, Marked, Note, Series, Table, with_unit
from vftsim.report.blocks import Point as Dot
from vftsim.spec import DURATION
from vftsim.spec.suggest import counted
from vftsim.spec.units import numbers_of
from vftsim.stats import Estimate
from vftsim.study.blocks.head import head, intervals, outside_notes, within
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.designs.axes import SHORT_MEANINGS
from vftsim.study.designs.crossovers import CERTAIN, MOST_NEEDED
from vftsim.study.designs.experiment import Found
from vftsim.study.designs.points import PROTECTION, SCHEDULER, Point
from vftsim.study.designs.protections import MEANINGS
from vftsim.study.figures.names import Address
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.summary import of_no_run, resting_on_some, without_value
from vftsim.study.figures.tables import short_owner
from vftsim.study.figures.validity import MARK, is_load, is_of_load_outside

MOST_PANELS = 3
_MOST_ROWS, _MOST_LISTED = 100, 10
_MOST_LINES, _MOST_CHARTS = 8, 5
_MEANINGS = SHORT_MEANINGS | MEANINGS


def study_blocks(found: Found, manifest: Mapping[str, Any]) -> list[Block]:
    experiment = found.experiment
    caption = intervals(experiment.confidence)
    return [
        *head([{**model, "not_covered": found.not_covered} for model in manifest["models"]], manifest["seed"]),
        *(Note(line) for line in _about(found)),
        Answer(f"{counted(len(found.points), 'point')}, {counted(found.finished, 'run')}", experiment.question),
        *_charts(found),
        _points(found),
        Note(f"n: replications of a point, with the same traffic at every point, seed {manifest['seed']}. {caption}"),
        *map(Note, _resting_on_some(found)),
        *(outside_notes(*found.bases) if found.outside else []),
        *(_crossovers(found, caption) if experiment.has_crossovers else []),
        *(Note(text) for text in _costs(found, manifest)),
        *(Note(line) for line in _findings(found)),
    ]


def shown(found: Found) -> dict[str, Address]:
    """Return the figures in the terminal's table: those asked for; else of the first workload, domains, and mechanisms.

    Of several copies of a domain, and of its clients, those of all together, or of the first where none tell.
    """
    addresses = found.addresses
    if found.experiment.figures:
        return addresses
    owners = {address.owner for address in addresses.values()}
    spec = found.bases[0].spec
    services = ((f"workloads.{name}", f"workloads.{name}-1") for name in spec.workloads)
    order = [*next((each for each in services if not owners.isdisjoint(each)), ())]
    order += [f"domains.{name}" for name in spec.domains]
    if PROTECTION in found.experiment.factors:
        order += [f"domains.{each}.protection" for name in spec.domains for each in (name, f"{name}-1")]
    whole = [(name, address) for name, address in addresses.items() if not address.is_of_copy]
    return {name: address for owner in order for name, address in whole if address.owner == owner}


def _drawn(found: Found) -> dict[str, Address]:
    """Return the figures that charts show: the first of the table, of compared mechanisms what they cost."""
    in_table = shown(found)
    if PROTECTION in found.experiment.factors and not found.experiment.figures:
        in_table = {name: each for name, each in in_table.items() if each.owner.endswith(".protection")} or in_table
    return dict(list(in_table.items())[:MOST_PANELS])


def _label(point: Point, found: Found, without: Collection[str] = ()) -> str:
    """Return what tells a point from the others: models and kinds of which there are several, factors' last words."""
    factors = found.experiment.factors
    words = [point.label] if len(found.bases) > 1 else []
    last = [name.rpartition(".")[2] for name in factors]
    for (name, value), word in zip(point.values.items(), last, strict=True):
        if name in (SCHEDULER, PROTECTION):
            words += [value] if len(factors[name]) > 1 else []
        elif name not in without:
            words.append(f"{word if last.count(word) == 1 else name}={value}")
    return ", ".join(words) or point.label


def _charts(found: Found) -> list[Chart]:
    """Return the charts of each figure that is drawn; nobody reads charts of many points."""
    if not found.experiment.is_drawn:
        return []
    if not found.experiment.is_grid:
        return [chart for name, address in _drawn(found).items() for chart in _scattered(found, name, address)]
    varied = {name: values for name, values in found.experiment.factors.items() if name not in (SCHEDULER, PROTECTION)}
    wide = {name: values for name, values in varied.items() if len(values) > 1}
    if not wide:
        return []
    # The last of the factors with most values varies fastest in the table.
    over = max(reversed(wide), key=lambda name: len(wide[name]))
    rest = [name for name in wide if name != over]
    has_several = len({_label(point, found, varied) for point in found.points}) > 1
    fit = [name for name in rest if len(wide[name]) <= _MOST_CHARTS]
    apart = fit[-1] if fit and (len(rest) > 1 or has_several) else None
    return [chart for name, address in _drawn(found).items() for chart in _of_figure(found, name, address, over, apart)]


def _scattered(found: Found, name: str, address: Address) -> list[Chart]:
    """Return a figure over every factor that is a number: a dot a point, the other factors anywhere in theirs."""
    axes = {each: numbers_of([point.values[each] for point in found.points]) for each in found.experiment.factors}
    varied = [(each, axis) for each, axis in axes.items() if axis is not None and len(set(axis[0])) > 1]
    charts = []
    for factor, (positions, unit) in varied[:_MOST_CHARTS]:
        dots: dict[str, list[Dot]] = {}
        for point, of_point in zip(found.points, found.found, strict=True):
            if name in of_point.found:
                dot = Dot.of(positions[point.number], of_point.found[name][1])
                dots.setdefault(_label(point, found, found.experiment.factors), []).append(dot)
        series = [Series(label, of_label, "dots") for label, of_label in dots.items()]
        title = f"{short_owner(address.owner)}: {address.entry.words} over {factor}"
        charts.append(Chart(title, with_unit(factor, unit), address.entry.words, series, scale=scale_of(series)))
    return charts


def _of_figure(found: Found, name: str, address: Address, over: str, apart: str | None) -> list[Chart]:
    """Return the charts of one figure over a factor, all on one scale, a line for each setting of the others.

    Where a factor is left that need not tell lines apart, each of its values has a chart of its own.
    """
    spec = found.bases[0].spec
    values = found.experiment.factors[over]
    numbers = numbers_of(values)
    positions = dict(zip(values, range(len(values)) if numbers is None else numbers[0], strict=True))
    lines: dict[str, dict[str, list[Dot]]] = {}
    for point, of_point in zip(found.points, found.found, strict=True):
        if name in of_point.found:
            without = {over} if apart is None else {over, apart}
            panel = "" if apart is None else f"{apart}={point.values[apart]}"
            line = _label(point, found, without)
            line = address.entry.head if line == point.label and len(found.bases) == 1 else line
            dot = Dot.of(float(positions[point.values[over]]), of_point.found[name][1])
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
    keys = found.points.sources[0].axes[over].keys
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


def _points(found: Found) -> Table:
    """Return a row a point: the values of its factors, and the figures that are shown."""
    in_table = shown(found)
    loads = {name for name, address in in_table.items() if address.entry.figure.is_load}
    beyond = {number for number, name in found.outside or () if name not in loads}
    rows: list[list[Cell]] = []
    for point in found.points[:_MOST_ROWS]:
        of_point = found.found[point.number]
        if of_point.values:
            label = f"{MARK.strip()} " * (point.number in beyond) + _label(point, found)
            cells = [_cell(point, *of_point.found[name]) if name in of_point.found else None for name in in_table]
            rows.append([label, *cells, str(len(of_point.values))])
    return Table(["point", *_headings(found, in_table), "n"], rows)


def _cell(point: Point, address: Address, estimate: Estimate) -> Cell:
    """Return a figure of a point, marked if it is itself a load, and that was not calibrated."""
    if address.entry.figure.is_load and is_of_load_outside(point.model.spec, address, estimate.mean):
        return Marked(estimate, MARK)
    return estimate


def _headings(found: Found, in_table: Mapping[str, Address]) -> list[str]:
    """Return what heads the column of each figure that is shown: short where that is clear, else whole addresses."""
    owners = {address.owner for address in in_table.values()}
    services = {owner for owner in owners if owner.startswith("workloads.")}
    heads = []
    for address in in_table.values():
        is_clear = len(owners) == 1 or (services == {address.owner} and not _is_of_first(address, found))
        heads.append(address.entry.head if is_clear else _with_owner(address))
    return [
        head if heads.count(head) == 1 else with_unit(name, address.entry.unit)
        for head, (name, address) in zip(heads, in_table.items(), strict=True)
    ]


def _with_owner(address: Address) -> str:
    return f"{short_owner(address.owner)}: {address.entry.head}"


def _is_of_first(address: Address, found: Found) -> bool:
    """Tell whether a figure is of the first of several copies of a domain, or of its clients."""
    spec = found.bases[0].spec
    return address.owner.split(".")[1] not in {*spec.workloads, *spec.domains}


def _resting_on_some(found: Found) -> list[str]:
    """Say of the figures that are shown which rest on some of a point's replications only."""
    return resting_on_some(
        (f"{_label(point, found)}: {address.text}", of_point.found[name][1].n, len(of_point.values))
        for point, of_point in zip(found.points, found.found, strict=True)
        for name, address in shown(found).items()
        if name in of_point.found
    )


def _crossovers(found: Found, caption: str) -> list[Block]:
    """Return where mechanisms overtake each other in the figures shown."""
    in_table = shown(found)
    crossings: Iterable[Any] = found.crossovers.itertuples()
    rows = [_crossover(row, in_table[row.figure], found) for row in crossings if row.figure in in_table]
    open_orders = _open_orders(found, in_table)
    if not rows:
        none = "Crossovers: no two mechanisms surely change their order on an axis in a figure shown"
        return [Note(none), *open_orders]
    about = (
        "Crossovers: where the order of two mechanisms changes on an axis, linear between its values. "
        f"{CERTAIN} {caption}"
    )
    return [Table(["which has less", "at", "between", "of"], rows, "", about), *open_orders]


def _open_orders(found: Found, in_table: Mapping[str, Address]) -> list[Block]:
    """Return in which figures shown means change their order and may do so by chance, and what would tell."""
    needed = [(in_table[name], runs) for name, runs in found.open_orders.items() if name in in_table]
    counts = [f"about {runs:.0f}" if math.isfinite(runs) else f"more than {MOST_NEEDED}" for _, runs in needed]
    told = [f"{_with_owner(address)} ({count})" for (address, _), count in zip(needed, counts, strict=True)]
    more = f", and {len(told) - _MOST_LISTED} more" if len(told) > _MOST_LISTED else ""
    text = f"{', '.join(told[:_MOST_LISTED])}{more}"
    means = "Means of mechanisms change their order, which may be chance, in (replications that would tell, -n):"
    return [Note(f"{means} {text}")] if told else []


def _crossover(row: Any, address: Address, found: Found) -> list[Cell]:
    half, confidence = (row.high - row.low) / 2.0, found.experiment.confidence
    return [
        f"{_with_owner(address)}: {row.before} below, {row.after} above",
        Estimate(row.estimate, half, row.low, row.high, row.n, confidence, row.interval),
        f"{row.from_point:g} and {row.to_point:g}",
        f"{with_unit(row.axis, row.unit)}{f'; {row.held}' if row.held else ''}",
    ]


def _costs(found: Found, manifest: Mapping[str, Any]) -> list[str]:
    """Return what the costs of mechanisms rest on that are a factor, but for those of which the head tells."""
    firsts = {(point.label, point.values.get(PROTECTION)): point for point in reversed(found.points)}
    in_head = {text for model in manifest["models"] for text in model["costs"]}
    texts = dict.fromkeys(text for point in reversed(firsts.values()) for text in cost_notes(point.model.spec))
    return [f"Costs of {text}" for text in texts if text not in in_head]


def _about(found: Found) -> list[str]:
    """Say what short names mean, which of several copies are shown, and how long runs are."""
    axes = found.points.sources[0].axes
    lines = [f"{name}: {_MEANINGS[name]}" for name in found.experiment.factors if axes[name].is_short]
    if not found.experiment.figures and any(_is_of_first(address, found) for address in shown(found).values()):
        lines.append("Of several copies of a domain the table has the first; results.csv has all")
    if not found.experiment.figures and any(address.is_of_copy for address in found.addresses.values()):
        lines.append("Of several copies of a domain the table has all together; results.csv has each")
    if all(base.spec.phased is None for base in found.bases):
        lines.append(_times(found))
    return lines


def _times(found: Found) -> str:
    measured, warm_up = (
        ", ".join(DURATION.format(time_ns) for time_ns in dict.fromkeys(times_ns))
        for times_ns in zip(*(point.times_ns for point in found.points), strict=True)
    )
    tests = "its tests, at most " if found.bases[0].spec.tests_ns else ""
    return (
        f"Each replication measures {tests}{measured} after {warm_up} of warm-up (measure.duration, measure.warm_up); "
        "more of it, or more --replications, sharpen the intervals"
    )


def _findings(found: Found) -> list[str]:
    lines = [f"The first {_MOST_ROWS} points; results.csv has all."] if len(found.points) > _MOST_ROWS else []
    refused = [f"Refused: {name}: {why}" for name, why in found.refusals.items()]
    lines += refused[:_MOST_LISTED]
    if more := refused[_MOST_LISTED:]:
        lines.append(f"Refused: {counted(len(more), 'more point')}")
    if found.unreached:
        listed = "; ".join(found.points[number].name for number in found.unreached[:_MOST_LISTED])
        count = counted(len(found.unreached), "point")
        lines.append(f"Precision not reached within the most replications: {count}: {listed}")
    lines += of_no_run(without_value(found.experiment.figures, [*found.addresses.values()]))
    for variant, factor in found.without_effect():
        lines.append(f"{factor} changed nothing{f' under {variant}' if variant else ''}, to the last digit")
    return lines
