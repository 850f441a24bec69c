"""What a study takes is known before it begins: said, asked about, refused, bounded."""

import re

import pytest

from vftsim.cli import options
from vftsim.cli.main import main

LONG = ["--set", "workloads.calls.sample_period=1 ns"]


def refusal(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.mark.parametrize("command", ["run", "capacity", "compare", "failover", "sweep"])
def test_what_takes_above_an_hour_is_refused_before_anything_is_written(command, tiny_path, tmp_path, capsys):
    target = tmp_path / "out"
    models = [tiny_path] * (2 if command == "compare" else 1)
    grid = ["--grid", "domains.sut.weight=100,200"] if command == "sweep" else []
    said = refusal(capsys, command, *models, *LONG, *grid, "-o", target)
    assert "events" in said
    assert "above an hour; --yes begins it all the same" in said
    assert not target.exists()


def test_a_search_is_as_long_as_its_budget(tiny_path, capsys):
    said = refusal(capsys, "capacity", tiny_path, "--method", "search", "--budget", "10000000")
    assert "above an hour" in said


def test_at_a_terminal_it_is_asked_and_yes_is_not(tiny_path, capsys, monkeypatch):
    asked = []

    def answer(question):
        asked.append(question)
        return False

    monkeypatch.setattr(options, "_agrees", answer)
    refusal(capsys, "run", tiny_path, *LONG, "-n", "1")
    assert len(asked) == 1
    assert main(["run", str(tiny_path), "-n", "1", "--yes", "-q", "--quick"]) == 0
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["--max-memory", "1 MB"], "--max-memory allows 0.001 GB"),
        (["--max-memory", "0 B"], "--max-memory: above 0"),
        (["--max-time", "0"], "--max-time: above 0"),
        (["--max-time", "3 apples"], "'apples' in '3 apples' is not a unit"),
    ],
)
def test_limits_that_cannot_be_kept_are_refused(arguments, part, tiny_path, capsys):
    assert part in refusal(capsys, "run", tiny_path, *arguments, "-n", "1")


@pytest.mark.thorough
def test_a_study_ends_when_its_time_is_over_and_what_had_finished_is_kept(tiny_path, tmp_path, capsys):
    target = tmp_path / "out"
    code = main(["run", str(tiny_path), "-n", "3000", "-j", "1", "--max-time", "2 s", "-o", str(target), "-q"])
    err = capsys.readouterr().err
    assert code == 3
    assert "vftsim: 2 seconds, the --max-time, are over\n" in err
    assert "replications are kept in" in err
    assert (target / "steps.csv").exists()


FEW = ["--set", "workloads.calls.subscribers=40", "-q", "-j", "1", "-n", "1"]


@pytest.mark.parametrize("command", ["run", "capacity"])
def test_attempts_without_a_free_subscriber_are_said(command, tiny_path, capsys):
    assert main([command, str(tiny_path), *FEW]) == 0
    said = " ".join(capsys.readouterr().out.split())
    missing, asked = map(int, re.search(r"Not started: (\d+) of about (\d+) attempts", said).groups())
    assert 0 < missing < asked
    assert "raise workloads.calls.subscribers or workloads.calls.registered" in said


def test_where_all_begin_nothing_is_said(tiny_path, capsys):
    assert main(["run", str(tiny_path), "-q", "-j", "1", "-n", "1", "--set", "workloads.calls.steps.most=1"]) == 0
    assert "Not started" not in capsys.readouterr().out
