"""What commands print: rich tables for people, JSON or CSV for programs."""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

import json
import math
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vftsim.report.blocks import Block

_PIPE_WIDTH = 120
_WIDEST = 1000


def print_json(data: Any) -> None:
    """Print one JSON document."""
    from vftsim.study.files import to_json

    text = to_json(data)
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "utf-8")
    except UnicodeEncodeError:  # the reader of a document must get what was meant
        text = json.dumps(json.loads(text), indent=2)
    print(text)


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], caption: str = "", texts: int = 1
) -> None:
    """Print a table; the first columns are text, the others are figures."""
    from rich import box
    from rich.table import Table

    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for number, column in enumerate(columns):
        is_text = number < texts
        table.add_column(column, justify="left" if is_text else "right", no_wrap=not is_text, header_style="")
    for row in rows:
        table.add_row(*row)
    console = _console()
    # A terminal too narrow wraps lines; figures are never cut.
    wide = console.measure(table, options=console.options.update(width=_WIDEST)).maximum
    console.width = max(console.width, wide)
    console.print(table)
    if caption:
        console.print(caption, style="dim", soft_wrap=True)


def print_text(text: str) -> None:
    """Print a line for people."""
    _console().print(text, soft_wrap=True, highlight=False, markup=False)


def print_blocks(blocks: Sequence[Block]) -> None:
    """Print blocks in the terminal's width; on a pipe in that of a terminal of 80 columns."""
    from vftsim.report.terminal import as_text

    print(as_text(blocks, shutil.get_terminal_size().columns))


def error_bar(estimate: float, low: float, high: float, interval: str = "") -> str:
    """Return a figure with its interval, digits cut at the error's second.

    Of a ``range``, lowest and highest run in round brackets; without either, just the figure.
    """
    from vftsim.stats import Estimate

    if not math.isfinite(high - low) or low == high:
        return f"{estimate:.4g}"
    if interval == "range":
        return f"{estimate:.4g} ({low:.4g} to {high:.4g})"
    half = (high - low) / 2.0
    text = str(Estimate(estimate, half, low, high, 1, 0.95, "t"))
    return text.rpartition(" (")[0].replace("+-", "±")


def _console() -> Any:
    from rich.console import Console

    # On a pipe there is no width to fit: tables keep their columns.
    return Console(width=None if sys.stdout.isatty() else _PIPE_WIDTH)
