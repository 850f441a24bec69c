"""Confidence intervals for simulation output.

The unit of observation is the *replication*: runs with independent seeds give independent values,
while packets or calls inside a run are correlated and give error bars that are far too short.
Proportions are ratios of totals over replications, never means of ratios.  Rare events use exact
intervals on counts of *events* (a burst of lost packets is one event); where nothing was seen, the
one-sided bound of the rule of three takes their place and no "0 +- 0" is ever reported.

References: Law, *Simulation Modeling and Analysis*, ch. 9; Garwood 1936 (Poisson); Clopper and
Pearson 1934 (binomial); Efron, *The Jackknife* (1982); Hanley and Lippman-Hand 1983 (rule of three);
David and Nagaraja, *Order Statistics*, section 7.1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from vftsim.stats._special import beta_quantile, binomial_cdf, gamma_quantile, student_t_quantile
from vftsim.stats.estimate import Estimate, Kind


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return the mean of independent values with Student's t interval."""
    return _t_interval(_finite(values), confidence, "t")


def paired_difference(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return the mean of ``a - b``, paired by replication, with Student's t interval.

    With common random numbers the pairs are positively correlated and the interval is much shorter
    than that of two independent samples.
    """
    first, second = _pairs(a, b)
    return _t_interval([x - y for x, y in zip(first, second, strict=True)], confidence, "paired t")


def ratio_of_sums(numerators: Sequence[float], denominators: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return ``sum(numerators) / sum(denominators)``, such as packets lost over packets sent.

    The standard error is the jackknife's over replications, which holds whatever the correlation
    within a run.  When every numerator is zero the result is the rule-of-three upper bound
    ``-ln(1 - confidence) / sum(denominators)``; it takes trials as independent, so for losses in
    bursts count loss events and use :func:`poisson_interval`.
    """
    top, bottom = _pairs(numerators, denominators)
    if min(bottom) < 0.0 or math.fsum(bottom) <= 0.0:
        raise ValueError("denominators must not be negative, and not all zero")
    if not any(top):
        bound = -math.log(_alpha(confidence)) / math.fsum(bottom)
        return Estimate(0.0, bound / 2.0, 0.0, bound, len(top), confidence, "upper bound")
    ratio, half_width = _jackknife_ratio(top, bottom, confidence)
    low = ratio - half_width
    if min(top) >= 0.0:
        low = max(low, 0.0)
    return Estimate(ratio, half_width, low, ratio + half_width, len(top), confidence, "jackknife ratio")


def paired_ratio(a: Sequence[float], b: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return ``mean(a) / mean(b)``, paired by replication, with the jackknife's interval.

    ``paired_ratio(with_ft, native)`` is the relative cost of fault tolerance.
    """
    top, bottom = _pairs(a, b)
    if math.fsum(bottom) == 0.0:
        raise ValueError("the mean of the denominator is zero")
    ratio, half_width = _jackknife_ratio(top, bottom, confidence)
    return Estimate(ratio, half_width, ratio - half_width, ratio + half_width, len(top), confidence, "jackknife ratio")


def poisson_interval(events: int, exposure: float, confidence: float = 0.95) -> Estimate:
    """Return the rate of rare independent events with Garwood's exact interval.

    Parameters
    ----------
    events : int
        Number of events seen (loss events, not lost packets).
    exposure : float
        What they were seen in: seconds, calls or packets.
    confidence : float
        Confidence level.  Without any event the result is the one-sided upper bound, for 95 % about
        3 / exposure.
    """
    if events < 0 or not exposure > 0.0:
        raise ValueError(f"need events >= 0 and exposure > 0, got {events} and {exposure}")
    alpha = _alpha(confidence)
    if events == 0:
        bound = -math.log(alpha) / exposure
        return Estimate(0.0, bound / 2.0, 0.0, bound, 0, confidence, "upper bound")
    low = gamma_quantile(alpha / 2.0, events) / exposure
    high = gamma_quantile(1.0 - alpha / 2.0, events + 1.0) / exposure
    return Estimate(events / exposure, (high - low) / 2.0, low, high, events, confidence, "Poisson")


def binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Return a probability with Clopper and Pearson's exact interval.

    When no trial or every trial succeeded, the result is the one-sided bound (rule of three).
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"need 0 <= successes <= trials and trials > 0, got {successes} of {trials}")
    alpha = _alpha(confidence)
    if successes in {0, trials}:
        gap = -math.expm1(math.log(alpha) / trials)
        if successes == 0:
            return Estimate(0.0, gap / 2.0, 0.0, gap, trials, confidence, "upper bound")
        return Estimate(1.0, gap / 2.0, 1.0 - gap, 1.0, trials, confidence, "lower bound")
    low = beta_quantile(alpha / 2.0, successes, trials - successes + 1.0)
    high = beta_quantile(1.0 - alpha / 2.0, successes + 1.0, trials - successes)
    return Estimate(successes / trials, (high - low) / 2.0, low, high, trials, confidence, "binomial")


def quantile_interval(values: Sequence[float], probability: float, confidence: float = 0.95) -> Estimate:
    """Return a quantile of independent values with its order-statistic interval.

    Free of any assumption on the distribution.  An end that the sample is too small to support is
    infinite: the 99 % quantile needs hundreds of values.
    """
    ordered = sorted(_finite(values))
    if not 0.0 < probability < 1.0:
        raise ValueError(f"a quantile's probability lies between 0 and 1, got {probability}")
    n, tail = len(ordered), _alpha(confidence) / 2.0
    # The number of values at or below the quantile is binomial(n, probability).
    rank = next(r for r in range(n + 1) if binomial_cdf(r, n, probability) > tail)
    low = ordered[rank - 1] if rank > 0 else -math.inf
    rank = next(r for r in range(1, n + 2) if 1.0 - binomial_cdf(r - 1, n, probability) <= tail)
    high = ordered[rank - 1] if rank <= n else math.inf
    point = ordered[max(math.ceil(probability * n), 1) - 1]
    return Estimate(point, (high - low) / 2.0, low, high, n, confidence, "order statistic")


def central_range(values: Sequence[float], share: float = 0.90) -> tuple[float, float]:
    """Return the range that holds the central ``share`` of the values (5 % to 95 % by default).

    This is the spread of single runs, not an error bar of their mean.
    """
    ordered = sorted(_finite(values))
    if not 0.0 < share < 1.0:
        raise ValueError(f"a share lies between 0 and 1, got {share}")
    tail = (1.0 - share) / 2.0
    return _interpolate(ordered, tail), _interpolate(ordered, 1.0 - tail)


def bonferroni(confidence: float, metrics: int) -> float:
    """Return the confidence each of several metrics needs, so that all hold together at ``confidence``."""
    if metrics < 1:
        raise ValueError(f"need at least one metric, got {metrics}")
    return 1.0 - _alpha(confidence) / metrics


def _t_interval(values: Sequence[float], confidence: float, kind: Kind) -> Estimate:
    n, alpha = len(values), _alpha(confidence)
    if min(values) == max(values):
        mean = float(values[0])
        variance = 0.0
    else:
        mean = math.fsum(values) / n
        variance = math.fsum((x - mean) ** 2 for x in values) / (n - 1)
    half_width = math.inf
    if n > 1:
        half_width = student_t_quantile(1.0 - alpha / 2.0, n - 1) * math.sqrt(variance / n)
    return Estimate(mean, half_width, mean - half_width, mean + half_width, n, confidence, kind)


def _jackknife_ratio(top: list[float], bottom: list[float], confidence: float) -> tuple[float, float]:
    n, alpha = len(top), _alpha(confidence)
    total_top, total_bottom = math.fsum(top), math.fsum(bottom)
    ratio = total_top / total_bottom
    if n == 1 or any(total_bottom == d for d in bottom):
        return ratio, math.inf
    without_one = [(total_top - x) / (total_bottom - d) for x, d in zip(top, bottom, strict=True)]
    center = math.fsum(without_one) / n
    variance = (n - 1) / n * math.fsum((r - center) ** 2 for r in without_one)
    return ratio, student_t_quantile(1.0 - alpha / 2.0, n - 1) * math.sqrt(variance)


def _interpolate(ordered: Sequence[float], probability: float) -> float:
    position = probability * (len(ordered) - 1)
    index = min(int(position), len(ordered) - 1)
    above = ordered[min(index + 1, len(ordered) - 1)]
    return ordered[index] + (position - index) * (above - ordered[index])


def _finite(values: Sequence[float]) -> list[float]:
    result = [float(x) for x in values]
    if not result:
        raise ValueError("no values")
    if not all(map(math.isfinite, result)):
        raise ValueError("values must be finite")
    return result


def _pairs(a: Sequence[float], b: Sequence[float]) -> tuple[list[float], list[float]]:
    if len(a) != len(b):
        raise ValueError(f"paired samples differ in length: {len(a)} and {len(b)}")
    return _finite(a), _finite(b)


def _alpha(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"a confidence level lies between 0 and 1, got {confidence}")
    return 1.0 - confidence
