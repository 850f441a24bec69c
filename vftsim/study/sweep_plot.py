"""The plot of a sweep: figures over one axis, a line a setting, a column a value of another."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from vftsim.outcome import Figure as Declared
from vftsim.outcome.declare import Delays, Quotient
from vftsim.study.crossovers import numbers_of
from vftsim.study.figures.names import Address
from vftsim.study.figures.tables import short_owner
from vftsim.study.sweep_grid import AnyAxis, Grid

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

_NAMES = {"scheduler", "protection"}
"""Axes whose values speak for themselves."""
_COLORS = ("#1b6ca8", "#c8553d", "#3a7d44", "#7b4b94", "#b58900", "#444444", "#0f8b8d", "#a4243b", "#d17a98")
_MARKERS = "osD^vP*Xh"
_MOST_COLUMNS = 5
_SMALL_PERCENT = 0.1


def sweep_figure(grid: Grid, results: pd.DataFrame, shown: Mapping[str, Address]) -> Figure | None:
    """Return the plot of some figures of a sweep; None where there is no axis to draw over."""
    wide = [axis for axis in grid.axes if len(axis.values) > 1]
    if not wide or results.empty or not shown:
        return None
    # Drawn over the axis with most values; the last of those, which varies fastest in the table.
    over = max(reversed(wide), key=lambda axis: len(axis.values))
    rest = [axis for axis in wide if axis is not over]
    several = len(grid.schedulers) > 1 or len(grid.protections) > 1
    facet = _facet(rest, several)
    lines = [
        *(["scheduler"] if len(grid.schedulers) > 1 else []),
        *(["protection"] if len(grid.protections) > 1 else []),
        *(axis.name for axis in rest if axis is not facet),
    ]
    columns = facet.values if facet else ("",)
    figure = Figure(figsize=(max(6.0, 3.4 * len(columns)), 0.2 + 3.0 * len(shown)), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(shown), len(columns), squeeze=False, sharex=True, sharey="row")
    for row, (metric, address) in enumerate(shown.items()):
        of_metric = results[results["metric"] == metric]
        for column, value in enumerate(columns):
            ax = panels[row, column]
            here = of_metric[of_metric[facet.name] == value] if facet else of_metric
            _draw(ax, here, over, lines)
            _scale(ax, address.entry.figure, bool((here["estimate"] > 0).any()))
            if row == 0 and facet:
                ax.set_title(f"{facet.name} = {value}", fontsize=10)
            if column == 0:
                ax.set_ylabel(f"{short_owner(address.owner)}: {address.entry.words}", fontsize=8)
            if row == len(shown) - 1:
                ax.set_xlabel(over.name)
    handles, labels = panels[0, 0].get_legend_handles_labels()
    if len(labels) > 1:
        figure.legend(handles, labels, loc="outside upper center", ncols=min(len(labels), 5), fontsize=8)
    return figure


def _facet(rest: list[AnyAxis], several_schedulers: bool) -> AnyAxis | None:
    """Return the axis that gets a column a value: one that is not needed to tell the lines apart."""
    fit = [axis for axis in rest if len(axis.values) <= _MOST_COLUMNS]
    if not fit or (len(rest) == 1 and not several_schedulers):
        return None
    return fit[-1]


def _draw(ax: Axes, rows: pd.DataFrame, over: AnyAxis, lines: list[str]) -> None:
    position = _positions(over)
    groups: Any = rows.groupby(lines, sort=False) if lines else [((), rows)]
    for number, (key, group) in enumerate(groups):
        points = group.assign(x=[position[v] for v in group[over.name]]).sort_values("x")
        below = (points["estimate"] - points["low"]).clip(lower=0).fillna(0.0)
        above = (points["high"] - points["estimate"]).clip(lower=0).fillna(0.0)
        names = key if isinstance(key, tuple) else (key,)
        label = ", ".join(v if n in _NAMES else f"{n} {v}" for n, v in zip(lines, names, strict=True))
        ax.errorbar(
            points["x"],
            points["estimate"],
            [below, above],
            label=label or None,
            capsize=3,
            markersize=4.5,
            linewidth=1.2,
            marker=_MARKERS[number % len(_MARKERS)],
            color=_COLORS[number % len(_COLORS)],
        )
    numbers = [position[v] for v in over.values]
    ax.set_xticks(numbers, list(over.values), rotation=0 if sum(map(len, over.values)) < 25 else 30)
    ax.grid(alpha=0.25)


def _positions(axis: AnyAxis) -> dict[str, float]:
    """Return where values stand: at their number if all are numbers or quantities, else one after the other."""
    found = numbers_of(axis.values)
    places = range(len(axis.values)) if found is None else found[0]
    return {value: float(place) for value, place in zip(axis.values, places, strict=True)}


def _scale(ax: Axes, figure: Declared, is_positive: bool) -> None:
    """Choose the scale: of delays logarithmic, of shares that should be small so above a tenth of a percent."""
    if isinstance(figure, Quotient) and figure.better == "lower" and figure.unit == "%":
        ax.set_yscale("symlog", linthresh=_SMALL_PERCENT)
        ax.set_ylim(-_SMALL_PERCENT / 5, 100)
        ax.set_yticks([0, 0.1, 1, 10, 100], ["0", "0.1", "1", "10", "100"])
    elif isinstance(figure, Delays) and is_positive:
        ax.set_yscale("log")
    elif ax.get_yscale() != "log":
        ax.set_ylim(bottom=0)
