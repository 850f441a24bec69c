"""What commands print: rich tables for people, JSON or CSV for programs."""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vftsim.report.blocks import Block

_PIPE_WIDTH = 120


def print_json(data: Any) -> None:
    from vftsim.files import to_json

    text = to_json(data)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # the reader of a document must get what was meant
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", texts: int = 1
) -> None:
    """Print a table in the terminal's width; the first columns are text, the others are figures."""
    from vftsim.report.blocks import Table

    print_blocks([Table(columns, list(rows), title, caption, texts)])


def print_text(text: str) -> None:
    from rich.console import Console

    # On a pipe there is no width to fit.
    console = Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
    console.print(text, soft_wrap=True, highlight=False, markup=False)


def print_blocks(blocks: Sequence[Block]) -> None:
    """Print blocks in the terminal's width; on a pipe in that of a terminal of 80 columns."""
    from vftsim.report.terminal import as_text

    print(as_text(blocks, shutil.get_terminal_size().columns))
