"""The commands about protection from outside: what they print, keep and refuse."""

import csv
import io
import json

import pytest

from vftsim.cli.main import main
from vftsim.study.designs import crash, failover

SHORT = ("-n", "2", "--after", "3 s", "--jobs", "1", "-q")


def run_main(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def refused(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 2
    return " ".join(capsys.readouterr().err.split())


@pytest.mark.thorough
def test_failovers_are_kept_and_taken_up_again(inside, tiny_path, capsys, monkeypatch):
    """The second command simulates nothing; what the store lacks (infinite, no number) comes back."""
    command = ("failover", tiny_path, "--protection", "none", *SHORT, "-o", "kept")
    first = run_main(capsys, *command)

    def never(task):
        raise AssertionError("simulated again")

    monkeypatch.setattr(crash, "simulate_crash", never)
    monkeypatch.setattr(failover, "simulate_crash", never)
    assert run_main(capsys, *command) == first
    assert "no packet came out any more" in " ".join(first.split())


@pytest.mark.thorough
def test_failover_as_json_csv_and_figure(inside, tiny_path, tmp_path, capsys):
    command = ("failover", tiny_path, "--protection", "lockstep", *SHORT, "-o", "kept")
    found = json.loads(run_main(capsys, *command, "--json"))
    assert found["mechanism"] == "lockstep"
    assert len(found["failovers"]) == 2
    assert [what for _, what in found["failovers"][0]["timeline"]][1] == "primary crash"
    table = list(csv.DictReader(io.StringIO(run_main(capsys, *command, "--csv"))))
    outage = next(row for row in table if row["figure"] == "outage_s")
    assert float(outage["estimate"]) == pytest.approx(
        sum(float(row["estimate"]) for row in table if row["figure"] in crash.PARTS), rel=1e-9
    )
    assert (tmp_path / "kept" / "charts.png").read_bytes().startswith(b"\x89PNG")


def test_without_any_recovery_there_is_nothing_to_draw(inside, tiny_path, tmp_path, capsys):
    run_main(capsys, "failover", tiny_path, "--protection", "none", *SHORT, "-o", "kept")
    assert (tmp_path / "kept" / "answer.csv").exists()
    assert not (tmp_path / "kept" / "charts.png").exists()


@pytest.mark.parametrize("mtbf_h", [8760, 100_000])
def test_availability_as_csv(mtbf_h, tiny_path, tmp_path, capsys):
    """And kept: what must be known of its mechanisms met what its directory says, in a traceback."""
    shown = run_main(
        capsys,
        "availability",
        tiny_path,
        "--mtbf",
        f"{mtbf_h} h",
        "--protection",
        "none",
        *SHORT,
        "--restart",
        "1 h",
        "--csv",
        "-o",
        str(tmp_path / f"kept-{mtbf_h}"),
    )
    (row,) = csv.DictReader(io.StringIO(shown))
    assert float(row["unavailability"]) == pytest.approx(1 / (mtbf_h + 1))


def test_mistakes(tiny_path, capsys):
    assert "did you mean 'checkpoint'" in refused(capsys, "compare", tiny_path, "--protection", "chekpoint")
    assert "name them with --protection" in refused(capsys, "compare", tiny_path, "--crossovers", "all")
    wrong = ("compare", tiny_path, "--protection", "none,lockstep", "--crossovers", "lode")
    assert "did you mean 'load'" in refused(capsys, *wrong)
    assert "name one" in refused(capsys, "compare", tiny_path, tiny_path, "--protection", "all")
    assert "did you mean 'lockstep'" in refused(capsys, "failover", tiny_path, "--protection", "lockstp")
    assert "no domain 'sud'" in refused(capsys, "failover", tiny_path, "--protection", "none", "--domain", "sud")
    assert "--mtbf" in refused(capsys, "availability", tiny_path, "--mtbf", "0 s")
    assert "--mtbf" in refused(capsys, "compare", tiny_path, "--protection", "none", "--mtbf", "0 s")
    for nothing in (("--mtbf", "0 s"), ("--restart", "0 s"), ("--common-cause", "0 %")):
        assert f"{nothing[0]} is about mechanisms" in refused(capsys, "compare", tiny_path, tiny_path, *nothing)
    years = ("availability", tiny_path, "--mtbf", "30 d", "--simulate")
    assert "from 2 to 1000 years" in refused(capsys, *years, "1")
    assert "--after is about single failovers" in refused(capsys, *years, "2", "--after", "5 s")
    assert "--after" in refused(capsys, "failover", tiny_path, "--after", "5 km")
    assert "--after is at most 3653 d" in refused(capsys, "failover", tiny_path, "--after", "9999 d")


@pytest.mark.thorough
def test_comparison_of_mechanisms_is_kept(inside, tiny_path, capsys, monkeypatch):
    monkeypatch.setattr(failover, "AFTER_NS", 3_000_000_000)
    short = ("--set", "workloads.calls.steps.most=1")
    command = (
        "compare",
        tiny_path,
        *short,
        "--protection",
        "none,lockstep",
        "-n",
        "1",
        "--jobs",
        "1",
        "-q",
        "-o",
        "kept",
    )
    found = json.loads(run_main(capsys, *command, "--json"))
    assert {row["mechanism"] for row in found["comparison"]} == {"none", "lockstep"}
    assert "not calibrated for this model: entry" in found["notes"]["lockstep"][0]
    assert {row["figure"] for row in found["comparison"]} >= {"outage", "price", "capacity"}
    monkeypatch.setattr(failover, "simulate_crash", None)
    table = list(csv.DictReader(io.StringIO(run_main(capsys, *command, "--csv"))))
    assert len(table) == len(found["comparison"])
