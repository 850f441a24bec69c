"""Standard output and standard error as they are: closed, full, or without the characters that figures need.

And how a command ends: with which exit code, and what it says then.
"""

import codecs
import contextlib
import os
import sys
import warnings
from io import BufferedWriter, FileIO, TextIOWrapper
from typing import Any

from typer.exceptions import Exit

OK, OUTSIDE, USAGE, INTERRUPTED = 0, 1, 2, 3
_LONGEST_WORD = 120
_PLAIN = {"±": "+-", "µ": "u", "…": "...", "–": "-", "—": "-", "─": "-", "×": "x", "≤": "<=", "≥": ">="}
_ERRORS = "vftsim-plain"
STANDARD_OUTPUT = "standard output"


def prepare() -> None:
    """Make printing safe: what a stream cannot show is written plainly, and a closed standard error goes nowhere.

    A closed descriptor is opened on nothing first: the next file would get its number, and whatever is printed.
    Standard output that is closed stays one that cannot be written to: what was asked for would be lost.
    """
    for descriptor in (0, 1, 2):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if descriptor == 1 else os.O_RDWR)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115 - stays open as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - stays open as long as the process
    codecs.register_error(_ERRORS, _plainly)
    warnings.showwarning = _warn
    if isinstance(sys.stdout, TextIOWrapper) and sys.platform == "win32":  # a console there is no file
        sys.stdout.reconfigure(errors=_ERRORS)
    elif isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.flush()
        raw = _Output(sys.stdout.fileno(), "w", closefd=False)
        raw.instead_of = sys.stdout
        sys.stdout = TextIOWrapper(
            BufferedWriter(raw), sys.stdout.encoding, _ERRORS, line_buffering=sys.stdout.line_buffering
        )


class _Output(FileIO):
    """Standard output, whose errors say what they are about; those of files carry the name of their file."""

    instead_of: TextIOWrapper
    """What stood there: forgotten, it would close the descriptor."""

    def write(self, data: Any, /) -> Any:
        try:
            return super().write(data)
        except OSError as error:
            error.filename = STANDARD_OUTPUT
            raise


_warn_by_place = warnings.showwarning


def _warn(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Say what we warn Python code of as all else is said; a library's warning is a bug, and keeps its place."""
    if category.__module__.startswith("vftsim."):
        say(f"{message}")
    else:
        _warn_by_place(message, category, *place, **more)


def _plainly(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return "".join(_PLAIN.get(c, "?") for c in error.object[error.start : error.end]), error.end


def say(text: str) -> None:
    """Say a line on standard error, under our name; where that cannot be written there is nobody to tell."""
    with contextlib.suppress(OSError):
        print(f"vftsim: {text}", file=sys.stderr, flush=True)


def stopped(message: str, code: int) -> int:
    """Say why a command ends; return its exit code."""
    say(" ".join(_shortened(word) for word in message.split()))
    return code


def _shortened(word: str) -> str:
    """Return a word of a message; of one that is absurdly long, its two ends."""
    return word if len(word) <= _LONGEST_WORD else f"{word[: _LONGEST_WORD // 2]}...{word[-_LONGEST_WORD // 2 :]}"


def interrupted(what_is_kept: str) -> Exit:
    """Return what a command raises after it has shown what an interrupted study had by then."""
    return Exit(stopped(f"interrupted; {what_is_kept}", INTERRUPTED))


def abandon_output() -> None:
    """Send what is still to be written to standard output nowhere: the interpreter would complain at its end."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
