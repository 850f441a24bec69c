"""E-model and burst ratio against published and worked values."""

import numpy as np
import pytest

from vftsim.workloads.voice_quality import (
    Codec,
    burst_ratio,
    delay_impairment,
    e_model,
    mean_opinion_score,
    pure_delay,
)


def test_a_connection_without_delay_and_loss_has_the_published_rating():
    """G.107 (06/2015), 7.7: all parameters at their defaults give R = 93.2, and MOS 4.41 by annex B."""
    voice = e_model(0.0, 0.0)
    assert voice.r_factor == pytest.approx(93.2, abs=0.05)
    assert voice.mos == pytest.approx(4.41, abs=0.005)


@pytest.mark.parametrize(("r_factor", "mos"), [(90, 4.34), (80, 4.03), (70, 3.60), (60, 3.10), (50, 2.58)])
def test_scores_of_the_categories_of_g_109(r_factor, mos):
    assert mean_opinion_score(r_factor) == pytest.approx(mos, abs=0.01)


def test_pure_delay_by_hand():
    """At 200 ms X = 1: 25 (2^(1/6) - 3 (1 + 3^-6)^(1/6) + 2) = 3.0444; at 400 ms X = 2: 24.070; none up to 100 ms."""
    assert pure_delay(200.0) == pytest.approx(25 * (2 ** (1 / 6) - 3 * (730 / 729) ** (1 / 6) + 2))
    assert pure_delay(200.0) == pytest.approx(3.0444, abs=5e-4)
    assert pure_delay(400.0) == pytest.approx(25 * (65 ** (1 / 6) - 3 * (793 / 729) ** (1 / 6) + 2))
    assert pure_delay(100.0) == 0.0


@pytest.mark.parametrize(
    ("delay_ms", "off"), [(20, 0.25), (100, 0.25), (150, 0.25), (177, 0.9), (200, 0.25), (300, 0.25)]
)
def test_the_line_that_planners_use_is_near_up_to_300_ms(delay_ms, off):
    """Cole and Rosenbluth (2001) fitted 0.024 d + 0.11 (d - 177.3) to G.107 for such delays; its kink is furthest."""
    line = 0.024 * delay_ms + 0.11 * max(0.0, delay_ms - 177.3)
    assert e_model(delay_ms, 0.0).r_factor == pytest.approx(93.2 - line, abs=off)


def test_beyond_300_ms_that_line_is_too_strict():
    """By 3.1 at 400 ms and 9.1 at 500 ms: the impairment of delay levels off."""
    for delay_ms, too_low in ((400.0, 3.14), (500.0, 9.10)):
        line = 93.2 - 0.024 * delay_ms - 0.11 * (delay_ms - 177.3)
        assert e_model(delay_ms, 0.0).r_factor - line == pytest.approx(too_low, abs=0.02)


def test_delay_never_helps():
    """But for the first two milliseconds, where G.107 takes the echo out of the side tone (0.15, 0.09, 0.15)."""
    impairments = [delay_impairment(float(ms)) for ms in range(501)]
    assert all(np.diff(impairments[2:]) > 0.0)
    assert impairments[0] == pytest.approx(0.15, abs=0.01), "listener echo of a connection without delay"


def test_a_millisecond_of_delay_is_an_echo_already():
    """G.107, 7.4: it is side tone below one, so there is a jump, to what holds from one on."""
    assert delay_impairment(1.0) == pytest.approx(delay_impairment(1.0 + 1e-9), abs=1e-7)


def test_loss_impairment_by_hand():
    """1 % of G.711: 95 / 26.1 = 3.640 concealed, 95 / 5.3 = 17.925 plain; bursts of ratio 2: 95 / 25.6 = 3.711."""
    clean = e_model(150.0, 0.0).r_factor
    for arguments, loss in (({}, 3.640), ({"codec": Codec(robustness=4.3)}, 17.925), ({"burst_ratio": 2.0}, 3.711)):
        assert clean - e_model(150.0, 1.0, **arguments).r_factor == pytest.approx(loss, abs=0.001)


def test_another_codec_by_hand():
    """G.729A: 11 points, 84 / 20 = 4.2 more at 1 % lost, and the delay impairment of its look-ahead of 5 ms."""
    g729a = Codec(impairment=11.0, robustness=19.0, look_ahead_ms=5.0)
    at_once = e_model(150.0, 0.0, codec=g729a).r_factor
    assert at_once == pytest.approx(e_model(155.0, 0.0).r_factor - 11.0)
    assert at_once - e_model(150.0, 1.0, codec=g729a).r_factor == pytest.approx(4.2)
    assert not e_model(496.0, 0.0, codec=g729a).is_valid


def test_there_is_no_rating_outside_what_g_107_is_stated_for():
    assert e_model(500.0, 20.0).is_valid
    assert not e_model(501.0, 0.0).is_valid
    assert not e_model(80.0, 20.5).is_valid


def test_burst_ratio_by_hand():
    """Six of 100 lost in two rows: mean length 3, times 0.94; singles and nothing lost are random loss."""
    assert burst_ratio(6, 2, 100) == pytest.approx(2.82)
    assert burst_ratio(6, 6, 100) == burst_ratio(0, 0, 100) == burst_ratio(100, 1, 100) == 1.0
    with pytest.raises(ValueError, match="bursts"):
        burst_ratio(2, 3, 100)


def test_score_ends():
    assert mean_opinion_score(-3.0) == 1.0
    assert mean_opinion_score(101.0) == 4.5
