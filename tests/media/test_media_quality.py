"""E-model against worked values."""

import pytest

from vftsim.media.quality import e_model, mean_opinion_score


@pytest.mark.parametrize(
    ("delay_ms", "loss_percent", "bpl", "r_factor", "mos"),
    [
        (20, 0, 25.1, 92.72, 4.40),
        (100, 0, 25.1, 90.80, 4.36),
        (150, 1, 25.1, 85.96, 4.23),
        (150, 1, 4.3, 71.68, 3.67),
        (200, 1, 25.1, 82.26, 4.11),
        (300, 5, 25.1, 56.72, 2.93),
    ],
)
def test_e_model_worked_values(delay_ms, loss_percent, bpl, r_factor, mos):
    voice = e_model(delay_ms, loss_percent, bpl=bpl)
    assert voice.r_factor == pytest.approx(r_factor, abs=0.005)
    assert voice.mos == pytest.approx(mos, abs=0.005)


def test_score_ends():
    assert mean_opinion_score(-3.0) == 1.0
    assert mean_opinion_score(101.0) == 4.5
