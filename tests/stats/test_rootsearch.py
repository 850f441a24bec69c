"""Capacity search: coverage on a known curve, brackets, budgets, monotonicity."""

import math
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pytest

from vftsim.errors import UsageError
from vftsim.stats import capacity_search, search_start
from vftsim.stats.bernoulli_test import inversion_p_value, log_evidence_above, log_evidence_below
from vftsim.stats.probing import Prober, ProbeVerdict, is_non_monotone

CENTER, SCALE = 70.0, 4.0
TRUTH = CENTER - SCALE * math.log(9.0)
"""Where 1 / (1 + exp((level - CENTER) / SCALE)) = 0.9."""


def common_oracle(seed):
    """Logistic pass probability; replication r passes up to a threshold of its own."""
    thresholds = CENTER + SCALE * np.random.default_rng(seed).logistic(size=1000)
    return lambda level, replication: bool(level < thresholds[replication])


@pytest.mark.thorough
def test_interval_covers_the_truth():
    """100 trials at 95 %: at least 95 - 3.5 * sqrt(100 * .95 * .05) = 87.4, so 88.

    An interval that is always right by being long would pass that too: its width must stay below 10, the
    span over which the pass probability falls from .97 to .74.
    """
    results = [capacity_search(common_oracle(seed), 10, 200, 1.0) for seed in range(100)]
    assert sum(r.estimate.low <= TRUTH <= r.estimate.high for r in results) >= 88
    assert np.median([2 * r.estimate.half_width for r in results]) <= 10.0
    points = np.array([r.estimate.mean for r in results])
    assert abs(points.mean() - TRUTH) <= 0.5
    assert not any(r.non_monotone or r.budget_ended for r in results)


def test_sharp_threshold_is_resolved():
    """Passes up to 42.3 and never above: the grid points around it are 42 and 43."""
    result = capacity_search(lambda level, _: level <= 42.3, 0, 100, 1.0)
    assert (result.estimate.low, result.estimate.high) == (42.0, 43.0)
    assert 42.0 <= result.estimate.mean <= 43.0
    assert result.resolved
    assert not result.budget_ended
    assert [p.level for p in result.probes] == sorted(p.level for p in result.probes)
    assert result.estimate.n == sum(p.runs for p in result.probes)
    assert {p.level: p.decision for p in result.probes}[43.0] is ProbeVerdict.FAIL


@pytest.mark.parametrize("capacity", [3.5, 30.5, 799.5])
def test_bracket_is_extended_to_where_the_capacity_is(capacity):
    result = capacity_search(lambda level, _: level <= capacity, 40, 60, 1.0)
    assert result.estimate.low <= capacity <= result.estimate.high
    assert result.resolved


@pytest.mark.parametrize("needed", [3.5, 30.5, 50.5, 799.5])
def test_where_larger_levels_ease_the_smallest_that_passes_is_found(needed):
    result = capacity_search(lambda level, _: level >= needed, 40, 60, 1.0, eases=True)
    assert (result.estimate.low, result.estimate.high) == (needed - 0.5, needed + 0.5)
    assert (result.answer, result.resolved, result.non_monotone) == ("between", True, False)


@pytest.mark.thorough
def test_a_rising_curve_is_covered_as_a_falling_one_is():
    """The oracle's curve turned round, 100 trials: see the first test."""
    oracles = [common_oracle(seed) for seed in range(100)]
    results = [capacity_search(lambda x, n, f=f: f(140 - x, n), 10, 200, 1.0, eases=True) for f in oracles]
    assert sum(r.estimate.low <= 140 - TRUTH <= r.estimate.high for r in results) >= 88
    assert abs(np.mean([r.estimate.mean for r in results]) - (140 - TRUTH)) <= 0.5


def test_what_is_known_of_one_side_only_where_larger_levels_ease():
    lowest = capacity_search(lambda *_: True, 40, 60, 1.0, eases=True, allows=lambda level: level >= 7)
    assert (lowest.answer, lowest.estimate.high, lowest.is_bounded) == ("below", 7.0, True)
    highest = capacity_search(lambda *_: False, 40, 60, 1.0, eases=True, allows=lambda level: level <= 90)
    assert (highest.answer, highest.estimate.low, highest.is_bounded) == ("at least", 90.0, True)


@pytest.mark.parametrize(("at", "low", "high"), [(3.5, 2.5, 5), (30.5, 20, 40), (50.5, 40, 60), (799.5, 480, 960)])
def test_single_runs_say_whether_larger_levels_ease_and_where_to_look(at, low, high):
    assert search_start(lambda level: level >= at, 40, 60, 1.0) == (True, low, high)
    assert search_start(lambda level: level <= at, 40, 60, 1.0) == (False, low, high)


def test_levels_behind_which_a_load_cannot_be_carried_again_are_not_tried():
    tried = []

    def passes(level, at):
        tried.append(level)
        return level <= at

    assert search_start(partial(passes, at=200), 40, 60, 1.0, may_ease=False) == (False, 120, 240)
    assert tried == [40, 60, 120, 240]
    tried.clear()
    assert search_start(partial(passes, at=8), 40, 60, 1.0, may_ease=False, least=7.0) == (False, 40, 60)
    for may_ease in (False, True):
        assert search_start(partial(passes, at=8), 40, 60, 1.0, may_ease=may_ease, least=4.0) == (False, 5, 10)
    assert max(tried) == 40


@pytest.mark.parametrize("lowest", [13, 43, 65, 130])
def test_levels_that_pass_between_others_that_fail_are_searched_for_their_upper_end(lowest):
    """A range of a quarter of a doubling, wherever: 40, 60 and their doubles and halves fail."""

    def passes(level, _=0):
        return lowest <= level <= 1.2 * lowest

    eases, low, high = search_start(passes, 40, 60, 1.0)
    assert not eases
    assert passes(low)
    result = capacity_search(passes, low, high, 1.0)
    assert (result.answer, result.estimate.low) == ("between", 1.2 * lowest // 1)
    assert result.non_monotone, "lower ones fail"


def test_where_none_passes_the_search_begins_where_it_was_to():
    tried = []

    def fails(level):
        tried.append(level)
        return False

    assert search_start(fails, 40, 60, 1.0) == (False, 40, 60)
    assert len(set(tried)) == len(tried) < 50


def test_bracket_far_from_the_capacity_grows_by_doubling():
    """4,000 to 3: linear steps of the bracket's 10 would take 400 probes."""
    result = capacity_search(lambda level, _: level <= 3.5, 4000, 4010, 1.0)
    assert (result.estimate.low, result.estimate.high) == (3.0, 4.0)
    assert len(result.probes) < 50


def test_capacity_below_the_first_grid_level_reaches_the_floor():
    """Nothing but no load passes: between 0 and the lowest level tried, 1."""
    result = capacity_search(lambda level, _: False, 40, 60, 1.0)
    assert (result.estimate.low, result.estimate.high) == (0.0, 1.0)


def test_unlimited_capacity_is_open_above():
    result = capacity_search(lambda level, _: True, 10, 20, 1.0)
    assert result.estimate.high == math.inf
    assert result.estimate.low == 10 + 10 * 2**6
    assert not result.resolved


@pytest.mark.parametrize("capacity", [12.5, 500.0])
def test_no_level_is_tried_that_there_cannot_be(capacity):
    tried = []
    result = capacity_search(
        lambda level, _: tried.append(level) or level <= capacity, 10, 20, 1.0, allows=lambda level: level <= 47
    )
    assert max(tried) <= 47
    assert result.is_bounded == (capacity > 47)
    assert result.estimate.low == min(capacity // 1, 47)


def test_a_lower_end_that_there_cannot_be_is_not_tried():
    result = capacity_search(lambda level, _: True, 10, 20, 1.0, allows=lambda level: level <= 7)
    assert (result.estimate.low, result.is_bounded, result.answer) == (7, True, "at least")


def test_used_up_budget_is_reported_with_a_valid_interval():
    result = capacity_search(common_oracle(1), 10, 200, 1.0, budget=100)
    assert result.budget_ended
    assert result.estimate.n == 100
    assert not result.resolved
    assert result.estimate.low <= TRUTH <= result.estimate.high


def test_a_small_budget_leaves_enough_for_a_load_that_passes():
    """90 runs, of which a level takes 51 to pass: 150 curves that fall from 0.97 to 0.74 over two steps of the grid.

    When a level near the capacity could take them all, 100 of these ended with nothing passed.
    """
    answers = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        limits = rng.uniform(85.0, 115.0) + 4.0 * rng.logistic(size=400)
        passes = lambda level, n, of=limits: bool(level < of[n])  # noqa: E731
        found = capacity_search(passes, 60, 125, 5, budget=90, runs_per_level=55)
        answers.append(found.answer)
        assert found.estimate.n <= 90
    assert answers.count("between") >= 115


def test_the_batch_size_does_not_matter_when_runs_are_kept():
    one, four = (capacity_search(common_oracle(3), 60, 125, 5, budget=90, batch=batch) for batch in (1, 4))
    assert one == four


@pytest.mark.parametrize(
    ("passes", "budget", "answer"),
    [
        (lambda level, _: level <= 42.3, 5000, "between"),
        (lambda _, __: True, 5000, "at least"),
        (lambda _, __: False, 5000, "below"),
        (lambda level, number: level < 50 or number % 2 == 0, 10, "below"),
        (lambda _, number: number % 10 > 0, 5, "unknown"),
    ],
)
def test_the_answer_says_from_which_side_the_capacity_is_known(passes, budget, answer):
    assert capacity_search(passes, 10, 100, 1.0, budget=budget).answer == answer


def test_fewer_runs_than_it_takes_never_pass():
    """Evidence after n passes is (1 - .9^(n+1)) / ((n + 1) .1 .9^n), at least 40: 50 runs give 37.9, 51 give 41.3."""
    result = capacity_search(lambda _, __: True, 10, 20, 1.0)

    def evidence(n):
        return (1 - 0.9 ** (n + 1)) / ((n + 1) * 0.1 * 0.9**n)

    assert evidence(result.runs_to_pass) >= 40.0 > evidence(result.runs_to_pass - 1)
    assert min(probe.runs for probe in result.probes if probe.decision is ProbeVerdict.PASS) == result.runs_to_pass


def test_island_of_success_above_the_capacity_is_flagged():
    result = capacity_search(lambda level, _: level < 40 or 60 < level < 80, 0, 100, 1.0)
    assert result.non_monotone
    assert (result.estimate.low, result.estimate.high) == (39.0, 40.0)


def test_dip_below_the_capacity_is_flagged():
    assert capacity_search(lambda level, _: level < 70 and not 30 < level < 40, 0, 100, 1.0).non_monotone


@pytest.mark.parametrize(("rates", "flagged"), [((0.6, 0.95), True), ((0.95, 0.6), False), ((0.8, 0.8), False)])
def test_sign_test_flags_a_rise_that_no_decision_shows(rates, flagged):
    """200 runs at each of two levels, with an error so small that neither level is ever decided.

    Rates .6 below and .95 above give about 76 inversions against 6 in order.
    """
    rng = np.random.default_rng(1)
    prober = Prober(
        lambda level, _: bool(rng.random() < rates[int(level)]),
        0.8,
        1e-100,
        runs_per_level=200,
        left=1000,
        mapper=map,
        batch=1,
    )
    assert [prober.decide(float(level)) for level in (0, 1)] == [ProbeVerdict.UNDECIDED] * 2
    assert is_non_monotone(prober) is flagged


def test_dip_below_an_unlimited_capacity_is_flagged():
    """Tried on the way up: 20, 30, 50, ... 330, 650; the lower checks add 487, in the dip from 480 to 500."""
    result = capacity_search(lambda level, _: not 480 < level < 500, 10, 20, 1.0)
    assert result.estimate.low == 650.0
    assert result.non_monotone


def test_answer_does_not_depend_on_batches_or_parallel_runs():
    reference = capacity_search(common_oracle(3), 10, 200, 2.0)
    with ThreadPoolExecutor(2) as executor:
        for batch in (7, 32):
            assert capacity_search(common_oracle(3), 10, 200, 2.0, mapper=executor.map, batch=batch) == reference


def test_grid_levels_carry_no_rounding_noise():
    levels = [p.level for p in capacity_search(lambda level, _: level < 0.35, 0, 1, 0.1).probes]
    assert all(level == round(level, 1) for level in levels)


@pytest.mark.parametrize(
    "wrong",
    [
        {"low": 5, "high": 5},
        {"low": -1},
        {"resolution": 0.0},
        {"resolution": 11.0},
        {"probability": 1.0},
        {"confidence": 0.0},
        {"budget": 0},
    ],
)
def test_impossible_search_is_the_users_mistake(wrong):
    arguments = {"low": 0, "high": 10, "resolution": 1.0, **wrong}
    with pytest.raises(UsageError):
        capacity_search(lambda level, _: True, **arguments)


def test_evidence_by_hand():
    """Two passes at a bound of 1/2: integral of q^2 from 1/2 to 1 is 7/24, over 1/2, over 1/4: 7/3.

    Evidence for below: integral from 0 to 1/2 is 1/24, over 1/2, over 1/4: 1/3.
    """
    assert math.exp(log_evidence_above(2, 0, 0.5)) == pytest.approx(7 / 3)
    assert math.exp(log_evidence_below(2, 0, 0.5)) == pytest.approx(1 / 3)
    assert log_evidence_below(4000, 0, 0.5) == -math.inf


@pytest.mark.parametrize("bound", [0.5, 0.9])
def test_sequential_test_keeps_its_level_when_looked_at_after_every_run(bound):
    """At a success probability equal to the bound, evidence reaches 20 in at most 5 % of sequences.

    500 sequences of 300 looks for each side; the band is 3.5 standard errors above 5 %.
    """
    rng = np.random.default_rng(1)
    looks = np.arange(1, 301)
    for evidence in (log_evidence_above, log_evidence_below):
        table = {}
        wrong = 0
        for _ in range(500):
            passed = np.cumsum(rng.random(300) < bound)
            for s, n in zip(passed.tolist(), looks.tolist(), strict=True):
                if (s, n) not in table:
                    table[s, n] = evidence(s, n - s, bound) >= math.log(20)
                if table[s, n]:
                    wrong += 1
                    break
        assert wrong <= 500 * (0.05 + 3.5 * math.sqrt(0.05 * 0.95 / 500))


def test_sign_test_by_hand():
    """P(X >= 2) of 2 fair coins is 1/4, P(X >= 1) of 3 is 7/8."""
    assert inversion_p_value(2, 2) == pytest.approx(1 / 4)
    assert inversion_p_value(1, 3) == pytest.approx(7 / 8)
    assert inversion_p_value(0, 5) == 1.0
