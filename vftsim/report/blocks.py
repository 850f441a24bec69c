"""What a result says of itself, for any renderer: answers, notes, tables.  Blocks know nothing of studies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vftsim.stats import Estimate

Cell = Estimate | str | None
"""An estimate, a text, or nothing known."""
NOTHING = "-"
_MOST_DECIMALS = 6


@dataclass(frozen=True)
class Answer:
    """The question's answer in words."""

    text: str


@dataclass(frozen=True)
class Note:
    """What a reader must know about the figures."""

    text: str


@dataclass(frozen=True)
class Table:
    """Rows of a label and cells; a row of one cell is a heading.

    Parameters
    ----------
    columns : sequence of str
        The first is that of the labels.
    rows : sequence of sequence of Cell
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]


Block = Answer | Note | Table


def shown(cell: Cell) -> tuple[str, str]:
    """Return a cell's value and what stands behind or below it: an interval, or a range in round brackets.

    A value has the digits that its interval carries: two of the interval's half width, none rounded left of the point,
    never a power of ten.  Where there is no interval it has four.
    """
    if cell is None or isinstance(cell, str):
        return cell or NOTHING, ""
    if cell.kind == "upper bound":
        return f"< {plain(cell.high)}", ""
    half = (cell.high - cell.low) / 2.0
    if not math.isfinite(half) or half <= 0.0 or cell.n == 1:
        return plain(cell.mean), ""
    decimals = min(_decimals(half), _decimals(cell.mean) + 2 if cell.mean else _MOST_DECIMALS)
    value, low, high = (fixed(x, decimals) for x in (cell.mean, cell.low, cell.high))
    if cell.kind == "range":
        return value, f"({low} to {high})"
    is_even = abs(cell.high + cell.low - 2.0 * cell.mean) < 0.05 * (cell.high - cell.low)
    return value, f"± {fixed(half, decimals)}" if is_even else f"[{low}, {high}]"


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals, at least none, and thousands apart."""
    places = max(0, decimals)
    return f"{round(value, places) + 0.0:,.{places}f}"


def plain(value: float) -> str:
    """Return a number with four digits, without zeros that say nothing."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else NOTHING
    text = fixed(value, _decimals(value) + 2)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _decimals(value: float) -> int:
    """Return the decimal place of the second significant digit."""
    return 1 - math.floor(math.log10(abs(value)))
