"""The figure of a study: every response over every factor that is a number."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vftsim.report.plots import COLORS
from vftsim.study.crossovers import numbers_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from vftsim.study.design.study import StudyResult

_MOST_PANELS = 4


def study_figure(found: StudyResult) -> Figure | None:
    """Return the figure; None where no factor is a number that varies."""
    names = list(found.points[0].values)
    axes = {name: numbers_of([point.values[name] for point in found.points]) for name in names}
    varied = [(name, axis) for name, axis in axes.items() if axis is not None and len(set(axis[0])) > 1][:_MOST_PANELS]
    addresses = found.responses.addresses[:_MOST_PANELS]
    if not varied or not addresses:
        return None
    figure = Figure(figsize=(3.6 * len(varied) + 1.0, 2.6 * len(addresses) + 0.6), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(addresses), len(varied), squeeze=False, sharey="row")
    labels = list(dict.fromkeys(point.label for point in found.points))
    for row, address in enumerate(addresses):
        for column, (name, (places, unit)) in enumerate(varied):
            ax = panels[row, column]
            for color, label in zip(COLORS, labels, strict=False):
                shown = [
                    (places[point.number], estimate)
                    for point in found.points
                    if point.label == label
                    and (estimate := found.responses.estimate(point.number, address.text)) is not None
                ]
                ax.errorbar(
                    [x for x, _ in shown],
                    [e.mean for _, e in shown],
                    [[_reach(e.mean - e.low) for _, e in shown], [_reach(e.high - e.mean) for _, e in shown]],
                    fmt="o",
                    markersize=3.5,
                    linewidth=0.8,
                    color=color,
                    label=label,
                )
            if row == len(addresses) - 1:
                ax.set_xlabel(f"{name} ({unit})" if unit else name)
            if column == 0:
                ax.set_ylabel(f"{address.text}\n({address.entry.unit})", fontsize=8)
    if len(labels) > 1:
        panels[0, 0].legend(fontsize=8)
    return figure


def _reach(value: float) -> float:
    return value if math.isfinite(value) and value > 0.0 else 0.0


def panels_beside(width_in: float, height_in: float, count: int = 2) -> tuple[Figure, list[Axes]]:
    """Return an empty figure that needs no display, and its axes from left to right."""
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, list(figure.subplots(1, count, squeeze=False)[0])
