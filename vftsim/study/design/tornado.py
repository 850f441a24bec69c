"""The tornado plot: what each factor does to a figure by itself, and its share of the variance beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.report.plots import COLORS
from vftsim.study.design.plot import panels_beside

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vftsim.study.design.sensitivity import Sensitivity


def tornado(found: Sensitivity) -> Figure:
    """Return the plot, the most important factor on top."""
    order = list(reversed(found.effects))
    figure, (left, right) = panels_beside(9.5, 1.2 + 0.38 * len(order))
    own = found.own.mean
    for place, one in enumerate(order):
        for end, color in ((one.low, COLORS[0]), (one.high, COLORS[1])):
            if end is not None:
                left.barh(place, end.mean, left=own, height=0.6, color=color)
        if one.total is not None:
            reach = [[max(one.total.value - one.total.low, 0.0)], [max(one.total.high - one.total.value, 0.0)]]
            right.barh(place, max(one.total.value, 0.0), height=0.6, color=COLORS[2], xerr=reach)
    names = [f"{one.name}\n{one.span.at(0.0)} to {one.span.at(1.0)}" for one in order]
    left.set_yticks(range(len(order)), names, fontsize=7)
    left.axvline(own, color="black", linewidth=0.8)
    left.set_xlabel(f"{found.figure} ({found.unit}): low end blue, high end red", fontsize=8)
    right.set_yticks([])
    right.set_xlim(left=0.0)
    right.set_xlabel("total share of the variance", fontsize=8)
    return figure
