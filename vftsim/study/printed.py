"""Results that describe themselves as blocks: ``print(result)`` shows what the command would."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO

from vftsim.report.blocks import Block


class Printed:
    """Base of results: what they say of themselves, for whoever renders it."""

    def blocks(self) -> list[Block]:
        """Return everything for people as blocks."""
        raise TypeError(f"{type(self).__name__} must say what it consists of")

    def print_tables(self) -> None:
        """Print everything for people."""
        from vftsim.report.screen import print_blocks  # noqa: PLC0415 - a result that is not printed needs none of it

        print_blocks(self.blocks())

    def __str__(self) -> str:
        with redirect_stdout(StringIO()) as text:
            self.print_tables()
        return text.getvalue()
