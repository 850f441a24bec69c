"""Options that every command has: one declaration each, and each does what it says wherever it stands."""

import inspect
from dataclasses import dataclass, fields

import pytest
import typer

from vftsim.cli.common import ModelStudy, Study, Work, as_command
from vftsim.cli.main import build_app, main

STUDIES = (
    "availability",
    "capacity",
    "compare",
    "failover",
    "optimize",
    "pilot",
    "predict",
    "rare",
    "run",
    "sensitivity",
    "study",
    "sweep",
)


@pytest.fixture(scope="module")
def commands():
    return {each.name: inspect.signature(each.callback).parameters for each in build_app().registered_commands}


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_has_every_common_option(name, commands):
    wanted = {each.name for each in fields(Study if name == "study" else ModelStudy)}
    assert wanted <= commands[name].keys()


@pytest.mark.parametrize("name", ["calibrate", "record", "validate"])
def test_fits_and_validations_have_those_without_estimates(name, commands):
    assert {each.name for each in fields(Work)} <= commands[name].keys()


def test_a_field_is_an_option_and_the_command_gets_the_object():
    seen = []

    @dataclass(kw_only=True)
    class Own(Work):
        force: bool = True

    def command(number: int, *, common: Own) -> None:
        seen.append((number, common.jobs, common.force))

    # Names of a function's types are looked up where it stands.
    command.__annotations__ = {"number": int, "common": Own, "return": None}
    app = typer.Typer()
    app.command()(as_command(command))
    app(["7", "--jobs", "3", "--quiet"], standalone_mode=False)
    assert seen == [(7, 3, True)]


def test_the_help_has_groups(capsys):
    assert main(["pilot", "--help"]) == 0
    printed = capsys.readouterr().out
    places = [printed.index(f"\n{title}:\n") for title in ("Arguments", "Options", "Model", "Result", "Work")]
    assert places == sorted(places)
    assert printed.count("--json") == 1


@pytest.mark.thorough
def test_a_comparison_of_mechanisms_writes_its_page(tmp_path, tiny_path, capsys):
    """It printed its tables and wrote nothing: the option was not handed on."""
    page = tmp_path / "page.html"
    typed = ["compare", str(tiny_path), "--protection", "none,checkpoint", "--no-prices", "-n", "2", "-j", "1", "-q"]
    assert main([*typed, "--report", str(page)]) == 0
    assert "checkpoint" in page.read_text()
    assert f"written: {page}" in capsys.readouterr().err


@pytest.mark.thorough
def test_pilots_are_kept_and_go_on(tmp_path, tiny_path, capsys):
    typed = ["pilot", str(tiny_path), "--set", "workloads.calls.steps.duration=120 s", "-j", "1", "-q", "--json"]
    folder = tmp_path / "pilots"
    assert main([*typed, "-o", str(folder)]) == 0
    first = capsys.readouterr().out
    (folder / "answer.json").unlink()
    assert main([*typed, "-o", str(folder)]) == 0
    again = capsys.readouterr().out
    assert first.partition('"series"')[2] == again.partition('"series"')[2]
    assert (folder / "answer.json").exists()


@pytest.mark.parametrize(
    "typed",
    [
        ["validate", "--max-memory", "none"],
        ["calibrate", "sip-lab/native", "--max-time", "0 s"],
        ["predict", "lab-virtual", "--fit", "sip-lab/virtual", "--max-memory", "1 kB"],
    ],
    ids=" ".join,
)
def test_limits_are_read_everywhere_before_the_work(typed, capsys):
    assert main(typed) == 2
    assert "--max-" in capsys.readouterr().err
