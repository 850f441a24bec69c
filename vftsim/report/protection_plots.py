"""Figures of failovers: one timeline, and the distribution of outages."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from vftsim.report.plots import new_figure
from vftsim.study.crash import PARTS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from vftsim.study.failover import FailoverStudy

_COLORS = ("#999999", "#c8553d", "#1b6ca8", "#d9a441", "#3a7d44")
_NAMES = ("before the crash", "detection", "takeover", "announcement", "first packet")


def failover_figure(study: FailoverStudy) -> Figure:
    """Return the figure of a study: every crash as a bar of its parts in order of outage, and the outages' steps."""
    figure, (bars, steps) = new_figure(8.0, 6.5, rows=2)
    seen = sorted((each for each in study.failovers if math.isfinite(each.outage_s)), key=lambda each: each.outage_s)
    left = [0.0] * len(seen)
    for part, name, color in zip(PARTS, _NAMES, _COLORS, strict=True):
        widths = [0.0 if math.isnan(value) else value for value in (getattr(each, part) for each in seen)]
        bars.barh(range(len(seen)), widths, left=left, color=color, label=name, height=0.8)
        left = [a + b for a, b in zip(left, widths, strict=True)]
    bars.set_xlabel("s")
    bars.set_ylabel("crashes, by outage")
    bars.set_title(f"{study.model.name}: {study.mechanism}, {study.load}", fontsize=10)
    bars.legend(fontsize=8, ncols=3)
    outages = [each.outage_s for each in seen]
    steps.step(outages, [(k + 1) / max(len(study.failovers), 1) for k in range(len(outages))], where="post")
    steps.set_xlabel("outage as clients see it (s)")
    steps.set_ylabel("share of crashes")
    steps.set_ylim(0.0, 1.02)
    return figure
