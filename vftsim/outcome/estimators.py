"""How replications of one figure become an estimate, and those of two models a difference.

The estimator belongs to the figure, not to the study: a share is a ratio of sums, a percentile is that of all
replications together, whoever asks.  Intervals are those of :mod:`vftsim.stats`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from vftsim.stats import (
    Estimate,
    binomial_interval,
    mean_interval,
    median_interval,
    percentile_interval,
    ratio_of_sums,
    runs_range,
    unless_mixed,
)
from vftsim.stats.histogram import RELATIVE_ERROR
from vftsim.stats.intervals import FEWEST_RUNS, hull, pseudo_values, rests_on_few
from vftsim.stats.percentiles import Sections, sections


class Estimator(ABC):
    """Puts together what each replication observed of a figure."""

    @abstractmethod
    def single(self, observed: Any) -> float:
        """Return the figure of one replication by itself; nan if it says nothing."""

    def values(self, observed: Sequence[Any]) -> list[float]:
        """Return one number a replication, whose spread is the estimate's error."""
        return [self.single(each) for each in observed]

    @abstractmethod
    def interval(self, observed: Sequence[Any], confidence: float) -> Estimate:
        """Return the estimate over replications that all say something."""

    def difference(
        self, first: Sequence[Any], second: Sequence[Any], confidence: float, *, is_mixed: bool = False
    ) -> Estimate:
        """Return ``second`` less ``first`` of paired replications: of the two estimates, with the spread of the pairs.

        If there is too little for an interval of one of the two, or of the pairs, or if they are mixed (see
        :func:`~vftsim.stats.intervals.unless_mixed`), there is none of the difference: the replications' own
        differences are given, their mean with the lowest and the highest.  That of the two estimates need not lie
        between these: a percentile or a share of all replications together is no mean of their own.
        """
        before, after = self.interval(first, confidence), self.interval(second, confidence)
        center = after.mean - before.mean
        by_run = [self.single(b) - self.single(a) for a, b in zip(first, second, strict=True)]
        is_range = len(first) < FEWEST_RUNS or "range" in (before.kind, after.kind) or rests_on_few(by_run)
        if is_mixed or is_range:
            return runs_range(math.fsum(by_run) / len(by_run), by_run, confidence)
        pairs = [b - a for a, b in zip(self.values(first), self.values(second), strict=True)]
        low, high = hull(center, pairs, confidence, is_positive=False) if len(set(pairs)) > 1 else (center, center)
        return Estimate(center, (high - low) / 2.0, low, high, len(first), confidence, "skew-corrected t")


class Mean(Estimator):
    """Each replication gives a number; they are averaged.  Totals, rates, means over time and extremes are this."""

    def single(self, observed: Any) -> float:
        return float(observed)

    def interval(self, observed: Sequence[Any], confidence: float) -> Estimate:
        """Return the mean with the hull of three t intervals."""
        return mean_interval(self.values(observed), confidence)


class Median(Mean):
    """Each replication gives a number that comes in steps; the middle one is taken."""

    def interval(self, observed: Sequence[Any], confidence: float) -> Estimate:
        return median_interval(self.values(observed), confidence)

    def difference(
        self, first: Sequence[Any], second: Sequence[Any], confidence: float, *, is_mixed: bool = False
    ) -> Estimate:
        """Return the middle difference, which is not the difference of the middles."""
        pairs = [b - a for a, b in zip(self.values(first), self.values(second), strict=True)]
        return unless_mixed(median_interval(pairs, confidence), pairs, is_mixed)


@dataclass(frozen=True)
class Ratio(Estimator):
    """Each replication gives two sums, (numerator, denominator); the sums are added first and divided then."""

    factor: float = 1.0
    most: float = math.inf
    """What no interval goes beyond where each numerator is a part of its denominator."""

    def single(self, observed: Any) -> float:
        numerator, denominator = observed
        return self.factor * numerator / denominator if denominator else math.nan

    def values(self, observed: Sequence[Any]) -> list[float]:
        """Return jackknife pseudo values."""
        numerators, denominators = zip(*observed, strict=True)
        return [self.factor * each for each in pseudo_values(list(numerators), list(denominators))]

    def interval(self, observed: Sequence[Any], confidence: float) -> Estimate:
        numerators, denominators = zip(*observed, strict=True)
        is_part = all(numerator <= denominator for numerator, denominator in observed)
        ratio = ratio_of_sums(numerators, denominators, confidence)
        return ratio.times(self.factor, self.most if is_part else math.inf)


class Share(Mean):
    """Each replication says yes or no; the share of those that say yes is given, in percent."""

    def single(self, observed: Any) -> float:
        return 100.0 * bool(observed)

    def interval(self, observed: Sequence[Any], confidence: float) -> Estimate:
        """Return the share with the interval of Clopper and Pearson: exact for a number of runs fixed beforehand."""
        return binomial_interval(sum(map(bool, observed)), len(observed), confidence).times(100.0)


@dataclass(frozen=True)
class Percentile(Estimator):
    """Each replication gives a histogram; the percentile is that of all together, the error that of their own.

    ``unit_ns`` nanoseconds are one unit of the figure.
    """

    percent: float
    unit_ns: float

    def single(self, observed: Any) -> float:
        return float(observed.percentile(self.percent)) / self.unit_ns

    def interval(self, observed: Sequence[Any], confidence: float) -> Estimate:
        (percentile,) = sections(observed, [self.percent])
        by_run = tuple(each / self.unit_ns for each in percentile.by_run)
        return percentile_interval(
            Sections(percentile.pooled / self.unit_ns, by_run, percentile.beyond, percentile.beyond_body), confidence
        )

    def difference(
        self, first: Sequence[Any], second: Sequence[Any], confidence: float, *, is_mixed: bool = False
    ) -> Estimate:
        """Return the difference of the pooled percentiles.

        Each is off by up to the histogram's error, whatever the pairs have in common; it adds to their error as an
        independent one does.  Pairs that saw the same delays, each of them, differ by nothing.
        """
        interval = super().difference(first, second, confidence, is_mixed=is_mixed)
        if not interval.is_interval or all(before == after for before, after in zip(first, second, strict=True)):
            return interval
        ends = (self.interval(each, confidence).mean for each in (first, second))
        off, center = RELATIVE_ERROR * math.fsum(ends), interval.mean
        low, high = center - math.hypot(center - interval.low, off), center + math.hypot(interval.high - center, off)
        return replace(interval, low=low, high=high, half_width=(high - low) / 2.0)


def is_known(observed: Any) -> bool:
    """Whether a replication says something of a figure: a share of nothing and a delay that did not occur do not."""
    if isinstance(observed, tuple):
        return bool(observed[1] > 0)
    return math.isfinite(observed) if isinstance(observed, int | float) else observed is not None
