"""Charts of blocks drawn by matplotlib: as SVG for a page, as figure for a file or a notebook.

Equal charts give equal bytes: no pyplot, no clock, a fixed salt for the names of marks, matplotlib's font.  Texts
stay texts, in the font of the page.  Colours of a page are its own variables, light or dark.
"""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from vftsim.report.blocks import Bars, Chart, Series
from vftsim.stats.estimate import plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = ("#1b6ca8", "#c04a30", "#33743d", "#7b4b94", "#946f00", "#555555", "#0b7d7f", "#a4243b")
INK, GRID, SHADE, PAPER = "#1c2328", "#c9d0d6", "#cccccc", "#fefefe"
_MARKERS = dict(zip("osD^vP*X", "\u25cf\u25a0\u25c6\u25b2\u25bc\u271a\u2605\u2716", strict=True))
_MEASURED = {"x": "\u00d7", "+": "+"}
"""Marks of what is simulated and of what is measured, and the characters like them."""
_WIDTH_IN, _HEIGHT_IN = 5.4, 3.3
_LEFT_IN, _RIGHT_IN, _NAMES_IN, _LETTER_IN = 0.95, 0.25, 0.19, 0.085
_LONGEST_NAMES = 24
_MOST_TICKS = 9
_WIDE, _NARROW = 1_000.0, 30.0
_BEHIND = {"facecolor": PAPER, "edgecolor": "none", "alpha": 0.75, "pad": 1.0}
"""What is behind a text that stands among lines."""
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


_LACKING = re.compile(r"Glyph (\d+) ")
"""How matplotlib's warning of a character begins that its font does not have."""


class ChartWarning(UserWarning):
    """A chart in a file cannot show a character of a name."""


@contextmanager
def saying_boxes() -> Iterator[None]:
    """Warn once of all characters in whose place a figure that is written inside has boxes, not of each."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    matches = [_LACKING.match(str(each.message)) for each in caught]
    if lacking := dict.fromkeys(chr(int(each[1])) for each in matches if each):
        text = f"charts that are files have boxes for {', '.join(lacking)}, which their font lacks; a page shows them"
        warnings.warn(text, ChartWarning, stacklevel=3)
    for each in (each for each, glyph in zip(caught, matches, strict=True) if not glyph):
        warnings.warn_explicit(each.message, each.category, each.filename, each.lineno)


def figure_of(charts: Sequence[Chart | Bars], columns: int = 1) -> Figure:
    """Return charts on one figure, as it is written into a file: each below its title and the names of its lines."""
    with mpl.rc_context({**_STYLE, "figure.facecolor": "white"}):
        rows = [charts[first : first + columns] for first in range(0, len(charts), columns)]
        heights = [max(_height_in(chart) + _head_in(chart) for chart in row) for row in rows]
        figure = Figure(figsize=(_WIDTH_IN * min(columns, len(charts)), sum(heights)))
        FigureCanvasAgg(figure)
        for number, row in enumerate(rows):
            for column, chart in enumerate(row):
                draw(chart, _placed(chart, figure, column * _WIDTH_IN, sum(heights[:number])))
        return figure


def draw(chart: Chart | Bars, axes: Axes, *, with_head: bool = True) -> None:
    """Draw a chart on axes, with its title and the names of its lines above them."""
    _draw_bars(chart, axes) if isinstance(chart, Bars) else _draw_chart(chart, axes)
    if not with_head:
        return
    named, lines = series_names(chart), _lines_of_names(chart)
    if len(named) > 1:
        axes.legend(
            loc="lower left",
            bbox_to_anchor=(0.0, 1.0),
            borderaxespad=0.2,
            ncols=math.ceil(len(named) / lines),
            columnspacing=1.2,
            labelspacing=0.35,  # a line takes _NAMES_IN
            handlelength=1.6,
            fontsize=9,
            frameon=False,
        )
    above = 6 + 72 * _NAMES_IN * lines + 2 * bool(lines)
    axes.set_title(chart.title, fontsize=11, fontweight="bold", loc="left", pad=above)


def empty_figure(width_in: float, height_in: float) -> tuple[Figure, Axes]:
    figure = Figure(figsize=(width_in, height_in), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def svg_of(chart: Chart | Bars, prefix: str) -> str:
    """Return a chart as SVG whose names begin with a prefix: several stand in one page.

    Lines and points are in groups named ``PREFIX-series-N``, as :func:`series_names` lists them.
    """
    with mpl.rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", _LACKING.pattern)  # texts stay texts, which the page's font shows
        figure = Figure(figsize=(_WIDTH_IN, _height_in(chart)))
        draw(chart, _placed(chart, figure), with_head=False)
        out = BytesIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _for_a_page(out.getvalue().decode(), prefix)


def _placed(chart: Chart | Bars, figure: Figure, left_in: float = 0.0, top_in: float | None = None) -> Axes:
    """Return axes for a chart, with room for its labels, at a place of a figure; without ``top_in`` no head is there.

    Margins that fit the labels exactly would take longer to find than all the rest takes to draw.
    """
    names = chart.names if isinstance(chart, Chart) else [label for label, _ in chart.rows]
    longest = max((len(_shortened(name)) for name in names), default=0)
    labels_in = max(_LEFT_IN if isinstance(chart, Bars) or not names else 0.0, 0.25 + _LETTER_IN * longest)
    head_in = 0.1 if top_in is None else _head_in(chart)
    height_in = _height_in(chart) - 0.5 - (0.1 if top_in is None else 0.0)
    width, height = figure.get_size_inches()
    bottom_in = height - (top_in or 0.0) - head_in - height_in
    width_in = _WIDTH_IN - labels_in - _RIGHT_IN
    return figure.add_axes(((left_in + labels_in) / width, bottom_in / height, width_in / width, height_in / height))


def _height_in(chart: Chart | Bars) -> float:
    return _HEIGHT_IN if not _rows(chart) else max(1.2, 0.75 + 0.28 * _rows(chart))


def _head_in(chart: Chart | Bars) -> float:
    return 0.42 + _NAMES_IN * _lines_of_names(chart)


def _lines_of_names(chart: Chart | Bars) -> int:
    """Return how many lines the names above a chart take: as many in each as the longest leave room for."""
    widths_in = [0.45 + 0.066 * len(name) for name, *_ in series_names(chart)]
    room_in = _WIDTH_IN - _LEFT_IN - 0.1
    if len(widths_in) < 2 or sum(widths_in) <= room_in:
        return min(len(widths_in) - 1, 1)
    return math.ceil(len(widths_in) / max(1, int(room_in / max(widths_in))))


def series_names(chart: Chart | Bars) -> list[tuple[str, str, str]]:
    """Return the names of what a chart shows, each with its colour on a page and a character like its marks.

    Without points there are no marks.
    """
    if isinstance(chart, Bars):
        return [(part, f"c{number % len(COLORS)}", "") for number, part in enumerate(chart.parts)]
    marks = [_marker(chart, number) for number in range(len(chart.series))]
    return [
        (series.name, "ink" if mark in _MEASURED else f"c{number % len(COLORS)}", (_MARKERS | _MEASURED).get(mark, ""))
        for number, (series, mark) in enumerate(zip(chart.series, marks, strict=True))
    ]


def _marker(chart: Chart, number: int) -> str:
    """Return the mark of a line: with its colour another one than those of all others; none where it has no points."""
    style = chart.series[number].style
    if style == "measured":
        before = sum(series.style == style for series in chart.series[:number])
        return [*_MEASURED][before % len(_MEASURED)]
    return "" if style in ("curve", "steps") else [*_MARKERS][(number + number // len(COLORS)) % len(_MARKERS)]


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
    axes.set_xlim(left=0.0)  # a bar that begins just beyond it would take its place, and its number away
    axes.grid(axis="y", visible=False)
    _name_x(axes, chart.x)


def _name_x(axes: Axes, text: str) -> None:
    """Name the axis below rows; a name longer than it ends where it ends, with room below the names of the rows."""
    axis_in = axes.bbox.width / axes.figure.dpi
    axes.set_xlabel(text, loc="right" if _LETTER_IN * len(text) > axis_in else "center")


def _draw_chart(chart: Chart, axes: Axes) -> None:
    _scale(chart, axes)
    for number, series in enumerate(chart.series):
        _draw_series(chart, series, number, axes)
    if chart.reach and axes.get_autoscaley_on():
        places = [point.x for series in chart.series for point in series.points]
        axes.update_datalim([(places[0], y) for y in chart.reach])
        axes.autoscale_view()
    _draw_lines(chart, axes)
    if chart.names:
        axes.set_yticks(range(len(chart.names)), [_shortened(name) for name in chart.names])
        axes.set_ylim(len(chart.names) - 0.5, -0.5)
        _name_x(axes, chart.y)
        return
    _shade(chart, axes)
    axes.set_xlabel(chart.x)
    axes.set_ylabel(chart.y)
    _set_ticks(chart, axes)


def _draw_lines(chart: Chart, axes: Axes) -> None:
    """Draw the limits across the chart, and the places along it, each with what it says."""
    for value, text in chart.limits:
        (axes.axvline if chart.names else axes.axhline)(value, color=INK, linewidth=1.0, linestyle="--")
        if text and not chart.names:
            position = (0.02, value)
            axes.annotate(
                text, position, xycoords=("axes fraction", "data"), va="bottom", fontsize=9, bbox=_BEHIND, zorder=4
            )
    for value, text in chart.at:
        axes.axvline(value, color=INK, linewidth=1.0, linestyle=":")
        axes.annotate(
            text,
            (value, 0.98),
            xytext=(-4, 0),  # beside the line, where it covers no point
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            ha="right",
            va="top",
            fontsize=9,
            rotation=90,
            bbox=_BEHIND,
            zorder=4,
        )


def _set_ticks(chart: Chart, axes: Axes) -> None:
    """Label the horizontal axis: by ratios, at its places where they are few and even, or else at round numbers."""
    places = sorted({point.x for series in chart.series for point in series.points})
    gaps = {round(b - a, 9) for a, b in pairwise(places)}
    if chart.x_scale == "log":
        axes.set_xscale("log")
        is_wide = places[-1] > _WIDE * places[0]  # where all labels would run into each other
        axes.xaxis.set_major_locator(LogLocator(subs=(1.0,) if is_wide else (1.0, 2.0, 5.0)))
        axes.xaxis.set_minor_locator(NullLocator())
    elif len(gaps) == 1 and len(places) <= _MOST_TICKS:
        axes.set_xticks(places)
    else:
        axes.xaxis.set_major_locator(MaxNLocator(8, steps=[1, 2, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: plain(round(value, 12))))


def _draw_series(chart: Chart, series: Series, number: int, axes: Axes) -> None:
    finite = [point for point in series.points if math.isfinite(point.y)]
    if chart.names:  # one below the other, but what was measured upon what was simulated
        simulated = sum(each.style != "measured" for each in chart.series)
        below = 0.0 if series.style == "measured" else 0.18 * (number - (simulated - 1) / 2)
        finite = [replace(point, x=point.x + below) for point in finite]
    xs, ys = [point.x for point in finite], [point.y for point in finite]
    if chart.names:
        xs, ys = ys, xs
    color, gid = COLORS[number % len(COLORS)], f"series-{number}"
    if series.style == "curve":
        xs, ys, lows, highs = ([getattr(p, end) for p in series.points] for end in ("x", "y", "low", "high"))
        lines: list[Any] = axes.plot(xs, ys, color=color, label=series.name, linewidth=1.0)
        lines.append(axes.fill_between(xs, lows, highs, color=color, alpha=0.25, linewidth=0))
    elif series.style == "measured":
        lines = axes.plot(xs, ys, _marker(chart, number), color=INK, label=series.name, markersize=7, markeredgewidth=2)
    elif series.style == "steps":
        lines = axes.step(xs, ys, where="post", color=color, label=series.name)
    else:
        style = "" if series.style == "dots" else "-"
        lines = axes.plot(
            xs, ys, _marker(chart, number) + style, color=color, label=series.name, markersize=4.5, linewidth=1.5
        )
        lines += _intervals(chart, finite, color, axes, series.style)
    for artist in lines:
        artist.set_gid(gid)


def _intervals(chart: Chart, points: Sequence[Any], color: str, axes: Axes, style: str) -> list[Any]:
    """Draw intervals: bars, and a band between them where a line goes through."""
    bounded = [point for point in points if math.isfinite(point.low) and math.isfinite(point.high)]
    if not bounded:
        return []
    places, lows, highs = ([getattr(point, end) for point in bounded] for end in ("x", "low", "high"))
    if chart.names:
        return [axes.hlines(places, lows, highs, color=color, linewidth=2.2, alpha=0.55)]
    artists: list[Any] = [axes.vlines(places, lows, highs, color=color, linewidth=2.2, alpha=0.55)]
    if style == "line" and len(bounded) == len(points) > 1:
        artists.append(axes.fill_between(places, lows, highs, color=color, alpha=0.13, linewidth=0))
    return artists


def _scale(chart: Chart, axes: Axes) -> None:
    values = [y for series in chart.series for point in series.points for y in (point.y, point.low, point.high)]
    finite = [*chart.reach, *(y for y in values if math.isfinite(y))]
    axis = axes.xaxis if chart.names else axes.yaxis
    set_scale = axes.set_xscale if chart.names else axes.set_yscale
    if chart.scale == "log" and finite and min(finite) > 0.0:
        set_scale("log")
        is_narrow = max(finite) < _NARROW * min(finite)  # powers of ten alone would be one number, or none
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if is_narrow else (1.0,)))
    elif chart.scale != "linear":
        smallest = min((abs(y) for y in finite if y), default=1.0)
        set_scale("symlog", linthresh=10.0 ** math.floor(math.log10(max(smallest, 1e-3))))
    elif finite and min(finite) >= 0.0:
        (axes.set_xlim if chart.names else axes.set_ylim)(
            0.0, 1.07 * max([*finite, *(y for y, _ in chart.limits)]) or 1.0
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
    for color, name in ((INK, "ink"), (GRID, "grid"), (SHADE, "shade"), (PAPER, "paper")):
        svg = svg.replace(color, f"var(--{name})")
    svg = re.sub(r"font-family: [^;\"]*; ?", "", svg)
    # Coordinates only: what is written between tags is read.
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(-?\d+\.\d{2})\d+", r"\1", tag[0]), svg)
    return re.sub(r"\s*\n\s*", " ", svg).strip()
