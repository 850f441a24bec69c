"""What is learned without a system is held against it, and is not widened to hold it."""

from pathlib import Path

import pytest

from vftsim.calibrate.capacities import counts, left_out, section, system_of
from vftsim.labs.ramps import LoadStep, Ramp, shipped_ramps

HERE, THERE = Path("here.yaml"), Path("there.yaml")
STEPS = (LoadStep(50.0, 0.0, 40.0), LoadStep(60.0, 0.0, 48.0), LoadStep(70.0, 4.0, 80.0), LoadStep(80.0, 50.0, 99.0))
LEFT = Ramp("left", STEPS, 60.0, 70.0, 125.0, (HERE, "a"))
KNOWN = {
    "left": LEFT,
    "beside": Ramp("beside", (), 50.0, 70.0, 100.0, (HERE, "b")),
    "far": Ramp("far", (), 70.0, 90.0, 100.0, (THERE, "a")),
}


def run(cpu_a_call):
    """A model's ramp of three quiet steps."""
    rows = {}
    for n, load in enumerate((50.0, 60.0, 70.0)):
        rows |= {(f"step_{n}", "load"): load, (f"step_{n}", "cpu"): cpu_a_call * load, (f"step_{n}", "ihs/global"): 0.0}
    return rows


def test_a_range_rests_on_the_others_alone():
    """Full at 100 by the model, at 125 by the record; both others 50 to 90 %, the other laboratory 70 to 90 %."""
    found = {(each.learned_from, each.full_by): each for each in left_out(KNOWN, LEFT, [run(1.0), run(1.0)])}
    by_model, by_record = found["other systems", "the model"], found["other systems", "its own record"]
    assert (by_model.low, by_model.high) == pytest.approx((50.0, 90.0))
    assert (by_record.low, by_record.high) == pytest.approx((62.5, 112.5))
    lab = found["other laboratories", "the model"]
    assert (lab.low, lab.high) == pytest.approx((70.0, 90.0))
    assert by_model.measured == (60, 60, 70, 70)
    assert by_model.held == (True, True, True, True)
    assert by_record.held == (False, False, True, True)
    assert lab.held == (False, False, True, True)
    assert counts([lab, by_record]).startswith(
        "2 of 4 held from other laboratories with the full load of the model; 2 of 4"
    )
    assert "| 60 **not** |" in section([lab])


def test_a_shipped_environment_is_found_by_its_dataset():
    ramp = shipped_ramps()["SIP lab, virtual"]
    assert system_of(shipped_ramps(), ramp.source[0].parent, "virtual") is ramp
    assert system_of(shipped_ramps(), ramp.source[0].parent, "virtua") is None
