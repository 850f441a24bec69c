"""Confidence intervals for simulation output, each with measured coverage (``docs/interval-coverage.md``).

The unit of observation is the *replication*: runs with independent seeds give independent values,
while packets or calls inside a run are correlated and give error bars that are far too short.  So no
interval here is built from counts inside runs: losses come in bursts and overload in collapses, and a
Poisson or binomial interval of their counts covers the truth in half of all studies.

What a run gives is often skewed (waiting times, loss, maxima), which Student's t does not notice: its
interval is symmetric and misses on the long side.  A mean's interval is therefore the hull of Student's t and the same
with the sample's skewness taken out (Hall 1992; Willink 2005).  Where values cannot be negative both are
taken of the logarithm of the mean, so that no lower end is negative, and where the values' logarithms are
not skewed to the left the upper end is at least that of a lognormal mean (Cox, in Land 1972), up to three times the
largest run.  From fewer than ten runs skewness cannot be told from chance, nor can it be seen that one run in five
collapses: lowest and highest run are shown instead, and called so.

A mean that rests on fewer than five runs, all others having the same value, gets no interval either: how
often it happens is a binomial share, and how much it is then was seen too rarely.

What happens in a share ``q`` of runs only is missing from all ``n`` of them with probability
``(1 - q)^n``: no interval over ten runs knows of a collapse that befalls one run in twenty.

References: Law, *Simulation Modeling and Analysis*, ch. 9; Hall, *The Bootstrap and Edgeworth
Expansion*, 3.9; Willink, Comm. Stat. Theory Methods 34 (2005); Land, Technometrics 14 (1972); Wolter,
*Introduction to Variance Estimation*, ch. 8; Clopper and Pearson 1934; Efron, *The Jackknife* (1982);
David and Nagaraja, *Order Statistics*, 7.1; Robbins, Ann. Math. Stat. 41 (1970).
"""

import math
from collections import Counter
from collections.abc import Callable, Sequence

from vftsim.stats._special import beta_quantile, binomial_cdf, log_beta, student_t_quantile
from vftsim.stats.estimate import Estimate, Kind

FEWEST_RUNS = 10
"""Replications below which no interval of a mean, ratio or percentile is given."""
FEWEST_WITH_EVENTS = 5
"""Runs that must have seen what a ratio counts before it gets an interval."""
_SKEWNESS_BIAS = 1.2
"""The skewness of a small sample is bounded by its size and comes out too low; chosen by coverage."""
_LEAST_LOG_SKEWNESS = -1.25
"""Skewness of the logarithms below which values near zero would decide the upper end; chosen by coverage."""

_MOST_ABOVE_RUNS = 3.0
"""Times the largest run at which a lognormal's upper end stops: beyond it goes to thousands of times and holds no more
means, for these would rest on values that all runs missed.  Chosen by coverage: twice would hold fewer."""


def mean_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return the mean over replications with its skew-corrected interval; the runs' range below ten of them.

    For a comparison pass the differences, run by run: with common random numbers the pairs are positively
    correlated and the interval is much shorter than that of two independent samples.
    """
    runs = _finite(values)
    mean = _mean(runs)
    if len(runs) < FEWEST_RUNS or rests_on_few(runs):
        return runs_range(mean, runs, confidence)
    low, high = hull(mean, runs, confidence, is_positive=min(runs) >= 0.0)
    return _estimate(mean, low, high, len(runs), confidence, "skew-corrected t")


def stratified_interval(values: Sequence[float], confidence: float = 0.95, jump: float = 0.0) -> Estimate:
    """Return the mean of values at one random place in each of n equal parts of a stretch, in their order.

    Such a mean is nearer to the truth than that of as many independent values, by what the parts differ.  Its error is
    taken from second differences of neighbours, in which a level and a trend cancel (Wolter, 8.2; unbiased for what
    is linear over three parts, too wide where it jumps: whether a jump inside a part was met cannot be seen).

    Where values are known to be higher by up to ``jump`` in some share of the stretch, the upper end has room for the
    largest share that all of them may have missed (Clopper and Pearson: 31 % for ten).
    """
    runs = _finite(values)
    mean, n = _mean(runs), len(runs)
    if n < FEWEST_RUNS or rests_on_few(runs):
        return runs_range(mean, runs, confidence)
    bends = [before - 2.0 * here + after for before, here, after in zip(runs, runs[1:], runs[2:], strict=False)]
    error = math.sqrt(math.fsum(bend**2 for bend in bends) / (6.0 * len(bends)) / n)
    # (1, -2, 1) has the autocovariances 6, -4, 1: squared trace over the trace of the square (Satterthwaite).
    freedom = 36.0 * len(bends) ** 2 / (70.0 * len(bends) - 36.0)
    t = student_t_quantile(1.0 - _alpha(confidence) / 2.0, freedom)
    skewness = _shape(runs)[1] if error else 0.0
    low, high = _around(mean, error, t, n, skewness, is_positive=min(runs) >= 0.0)
    missed = binomial_interval(0, n, confidence).high * jump
    return _estimate(mean, low, max(high, mean + missed), n, confidence, "stratified t")


def t_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return the mean of independent, nearly normal values with Student's t interval.

    For verification against theory.  Commands print :func:`mean_interval`: nothing makes a model's output
    normal.
    """
    runs = _finite(values)
    mean, half_width = _mean(runs), math.inf
    if len(runs) > 1:
        half_width = _t(confidence, len(runs)) * math.sqrt(_spread(runs)[1] / len(runs))
    return Estimate(mean, half_width, mean - half_width, mean + half_width, len(runs), confidence, "t")


def runs_that_tell(values: Sequence[float], confidence: float, most: int) -> float:
    """Return about how many runs put Student's interval of a mean on one side of 0, if further ones are like these.

    Infinity: more than ``most``.  One run says nothing of its spread: so many as an interval takes.
    """
    runs = _finite(values)
    if len(runs) == 1:
        return FEWEST_RUNS
    mean, deviation = abs(_mean(runs)), math.sqrt(_spread(runs)[1])
    enough = (n for n in range(len(runs), most + 1) if mean > _t(confidence, n) * deviation / math.sqrt(n))
    return next(enough, math.inf)


def ratio_of_sums(numerators: Sequence[float], denominators: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return ``sum(numerators) / sum(denominators)``, such as packets lost over packets sent.

    The interval is that of the jackknife's pseudo-values over replications, which holds whatever the
    correlation within a run.  It takes at least ten runs, five of them with something in the numerator;
    with less, lowest and highest run are given: how much a burst loses that has not been seen is unknown.
    """
    top, bottom = _pairs(numerators, denominators)
    if min(bottom) < 0.0 or math.fsum(bottom) <= 0.0:
        raise ValueError("denominators must not be negative, and not all zero")
    ratio = math.fsum(top) / math.fsum(bottom)
    single = [x / d for x, d in zip(top, bottom, strict=True) if d > 0.0]
    if len(single) < FEWEST_RUNS or sum(x != 0.0 for x in top) < FEWEST_WITH_EVENTS:
        return runs_range(ratio, single, confidence)
    is_positive = min(top) >= 0.0
    low, high = hull(ratio, pseudo_values(top, bottom), confidence, is_positive=is_positive)
    return _estimate(ratio, low, high, len(top), confidence, "ratio of sums")


def median_interval(values: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return the middle run with its order-statistic interval, which holds for every distribution.

    For figures of which a mean says little: where a ramp ends, the ratio of two capacities.  Six runs or more;
    below, the runs' range.
    """
    runs = sorted(_finite(values))
    n = len(runs)
    middle = (runs[(n - 1) // 2] + runs[n // 2]) / 2.0
    if 0.5**n > _alpha(confidence) / 2.0:  # even the lowest run may lie above the median
        return runs_range(middle, runs, confidence)
    interval = quantile_interval(runs, 0.5, confidence)
    return _estimate(middle, interval.low, interval.high, n, confidence, "order statistic")


def binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Return a probability with Clopper and Pearson's exact interval, for a number of trials fixed beforehand.

    Trials are replications.  When none or every trial succeeded, one end is the other side's bound (about 3.7 /
    trials, where a one-sided statement would have the 3 of the rule of three).
    """
    _check_count(successes, trials)
    alpha = _alpha(confidence)
    if successes in {0, trials}:
        return _one_sided(successes, trials, -math.expm1(math.log(alpha / 2.0) / trials), confidence)
    low = beta_quantile(alpha / 2.0, successes, trials - successes + 1.0)
    high = beta_quantile(1.0 - alpha / 2.0, successes + 1.0, trials - successes)
    return _estimate(successes / trials, low, high, trials, confidence, "binomial")


def sequential_binomial_interval(successes: int, trials: int, confidence: float = 0.95) -> Estimate:
    """Return a probability with an interval that holds however the number of trials came about.

    A search stops at a load as soon as its runs decide it, so the share seen there leans towards the decision
    and Clopper and Pearson's interval covers too rarely.  This one holds at every stopping time at once: it is
    the set of all ``p`` against which the evidence ``B(s + 1, f + 1) / (p^s (1 - p)^f)`` has not reached
    ``1 / (1 - confidence)`` (Robbins 1970, as in :mod:`vftsim.stats.bernoulli_test`).
    """
    _check_count(successes, trials)
    failures = trials - successes
    least = log_beta(successes + 1.0, failures + 1.0) + math.log(_alpha(confidence))
    share = successes / trials

    def is_kept(p: float) -> bool:
        return _log_power(p, successes) + _log_power(1.0 - p, failures) >= least

    low, high = _boundary(is_kept, share, 0.0), _boundary(is_kept, share, 1.0)
    if successes in {0, trials}:
        return _one_sided(successes, trials, high - low, confidence)
    return _estimate(share, low, high, trials, confidence, "sequential binomial")


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
    return _estimate(point, low, high, n, confidence, "order statistic")


def runs_range(center: float, runs: Sequence[float], confidence: float = 0.95) -> Estimate:
    """Return a figure with lowest and highest run, where an interval would promise too much."""
    low, high = min(runs), max(runs)
    return _estimate(center, low, high, len(runs), confidence, "range")


def unless_mixed(estimate: Estimate, runs: Sequence[float], is_mixed: bool) -> Estimate:
    """Return an estimate, but the runs' range where some runs went wrong and others did not.

    A mean over both is as uncertain as the share of either, of which a handful of runs says little: at one collapse
    in ten, 35 % of studies of ten runs have none, and any interval of theirs is one of runs that go well.  So it is
    given for runs of one kind, and the share of the other has its own (:func:`binomial_interval`).
    """
    return runs_range(estimate.mean, runs, estimate.confidence) if is_mixed else estimate


def central_range(values: Sequence[float], share: float = 0.90) -> tuple[float, float]:
    """Return the range into which one further run falls with probability ``share``.

    This is the spread of single runs, not an error bar of their mean.  Between two of ``n`` runs in order the
    next one falls with probability ``1 / (n + 1)``, so the range of all ``n`` is the widest there is: below 19
    runs it holds less than 90 %.
    """
    ordered = sorted(_finite(values))
    if not 0.0 < share < 1.0:
        raise ValueError(f"a share lies between 0 and 1, got {share}")
    tail = (1.0 - share) / 2.0
    return _interpolate(ordered, tail), _interpolate(ordered, 1.0 - tail)


def range_content(n: int, share: float = 0.90, confidence: float = 0.95) -> tuple[float, float]:
    """Return between which shares of further runs :func:`central_range` of ``n`` runs holds.

    What lies between two of n runs in order is a share with a beta distribution, whatever the runs' own (Wilks 1941).
    """
    outside = max((1.0 - share) * (n + 1.0), 2.0)  # of the n + 1 gaps between the runs; a range ends at a run at most
    tail = _alpha(confidence) / 2.0
    inside = n + 1.0 - outside
    return (
        beta_quantile(tail, inside, outside) if inside > 0.0 else 0.0,
        beta_quantile(1.0 - tail, inside, outside) if inside > 0.0 else 0.0,
    )


def bonferroni(confidence: float, metrics: int) -> float:
    """Return the confidence each of several metrics needs, so that all hold together at ``confidence``."""
    if metrics < 1:
        raise ValueError(f"need at least one metric, got {metrics}")
    return 1.0 - _alpha(confidence) / metrics


def hull(center: float, values: Sequence[float], confidence: float, *, is_positive: bool) -> tuple[float, float]:
    """Return the hull of the plain and the skew-corrected t interval around an estimate.

    There are at least three independent values, whose mean has the estimate's error.  If the quantity cannot be
    negative, intervals are those of the logarithm, and a lognormal's upper end counts.
    """
    (error, skewness), t, n = _shape(values), _t(confidence, len(values)), len(values)
    if error == 0.0:
        return center, center
    low, high = _around(center, error, t, n, skewness, is_positive=is_positive)
    if is_positive and min(values) > 0.0:
        high = max(high, min(_lognormal_high(values, t), _MOST_ABOVE_RUNS * max(values)))
    return low, high


def _around(
    center: float, error: float, t: float, n: int, skewness: float, *, is_positive: bool
) -> tuple[float, float]:
    """Return the hull of the plain and the skew-corrected interval; of the logarithm's, if it cannot be negative."""
    if error == 0.0:
        return center, center
    bend = _SKEWNESS_BIAS * skewness / (6.0 * math.sqrt(n))
    below, above = max(t, _unbent(t, bend)) * error, max(t, -_unbent(-t, bend)) * error
    if not is_positive or center <= 0.0:
        return center - below, center + above
    return center * math.exp(-below / center), max(center + above, center * math.exp(min(t * error / center, 700.0)))


def _lognormal_high(values: Sequence[float], t: float) -> float:
    """Return the upper end for the mean of lognormal values (Cox's); nothing where they are not nearly so."""
    logs = [math.log(x) for x in values]
    n, (error, skewness) = len(logs), _shape(logs)
    if error == 0.0 or skewness < _LEAST_LOG_SKEWNESS:
        return -math.inf
    variance = n * error**2
    spread = math.sqrt(variance / n + variance**2 / (2.0 * (n - 1)))
    return math.exp(min(_mean(logs) + variance / 2.0 + t * spread, 700.0))


def rests_on_few(values: Sequence[float]) -> bool:
    """Whether all but fewer than five values are the same, and not all."""
    others = len(values) - max(Counter(values).values())
    return 0 < others < FEWEST_WITH_EVENTS


def _unbent(t: float, bend: float) -> float:
    """Invert Hall's cubic, which makes a skewed studentized mean nearly normal (Willink 2005, eq. 5)."""
    if abs(bend) < 1e-9:
        return t
    return (math.cbrt(1.0 + 6.0 * bend * (t - bend)) - 1.0) / (2.0 * bend)


def _shape(values: Sequence[float]) -> tuple[float, float]:
    """Return the standard error of the mean, and the skewness of the values; of equal ones that is 0."""
    n, (apart, variance) = len(values), _spread(values)
    if variance == 0.0:
        return 0.0, 0.0
    deviation = math.sqrt(variance)
    third = math.fsum([(each / deviation) ** 3 for each in apart])
    return math.sqrt(variance / n), n * third / ((n - 1) * (n - 2))


def pseudo_values(top: Sequence[float], bottom: Sequence[float]) -> list[float]:
    """Return the jackknife's pseudo values of a ratio of sums: their spread is that of the ratio (Efron 1982)."""
    n, total_top, total_bottom = len(top), math.fsum(top), math.fsum(bottom)
    ratio = total_top / total_bottom
    without = [(total_top - x) / (total_bottom - d) for x, d in zip(top, bottom, strict=True)]
    return [n * ratio - (n - 1) * other for other in without]


def _mean(values: Sequence[float]) -> float:
    return float(values[0]) if min(values) == max(values) else math.fsum(values) / len(values)


def _spread(values: Sequence[float]) -> tuple[list[float], float]:
    """Return how far values are from their mean, and their variance."""
    mean = _mean(values)
    apart = [x - mean for x in values]
    return apart, math.fsum([each**2 for each in apart]) / (len(values) - 1)


def _t(confidence: float, n: int) -> float:
    return student_t_quantile(1.0 - _alpha(confidence) / 2.0, n - 1)


def _estimate(center: float, low: float, high: float, n: int, confidence: float, kind: Kind) -> Estimate:
    return Estimate(center, (high - low) / 2.0, low, high, n, confidence, kind)


def _one_sided(successes: int, trials: int, gap: float, confidence: float) -> Estimate:
    if successes == 0:
        return _estimate(0.0, 0.0, gap, trials, confidence, "upper bound")
    return _estimate(1.0, 1.0 - gap, 1.0, trials, confidence, "lower bound")


def _log_power(base: float, exponent: int) -> float:
    if exponent == 0:
        return 0.0
    return exponent * math.log(base) if base > 0.0 else -math.inf


def _boundary(is_kept: Callable[[float], bool], inside: float, outside: float) -> float:
    """Return where a set that holds ``inside`` ends on the way to ``outside``, by bisection."""
    if is_kept(outside):
        return outside
    for _ in range(60):
        middle = (inside + outside) / 2.0
        inside, outside = (middle, outside) if is_kept(middle) else (inside, middle)
    return inside


def _interpolate(ordered: Sequence[float], probability: float) -> float:
    position = min(max(probability * (len(ordered) + 1) - 1.0, 0.0), len(ordered) - 1.0)
    index = min(int(position), len(ordered) - 1)
    above = ordered[min(index + 1, len(ordered) - 1)]
    return ordered[index] + (position - index) * (above - ordered[index])


def _check_count(successes: int, trials: int) -> None:
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"need 0 <= successes <= trials and trials > 0, got {successes} of {trials}")


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
