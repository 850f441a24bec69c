"""Manual pages from the help of the commands; the build puts them into the wheel (``hatch_build.py``).

python man_pages.py DIR     # writes vftsim.1, vftsim-run.1, ...
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from typer import Context

from vftsim._version import __version__
from vftsim.cli.examples import EXAMPLES
from vftsim.cli.main import EPILOG, command_line


def pages() -> dict[str, str]:
    """Return every page by its file name."""
    group = command_line()
    found = {"vftsim.1": "\n".join([*_head("vftsim", group.help), *_commands(group), *_tail()])}
    for name, command in group.commands.items():
        lines = [*_head(f"vftsim-{name}", command.help, command), *_options(command), *_examples(name), *_tail()]
        found[f"vftsim-{name}.1"] = "\n".join(lines)
    return found


def write(folder: Path) -> list[Path]:
    """Write the pages into a folder; return them."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in pages().items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return sorted(folder.glob("*.1"))


def _head(name: str, said: str, command: Any = None) -> Iterator[str]:
    paragraphs = [" ".join(text.split()) for text in said.split("\n\n")]
    yield f'.TH {name.upper()} 1 "" "vftsim {__version__}" "vftsim"'
    yield ".ad l"
    yield from (".SH NAME", rf"{_text(name)} \- {_text(paragraphs[0].rstrip('.'))}", ".SH SYNOPSIS")
    words = ["COMMAND", "..."] if command is None else command.collect_usage_pieces(Context(command))
    yield rf"\fB{_text(name.replace('-', ' ', 1))}\fR {_text(' '.join(words))}"
    yield ".SH DESCRIPTION"
    for text in paragraphs:
        yield from (".PP", _text(text))


def _commands(group: Any) -> Iterator[str]:
    yield ".SH COMMANDS"
    for name, command in group.commands.items():
        yield from (".TP", rf"\fBvftsim\-{_text(name)}\fR(1)", _text(command.short_help))


def _options(command: Any) -> Iterator[str]:
    yield ".SH OPTIONS"
    context = Context(command)
    for parameter in command.get_params(context):
        if record := parameter.get_help_record(context):
            yield from (".TP", rf"\fB{_text(record[0])}\fR", _text(record[1]))


def _examples(name: str) -> Iterator[str]:
    yield ".SH EXAMPLES"
    for example in EXAMPLES.get(name, ()):
        yield from (".PP", ".nf", _text(example), ".fi")


def _tail() -> Iterator[str]:
    yield from (".SH EXIT STATUS", _text(EPILOG.removeprefix("Exit codes: ")), ".SH SEE ALSO", r"\fBvftsim\fR(1)")


def _text(text: str) -> str:
    """Return text as roff has it: its own signs escaped, no line that it would take for a request."""
    words = " ".join(text.split()).replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq")
    return rf"\&{words}" if words.startswith((".", "'")) else words


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        print(path)
