"""The cookbook: every question is one line of command, and every answer comes with an interval and what it rests on.

A command is run in a short form: two replications or crashes, steps of a benchmark further apart, no ranges of prices.
One in a block that opens with ``sh slow`` is run if VFTSIM_SLOW_DOCS is set, as those of other pages are
(``test_commands.py``), and otherwise parsed.
"""

import os
import re
import shlex
from pathlib import Path

import pytest

from vftsim.cli.main import command_line, main

PAGE = Path(__file__).resolve().parents[2] / "docs" / "cookbook.md"
RECIPE = re.compile(r"\*\*(?P<asks>[^*]+)\*\*[^`]*?```sh(?P<slow> slow)?\n(?P<line>.*?)^```", re.MULTILINE | re.DOTALL)
RECIPES = [
    (" ".join(each["asks"].split()), bool(each["slow"]), shlex.split(each["line"].replace("\\\n", " "))[1:])
    for each in RECIPE.finditer(PAGE.read_text(encoding="utf-8"))
]
OF_ONE_RUN = ("explain", "trace")
INTERVAL = re.compile(r"±|\[[^,\]]+, [^\]]+\]|\(\S+ to \S+\)|\d [<>] \d|nine of ten|95 % confidence")
RESTS_ON = re.compile(
    r"outside what was calibrated|not covered by the calibration|no domain of validity is known|Costs of|assum|Prices:"
)
FIRST_ASKED = (
    "two virtual CPUs",
    "10 Gbit/s",
    "NAS",
    "after five seconds",
    "every 90 days",
    "survives a stop",
    "two tiers",
    "response times of a web server",
    "60 % of the core",
    "another virtual machine",
    "driver domain",
    "Restart on another host, or lockstep",
    "share one core",
    "half as fast again",
    "weights and caps",
    "the voice",
    "How many media streams",
)
"""What new users asked, and for the most part did not get in one line, when there was no such page."""


def short(words):
    """Return a command with as little work as leaves an interval."""
    command, *rest = words
    if command in OF_ONE_RUN:
        return words
    added = ["-q", "-j", "1"]
    is_ramp = rest[0].startswith("lab-") and not {"--grid", "--budget"} & {*rest}
    if command in ("run", "compare", "failover", "availability", "sweep") or (command == "capacity" and is_ramp):
        added += ["-n", "2"]
        if is_ramp:
            added += ["--set", "workloads.calls.steps.increment=50 /s"]
        if command == "compare" and "--protection" in rest:
            added += ["--no-prices"]
    return [command, *rest, *added]


@pytest.mark.parametrize(("asks", "slow", "words"), RECIPES, ids=[asks for asks, _, _ in RECIPES])
def test_a_question_is_one_line_and_answered_with_interval_and_domain(asks, slow, words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command, *rest = short(words)
    command_line().commands[command].make_context(command, [*rest])
    if slow and not os.environ.get("VFTSIM_SLOW_DOCS"):
        return
    assert main([command, *rest]) == 0, capsys.readouterr().err
    printed = capsys.readouterr()
    if command not in OF_ONE_RUN:
        assert INTERVAL.search(printed.out)
        assert RESTS_ON.search(printed.out + printed.err)


def test_what_new_users_asked_is_there():
    asked = [asks for asks, _, _ in RECIPES]
    assert [words for words in FIRST_ASKED if not any(words in each for each in asked)] == []
    assert sum(words[0] not in OF_ONE_RUN for _, _, words in RECIPES) >= 25
    assert PAGE.read_text(encoding="utf-8").count("```sh") == len(RECIPES)
