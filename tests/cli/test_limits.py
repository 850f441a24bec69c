"""What a study takes is known before it begins: said, asked about, refused, bounded."""

import re
import sys
import time

import pytest

from vftsim.cli import main as command_line
from vftsim.cli import options
from vftsim.cli.main import main
from vftsim.study.designs.points import Source
from vftsim.study.runs.estimate import Needs

LONG = ["--set", "workloads.calls.sample_period=1 ns"]


@pytest.fixture
def at_the_console(monkeypatch):
    """Repeat an interruption that Python drops, as where it comes in a destructor: a command goes on without it."""
    monkeypatch.setattr(sys, "unraisablehook", command_line._interrupt_again)


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
    grid = ["--grid", "domains.sut.weight=100,200,300"] if command == "sweep" else []
    printed = refusal(capsys, command, *models, *LONG, *grid, "-o", target)
    assert "events" in printed
    assert "above an hour; --yes begins it all the same" in printed
    assert not target.exists()


def test_a_search_is_as_long_as_its_budget(tiny_path, capsys):
    printed = refusal(capsys, "capacity", tiny_path, "--method", "search", "--budget", "10000000")
    assert "above an hour" in printed


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


@pytest.mark.own_process
@pytest.mark.thorough
@pytest.mark.usefixtures("at_the_console")
def test_a_study_ends_when_its_time_is_over_and_what_had_finished_is_kept(tiny_path, tmp_path, capsys):
    target = tmp_path / "out"
    assert main(["run", str(tiny_path), "-n", "1", "-j", "1", "-q", "-o", str(tmp_path / "warm")]) == 0  # imports
    capsys.readouterr()
    code = main(["run", str(tiny_path), "-n", "3000", "-j", "1", "--max-time", "1 s", "-o", str(target), "-q"])
    err = capsys.readouterr().err
    assert code == 3
    assert "vftsim: the --max-time of 1 second is over\n" in err
    assert "rest on what had finished; it is in" in err
    assert (target / "steps.csv").exists()


GRIDS = [
    "--grid",
    f"domains.sut.weight={','.join(map(str, range(1, 31)))}",
    "--grid",
    f"domains.sut.cpu_inflation={','.join(str(1 + n / 100) for n in range(30))}",
    "--grid",
    f"workloads.calls.subscribers={','.join(map(str, range(1000, 1030)))}",
]


def test_a_large_grid_is_counted_before_it_is_made(tiny_path, tmp_path, monkeypatch, capsys):
    """Of 27,000 points some are looked at; making all took 20 s and 391 MB."""
    monkeypatch.setenv("VFTSIM_ENGINE", "simpy")  # in which it is above an hour
    made = []
    at = Source.at
    monkeypatch.setattr(Source, "at", lambda *every: made.append(1) or at(*every))
    printed = refusal(capsys, "sweep", tiny_path, *GRIDS, "-n", "50", "-o", tmp_path / "out")
    assert "above an hour; --yes begins it all the same" in printed
    assert len(made) < 300


@pytest.mark.own_process
@pytest.mark.usefixtures("at_the_console")
def test_time_counts_while_a_grid_is_made(tiny_path, tmp_path, monkeypatch, capsys):
    at = Source.at
    monkeypatch.setattr(Source, "at", lambda *every: time.sleep(0.01) or at(*every))
    words = [
        "sweep",
        str(tiny_path),
        *GRIDS,
        "-n",
        "1",
        "-q",
        "-o",
        str(tmp_path / "out"),
        "--yes",
        "--max-time",
        "1 s",
    ]
    assert main(words) == 3
    assert capsys.readouterr().err.startswith("vftsim: the --max-time of 1 second is over\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.own_process
@pytest.mark.usefixtures("at_the_console")
def test_memory_that_is_used_and_was_not_foreseen_ends_a_study(tiny_path, monkeypatch, capsys):
    monkeypatch.setattr(Needs, "memory_bytes", lambda *_: 0.0)
    assert main(["run", str(tiny_path), "-n", "20000", "-j", "1", "-q", "--max-memory", "50 MB"]) == 3
    assert "MB of memory are used, --max-memory allows 50 MB\n" in capsys.readouterr().err


FEW = ["--set", "workloads.calls.subscribers=40", "-q", "-j", "1", "-n", "1"]


@pytest.mark.parametrize("command", ["run", "capacity"])
def test_attempts_without_a_free_subscriber_are_said(command, tiny_path, capsys):
    assert main([command, str(tiny_path), *FEW]) == 0
    printed = " ".join(capsys.readouterr().out.split())
    missing, asked = map(float, re.search(r"Not offered: (\S+) of (\S+) attempts of calls", printed).groups())
    assert 0 < missing < asked
    # Where initial registrations lack one, more that are registered would make it worse.
    assert "raise workloads.calls.subscribers, or change workloads.calls.registered: ims_reg needs one" in printed


def test_where_all_begin_nothing_is_said(tiny_path, capsys):
    assert main(["run", str(tiny_path), "-q", "-j", "1", "-n", "1", "--set", "workloads.calls.steps.most=1"]) == 0
    assert "Not offered" not in capsys.readouterr().out
