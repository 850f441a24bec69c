"""The record of the SIP farm: rows and verdicts by hand, what must keep coming out, and the command."""

import json
import math

import pytest

from vftsim.cli.main import main
from vftsim.composition.model import ModelSpec
from vftsim.records import farm, farm_rows
from vftsim.records import farm_bounds as form
from vftsim.records.farm import GENERATOR_COST_S, MODELS, RECORD, Budget
from vftsim.records.farm_rows import agreements, contradictions, numbers, wrong_models
from vftsim.records.farm_study import report, run_record, scores, tables, tasks
from vftsim.spec import load, shipped_dir
from vftsim.study.progress import make_progress

SHORT = Budget(1, 1, 0.2)


def shipped():
    return json.loads((shipped_dir("calibration") / "sip-farm" / "record.json").read_text(encoding="utf-8"))


def fake_results():
    """Runs that give what the closed forms say."""
    calls = {
        "processors_used": 18.4, "front_cpu": 1.2, "response_ms": 2.0, "longest_ms": 9.0, "failed": 0.0,
        "calls_per_s": 100.0, "offered_per_s": 100.0, "retransmissions_percent": 0.0,
    }  # fmt: skip
    figures = {name: dict(calls) for name in tasks()}
    for run, layout in form.RUNS.items():
        figures[f"bounds {run}"] = form.bounds(form.costs_after(), layout) | {form.GENERATORS: 20_000.0}
    for run in farm.SATURATED:
        figures[f"saturated {run}"] = {"calls_per_s": form.rate(run)}
    for model in farm.WHAT_IFS:
        figures[model] = calls | {form.FRONT: 3000.0, form.ALL_PROCESSORS: 2000.0}
    for name in figures:
        if name.endswith(", bound"):
            figures[name] = {"calls_per_s": 600.0}
    return {name: {key: [value] * 2 for key, value in own.items()} for name, own in figures.items()}


def test_verdicts_follow_the_protocol():
    results = fake_results()
    by_row = {one.what: one for one in numbers(results)}
    assert by_row["R3, processors of 24"].verdict == "holds"  # 18.4 of 19.30: 4.7 % below
    assert by_row["R3, response, ms"].verdict == "holds"
    results[farm_rows.EVEN]["processors_used"] = [18.1, 18.1]
    results[farm_rows.RANDOM]["response_ms"] = [1.1, 1.2]
    by_row = {one.what: one for one in numbers(results)}
    assert by_row["R3, processors of 24"].verdict == "missed"  # 6.2 % below
    assert by_row["R3, response, ms"].verdict == "missed"


def test_every_run_has_its_limiting_resource():
    limits = {one.what.partition(",")[0]: one.limit for one in numbers(fake_results()) if "calls/s" in one.what}
    assert limits["R1"] == limits["R4"] == "server CPU (assumed)"
    assert limits["R2"] == "front end CPU (assumed)"
    assert limits["R3"].startswith("none inside")
    assert limits["R5"] == "front end CPU (with R6's split)"
    assert limits["R6"].startswith("back end CPU")
    assert limits["R7"] == "storage server (derived)"


def test_no_run_of_the_record_is_limited_by_its_generators():
    """R3 was run, so that a message costs at most 281 us; the shipped models take half of it."""
    assert form.most_generator_cost_s() == pytest.approx(24 / 6568.4 / 13)
    assert pytest.approx(form.most_generator_cost_s() / 2, rel=0.01) == GENERATOR_COST_S
    for run, layout in form.RUNS.items():
        stated = load(MODELS[run], ModelSpec)
        assert stated.workloads["calls"].message_cost == GENERATOR_COST_S * 1e9
        _, bound = form.limit(form.bounds(form.costs_after(), layout))
        assert form.generators_bound(GENERATOR_COST_S, layout) > 1.05 * bound


def test_each_wrong_model_fails_on_its_row():
    assert [one.verdict for one in wrong_models()] == ["missed"] * 4


def test_contradictions_are_worked_out_from_the_printed_figures():
    found = {what: other for what, _, other in contradictions()}
    assert found["R3, calls/s"].startswith("8436")
    assert "24.8 of 24" in found["R3, calls/s"]
    assert found["R3, concurrent calls"].startswith("394104")


def test_the_event_model_is_held_to_one_percent_where_it_limits():
    results = fake_results()
    assert "within 1% of" in scores(results)[-1]
    results["bounds R6"][form.BACK] = [form.rate("R6") * 1.011] * 2
    assert "not within 1% of" in scores(results)[-1]
    assert {one.run for one in agreements(results)} == set(form.RUNS)


@pytest.mark.thorough
def test_r3s_processors_and_response_come_out_of_a_short_run():
    """At the stated rate, from R2's cost alone; the shortest way takes three passes of 0.47 ms less one in parallel."""
    found = farm.held_out("even", SHORT)
    assert found["processors_used"][0] == pytest.approx(2 * 6568.4 / 712.9, rel=0.005)
    assert found["failed"] == [0.0]
    assert 1.2 < found["response_ms"][0] < farm.held_out("random", SHORT)["response_ms"][0] < 6.0


@pytest.mark.parametrize("run", ["R1", "R2", "R6"])
def test_what_is_saturated_does_what_its_bound_says(run):
    assert farm.saturated(run, SHORT)["calls_per_s"][0] == pytest.approx(form.rate(run), rel=0.01)


@pytest.mark.thorough
def test_farms_that_nobody_measured():
    """Four back ends allow 4 x 394 calls/s; without the NAS the 24 processors are the limit."""
    more = farm.what_if("sip-farm-back-ends", Budget(1, 1, 1.0))
    assert more[form.BACK][0] == pytest.approx(4 * form.rate("R6"), rel=0.05)
    none = farm.what_if("sip-farm-no-nas", Budget(1, 1, 1.0))
    assert none[form.ALL_PROCESSORS][0] < none[form.BACK][0] < none[form.FRONT][0]


def test_the_shipped_record_says_what_its_results_say():
    said = shipped()
    assert set(said["results"]) == set(tasks())
    assert [[list(row) for row in table.rows] for table in tables(said["results"])] == [
        t["rows"] for t in said["tables"]
    ]
    written = (shipped_dir("calibration") / "sip-farm" / "record.md").read_text(encoding="utf-8")
    assert written == report(said["results"], Budget(**said["budget"]))


@pytest.mark.thorough
@pytest.mark.parametrize("run", ["R1", "R2"])
def test_the_other_engine_gives_the_shipped_figures(run, monkeypatch):
    """The record was run compiled; to the last digit the same under simpy."""
    monkeypatch.setenv("VFTSIM_ENGINE", "simpy")
    assert farm.bounds(run, RECORD) == shipped()["results"][f"bounds {run}"]


def test_what_the_record_must_show():
    results = shipped()["results"]
    assert all(one.verdict not in ("missed", "an estimate, missed") for one in numbers(results))
    assert all(abs(one.off) <= 0.01 for one in agreements(results) if one.is_limit)
    for model in farm.PROTECTED:
        assert results[f"{model}, crash"]["failed"] == [0.0, 0.0]
        assert max(results[f"{model}, bound"]["calls_per_s"]) < min(results[f"{model}, plain, bound"]["calls_per_s"])
        assert min(results[model]["response_ms"]) > max(results[f"{model}, plain"]["response_ms"])


def test_the_command_prints_writes_and_says_the_same(monkeypatch, tmp_path, capsys):
    results = fake_results()
    monkeypatch.setattr("vftsim.records.farm_study.run_record", lambda jobs, budget, progress: results)
    path = tmp_path / "record.md"
    assert main(["record", "sip-farm", "-j", "1", "-q", "-o", str(path)]) == 0
    assert "wrong models fail" in capsys.readouterr().out
    assert path.read_text(encoding="utf-8") == report(results, RECORD)
    assert main(["record", "sip-farm", "-j", "1", "-q", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["results"] == results


def test_what_only_the_xen_study_has_is_refused(capsys):
    for option in (["--curve", "duty"], ["--model", "all"]):
        assert main(["record", "sip-farm", *option]) != 0
        assert "sip-farm always shows its wrong models" in capsys.readouterr().err


@pytest.mark.slow
def test_the_whole_record_runs():
    with make_progress("record sip-farm", True) as progress:
        results = run_record(1, Budget(211, 1, 0.1), progress)
    assert set(results) == set(tasks())
    assert all(math.isfinite(x) for figures in results.values() for values in figures.values() for x in values)
