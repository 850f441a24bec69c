"""Which parameters a sensitivity matrix determines, on matrices whose answer is known."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from vftsim.calibrate.intervals import fit_at, identification, is_determined, like_costs, undetermined


def test_one_parameter_alone():
    """Effect 6 over the box, one residual: variance (36 + 12)^-1 against 12^-1 leaves half the spread."""
    found = identification(np.array([[6.0]]), 1.0)
    assert found.remaining[0] == pytest.approx(0.5)
    assert found.effect == (6.0,)
    assert (found.rank, found.condition) == (1, 1.0)


def test_a_parameter_without_effect_keeps_all_its_spread():
    found = identification(np.array([[30.0, 0.0], [0.0, 0.0], [10.0, 0.0]]), 1.0)
    assert found.identified(0)
    assert not found.identified(1)
    assert found.remaining[1] == pytest.approx(1.0)
    assert found.rank == 1
    assert math.isinf(found.condition)
    (line,) = undetermined(["a", "b"], found)
    assert line.startswith("b (nothing in the data tells it: the data leave 100 %")


def test_two_parameters_that_only_their_sum_tells():
    """Each alone has a great effect, but the data see a + b: the difference keeps its spread."""
    found = identification(np.array([[50.0, 50.0], [40.0, 40.0]]), 1.0)
    assert not found.identified(0)
    assert not found.identified(1)
    assert found.remaining[0] == pytest.approx(math.sqrt(0.5), rel=1e-3)
    assert found.rank == 1
    lines = undetermined(["a", "b"], found)
    assert lines[0].startswith("a (only together with b:")
    assert lines[1].startswith("b (only together with a:")


def test_two_costs_that_are_told_by_their_sum_go_against_each_other_and_a_silent_one_with_neither():
    """Of a + 3 b a wide box of b and a narrow one of a are told: b takes a's place, though it moves four times less.

    One observation: resampled residuals and other runs move both alike, whatever the data tell.
    """
    matrix = np.array([[100.0, 400.0, 0.04]])
    found = identification(matrix, 1.0)
    (first, second) = undetermined(["a", "b", "c"], found)
    assert first.startswith("a (only together with b: the data leave 97 %")
    assert second.startswith("c (nothing in the data tells it:")
    end = SimpleNamespace(x=np.array([0.5, 0.5, 0.5]), fun=np.zeros(1), jac=matrix, cost=0.0, nfev=1)
    asked = SimpleNamespace(parameters=[SimpleNamespace(path=path) for path in "abc"], seed=1, replications=2)
    result = fit_at(asked, [("s", "cpu")], end, np.zeros(3), np.ones(3), [np.array([way]) for way in (-1.0, 1.0)])
    # 1 / 12 - J'J / 144 / (1 + J'J / 12), the inverse of J'J + 12 I, by Sherman and Morrison
    left = np.eye(3) / 12.0 - matrix.T @ matrix / 144.0 / (1.0 + (matrix @ matrix.T).item() / 12.0)
    expected = left[0, 1] / math.sqrt(left[0, 0] * left[1, 1])
    assert result.correlations["a ~ b"] == pytest.approx(expected, abs=1e-6)
    assert expected < -0.99
    assert max(abs(result.correlations[pair]) for pair in ("a ~ c", "b ~ c")) < 1e-3


def test_more_parameters_than_observations():
    found = identification(np.array([[40.0, 0.0, 0.0]]), 1.0)
    assert [found.identified(i) for i in range(3)] == [True, False, False]


def test_scatter_beyond_the_scale_makes_data_say_less():
    """Residuals of ten scales where one was expected: ten times the effect is needed."""
    sensitivity = np.array([[20.0]])
    assert identification(sensitivity, 1.0).identified(0)
    assert not identification(sensitivity, 10.0).identified(0)
    assert identification(sensitivity, 0.01).remaining == identification(sensitivity, 1.0).remaining
    (line,) = undetermined(["a"], identification(sensitivity, 10.0))
    assert line.startswith("a (too little beside the scatter of the residuals: the data leave 87 %")


def test_an_interval_that_fills_its_box_tells_nothing():
    """Half the spread of an even distribution over 0 to 1 is 0.144: 1.96 times it to either side is 0.566."""
    assert is_determined(0.2, 0.76, (0.0, 1.0))
    assert not is_determined(0.2, 0.77, (0.0, 1.0))
    assert not is_determined(0.02, 1.0, (0.02, 1.0))


def test_ends_of_searches_are_alike_within_the_joint_region():
    """10 observations, 2 parameters: F(0.95; 2, 8) is 4.459, so costs up to 2.115 times the least are alike."""
    assert like_costs([1.0, 2.11, 2.12], 10, 2) == [0, 1]
    assert like_costs([1.0, 3.99, 4.0], 2, 2) == [0, 1]  # no scatter: 5.991 / 2 above the least
