"""Several results beside each other as blocks: what differs, one chart for all, tables one after the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from vftsim.report.blocks import Answer, Bars, Block, Cards, Chart, Facts, Listing, Note, Series, Table, Timeline
from vftsim.report.html import page
from vftsim.study.blocks.origin import differences, origin_blocks
from vftsim.study.printed import Printed

B = TypeVar("B", bound=Block)


def page_of(results: Sequence[Printed], labels: Sequence[str]) -> str:
    """Return a page about one result, or about several beside each other.

    Raises
    ------
    UsageError
        The extra that writes pages is not installed.
    """
    return page(*whole(results, labels))


def whole(results: Sequence[Printed], labels: Sequence[str]) -> tuple[str, list[Block]]:
    """Return title and blocks of such a page."""
    if len(results) == 1:
        origin = results[0].origin
        return results[0].title, [*results[0].blocks(), *(origin_blocks(origin) if origin else [])]
    title = f"{' beside '.join(labels)}: {results[0].origin['command']}"
    return title, beside([each.blocks() for each in results], [each.origin for each in results], labels)


def beside(
    parts: Sequence[Sequence[Block]], manifests: Sequence[Mapping[str, Any]], labels: Sequence[str]
) -> list[Block]:
    """Return the blocks of several results as those of one page.

    Parameters
    ----------
    parts : sequence of sequence of Block
        What each says of itself.
    labels : sequence of str
        How they are called beside each other.
    """
    named = list(zip(labels, parts, strict=True))
    found: list[Block] = [
        *(Note(f"{label}: {note.text}") for label, blocks in named for note in _about(blocks)),
        *(replace(a, question=f"{label}: {a.question}") for label, blocks in named for a in _of(blocks, Answer)),
        *(Note(f"{label}: {note.text}", True) for label, blocks in named for note in _of(blocks, Note) if note.warns),
        Cards(
            [
                replace(card, label=f"{label}: {card.label}")
                for label, blocks in named
                for cards in _of(blocks, Cards)
                for card in cards.cards
            ]
        ),
        *_charts(named),
        differences(manifests, labels),
    ]
    for title in dict.fromkeys(table.title for _, blocks in named for table in _of(blocks, Table)):
        found += [
            replace(table, title=f"{title}, {label}" if title else label)
            for label, blocks in named
            for table in _of(blocks, Table)
            if table.title == title
        ]
    found += [
        replace(each, title=f"{label}: {each.title}") for label, blocks in named for each in _of(blocks, Timeline)
    ]
    origins = [(label, origin_blocks(manifest)) for label, manifest in zip(labels, manifests, strict=True)]
    found += [replace(e, title=f"{e.title}: {label}") for label, blocks in origins for e in _of(blocks, Facts)]
    found += [replace(e, title=f"{e.title}: {label}") for label, blocks in origins for e in _of(blocks, Listing)]
    return found


def _of(blocks: Sequence[Block], kind: type[B]) -> list[B]:
    return [block for block in blocks if isinstance(block, kind)]


def _about(blocks: Sequence[Block]) -> list[Note]:
    return [note for note in _of(blocks, Note) if not note.warns][:1]


def _charts(named: Sequence[tuple[str, Sequence[Block]]]) -> list[Block]:
    """Return charts that all have as one with the lines of each, the others as they are."""
    every: dict[tuple[str, Sequence[str]], list[tuple[str, Chart]]] = {}
    alone: list[Block] = []
    for label, blocks in named:
        for chart in _of(blocks, Chart):
            every.setdefault((chart.title, tuple(chart.names)), []).append((label, chart))
        alone += [replace(bars, title=f"{bars.title}: {label}") for bars in _of(blocks, Bars)]
    return [*(replace(own[0][1], series=_together(own)) for own in every.values()), *alone]


def _together(own: Sequence[tuple[str, Chart]]) -> list[Series]:
    """Return the lines of a chart of several results, then what was measured: so each result has its own colour."""
    lines = [
        replace(series, name=f"{label}: {series.name}")
        for label, chart in own
        for series in chart.series
        if series.style != "measured"
    ]
    return [*lines, *(series for series in own[0][1].series if series.style == "measured")]
