"""Who is the cheapest over a setting, as blocks: in words, the prices at each value, what changes where, a chart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, plain, shown
from vftsim.study.blocks.head import INTERVALS
from vftsim.study.decision_figures import PRICE

if TYPE_CHECKING:
    from vftsim.study.decision_crossovers import Change, Order


def crossover_answers(orders: Sequence[Order]) -> Iterator[Answer]:
    """Yield a sentence for each setting: who is the cheapest from where to where."""
    for one in orders:
        parts = [_stretch(one, *each) for each in one.stretches()]
        yield Answer(f"{', then '.join(parts)}.", f"Who is the cheapest as {_name(one)} grows?")


def crossover_blocks(orders: Sequence[Order], kinds: Sequence[str]) -> Iterator[Block]:
    """Yield tables and a chart for each setting."""
    for one in orders:
        yield _prices(one, kinds)
        yield _chart(one, kinds)
    changes: list[list[Cell]] = [
        [_words(one, each), each.at, _between(one, each)] for one in orders for each in one.changes
    ]
    if changes:
        caption = (
            "Linear between the values that were played, over the logarithm, replication by replication; all of them "
            f"agree on the order at the two values given. {INTERVALS}"
        )
        yield Table(["what changes (* the cheapest)", "at", "between"], changes, "", caption)
    if orders:
        yield Note(
            "Crossovers: service and costs of a ramp are those of one step at its first load; prices of mechanisms are "
            "those in use, without their ranges."
        )


def _name(one: Order) -> str:
    return f"{one.knob.name} ({one.knob.unit})"


def _stretch(one: Order, kind: str, begin: float, end: float, ending: Change | None) -> str:
    who = kind or "no mechanism"
    if end == max(one.points):
        return (
            f"{who} throughout ({plain(begin)} to {plain(end)})"
            if begin == min(one.points)
            else f"{who} to {plain(end)}"
        )
    if ending is not None:
        return f"{who} to {' '.join(shown(ending.at)).strip()} ({_reason(ending)})"
    after = min(place for place in one.points if place > end)
    return f"{who} to somewhere between {plain(end)} and {plain(after)} (replications disagree)"


def _reason(change: Change) -> str:
    if change.what == PRICE:
        return "prices cross"
    if change.before:
        return f"no longer {change.what}"
    return f"{change.after} then meets {change.what}"


def _words(one: Order, change: Change) -> str:
    mark = "*" * change.is_of_cheapest
    if change.what == PRICE:
        return f"{one.knob.name}: {change.before} is cheaper below, {change.after} above{mark}"
    side = "below" if change.before else "above"
    return f"{one.knob.name}: {change.before or change.after} meets {change.what} {side}{mark}"


def _between(one: Order, change: Change) -> str:
    return f"{plain(change.low)} and {plain(change.high)} {one.knob.unit}"


def _prices(one: Order, kinds: Sequence[str]) -> Table:
    """Return the prices at the values that were asked for; what was played between them is in the chart."""
    rows: list[list[Cell]] = []
    for kind in kinds:
        row: list[Cell] = [kind]
        for place in one.knob.places:
            found = one.points[place][kind].estimate(PRICE)
            text = "-" if found is None else f"{found.mean:.3g}"
            met = text if kind in one.meeting[place] else f"({text})"
            row.append(f"{met}*" if one.cheapest[place] == kind else met)
        rows.append(row)
    caption = "Price in % of a pCPU. * the cheapest; in brackets: does not meet what is asked."
    return Table([_name(one), *(plain(place) for place in one.knob.places)], rows, caption=caption)


def _chart(one: Order, kinds: Sequence[str]) -> Chart:
    series = []
    for kind in kinds:
        known = [(place, found[kind].estimate(PRICE)) for place, found in one.points.items()]
        points = [Point.of(place, math.nan if price is None else price) for place, price in known]
        series.append(Series(kind, points))
    at = [(each.at.mean, f"{plain(each.at.mean)} {one.knob.unit}") for each in one.changes if each.is_of_cheapest]
    title = f"Price over {one.knob.name}"
    return Chart(title, _name(one), "price: CPU, both hosts, %", series, at=at, x_scale="log")
