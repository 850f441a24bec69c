"""Draws: moments, monotonicity in the uniform, and what is refused."""

import math

import numpy as np
import pytest
from scipy import special

from vftsim.errors import UsageError
from vftsim.sampling import (
    Streams,
    categorical,
    exponential_ns,
    gamma_ns,
    poisson_gaps_ns,
    uniform,
    uniform_ns,
    unit_exponential,
)

N = 40_000
MEAN_NS = 5_000_000


def sample():
    return Streams(20_240_601, 0).uniforms("test", count=N)


@pytest.mark.parametrize("cv", [0.1, 0.5, 1.0, 2.0])
def test_gamma_has_the_stated_mean_and_variance(cv):
    """Gamma with shape k = 1/cv^2: the sample mean has sd cv/sqrt(n).

    The sample variance has sd ``var * sqrt((excess + 2) / n)`` with excess kurtosis ``6/k = 6 cv^2``.
    """
    x = gamma_ns(sample(), MEAN_NS, cv) / MEAN_NS
    assert abs(x.mean() - 1.0) <= 3.5 * cv / np.sqrt(N)
    assert abs(x.var() / cv**2 - 1.0) <= 3.5 * np.sqrt((6 * cv**2 + 2) / N)


def test_gamma_without_variation_is_the_constant():
    assert set(gamma_ns(sample(), 1234.4, 0.0).tolist()) == {1234}


@pytest.mark.parametrize("cv", [1e-6, 1e-7, 1e-8, 1e-9, 1e-300])
def test_gamma_with_next_to_no_variation_is_near_the_constant(cv):
    """Within ten deviations of its mean and half a ns."""
    assert np.abs(gamma_ns(sample(), MEAN_NS, cv) - MEAN_NS).max() <= 10 * cv * MEAN_NS + 0.5


def test_gamma_of_cv_one_is_the_exponential():
    """Both routes to the exponential agree within the rounding to 1 ns."""
    near = gamma_ns(sample(), MEAN_NS, 1.0 + 1e-12)
    assert np.max(np.abs(near - exponential_ns(sample(), MEAN_NS))) <= 1


def test_erlang_two_has_its_closed_form_distribution():
    """Erlang-2 of mean 2: F(x) = 1 - (1 + x) exp(-x); F(draw) gives the uniform back."""
    u = sample()
    x = gamma_ns(u, 2e12, math.sqrt(0.5)) / 1e12
    assert np.max(np.abs(1.0 - (1.0 + x) * np.exp(-x) - u)) < 1e-11


def test_exponential_median_by_hand():
    """F^-1(1/2) = mean * ln 2 = 693,147 ns for 1 ms."""
    assert exponential_ns(np.array([0.5]), 1e6).tolist() == [693_147]


def test_two_rates_share_the_same_arrivals_stretched():
    u = sample()
    slow, fast = poisson_gaps_ns(u, 50.0), poisson_gaps_ns(u, 100.0)
    assert np.max(np.abs(slow - 2 * fast)) <= 2
    assert np.all(slow >= fast)
    assert abs(fast.mean() / 1e7 - 1.0) <= 3.5 / np.sqrt(N)


@pytest.mark.parametrize(
    "draw",
    [
        unit_exponential,
        lambda u: gamma_ns(u, MEAN_NS, 0.3),
        lambda u: gamma_ns(u, MEAN_NS, 3.0),
        lambda u: gamma_ns(u, MEAN_NS, 0.5),
        lambda u: uniform(u, -2.0, 5.0),
        lambda u: uniform_ns(u, 3, 10**12),
        lambda u: categorical(u, [0.2, 0.5, 0.3]),
    ],
)
def test_draws_rise_with_their_uniform(draw):
    assert np.all(np.diff(draw(np.sort(sample()))) >= 0)


def test_uniform_ns_reaches_both_ends_evenly():
    """Four values with probability 1/4 each; counts are binomial."""
    counts = np.bincount(uniform_ns(sample(), 0, 3), minlength=4)
    assert len(counts) == 4
    assert np.max(np.abs(counts - N / 4)) <= 3.5 * np.sqrt(N * 3 / 16)
    assert uniform_ns(np.array([1 - 2.0**-53]), 0, 2**62 - 1).tolist()[0] <= 2**62 - 1


def test_categorical_by_hand():
    """Edges at .2 and .7; a class of probability 0 never comes up, even last."""
    u = np.array([0.0001, 0.1999, 0.2001, 0.6999, 0.7001, 0.9999])
    assert categorical(u, [0.2, 0.5, 0.3]).tolist() == [0, 0, 1, 1, 2, 2]
    assert categorical(np.array([1 - 2.0**-53]), [0.1] * 10 + [0.0]).tolist() == [9]
    assert categorical(u, [0.0, 1.0]).tolist() == [1] * 6


@pytest.mark.parametrize(
    "call",
    [
        lambda u: poisson_gaps_ns(u, 0.0),
        lambda u: poisson_gaps_ns(u, float("nan")),
        lambda u: exponential_ns(u, -1.0),
        lambda u: exponential_ns(u, 1e19),
        lambda u: gamma_ns(u, 1.0, -0.1),
        lambda u: uniform(u, 2.0, 1.0),
        lambda u: uniform_ns(u, 5, 4),
        lambda u: categorical(u, []),
        lambda u: categorical(u, [0.5, 0.4]),
        lambda u: categorical(u, [1.5, -0.5]),
    ],
)
def test_impossible_parameters_are_refused(call):
    with pytest.raises(ValueError, match=r"must|at least|above|need|sum|exceeds"):
        call(np.array([0.25, 0.99]))


def test_a_time_beyond_all_is_a_mistake_of_the_model():
    with pytest.raises(UsageError, match="exceeds 292 years, the range of"):
        gamma_ns(np.array([0.25, 0.99]), 1e19, 1.0)


@pytest.mark.parametrize("cv", [0.05, 0.3, 0.5, 1.3, 2.2, 2.3, 4.0])
def test_tabled_gamma_is_the_inverse_function(cv):
    """To 2e-11 of the mean, at the ends of cells, beside them, within them, and in the tails, which are not tabled."""
    ends = np.arange(1, 1024) / 1024.0
    spread = np.random.default_rng(7).random(20_000)
    uniforms = np.concatenate([ends, ends - 1e-12, ends + 1e-12, spread, [0.0, 1e-12, 1.0 - 1e-12]])
    shape = 1.0 / cv**2
    mean_ns = 1e12
    exact = special.gammaincinv(shape, uniforms) * (mean_ns / shape)
    assert np.max(np.abs(gamma_ns(uniforms, mean_ns, cv) - exact)) <= 0.5 + 2e-11 * mean_ns


def test_a_gamma_value_does_not_depend_on_its_neighbours():
    uniforms = np.random.default_rng(8).random(500)
    together = gamma_ns(uniforms, 2e6, 0.5).tolist()
    assert together == [int(gamma_ns(uniforms[n : n + 1], 2e6, 0.5)[0]) for n in range(500)]
