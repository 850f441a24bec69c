"""Confidence intervals: worked examples, coverage, and what is printed."""

import math

import numpy as np
import pytest

from vftsim.stats import (
    Estimate,
    binomial_interval,
    bonferroni,
    central_range,
    mean_interval,
    median_interval,
    quantile_interval,
    ratio_of_sums,
    sequential_binomial_interval,
    stratified_interval,
    t_interval,
)
from vftsim.stats.intervals import hull

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
    assert not t_interval([5.0]).is_interval
    assert str(mean_interval([5.0])) == "5 (n=1)"


def test_few_runs_give_their_range_and_no_interval():
    estimate = mean_interval([1.0, 2.0, 6.0])
    assert (estimate.mean, estimate.low, estimate.high, estimate.kind) == (3.0, 1.0, 6.0, "range")
    assert not estimate.is_interval
    assert str(estimate) == "3.0 (1.0 to 6.0) (n=3)"


def test_symmetric_values_give_students_t_on_both_sides():
    """-4.5 to 4.5: no skewness; s^2 = 82.5 / 9, t(.975; 9) = 2.262157, half width 2.165849."""
    estimate = mean_interval([x - 4.5 for x in range(10)])
    assert (estimate.low, estimate.high) == pytest.approx((-2.165849, 2.165849), abs=1e-5)
    assert estimate.kind == "skew-corrected t"


def test_the_long_side_of_skewed_values_is_the_longer():
    """Nine ones and an 11: mean 2, standard error 1, t(.975; 9) = 2.262: the logarithm reaches 2 exp(-1.131) = 0.6453.

    Skewness 3.1623 x 1.2 / (6 sqrt 10) = 0.2: the cubic at t = -2.262 is (cbrt(1 - 1.2 x 2.462) - 1) / 0.4 = -5.625,
    so the skew-corrected end is 2 + 5.625 and the hull takes that.
    """
    low, high = hull(2.0, [1.0] * 9 + [11.0], 0.95, is_positive=True)
    assert (low, high) == pytest.approx((0.64532, 7.6253), abs=1e-3)
    low, _ = hull(-2.0, [-1.0] * 9 + [-11.0], 0.95, is_positive=False)
    assert low == pytest.approx(-7.6253, abs=1e-3)


def test_a_mean_that_rests_on_few_runs_has_no_interval():
    """Losses in four of twenty crashes: how often is a share, how much was seen four times; five get an interval."""
    few, enough = ([0.0] * (20 - k) + [5.0 + j for j in range(k)] for k in (4, 5))
    for rule in (mean_interval, stratified_interval):
        assert (rule(few).kind, rule(few).low, rule(few).high) == ("range", 0.0, 8.0)
        assert rule(enough).is_interval
    assert mean_interval([3.0] * 20).half_width == 0.0


@pytest.mark.parametrize(
    "values",
    [
        [0.15] * 3 + [0.14, 0.13, 0.12, 0.11, 0.1, 0.08] + [0.0] * 3,
        [0.0] * 5 + [1.0, 2.0, 4.0, 9.0, 50.0],
        [1.0, 1e-6, 1e-6, 1e-5, 2.0, 3.0, 1e-6, 0.0, 0.0, 1e-3],
    ],
)
@pytest.mark.parametrize("rule", [mean_interval, stratified_interval])
def test_a_time_has_no_negative_end(rule, values):
    """Skewed to either side: the lower end is above zero, not just cut off there."""
    estimate = rule(values)
    assert estimate.is_interval
    assert 0.0 < estimate.low < estimate.mean < estimate.high


def test_stratified_by_hand():
    """A line with a step in it: second differences of 0,1,..,4,15,16,..,19 are 0 but for 10 and -10 around the step.

    Eight of them: error sqrt(200 / (6 x 8) / 10) = 0.645497; t(.975; 36 x 64 / 524) = 2.680333; no skewness.
    """
    values = [float(x) for x in (-10, -9, -8, -7, -6, 5, 6, 7, 8, 9)]
    estimate = stratified_interval(values)
    assert estimate.kind == "stratified t"
    assert estimate.mean == pytest.approx(-0.5)
    assert estimate.half_width == pytest.approx(1.730147, abs=1e-5)
    assert stratified_interval([3.0 - 0.1 * k for k in range(20)]).half_width < 1e-9, "a trend is no error"
    assert stratified_interval(values[:9]).kind == "range"


def outages(rng, n, wait_s):
    """3,000 studies of crashes in n parts of a stretch: a heartbeat once in it, at any phase; the wait for a packet."""
    places = (np.arange(n) + rng.random((3000, n))) / n
    return (3.5 - np.modf(places + rng.random((3000, 1)))[0] + rng.exponential(wait_s, (3000, n))).tolist()


@pytest.mark.parametrize("n", [10, 20])
def test_stratified_outages_are_covered_as_stated(n):
    """Where waits for packets are as long as the phases differ: 93 to 97 %, give or take 3.5 standard errors."""
    found = [stratified_interval(row) for row in outages(np.random.default_rng(5), n, 0.5)]
    covered = sum(e.low <= 3.5 <= e.high for e in found) / 3000
    assert 0.93 <= covered <= 0.97 + 3.5 * math.sqrt(0.97 * 0.03 / 3000)


def test_a_rare_jump_that_is_known_is_allowed_for():
    """Crashes in ten parts, of which one in 27 takes 0.2 s more: missed by one study in three, held by all."""
    rng = np.random.default_rng(9)
    values = 1.2 + 0.2 * (rng.random((1000, 10)) < 1 / 27) + rng.exponential(0.004, (1000, 10))
    truth = 1.204 + 0.2 / 27

    def covered(jump):
        found = [stratified_interval(row, jump=jump) for row in values.tolist()]
        return sum(each.low <= truth <= each.high for each in found) / 1000

    assert covered(0.0) < 0.8
    assert covered(0.2) >= 0.95


def test_parts_of_a_stretch_say_more_than_as_many_independent_crashes():
    """Where the phase decides, the interval is 0.6 of that of independent values or less, and holds at least 93 %."""
    rows = outages(np.random.default_rng(6), 20, 0.05)
    found = [stratified_interval(row) for row in rows]
    assert sum(e.low <= 3.05 <= e.high for e in found) / 3000 >= 0.93
    widths = [[e.high - e.low for e in each] for each in (found, map(mean_interval, rows))]
    assert np.median(widths[0]) < 0.6 * np.median(widths[1])


def test_means_of_skewed_values_are_covered_where_students_t_fails():
    """Lognormal with sigma 1, ten runs: Student's t holds the mean in 84 % (limit: 3.5 standard errors below 93)."""
    rng = np.random.default_rng(8)
    samples = rng.lognormal(0.0, 1.0, (2000, 10)).tolist()
    truth = math.exp(0.5)

    def covered(rule):
        return sum(e.low <= truth <= e.high for e in map(rule, samples)) / 2000

    assert covered(t_interval) < 0.88
    assert covered(mean_interval) >= 0.93 - 3.5 * math.sqrt(0.93 * 0.07 / 2000)


def test_ratio_of_sums_is_not_the_mean_of_ratios():
    """(1 + 9) / (10 + 10) = 1/2 and (1 + 0) / (1 + 99) = 0.01, where the mean of ratios is 0.5 too."""
    assert ratio_of_sums([1, 9], [10, 10]).mean == 0.5
    assert ratio_of_sums([1, 0], [1, 99]).mean == 0.01


def test_ratio_of_sums_with_equal_denominators_is_the_mean():
    """The jackknife's pseudo-values of a mean are the values themselves."""
    top = [3.0, 1.0, 4.0, 1.0, 5.0, 9.0, 2.0, 6.0, 5.0, 3.0]
    ratio, mean = ratio_of_sums(top, [10.0] * 10), mean_interval([x / 10.0 for x in top])
    assert (ratio.mean, ratio.low, ratio.high) == pytest.approx((mean.mean, mean.low, mean.high))


def test_ratio_of_sums_covers_with_unequal_run_sizes():
    """Losses are binomial in runs of random size; 20 runs."""
    rng = np.random.default_rng(2)
    covered = 0
    for _ in range(TRIALS):
        sent = rng.integers(500, 1500, 20)
        lost = rng.binomial(sent, 0.1)
        estimate = ratio_of_sums(lost.tolist(), sent.tolist())
        covered += estimate.low <= 0.1 <= estimate.high
    assert coverage_is(covered, 0.955)


def test_nothing_lost_promises_nothing():
    """Losses come in bursts: 0 of 10,000 packets in ten runs does not bound what the next burst takes."""
    estimate = ratio_of_sums([0] * 10, [1000] * 10)
    assert (estimate.mean, estimate.low, estimate.high, estimate.kind) == (0.0, 0.0, 0.0, "range")
    assert not estimate.is_interval


def test_losses_in_few_runs_have_a_range():
    """Four of ten runs lost something: range; five: interval."""
    assert ratio_of_sums([0] * 6 + [1, 2, 3, 4], [10] * 10).kind == "range"
    assert ratio_of_sums([0] * 5 + [1, 1, 2, 3, 4], [10] * 10).kind == "ratio of sums"


def test_median_interval_by_hand():
    """n = 10: P(B <= 1) = 11/1024 = 1.07 %, P(B <= 2) = 5.5 %: the 2nd to the 9th value; five: only their range."""
    estimate = median_interval([10, 1, 9, 2, 8, 3, 7, 4, 6, 5])
    assert (estimate.low, estimate.mean, estimate.high) == (2, 5.5, 9)
    assert median_interval([1, 2, 3, 4, 5]).kind == "range"
    assert median_interval([1, 2, 3, 4, 5, 6]).is_interval


def test_sequential_interval_by_its_definition():
    """Nothing in 4: kept is p with (1 - p)^4 >= .05 B(1, 5) = .01, so p <= 1 - .01^(1/4) = .683772.

    At both ends of 3 of 10 the evidence B(4, 8) / (p^3 (1 - p)^7) is 20, with B(4, 8) = 1/1320.
    """
    none = sequential_binomial_interval(0, 4)
    assert (none.kind, none.high) == ("upper bound", pytest.approx(0.683772, abs=1e-6))
    assert sequential_binomial_interval(4, 4).low == pytest.approx(1.0 - 0.683772, abs=1e-6)
    some = sequential_binomial_interval(3, 10)
    for p in (some.low, some.high):
        assert 1.0 / 1320.0 / (p**3 * (1.0 - p) ** 7) == pytest.approx(20.0)
    assert some.low < 0.3 < some.high


def test_sequential_interval_holds_after_a_stop_that_favours_it_to_fail():
    """Stop as soon as Clopper and Pearson's interval excludes the truth: that one fails in over 20 % of studies.

    At most 5 % of 400 sequences of 150 runs may leave this one, with 3.5 standard errors.
    """
    rng = np.random.default_rng(4)
    wrong = {binomial_interval: 0, sequential_binomial_interval: 0}
    cached = {}
    for row in rng.random((400, 150)) < 0.3:
        counts = np.cumsum(row).tolist()
        for rule in wrong:
            for n, s in enumerate(counts, 1):
                if (rule, s, n) not in cached:
                    e = rule(s, n)
                    cached[rule, s, n] = e.low <= 0.3 <= e.high
                if not cached[rule, s, n]:
                    wrong[rule] += 1
                    break
    assert wrong[binomial_interval] > 80
    assert wrong[sequential_binomial_interval] <= 400 * (0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 400))


def test_binomial_interval_by_its_definition():
    """At the lower end P(X >= 3) = 2.5 %, at the upper end P(X <= 3) = 2.5 %, for 3 of 10."""

    def at_most(k, p):
        return sum(math.comb(10, i) * p**i * (1 - p) ** (10 - i) for i in range(k + 1))

    estimate = binomial_interval(3, 10)
    assert 1 - at_most(2, estimate.low) == pytest.approx(0.025, abs=1e-9)
    assert at_most(3, estimate.high) == pytest.approx(0.025, abs=1e-9)


def test_binomial_bounds_at_the_ends():
    """No success in 100: (1 - p)^100 = 2.5 % at p = 0.036217; all 100: the mirror image."""
    none, every = binomial_interval(0, 100), binomial_interval(100, 100)
    assert none.high == pytest.approx(0.036217, abs=1e-6)
    assert every.low == pytest.approx(1 - 0.036217, abs=1e-6)
    assert (none.low, every.high) == (0.0, 1.0)
    assert str(every) == "> 0.964 (95 %, n=100)"


def test_quantile_interval_by_hand():
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
    assert str(estimate).endswith("or more] (95 %, n=20)")


def test_quantile_interval_covers_at_least_as_stated():
    """Exponential 90 % quantile is ln 10; order statistics are conservative."""
    rng = np.random.default_rng(5)
    estimates = [quantile_interval(rng.exponential(1.0, 100).tolist(), 0.9) for _ in range(TRIALS)]
    covered = sum(e.low <= math.log(10) <= e.high for e in estimates)
    assert covered >= 950 - 3.5 * math.sqrt(1000 * 0.95 * 0.05)


def test_central_range_by_hand():
    """1 .. 19: between the least and the largest lies the next with probability 18/20; a single value is its own."""
    assert central_range(range(1, 20)) == pytest.approx((1.0, 19.0))
    assert central_range(range(1, 100)) == pytest.approx((5.0, 95.0))
    assert central_range([7.0]) == (7.0, 7.0)
    assert central_range([0.0, 1.0, 2.0], 0.5) == pytest.approx((0.0, 2.0))


def test_central_range_holds_the_share_of_further_runs_it_names():
    """Twenty runs, and one more: in the range in 90 % of cases (the range of percentiles 5 and 95 holds 81 %)."""
    rows = np.random.default_rng(6).exponential(1.0, (TRIALS, 21)).tolist()
    ranges = [central_range(row[:20]) for row in rows]
    assert coverage_is(sum(low <= row[20] <= high for row, (low, high) in zip(rows, ranges, strict=True)), 0.9)


def test_bonferroni_by_hand():
    """Two metrics at a joint 95 %: 97.5 % each."""
    assert bonferroni(0.95, 2) == pytest.approx(0.975)


@pytest.mark.parametrize(
    ("estimate", "text"),
    [
        (Estimate(99.5, 1.2, 98.3, 100.7, 20, 0.95, "t"), "99.5 ± 1.2 (95 %, n=20)"),
        (Estimate(127818.0, 26512.0, 101306.0, 154330.0, 3, 0.99, "t"), "127,818 ± 26,512 (99 %, n=3)"),
        (Estimate(1.2e-10, 3e-11, 9e-11, 1.5e-10, 5, 0.95, "t"), "0.000000000120 ± 0.000000000030 (95 %, n=5)"),
        (Estimate(0.003, 0.0041, 0.0006, 0.0088, 3, 0.95, "ratio of sums"), "0.0030 [0.0006, 0.0088] (95 %, n=3)"),
        (mean_interval([0.0] * 20), "0 (n=20)"),
        (mean_interval([0.1] * 3), "0.1 (n=3)"),
    ],
)
def test_printed_form(estimate, text):
    assert str(estimate) == text


def test_relative_half_width():
    assert Estimate(-4.0, 1.0, -5.0, -3.0, 2, 0.95, "t").relative_half_width == 0.25
    assert mean_interval([0.0, 0.0]).relative_half_width == math.inf


@pytest.mark.parametrize(
    "call",
    [
        lambda: t_interval([]),
        lambda: t_interval([1.0, math.nan]),
        lambda: t_interval([1.0, 2.0], 1.0),
        lambda: ratio_of_sums([1.0], [1.0, 2.0]),
        lambda: ratio_of_sums([1.0], [0.0]),
        lambda: ratio_of_sums([1.0, 1.0], [2.0, -1.0]),
        lambda: sequential_binomial_interval(2, 1),
        lambda: median_interval([]),
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


def test_an_upper_end_is_at_most_three_times_the_largest_run():
    """Jitter of a host that tips in some runs: a lognormal mean of such runs has an end of 120 ms."""
    runs = [0.0158, 2.5893, 0.0145, 0.0127, 0.0139, 0.0138, 2.6366, 0.0739, 0.0147, 4.9493]
    assert mean_interval(runs).high == pytest.approx(3.0 * 4.9493)
    near = [1.0, 1.2, 0.9, 1.1, 1.4, 0.8, 1.0, 1.3, 1.1, 0.9]
    assert mean_interval(near).high < max(near), "and where runs are alike it plays no part"
