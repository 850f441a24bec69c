"""Warm-up: MSER-5 by hand, the pilot procedure, and what is refused."""

import math
import pickle

import numpy as np
import pytest

from vftsim.errors import PrecisionNotReached, UsageError
from vftsim.stats import warm_up
from vftsim.stats.warmup import mser5


def test_mser_cuts_a_step_exactly():
    """Fifteen zeros, then alternating batches of 9 and 11: the three batches of zeros go, nothing else.

    Cutting d more batches of the rest leaves the variance and shrinks (n - d), so the score rises.
    """
    series = [0.0] * 15 + ([9.0] * 5 + [11.0] * 5) * 20
    assert mser5(series) == 15


def test_mser_scores_as_its_definition_says():
    """Brute force over all cuts up to half the series, on random walks."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        series = np.cumsum(rng.normal(size=200))
        batches = series.reshape(-1, 5).mean(axis=1)
        scores = [batches[d:].var() / len(batches[d:]) for d in range(len(batches) // 2 + 1)]
        assert mser5(series.tolist()) == 5 * int(np.argmin(scores))


def autoregressive_pilots(seed: int, pilots: int, length: int) -> list[list[float]]:
    """AR(1) with rho = .9 and mean 10, started at 0."""
    noise = np.random.default_rng(seed).normal(size=(pilots, length))
    x = np.empty_like(noise)
    x[:, 0] = -10.0
    for t in range(1, length):
        x[:, t] = 0.9 * x[:, t - 1] + noise[:, t]
    return (10.0 + x).tolist()


def test_pilot_cut_removes_the_bias_of_the_start():
    """The bias 10 * .9^t falls below .05 after 50 observations.

    Fresh runs cut with the pilot's result must have the true mean within their interval: the standard error
    of the mean of m AR(1) values is sqrt(1 / (m (1 - .9)^2)).
    """
    study = warm_up(autoregressive_pilots(1, 20, 1000))
    assert study.cut == 2 * study.mser_cut
    assert 25 <= study.mser_cut <= 100
    assert study.share == study.cut / 1000
    fresh = np.array(autoregressive_pilots(2, 200, 1000))
    kept = fresh[:, study.cut :]
    z = (kept.mean() - 10.0) * 0.1 * math.sqrt(kept.size)
    assert abs(z) <= 3.5
    assert (fresh.mean() - 10.0) * 0.1 * math.sqrt(fresh.size) < -3.5


def test_averaged_series_is_the_mean_of_the_pilots():
    pilots = [[float(i)] * 50 for i in range(20)]
    assert warm_up(pilots).averaged == (9.5,) * 50


def test_too_long_a_warm_up_is_refused_with_the_finding():
    """A step at 30 % of the run: MSER cuts 30 %, doubled 60 % > 25 %."""
    with pytest.raises(PrecisionNotReached, match="60 % of the run") as caught:
        warm_up([[0.0] * 30 + [5.0 + 0.01 * (i % 3)] * 70 for i in range(20)])
    assert caught.value.estimate.mser_cut == 30
    assert pickle.loads(pickle.dumps(caught.value)).estimate == caught.value.estimate


@pytest.mark.parametrize("pilots", [[[0.0] * 100] * 19, [], [[0.0] * 100] * 19 + [[0.0] * 99], [[0.0] * 49] * 20])
def test_too_few_or_uneven_pilots_are_the_users_mistake(pilots):
    with pytest.raises(UsageError, match="pilot"):
        warm_up(pilots)


def test_short_series_is_refused():
    with pytest.raises(ValueError, match="at least 50"):
        mser5([0.0] * 49)
