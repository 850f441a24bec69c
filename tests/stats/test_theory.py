"""Closed forms against values worked out by hand."""

import math

import pytest

from tests.stats.theory import (
    erlang_b,
    erlang_c,
    littles_law,
    md1,
    mg1,
    mg1_ps_response,
    mm1,
    mm1_response_quantile,
    mm1k,
    mm1k_loss,
    mmc,
)


def test_mm1_by_hand():
    """lambda = 3, mu = 4: rho = 3/4, T = 1/(4-3) = 1, W = 3/4, Lq = 9/4, L = 3."""
    q = mm1(3.0, 4.0)
    assert (q.utilization, q.wait, q.response, q.waiting, q.in_system) == pytest.approx((0.75, 0.75, 1, 2.25, 3))


def test_mm1_quantile_by_hand():
    """Exponential of rate mu - lambda = 1: median ln 2; 95 % at ln 20."""
    assert mm1_response_quantile(3.0, 4.0, 0.5) == pytest.approx(math.log(2))
    assert mm1_response_quantile(3.0, 4.0, 0.95) == pytest.approx(math.log(20))


def test_erlang_b_by_hand():
    """a = 2, c = 3: (8/6) / (1 + 2 + 2 + 8/6) = (4/3) / (19/3) = 4/19; a = 0 blocks nobody."""
    assert erlang_b(2.0, 3) == pytest.approx(4 / 19)
    assert erlang_b(0.0, 3) == 0.0
    assert erlang_b(1e6, 1) == pytest.approx(1e6 / (1e6 + 1))


def test_erlang_b_against_its_sum():
    a, c = 37.5, 45
    terms = [a**k / math.factorial(k) for k in range(c + 1)]
    assert erlang_b(a, c) == pytest.approx(terms[-1] / sum(terms), rel=1e-12)


def test_erlang_c_by_hand():
    """a = 2, c = 3: P0 = 1 / (1 + 2 + 2 + (8/6) * 3) = 1/9, C = (8/6) * 3 * P0 = 4/9."""
    assert erlang_c(2.0, 3) == pytest.approx(4 / 9)
    assert erlang_c(0.7, 1) == pytest.approx(0.7)


def test_mmc_by_hand():
    """lambda = 2, mu = 1, c = 3: W = (4/9) / (3 - 2) = 4/9, Lq = 8/9, L = 26/9."""
    q = mmc(2.0, 1.0, 3)
    assert (q.utilization, q.wait, q.response, q.waiting, q.in_system) == pytest.approx(
        (2 / 3, 4 / 9, 13 / 9, 8 / 9, 26 / 9)
    )


def test_mm1k_by_hand():
    """lambda = 1, mu = 2, K = 2: weights 1, 1/2, 1/4; loss 1/7, busy 3/7, L = (2 + 2)/7 = 4/7.

    Accepted rate 6/7, so T = 2/3 and W = 2/3 - 1/2 = 1/6.
    """
    assert mm1k_loss(1.0, 2.0, 2) == pytest.approx(1 / 7)
    q = mm1k(1.0, 2.0, 2)
    assert (q.utilization, q.wait, q.response, q.waiting, q.in_system) == pytest.approx(
        (3 / 7, 1 / 6, 2 / 3, 1 / 7, 4 / 7)
    )


def test_mm1k_at_and_above_saturation():
    """rho = 1: 1 / (K + 1).  rho = 2, K = 2: 4/7.  rho = 10, K = 400: 1 - 1/rho, without overflow."""
    assert mm1k_loss(2.0, 2.0, 4) == pytest.approx(1 / 5)
    assert mm1k_loss(4.0, 2.0, 2) == pytest.approx(4 / 7)
    assert mm1k_loss(10.0, 1.0, 400) == pytest.approx(0.9)


def test_mm1k_with_one_place_is_erlang_b():
    assert mm1k_loss(3.0, 4.0, 1) == pytest.approx(erlang_b(0.75, 1))


def test_md1_by_hand():
    """lambda = 1/2, S = 1: W = (1/2) / (2 * 1/2) = 1/2, half of M/M/1's 1; T = 3/2."""
    q = md1(0.5, 1.0)
    assert (q.wait, q.response, q.waiting, q.in_system) == pytest.approx((0.5, 1.5, 0.25, 0.75))
    assert q.wait == pytest.approx(mm1(0.5, 1.0).wait / 2)


def test_pollaczek_khinchine_by_hand():
    """Service 1 or 3 with probability 1/2: mean 2, second moment 5, cv^2 = 1/4.

    lambda = 1/4: W = lambda E[S^2] / (2 (1 - rho)) = (5/4) / 1 = 5/4.
    """
    assert mg1(0.25, 2.0, 0.5).wait == pytest.approx(1.25)
    assert mg1(3.0, 0.25, 1.0) == mm1(3.0, 4.0)


def test_processor_sharing_by_hand():
    """rho = 3/4: four times the service time, for the mean (1/4 -> 1) and for a customer of work 2 (-> 8)."""
    assert mg1_ps_response(3.0, 0.25) == pytest.approx(1.0)
    assert mg1_ps_response(3.0, 0.25, 2.0) == pytest.approx(8.0)


@pytest.mark.parametrize("q", [mm1(3.0, 4.0), mmc(5.0, 2.0, 4), mg1(0.3, 2.0, 1.7)])
def test_littles_law_ties_numbers_to_times(q):
    rate = q.in_system / q.response
    assert littles_law(rate, q.wait) == pytest.approx(q.waiting)


@pytest.mark.parametrize(
    "call",
    [
        lambda: mm1(4.0, 4.0),
        lambda: mmc(8.0, 2.0, 4),
        lambda: mg1(1.0, 1.0, 0.0),
        lambda: mg1(0.5, 1.0, -1.0),
        lambda: mg1_ps_response(2.0, 1.0),
        lambda: mm1_response_quantile(3.0, 4.0, 1.0),
        lambda: erlang_b(1.0, 0),
        lambda: erlang_c(3.0, 3),
        lambda: mm1k_loss(1.0, 1.0, 0),
        lambda: mm1k_loss(0.0, 1.0, 3),
    ],
)
def test_no_steady_state_or_impossible_queue_is_refused(call):
    with pytest.raises(ValueError, match=r".+"):
        call()
