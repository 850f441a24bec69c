"""Sweeps over mechanisms and their parameters."""

import pytest
from tiny import TINY

from tests.study.grids import make_grid, run_sweep
from vftsim.errors import ModelFileError, UsageError
from vftsim.report.terminal import as_text
from vftsim.study.designs.protections import MEANINGS, has_parameter
from vftsim.study.execution import Execution

pytestmark = pytest.mark.thorough

MS = 1_000_000
ONE_STEP = ["workloads.calls.steps.most=1"]


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    file = tmp_path_factory.mktemp("sweep") / "tiny.yaml"
    file.write_text(TINY)
    return str(file)


def test_a_short_name_is_the_parameter_of_each_mechanism(path):
    axes = ["checkpoint_interval=25 ms,50 ms", "bandwidth=100 Mbit/s", "round_trip=300 us", "dirty_rate=500 /s"]
    grid = make_grid(path, None, axes, ONE_STEP, "checkpoint,lockstep")
    assert grid.factors["protection"] == ["checkpoint", "lockstep"]
    of = {
        (p.values["protection"], p.values["checkpoint_interval"]): p.model.spec.domains["sut"].protection
        for p in grid.points
    }
    assert [of["checkpoint", text].interval for text in ("25 ms", "50 ms")] == [25 * MS, 50 * MS]
    assert {each.channel.rate for each in of.values()} == {100_000_000}
    assert {each.channel.latency for each in of.values()} == {150_000}
    assert of["checkpoint", "25 ms"].memory.touch_rate == 500.0
    assert of["lockstep", "25 ms"] == of["lockstep", "50 ms"], "a mechanism without it is the same everywhere"


def test_which_mechanism_has_what():
    assert [name for name in MEANINGS if has_parameter("lockstep", name)] == ["bandwidth", "round_trip", "lag_limit"]
    assert not any(has_parameter("none", name) for name in MEANINGS)
    assert all(has_parameter("checkpoint", name) for name in MEANINGS if name != "lag_limit")


def test_the_models_own_mechanism_without_a_list():
    grid = make_grid("lab-virtual-ft", None, ["lag_limit=100 ms,1 s"])
    assert [p.model.spec.domains["sut"].protection.throttle.lag_limit for p in grid.points] == [100 * MS, 1000 * MS]
    assert "protection" not in grid.factors


def test_a_list_leaves_faults_out_and_keeps_the_models_own_parameters(tmp_path):
    file = tmp_path / "own.yaml"
    protection = "    protection: {kind: lockstep, failover: {go_live: 7 ms}}\n    interfaces:\n"
    file.write_text(TINY.replace("    interfaces:\n", protection) + "faults: [{kind: primary_crash, at: 1 s}]\n")
    axes = ["lag_limit=1 s"]
    assert len(make_grid(str(file), None, axes).points[0].model.spec.faults) == 1
    grid = make_grid(str(file), None, axes, (), "none,lockstep")
    assert all(point.model.spec.faults == () for point in grid.points)
    assert grid.points[1].model.spec.domains["sut"].protection.failover.go_live == 7 * MS


def test_mistakes_are_named(path):
    with pytest.raises(UsageError, match=r"'checkpoint_interval' .* means nothing under none; say a protection"):
        make_grid(path, None, ["checkpoint_interval=1 ms"])
    with pytest.raises(UsageError, match="did you mean 'dirty_rate'"):
        make_grid(path, None, ["dirty_rat=1 /s"])
    with pytest.raises(UsageError, match="no mechanism 'remus'"):
        make_grid(path, None, ["checkpoint_interval=1 ms"], (), "remus")


@pytest.mark.parametrize(
    ("value", "why"),
    [("abc", "must be a duration"), ("-1 s", "must not be negative"), ("1e400 s", "must be at most 3653 d")],
)
def test_what_is_no_value_of_a_short_name_is_refused(path, value, why):
    with pytest.raises(ModelFileError, match=f"^--grid: round_trip={value}: {why}"):
        make_grid(path, None, [f"round_trip={value},2 ms"], (), "checkpoint")


def test_a_mechanism_that_does_not_fit_is_refused_with_the_reason(path):
    two = ["hosts={host: {pcpus: 2}}", "domains.sut.vcpus=2"]
    grid = make_grid(path, None, ["checkpoint_interval=25 ms"], two, "lockstep,checkpoint")
    assert grid.factors["protection"] == ["checkpoint"]
    assert any("1 vCPU at most" in why for why in grid.refused.values())


@pytest.fixture(scope="module")
def swept(path, tmp_path_factory):
    """Kemari stops the guest as often whatever the interval; Remus less and less."""
    grid = make_grid(path, None, ["checkpoint_interval=2 ms,25 ms,400 ms"], ONE_STEP, "none,checkpoint,event_sync")
    return run_sweep(grid, tmp_path_factory.mktemp("swept") / "s", 4, Execution(1, 1))


def of(result, kind, interval):
    point = next(
        p for p in result.points if (p.values["protection"], p.values["checkpoint_interval"]) == (kind, interval)
    )
    return [result.of_points[point.number].values[n] for n in range(2)]


def test_crossovers_of_a_sweep(swept):
    stopped = swept.crossovers[swept.crossovers["figure"] == "domains.sut.protection.stopped"]
    (row,) = stopped.to_dict("records")
    assert (row["before"], row["after"], row["unit"], row["held"]) == ("event_sync", "checkpoint", "ms", "")
    assert row["from_point"] < row["estimate"] < row["to_point"]
    assert row["n"] == 4


def test_mechanisms_without_the_parameter_are_simulated_once(swept):
    for kind in ("none", "event_sync"):
        assert of(swept, kind, "25 ms") == of(swept, kind, "400 ms")
    assert ("event_sync", "checkpoint_interval") in [(v.split(", ")[-1], axis) for v, axis in swept.without_effect()]


def test_what_is_written_and_printed(swept):
    shown = as_text(swept.blocks(), 1000)
    assert "Crossovers" in shown
    assert "stopped, %" in shown
    assert "Costs of event_sync (sut): pages dirtied" in shown
    assert "nan" not in shown
    assert swept.for_machines()["crossovers"]


def test_quantities_stand_at_their_places_in_the_picture(swept):
    places = {float(x) for line in swept.plot().get_lines() for x in line.get_xdata()}
    assert places == {2.0, 25.0, 400.0}
