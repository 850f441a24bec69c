"""Closed forms with worked numbers that no other test has: see docs/protection/closed-forms.md."""

import math
from random import Random

import pytest

from vftsim.platform.protection.migration import ReprotectionSpec, plan_copy
from vftsim.study.designs.crossovers import crossovers
from vftsim.testing.plant import Plant

from .pair import MS, QUIET, Pair, S, free_log
from .sets import A
from .test_checkpoint import near, settled
from .test_event_sync import parameters as events


@pytest.mark.parametrize("touch_rate", [1e5, 1e6, 1e8])
def test_a_stretched_period_has_a_bound_where_the_working_set_is_finite(touch_rate):
    """P <= s + c W + h + W b / R + a, and comes to it when every page is dirty at once."""
    setting = A.but(touch_rate=touch_rate)
    whole_ns = (setting.fixed_bytes + setting.working_set * setting.page_bytes) * 8 * S // setting.rate
    bound_ns = setting.fixed_pause + setting.page_pause * setting.working_set + whole_ns + setting.round_trip
    early, late = (settled(setting, until_ns=t).summary["states_taken"] for t in (2 * S, 6 * S))
    period_ns = 4 * S / (late - early)
    assert period_ns <= bound_ns * (1 + 1 / (late - early))
    assert (period_ns > 0.98 * bound_ns) == (touch_rate > 1e5)


@pytest.mark.thorough
def test_mean_number_of_outputs_held():
    """g (E / P) (E / 2 + p + x + a) with g outputs a second of run time; each is held from its issue to its leaving."""
    mechanism, chunk_ns = A.steady(), 20_011
    plant = settled(A, until_ns=120 * mechanism.period, chunk_ns=chunk_ns, chunk_is_output=True)
    left = {number: time_ns for time_ns, number in plant.seen}
    begin_ns, end_ns = 20 * mechanism.period, 100 * mechanism.period
    held_ns = sum(
        max(0, min(left[number], end_ns) - max(time_ns, begin_ns)) for time_ns, number in plant.issued if number in left
    )
    expected = (mechanism.run / mechanism.period) * (mechanism.run / 2 + mechanism.hidden) / chunk_ns
    assert near(held_ns / (end_ns - begin_ns), expected)


@pytest.mark.parametrize(("remaining_ns", "outage_ns"), [(50 * MS, 3_105 * MS), (5 * S, 5_100 * MS)])
def test_replay_and_detection_run_at_the_same_time(remaining_ns, outage_ns):
    """Outage = max(detection + lock, replay that is left) + go-live; the sum would be 3.155 and 8.105 s."""
    pair = Pair(
        log=QUIET,
        channel={"rate": 10**12, "latency": 0, "ack": 0},
        secondary={"entry_cost": remaining_ns},
        cost={"entry": 0, "kibibyte": 0, "output": 0},
        reprotection=None,
        failover={"detection": {"heartbeat_interval": S, "timeout": 3 * S, "log_timeout": 10 * S}, "go_live": 100 * MS},
    )
    crash_ns = 7 * S
    pair.at(crash_ns - 1, pair.input, 1)  # one byte: it leaves, arrives and begins to be replayed at once
    pair.crash_at(crash_ns)
    pair.run(20 * S)
    live_ns = {what: time_ns for time_ns, what in pair.timeline}["secondary live"]
    assert abs(live_ns - crash_ns - outage_ns) <= 1


def test_lag_behind_a_busy_primary_is_a_second_after_six():
    """A secondary 1.2 times as slow: t (1 - 1 / 1.2) of the primary's work is left after t."""
    pair = free_log(1.2)
    pair.submit(20 * S)
    pair.run(6 * S)
    # At 6 s of work the secondary is through 5 s of it: it is done with the rest 1.2 s later.
    behind_ns = pair.lag_ns()
    assert behind_ns / 1.2 == pytest.approx(S, rel=0.005)


def test_precopy_of_4_gib():
    """800 Mbit/s against 80 dirtied, until fewer than 50 pages are left: five live rounds in 47.7214 s."""
    plan = plan_copy(ReprotectionSpec(resume=0))
    assert len(plan.rounds_ns) - 1 == 5
    assert plan.live_ns == pytest.approx(47.7214 * S, rel=1e-5)
    assert plan.downtime_ns == pytest.approx(42_950 * 10, rel=1e-3)


def stops(rate):
    """Time that a guest stands still, by time that it runs, under synchronization at events at random."""
    gaps = [round(-math.log1p(-(i + 0.5) / 400) * S / rate) for i in range(400)]
    Random(1).shuffle(gaps)
    until_ns = int(400 * S / rate)
    plant = Plant(events(), lengths=gaps, chunk_ns=gaps[0], chunk_is_output=True, until_ns=until_ns).run()
    return (until_ns - plant.run_ns) / plant.run_ns


def test_kemari_costs_as_much_as_remus_at_a_rate_of_events():
    """Both simulated, the crossover interpolated: 0.671 events a second of running, set A."""
    rates = [0.55, 0.65, 0.75]
    early, late = (settled(A, until_ns=t) for t in (S, 5 * S))
    remus = 4 * S / (late.run_ns - early.run_ns) - 1
    (found,) = crossovers(rates, [[stops(rate)] * 2 for rate in rates], [[remus] * 2] * 3)
    assert found.at.mean == pytest.approx(0.671, rel=0.01)
