"""Manual pages: one for each command, with all its options and examples, and roff that groff has nothing to say of."""

import re
import shutil
import subprocess

import pytest

import man_pages
from vftsim.cli.examples import EXAMPLES
from vftsim.cli.main import command_line

PAGES = man_pages.pages()
COMMANDS = command_line().commands


def plain(page: str) -> str:
    return re.sub(r"\\f[BR]", "", page).replace(r"\-", "-").replace(r"\(aq", "'").replace(r"\e", "\\")


def test_the_first_page_names_every_command() -> None:
    assert set(PAGES) == {"vftsim.1", *(f"vftsim-{name}.1" for name in COMMANDS)}
    assert set(re.findall(r"^vftsim-([\w-]+)\(1\)$", plain(PAGES["vftsim.1"]), re.MULTILINE)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_a_page_has_every_option_and_both_examples(name: str) -> None:
    lines = plain(PAGES[f"vftsim-{name}.1"]).splitlines()
    told = {word for line in lines if line.startswith("-") for word in re.findall(r"--?[\w-]+", line)}
    assert {option for each in COMMANDS[name].params for option in each.opts if option[0] == "-"} <= told
    assert set(EXAMPLES[name]) <= set(lines)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not there")
def test_groff_sets_them_without_a_warning() -> None:
    done = subprocess.run(
        ["groff", "-man", "-Tutf8", "-ww", "-z", "-"],
        input="\n".join(PAGES.values()),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == ""


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_that_is_named_is_read_alone_and_as_it_is_among_all(name):
    """The options of the others would take a tenth of a second at each start."""
    alone = command_line(name).commands
    assert list(alone) == [name]
    one, among_all = alone[name], COMMANDS[name]
    assert (one.help, one.short_help, one.epilog) == (among_all.help, among_all.short_help, among_all.epilog)
    shown, expected = (
        [parameter.get_help_record(each.context_class(each)) or parameter.name for parameter in each.params]
        for each in (one, among_all)
    )
    assert shown == expected


def test_without_a_command_all_are_listed_and_none_is_read():
    listed = command_line("").commands
    assert list(listed) == list(COMMANDS)
    assert not any(command.params for command in listed.values())
    assert {n: each.short_help for n, each in listed.items()} == {n: each.short_help for n, each in COMMANDS.items()}
