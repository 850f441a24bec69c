"""Declarations of figures: attributes of an :class:`~vftsim.outcome.outcome.Outcome`, one statement each.

An annotated attribute is *held*: an outcome is made with it.  One without annotation is *derived* from held ones.

.. code-block:: python

    class Exchange(Outcome):
        answers: int = declare.total(label="answers")
        latency: DelayHistogram = declare.delays(label="request to answer", headline=("p50", "p99"))
        rate = declare.rate(answers, better="higher", headline=True)

The functions return ``Any`` so that a held attribute has the type of what it holds; what they are given is checked when
the class is made.
"""

from __future__ import annotations

import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property, lru_cache, partial
from itertools import chain
from operator import attrgetter, itemgetter, methodcaller
from statistics import fmean
from typing import Any, Literal

import numpy as np

from vftsim.outcome.estimators import Estimator, Mean, Median, Percentile, Ratio, Share, is_known
from vftsim.stats import DelayHistogram

PERCENTS = (50, 90, 95, 99)
"""Percentiles that are listed; any other can be asked for."""
NS_OF_UNIT = {"us": 1e3, "ms": 1e6, "s": 1e9}
IF_ANY = ("any",)
"""Headline of a total that leads where there is any."""
ANY = "*"
"""Stands in a path for names that only a run knows; in another name of a figure for the part."""
_WHOLE = "global"

Better = Literal["", "higher", "lower"]
Path = tuple[str, ...]


@dataclass(frozen=True)
class Entry:
    """One figure of an outcome with its path below the owner: what addresses, tables and summaries are made of."""

    path: Path
    """Name of the figure, and what of it: a part of a split, a statistic."""
    figure: Figure
    """Its declaration."""
    estimator: Estimator
    observe: Callable[[Any], Any]
    """Takes what the estimator needs out of an outcome."""
    leads: bool = False
    """Whether it stands in tables that show the most important figures."""

    def value(self, outcome: Any) -> float:
        """Return what a replication's outcome says of it; nan if nothing."""
        observed = self.observe(outcome)
        return self.estimator.single(observed) if is_known(observed) else math.nan

    @property
    def words(self) -> str:
        """Label, what of it, and unit: as a table says it."""
        named = " ".join((self.figure.label, *self.path[1:]))
        return f"{named}, {self.unit}" if self.unit else named

    @property
    def unit(self) -> str:
        """Unit of the figure, or of its part; of a variance its square."""
        unit = self.figure.units.get(self.path[-1], self.figure.unit)
        is_square = isinstance(self.figure, Series) and self.path[-1] == "variance"
        return f"({unit})^2" if unit and is_square else unit

    @property
    def column(self) -> str:
        """Name with its unit, as columns of files have it: the figure's first other name, or its name and statistic."""
        figure, (name, *parts) = self.figure, self.path
        if isinstance(figure, Delays):
            return "_".join((name, *parts, figure.unit))
        known_as = figure.known_as[0] if figure.known_as else name
        if ANY in known_as:
            return known_as.replace(ANY, parts[0] if parts else _WHOLE)
        return "_".join(word for word in (*parts, known_as) if word) or name

    @property
    def head(self) -> str:
        """What stands above a column of a table: short, with the unit."""
        named = " ".join((self.figure.short or self.figure.label, *self.path[1:]))
        return f"{named}, {self.unit}" if self.unit else named

    @property
    def part(self) -> str:
        """What part of the load it is of, ``all`` for the whole."""
        is_split = not isinstance(self.figure, Delays | Series) and len(self.path) > 1
        return self.path[1] if is_split else self.figure.part or "all"


@dataclass(kw_only=True, eq=False)
class Figure(ABC):
    """A declared figure.

    As an attribute of an outcome it gives way to what the outcome holds of that name; a derived one gives the
    replication's value.
    """

    unit: str = ""
    label: str = ""
    """As a table shows them; the label is the name in words if not given."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of a mapping: units of its parts by their names, where they are not all of one."""
    headline: bool | tuple[str, ...] = False
    """Whether it leads; of a distribution, which statistics do; of a total also ``("any",)``: where there is any."""
    better: Better = ""
    known_as: tuple[str, ...] = ()
    """Names by which others know it: of files, with the unit, first; of a lab's report.  An empty one: its parts have
    names of their own."""
    by: type[Enum] | Literal["name"] | None = None
    """What it is split by: an enumeration whose members have a ``label`` (held as a list), or ``"name"`` (held as a
    mapping of names that only the run knows)."""
    joined: Literal["sum", "mean", "nothing"] = "sum"
    """What the whole of a mapping is: of its parts, or ``nothing`` where they are of many kinds."""
    source: Callable[[Any], Any] | None = None
    """Computes what is held, from the outcome."""
    short: str = ""
    """What stands above a column of a table; the label if not given."""
    part: str = ""
    """What part of the load it is of, where only a part has it."""
    limit: str = ""
    """Name of a value that the outcome holds: the limit by which the figure is judged."""
    is_load: bool = False
    """Whether its value is itself the load of a phase."""
    observed_as: str = ""
    """Name by which datasets have it, ``*`` for the owner; parts and percentiles follow a slash."""
    name: str = field(default="", init=False)

    statistic = "mean"
    """What replications are put together to, in words, where a path does not say it."""

    def __set_name__(self, owner: type, name: str) -> None:
        self.owner, self.name = owner, name
        self.label = self.label or name.replace("_", " ")

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[type, str]]:
        """Pickle where it is declared: what computes it may be a function without a name."""
        return getattr, (self.owner, self.name)

    @property
    def metric(self) -> str:
        """Last name by which others know the figure itself, whatever part or statistic of it."""
        return next((name for name in reversed(self.known_as) if name and ANY not in name), self.name)

    def __get__(self, outcome: Any, owner: type) -> Any:
        return self if outcome is None else self.value(outcome)

    def held(self, outcome: Any) -> Any:
        return self.source(outcome) if self.source is not None else outcome.__dict__[self.name]

    def value(self, outcome: Any) -> Any:
        """Return the replication's figure, where the outcome does not hold it; nan: it has none."""
        entry = next(iter(self.entries(outcome)))
        observed = entry.observe(outcome)
        return math.nan if observed is None else entry.estimator.single(observed)

    def parts(self, outcome: Any | None) -> Iterator[tuple[Path, Callable[[Any], Any]]]:
        """Yield the whole and its parts: the path below the figure, and how to take it out of what is held.

        Without an outcome, names that only a run knows stand as :data:`ANY`.
        """
        if self.by is None:
            yield (), _whole
        elif self.by == "name":
            if self.joined != "nothing":
                yield (), _sum_of_values if self.joined == "sum" else _mean_of_values
            for name in (ANY,) if outcome is None else self.held(outcome) or ():
                yield (path_word(str(name)),), methodcaller("get", name, 0)
        else:
            assert not isinstance(self.by, str)
            yield (), sum
            for number, member in enumerate(self.by):
                yield (str(getattr(member, "label", member.name.lower())),), itemgetter(number)

    @property
    def adds_up(self) -> bool:
        """Whether what several of one kind hold can be put together as one."""
        return False

    def together(self, held: Sequence[Any]) -> Any:
        """Return what is held of several of one kind as one."""
        raise TypeError(f"{self.name} of several cannot be put together")

    @abstractmethod
    def entries(self, outcome: Any | None = None) -> Iterator[Entry]:
        """Yield what can be asked of it; without an outcome, by its declaration alone."""

    def further(self, word: str) -> Entry | None:
        """Return what a word below the figure means that :meth:`entries` does not list, such as a percentile."""
        return None

    def _entry(self, path: Path, estimator: Estimator, take: Callable[[Any], Any]) -> Entry:
        observe, leads = partial(self._observe, take), bool(self.headline) and not path
        return Entry((self.name, *path), self, estimator, observe, leads)

    def _observe(self, take: Callable[[Any], Any], outcome: Any) -> Any:
        held = self.held(outcome)
        return None if held is None else take(held)


class Number(Figure):
    """A number that a replication gives as it is: a mean over time, an extreme, something computed."""

    estimator: Estimator = Mean()

    @property
    def adds_up(self) -> bool:
        """Whether it has parts by name, whose whole is declared: those of several are parts like any other."""
        return self.by == "name" and self.joined != "nothing"

    def together(self, held: Sequence[Mapping[str, float]]) -> Any:
        """Return the sum of each part, or its mean, as the whole is."""
        join = math.fsum if self.joined == "sum" else fmean
        return {name: join(each[name] for each in held if name in each) for name in dict.fromkeys(chain(*held))}

    def entries(self, outcome: Any | None = None) -> Iterator[Entry]:
        for path, take in self.parts(outcome):
            yield self._entry(path, self.estimator, take)


class Middle(Number):
    """A number that comes in steps, such as the load of a step: the middle replication tells."""

    estimator = Median()
    statistic = "median"


class Verdict(Number):
    """Whether a replication went beyond the limit by which a phase is judged: a share of the replications.

    Where some did and others did not, a mean over both is that of two kinds of runs, and has no interval.
    """

    estimator = Share()
    statistic = "share"

    def __init__(self, **about: Any) -> None:
        super().__init__(**{"unit": "%", "better": "lower"} | about)


class Total(Number):
    """A count or sum over the measured time of a phase: what has come since an earlier reading can be told."""

    @property
    def adds_up(self) -> bool:
        return True

    def entries(self, outcome: Any | None = None) -> Iterator[Entry]:
        is_led = self.headline != IF_ANY or (outcome is not None and bool(self.held(outcome)))
        for entry in super().entries(outcome):
            yield replace(entry, leads=entry.leads and is_led)

    def since(self, now: Any, before: Any) -> Any:
        """Return what has come between two readings of what is held."""
        if isinstance(now, Mapping):
            return {name: count - before.get(name, 0) for name, count in now.items()}
        return [a - b for a, b in zip(now, before, strict=True)] if isinstance(now, list) else now - before

    def together(self, held: Sequence[Any]) -> Any:
        """Return what is held of several of one kind as one; nothing where one holds nothing."""
        if any(each is None for each in held):
            return None
        if isinstance(held[0], Mapping):
            return {name: sum(each.get(name, 0) for each in held) for name in dict.fromkeys(chain(*held))}
        return [sum(parts) for parts in zip(*held, strict=True)] if isinstance(held[0], list) else sum(held)


class Rate(Figure):
    """A total by the seconds of the phase, times a factor that the unit asks for."""

    def __init__(self, of: Any, *, factor: float = 1.0, **about: Any) -> None:
        super().__init__(**{"unit": "/s"} | about)
        self.of, self.factor = _declared(of), factor

    def entries(self, outcome: Any | None = None) -> Iterator[Entry]:
        for path, take in self.of.parts(outcome):
            yield self._entry(path, Mean(), take)

    def _observe(self, take: Callable[[Any], Any], outcome: Any) -> float:
        held, seconds = self.of.held(outcome), outcome.seconds
        return self.factor * take(held) / seconds if held is not None and seconds > 0 else math.nan


class Quotient(Figure):
    """A total by the sum of others: the sums of all replications are divided, not their ratios averaged.

    ``of_whole``: each part of a split total by the whole of it.
    """

    statistic = "share"

    def __init__(self, top: Any, *bottoms: Any, of_whole: bool = False, factor: float = 1.0, **about: Any) -> None:
        super().__init__(**about)
        self.top, self.of_whole = _declared(top), of_whole
        self.bottoms = [_declared(each) for each in bottoms or (top,)]
        self.estimator = Ratio(100.0, 100.0) if self.unit == "%" else Ratio(factor)

    def entries(self, outcome: Any | None = None) -> Iterator[Entry]:
        """Yield the whole and its parts; of shares of the whole only the parts."""
        for path, take in self.top.parts(outcome):
            if path or not self.of_whole:
                yield self._entry(path, self.estimator, take)

    def _observe(self, take: Callable[[Any], Any], outcome: Any) -> tuple[float, float]:
        is_whole = self.of_whole or self.top.by is None
        bottom = math.fsum(
            (_whole_of(each) if is_whole or not each.by else take)(each.held(outcome)) for each in self.bottoms
        )
        return float(take(self.top.held(outcome))), bottom


class Delays(Figure):
    """A distribution of times: mean, sd, min and max by replication, percentiles of all replications together."""

    @property
    def adds_up(self) -> bool:
        return True

    def __init__(self, percents: Sequence[float] = PERCENTS, **about: Any) -> None:
        super().__init__(**{"unit": "ms"} | about)
        self.unit_ns, self.percents = NS_OF_UNIT[self.unit], percents
        self._leading = self.headline if isinstance(self.headline, tuple) else ()
        if unknown := [word for word in self._leading if word not in _OF_DELAYS and percent_of(word) is None]:
            raise TypeError(f"no statistic of delays is called '{unknown[0]}': {', '.join(_OF_DELAYS)}, p50, p99_9")

    def entries(self, outcome: Any | None = None) -> Iterator[Entry]:
        """Yield the statistics, and the listed percentiles."""
        yield from self._entries

    @cached_property
    def _entries(self) -> list[Entry]:
        entries = []
        for name, take in _OF_DELAYS.items():
            of_runs, observe = Median() if name in _EXTREMES else Mean(), partial(self._statistic, take)
            entries.append(Entry((self.name, name), self, of_runs, observe, name in self._leading))
        led = [percent_of(word) for word in self._leading]
        percents = dict.fromkeys((*self.percents, *(each for each in led if each is not None)))
        return [*entries, *map(self._percentile, percents)]

    def further(self, word: str) -> Entry | None:
        percent = percent_of(word)
        return None if percent is None else self._percentile(percent)

    def together(self, held: Sequence[DelayHistogram]) -> DelayHistogram:
        return DelayHistogram.together(held)

    def _percentile(self, percent: float) -> Entry:
        word = _word_of(percent)
        observe = self._if_any
        return Entry((self.name, word), self, Percentile(percent, self.unit_ns), observe, word in self._leading)

    def _if_any(self, outcome: Any) -> Any:
        distribution = self.held(outcome)
        return distribution if distribution.count else None

    def _statistic(self, take: Callable[[Any], float], outcome: Any) -> float:
        distribution = self.held(outcome)
        return take(distribution) / self.unit_ns if distribution.count else math.nan


class Series(Figure):
    """Samples at a fixed spacing: their mean is the figure itself; sd, min, max, percentiles by replication.

    ``period`` names the value that the outcome holds of the spacing in ns; ``drawn``: plots show it over time.
    """

    def __init__(self, *, period: str = "", drawn: bool = False, **about: Any) -> None:
        super().__init__(**about)
        self.period, self.drawn = period, drawn

    def entries(self, outcome: Any | None = None) -> Iterator[Entry]:
        """Yield the mean under the figure's name, and the other statistics below it."""
        yield from self._entries

    @cached_property
    def _entries(self) -> list[Entry]:
        return [self._entry(() if name == "mean" else (name,), Mean(), take) for name, take in _OF_SERIES.items()]

    def _observe(self, take: Callable[[list[float]], float], outcome: Any) -> float:
        samples = self.held(outcome)
        return float(take(samples)) if samples else math.nan


_Declaration = Callable[..., Any]
total: _Declaration = Total
"""A count or sum over the measured time of a phase."""
number: _Declaration = Number
"""A number that a replication gives as it is: a mean over time, an extreme, something computed by ``source``."""
middle: _Declaration = Middle
"""A number that comes in steps; the middle replication tells."""
verdict: _Declaration = Verdict
"""Whether a replication went beyond the limit by which a phase is judged."""
rate: _Declaration = Rate
"""A total by the seconds of the phase, times ``factor``."""
ratio: _Declaration = Quotient
"""A total by the sum of others, ``ratio(top, *bottoms)``, or by its own whole."""
delays: _Declaration = Delays
"""A distribution of times, as :class:`~vftsim.stats.DelayHistogram`."""
series: _Declaration = Series
"""Samples at a fixed spacing, as a list of numbers."""


def percent_of(word: str) -> float | None:
    """Return the percentile that a word like ``p5``, ``p99`` or ``p99_9`` means; each has this one word."""
    match = re.fullmatch(r"p(\d{1,2})(?:_(\d+))?", word)
    percent = float(f"{match[1]}.{match[2] or 0}") if match else None
    return None if percent is None or _word_of(percent) != word else percent


def _word_of(percent: float) -> str:
    return path_word(f"p{percent:g}")


@lru_cache(maxsize=4096)
def path_word(name: str) -> str:
    return re.sub(r"[^\w*\-]+", "_", name).strip("_") or "_"


def _declared(figure: Any) -> Figure:
    if not isinstance(figure, Figure):
        raise TypeError(f"a figure is declared in terms of declared figures, not of {figure!r}")
    return figure


def _whole(held: Any) -> Any:
    return held


def _sum_of_values(held: Mapping[Any, float]) -> float:
    values = held.values()
    return math.fsum(values) if any(isinstance(value, float) for value in values) else sum(values)


def _mean_of_values(held: Mapping[Any, float]) -> float:
    return fmean(held.values()) if held else math.nan


def _whole_of(figure: Figure) -> Callable[[Any], Any]:
    return next(iter(figure.parts(None)))[1]


def _sd(distribution: DelayHistogram) -> float:
    return distribution.sd if distribution.count > 1 else math.nan


_OF_DELAYS: dict[str, Callable[[Any], float]] = {
    "mean": attrgetter("mean"),
    "sd": _sd,
    "min": attrgetter("min"),
    "max": attrgetter("max"),
}
_EXTREMES = ("min", "max")
"""One observation of a run, which may be far off in a few: their mean is that of what few runs have shown."""


def _variance(samples: list[float]) -> float:
    return float(np.var(samples, ddof=1)) if len(samples) > 1 else math.nan


def _sd_of_samples(samples: list[float]) -> float:
    return math.sqrt(_variance(samples)) if len(samples) > 1 else math.nan


def _percentile_of(percent: float, samples: list[float]) -> float:
    """Return a percentile as :func:`numpy.percentile` does, which takes sixty times as long for 40 samples.

    A result has four of each series, phase and replication.
    """
    ordered = sorted(samples)
    rank = (len(ordered) - 1) * (percent / 100.0)
    below = math.floor(rank)
    low, high = ordered[below], ordered[min(below + 1, len(ordered) - 1)]
    past = rank - below
    # From the nearer end, which is then given exactly.
    return float(low + (high - low) * past if past < 0.5 else high - (high - low) * (1.0 - past))


_OF_SERIES: dict[str, Callable[[list[float]], float]] = {
    "mean": fmean,
    "variance": _variance,
    "sd": _sd_of_samples,
    "min": min,
    "max": max,
    **{f"p{percent}": partial(_percentile_of, percent) for percent in PERCENTS},
}
