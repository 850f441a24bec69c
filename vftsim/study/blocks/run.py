"""What replications of one model have measured, as blocks: charts and cards of the figures that its parts declare."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

from vftsim.composition.model import ModelSpec
from vftsim.labs.dataset import Observations
from vftsim.labs.ramps import shipped_observations
from vftsim.outcome.declare import Verdict
from vftsim.report.blocks import Answer, Block, Card, Cards, Chart, Note, Point, Series
from vftsim.report.blocks import in_words as words_of
from vftsim.stats import Estimate
from vftsim.study.blocks.head import INTERVALS, head, missing_notes, outside_notes, unseen, within
from vftsim.study.figures.blocks import every_phase_table, figures_table, phase_table
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Row, Summary
from vftsim.study.validity import outside_phases

if TYPE_CHECKING:
    from vftsim.stats import ReplicationResult
    from vftsim.study.results import RunResult

_MOST_CARDS = 6
_MOST_CHARTS = 8
_MOST_SAID = 3
_WIDE = 30.0
"""From this ratio of largest to smallest on, an axis is logarithmic."""
_Found = tuple[Address, Estimate]


def run_blocks(result: RunResult, everything: bool = False) -> list[Block]:
    """Return what was measured: charts and cards, the figures of phases and of the whole run."""
    summary, spec = result.figures_found, result.model.spec
    marks = outside_phases(spec, result.records) or ()
    tables = [phase_table(summary, marks), figures_table(summary, everything=everything)]
    if everything:
        tables += every_phase_table(summary, marks)
    n = len(result.records)
    return [
        *head(result.manifest["models"], result.manifest["seed"]),
        run_answer(result),
        *run_charts(result),
        *(table for table in tables if table.rows),
        *(outside_notes(result.model) if marks else []),
        Note(f"{n} replications, seed {result.manifest['seed']}. {INTERVALS}{unseen(n)}"),
        *_mixed_notes(summary),
        *missing_notes(result.missing),
        *_precision_notes(result.precision),
    ]


def _mixed_notes(summary: Summary) -> list[Note]:
    """Return in how many runs a step went beyond the limit, of steps in which some did and others did not."""
    verdicts = [row for row in summary.rows.values() if isinstance(row.address.entry.figure, Verdict)]
    beyond = [
        (row.phase.name, e)
        for row in verdicts
        if row.address.phase in summary.mixed and (e := summary.estimate(row.address.text)) is not None
    ]
    return [
        Note(
            f"{phase}: {round(e.mean * e.n / 100)} of {e.n} runs beyond the limit, "
            f"{e.low:.2g} to {e.high:.2g} % of all (binomial interval, at least 95 %, Clopper and Pearson); "
            "its figures are means of two kinds of runs, without interval",
            warns=True,
        )
        for phase, e in beyond
        if e.mean not in {0.0, 100.0}
    ]


def _precision_notes(found: ReplicationResult | None) -> list[Note]:
    """Return whether a precision was reached, and with how many replications."""
    if found is None:
        return []
    reached = "reached with" if found.reached else "not reached with"
    figures = ", ".join(f"{name} = {words_of(e)}" for name, e in found.estimates.items())
    advice = "" if found.reached else "; more --replications, or a longer --scale"
    return [Note(f"Precision {reached} {found.n} replications: {figures}{advice}", warns=not found.reached)]


def run_answer(result: RunResult) -> Answer:
    """Return the first figures that lead, in words."""
    leading = _leading(result.figures_found)
    texts = [
        f"{address.owner.rpartition('.')[2]}: {_words(address)} {words_of(e, address.entry.unit)}"
        for address, e in leading[:_MOST_SAID]
    ]
    many = "replication" if len(result.records) == 1 else "replications"
    asked = f"What do {len(result.records)} {many} of {result.model.name} show?"
    return Answer(texts[0] if texts else "nothing that leads", asked, "; ".join(texts[1:]))


def run_charts(result: RunResult) -> list[Block]:
    """Return the figures that lead: those of the whole run as cards, those of phases over the load."""
    summary = result.figures_found
    cards = [
        Card(f"{address.owner}: {_words(address)}", e, address.entry.unit)
        for address, e in _leading(summary)[:_MOST_CARDS]
    ]
    charts = [*_over_load(summary, result.model.spec), *_side_by_side(summary)]
    return [*([Cards(cards)] if cards else []), *charts[:_MOST_CHARTS]]


def _words(address: Address) -> str:
    return " ".join((address.entry.figure.label, *address.entry.path[1:]))


def _leading(summary: Summary) -> list[_Found]:
    addresses = [address for address in summary.addresses if not address.phase and address.entry.leads]
    return [(address, e) for address in addresses if (e := summary.estimate(address.text)) is not None]


def _over_load(summary: Summary, spec: ModelSpec) -> list[Chart]:
    """Return a chart of each figure that leads in several phases, its statistics as lines."""
    groups: dict[tuple[str, str], dict[str, list[Row]]] = {}
    for row in summary.rows.values():
        address = row.address
        if address.phase and address.entry.leads and row.phase.load is not None and row.phase.name.startswith("step_"):
            name = " ".join(address.entry.path[1:]) or address.entry.figure.label
            figure = address.owner, address.entry.figure.label
            groups.setdefault(figure, {}).setdefault(name, []).append(row)
    charts, seen = [], shipped_observations(spec.measured.system)
    for (owner, label), lines in groups.items():
        first = next(iter(lines.values()))[0]
        series = [Series(name, points) for name, rows in lines.items() if len(points := _points(summary, rows)) > 1]
        series += [each for name, rows in lines.items() if (each := _measured(name, rows[0].address, seen)).points]
        if series:
            unit = first.address.entry.unit
            axis = f"{label} ({unit})" if unit else label
            charts.append(
                Chart(
                    f"{label}, {owner}",
                    "load asked for (/s)",
                    axis,
                    series,
                    _limits(first),
                    within(spec),
                    scale_of(series),
                )
            )
    return charts


def _measured(name: str, address: Address, seen: Observations) -> Series:
    """Return what was measured on the real system of a figure, by the names that a lab has for it."""
    short = address.entry.figure.short
    known_as = (
        {f"{short}/{'/'.join(address.entry.path[1:])}", short.lower(), f"{short.lower()}/global"} if short else ()
    )
    points = [
        Point(seen[phase, "load"], value)
        for (phase, quantity), value in seen.items()
        if quantity in known_as and (phase, "load") in seen and phase.startswith("step_")
    ]
    return Series(f"measured {name}" if len(address.entry.path) > 1 else "measured", points, "measured")


def _limits(row: Row) -> list[tuple[float, str]]:
    """Return what a figure is judged by, if its declaration names a limit."""
    name, unit = row.address.entry.figure.limit, row.address.entry.unit
    limit = getattr(row.phase.outcomes[row.address.owner], name) if name else None
    return [] if limit is None else [(limit, f"limit {limit:g} {unit}".rstrip())]


def _points(summary: Summary, rows: Sequence[Row]) -> list[Point]:
    found = [(row.phase.load, summary.estimate(row.address.text)) for row in rows]
    return [Point.of(load, e) for load, e in found if load is not None and e is not None]


def _side_by_side(summary: Summary) -> list[Chart]:
    """Return a chart of each figure that leads at several places, such as the CPU of every domain."""
    groups: dict[tuple[str, str], list[_Found]] = {}
    for address, e in _leading(summary):
        words = _words(address)
        groups.setdefault((words, address.entry.unit), []).append((address, e))
    charts = []
    for (words, unit), own in groups.items():
        if len(own) > 1:
            series = [Series(words, [Point.of(float(place), e) for place, (_, e) in enumerate(own)], "dots")]
            names = [address.owner.partition(".")[2] or address.owner for address, _ in own]
            title = f"{words[:1].upper()}{words[1:]}"
            charts.append(Chart(title, "", f"{words} ({unit})" if unit else words, series, names=names))
    return charts


def scale_of(series: Sequence[Series]) -> Literal["linear", "log", "symlog"]:
    """Return the scale on which all points of a chart can be told apart."""
    values = [abs(point.y) for each in series for point in each.points if math.isfinite(point.y)]
    some = [value for value in values if value > 0.0]
    if not some or max(some) < _WIDE * min(some):
        return "linear"
    return "log" if len(some) == len(values) else "symlog"
