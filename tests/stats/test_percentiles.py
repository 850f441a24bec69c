"""Percentiles over replications: what is pooled, when there is an interval, and that it holds."""

import math

import numpy as np
import pytest

from vftsim.stats import DelayHistogram, Sections, percentile_interval, sections
from vftsim.stats.histogram import BUCKET_ENDS_NS, RELATIVE_ERROR


def histogram(values):
    result = DelayHistogram()
    for value in values:
        result.add(value)
    return result


def counted(values):
    """The same of an array, without a step of Python for each value."""
    buckets = np.unique(np.searchsorted(BUCKET_ENDS_NS, values), return_counts=True)
    whole = {"count": len(values), "sum_ns": values.sum(), "sum_squares_ns2": (values**2).sum()}
    ends = {"min_ns": values.min(), "max_ns": values.max()}
    return DelayHistogram.from_dict({**whole, **ends, "buckets": np.transpose(buckets).tolist()})


def test_sections_by_hand():
    """Small values have buckets of their own.  1..10 and 11..20: the pooled median is 10, none and ten lie beyond."""
    runs = [histogram(range(1, 11)), histogram(range(11, 21))]
    (median,) = sections(runs, [50])
    assert (median.pooled, median.by_run, median.beyond) == (10.0, (5.0, 15.0), (0, 10))
    assert median.beyond_body == (0, 2)


def test_the_mean_of_percentiles_is_not_the_percentile():
    """One run in two has the tail: its own p75 are 1 and 40, that of both together is 20."""
    runs = [histogram([1] * 40), histogram([1] * 10 + [20] * 20 + [40] * 10)]
    (found,) = sections(runs, [75])
    assert (found.by_run, found.pooled) == ((1.0, 20.0), 20.0)
    assert percentile_interval(found).mean == 20.0


def test_a_pooled_percentile_lies_between_those_of_the_runs():
    """The last value of a run is known exactly; a bucket's middle stands for the last but one of all runs."""
    lasts = [1_010_000, 1_010_002, 1_010_003]
    each = [[*range(1, 40), last] for last in lasts]
    (found,) = sections([histogram(values) for values in each], [99])
    assert found.by_run == tuple(lasts)
    assert found.pooled in lasts
    assert histogram([value for values in each for value in values]).percentile(99) < lasts[0]


def test_few_runs_give_a_range():
    estimate = percentile_interval(Sections(10.0, (9.0, 12.0), (50, 50), (500, 500)))
    assert (estimate.kind, estimate.low, estimate.high) == ("range", 9.0, 12.0)


def test_interval_by_hand():
    """Own percentiles 98 .. 102, twice, around a pooled 100: S^2 = 20/9, half width 2.262157 sqrt(20/90) = 1.0664.

    Below, it is one of the logarithm; above, that of a lognormal mean is a little wider, 1.0734.  The histogram's 1 %
    is independent: 100 exp(-sqrt(0.010664^2 + 0.010050^2)) and 100 + sqrt(1.0734^2 + 1).
    """
    samples = (98.0, 99.0, 100.0, 101.0, 102.0) * 2
    estimate = percentile_interval(Sections(100.0, samples, (50,) * 10, (500,) * 10))
    assert estimate.kind == "pooled percentile"
    assert (estimate.low, estimate.high) == pytest.approx((98.5453, 101.4671), abs=1e-3)


def test_runs_that_lean_to_one_side_of_the_pooled_percentile_widen_its_interval():
    """16 runs at 9 and 11 about a pooled 12: their squares about 12 sum to 80; Student's t of 15 is 2.1314."""
    half_width = 2.131450 * math.sqrt(80.0 / 15.0 / 16.0)
    found = percentile_interval(Sections(12.0, (9.0, 11.0) * 8, (10,) * 16, (100,) * 16))
    assert found.high == pytest.approx(12.0 + math.hypot(half_width, 0.12), rel=1e-6)
    assert found.low == pytest.approx(12.0 * math.exp(-math.hypot(half_width / 12.0, math.log(0.99))), rel=1e-6)


def test_no_percentile_is_better_known_than_the_histogram():
    estimate = percentile_interval(Sections(100.0, (100.0,) * 10, (50,) * 10, (500,) * 10))
    assert estimate.half_width == pytest.approx(100.0 * RELATIVE_ERROR)


def test_no_percentile_has_a_negative_end():
    """Nine runs of 1 and one of 1,000 around a pooled 5: Student's t alone reaches below zero."""
    estimate = percentile_interval(Sections(5.0, (1.0,) * 9 + (1000.0,), (50,) * 10, (500,) * 10))
    assert estimate.kind == "pooled percentile"
    assert 0.0 < estimate.low < 5.0 < estimate.high


def test_runs_in_which_nothing_lies_beyond_give_a_range():
    """Delays that are all the same: no tail has been seen, so nothing is known of it."""
    (found,) = sections([histogram([5] * 100)] * 10, [99])
    assert found.beyond == (0,) * 10
    assert percentile_interval(found).kind == "range"


def test_tails_that_come_together_leave_no_interval():
    """200 delays beyond in ten runs are enough if each run has twenty, and not if two runs have a hundred each."""
    samples = tuple(float(x) for x in range(90, 110, 2))
    even = Sections(100.0, samples, (20,) * 10, (200,) * 10)
    lumped = Sections(100.0, samples, (0,) * 8 + (100,) * 2, (200,) * 10)
    assert percentile_interval(even).is_interval
    assert not percentile_interval(lumped).is_interval


@pytest.mark.thorough
def test_interval_covers_the_percentile_of_short_runs():
    """Ten runs of 1,000 exponential delays, ten of them beyond p99 in each.  True p99 is ln 100."""
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(300):
        delays_ns = (1e6 * rng.exponential(1.0, (10, 1000))).astype(int)
        runs = [counted(each) for each in delays_ns]
        estimate = percentile_interval(sections(runs, [99])[0])
        assert estimate.is_interval
        covered += estimate.low <= 1e6 * math.log(100.0) <= estimate.high
    assert runs[0] == histogram(delays_ns[0].tolist())
    assert abs(covered - 300 * 0.955) <= 3.5 * math.sqrt(300 * 0.955 * 0.045)
