"""Figure of failovers: each as a bar of its parts, and the distribution of outages on the same axis."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from matplotlib.ticker import MaxNLocator

from vftsim.report.plots import new_figure
from vftsim.study.crash import PARTS, Failover

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from vftsim.study.failover import FailoverStudy

_COLORS = ("#999999", "#d55e00", "#0072b2", "#f0e442", "#009e73")
_NAMES = ("until the crash", "detection", "takeover", "announcement", "first packet")


def failover_figure(study: FailoverStudy) -> Figure:
    """Return the figure of a study: crashes as bars in order of outage, below them the share with an outage so long."""
    figure, (bars, steps) = new_figure(8.0, 6.5, rows=2)
    seen = sorted(study.recovered, key=lambda each: each.outage_s)
    total = len(study.failovers)
    back = f"{len(seen)} of {total} crashes survived"
    figure.suptitle(f"{study.model.name}: {study.mechanism}, {study.load}, {back}", fontsize=10)
    _draw_parts(bars, seen)
    _draw_shares(steps, [each.outage_s for each in seen], total)
    return figure


def _draw_parts(axes: Axes, seen: Sequence[Failover]) -> None:
    axes.set_ylabel("crash, by length of outage")
    if not seen:
        axes.set_yticks([])
        return
    left = [0.0] * len(seen)
    ranks = range(1, len(seen) + 1)
    for part, name, color in zip(PARTS, _NAMES, _COLORS, strict=True):
        widths = [float(getattr(each, part)) for each in seen]
        axes.barh(ranks, widths, left=left, color=color, label=name, height=0.8)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    # Above the axes: inside, it would lie on the bars.
    axes.legend(fontsize=8, ncols=len(PARTS), loc="lower center", bbox_to_anchor=(0.5, 1.0), frameon=False)


def _draw_shares(axes: Axes, outages_s: Sequence[float], total: int) -> None:
    times_s = [0.0, *outages_s, 1.05 * max(outages_s, default=1.0 / 1.05)]
    shares = [rank / total for rank in (*range(len(outages_s) + 1), len(outages_s))]
    axes.step(times_s, shares, where="post", color="black")
    axes.set_xlabel("time since the last packet (s); outage as clients see it (s)")
    axes.set_ylabel("share of crashes")
    axes.set_ylim(0.0, 1.02)
    axes.set_xlim(0.0, math.nextafter(times_s[-1], math.inf))
