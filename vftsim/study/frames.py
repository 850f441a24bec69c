"""Tables of results; pandas is imported when the first is made, for no simulation needs it to begin."""

# ruff: noqa: PLC0415 - that is what this module is for

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd


def frame(rows: Any = None, columns: list[str] | None = None) -> pd.DataFrame:
    """Return a table of rows, or of columns by name; without either an empty one."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def joined(frames: Iterable[pd.DataFrame]) -> pd.DataFrame:
    """Return the rows of all tables in one."""
    import pandas as pd

    return pd.concat(frames, ignore_index=True)
