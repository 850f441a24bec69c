"""Tables of results; pandas is imported when the first is made, for no simulation needs it to begin."""

# ruff: noqa: PLC0415 - that is what this module is for

from __future__ import annotations

import importlib
import math
import sys
import threading
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from vftsim.errors import UsageError

if TYPE_CHECKING:
    from pandas import DataFrame as DataFrame  # noqa: PLC0414 - others import it from here
    from xarray import Dataset

    from vftsim.stats import Estimate
else:
    DataFrame = Any  # a name for annotations


def frame(rows: Any = None, columns: list[str] | None = None) -> DataFrame:
    """Return a table of rows, or of columns by name; without either an empty one."""
    import pandas as pd

    return pd.DataFrame(rows, columns=columns)


def joined(frames: Iterable[DataFrame]) -> DataFrame:
    """Return the rows of all tables in one."""
    import pandas as pd

    return pd.concat(frames, ignore_index=True)


def import_meanwhile() -> None:
    """Import pandas while this process waits for its workers, who need long to begin.

    In a thread, for an interruption must find the main one waiting for results: there it ends what it began.
    """
    if "pandas" not in sys.modules:
        threading.Thread(target=_import_quietly, args=("pandas",)).start()


def _import_quietly(name: str) -> None:
    """Import a module early; what fails here, as where the process ends meanwhile, fails where it is needed."""
    with suppress(Exception):
        importlib.import_module(name)


OF_ESTIMATES = ("estimate", "low", "high", "n", "confidence", "interval")
"""Columns of an estimate."""
_ABOUT = {"unit", "point"}
"""Columns that follow from those that name a figure."""


def as_dataset(table: DataFrame) -> Dataset:
    """Return a table of estimates as a dataset of xarray, over the columns that name them; refuse any other table."""
    values = [name for name in table if name in _ABOUT or str(name).rpartition("_")[2] in OF_ESTIMATES]
    if "estimate" not in values:
        raise UsageError(f"no figures with intervals here; the table has {', '.join(map(str, table))}")
    names = [name for name in table if name not in values]
    return table.fillna(dict.fromkeys(names, "")).set_index(names).to_xarray()


def factor_columns(values: Mapping[str, str], figures: Collection[str]) -> dict[str, str]:
    """Return the values of factors, by name, as columns of a table that has figures as columns too.

    Where a figure has a factor's name, as the measured rate of a workload has that of its setting, the factor's column
    is ``set.NAME``.
    """
    return {f"set.{name}" if name in figures else name: value for name, value in values.items()}


def estimate_columns(estimate: Estimate, prefix: str = "") -> dict[str, Any]:
    """Return an estimate as columns of a tidy table, with a prefix to their names; an interval that is none is empty.

    Where ``interval`` is ``range``, low and high are the lowest and the highest run and there is no confidence.
    """
    low, high = (x if math.isfinite(x) else math.nan for x in (estimate.low, estimate.high))
    interval: str = estimate.kind
    if estimate.half_width == 0.0 or (math.isnan(low) and math.isnan(high)):
        # One replication, or the same value in all: nothing is known about the spread.
        low, high, interval = math.nan, math.nan, "none"
    confidence = math.nan if interval in {"none", "range"} else estimate.confidence
    values = (estimate.mean, low, high, estimate.n, confidence, interval)
    return {f"{prefix}{name}": value for name, value in zip(OF_ESTIMATES, values, strict=True)}
