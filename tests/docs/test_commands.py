"""Every command in the documentation is run, or, where it takes minutes, parsed against the real options.

A block that opens with ``sh`` is run; one that opens with ``sh slow`` is run too when the environment
variable VFTSIM_SLOW_DOCS is set, and otherwise only parsed.  So are commands of other blocks and in a line of text;
those with a word in capitals, which stands for something (``MODEL``), are parsed up to it.
"""

import itertools
import os
import re
import shlex
from pathlib import Path

import pytest

from vftsim.cli.main import command_line, main

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BLOCK = re.compile(r"^```sh(?P<slow> slow)?\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
CODE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)
SLOW = bool(os.environ.get("VFTSIM_SLOW_DOCS"))


def commands():
    for page in PAGES:
        if page.name == "cookbook.md":  # test_cookbook.py runs them, and looks at what they answer
            continue
        for block in BLOCK.finditer(page.read_text(encoding="utf-8")):
            for line in block["body"].replace("\\\n", " ").splitlines():
                for part in line.split("&&"):
                    words = shlex.split(part, comments=True)
                    if words and words[0].rsplit("/", 1)[-1] == "vftsim":
                        name = f"{page.relative_to(ROOT)}: {' '.join(words)}"
                        yield pytest.param(words[1:], bool(block["slow"]), id=name)


OTHER = re.compile(r"^```(?!sh)\w*\n(?P<body>.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"`(?:\$ )?(vftsim [^`\n]+)`")
STANDS_FOR = re.compile(r"[A-Z][A-Z_.]*|.*[\[\]|<…].*|\.\.\.|\$.*")


def printed():
    """Yield the words of commands that stand elsewhere, and the page; each once."""
    found = {}
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        lines = [
            line.strip() for block in OTHER.finditer(text) for line in block["body"].replace("\\\n", " ").splitlines()
        ]
        lines += INLINE.findall(CODE.sub("", text))
        for line in lines:
            if line.startswith("vftsim "):
                found.setdefault(line, page.relative_to(ROOT))
    for line, page in found.items():
        words = shlex.split(line, comments=True)[1:]
        known = [*itertools.takewhile(lambda word: not STANDS_FOR.fullmatch(word), words)]
        is_whole = len(known) == len(words) and not words[-1].startswith("-")  # a mention of an option is none
        yield pytest.param(words[: len(known)], is_whole, id=f"{page}: {line}")


@pytest.mark.parametrize(("words", "is_whole"), list(printed()))
def test_printed_command_is_one(words, is_whole):
    """Its name and options exist; one without placeholders has all that it needs."""
    if not words or words[0].startswith("-"):
        return
    command = command_line().commands[words[0]]
    options = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
    assert [word for word in words[1:] if re.match("-{1,2}[a-z]", word) and word.split("=")[0] not in options] == []
    if is_whole and len(words) > 1:
        command.make_context(words[0], list(words[1:]))


@pytest.mark.thorough
@pytest.mark.parametrize(("words", "slow"), list(commands()))
def test_command(words, slow, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    if slow and not SLOW:
        command = command_line().commands[words[0]]
        command.make_context(words[0], list(words[1:]))
    else:
        assert main([*words]) == 0, capsys.readouterr().err


def test_documentation_shows_commands():
    """The collection above must find something, or it would pass on nothing."""
    assert sum(1 for _ in commands()) >= 8


def test_links_lead_somewhere():
    """Relative links of every page point at files that exist."""
    broken = [
        f"{page.relative_to(ROOT)} -> {target}"
        for page in PAGES
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", CODE.sub("", page.read_text(encoding="utf-8")))
        if "://" not in target and not (page.parent / target).exists()
    ]
    assert not broken


def test_every_page_is_reachable_from_the_index():
    docs = ROOT / "docs"
    reached, to_read = set(), [docs / "index.md"]
    while to_read:
        page = to_read.pop()
        if page in reached:
            continue
        reached.add(page)
        targets = re.findall(r"\]\(([^)#\s]+\.md)[^)]*\)", CODE.sub("", page.read_text(encoding="utf-8")))
        to_read += [(page.parent / target).resolve() for target in targets if "://" not in target]
    assert {str(page.relative_to(docs)) for page in docs.rglob("*.md") if page not in reached} == set()


def test_the_index_names_every_page_about_a_part():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    rooms = ("protection", "workloads", "io-paths", "schedulers", "sip", "extend")
    pages = [f"{room}/{page.name}" for room in rooms for page in (ROOT / "docs" / room).glob("*.md")]
    assert [page for page in pages if f"({page})" not in index] == []
