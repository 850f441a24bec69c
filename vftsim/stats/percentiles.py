"""Percentiles of delays over replications, with an interval that says when runs are too short for one.

A run's 99 % percentile is too low when the run is short: the waits that belong to the tail come
together, and most runs hold none.  Averaging over runs keeps the error, and the more runs, the surer the
interval misses.  So the percentile is that of all runs together (*sectioning*: Asmussen and Glynn,
*Stochastic Simulation*, III.5; Nakayama, ACM TOMACS 24, 2014); its error comes from the spread of the runs'
own percentiles around it.

Even that needs tails to have been seen.  Delays beyond the percentile come in stretches; dividing their
number by the dispersion of their counts over the runs gives how many independent ones there were.  Below two
in a run, on average, the runs' range is given and no interval.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from vftsim.stats._special import student_t_quantile
from vftsim.stats.estimate import Estimate
from vftsim.stats.histogram import RELATIVE_ERROR, DelayHistogram
from vftsim.stats.intervals import FEWEST_RUNS, hull, runs_range

BODY_PERCENT = 90.0
FEWEST_STRETCHES = 2.0


@dataclass(frozen=True, slots=True)
class Sections:
    """A percentile of all runs together and what each run says about it."""

    pooled: float
    """Percentile of all delays together, in the unit of the delays."""
    by_run: tuple[float, ...]
    """Percentile of each run."""
    beyond: tuple[int, ...]
    """Delays of each run beyond ``pooled``."""
    beyond_body: tuple[int, ...]
    """Delays of each run beyond the pooled 90 % percentile, of which there are more to tell how they cluster."""


def sections(runs: Sequence[DelayHistogram], percents: Sequence[float]) -> list[Sections]:
    """Return what replications say about percentiles; a ValueError for a run without a delay."""
    together = DelayHistogram.together(runs)
    body = together.percentile(BODY_PERCENT)
    beyond_body = tuple(run.count_beyond(body) for run in runs)
    percentiles = []
    for percent in percents:
        by_run = tuple(run.percentile(percent) for run in runs)
        # That of all lies between the runs' own; a bucket's middle, which stands for it, may lie beside them.
        pooled = min(max(together.percentile(percent), min(by_run)), max(by_run))
        beyond = tuple(run.count_beyond(pooled) for run in runs)
        percentiles.append(Sections(pooled, by_run, beyond, beyond_body))
    return percentiles


def percentile_interval(percentile: Sections, confidence: float = 0.95) -> Estimate:
    """Return the pooled percentile with its interval, or with the runs' range where tails are too rare for one."""
    n = len(percentile.by_run)
    if n < FEWEST_RUNS or _stretches(percentile) < FEWEST_STRETCHES * n:
        return runs_range(percentile.pooled, percentile.by_run, confidence)
    mean = math.fsum(percentile.by_run) / n
    below, above = hull(mean, percentile.by_run, confidence, is_positive=True)
    spread = math.sqrt(math.fsum((x - percentile.pooled) ** 2 for x in percentile.by_run) / (n - 1) / n)
    half_width = student_t_quantile((1.0 + confidence) / 2.0, n - 1) * spread
    # The histogram itself is right within 1 %: no percentile is known better.
    low = high = 0.0
    if percentile.pooled > 0.0:
        # The histogram is off by up to 1 %, in all runs alike; it adds to the runs' error as an independent one does.
        ratio_below = max(half_width / percentile.pooled, math.log(mean / below))
        low = percentile.pooled * math.exp(-math.hypot(ratio_below, math.log1p(-RELATIVE_ERROR)))
        high = percentile.pooled + math.hypot(max(half_width, above - mean), RELATIVE_ERROR * percentile.pooled)
    return Estimate(percentile.pooled, (high - low) / 2.0, low, high, n, confidence, "pooled percentile")


def _stretches(percentile: Sections) -> float:
    """Return how many independent stretches beyond the percentile all runs together have seen."""
    dispersion = max(1.0, _dispersion(percentile.beyond), _dispersion(percentile.beyond_body))
    return sum(percentile.beyond) / dispersion


def _dispersion(counts: Sequence[int]) -> float:
    """Return variance over mean: 1 for independent events, more for such as come together."""
    mean = math.fsum(counts) / len(counts)
    if mean == 0.0:
        return 1.0
    return math.fsum((x - mean) ** 2 for x in counts) / (len(counts) - 1) / mean
