"""An interval that follows outputs and pauses: its fixed points, its growth, its bounds."""

import pytest
from pydantic import ValidationError

from vftsim.platform.protection.checkpoint import CheckpointSpec
from vftsim.platform.protection.state_stream import state_streams
from vftsim.spec.units import MS, US, S
from vftsim.testing.plant import ENGINES, Plant

from .sets import A

QUICK = A.but(rate=10_000_000_000)
"""A wire that never stretches an epoch."""


def adaptive(setting=QUICK, until_ns=2 * S, rule=None, **fields):
    parameters = setting.parameters(adaptive={"longest": "400 ms", **(rule or {})})
    return Plant(parameters, until_ns=until_ns, **fields).run()


def period_ns(plant):
    stream = plant.engine.rows(state_streams)[plant.guard]
    return int(stream.taken_ns) - int(stream.taken_before_ns)


@pytest.mark.parametrize("engine_type", [ENGINES[0], pytest.param(ENGINES[1], marks=pytest.mark.slow)])
def test_constant_pauses_take_the_share_allowed(engine_type):
    """0.5 ms at 5 %: 10 ms."""
    plant = adaptive(QUICK.but(working_set=0), S, chunk_ns=MS, chunk_is_output=True, engine_type=engine_type)
    assert period_ns(plant) == 10 * MS
    assert plant.summary["interval_ms"] == 10.0


@pytest.mark.parametrize(("overhead", "touch_rate"), [(5, 10_000.0), (10, 10_000.0), (10, 40_000.0)])
def test_pauses_that_grow_with_the_interval_settle_at_the_fixed_point(overhead, touch_rate):
    """T = (s + c D(T - p)) / overhead."""
    setting = QUICK.but(touch_rate=touch_rate)
    plant = adaptive(setting, 4 * S, {"overhead": overhead, "shortest": US}, chunk_ns=MS, chunk_is_output=True)
    interval_ns = pause_ns = 0.0
    for _ in range(500):
        pause_ns = setting.fixed_pause + setting.page_pause * setting.pages(interval_ns - pause_ns)
        interval_ns = pause_ns / (overhead / 100)
    assert period_ns(plant) == pytest.approx(interval_ns, rel=1e-3)
    assert pause_ns / period_ns(plant) == pytest.approx(overhead / 100, rel=1e-3)


def test_while_nobody_waits_it_grows_to_its_bound():
    """Suspended at 25, 75, 175, 375, 775, 1175 ms."""
    plant = adaptive(until_ns=1200 * MS)
    assert plant.summary["states_taken"] == 6
    assert plant.summary["interval_ms"] == 400.0
    still = adaptive(until_ns=1200 * MS, rule={"growth": 1.0})
    assert still.summary["interval_ms"] == 25.0


def test_an_output_after_a_pause_in_the_traffic_waits_once():
    """The first of each burst waits up to the longest interval, those of the next epochs for the pause over 5 %."""
    asks = [2 * S + number * MS for number in range(600)]
    plant = adaptive(QUICK.but(working_set=0), 4 * S, asks=asks)
    holds = [seen - issued for (seen, _), (issued, _) in zip(plant.seen, plant.issued, strict=True)]
    assert len(holds) == 600
    late = [hold for hold, (issued, _) in zip(holds, plant.issued, strict=True) if issued > 2 * S + 410 * MS]
    assert max(holds) > 50 * MS
    assert max(late) < 12 * MS


def test_it_is_never_shorter_than_allowed():
    plant = adaptive(
        QUICK.but(fixed_pause=100 * US, working_set=0), rule={"shortest": "7 ms"}, chunk_ns=MS, chunk_is_output=True
    )
    assert period_ns(plant) == 7 * MS


def test_bounds_that_cannot_be_are_refused():
    with pytest.raises(ValidationError, match="shortest must not be above longest"):
        CheckpointSpec(adaptive={"shortest": S, "longest": MS})
    with pytest.raises(ValidationError, match=r"failover\.detection\.timeout .* must be above"):
        CheckpointSpec(adaptive={"longest": S})
