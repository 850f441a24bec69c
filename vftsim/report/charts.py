"""Charts of blocks drawn by matplotlib: as SVG for a page, as figure for a file or a notebook.

Equal charts give equal bytes: no pyplot, no clock, a fixed salt for the names of marks, matplotlib's own font.  Texts
stay texts, in the font of the page.  Colours of a page are its own variables, light or dark.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator, NullLocator

from vftsim.report.blocks import Bars, Chart, Series, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#1b6ca8", "#c04a30", "#33743d", "#7b4b94", "#946f00", "#555555", "#0b7d7f", "#a4243b")
INK, GRID, SHADE = "#1c2328", "#c9d0d6", "#cccccc"
_MARKERS = "osD^vP*X"
_WIDTH_IN, _HEIGHT_IN = 5.4, 3.3
_LONGEST_NAMES = 24
_MOST_TICKS = 9
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "svg.hashsalt": "vftsim",
    "font.size": 11,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.alpha": 0.4,
    "grid.linewidth": 0.7,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "axes.axisbelow": True,
}


def figure_of(charts: Sequence[Chart | Bars], columns: int = 1) -> Figure:
    """Return charts on one figure, as it is written into a file."""
    with mpl.rc_context({**_STYLE, "figure.facecolor": "white"}):
        rows = math.ceil(len(charts) / columns)
        figure = Figure(figsize=(_WIDTH_IN * 1.2 * columns, _HEIGHT_IN * 1.2 * rows), layout="constrained")
        FigureCanvasAgg(figure)
        places = figure.subplots(rows, columns, squeeze=False).ravel()
        for axes, chart in zip(places, charts, strict=False):
            draw(chart, axes)
            axes.set_title(chart.title, fontsize=11)
        for axes in places[len(charts) :]:
            axes.set_visible(False)
        return figure


def draw(chart: Chart | Bars, axes: Axes, *, with_legend: bool = True) -> None:
    """Draw a chart on axes."""
    _draw_bars(chart, axes) if isinstance(chart, Bars) else _draw_chart(chart, axes)
    labels = axes.get_legend_handles_labels()[1]
    if with_legend and len(labels) > 1:
        below: dict[str, Any] = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.16), "ncols": len(labels)}
        axes.legend(fontsize=8, frameon=False, **(below if isinstance(chart, Bars) else {}))


def empty_axes() -> Axes:
    """Return axes of a figure of its own."""
    figure = Figure(figsize=(_WIDTH_IN * 1.2, _HEIGHT_IN * 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    return figure.subplots()


def svg_of(chart: Chart | Bars, prefix: str) -> str:
    """Return a chart as SVG whose names begin with a prefix: several stand in one page.

    Lines and points are in groups named ``PREFIX-series-N``, as :func:`series_names` lists them.
    """
    with mpl.rc_context(_STYLE):
        height = _HEIGHT_IN if not _rows(chart) else max(1.2, 0.75 + 0.28 * _rows(chart))
        figure = Figure(figsize=(_WIDTH_IN, height))
        names = chart.names if isinstance(chart, Chart) else [label for label, _ in chart.rows]
        left_in = max(0.82 if isinstance(chart, Bars) or not names else 0.0, 0.25 + 0.085 * _longest(names))
        # Margins that fit the labels exactly would take longer to find than all the rest takes to draw.
        figure.subplots_adjust(left_in / _WIDTH_IN, 0.5 / height, 1.0 - 0.15 / _WIDTH_IN, 1.0 - 0.1 / height)
        draw(chart, figure.subplots(), with_legend=False)
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _for_a_page(out.getvalue().decode(), prefix)


def series_names(chart: Chart | Bars) -> list[tuple[str, bool]]:
    """Return the names of what a chart shows, and whether it is measured."""
    if isinstance(chart, Bars):
        return [(part, False) for part in chart.parts]
    return [(series.name, series.style == "measured") for series in chart.series]


def _rows(chart: Chart | Bars) -> int:
    return len(chart.rows) if isinstance(chart, Bars) else len(chart.names)


def _draw_bars(chart: Bars, axes: Axes) -> None:
    left, places = [0.0] * len(chart.rows), range(len(chart.rows))
    for number, part in enumerate(chart.parts):
        widths = [lengths[number] for _, lengths in chart.rows]
        bars = axes.barh(places, widths, left=left, color=COLORS[number % len(COLORS)], label=part, height=0.75)
        for bar in bars:
            bar.set_gid(f"series-{number}")
        left = [a + b for a, b in zip(left, widths, strict=True)]
    axes.set_yticks(list(places), [_shortened(label) for label, _ in chart.rows])
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlabel(chart.x)


def _draw_chart(chart: Chart, axes: Axes) -> None:
    _scale(chart, axes)
    for number, series in enumerate(chart.series):
        _draw_series(chart, series, number, axes)
    for value, text in chart.limits:
        (axes.axvline if chart.names else axes.axhline)(value, color=INK, linewidth=1.0, linestyle="--")
        if text and not chart.names:
            axes.annotate(text, (0.02, value), xycoords=("axes fraction", "data"), va="bottom", fontsize=9)
    for value, text in chart.at:
        axes.axvline(value, color=INK, linewidth=1.0, linestyle=":")
        axes.annotate(
            text, (value, 0.98), xycoords=("data", "axes fraction"), ha="right", va="top", fontsize=9, rotation=90
        )
    if chart.names:
        axes.set_yticks(range(len(chart.names)), [_shortened(name) for name in chart.names])
        axes.set_ylim(len(chart.names) - 0.5, -0.5)
        axes.set_xlabel(chart.y)
        return
    _shade(chart, axes)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    places = sorted({point.x for series in chart.series for point in series.points})
    gaps = {round(b - a, 9) for a, b in pairwise(places)}
    if len(gaps) == 1 and len(places) <= _MOST_TICKS:
        axes.set_xticks(places)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(round(value, 12))))


def _draw_series(chart: Chart, series: Series, number: int, axes: Axes) -> None:
    known = [point for point in series.points if math.isfinite(point.y)]
    xs, ys = [point.x for point in known], [point.y for point in known]
    if chart.names:
        xs, ys = ys, xs
    color, gid = COLORS[number % len(COLORS)], f"series-{number}"
    if series.style == "measured":
        made: list[Any] = axes.plot(xs, ys, "x", color=INK, label=series.name, markersize=7, markeredgewidth=2)
    elif series.style == "steps":
        made = axes.step(xs, ys, where="post", color=color, label=series.name)
    else:
        style = "" if series.style == "dots" else "-"
        marker = _MARKERS[number % len(_MARKERS)]
        made = axes.plot(xs, ys, marker + style, color=color, label=series.name, markersize=4.5, linewidth=1.5)
        made += _intervals(chart, known, color, axes)
    for artist in made:
        artist.set_gid(gid)


def _intervals(chart: Chart, points: Sequence[Any], color: str, axes: Axes) -> list[Any]:
    """Draw intervals: bars, and a band between them where a line goes through."""
    known = [point for point in points if math.isfinite(point.low) and math.isfinite(point.high)]
    if not known:
        return []
    places, lows, highs = ([getattr(point, what) for point in known] for what in ("x", "low", "high"))
    if chart.names:
        return [axes.hlines(places, lows, highs, color=color, linewidth=2.2, alpha=0.55)]
    found: list[Any] = [axes.vlines(places, lows, highs, color=color, linewidth=2.2, alpha=0.55)]
    if len(known) == len(points) > 1:
        found.append(axes.fill_between(places, lows, highs, color=color, alpha=0.13, linewidth=0))
    return found


def _scale(chart: Chart, axes: Axes) -> None:
    values = [y for series in chart.series for point in series.points for y in (point.y, point.low, point.high)]
    known = [y for y in values if math.isfinite(y)]
    axis = axes.xaxis if chart.names else axes.yaxis
    set_scale = axes.set_xscale if chart.names else axes.set_yscale
    if chart.scale == "log" and known and min(known) > 0.0:
        set_scale("log")
    elif chart.scale != "linear":
        smallest = min((abs(y) for y in known if y), default=1.0)
        set_scale("symlog", linthresh=10.0 ** math.floor(math.log10(max(smallest, 1e-3))))
    elif known and min(known) >= 0.0:
        (axes.set_xlim if chart.names else axes.set_ylim)(
            0.0, 1.07 * max([*known, *(y for y, _ in chart.limits)]) or 1.0
        )
    if chart.scale != "linear":
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(value)))
        axis.set_minor_locator(NullLocator())
    else:
        axis.set_major_formatter(FuncFormatter(lambda value, _: plain(round(value, 12))))


def _shade(chart: Chart, axes: Axes) -> None:
    """Shade what lies beyond the loads that the model was calibrated for."""
    if chart.within is None:
        return
    low, high = chart.within
    left, right = axes.get_xlim()
    places = [point.x for series in chart.series for point in series.points]
    low = low if min(places, default=low) < low else left
    high = high if max(places, default=high) > high else right
    for number, (begin, end) in enumerate(((left, low), (high, right))):
        if begin < end:
            span = axes.axvspan(max(begin, left), min(end, right), color=SHADE, alpha=0.35, linewidth=0, zorder=0)
            span.set_gid(f"shade-{number}")
    axes.set_xlim(left, right)


def _longest(names: Sequence[str]) -> int:
    return max((len(_shortened(name)) for name in names), default=0)


def _shortened(name: str) -> str:
    return name if len(name) <= _LONGEST_NAMES else f"…{name[-_LONGEST_NAMES + 1 :]}"


def _for_a_page(svg: str, prefix: str) -> str:
    """Return SVG without what a page has already, its colours as variables of the page, its names with a prefix."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<style[^>]*>.*?</style>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<!--.*?-->", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id|xlink:href|href)="(#?)([^"]+)"', rf'\1="\2{prefix}-\3"', svg)
    svg = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}-\1)", svg).replace("xlink:href", "href")
    svg = re.sub(r'id="([^"]*-(?:series|shade)-\d+)"', r'data-part="\1"', svg)
    svg = re.sub(r' xmlns:xlink="[^"]*"| (?:width|height)="[\d.]+pt"', "", svg)
    for number, color in enumerate(COLORS):
        svg = svg.replace(color, f"var(--c{number})")
    for color, name in ((INK, "ink"), (GRID, "grid"), (SHADE, "shade")):
        svg = svg.replace(color, f"var(--{name})")
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    svg = re.sub(r"(-?\d+\.\d{2})\d+", r"\1", svg)
    return re.sub(r"\s*\n\s*", " ", svg).strip()
