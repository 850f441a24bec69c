"""Verdicts on hand-made rows: what passes, what misses, and by how much."""

import pytest

from vftsim.calibrate.accuracy import Row, baseline, edge_verdict, rows_of, sample_of, stop_verdict, verdicts
from vftsim.calibrate.observations import measured
from vftsim.calibrate.validation import EnvironmentSpec, TargetsSpec
from vftsim.errors import ModelFileError
from vftsim.spec import shipped_dir

DATA = shipped_dir("calibration") / "sip-lab" / "data"
ENVIRONMENT = EnvironmentSpec(model="m", fitted_steps=4, inputs=["step_7"], stop_step=7, doc_saps=100.0)


def row(phase, quantity, measured_value, predicted, sample="out"):
    return Row("e", phase, quantity, sample, measured_value, predicted, predicted - 1, predicted + 1, 5, None)


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
    assert baseline(ENVIRONMENT, data, "step_5", "cpu") == pytest.approx(28.0)
    assert baseline(ENVIRONMENT, data, "step_5", "SES1/p50") == pytest.approx(2.0 * 1.5**5)
    assert baseline(ENVIRONMENT, data, "pre_registration", "cpu") is None


def test_cpu_verdict_counts_held_out_steps_below_the_limit_only():
    rows = [
        row("step_5", "cpu", 80.0, 81.4),
        row("step_6", "cpu", 95.0, 60.0),  # above 90 %: does not count
        row("step_4", "cpu", 70.0, 60.0, "in"),  # fitted: does not count
    ]
    assert verdicts(ENVIRONMENT, TargetsSpec(), rows)[0].passed
    rows[0] = row("step_5", "cpu", 80.0, 81.6)
    assert not verdicts(ENVIRONMENT, TargetsSpec(), rows)[0].passed


def test_stop_and_doc_verdicts():
    stop, doc = stop_verdict(ENVIRONMENT, [7, 7, 6, 7], [100.2, 99.0, 90.1, 101.0], 10.0)
    assert stop.passed
    assert "75 %" in stop.found
    assert doc.passed
    stop, doc = stop_verdict(ENVIRONMENT, [6, 6, 6, 7], [88.0, 89.0, 87.5, 100.0], 10.0)
    assert not stop.passed
    assert not doc.passed


def test_ramps_that_met_no_limit_are_counted_apart():
    stop, _ = stop_verdict(ENVIRONMENT, [7, 0, 7], [100, 110, 99], 10.0)
    assert stop.passed
    assert stop.found == "67 % of 3 replications do; from step 7 to 7; 1 of them met no limit"
    stop, _ = stop_verdict(ENVIRONMENT, [0, 0], [110, 110], 10.0)
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


def test_rows_use_the_replications_that_reached_a_phase():
    data = {("step_1", "load"): 50.0, ("step_1", "cpu"): 40.0, ("step_2", "load"): 60.0, ("step_2", "cpu"): 50.0}
    data |= {(f"step_{k}", q): v for k in (3, 4) for q, v in (("load", 10.0 * k), ("cpu", 8.0 * k))}
    runs = [{("step_1", "cpu"): 41.0, ("step_2", "cpu"): 52.0}, {("step_1", "cpu"): 43.0}]
    rows = {r.phase: r for r in rows_of("e", ENVIRONMENT, data, runs)}
    assert (rows["step_1"].n, rows["step_1"].predicted) == (2, 42.0)
    assert (rows["step_2"].n, rows["step_2"].predicted) == (1, 52.0)
    assert "step_3" not in rows
