"""The record of iperf and httperf on bare metal, KVM and ESXi: what is judged how, and what must keep coming out."""

import csv
import json

import pytest

from tests.records.fits import fit
from vftsim.records.forms import networks as study
from vftsim.records.forms.networks import PRINTED, TELLING, example_rows, statement_rows
from vftsim.records.forms.networks_claims import claims, compare, judge, trend
from vftsim.records.judge import Judgement
from vftsim.records.runner import read, rows_of
from vftsim.spec import shipped_dir

FOLDER = shipped_dir("calibration") / "networks"
CLAIMS = rows_of(FOLDER / "claims.csv")
RECORD = read("networks")
FITS = fit.cases_of(RECORD)
SHORT = RECORD.with_budget({"seed": 1, "replications": 1, "seconds": 0.05})
RATE, LOSS = (claims().metrics[name] for name in ("tcp", "datagram_loss"))


def play(name, record=SHORT):
    return record.play(*record.tasks()[name])


def shipped():
    return json.loads((FOLDER / "record.json").read_text(encoding="utf-8"))


def fake_results():
    """Equal figures for every run, so that each comparison is a tie."""
    figures = {
        "mbit_per_s": 100.0,
        "sent_mbit_per_s": 100.0,
        "jitter_us": 10.0,
        "loss_percent": 0.0,
        "rate_per_s": 20.0,
        "reply_rate_per_s": 20.0,
        "errors": 3.0,
        "low_errors": 0.0,
        "onset_per_s": 21.0,
        "answered_percent": 100.0,
        "replies_per_s": 800.0,
        "replies": 34.0,
        "first_5_s": 25.0,
    } | {key: study.printed("httperf_example", key) for key in PRINTED}
    return {name: {key: [value] * 3 for key, value in figures.items()} for name in RECORD.tasks()}


def test_the_dataset_is_whole():
    tables = ("tables", "claims", "examples", "platform")
    assert [len(rows_of(FOLDER / f"{name}.csv")) for name in tables] == [100, 82, 70, 28]
    assert [study.first_row(n) for n in (1, 2, 3, 4, 5)] == [936.9, 472.8, 306.5, 235.6, 122.9]
    assert study.printed("httperf_example", "replies") == 34.0


def test_every_run_that_a_statement_needs_is_made():
    judged = judge(CLAIMS, fake_results())
    assert len(judged) + len(claims().elsewhere) == 82
    by_key = {one.key: one.verdict for one in judged}
    assert {key for key, verdict in by_key.items() if verdict == "contradicted by the source itself"} == {
        *claims().contradicted
    }
    assert {key for key, verdict in by_key.items() if verdict == "not judged"} == {*claims().not_judged}
    # Ties by construction say nothing, whether the statement is of a difference or of none; no loss is little loss.
    assert [by_key[key] for key in ("C46", "C16", "C45", "C13")] == ["no mechanism"] * 4
    assert (by_key["C35"], by_key["C43"]) == ("holds", "holds")


def test_a_null_model_holds_what_sharing_alone_explains():
    by_key = {key: null for key, _, _, _, null in statement_rows(fake_results())}
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
    results = fake_results()
    for key in PRINTED:
        results["example as documented"][key] = [1.1 * study.printed("httperf_example", key)] * 3
    results["example fixed pool of 5"][TELLING[1]] = [0.79 * study.printed("httperf_example", TELLING[1])] * 3
    results["example fixed pool of 5"][TELLING[0]] = [1.19 * study.printed("httperf_example", TELLING[0])] * 3
    results["example accept queue of 511"][TELLING[0]] = [1.46 * study.printed("httperf_example", TELLING[0])] * 3
    rows = {row[0]: row[2:] for row in example_rows(results)}
    assert rows["twice as far off, of 3"] == ("", "0", "1", "1")
    assert rows["median error"] == ("10.0%", "0.0%", "0.0%", "0.0%")
    assert rows["verdict"] == ("holds", "holds", "holds", "missed")


def test_a_test_leaves_only_its_own_workload():
    for test in ("tcp", "udp"):
        assert list(RECORD.model(f"{test} net-kvm-emulated 1").workloads) == [test]


@pytest.mark.thorough
def test_tcp_shares_the_line_without_a_parameter():
    for clients in (1, 3):
        found = play(f"tcp net-bare {clients}", SHORT.with_budget({"seconds": 0.2}))["mbit_per_s"][0]
        assert found == pytest.approx(study.first_row(clients), rel=0.03)


def test_a_reader_of_its_own_keeps_up_with_half_a_line_and_a_shared_one_does_not():
    lost, longer = 100.0 * (1.0 - 12288 / 13000), SHORT.with_budget({"seconds": 0.15})
    assert play("slow reader own 2", longer)["loss_percent"] == [0.0]
    assert play("slow reader shared 2", longer)["loss_percent"][0] > lost / 2


def test_the_web_server_collapses_where_the_closed_form_says_within_two():
    assert study.collapse_per_s("net-bare") == pytest.approx(21.25, abs=0.01)
    found = play("web net-bare 2")
    assert found["rate_per_s"][0] == pytest.approx(10.0, abs=1.0)
    assert found["onset_per_s"][0] > found["rate_per_s"][0] - 1
    assert found["low_errors"] == [0.0]


def test_nobody_is_answered_with_150_processes_at_once():
    """150 scripts of 145 ms share one processor: the first is done after 22 s, the time-out is 5 s."""
    case = FITS["150 processes at once"]
    assert case.point((145.0,), case.fit.first).figures["replies"] == 0.0


def test_the_fit_says_what_its_runs_give():
    kept = json.loads((FOLDER / "fit.json").read_text(encoding="utf-8"))
    assert list(kept) == list(FITS)
    of_documented = kept["as documented"]
    best = of_documented["best"]
    assert best["objective"] == min(point["objective"] for point in of_documented["points"])
    again = FITS["as documented"].point((best["script_ms"],), FITS["as documented"].fit.finer)
    assert (again.figures, again.objective) == (best["figures"], best["objective"])
    for net in ("net-kvm", "net-esxi-emulated"):
        assert study.capacity_per_s(net) == pytest.approx(study.capacity_per_s("net-kvm"))
    assert RECORD.model("example as documented").domains["server"].applications["web"].script == round(
        best["script_ms"] * 1e6
    )


def test_what_the_record_must_show():
    groups = Judgement(RECORD, shipped()["results"]).groups
    by_figure = {row.notes["what"]: row.verdict for row in groups["numbers"]}
    assert all(by_figure[f"TCP, each of {n}, Mbit/s"] == "holds" for n in (1, 2, 3, 4))
    assert by_figure["TCP, each of 5, Mbit/s"] == "contradicted by the source itself"
    assert by_figure["web, collapse, one client (C21), /s"] == "holds"
    assert by_figure["web, collapse, each of two (C23), /s"] == "holds"
    assert [row.verdict for row in groups["mechanisms"]] == ["within noise", "holds", "missed"]
    jitter = shipped()["results"]
    assert jitter["udp net-bare 5"]["jitter_us"][0] > 1.5 * jitter["udp net-bare 1"]["jitter_us"][0]


def test_the_tables_are_plain():
    """A cell with a bar or a line break would break the report."""
    with (shipped_dir("calibration") / "networks" / "claims.csv").open(newline="") as file:
        assert all("|" not in cell for row in csv.reader(file) for cell in row)
