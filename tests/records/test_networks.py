"""The record of iperf and httperf on bare metal, KVM and ESXi: what is judged how, and what must keep coming out."""

import csv
import json
import math

import pytest

from vftsim.cli.main import main
from vftsim.records import networks as study
from vftsim.records.networks import RECORD, RIGHT, WRONG, Budget, first_rows
from vftsim.records.networks_claims import (
    CONTRADICTED,
    NOT_JUDGED,
    NUMBERS,
    Metric,
    compare,
    judge,
    shared_evenly,
    trend,
)
from vftsim.records.networks_fit import FIT, STATED, evaluate
from vftsim.records.networks_numbers import PRINTED, TELLING, Printed, mechanisms, numbers, printed, twice_as_far
from vftsim.records.networks_study import report, run_record, tables, tasks
from vftsim.spec import shipped_dir
from vftsim.study.progress import make_progress

SHORT = Budget(1, 1, 0.05)
RATE = Metric("tcp", "mbit_per_s", 0.01, 0.25, 0.05, is_relative=True, is_shared=True)
LOSS = Metric("udp", "loss_percent", 0.1, 5.0, 1.0, 1.0)


def shipped():
    return json.loads((shipped_dir("calibration") / "networks" / "record.json").read_text(encoding="utf-8"))


def fake_results():
    """Equal figures for every run, so that each comparison is a tie."""
    figures = {
        "mbit_per_s": 100.0, "sent_mbit_per_s": 100.0, "jitter_us": 10.0, "loss_percent": 0.0, "rate_per_s": 20.0,
        "reply_rate_per_s": 20.0, "errors": 3.0, "low_errors": 0.0, "onset_per_s": 21.0, "answered_percent": 100.0,
        "replies_per_s": 800.0, "replies": 34.0, "first_5_s": 25.0,
    } | study.example_figures("httperf_example")  # fmt: skip
    return {name: {key: [value] * 3 for key, value in figures.items()} for name in tasks()}


def test_the_dataset_is_whole():
    assert [len(study.stated(name)) for name in ("tables", "claims", "examples", "platform")] == [100, 82, 70, 28]
    assert first_rows() == {1: 936.9, 2: 472.8, 3: 306.5, 4: 235.6, 5: 122.9}
    assert study.example_figures("httperf_example")["replies"] == 34.0


def test_every_run_that_a_statement_needs_is_made():
    judged = judge(study.stated("claims"), fake_results())
    assert len(judged) + len(NUMBERS) == 82
    by_key = {one.key: one.verdict for one in judged}
    assert {key for key, verdict in by_key.items() if verdict == "contradicted by the source itself"} == CONTRADICTED
    assert {key for key, verdict in by_key.items() if verdict == "not judged"} == NOT_JUDGED
    # Ties by construction say nothing, whether the statement is of a difference or of none; no loss is little loss.
    assert [by_key[key] for key in ("C46", "C16", "C45", "C13")] == ["no mechanism"] * 4
    assert (by_key["C35"], by_key["C43"]) == ("holds", "holds")


def test_a_null_model_holds_what_sharing_alone_explains():
    by_key = {one.key: one.verdict for one in judge(study.stated("claims"), shared_evenly())}
    assert {by_key[key] for key in ("C25", "C41", "C67", "C35", "C58")} == {"holds"}
    assert {by_key[key] for key in ("C64", "C45", "C50", "C11")} == {"no mechanism"}
    assert by_key["C56"] == "missed"


@pytest.mark.parametrize(
    ("relation", "mine", "other", "verdict"),
    [
        ("higher_than", [101.5, 101.6], [100, 100], "holds"),
        ("higher_than", [100.5, 100.6], [100, 100], "within noise"),
        ("higher_than", [100, 100], [100, 100], "no mechanism"),
        ("nearly_equal_to", [100, 100], [100, 100], "no mechanism"),
        ("higher_than", [95, 108], [100, 100], "within noise"),
        ("higher_than", [95.0, 95.1], [100, 100], "missed"),
        ("higher_than", [108], [100], "within noise"),
        ("slightly_higher_than", [124.0, 124.1], [100, 100], "holds"),
        ("slightly_higher_than", [126.0, 126.1], [100, 100], "missed"),
        ("much_lower_than", [60.0, 60.1], [100, 100], "holds"),
        ("much_lower_than", [80.0, 80.1], [100, 100], "missed"),
        ("nearly_equal_to", [95.5], [100], "holds"),
        ("nearly_equal_to", [94.5], [100], "missed"),
        ("negligible", [19], [100], "holds"),
        ("negligible", [21], [100], "missed"),
    ],
)
def test_comparisons(relation, mine, other, verdict):
    assert compare(relation, RATE, mine, other) == verdict


def test_a_trend_has_no_step_against_it():
    falling = {1: [9.0, 9.1], 2: [5.0, 5.1], 3: [4.95, 5.05]}
    assert trend(LOSS, falling, (1, 2, 3), rises=False) == "holds"
    assert trend(LOSS, falling, (1, 2, 3), rises=True) == "missed"
    assert trend(LOSS, falling | {2: [9.5, 9.6]}, (1, 2, 3), rises=False) == "missed"
    nearly = {n: [1.0 - n / 1000, 1.1 + n / 1000] for n in (1, 2, 3)}
    assert trend(LOSS, nearly, (1, 2, 3), rises=False) == "within noise"
    assert trend(LOSS, {n: [1.0, 1.1] for n in (1, 2, 3)}, (1, 2, 3), rises=False) == "no mechanism"


def test_wrong_models_are_twice_as_far_off_or_not():
    right = Printed(RIGHT, {}, dict.fromkeys(PRINTED, 0.1))
    wrong = Printed("wrong", {}, dict.fromkeys(PRINTED, 0.1) | {TELLING[1]: -0.2, TELLING[0]: 0.19})
    assert twice_as_far(right, wrong) == [TELLING[1]]
    assert right.verdict == "holds"
    assert Printed("worst", {}, dict.fromkeys(PRINTED, 0.0) | {TELLING[0]: 0.46}).verdict == "missed"


def test_printed_figures_that_come_out_exactly_have_no_error():
    assert [one.median_error for one in printed(fake_results())] == [0.0] * 4


def test_a_test_leaves_only_its_own_workload():
    for test in study.TESTS:
        assert list(study.system("net-kvm-emulated", test).workloads) == [test]


@pytest.mark.thorough
def test_tcp_shares_the_line_without_a_parameter():
    for clients in (1, 3):
        found = study.tcp("net-bare", clients, Budget(1, 1, 0.2))["mbit_per_s"][0]
        assert found == pytest.approx(first_rows()[clients], rel=0.03)


def test_a_reader_of_its_own_keeps_up_with_half_a_line_and_a_shared_one_does_not():
    lost = 100.0 * (1.0 - study.DATAGRAM_LINE_NS / study.SLOW_READER_NS)
    budget = Budget(1, 1, 0.15)
    assert study.slow_reader("own", 2, budget)["loss_percent"] == [0.0]
    assert study.slow_reader("shared", 2, budget)["loss_percent"][0] > lost / 2


def test_the_web_server_collapses_where_the_closed_form_says_within_two():
    assert study.collapse_form_per_s("net-bare", 1) == pytest.approx(21.25, abs=0.01)
    found = study.sweep("net-bare", 2, SHORT)
    assert found["rate_per_s"][0] == pytest.approx(10.0, abs=1.0)
    assert found["onset_per_s"][0] > found["rate_per_s"][0] - 1
    assert found["low_errors"] == [0.0]


def test_nobody_is_answered_with_150_processes_at_once():
    """150 scripts of 145 ms share one processor: the first is done after 22 s, the time-out is 5 s."""
    assert study.httperf_example("150 processes at once", 145, SHORT)["replies"] == [0.0]


def test_the_fit_says_what_its_runs_give():
    fit = json.loads((shipped_dir("calibration") / "networks" / "fit.json").read_text(encoding="utf-8"))
    assert fit["stated"] == STATED
    assert list(fit["models"]) == [RIGHT, *WRONG]
    best = fit["models"][RIGHT]
    assert best["objective"] == min(point["objective"] for point in best["points"])
    again = evaluate(RIGHT, int(best["script_ms"]), FIT)
    assert {key: again[key] for key in STATED} == {key: best[key] for key in STATED}
    for model in ("net-kvm", "net-esxi-emulated"):
        script = study.system(model, "web").domains["server"].applications["web"].script
        assert script == round(best["script_ms"] * 1e6)


def test_the_shipped_record_says_what_its_results_say():
    said = shipped()
    assert set(said["results"]) == set(tasks())
    found = [[list(row) for row in table.rows] for table in tables(said["results"])]
    assert found == [table["rows"] for table in said["tables"]]
    written = (shipped_dir("calibration") / "networks" / "record.md").read_text(encoding="utf-8")
    assert written == report(said["results"], Budget(**said["budget"]))


def test_what_the_record_must_show():
    results = shipped()["results"]
    by_figure = {one.what: one.verdict for one in numbers(results)}
    assert all(by_figure[f"TCP, each of {n}, Mbit/s"] == "holds" for n in (1, 2, 3, 4))
    assert by_figure["TCP, each of 5, Mbit/s"] == "contradicted by the source itself"
    assert by_figure["web, collapse, one client (C21), /s"] == "holds"
    assert by_figure["web, collapse, each of two (C23), /s"] == "holds"
    jitter, own, shared = mechanisms(results)
    assert jitter.verdict != "missed"
    assert jitter.values[-1] > 1.5 * jitter.values[0]
    assert (own.verdict, shared.verdict) == ("holds", "missed")


@pytest.mark.thorough
def test_the_command_prints_writes_and_says_the_same(monkeypatch, tmp_path, capsys):
    results = fake_results()
    monkeypatch.setattr("vftsim.records.networks_study.run_record", lambda jobs, budget, progress: results)
    path = tmp_path / "record.md"
    assert main(["record", "networks", "-j", "1", "-q", "-o", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Statements: " in out
    assert path.read_text(encoding="utf-8") == report(results, RECORD)
    assert main(["record", "networks", "-j", "1", "-q", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["results"] == results
    assert said["budget"] == {"seed": 303, "replications": 2, "seconds": 0.2}


def test_what_only_the_other_study_has_is_refused(capsys):
    for option in (["--curve", "duty"], ["--model", "all"]):
        assert main(["record", "networks", *option]) != 0
        assert "of xen-media" in capsys.readouterr().err


@pytest.mark.slow
def test_the_whole_record_runs():
    with make_progress("record networks", True) as progress:
        results = run_record(1, Budget(303, 1, 0.1), progress)
    assert set(results) == set(tasks())
    assert all(math.isfinite(x) for figures in results.values() for values in figures.values() for x in values)


def test_the_tables_are_plain():
    """A cell with a bar or a line break would break the report."""
    with (shipped_dir("calibration") / "networks" / "claims.csv").open(newline="") as file:
        assert all("|" not in cell for row in csv.reader(file) for cell in row)
