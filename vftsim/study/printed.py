"""Results that print themselves: ``print(result)`` shows what the command would."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO


class Printed:
    """Base of results with tables for people."""

    def print_tables(self) -> None:
        """Print everything for people."""
        raise TypeError(f"{type(self).__name__} must say how to print itself")

    def __str__(self) -> str:
        with redirect_stdout(StringIO()) as text:
            self.print_tables()
        return text.getvalue()
