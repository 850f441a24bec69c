"""Verdicts on hand-made rows: what passes, what misses, and by how much."""

import pytest

from vftsim.calibrate.accuracy import Row, labelled
from vftsim.calibrate.by_ramps import compared, edge_verdict, nulls_of, sample_of, stop_verdict, verdicts
from vftsim.calibrate.capacities import CapacityRow, capacity_rows, ratio_rows
from vftsim.calibrate.figures import measured
from vftsim.calibrate.validation import EnvironmentSpec, TargetsSpec
from vftsim.cli.main import main
from vftsim.errors import ModelFileError
from vftsim.labs.ramps import capacity_at, load_steps
from vftsim.spec import shipped_dir

DATA = shipped_dir("calibration") / "sip-lab" / "data"
ENVIRONMENT = EnvironmentSpec(model="m", fitted_steps=4, inputs=["step_7"], stop_step=7)


def row(phase, quantity, measured_value, predicted, sample="out"):
    return Row("e", phase, quantity, sample, measured_value, predicted, predicted - 1, predicted + 1, 5, {})


def test_record_is_read_whole():
    """28 phases in all; the virtual environment has 7 delays x 4 percentiles in each of its 7 steps."""
    counts = {}
    for environment in ("native", "virtual", "virtual_ft"):
        data = measured(DATA, environment)
        counts[environment] = len({phase for phase, _ in data})
    assert counts == {"native": 12, "virtual": 8, "virtual_ft": 8}
    virtual = measured(DATA, "virtual")
    assert sum(1 for phase, quantity in virtual if "/p" in quantity and phase != "pre_registration") == 7 * 7 * 4
    assert virtual["step_5", "cpu"] == 81.59
    assert virtual["step_1", "REG1/p99"] == 50.5


def test_unknown_environment_and_missing_table_are_named(tmp_path):
    with pytest.raises(ModelFileError, match="no environment 'mars'; environments: native, virtual"):
        measured(DATA, "mars")
    with pytest.raises(ModelFileError, match=r"dataset\.yaml"):
        measured(tmp_path, "native")


def test_samples():
    assert [sample_of(ENVIRONMENT, f"step_{k}") for k in (1, 4, 5, 7)] == ["in", "in", "out", "input"]
    assert sample_of(ENVIRONMENT, "pre_registration") == "in"


def test_baseline_is_the_line_through_the_fitted_steps():
    """CPU exactly linear in load: the line is exact; a delay that grows exponentially: exact in its logarithm."""
    data = {}
    for k in range(1, 6):
        data[f"step_{k}", "load"] = 10.0 * k
        data[f"step_{k}", "cpu"] = 3.0 + 0.5 * 10 * k
        data[f"step_{k}", "SES1/p50"] = 2.0 * 1.5**k
    assert nulls_of(ENVIRONMENT, data, "step_5", "cpu")["line"] == pytest.approx(28.0)
    assert nulls_of(ENVIRONMENT, data, "step_5", "SES1/p50")["line"] == pytest.approx(2.0 * 1.5**5)
    assert nulls_of(ENVIRONMENT, data, "pre_registration", "cpu") == {}


def test_cpu_verdict_counts_held_out_steps_below_the_limit_only():
    rows = [
        row("step_5", "cpu", 80.0, 81.4),
        row("step_6", "cpu", 95.0, 60.0),  # above 90 %: does not count
        row("step_4", "cpu", 70.0, 60.0, "in"),  # fitted: does not count
    ]
    assert verdicts(ENVIRONMENT, TargetsSpec(), rows)[0].passed
    rows[0] = row("step_5", "cpu", 80.0, 81.6)
    assert not verdicts(ENVIRONMENT, TargetsSpec(), rows)[0].passed


def test_the_usual_step_must_be_the_right_one():
    assert stop_verdict(ENVIRONMENT, [7, 7, 6, 7]).passed
    assert "75 %" in stop_verdict(ENVIRONMENT, [7, 7, 6, 7]).found
    assert not stop_verdict(ENVIRONMENT, [6, 6, 6, 7]).passed


@pytest.mark.parametrize(("middle", "met"), [(99.0, True), (104.5, True), (105.5, False), (90.0, False)])
def test_a_capacity_is_held_in_its_own_load_step(middle, met):
    verdict = CapacityRow("e", 5.0, 100, (middle - 30, middle, middle + 1)).verdict([80.0, 90.0, 100.0, 110.0])
    assert verdict.passed == met
    assert verdict.target == "capacity at 5 % in the load step of the record (100)"


def test_a_step_of_given_loads_is_as_wide_as_they_are_apart():
    """Of 60, 130, 190 and 300 a record of 183 attempts/s ends at 190, from 30 below to 30 above."""
    loads = [60.0, 130.0, 190.0, 300.0]
    met = {
        load: CapacityRow("e", 5.0, 183, (load,)).verdict(loads).passed for load in (130.0, 155.0, 190.0, 212.0, 300.0)
    }
    assert met == {130.0: False, 155.0: True, 190.0: True, 212.0: True, 300.0: False}
    assert CapacityRow("e", 5.0, 183, (190.0,)).verdict([190.0]).passed


def test_ramps_that_met_no_limit_are_counted_apart():
    stop = stop_verdict(ENVIRONMENT, [7, 0, 7])
    assert stop.passed
    assert stop.found == "67 % of 3 replications do; from step 7 to 7; 1 of them met no limit"
    stop = stop_verdict(ENVIRONMENT, [0, 0])
    assert not stop.passed
    assert stop.found == "0 % of 2 replications do; none stops"


def test_edge_verdict_needs_every_quantity_inside():
    good = [
        row("step_6", "cpu", 95.9, 95.5),
        row("step_6", "ihs/global", 5.6, 5.0),
        row("step_6", "retransmissions", 71, 71),
    ]
    assert edge_verdict(good).passed
    assert not edge_verdict([*good[:2], row("step_6", "retransmissions", 71, 80)]).passed


def test_an_edge_step_of_which_nothing_was_measured_is_missed():
    assert (edge_verdict([]).passed, edge_verdict([]).found) == (False, "no such row")


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([row("step_7", "cpu", 99.0, 99.0), row("step_7", "ihs/global", 0.0, 0.0)], "the record has no share of every"),
        ([], "no replication reached step_7"),
    ],
)
def test_shares_that_were_not_measured_are_told_from_a_step_that_was_not_reached(rows, found):
    (stop,) = (each for each in verdicts(ENVIRONMENT, TargetsSpec(), rows) if each.target.startswith("IHS"))
    assert (stop.passed, stop.found.startswith(found)) == (False, True)


OWN = """\
name: mine
dataset: .
environments:
  base: {model: lab-virtual, fitted_steps: 1, stop_step: 2}
step_duration: 6 s
transient: 2 s
replications: 2
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("transient: 2 s", "transient: 6 s", "needs a transient shorter than step_duration"),
        ("stop_step: 2", "stop_step: 2, edge_step: 99", "v.yaml:4: environments.base.edge_step: the model has"),
        ("stop_step: 2", "stop_step: 2, edge_step: -1", "'edge_step' must be >= 1"),
    ],
)
def test_a_ramp_that_cannot_be_played_is_refused(tmp_path, capsys, old, new, told):
    _own_lab(tmp_path, "step_1")
    (tmp_path / "v.yaml").write_text(OWN.replace(old, new))
    assert main(["validate", str(tmp_path / "v.yaml"), "-q", "-j", "1"]) == 2
    assert told in capsys.readouterr().err


def test_phases_that_no_ramp_has_are_said(tmp_path, capsys):
    _own_lab(tmp_path, "step_one")
    (tmp_path / "v.yaml").write_text(OWN)
    short = ["steps.initial=20 /s", "steps.most=1", "pre_registration.duration=5 s"]
    words = ["validate", str(tmp_path / "v.yaml"), "-q", "-j", "1"]
    assert main([*words, *(word for each in short for word in ("--set", f"workloads.calls.{each}"))]) == 1
    assert "nothing is compared of step_one of 'base': a ramp plays pre_registration" in capsys.readouterr().err


def _own_lab(folder, phase):
    (folder / "dataset.yaml").write_text(
        "name: x\nenvironments: {base: {}}\nphases: {meaning: a step}\ntables:\n  t:\n    file: t.csv\n"
        "    keys: {environment: env, phase: step}\n    columns: {cpu: {metric: cpu, unit: '%'}}\n"
    )
    (folder / "t.csv").write_text(f"env,step,cpu\nbase,{phase},18\n")


def test_rows_use_the_replications_that_reached_a_phase():
    data = {("step_1", "load"): 50.0, ("step_1", "cpu"): 40.0, ("step_2", "load"): 60.0, ("step_2", "cpu"): 50.0}
    data |= {(f"step_{k}", q): v for k in (3, 4) for q, v in (("load", 10.0 * k), ("cpu", 8.0 * k))}
    runs = [{("step_1", "cpu"): 41.0, ("step_2", "cpu"): 52.0}, {("step_1", "cpu"): 43.0}]
    rows = {r.phase: r for r in compared("e", ENVIRONMENT, data, [labelled("e", run) for run in runs])}
    assert (rows["step_1"].n, rows["step_1"].predicted) == (2, 42.0)
    assert (rows["step_2"].n, rows["step_2"].predicted) == (1, 52.0)
    assert "step_3" not in rows


def test_the_parabola_bends_and_the_line_does_not():
    data = {(f"step_{k}", "load"): 10.0 * k for k in range(1, 6)}
    data |= {(f"step_{k}", "cpu"): 1.0 + 0.01 * (10.0 * k) ** 2 for k in range(1, 6)}
    found = nulls_of(ENVIRONMENT, data, "step_5", "cpu")
    assert found["parabola"] == pytest.approx(26.0)
    assert found["line"] == pytest.approx(21.0), "1, 4, 9, 16 and their line at 5"


STEPS = {
    ("step_1", "load"): 50.4,
    ("step_1", "ihs/global"): 0.0,
    ("step_1", "ihs/ims_uac"): 0.05,
    ("step_2", "load"): 60.9,
    ("step_2", "ihs/global"): 0.2,
    ("step_2", "ihs/ims_uac"): 0.9,
    ("step_10", "load"): 140.2,
    ("step_10", "ihs/global"): 3.0,
    ("step_10", "ihs/ims_uac"): 8.0,
}


def test_a_capacity_is_the_load_of_the_last_step_before_any_scenario_is_over_the_limit():
    """Steps in the order of their numbers, whole attempts a second, scenarios as well as all together."""
    assert [capacity_at(load_steps(STEPS), limit) for limit in (0.01, 0.1, 1.0, 5.0, 10.0)] == [0, 50, 60, 60, 140]
    low, _, _, high = capacity_rows("e", STEPS, [STEPS, {**STEPS, ("step_2", "ihs/global"): 0.02}], {})
    assert (low.limit_percent, low.measured, low.predicted, low.replications) == (0.1, 50, 50.0, (50.0, 50.0))
    assert high.predicted == 140.0


def test_ratios_are_of_replications_under_the_same_traffic():
    first = CapacityRow("a", 10.0, 200, (100.0, 200.0, 400.0))
    (row,) = ratio_rows([first, CapacityRow("b", 10.0, 50, (50.0, 50.0, 100.0)), CapacityRow("b", 1.0, 0, (0.0,))])
    assert (row.measured, row.predicted, row.n) == (0.25, 0.25, 3)
    assert (row.low, row.high) == pytest.approx((0.25, 0.475), abs=0.03)
