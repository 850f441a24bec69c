"""A study as blocks: what was asked, the figures of each point, and what they rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.head import not_fitted_notes
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.crossovers import numbers_of
from vftsim.study.sweep_grid import MOST_DRAWN
from vftsim.study.validity import not_covered, not_covered_line

if TYPE_CHECKING:
    from vftsim.study.design.study import StudyResult

_MOST_ROWS = 100
_MOST_LISTED = 10
_MOST_CHARTS = 4
"""Of figures, and of factors."""


def study_blocks(found: StudyResult) -> list[Block]:
    """Return the question, a table with a row for each point, and notes."""
    spec, addresses = found.spec, found.responses.addresses
    several = len({point.label for point in found.points}) > 1
    table: list[list[Cell]] = []
    for point in found.points[:_MOST_ROWS]:
        if not found.responses.done[point.number]:
            continue
        words = [*([point.label] if several else []), *(f"{name}={value}" for name, value in point.values.items())]
        figures: list[Cell] = [found.responses.estimate(point.number, address.text) for address in addresses]
        table.append([f"{point.number}: {', '.join(words) or point.label}", *figures])
    heads = ["point", *(_head(address.text, address.entry.unit) for address in addresses)]
    said = " ".join(spec.description.split())
    keys = dict.fromkeys(key for point in found.points for key in not_covered(point.model.spec))
    return [
        *([Note(line, warns=True)] if (line := not_covered_line([*keys])) else []),
        *not_fitted_notes(found.manifest["models"]),
        Answer(f"{spec.name}: {said + ' ' if said else ''}{len(found.points)} points, {found.finished} runs."),
        *_charts(found),
        Table(heads, table),
        *(Note(text) for text in _notes(found)),
    ]


def _charts(found: StudyResult) -> list[Chart]:
    """Return every figure over every factor that is a number: a dot a point, the other factors anywhere in theirs."""
    if len(found.points) > MOST_DRAWN:
        return []
    axes = {name: numbers_of([point.values[name] for point in found.points]) for name in found.points[0].values}
    varied = [(name, axis) for name, axis in axes.items() if axis is not None and len(set(axis[0])) > 1]
    charts = []
    for address in found.responses.addresses[:_MOST_CHARTS]:
        for name, (places, unit) in varied[:_MOST_CHARTS]:
            dots: dict[str, list[Point]] = {}
            for point in found.points:
                if (estimate := found.responses.estimate(point.number, address.text)) is not None:
                    dots.setdefault(point.label, []).append(Point.of(places[point.number], estimate))
            series = [Series(label, own, "dots") for label, own in dots.items()]
            title, x = f"{address.text} over {name}", f"{name} ({unit})" if unit else name
            charts.append(Chart(title, x, _head(address.text, address.entry.unit), series, scale=scale_of(series)))
    return charts


def _head(text: str, unit: str) -> str:
    return f"{text} ({unit})" if unit else text


def _notes(found: StudyResult) -> list[str]:
    notes = []
    if len(found.points) > _MOST_ROWS:
        notes.append(f"The first {_MOST_ROWS} points; results.csv has all.")
    if found.already:
        notes.append(f"{found.already} runs were on disk already.")
    for number, why in list(found.refused.items())[:_MOST_LISTED]:
        notes.append(f"Refused: point {number} ({found.points[number].name}): {why}")
    if found.unreached:
        listed = ", ".join(map(str, found.unreached[:_MOST_LISTED]))
        notes.append(f"Precision not reached within the most replications: points {listed}.")
    fewest = min((len(done) for done in found.responses.done if done), default=0)
    rests = "(x to y): lowest and highest replication, no interval" if fewest < FEWEST_RUNS else "± and [ ]: intervals"
    return [*notes, f"{fewest} replications or more of each point, the same random numbers at all. {rests}."]
