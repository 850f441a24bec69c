"""What a result says of itself, for any renderer.  Blocks know nothing of studies, renderers nothing but blocks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

from vftsim.stats import Estimate
from vftsim.stats.estimate import NOTHING, plain


@dataclass(frozen=True)
class Marked:
    """A cell with a mark behind it, which a note explains."""

    cell: Estimate | float | str
    mark: str


@dataclass(frozen=True)
class Counted:
    """A count, or other text, with what is behind it: the share that it is of all."""

    text: str
    behind: str


Cell = Estimate | float | str | Marked | Counted | None
"""An estimate, a number, a text, one of them with a mark, or nothing known."""


@dataclass(frozen=True)
class Answer:
    """The answer to the question of a study, in words."""

    text: str
    question: str = ""
    """What was asked, as a title."""
    more: str = ""
    """What belongs to the answer and is not the answer itself."""


@dataclass(frozen=True)
class Note:
    """What a reader must know about the figures; ``warns`` of what limits the answer itself."""

    text: str
    warns: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of a label and cells; a row of one cell is a heading."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    title: str = ""
    caption: str = ""
    """What the figures rest on."""
    texts: int = 1
    """How many columns, from the first on, are words: they may be wrapped."""


@dataclass(frozen=True)
class Card:
    """One figure that everybody looks for first."""

    label: str
    cell: Cell
    unit: str = ""
    more: str = ""


@dataclass(frozen=True)
class Cards:
    """The few figures that everybody looks for first; they stand in tables too."""

    cards: Sequence[Card]


@dataclass(frozen=True)
class Point:
    """A point of a chart, with the ends of its interval where there is one."""

    x: float
    y: float
    low: float = math.nan
    high: float = math.nan

    @classmethod
    def of(cls, x: float, estimate: Estimate | float) -> Self:
        """Return the point of an estimate at a place."""
        if not isinstance(estimate, Estimate):
            return cls(x, estimate)
        return cls(x, estimate.mean, estimate.low, estimate.high)


@dataclass(frozen=True)
class Series:
    """Points that belong together: simulated ones on a line, of a distribution on steps, or measured ones.

    A curve has too many points to tell one from the other: they are drawn as one line, with a gap where a value is not
    a number, and stand in no table.
    """

    name: str
    points: Sequence[Point]
    style: Literal["line", "curve", "steps", "dots", "measured"] = "line"


@dataclass(frozen=True)
class Chart:
    """Lines over a number, or, with ``names``, figures of things that have a name, one below the other."""

    title: str
    x: str
    y: str
    """What it shows, and what the axes say, with unit."""
    series: Sequence[Series]
    """With ``names``, the place of a point is the number of its name."""
    limits: Sequence[tuple[float, str]] = ()
    """Values of y that something is judged by, with what they say."""
    within: tuple[float, float] | None = None
    """Loads that the model was calibrated for; beyond them the chart is shaded."""
    scale: Literal["linear", "log", "symlog"] = "linear"
    """Of y: ``log`` where it runs over several powers of ten, ``symlog`` where 0 occurs too."""
    names: Sequence[str] = ()
    at: Sequence[tuple[float, str]] = ()
    """Values of x worth a line, with what they say."""
    reach: Sequence[float] = ()
    """Values of y that the axis has room for: those of charts that are compared."""
    x_scale: Literal["linear", "log"] = "linear"
    """``log`` where the values are some factor apart."""


def dot_chart(
    title: str,
    y: str,
    names: Sequence[str],
    lines: Mapping[str, Sequence[Estimate | float | None]],
    *,
    limits: Sequence[tuple[float, str]] = (),
) -> Chart:
    """Return a chart of things that have a name: a dot for each that is known, in each of some lines by name."""
    series = [
        Series(line, [Point.of(float(n), cell) for n, cell in enumerate(cells) if cell is not None], "dots")
        for line, cells in lines.items()
    ]
    return Chart(title, "", y, series, limits, names=names)


@dataclass(frozen=True)
class Bars:
    """Lengths made of parts, one bar below the other: outages."""

    title: str
    x: str
    parts: Sequence[str]
    """Names of the parts."""
    rows: Sequence[tuple[str, Sequence[float]]]
    """Label of a bar, and the lengths of its parts."""


@dataclass(frozen=True)
class Timeline:
    """What happened when; times in seconds."""

    title: str
    events: Sequence[tuple[float, str]]


@dataclass(frozen=True)
class Facts:
    """Names and values that say where a result comes from."""

    title: str
    facts: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Listing:
    """A file or a command as it is written."""

    title: str
    text: str
    folded: bool = True


Block = Answer | Note | Table | Cards | Chart | Bars | Timeline | Facts | Listing


def shown(cell: Cell) -> tuple[str, str]:
    """Return a cell's value and what stands behind or below it, as :meth:`~vftsim.stats.Estimate.shown`."""
    if isinstance(cell, Marked):
        value, behind = shown(cell.cell)
        return f"{value}{cell.mark}", behind
    if isinstance(cell, Counted):
        return cell.text, cell.behind
    if isinstance(cell, Estimate):
        return cell.shown()
    return plain(cell) if isinstance(cell, float | int) else NOTHING if cell is None else cell, ""


def in_words(cell: Cell, unit: str = "") -> str:
    """Return a cell with its interval and unit as part of a sentence."""
    return " ".join(part for part in (*shown(cell), unit) if part)


def with_unit(text: str, unit: str | None) -> str:
    return f"{text} ({unit})" if unit else text


def across(values: Sequence[float], digits: int) -> str:
    """Return the least and the greatest value, once where they are alike."""
    low, high = f"{min(values):.{digits}g}", f"{max(values):.{digits}g}"
    return low if low == high else f"{low} to {high}"
