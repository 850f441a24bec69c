"""What importers of measuring tools have in common.

An importer turns one file of one tool into figures: a metric with its statistics over one phase.  It lives in one
file of :mod:`vftsim.labs.imports`, registers itself there, and is found by looking at the text of a file.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

import numpy as np

from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.table import number
from vftsim.spec import discover
from vftsim.spec.suggest import instead, shown

PERCENTILES = (50, 90, 95, 99)
BOTH_WAYS = "is of a test in both directions at once; give each direction a test of its own"
"""What importers answer to such a test: they know one throughput, and would take the first or the sum for it."""
_SHORT = 0.5
LARGEST = 1e100
"""Beyond it nothing was measured, and the squares of a deviation would have no room in a float."""


@dataclass(frozen=True, slots=True)
class Window:
    """Part of a file that counts, in seconds after its start; all of it by default."""

    start_s: float = 0.0
    end_s: float = math.inf

    @property
    def whole(self) -> bool:
        return self.start_s == 0.0 and math.isinf(self.end_s)

    def holds(self, begin_s: float, end_s: float) -> bool:
        return self.start_s <= begin_s and end_s <= self.end_s


@dataclass(frozen=True, slots=True)
class Source:
    """Text of one file, and the part of it that is wanted."""

    text: str
    label: str
    window: Window = field(default_factory=Window)

    def refuse(self, message: str, line: int = 0, column: str = "") -> NoReturn:
        raise ModelFileError(message, self.label, line, column)

    @property
    def lines(self) -> list[str]:
        """Lines of a file that grows by them; a last one without its end is refused, as what was cut may be read."""
        lines = self.text.splitlines()
        if lines and not self.text.endswith("\n"):
            self.refuse("has no end; was the file cut? remove the line, or end it if it is whole", len(lines))
        return lines

    def number(self, text: str, line: int, column: str) -> float:
        value = number(text.strip(), self.label, line, column)
        if abs(value) > LARGEST:
            self.refuse(f"{shown(text)} is more than anybody measures", line, column)
        return value

    def count(self, text: str, line: int, column: str) -> int:
        return int(self.number(text, line, column))


@dataclass(frozen=True, slots=True)
class Figure:
    """One metric over one phase."""

    metric: str
    unit: str
    """``ms``, ``/s``, ``%``, ``MB``, ``Mbit/s`` or ``count``."""
    statistics: dict[str, float]
    """``mean``, ``p50`` and so on, as in ``dataset.yaml``."""
    phase: str = ""
    """Where the file itself says it (a report of several steps), else empty."""


def of_values(metric: str, unit: str, values: Sequence[float], mean: float | None = None) -> Figure:
    """Return the figure of single values, at least one.

    Percentiles are interpolated linearly between order statistics.  A mean is given where it is not that of the values
    (spans of unequal length).
    """
    data = np.asarray(values, dtype=float)
    statistics = {
        "n": float(len(data)),
        "mean": float(data.mean()) if mean is None else mean,
        "sd": float(data.std(ddof=1)) if len(data) > 1 else 0.0,
        "min": float(data.min()),
        "max": float(data.max()),
    }
    percentiles = np.percentile(data, PERCENTILES)
    return Figure(metric, unit, statistics | {f"p{p}": float(x) for p, x in zip(PERCENTILES, percentiles, strict=True)})


def of_rates(metric: str, unit: str, spans: Sequence[tuple[float, float]], mean: float | None = None) -> Figure:
    """Return the figure of rates, each over its seconds, at least one; their mean is over time where none is given.

    A span below half of the longest one, the last of a run as a rule, counts in the mean only.
    """
    seconds = [span for _, span in spans]
    over_time = math.fsum(rate * span for rate, span in spans) / math.fsum(seconds)
    long_enough = [rate for rate, span in spans if span >= _SHORT * max(seconds)]
    return of_values(metric, unit, long_enough, over_time if mean is None else mean)


def of_share(metric: str, part: float, whole: float) -> list[Figure]:
    """Return the figure of what is a part of so many, in percent; none of nothing."""
    return [Figure(metric, "%", {"n": whole, "mean": 100.0 * part / whole})] if whole else []


Reader = Callable[[Source], list[Figure]]


@dataclass(frozen=True, slots=True)
class Importer:
    """One kind of file."""

    name: str
    """As ``--as`` and the column ``source`` call it."""
    what: str
    """What the file is, for messages and documentation."""
    recognizes: Callable[[str], bool]
    """Whether a text is such a file."""
    read: Reader
    """Its figures."""
    windowed: bool = True
    """Whether a part of the file can be taken."""


_IMPORTERS: dict[str, Importer] = {}


def importer(
    name: str, description: str, recognizes: Callable[[str], bool], *, windowed: bool = True
) -> Callable[[Reader], Reader]:
    """Return what makes a function the importer of a kind of file (:class:`Importer`); its name must be new."""

    def register(read: Reader) -> Reader:
        if name in _IMPORTERS:
            raise RuntimeError(f"two importers are called {name}")
        _IMPORTERS[name] = Importer(name, description, recognizes, read, windowed)
        return read

    return register


def importers() -> dict[str, Importer]:
    discover("vftsim.labs.imports")
    return dict(sorted(_IMPORTERS.items()))


def importer_for(text: str, label: str, name: str | None = None) -> Importer:
    """Return the importer of a file: the named one, or the one that recognizes its text; refuse where there is none."""
    by_name = importers()
    if name is not None:
        if name not in by_name:
            raise UsageError(f"no importer {shown(name)}{instead(name, by_name, 'importers:')}")
        return by_name[name]
    if not text.strip():
        raise ModelFileError("is empty", label)
    for each in by_name.values():
        if each.recognizes(text):
            return each
    kinds = "; ".join(f"{each.name}: {each.what}" for each in by_name.values())
    raise ModelFileError(
        f"is none of the files that can be imported ({kinds}); a table of your own needs no import, but a dataset.yaml "
        "that says what is in it (vftsim schema dataset)",
        label,
    )


def figures_of(source: Source, importer: Importer) -> list[Figure]:
    """Return what an importer reads from a file; refuse a malformed one, and a window that holds or means nothing."""
    if not importer.windowed and not source.window.whole:
        source.refuse(f"holds totals of a whole run ({importer.name}); --from and --until cannot cut it")
    figures = importer.read(source)
    if not figures:
        source.refuse("holds nothing" + ("" if source.window.whole else " between --from and --until"))
    for figure in figures:
        for name, value in figure.statistics.items():
            if not abs(value) <= LARGEST:
                source.refuse(
                    f"says what no measurement can be: {name} of {figure.metric} is no number below {LARGEST:g}"
                )
    return figures
