"""Measured ramps: the capacity under a limit, where a system tipped, and the load that would have filled its CPU."""

import pytest

from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.ramps import (
    LoadStep,
    capacity_at,
    full_load,
    is_bound,
    load_steps,
    measured_ramp,
    read_ramps,
    shipped_ramps,
)


def steps(*rows):
    return [LoadStep(load, share, cpu) for load, share, cpu in rows]


def test_the_record_says_other_capacities_at_other_limits():
    """By hand from the printed tables: worst scenario of the steps 0.01, 0.14, 48 (native); 0, 0.19, 7.1, 43 (virtual);
    0, 0.11 (a failover), ..., 0.06, 60 (fault tolerant).
    """
    found = {
        name: [capacity_at(ramp.steps, limit) for limit in (0.1, 1, 5, 10)] for name, ramp in shipped_ramps().items()
    }
    assert found["SIP lab, native"] == [129, 139, 139, 139]
    assert found["SIP lab, virtual"] == [80, 89, 89, 100]
    assert found["SIP lab, fault tolerant"] == [9, 34, 34, 34]
    assert found["Linux lab"] == [472, 472, 548, 548]
    assert found["Collapse lab"] == [287, 437, 469, 469]


@pytest.mark.parametrize("idle", [{"load": 0.0, "cpu": 1.0, "failed": 0.0, "calls": 0.0}, {"load": 80.0, "cpu": 9.0}])
def test_a_phase_that_cannot_be_judged_is_no_step(idle):
    """Without load, or where attempts were not counted; 30 of 1,000 are 3 %."""
    of_step = {"load": 90.0, "cpu": 30.0, "failed": 30.0, "calls": 1000.0}
    seen = {(phase, name): value for phase, of in (("idle", idle), ("r1", of_step)) for name, value in of.items()}
    assert load_steps(seen, "failed", "calls") == [LoadStep(90.0, 3.0, 30.0)]


def test_no_step_beyond_a_limit_is_a_bound():
    rows = steps((10.2, 0.0, 10), (20.4, 0.5, 20), (30.6, 9.0, 99))
    assert [is_bound(rows, limit) for limit in (0.1, 5.0, 10.0)] == [False, False, True]
    assert capacity_at(rows, 10.0) == 30


def test_the_cpu_is_full_where_the_price_of_an_attempt_leads():
    """0.5 + 0.001 x load % an attempt fill it at 153.1 (0.5 x + 0.001 x^2 = 100); steps in trouble do not count."""
    rows = steps(*((load, 0.0, load * (0.5 + 0.001 * load)) for load in (80.0, 90.0, 100.0)), (110.0, 30.0, 99.9))
    assert full_load(rows) == pytest.approx(153.1, abs=0.05)
    assert full_load(rows[2:]) is None


def test_a_price_that_falls_stays_where_it_is():
    rows = steps((100.0, 0.0, 30.0), (200.0, 0.0, 50.0), (300.0, 0.0, 69.0))
    assert full_load(rows) == pytest.approx(100.0 / ((0.30 + 0.25 + 0.23) / 3))
    assert full_load(steps((100.0, 0.0, 30.0), (100.0, 0.0, 32.0))) == pytest.approx(100.0 / 0.31), "of one load"
    assert full_load(steps((100.0, 0.0, -30.0), (200.0, 0.0, -60.0))) is None, "no measured CPU is below 0"


def test_where_a_system_tipped_lies_between_two_of_its_steps():
    ramp = shipped_ramps()["SIP lab, virtual"]
    assert (ramp.carried, ramp.tipped) == (89.87, 100.44)
    assert 100.44 < ramp.full < 109.0, "CPU of step 6 was 95.9 %, that of step 7 99.99 %"


def test_three_figures_do_without_a_dataset(tmp_path):
    (tmp_path / "mine.yaml").write_text("systems: {mine: {carried: 80 /s, tipped: 90 /s, full: 100 /s}}\n")
    (mine,) = read_ramps(tmp_path / "mine.yaml").values()
    assert (mine.system, mine.carried, mine.tipped, mine.full) == ("mine", 80.0, 90.0, 100.0)


@pytest.mark.parametrize(
    ("system", "message"),
    [
        ("{carried: 90 /s, tipped: 80 /s, full: 85 /s}", "needs carried < tipped"),
        ("{carried: 80 /s, tipped: 90 /s}", "either dataset and environment, or carried, tipped and full"),
        ("{dataset: sip-lab/data, environment: native, full: 1 /s}", "either dataset and environment"),
        ("{dataset: sip-lab/data, environment: nativ}", "native"),
        ("{dataset: sip-lab/dat, environment: native}", "sip-lab/data"),
        ("{dataset: linux-lab/data, environment: base}", "tells of no tipping"),
        ("{dataset: sip-lab/data, environment: native, inadequate: lost, attempts: calls}", "'lost' was not measured"),
    ],
)
def test_what_is_wrong_is_said(tmp_path, system, message):
    (tmp_path / "mine.yaml").write_text(f"systems: {{mine: {system}}}\n")
    with pytest.raises(ModelFileError, match=message):
        read_ramps(tmp_path / "mine.yaml")


def test_a_model_that_names_no_known_system_is_told_the_nearest():
    known = shipped_ramps()
    assert measured_ramp(None, known) is None
    with pytest.raises(UsageError, match="did you mean 'SIP lab, native'"):
        measured_ramp("SIP lab, nativ", known)
