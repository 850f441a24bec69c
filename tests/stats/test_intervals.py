"""Confidence intervals: worked examples, coverage, and what is printed."""

import math

import numpy as np
import pytest

from vftsim.stats import (
    Estimate,
    binomial_interval,
    bonferroni,
    central_range,
    paired_difference,
    paired_ratio,
    poisson_interval,
    quantile_interval,
    ratio_of_sums,
    t_interval,
)

TRIALS = 1000


def coverage_is(covered: int, nominal: float) -> bool:
    """Tell whether a count of covering intervals lies within 3.5 binomial standard errors."""
    return abs(covered - TRIALS * nominal) <= 3.5 * math.sqrt(TRIALS * nominal * (1 - nominal))


def test_t_interval_by_hand():
    """1, 2, 3: mean 2, s = 1, t(.975; 2) = 4.302653, half width 4.302653 / sqrt(3) = 2.484138."""
    estimate = t_interval([1, 2, 3])
    assert estimate.mean == 2.0
    assert estimate.half_width == pytest.approx(2.484138, abs=1e-6)
    assert (estimate.low, estimate.high) == pytest.approx((2 - 2.484138, 2 + 2.484138), abs=1e-6)
    assert (estimate.n, estimate.confidence, estimate.kind) == (3, 0.95, "t")


def test_t_interval_covers_as_stated():
    rng = np.random.default_rng(1)
    estimates = [t_interval(rng.normal(3.0, 2.0, 6).tolist(), 0.9) for _ in range(TRIALS)]
    assert coverage_is(sum(e.low <= 3.0 <= e.high for e in estimates), 0.9)


def test_mean_of_large_close_values_does_not_cancel():
    """1e15 + (0, 1, 2): s = 1 as for (0, 1, 2)."""
    assert t_interval([1e15, 1e15 + 1, 1e15 + 2]).half_width == pytest.approx(2.484138, abs=1e-6)


def test_single_value_has_no_interval():
    estimate = t_interval([5.0])
    assert (estimate.low, estimate.high) == (-math.inf, math.inf)
    assert str(estimate) == "5 (n=1: too few for an interval)"


def test_paired_difference_by_hand():
    """Differences 1, 2, 3, whatever the values they come from."""
    paired = paired_difference([101, 52, 1003], [100, 50, 1000])
    assert paired.mean == 2.0
    assert paired.half_width == pytest.approx(2.484138, abs=1e-6)
    assert paired.kind == "paired t"


def test_ratio_of_sums_is_not_the_mean_of_ratios():
    """(1 + 9) / (10 + 10) = 1/2 and (1 + 0) / (1 + 99) = 0.01, where the mean of ratios is 0.5 too."""
    assert ratio_of_sums([1, 9], [10, 10]).mean == 0.5
    assert ratio_of_sums([1, 0], [1, 99]).mean == 0.01


def test_ratio_of_sums_with_equal_denominators_is_the_t_interval():
    """The jackknife of a mean is the usual standard error: 1, 2, 3 over 10 each."""
    estimate = ratio_of_sums([1, 2, 3], [10, 10, 10])
    assert estimate.half_width == pytest.approx(0.2484138, abs=1e-7)
    assert estimate.low == 0.0
    assert estimate.high == pytest.approx(0.4484138, abs=1e-7)


def test_ratio_of_sums_jackknife_by_hand():
    """(1, 3) over (10, 20): leave-one-out ratios 3/20 and 1/10.

    Variance (1/2) * 2 * 0.025^2, so the standard error is 0.025; t(.975; 1) = 12.7062.
    """
    estimate = ratio_of_sums([1, 3], [10, 20])
    assert estimate.mean == pytest.approx(4 / 30)
    assert estimate.half_width == pytest.approx(12.7062 * 0.025, rel=1e-5)


def test_ratio_of_sums_covers_with_unequal_run_sizes():
    """Losses are binomial in runs of random size; 20 runs.  Jackknife intervals are nearly exact here."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(TRIALS):
        sent = rng.integers(500, 1500, 20)
        lost = rng.binomial(sent, 0.1)
        estimate = ratio_of_sums(lost.tolist(), sent.tolist())
        covered += estimate.low <= 0.1 <= estimate.high
    assert coverage_is(covered, 0.95)


def test_nothing_lost_gives_the_rule_of_three():
    """-ln(.05) / 1000 = 0.0029957."""
    estimate = ratio_of_sums([0, 0], [400, 600])
    assert (estimate.mean, estimate.low) == (0.0, 0.0)
    assert estimate.high == pytest.approx(0.0029957, abs=1e-7)
    assert str(estimate) == "< 0.003 (95 %, n=2, none seen)"


def test_paired_ratio_gains_from_common_random_numbers():
    """b = 2a exactly: the ratio is 1/2 without error however much a varies."""
    a = [3.0, 8.0, 5.0, 1.0]
    estimate = paired_ratio(a, [2 * x for x in a])
    assert estimate.mean == pytest.approx(0.5)
    assert estimate.half_width == pytest.approx(0.0, abs=1e-14)


def test_paired_ratio_covers():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(TRIALS):
        common = rng.normal(0.0, 1.0, 15)
        a = 12.0 + common + rng.normal(0.0, 0.5, 15)
        b = 10.0 + common + rng.normal(0.0, 0.5, 15)
        estimate = paired_ratio(a.tolist(), b.tolist())
        covered += estimate.low <= 1.2 <= estimate.high
    assert coverage_is(covered, 0.95)


def test_poisson_interval_against_garwoods_table():
    """10 events: 4.7954 to 18.3904 (Garwood 1936); per 2 seconds, half of that."""
    estimate = poisson_interval(10, 2.0)
    assert (estimate.mean, estimate.low, estimate.high) == pytest.approx((5.0, 2.3977, 9.1952), abs=1e-4)


def test_poisson_without_events_is_an_upper_bound():
    assert poisson_interval(0, 1000.0).high == pytest.approx(-math.log(0.05) / 1000)
    assert str(poisson_interval(0, 1000.0)) == "< 0.003 (95 %, none seen)"


def test_poisson_interval_covers_at_least_as_stated():
    """Exact interval: coverage is .95 or more by construction."""
    rng = np.random.default_rng(4)
    estimates = [poisson_interval(int(k), 1.0) for k in rng.poisson(7.0, TRIALS)]
    covered = sum(e.low <= 7.0 <= e.high for e in estimates)
    assert covered >= 950 - 3.5 * math.sqrt(1000 * 0.95 * 0.05)


def test_binomial_interval_by_its_definition():
    """At the lower end P(X >= 3) = 2.5 %, at the upper end P(X <= 3) = 2.5 %, for 3 of 10."""

    def at_most(k, p):
        return sum(math.comb(10, i) * p**i * (1 - p) ** (10 - i) for i in range(k + 1))

    estimate = binomial_interval(3, 10)
    assert 1 - at_most(2, estimate.low) == pytest.approx(0.025, abs=1e-9)
    assert at_most(3, estimate.high) == pytest.approx(0.025, abs=1e-9)


def test_binomial_bounds_at_the_ends():
    """No success in 100: (1 - p)^100 = 5 % at p = 0.029513; all 100: the mirror image."""
    none, every = binomial_interval(0, 100), binomial_interval(100, 100)
    assert none.high == pytest.approx(0.029513, abs=1e-6)
    assert every.low == pytest.approx(1 - 0.029513, abs=1e-6)
    assert (none.low, every.high) == (0.0, 1.0)
    assert str(every) == "> 0.970 (95 %, n=100, no exception seen)"


def test_median_interval_by_hand():
    """n = 10, median: P(B <= 1) = 11/1024 = 1.07 %, P(B <= 2) = 5.5 %: the 2nd to the 9th value."""
    estimate = quantile_interval(range(1, 11), 0.5)
    assert (estimate.low, estimate.mean, estimate.high) == (2, 5, 9)


def test_median_interval_splits_the_error_evenly():
    """n = 8: P(B <= 1) = 9/256 = 3.5 % exceeds 2.5 %, P(B <= 0) = 0.4 % does not: the whole range."""
    estimate = quantile_interval(range(1, 9), 0.5)
    assert (estimate.low, estimate.high) == (1, 8)


def test_tail_quantile_of_a_small_sample_is_open_above():
    """.99^20 = 82 %: the largest of 20 values says nothing about the upper limit of the 99 % quantile."""
    estimate = quantile_interval(range(20), 0.99)
    assert estimate.high == math.inf
    assert math.isfinite(estimate.low)
    assert str(estimate).endswith("inf] (95 %, n=20)")


def test_quantile_interval_covers_at_least_as_stated():
    """Exponential 90 % quantile is ln 10; order statistics are conservative."""
    rng = np.random.default_rng(5)
    estimates = [quantile_interval(rng.exponential(1.0, 100).tolist(), 0.9) for _ in range(TRIALS)]
    covered = sum(e.low <= math.log(10) <= e.high for e in estimates)
    assert covered >= 950 - 3.5 * math.sqrt(1000 * 0.95 * 0.05)


def test_central_range_by_hand():
    """0 .. 100: 5 % to 95 % is 5 to 95; a single value is its own range."""
    assert central_range(range(101)) == pytest.approx((5.0, 95.0))
    assert central_range([7.0]) == (7.0, 7.0)
    assert central_range([0.0, 1.0], 0.5) == pytest.approx((0.25, 0.75))


def test_bonferroni_by_hand():
    """Two metrics at a joint 95 %: 97.5 % each."""
    assert bonferroni(0.95, 2) == pytest.approx(0.975)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(99.5, 1.2, 98.3, 100.7, 20, 0.95, "t"), "99.5 +-1.2 (95 %, n=20)"),
        (Estimate(127818.0, 26512.0, 101306.0, 154330.0, 3, 0.99, "t"), "128000 +-27000 (99 %, n=3)"),
        (Estimate(1.2e-10, 3e-11, 9e-11, 1.5e-10, 5, 0.95, "t"), "1.20e-10 +-3.0e-11 (95 %, n=5)"),
        (poisson_interval(3, 1000.0), "0.0030 [0.0006, 0.0088] (95 %, n=3)"),
        (t_interval([0.0] * 20), "0 (identical in all 20: no interval)"),
        (t_interval([0.1] * 3), "0.1 (identical in all 3: no interval)"),
    ],
)
def test_printed_form(estimate, text):
    assert str(estimate) == text


def test_relative_half_width():
    assert Estimate(-4.0, 1.0, -5.0, -3.0, 2, 0.95, "t").relative_half_width == 0.25
    assert t_interval([0.0, 0.0]).relative_half_width == math.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda: t_interval([]),
        lambda: t_interval([1.0, math.nan]),
        lambda: t_interval([1.0, 2.0], 1.0),
        lambda: paired_difference([1.0], [1.0, 2.0]),
        lambda: ratio_of_sums([1.0], [0.0]),
        lambda: ratio_of_sums([1.0, 1.0], [2.0, -1.0]),
        lambda: paired_ratio([1.0, 2.0], [1.0, -1.0]),
        lambda: poisson_interval(-1, 1.0),
        lambda: poisson_interval(1, 0.0),
        lambda: binomial_interval(3, 2),
        lambda: binomial_interval(0, 0),
        lambda: quantile_interval([1.0], 1.0),
        lambda: central_range([1.0], 0.0),
        lambda: bonferroni(0.95, 0),
    ],
)
def test_impossible_input_is_refused(call):
    with pytest.raises(ValueError, match=r".+"):
        call()
