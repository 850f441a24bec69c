"""Every example that a help shows is read as the command reads it: options, models, settings and what they name."""

import re
import shlex
import subprocess
import sys

import pytest

from tests.study.grids import make_grid
from vftsim.cli import options
from vftsim.cli.examples import EXAMPLES
from vftsim.cli.main import command_line, main
from vftsim.study.designs.axes import knob_of
from vftsim.study.designs.protections import kinds_named, under
from vftsim.study.figures.names import read_objective
from vftsim.study.runs.model import load_model

COMMANDS = sorted(command_line().commands)
SHOWN = [(name, example) for name in COMMANDS for example in EXAMPLES.get(name, ())]


def helped(capsys, *command):
    assert main([*command, "--help"]) == 0
    return capsys.readouterr().out


def parsed(name, example):
    word, command, *arguments = shlex.split(example)
    assert (word, command) == ("vftsim", name)
    return command_line().commands[name].make_context(name, arguments).params


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_shows_two_examples_on_lines_of_their_own(name, capsys):
    lines = [line.strip() for line in helped(capsys, name).splitlines()]
    assert len(EXAMPLES[name]) == 2
    assert set(EXAMPLES[name]) <= set(lines)


@pytest.mark.parametrize(("name", "example"), SHOWN)
def test_an_example_is_accepted(name, example):
    given = parsed(name, example)
    settings = given.get("set_") or []
    named = given.get("models") or [given[key] for key in ("model",) if isinstance(given.get(key), str)]
    for each in named:
        model = load_model(each, settings)
        if given.get("quick"):
            model = model.quick()
        if name == "failover" and given["protection"]:
            under(model, given["protection"])
        if given.get("vary"):
            knob_of(model.spec, given["vary"])
    for text in given.get("objectives") or given.get("objective") or []:
        read_objective(text)
    if name in ("compare", "availability") and given["protection"]:
        kinds_named(given["protection"])
    if name == "sweep":
        make_grid(given["model"], given["scheduler"], given["grid"] or (), settings, given["protection"])


@pytest.mark.thorough
@pytest.mark.parametrize(
    "example", [*EXAMPLES["models"], *EXAMPLES["schema"], EXAMPLES["explain"][0]], ids=lambda text: text[:40]
)
def test_a_quick_example_works(example):
    assert main(shlex.split(example)[1:]) == 0


@pytest.mark.parametrize("model", ["lab-virtual", "lab-native", "xen-media", "net-kvm", "linux-lab"])
def test_the_example_of_a_setting_is_accepted(model):
    setting = re.search(r"e.g. --set '([^']+)'", options.__doc__)[1]
    assert load_model(model, [setting]).spec != load_model(model).spec


def test_no_description_is_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = helped(capsys)
    assert "..." not in out.partition("Commands:")[2]
    whole = " ".join(out.split())
    assert "Say how long the service is down in a year, how long unprotected, and what clients lose." in whole


def test_python_without_docstrings_is_refused():
    """Options are declared in docstrings: without them every one would have another name."""
    done = subprocess.run(
        [sys.executable, "-OO", "-m", "vftsim", "models"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "-OO leaves out the docstrings" in done.stderr
