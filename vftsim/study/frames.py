"""Tables of results; pandas is imported when the first is made, for no simulation needs it to begin."""

# ruff: noqa: PLC0415 - that is what this module is for

from __future__ import annotations

import importlib
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
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


def import_meanwhile() -> None:
    """Import pandas while this process waits for its workers, who need long to begin.

    In a thread, for an interruption must find the main one where joblib waits: only there does it end what it began.
    """
    if "pandas" not in sys.modules:
        threading.Thread(target=_import_quietly, args=("pandas",)).start()


def _import_quietly(name: str) -> None:
    """Import a module early; what fails here, as where the process ends meanwhile, fails where it is needed."""
    with suppress(Exception):
        importlib.import_module(name)
