"""Null models: what they give, and what they take from rows and targets that they meet as well."""

import math

import pytest

from vftsim.calibrate import validate
from vftsim.calibrate.accuracy import Base, Row, Verdict, groups_of, result, share_that_cannot_tell
from vftsim.calibrate.by_ramps import verdicts
from vftsim.calibrate.by_runs import nulls_of, verdict_beside
from vftsim.calibrate.capacities import CapacityRow, null_capacities
from vftsim.calibrate.validation import EnvironmentSpec, NullsSpec, RunTarget, RunValidationSpec, TargetsSpec
from vftsim.errors import ModelFileError
from vftsim.study.execution import Execution

LOADS, CPU = [10.0, 20.0, 30.0], [20.0, 40.0, 60.0]
"""A price of 2 % an attempt a second: full at 50."""


def test_a_queue_with_one_server_waits_as_the_formula_says():
    """Service of 5 ms: 5 / (1 - load / 50); with half of the CPU full at 25."""
    base = Base("SES1/p50", LOADS, CPU, [5.0 / (1 - load / 50.0) for load in LOADS])
    assert base.queue(40.0) == pytest.approx(25.0)
    assert base.queue(20.0, share=0.5) == pytest.approx(25.0)
    assert base.queue(50.0) is None


def test_a_queue_carries_what_its_cpu_carries():
    cpu, completed = Base("cpu", LOADS, CPU, CPU), Base("completed", LOADS, CPU, LOADS)
    assert [cpu.queue(40.0), cpu.queue(60.0), cpu.queue(40.0, share=0.4)] == [80.0, 100.0, 40.0]
    assert [completed.queue(40.0), completed.queue(60.0), completed.queue(60.0, share=0.4)] == [40.0, 50.0, 20.0]
    assert Base("ihs/global", LOADS, CPU, [0.0] * 3).queue(100.0) == pytest.approx(50.0)
    assert Base("memory", LOADS, CPU, [1.0] * 3).queue(40.0) is None


def test_an_idle_run_has_no_price_and_no_queue_without_cpu():
    """Of the loads 0, 10 and 20 the two others cost 2 % an attempt; nobody waits at no load."""
    cpu = [1.0, 20.0, 40.0]
    assert Base("cpu", [0.0, 10.0, 20.0], cpu, cpu).queue(30.0) == 60.0
    assert Base("ihs/global", [0.0, 10.0, 20.0], cpu, [0.0] * 3).queue(0.0) == 0.0
    assert Base("cpu", [10.0, 20.0], [0.0, 0.0], [0.0, 0.0]).queue(30.0) is None


def test_what_was_measured_without_lies_between_two_loads():
    base = Base("SES1/p50", LOADS, CPU, [2.0, 8.0, 8.0])
    assert base.between(15.0) == pytest.approx(4.0), "straight in the logarithm"
    assert base.between(31.0) is None


def test_too_few_runs_make_no_curve():
    assert Base.of({("step_1", "load"): 1.0, ("step_1", "cpu"): 2.0}, ["step_1", "step_2"], "cpu").curve(3.0, 1) is None


def test_null_capacities_are_the_last_step_with_cpu_left():
    """The line reaches 100 % at 50, the queue as well; a parabola that bends up at 40."""
    bent = [10.0, 30.0, 60.0]
    assert null_capacities(Base("cpu", LOADS, CPU, CPU), [10.0, 30.0, 49.0, 51.0, 60.0])["line"] == 49.0
    found = null_capacities(Base("cpu", LOADS, bent, bent), [30.0, 39.0, 41.0, 60.0])
    assert (found["parabola"], found["line"]) == (39.0, 41.0)
    assert CapacityRow("e", 10.0, 41, (70.0,), found).verdict([30.0, 40.0, 50.0]).by_nulls == ("line", "parabola")


def row(measured, predicted, nulls, quantity="cpu", phase="step_5"):
    return Row("e", phase, quantity, "out", measured, predicted, predicted - 1, predicted + 1, 5, nulls)


def test_a_row_tells_only_if_no_null_gives_what_the_model_may():
    near, far = row(50.0, 50.0, {"line": 50.9}), row(50.0, 50.0, {"line": 52.0, "M/M/1": 47.0})
    assert (near.tells, far.tells) == (False, True)
    assert share_that_cannot_tell([near, far, row(1.0, 1.0, {})]).startswith("1 of 2 predicted rows (50 %)")
    assert share_that_cannot_tell([row(1.0, 1.0, {})]) == ""
    (group,) = groups_of([near, far])
    assert group.cannot_tell == 1
    median, nearer, judged = group.nearer("line")
    assert (nearer, judged) == (0, 2)
    assert median == pytest.approx((0.9 + 2.0) / 2)
    assert math.isnan(group.nearer("parabola")[0])


def test_a_target_that_a_null_meets_says_nothing_for_the_model():
    spec = EnvironmentSpec(model="m", fitted_steps=4, stop_step=7)
    both = verdicts(spec, TargetsSpec(), [row(50.0, 50.5, {"line": 51.0, "M/M/1": 40.0})])[0]
    assert (both.passed, both.by_nulls) == (True, ("line",))
    assert result(both) == "met, as without a model"
    assert result(Verdict("t", False, "", ("line",))) == "**missed**"
    assert result(verdicts(spec, TargetsSpec(), [row(50.0, 50.5, {"line": 60.0})])[0]) == "met"


def runs_spec(**more):
    return RunValidationSpec(
        name="n",
        model="m",
        dataset="d",
        environments={"base": (), "half": (), "other": ()},
        fitted=("base/r1", "base/r2"),
        predicted=("half/r3",),
        quantities=("cpu",),
        nulls=NullsSpec(base="base", left={"half": 50.0}),
        **more,
    )


def test_nulls_of_runs_know_the_base_and_what_is_left_of_the_cpu():
    alone = {(f"r{n}", key): value for n in (1, 2, 3) for key, value in (("load", 10.0 * n), ("cpu", 20.0 * n + 1))}
    spec = runs_spec()
    found = nulls_of(spec, alone, "half/r3", "cpu", 30.0)
    assert found["line"] == pytest.approx(61.0)
    assert found["M/M/1"] == 50.0, "all of its half"
    assert found["same as without"] == pytest.approx(61.0)
    assert "same as without" not in nulls_of(spec, alone, "base/r3", "cpu", 30.0)
    assert nulls_of(spec, alone, "other/r3", "cpu", 30.0) == {}


def test_a_null_that_says_nothing_of_a_row_does_not_meet_a_target():
    target, rows = (
        RunTarget(quantities=("cpu",), median=10.0),
        [row(50.0, 51.0, {"line": 50.0}, phase="r3"), row(50.0, 51.0, {}, phase="r4")],
    )
    assert verdict_beside(runs_spec(), target, rows, {}, {}).by_nulls == ()
    assert verdict_beside(runs_spec(), target, rows[:1], {}, {}).by_nulls == ("line",)


def test_an_unknown_environment_is_refused():
    with pytest.raises(ValueError, match="no environment 'quarter'"):
        RunValidationSpec(
            name="n",
            model="m",
            dataset="d",
            environments={"base": ()},
            predicted=("base/r3",),
            quantities=("cpu",),
            nulls=NullsSpec(base="base", left={"quarter": 25.0}),
        )


def test_a_deliberately_wrong_model_is_said_with_set(monkeypatch):
    """The setting reaches every run's model, and a mistake in it is told as the user's, not as the definition's."""
    seen = {}

    def played(plays, *_):
        seen.update(plays)
        return {}

    monkeypatch.setattr(validate, "played", played)
    wrong = ["domains.sut.applications.proxy.processes=1"]
    validate.run_validation("linux-lab/validation", ["q40"], 2, Execution(jobs=1), settings=wrong)
    assert {spec.domains["sut"].applications["proxy"].processes for spec in (play.model for play in seen.values())} == {
        1
    }
    with pytest.raises(ModelFileError, match="unknown key 'process'") as mistake:
        validate.run_validation("linux-lab/validation", [], 2, Execution(jobs=1), settings=["domains.sut.process=1"])
    assert "--set" in str(mistake.value)
