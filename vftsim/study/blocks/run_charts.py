"""Charts of replications of one model: what its parts declare over the load, beside each other, and over time."""

import math
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Literal

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.labs.dataset import Observations
from vftsim.labs.ramps import shipped_observations
from vftsim.outcome.declare import Delays, Quotient
from vftsim.outcome.declare import Series as Sampled
from vftsim.report.blocks import Chart, Point, Series, dot_chart, with_unit
from vftsim.stats import DelayHistogram, Estimate
from vftsim.study.blocks.head import within
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Row, Summary, short_owner

_MOST_CHARTS = 8
_WIDE = 30.0
"""From this ratio of largest to smallest on, an axis is logarithmic."""
_TAIL = "p95"
_MOST_SLICES = 240
_FEWEST_BEYOND = 10
Known = tuple[Address, Estimate]


def run_charts(summary: Summary, spec: ModelSpec, records: Sequence[tuple[int, RunRecord]]) -> list[Chart]:
    """Return the figures that lead, then what is behind them: their parts, distributions, samples over time."""
    first = [*_over_load(summary, spec, _as_leading), *_side_by_side(summary)]
    behind = [*_over_load(summary, spec, _as_part), *_over_load(summary, spec, _as_tail)]
    return [*first[:_MOST_CHARTS], *behind, *_distributions(records), *_over_time(*records[0])]


def words(address: Address) -> str:
    """Return what a figure is called, with the part that it is of."""
    return " ".join((address.entry.figure.label, *address.entry.path[1:]))


def leading(summary: Summary, phase: str = "") -> list[Known]:
    """Return the figures of the whole run, or of a phase, that lead and of which something is known."""
    addresses = [address for address in summary.addresses if address.phase == phase and address.leads]
    return [(address, e) for address in addresses if (e := summary.estimate(address.text)) is not None]


def _as_leading(address: Address) -> tuple[str, str, str] | None:
    """Return title, axis and line of a figure that leads."""
    label, part = address.entry.figure.label, " ".join(address.entry.path[1:])
    return (label, label, part or label) if address.leads else None


def _as_part(address: Address) -> tuple[str, str, str] | None:
    """Return title, axis and line of a part of a share that leads."""
    figure, part = address.entry.figure, " ".join(address.entry.path[1:])
    is_part = isinstance(figure, Quotient) and figure.headline and part and not address.leads
    return (f"{figure.label}, of each part", figure.label, part) if is_part else None


def _as_tail(address: Address) -> tuple[str, str, str] | None:
    """Return title, axis and line of the tail of any delay."""
    is_tail = isinstance(address.entry.figure, Delays) and address.entry.path[1:] == (_TAIL,)
    return (f"delays, {_TAIL}", _TAIL, address.entry.figure.label) if is_tail else None


def _over_load(
    summary: Summary, spec: ModelSpec, named: Callable[[Address], tuple[str, str, str] | None]
) -> Iterator[Chart]:
    """Yield charts over the load of the steps, by the title, the axis and the line that each figure belongs to."""
    groups: dict[tuple[str, str, str], dict[str, list[Row]]] = {}
    for row in summary.rows.values():
        is_step = row.address.phase and row.phase.load is not None and row.phase.name.startswith("step_")
        if is_step and (titles := named(row.address)) is not None:
            groups.setdefault((row.address.owner, *titles[:2]), {}).setdefault(titles[2], []).append(row)
    measured = shipped_observations(spec.measured.system)
    for (owner, title, axis), lines in groups.items():
        first = next(iter(lines.values()))[0]
        series = [Series(name, points) for name, rows in lines.items() if len(points := _points(summary, rows)) > 1]
        if first.address.leads:
            of_labs = (_measured(name, rows[0].address, measured) for name, rows in lines.items())
            series += [each for each in of_labs if each.points]
        if series:
            yield Chart(
                f"{title}, {owner}",
                "load asked for (/s)",
                with_unit(axis, first.address.entry.unit),
                series,
                _limits(first),
                within(spec),
                scale_of(series),
            )


def _measured(name: str, address: Address, observations: Observations) -> Series:
    """Return what was measured on the real system of a figure, by the names that a lab has for it."""
    short = address.entry.figure.short
    known_as = (
        {f"{short}/{'/'.join(address.entry.path[1:])}", short.lower(), f"{short.lower()}/global"} if short else ()
    )
    points = [
        Point(observations[phase, "load"], value)
        for (phase, quantity), value in observations.items()
        if quantity in known_as and (phase, "load") in observations and phase.startswith("step_")
    ]
    return Series(f"measured {name}" if len(address.entry.path) > 1 else "measured", points, "measured")


def _limits(row: Row) -> list[tuple[float, str]]:
    """Return what a figure is judged by, if its declaration names a limit."""
    name, unit = row.address.entry.figure.limit, row.address.entry.unit
    limit = getattr(row.phase.outcomes[row.address.owner], name) if name else None
    return [] if limit is None else [(limit, f"limit {limit:g} {unit}".rstrip())]


def _points(summary: Summary, rows: Sequence[Row]) -> list[Point]:
    estimates = [(row.phase.load, summary.estimate(row.address.text)) for row in rows]
    return [Point.of(load, e) for load, e in estimates if load is not None and e is not None]


def _side_by_side(summary: Summary) -> list[Chart]:
    """Return a chart of each figure that leads at several places, such as the CPU of every domain."""
    groups: dict[tuple[str, str], list[Known]] = {}
    for address, e in leading(summary):
        figure_words = words(address)
        groups.setdefault((figure_words, address.entry.unit), []).append((address, e))
    charts = []
    for (figure_words, unit), estimates in groups.items():
        if len(estimates) > 1:
            names = [address.owner.partition(".")[2] or address.owner for address, _ in estimates]
            title = f"{figure_words[:1].upper()}{figure_words[1:]}"
            charts.append(
                dot_chart(title, with_unit(figure_words, unit), names, {figure_words: [e for _, e in estimates]})
            )
    return charts


def _distributions(records: Sequence[tuple[int, RunRecord]]) -> list[Chart]:
    """Return how many of the delays that lead in a run without phases are longer than a time, all replications in one.

    A line is straight where the tail is exponential, and ends where few delays tell.  Where some end far beyond others
    they are told apart by ratios instead.
    """
    if any(phase.name for phase in records[0][1].phases):
        return []
    pooled: dict[str, DelayHistogram] = {}
    for _, record in records:
        for owner, outcome in record.whole.outcomes.items():
            for figure in () if owner in record.of_copies else outcome.declared.values():
                if isinstance(figure, Delays) and figure.headline and figure.held(outcome).count:
                    name = f"{short_owner(owner)}, {figure.label}"
                    pooled.setdefault(name, DelayHistogram()).merge(figure.held(outcome))
    percents = [0.0, *(100.0 - 100.0 * 10 ** (-k / 10) for k in range(51))]
    series = []
    for name, delays in pooled.items():
        resolved = [percent for percent in percents if delays.samples_beyond(percent) >= _FEWEST_BEYOND]
        points = [Point(delays.percentile(percent) / 1e6, 100.0 - percent) for percent in resolved]
        series.append(Series(name, points, "curve"))
    places = [[point.x for point in each.points] for each in series if each.points]
    ends, least = sorted(map(max, places)), min(map(min, places), default=0.0)
    x_scale: Literal["linear", "log"] = "log" if least > 0.0 and ends[-1] > _WIDE * ends[0] else "linear"
    chart = Chart("Delays longer than this", "delay (ms)", "share (%)", series, scale="log", x_scale=x_scale)
    return [chart] if series else []


def _over_time(number: int, record: RunRecord) -> list[Chart]:
    """Return samples of one replication over simulated time: means of slices between their lowest and highest."""
    sampled: dict[str, tuple[Sampled, list[list[tuple[float, float]]]]] = {}
    for phase in record.phases:
        for owner, outcome in phase.outcomes.items():
            for figure in outcome.declared.values():
                if isinstance(figure, Sampled) and figure.drawn and (samples := figure.held(outcome)):
                    every_ns = getattr(outcome, figure.period)
                    times_s = ((phase.begin_ns + (n + 1) * every_ns) / 1e9 for n in range(len(samples)))
                    title = f"{figure.label}, {short_owner(owner)}, replication {number}"
                    sampled.setdefault(title, (figure, []))[1].append(list(zip(times_s, samples, strict=True)))
    charts = []
    for title, (figure, stretches) in sampled.items():
        curve = Series(figure.label, _sliced(stretches), "curve")
        charts.append(Chart(title, "simulated time (s)", f"{figure.label} ({figure.unit})", [curve]))
    return charts


def _sliced(stretches: Sequence[Sequence[tuple[float, float]]]) -> list[Point]:
    """Return samples in slices, so few that a chart can show them, and a gap behind each stretch."""
    size = math.ceil(sum(map(len, stretches)) / _MOST_SLICES)
    points = []
    for stretch in stretches:
        for first in range(0, len(stretch), size):
            times_s, values = zip(*stretch[first : first + size], strict=True)
            middle_s, mean = (fmean(each) for each in (times_s, values))
            points.append(Point(middle_s, mean, min(values), max(values)))
        points.append(Point(stretch[-1][0], math.nan))
    return points


def scale_of(series: Sequence[Series]) -> Literal["linear", "log", "symlog"]:
    """Return the scale on which all points of a chart can be told apart."""
    values = [abs(point.y) for each in series for point in each.points if math.isfinite(point.y)]
    some = [value for value in values if value > 0.0]
    if not some or max(some) < _WIDE * min(some):
        return "linear"
    return "log" if len(some) == len(values) else "symlog"
