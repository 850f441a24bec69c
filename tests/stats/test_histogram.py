"""Histogram: bucket rule, exact moments, percentiles within 1 %, merging in any order."""

import json
import statistics
from fractions import Fraction
from itertools import pairwise
from math import ceil
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from vftsim.stats import DelayHistogram
from vftsim.stats.histogram import BUCKET_ENDS_NS

delays = st.one_of(st.integers(0, 300), st.integers(0, 10**10), st.integers(0, 2**63 - 1))


def histogram(values) -> DelayHistogram:
    result = DelayHistogram()
    for value in values:
        result.add(value)
    return result


def test_buckets_are_at_most_two_percent_wide():
    """last / first <= 101 / 99, so the harmonic middle is within 1 % of both; 0 to 49 are exact."""
    for before, last in pairwise(BUCKET_ENDS_NS):
        first = before + 1
        assert first <= last
        assert 99 * last <= 101 * first
    assert BUCKET_ENDS_NS[:51] == (*range(50), 51)
    assert BUCKET_ENDS_NS[-1] == 2**63 - 1


@given(st.lists(delays, min_size=1, max_size=60), st.sampled_from(["0", "1", "37.5", "50", "95", "99.9", "100"]))
def test_percentile_is_within_one_percent_of_the_order_statistic(values, percent):
    rank = max(ceil(Fraction(percent) * len(values) / 100), 1)
    exact = sorted(values)[rank - 1]
    assert abs(histogram(values).percentile(float(percent)) - exact) <= 0.01 * exact * (1 + 1e-12)


@pytest.mark.parametrize("percent", [0.1, 5, 50, 90, 99, 99.9])
def test_percentiles_against_numpy(percent):
    values = np.random.default_rng(1).lognormal(15.0, 1.5, 20_000).astype(np.int64)
    expected = np.percentile(values, percent, method="inverted_cdf")
    assert histogram(values.tolist()).percentile(percent) == pytest.approx(expected, rel=0.01)


@given(st.lists(delays, min_size=2, max_size=60))
def test_moments_are_exact(values):
    """Against rational arithmetic; the square root alone rounds."""
    h = histogram(values)
    assert (h.count, len(h), h.min, h.max) == (len(values), len(values), min(values), max(values))
    assert h.mean == float(Fraction(sum(values), len(values)))
    assert h.sd == pytest.approx(float(statistics.variance(map(Fraction, values))) ** 0.5, rel=1e-14)


def test_small_spread_on_a_large_delay_does_not_cancel():
    """10^15 + (0, 1, 2) ns: sd 1 ns, lost in floating sums of squares."""
    assert histogram([10**15, 10**15 + 1, 10**15 + 2]).sd == 1.0


@given(st.lists(st.lists(delays, max_size=20), max_size=6), st.integers(0, 1000))
def test_merging_does_not_depend_on_order_or_grouping(parts, seed):
    whole = histogram([value for part in parts for value in part])
    shuffled = parts.copy()
    Random(seed).shuffle(shuffled)
    left = DelayHistogram()
    for part in shuffled:
        left.merge(histogram(part))
    right = DelayHistogram()
    for part in reversed(shuffled):
        merged = histogram(part)
        merged.merge(right)
        right = merged
    assert left == right == whole
    assert json.dumps(left.to_dict()) == json.dumps(whole.to_dict())


@given(st.lists(delays, max_size=30))
def test_it_survives_json(values):
    many = histogram(values)
    assert DelayHistogram.from_dict(json.loads(json.dumps(many.to_dict()))) == many


def test_samples_beyond_a_percentile():
    """Of 1,000 values 10 lie beyond the 99 % rank and 1 beyond the 99.9 % rank."""
    h = histogram(range(1000))
    assert [h.samples_beyond(p) for p in (50, 99, 99.9, 100)] == [500, 10, 1, 0]
    assert DelayHistogram().samples_beyond(99) == 0


@pytest.mark.parametrize("percent", ["0.1", "5", "50", "90", "99", "99.9", "99.99"])
def test_rank_does_not_suffer_from_rounding(percent):
    """Against rational arithmetic, at every count up to 3,000."""
    h = DelayHistogram()
    for count in range(1, 3001):
        h.add(1)
        if count % 10 == 0:
            assert h.samples_beyond(float(percent)) == count - ceil(Fraction(percent) * count / 100)


def test_differing_histograms_are_unequal():
    assert histogram([1, 2]) != histogram([1, 3])
    assert histogram([1]) != "histogram"


def test_impossible_values_are_refused_and_leave_no_trace():
    h = histogram([5])
    for wrong in (-1, 2**63):
        with pytest.raises(ValueError, match="outside"):
            h.add(wrong)
    assert h == histogram([5])
    with pytest.raises(ValueError, match="percentile"):
        h.percentile(100.5)
    with pytest.raises(ValueError, match="add up"):
        DelayHistogram.from_dict({**h.to_dict(), "count": 2})


def test_empty_histogram_has_no_statistics():
    h = DelayHistogram()
    for name in ("min", "max", "mean", "sd"):
        with pytest.raises(ValueError, match="at least"):
            getattr(h, name)
    with pytest.raises(ValueError, match="at least 2"):
        _ = histogram([1]).sd
