"""A number with its error bar: what every statistical procedure of vftsim returns."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

Kind = Literal[
    "t",
    "skew-corrected t",
    "stratified t",
    "ratio of sums",
    "pooled percentile",
    "order statistic",
    "binomial",
    "sequential binomial",
    "capacity search",
    "upper bound",
    "lower bound",
    "with prices",
    "range",
]
"""Where an interval comes from.

``with prices`` is that of replications together with what the ranges of prices make; ``range`` is none: lowest and
highest run, where there is too little to infer an interval from."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A point estimate and its confidence interval."""

    mean: float
    """Point estimate (of a mean, ratio, rate, quantile or capacity, according to ``kind``)."""
    half_width: float
    """Half the width of the interval; infinite when the data allow no interval."""
    low: float
    high: float
    """Ends of the interval, cut at the values that are possible at all."""
    n: int
    """What the interval rests on: replications, trials, events or values."""
    confidence: float
    """Confidence level, such as 0.95; of a ``range``, the level of the interval that it stands in for."""
    kind: Kind
    """Where the interval comes from."""

    @property
    def is_interval(self) -> bool:
        """Whether ``low`` and ``high`` bound the true value at the stated confidence."""
        return self.kind != "range" and (math.isfinite(self.low) or math.isfinite(self.high))

    @property
    def relative_half_width(self) -> float:
        """Half width as a fraction of the point estimate; infinite where that is zero."""
        return self.half_width / abs(self.mean) if self.mean else math.inf

    def times(self, factor: float, most: float = math.inf) -> Estimate:
        """Return it in another unit, a factor smaller; nothing lies above ``most``."""
        mean, half_width, low, high = (factor * x for x in (self.mean, self.half_width, self.low, self.high))
        return replace(self, mean=mean, half_width=half_width, low=low, high=min(high, most))

    def __str__(self) -> str:
        basis = f"{100 * self.confidence:g} %, n={self.n}"
        if self.kind == "upper bound":
            basis = basis if self.n else f"{100 * self.confidence:g} %"
            return f"< {self.high:.2g} ({basis}, none seen)"
        if self.kind == "lower bound":
            return f"> {_significant(self.low)} ({basis}, no exception seen)"
        if not math.isfinite(self.low) and not math.isfinite(self.high):
            return f"{self.mean:.4g} (n={self.n}: too few for an interval)"
        if self.half_width == 0.0 and self.n > 1:
            return f"{self.mean:.6g} (identical in all {self.n}: no interval)"
        if self.kind == "range":
            return self._with_range()
        return f"{self._with_bar()} ({basis})"

    def _with_range(self) -> str:
        if self.n == 1:
            return f"{self.mean:.4g} (n=1: too few for an interval)"
        return f"{self.mean:.4g} ({self.low:.4g} to {self.high:.4g} in {self.n} runs)"

    def _with_bar(self) -> str:
        width = self.high - self.low
        if not math.isfinite(width):
            return f"{self.mean:.4g} [{self.low:.4g}, {self.high:.4g}]"
        if self._is_symmetric():
            decimals = _decimals(self.half_width)
            return f"{_fixed(self.mean, decimals)} +-{_fixed(self.half_width, decimals)}"
        decimals = _decimals(width / 2.0)
        mean, low, high = (_fixed(x, decimals) for x in (self.mean, self.low, self.high))
        return f"{mean} [{low}, {high}]"

    def _is_symmetric(self) -> bool:
        tolerance = 1e-9 * max(abs(self.mean), self.half_width)
        above, below = self.high - self.mean, self.mean - self.low
        return abs(above - self.half_width) <= tolerance and abs(below - self.half_width) <= tolerance


def _decimals(half_width: float) -> int:
    """Return the decimal place of the second significant digit of an error bar."""
    return 1 - math.floor(math.log10(half_width))


def _fixed(value: float, decimals: int) -> str:
    value = round(value, decimals)
    if decimals > 7:
        if value == 0.0:
            return "0"
        return f"{value:.{max(0, decimals + math.floor(math.log10(abs(value))))}e}"
    return f"{value:.{max(0, decimals)}f}"


def _significant(share: float) -> str:
    """Show a share close to 1 with two digits of its distance from 1."""
    gap = 1.0 - share
    return f"{share:.{_decimals(gap)}f}" if 0.0 < gap < 0.5 else f"{share:.2g}"
