"""Blocks as one page that needs nothing else, and as a part of one for a notebook.

Everything is escaped by the template but the drawings, the style and the script, which are made here.  A page holds no
time of day: the same blocks give the same bytes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from vftsim._version import __version__
from vftsim.errors import UsageError
from vftsim.report.blocks import (
    Answer,
    Bars,
    Block,
    Cards,
    Cell,
    Chart,
    Facts,
    Listing,
    Marked,
    Note,
    Point,
    Table,
    in_words,
    shown,
)
from vftsim.stats import Estimate
from vftsim.stats.estimate import plain

if TYPE_CHECKING:
    from jinja2 import Template

EXTRA = "report"
_NAME = re.compile(r"\S*[-./_]|\S+:")


def check_extra() -> None:
    """Refuse to make a page without the extra that it needs."""
    _template()


def page(title: str, blocks: Sequence[Block]) -> str:
    """Return a whole page: question and answer, what limits them, charts, tables, and where they come from.

    Refuses where the extra that writes pages is not installed.
    """
    return _rendered(title, blocks, is_whole=True)


def fragment(title: str, blocks: Sequence[Block], *, has_style: bool = True) -> str:
    """Return the same without a page around it, for a notebook; without style for a page that has it."""
    return _rendered(title, blocks, is_whole=False, has_style=has_style)


def asset(name: str) -> str:
    """Return the style (``page.css``) or the script (``page.js``) of a page."""
    return files("vftsim.report").joinpath(name).read_text(encoding="utf-8").strip()


def _rendered(title: str, blocks: Sequence[Block], *, is_whole: bool, has_style: bool = True) -> str:
    template = _template()  # it says which extra is missing; what follows comes with it
    from markupsafe import Markup  # noqa: PLC0415 - of the extra

    style, script = (Markup(asset(name)) for name in ("page.css", "page.js"))
    text = template.render(
        page=_arranged(title, blocks), is_whole=is_whole, style=style if has_style else "", script=script
    )
    return text.encode(errors="backslashreplace").decode()  # bytes of a file's name that are no UTF-8


def _arranged(title: str, blocks: Sequence[Block]) -> dict[str, Any]:
    """Return blocks by their place on the page, in their order."""
    notes = [block for block in blocks if isinstance(block, Note)]
    charts = [block for block in blocks if isinstance(block, Chart | Bars)]
    apart = (Answer, Cards, Chart, Bars, Facts, Listing)
    first = next((n for n, block in enumerate(blocks) if not isinstance(block, Note)), 0)
    first = next((n for n, block in enumerate(blocks) if isinstance(block, Answer)), first)
    about = [block for block in blocks[:first] if isinstance(block, Note) and not block.warns]
    rest = [
        block
        for block in blocks
        if not isinstance(block, apart) and block not in about and not (isinstance(block, Note) and block.warns)
    ]
    return {
        "title": title,
        "about": about,
        "answers": [block for block in blocks if isinstance(block, Answer)],
        "warnings": list(dict.fromkeys(note for note in notes if note.warns)),
        "cards": [block for block in blocks if isinstance(block, Cards) and block.cards],
        "charts": [_drawn(chart, f"c{number}") for number, chart in enumerate(charts)],
        "rest": [(type(block).__name__, block) for block in rest],
        "origin": [(type(block).__name__, block) for block in blocks if isinstance(block, Facts | Listing)],
        "footer": f"Made by vftsim {__version__}. Nothing on this page comes from the network.",
    }


def _drawn(chart: Chart | Bars, prefix: str) -> dict[str, Any]:
    from markupsafe import Markup  # noqa: PLC0415 - of the extra

    from vftsim.report.charts import series_names, svg_of  # noqa: PLC0415 - matplotlib takes its time

    table = _table_of(chart)
    where = "in the table below the chart" if table.rows else "in the tables of the result"
    label = Markup.escape(f"{chart.title}. The figures are {where}.")
    drawn = svg_of(chart, prefix).replace("<svg ", f'<svg role="img" aria-label="{label}" ', 1)
    return {
        "title": chart.title,
        "prefix": prefix,
        "svg": Markup(drawn),
        "names": series_names(chart),
        "tips": json.dumps(_tips(chart, prefix), ensure_ascii=False),
        "table": table,
    }


def _tips(chart: Chart | Bars, prefix: str) -> dict[str, list[str]]:
    """Return what each point or bar says when it is pointed at, by the name of its group in the drawing."""
    if isinstance(chart, Bars):
        return {
            f"{prefix}-series-{n}": [f"{label}: {part} {plain(lengths[n])}" for label, lengths in chart.rows]
            for n, part in enumerate(chart.parts)
        }
    return {
        f"{prefix}-series-{n}": [
            f"{series.name}, {_position(chart, point)}: {in_words(_cell(point))}"
            for point in series.points
            if math.isfinite(point.y)
        ]
        for n, series in enumerate(chart.series)
        if series.style != "curve"
    }


def _position(chart: Chart, point: Point) -> str:
    return chart.names[round(point.x)] if chart.names else plain(point.x)


def _cell(point: Point) -> Cell:
    """Return the figure of a point, with its interval as a cell has it."""
    if not (math.isfinite(point.low) and math.isfinite(point.high)):
        return point.y if math.isfinite(point.y) else None
    return Estimate(point.y, (point.high - point.low) / 2.0, point.low, point.high, 0, 0.95, "range")


def _table_of(chart: Chart | Bars) -> Table:
    """Return the figures of a chart, for who reads or cannot see it."""
    if isinstance(chart, Bars):
        return Table(("", *chart.parts), [[label, *lengths] for label, lengths in chart.rows])
    listed = [series for series in chart.series if series.style != "curve"]
    cells_at: list[dict[float, list[Cell]]] = [{} for _ in listed]
    for series, at_x in zip(listed, cells_at, strict=True):
        for point in series.points:
            at_x.setdefault(point.x, []).append(_cell(point))
    positions = dict.fromkeys((point.x, _position(chart, point)) for series in listed for point in series.points)
    rows = [
        [words, *(cells[n] if n < len(cells) else None for cells in (at_x.get(x, []) for at_x in cells_at))]
        for x, words in sorted(positions)
        for n in range(max(len(at_x.get(x, [])) for at_x in cells_at))
    ]
    return Table((chart.x, *(series.name for series in listed)), rows)


def _whole_number(cell: Cell) -> dict[str, str] | None:
    """Return the whole number behind what is shown of a cell, as JSON has it."""
    inner = cell.cell if isinstance(cell, Marked) else cell
    if isinstance(inner, Estimate):
        ends = {"low": repr(inner.low), "high": repr(inner.high)} if math.isfinite(inner.high - inner.low) else {}
        return {"value": repr(inner.mean), **ends} if math.isfinite(inner.mean) else None
    return {"value": repr(inner)} if isinstance(inner, float | int) and math.isfinite(inner) else None


def _begins_with_name(text: str) -> bool:
    """Return whether a title begins with a name of a model, which is written as it is: ``net-kvm``, ``calls: ...``."""
    return bool(_NAME.match(text))


@cache
def _template() -> Template:
    try:
        import jinja2  # noqa: PLC0415 - of the extra
    except ImportError:
        raise UsageError(f"a report needs the extra '{EXTRA}': pip install 'vftsim[{EXTRA}]'") from None
    environment = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined)
    environment.filters.update(shown=shown, known=_whole_number, begins_with_name=_begins_with_name)
    return environment.from_string(asset("page.html.j2"))
