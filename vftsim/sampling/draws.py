"""Distributions as inverse functions of uniforms, and draws of one entity in order.

Every draw is ``F^-1(u)`` of exactly one uniform.  Changing a rate or a mean therefore moves every
draw the same way (a faster server is faster for *each* message), which is what makes common random
numbers reduce the variance of a comparison; rejection methods would use a varying number of uniforms
and lose it (Law, *Simulation Modeling and Analysis*, section 11.2).

Times are integer nanoseconds, rounded to nearest: the rounding error has mean zero and is below any
effect modelled here.  The formulas are the textbook inverses: exponential ``-ln(1 - u)``; gamma by the
inverse of the regularised incomplete gamma function with shape ``1 / cv^2``, between its tails from a table: that
function takes a microsecond a value, and was half of the time of a run that draws many.

Left out: heavy-tailed families; a trace or an empirical table goes through :func:`categorical`.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vftsim.errors import UsageError
from vftsim.sampling.streams import Streams, next_uniforms

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

NS_PER_S = 1_000_000_000
_INT64_END = 2.0**63

_TABLED_FROM, _CELLS, _CELLS_PER_1 = 0.03125, 960, 1024.0
"""Uniforms from 1/32 to 31/32, in cells of 1/1024, are tabled: the tails bend too much."""
_LEAST_TABLED = 0.2
"""Shape; a cv above 2.2 bends too much everywhere."""
_LEAST_CV = 1e-7
"""Below, a shape is so large that neither the inverse nor its density are numbers."""


def unit_exponential(uniforms: FloatArray) -> FloatArray:
    """Return exponential variates of mean 1: the gaps of a Poisson process of rate 1."""
    return -np.log1p(-uniforms)


def poisson_gaps_ns(uniforms: FloatArray, rate_per_s: float) -> IntArray:
    """Return the gaps between Poisson arrivals, in ns.

    Two rates given the same uniforms see the same arrivals, stretched in time.
    """
    if not (rate_per_s > 0.0 and math.isfinite(rate_per_s)):
        raise ValueError(f"an arrival rate must be positive and finite, got {rate_per_s}")
    return _to_ns(unit_exponential(uniforms) * (NS_PER_S / rate_per_s))


def exponential_ns(uniforms: FloatArray, mean_ns: float) -> IntArray:
    """Return exponential durations of the given mean, in ns."""
    return _to_ns(unit_exponential(uniforms) * _checked_mean(mean_ns))


def gamma_ns(uniforms: FloatArray, mean_ns: float, cv: float) -> IntArray:
    """Return gamma durations of the given mean (ns) and coefficient of variation.

    ``cv = 0``, or next to it, gives the constant, ``cv = 1`` the exponential, ``cv = 1 / sqrt(k)`` the Erlang-k.
    """
    mean_ns = _checked_mean(mean_ns)
    if not (cv >= 0.0 and math.isfinite(cv)):
        raise ValueError(f"a coefficient of variation must be finite and not negative, got {cv}")
    if cv < _LEAST_CV:
        return _to_ns(np.full(uniforms.shape, mean_ns))
    if cv == 1.0:
        return exponential_ns(uniforms, mean_ns)
    shape = 1.0 / (cv * cv)
    return _to_ns(_unit_gamma(uniforms, shape) * (mean_ns / shape))


def _unit_gamma(uniforms: FloatArray, shape: float) -> FloatArray:
    """Return gamma variates of a shape and scale 1; which way a value is found depends on its uniform alone."""
    if shape < _LEAST_TABLED:
        return _exact_gamma(uniforms, shape)
    cells = (uniforms - _TABLED_FROM) * _CELLS_PER_1
    cell = np.floor(cells)
    is_tabled = (cell >= 0.0) & (cell < _CELLS)
    number = np.where(is_tabled, cell, 0.0).astype(np.intp)
    within, (last, *others) = cells - cell, _gamma_table(shape)
    deviates = last[number]
    for coefficients in others:
        deviates = deviates * within + coefficients[number]
    tails = np.flatnonzero(~is_tabled)
    deviates[tails] = _exact_gamma(uniforms[tails], shape)
    return deviates


@lru_cache(maxsize=256)
def _gamma_table(shape: float) -> list[FloatArray]:
    """Return the coefficients of a polynomial of degree 5 for each cell, the highest first.

    Quintic Hermite interpolation of an inverse distribution (Hörmann and Leydold 2003, ACM TOMACS 13(4)): at both ends
    of a cell the inverse and its first two derivatives are exact.  With x the inverse and g the density, these are
    ``1 / g(x)`` and ``(1 - (shape - 1) / x) / g(x)^2``.  ``scipy.stats`` has the same, and takes a second to import.
    """
    ends = _TABLED_FROM + np.arange(_CELLS + 1) / _CELLS_PER_1
    x = _exact_gamma(ends, shape)
    density = np.exp((shape - 1.0) * np.log(x) - x - math.lgamma(shape))
    slope = 1.0 / (density * _CELLS_PER_1)
    bend = (1.0 - (shape - 1.0) / x) * slope * slope
    rise, d0, d1, s0, s1 = np.diff(x), slope[:-1], slope[1:], bend[:-1], bend[1:]
    return [
        6.0 * rise - 3.0 * (d0 + d1) - 0.5 * (s0 - s1),
        -15.0 * rise + 8.0 * d0 + 7.0 * d1 + 1.5 * s0 - s1,
        10.0 * rise - 6.0 * d0 - 4.0 * d1 - 1.5 * s0 + 0.5 * s1,
        0.5 * s0,
        d0,
        x[:-1],
    ]


def _exact_gamma(uniforms: FloatArray, shape: float) -> FloatArray:
    # Imported on first use: scipy.special costs start-up time that most commands do not need.
    special: Any = importlib.import_module("scipy.special")
    deviates: FloatArray = special.gammaincinv(shape, uniforms)
    return deviates


def uniform(uniforms: FloatArray, low: float, high: float) -> FloatArray:
    """Return values spread evenly between ``low`` and ``high``."""
    if not low <= high:
        raise ValueError(f"low {low} is above high {high}")
    return low + uniforms * (high - low)


def uniform_ns(uniforms: FloatArray, low_ns: int, high_ns: int) -> IntArray:
    """Return integer times spread evenly over ``low_ns .. high_ns``, both ends included."""
    if not 0 <= low_ns <= high_ns:
        raise ValueError(f"need 0 <= low <= high, got {low_ns} and {high_ns}")
    span = high_ns - low_ns + 1
    # For spans beyond 2**53 the product may round up to the span itself.
    return low_ns + np.minimum((uniforms * span).astype(np.int64), span - 1)


def categorical(uniforms: FloatArray, probabilities: Sequence[float]) -> IntArray:
    """Return the index of the class each uniform falls into.

    Parameters
    ----------
    uniforms : array of float
        Values between 0 and 1.
    probabilities : sequence of float
        One per class, not negative, summing to 1 within 1e-9.
    """
    weights = np.asarray(probabilities, dtype=np.float64)
    if weights.ndim != 1 or weights.size == 0 or not bool(np.all(weights >= 0.0)):
        raise ValueError(f"probabilities must be a non-empty list of numbers >= 0, got {list(probabilities)}")
    if abs(math.fsum(weights) - 1.0) > 1e-9:
        raise ValueError(f"probabilities sum to {math.fsum(weights)}, not to 1")
    edges = np.cumsum(weights)
    # The last class of positive weight takes what rounding leaves of the unit interval.
    last = int(np.flatnonzero(weights)[-1])
    return np.searchsorted(edges[:last], uniforms, side="right").astype(np.int64)


def _checked_mean(mean_ns: float) -> float:
    if not (mean_ns >= 0.0 and math.isfinite(mean_ns)):
        raise ValueError(f"a mean duration must be finite and not negative, got {mean_ns}")
    return float(mean_ns)


def _to_ns(values: FloatArray) -> IntArray:
    rounded = np.rint(values)
    if rounded.size and float(rounded.max()) >= _INT64_END:
        raise UsageError(
            "a drawn time exceeds 292 years, the range of integer nanoseconds; raise the rate, or lower the time or "
            "its coefficient of variation"
        )
    return rounded.astype(np.int64)


class Draws:
    """Draws of one entity in order; each depends on the stream and its number alone, not on how many come at a time.

    Parameters
    ----------
    streams : Streams
        The streams of the replication.
    name, entity : str, int
        What they decide, and for whom.
    transform : callable
        Turns an array of uniforms into one of draws, element by element.
    first : int
        Number of the first one.
    """

    def __init__(
        self,
        streams: Streams,
        name: str,
        entity: int,
        transform: Callable[[NDArray[np.float64]], NDArray[Any]],
        *,
        first: int = 0,
    ) -> None:
        self._streams = streams
        self._key = (name, entity)
        self._transform = transform
        self._next = first
        self._words: np.random.PCG64DXSM | None = None
        self._branch = streams.branch

    def __call__(self, count: int) -> NDArray[Any]:
        """Return the next draws."""
        if self._words is None or self._branch != self._streams.branch:
            # A stream is begun once and read on: its beginning costs as much as some thousand of its numbers.
            self._words, self._branch = self._streams.words(*self._key, self._next), self._streams.branch
        self._next += count
        return self._transform(next_uniforms(self._words, count))


def renewals_ns(
    streams: Streams, stream_name: str, entity: int, first_ns: int, mean_ns: float, cv: float, lasts_ns: int, most: int
) -> list[int]:
    """Return the first ``most`` instants of a renewal process whose events last, the first a gap after ``first_ns``.

    The next event begins a gap after the one before has ended; gaps are independent, gamma distributed with one mean
    and coefficient of variation (1: exponential, so that events that take no time are a Poisson process; 0: constant).
    """
    instants, end_ns = [], first_ns
    for gap_ns in gamma_ns(streams.uniforms(stream_name, entity, count=most), mean_ns, cv):
        instants.append(end_ns + int(gap_ns))
        end_ns = instants[-1] + lasts_ns
    return instants
