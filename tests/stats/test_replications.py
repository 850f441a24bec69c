"""Sequential stopping: when it stops, on what, and how often its interval is right."""

import math
import pickle

import numpy as np
import pytest

from vftsim.errors import PrecisionNotReached, UsageError
from vftsim.stats import StoppingRule, mean_interval
from vftsim.stats.replications import replicate


def run_replications(run_batch, rule):
    procedure = replicate(rule)
    numbers = next(procedure)
    while True:
        try:
            numbers = procedure.send(run_batch(numbers))
        except StopIteration as end:
            return end.value


def drive(values, rule):
    """Run the rule over a fixed list of values of the metric ``x``; also return the batches asked for."""
    asked = []

    def run_batch(numbers):
        asked.append(numbers)
        return [{"x": values[i]} for i in numbers]

    return run_replications(run_batch, rule), asked


def test_stops_at_the_first_success_that_the_look_ahead_confirms():
    """9, 11, 9, ...: the half width is about t(n - 1) / sqrt(n); the target 0.6 is met and stays met.

    Expected n: the first n >= 10 with half width <= 0.6, plus five.
    """
    values = [10.0 + (-1) ** i for i in range(100)]
    first = next(n for n in range(10, 100) if mean_interval(values[:n]).half_width <= 0.6)
    result, _ = drive(values, StoppingRule(("x",), relative_half_width=0.06))
    assert result.reached
    assert result.n == first + 5
    assert result.estimates["x"] == mean_interval(values[: first + 5])


def test_an_outlier_within_the_look_ahead_restarts_the_count():
    """Constant but for one outlier at the 13th value: success at 10 to 12, failure from 13 on."""
    values = [10.0 + 0.01 * (i % 2) for i in range(200)]
    values[12] = 20.0
    result, _ = drive(values, StoppingRule(("x",), relative_half_width=0.05))
    first = next(
        n for n in range(13, 200) if mean_interval(values[:n]).half_width <= 0.05 * mean_interval(values[:n]).mean
    )
    assert first > 15
    assert result.n == first + 5


@pytest.mark.parametrize("batch", [1, 3, 64])
def test_batch_size_does_not_change_the_result(batch):
    values = np.random.default_rng(1).normal(10.0, 3.0, 300).tolist()
    reference, _ = drive(values, StoppingRule(("x",)))
    result, asked = drive(values, StoppingRule(("x",), batch=batch))
    assert result == reference
    assert asked[0] == range(15)
    assert [i for numbers in asked for i in numbers] == list(range(asked[-1].stop))


def test_budget_ends_with_the_estimate():
    values = np.random.default_rng(2).normal(1.0, 5.0, 40).tolist()
    result, asked = drive(values, StoppingRule(("x",), budget=40, batch=7))
    assert not result.reached
    assert result.n == 40 == asked[-1].stop
    assert pickle.loads(pickle.dumps(PrecisionNotReached("after 40", result))).estimate == result


def test_what_is_the_same_in_all_is_reached_at_the_first_look_that_counts():
    result, _ = drive([5.0] * 20, StoppingRule(("x",)))
    assert result.reached
    assert result.n == 15


def test_nothing_but_zeros_is_never_precise():
    result, _ = drive([0.0] * 60, StoppingRule(("x",), absolute_half_width=1.0, budget=60))
    assert not result.reached


def test_absolute_target_serves_metrics_around_zero():
    values = [(-1.0) ** i for i in range(200)]
    assert not drive(values, StoppingRule(("x",)))[0].reached
    assert drive(values, StoppingRule(("x",), absolute_half_width=0.5))[0].reached


def test_all_metrics_must_reach_the_target_at_bonferroni_confidence():
    rng = np.random.default_rng(3)
    outcomes = [{"x": float(a), "y": float(b)} for a, b in rng.normal(10.0, (0.1, 2.0), (200, 2))]
    result = run_replications(lambda numbers: [outcomes[i] for i in numbers], StoppingRule(("x", "y")))
    assert result.reached
    assert result.estimates["y"] == mean_interval([o["y"] for o in outcomes[: result.n]], 0.975)
    alone = run_replications(lambda numbers: [outcomes[i] for i in numbers], StoppingRule(("x",)))
    assert alone.n < result.n


@pytest.mark.thorough
@pytest.mark.parametrize("studies", [120, pytest.param(1000, marks=pytest.mark.slow)])
def test_coverage_after_sequential_stopping(studies):
    """Studies of gamma data (mean 1, cv .5) at a target of 10 %.

    Stopping at a random time and the skewness cost a little of the nominal 95 %; the band is 3.5 standard
    errors below 94.5 %: of 1,000 at least 920.
    """
    rng = np.random.default_rng(4)
    covered = 0
    rule = StoppingRule(("x",), relative_half_width=0.1, batch=5, budget=400)
    for _ in range(studies):
        values = rng.gamma(4.0, 0.25, 400).tolist()
        estimate = drive(values, rule)[0].estimates["x"]
        covered += estimate.low <= 1.0 <= estimate.high
    assert covered >= studies * 0.945 - 3.5 * math.sqrt(studies * 0.945 * 0.055)


@pytest.mark.parametrize(
    "wrong",
    [
        {"metrics": ()},
        {"initial": 9},
        {"look_ahead": -1},
        {"batch": 0},
        {"budget": 14},
        {"relative_half_width": -0.1},
        {"confidence": 1.0},
    ],
)
def test_impossible_rule_is_the_users_mistake(wrong):
    with pytest.raises(UsageError):
        StoppingRule(**{"metrics": ("x",), **wrong})


def test_wrong_number_of_outcomes_and_missing_values_are_refused():
    procedure = replicate(StoppingRule(("x",)))
    next(procedure)
    with pytest.raises(ValueError, match="asked for"):
        procedure.send([{"x": 1.0}])
    with pytest.raises(ValueError, match="nan"):
        drive([math.nan] * 15, StoppingRule(("x",)))
