"""A number with its error bar: what every statistical procedure of vftsim returns."""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, Self

from vftsim.files import Endless

NOTHING = "-"
_MOST_DECIMALS = 6
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
    half_width: Endless
    """Half the width of the interval; infinite when the data allow no interval."""
    low: float
    high: Endless
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

    def times(self, factor: float, most: float = math.inf) -> Self:
        """Return it in another unit, a factor smaller; nothing lies above ``most``."""
        mean, half_width, low, high = (factor * x for x in (self.mean, self.half_width, self.low, self.high))
        return replace(self, mean=mean, half_width=half_width, low=low, high=min(high, most))

    def bound(self, write: Callable[[float], str]) -> str:
        """Return the bound with its sign, where a bound is all that is known; else nothing."""
        if self.kind == "upper bound":
            return f"< {write(self.high)}"
        return f"> {write(self.low)}" if self.kind == "lower bound" else ""

    def shown(self) -> tuple[str, str]:
        """Return its value and what stands behind or below it: an interval, or a range in round brackets.

        A value has the digits that its interval carries: two of the interval's half width, none rounded left of the
        point, never a power of ten.  Where there is no interval it has four; one whose ends are the same in these
        digits is none.
        """
        if bound := self.bound(_short):
            return bound, ""
        if math.isinf(self.high) and math.isfinite(self.low):
            return plain(self.mean), f"[{plain(self.low)} or more]"
        mean, half = self.mean, (self.high - self.low) / 2.0
        if not math.isfinite(half) or half <= 0.0 or (self.n == 1 and self.kind != "with prices"):
            return plain(mean), ""
        decimals = min(_decimals(half), _decimals(mean) + 2 if mean else _MOST_DECIMALS)
        value, low, high = (fixed(x, decimals) for x in (mean, self.low, self.high))
        if low == high:
            return value, ""
        if self.kind == "range":
            return value, f"({low} to {high})"
        # [0, 50] is not 24 ± 25
        is_below_0 = self.low >= 0.0 and round(mean, max(0, decimals)) < round(half, max(0, decimals))
        is_even = abs(self.high + self.low - 2.0 * mean) < 0.05 * (self.high - self.low) and not is_below_0
        return value, f"± {fixed(half, decimals)}" if is_even else f"[{low}, {high}]"

    def __str__(self) -> str:
        value, behind = self.shown()
        level = f"{100 * self.confidence:g} %, " if self.kind != "range" and (behind or "bound" in self.kind) else ""
        return " ".join(part for part in (value, behind, f"({level}n={self.n})") if part)


def fixed(value: float, decimals: int) -> str:
    """Return a number with so many decimals, at least none, and thousands apart."""
    places = max(0, decimals)
    return f"{round(value, places) + 0.0:,.{places}f}"


def span(low: float, high: float) -> str:
    """Return a range with the digits that its width carries: two of half of it, none rounded left of the point."""
    half = (high - low) / 2.0
    if not (half > 0.0 and math.isfinite(half)):
        return plain(low) if low == high else f"{plain(low)} to {plain(high)}"
    return f"{fixed(low, _decimals(half))} to {fixed(high, _decimals(half))}"


def plain(value: float) -> str:
    """Return a number with four digits, without zeros that say nothing."""
    if value == 0.0 or not math.isfinite(value):
        return "0" if value == 0.0 else NOTHING
    text = fixed(value, _decimals(value) + 2)
    return text.rstrip("0").rstrip(".") if "." in text else text


def _short(value: float) -> str:
    """Return a number with three digits, as a bound is known."""
    return fixed(value, _decimals(value) + 1) if value else "0"


def _decimals(value: float) -> int:
    """Return the decimal place of the second significant digit."""
    return 1 - math.floor(math.log10(abs(value)))
