"""Commands are made from the functions of the package: what is typed arrives there as the function takes it."""

from __future__ import annotations

import inspect
from collections.abc import Sequence

import pytest
import typer

import vftsim
from vftsim.cli.common import Study, as_command
from vftsim.cli.from_study import StudyCall, made_from
from vftsim.errors import UsageError
from vftsim.interface.plan import Plan, conducted


@conducted
def look(
    depth: int,
    names: Sequence[str] = (),
    after_s: float = 1.5,
    share_percent: float = 95.0,
    free_percent: float | None = None,
    way: str | None = None,
    jobs: int = 1,
    *,
    directory: str | None = None,
    force: bool = False,
    progress: bool = False,
) -> Plan[int]:
    """Look.

    Parameters
    ----------
    depth : --depth, -d N
        How deep.
    after_s : --after TIME
        When.
    names : --name NAME
        What for; repeatable.
    share_percent : --share PERCENT
        How much.
    free_percent : --free PERCENT
        What to leave.
    way : --way left|right
        Where.
    """
    asked = {"depth": depth, "names": names, "after_s": after_s, "share_percent": share_percent}
    return Plan("look", "looking", (), lambda: None, lambda *_: asked | {"free_percent": free_percent, "way": way})


def app_of(seen):
    def conduct(call: StudyCall, extra: int = 0, *, common: Study) -> None:
        """Look here.

        Parameters
        ----------
        extra : --extra
            More.
        """
        seen.append((call.arguments, call.plan(way="right").study(None, None), extra))

    app = typer.Typer()
    app.command()(as_command(made_from(look, Study, before={"extra": "share_percent"}, depth=3)(conduct)))
    return app


def arguments(*typed):
    seen = []
    app_of(seen)(list(typed), standalone_mode=False)
    return seen[0]


def test_quantities_are_read_in_the_units_of_the_names():
    typed = ["--after", "250 ms", "--share", "90", "--free", "30 %", "--name", "a", "--name", "b", "--way", "left"]
    found, planned, extra = arguments(*typed, "--extra", "2", "-o", "here", "-j", "4")
    asked = {"depth": 3, "names": ["a", "b"], "after_s": 0.25, "share_percent": 90.0, "free_percent": 30.0}
    assert found == asked | {"way": "left", "directory": found["directory"], "force": False, "jobs": 4}
    assert str(found["directory"]) == "here"
    assert (planned, extra) == (asked | {"way": "right"}, 2)


def test_what_is_not_given_is_left_to_the_function():
    found, planned, _ = arguments()
    assert "names" not in found
    defaults = {"depth": 3, "names": (), "after_s": 1.5, "share_percent": 95.0, "free_percent": None}
    assert planned == defaults | {"way": "right"}


def test_a_mistake_names_the_option():
    with pytest.raises(UsageError, match=r"^--after: "):
        arguments("--after", "1 apple")


def test_the_help_has_the_order_of_the_docstring_and_own_options_in_their_places():
    command = typer.main.get_command(app_of([]))
    assert [each.opts[0] for each in command.params[:7]] == [
        *("--depth", "--after", "--name", "--extra", "--share", "--free", "--way")
    ]
    assert {each.opts[0]: str(each.default) for each in command.params[:7]}["--after"] == "1.5 s"


def test_a_function_shows_its_answer_and_no_plan():
    assert inspect.signature(vftsim.sensitivity).return_annotation == "Sensitivity"
    assert vftsim.sensitivity.__annotations__["return"] == "Sensitivity"


def test_what_a_command_asks_of_a_study_its_function_can_be_asked():
    """Beside its study a command has options for what is written and shown, and for shares of a study."""
    from importlib import import_module
    from pkgutil import iter_modules

    from vftsim.cli import commands

    beside = {"call", "common", "output", "as_json", "dry_run", "gen_config", "shard"}
    found = set()
    for each in iter_modules(commands.__path__):
        command = getattr(import_module(f"{commands.__name__}.{each.name}"), each.name)
        if hasattr(command, "__wrapped__"):
            found |= set(inspect.signature(command.__wrapped__).parameters)
    assert found == beside
