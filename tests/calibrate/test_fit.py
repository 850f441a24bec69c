"""A fit recovers the parameters that made the data, and says what it cannot know."""

import math
from pathlib import Path

import numpy as np
import pytest

from vftsim.calibrate import validate
from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.figures import measured
from vftsim.calibrate.fit import at_measured_traffic, at_other_loads, observe, search_for
from vftsim.calibrate.validation import STOP_STEP
from vftsim.composition.keys import with_values
from vftsim.composition.model import ModelSpec
from vftsim.errors import UsageError
from vftsim.study.execution import Execution

S = 10**9
ROOT = Path(__file__).parents[2]
PROXY = "domains.sut.applications.proxy"


def lab(touch_cost_ns=800_000):
    sut = {
        "interfaces": {"eth0": {"path": {"kind": "moderated"}}},
        "applications": {"proxy": {"kind": "sip_server", "touch_cost": touch_cost_ns}},
    }
    calls = {
        "kind": "ims_bench",
        "to": "sut.proxy",
        "subscribers": 3000,
        "pre_registration": {"duration": 0},
        "stir": {"duration": 5 * S},
        "steps": {"initial": 20.0, "increment": 10.0, "duration": 20 * S, "transient": 4 * S, "most": 2},
    }
    return ModelSpec(name="small", domains={"sut": sut}, workloads={"calls": calls})


def definition(**changes):
    parameter = {"path": f"{PROXY}.touch_cost", "low": "0.3 ms", "high": "1.5 ms", "start": "0.5 ms", "meaning": "cost"}
    return CalibrationSpec(
        **{
            "name": "small",
            "model": "small",
            "dataset": "data",
            "environment": "x",
            "parameters": [parameter],
            "in_sample": ["step_1", "step_2"],
            "quantities": ["cpu"],
            "most_evaluations": 8,
            "seed": 3,
            **changes,
        }
    )


@pytest.mark.thorough
def test_known_cost_is_recovered():
    """CPU is linear in the cost of a message, so the fit must find it to the scatter of one short run."""
    truth = observe(lab(800_000), 99, 0)
    found = search_for(definition(), lab(500_000), truth).fit
    # Another seed made the data: messages of a 16 s step scatter by a few percent around their mean.
    assert found.values[f"{PROXY}.touch_cost"] == pytest.approx(800_000, rel=0.06)
    assert found.low[f"{PROXY}.touch_cost"] <= found.values[f"{PROXY}.touch_cost"] <= found.high[f"{PROXY}.touch_cost"]
    assert set(found.residuals) == {("step_1", "cpu"), ("step_2", "cpu")}


@pytest.mark.thorough
def test_parameter_at_its_bound_is_called_not_identified():
    truth = observe(lab(1_000_000), 99, 0)
    bounded = {"path": f"{PROXY}.touch_cost", "low": "0.3 ms", "high": "0.6 ms", "start": "0.5 ms", "meaning": "cost"}
    found = search_for(definition(parameters=[bounded]), lab(500_000), truth).fit
    assert any("at a bound" in note for note in found.not_identified)


def test_cpu_is_compared_at_the_measured_traffic():
    """40 % at 50 attempts of 8 messages is 49.5 % at 55 of 9."""
    seen = {
        ("step_1", "cpu"): 40.0,
        ("step_1", "load"): 50.0,
        ("step_1", "touches"): 8.0,
        ("step_1", "SES1/p50"): 7.0,
    }
    brought = at_measured_traffic(seen, {("step_1", "load"): 55.0, ("step_1", "touches"): 9.0}, {"": lab()})
    assert brought["step_1", "cpu"] == pytest.approx(49.5)
    assert brought["step_1", "SES1/p50"] == 7.0


def test_unknown_key_and_empty_selection_are_refused():
    with pytest.raises(UsageError, match=r"no key 'domains\.sut\.applications\.proxy\.speed'"):
        with_values(lab(), {f"{PROXY}.speed": 1.0})
    with pytest.raises(UsageError, match="no observations"):
        search_for(definition(quantities=["nothing"]), lab(), {("step_1", "cpu"): 1.0})


def test_replaced_values_keep_their_type():
    changed = with_values(lab(), {f"{PROXY}.touch_cost": 123_456.7, f"{PROXY}.work_after_send": np.float64(0.25)})
    proxy = changed.domains["sut"].applications["proxy"]
    assert proxy.touch_cost == 123_457
    assert proxy.work_after_send == 0.25


@pytest.mark.thorough
def test_a_quantity_that_cpu_does_not_tell_is_called_not_identified():
    """When a message's work is done, before or after its outputs leave, is nothing to the CPU it costs."""
    after_send = {"path": f"{PROXY}.work_after_send", "low": 0.0, "high": 0.8, "start": 0.3, "meaning": "share"}
    cost = {"path": f"{PROXY}.touch_cost", "low": "0.3 ms", "high": "1.5 ms", "start": "0.7 ms", "meaning": "cost"}
    truth = observe(lab(800_000), 99, 0)
    found = search_for(definition(parameters=[cost, after_send], most_evaluations=4), lab(), truth).fit
    assert found.undetermined == [f"{PROXY}.work_after_send"]
    assert (found.low[f"{PROXY}.work_after_send"], found.high[f"{PROXY}.work_after_send"]) == (0.0, 0.8)
    assert any(f"{PROXY}.work_after_send (nothing in the data tells it" in note for note in found.not_identified)
    assert found.sensitivity.rank == 1


def test_quantities_and_phases_that_the_model_does_not_have_are_refused():
    with pytest.raises(UsageError, match="the fit is to 'cpus', which the model does not have in 'step_1'; did"):
        search_for(definition(quantities=["cpus"]), lab(), {("step_1", "cpus"): 1.0})
    with pytest.raises(UsageError, match=r"does not reach the phase 'r50' that is in sample; it plays .*step_1"):
        search_for(definition(in_sample=["r50"]), lab(), {("r50", "cpu"): 1.0})


def test_without_a_mix_cpu_is_brought_to_the_measured_load():
    seen = {("step_1", "cpu"): 40.0, ("step_1", "load"): 50.0, ("step_1", "touches"): 8.0}
    assert at_measured_traffic(seen, {("step_1", "load"): 55.0}, {"": lab()})["step_1", "cpu"] == pytest.approx(44.0)


def test_a_phase_that_is_played_at_far_another_load_is_told():
    """12 % at 50 /s would be brought to 120 % at 500 /s; arrivals of 20 s at 50 /s are within 10 % by chance."""
    runs = [{("step_1", "load"): load} for load in (48.0, 52.0)]
    assert at_other_loads(runs, {("step_1", "load"): 55.0, ("step_2", "load"): 500.0, ("step_1", "cpu"): 12.0}) == []
    (line,) = at_other_loads(runs, {("step_1", "load"): 500.0})
    assert line == "'step_1' was measured at 500 attempts/s and is played at 50"
    with pytest.raises(UsageError, match=r"measured at 5000 attempts/s and is played at \d+.*; give the phase"):
        search_for(definition(), lab(), {("step_1", "cpu"): 12.0, ("step_1", "load"): 5000.0})


def test_a_cpu_that_was_measured_full_does_not_follow_the_load():
    """Measured 90 % at 55 /s, and 91 %; simulated 88 % at 50 /s."""
    seen = {("step_1", "cpu"): 88.0, ("step_1", "load"): 50.0}
    for there, brought in ((90.0, 96.8), (91.0, 88.0)):
        data = {("step_1", "load"): 55.0, ("step_1", "cpu"): there}
        assert at_measured_traffic(seen, data, {"": lab()}, 90.0)["step_1", "cpu"] == pytest.approx(brought)


def test_cpu_is_brought_to_no_more_than_the_processors_that_the_server_can_use():
    """99 % at 50 attempts a second is 108.9 % at 55: of one vCPU 100, of two that have two processors all of it."""
    seen = {("a/r1", "cpu"): 99.0, ("a/r1", "cpu.sut"): 99.0, ("a/r1", "cpu.other"): 20.0, ("a/r1", "load"): 50.0}
    data = {("a/r1", "load"): 55.0}
    two = lab().model_dump(mode="json")
    two["domains"]["sut"]["vcpus"] = 2
    beside = {**two, "hosts": {name: {**host, "pcpus": 2} for name, host in two["hosts"].items()}}
    for model, brought in ((lab(), 100.0), (two, 100.0), (beside, 108.9)):
        found = at_measured_traffic(seen, data, {"a/r1": ModelSpec.model_validate(model), "b/r1": lab()})
        assert (found["a/r1", "cpu"], found["a/r1", "cpu.sut"]) == pytest.approx((brought, brought))
        assert found["a/r1", "cpu.other"] == 20.0


def test_a_validation_compares_cpu_by_the_rule_of_the_fits(monkeypatch):
    """Every step is simulated at 40 % and half of its measured load: 80 %, where the record is below 90 %."""
    data = measured(ROOT / "calibration" / "sip-lab" / "data" / "dataset.yaml", "native")
    seen = {key: value / 2.0 if key[1] == "load" else value for key, value in data.items()}
    seen |= {key: 40.0 for key in data if key[1] == "cpu"}
    monkeypatch.setattr(validate, "played", lambda *_: {"native": [{**seen, STOP_STEP: 11.0}]})
    rows = validate.run_validation("sip-lab/validation", ["native"], 1, Execution(jobs=1)).rows
    found = {row.phase: row.predicted for row in rows if row.quantity == "cpu"}
    assert found["step_9"] == pytest.approx(80.0)
    assert found["step_11"] == 40.0


@pytest.mark.thorough
def test_one_observation_leaves_an_interval_of_the_scale_and_not_of_no_width():
    """CPU is linear in the cost: a residual of one scale (0.5 points) is so much of the cost, at 95 % 1.96 of them.

    The chance of runs has the rest of the variance.
    """
    truth = {("step_2", "cpu"): 20.0}
    found = search_for(definition(in_sample=["step_2"], most_evaluations=4), lab(), truth).fit
    value, low, high = (each[f"{PROXY}.touch_cost"] for each in (found.values, found.low, found.high))
    cpu_per_cost = 20.0 / value
    of_data = (high - low) / 2 * math.sqrt(1.0 - found.chance_share[f"{PROXY}.touch_cost"])
    assert of_data == pytest.approx(1.96 * 0.5 / cpu_per_cost, rel=0.15)
    assert found.undetermined == []
