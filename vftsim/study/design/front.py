"""The figure of a decision: every configuration that was looked at, cost against each objective."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.report.plots import COLORS
from vftsim.study.design.candidates import MET, MISSED, OPEN
from vftsim.study.design.plot import panels_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vftsim.study.design.decision import Decision

_LOOKS = {MET: ("o", COLORS[2]), MISSED: ("x", COLORS[1]), OPEN: (".", COLORS[5])}


def front_figure(found: Decision) -> Figure:
    """Return the figure: a panel for each objective, the choice ringed."""
    objectives = found.request.objectives
    figure, panels = panels_beside(4.6 * len(objectives) + 0.6, 3.6, len(objectives))
    for ax, one in zip(panels, objectives, strict=True):
        for verdict, (marker, color) in _LOOKS.items():
            shown = [each for each in found.candidates if each.verdict == verdict and one.figure in each.figures]
            if shown:
                places = [each.figures[one.figure].mean for each in shown]
                ax.plot([each.cost for each in shown], places, marker, color=color, label=verdict, markersize=5)
        front = found.fronts[one.figure]
        ax.step(
            [each.cost for each in front],
            [each.figures[one.figure].mean for each in front],
            where="post",
            color=COLORS[0],
            linewidth=0.9,
        )
        if found.winner is not None:
            at = found.winner.figures[one.figure].mean
            ax.plot([found.winner.cost], [at], "o", markersize=12, markerfacecolor="none", color="black")
        ax.axhline(one.value, color="black", linewidth=0.8, linestyle="--")
        ax.set_xlabel(f"cost ({found.request.prices.unit})" if found.request.prices.unit else "cost")
        ax.set_ylabel(one.figure, fontsize=8)
        ax.legend(fontsize=8)
    return figure
