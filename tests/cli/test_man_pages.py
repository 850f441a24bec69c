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
