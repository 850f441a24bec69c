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


def with_numbers(table: DataFrame) -> DataFrame:
    """Return a table whose settings are numbers where all of a column are, as pandas reads them from its file."""
    import pandas as pd

    texts = [name for name in table if pd.api.types.is_string_dtype(table[name]) and not (table[name] == "").any()]
    numbers = {str(name): pd.to_numeric(table[name], errors="coerce") for name in texts}
    return table.assign(**{name: column for name, column in numbers.items() if column.notna().all()})


CONFIDENCE = 0.95
"""Level of intervals, where nobody asks for another."""
OF_ESTIMATES = ("estimate", "low", "high", "n", "confidence", "interval")
"""Columns of an estimate."""
_OF_COUNTS = ("_n", "crashes_with_any", "of_which_known")
"""Ends of the names of columns that count: pandas takes those with a gap for floats."""
_ABOUT = {"unit", "point", "group", "crashes", "of_which_known"}
"""Columns before an estimate that do not name the figure, but follow from it."""


def as_dataset(table: DataFrame) -> Dataset:
    """Return a table of estimates as a dataset of xarray, over the columns that name them; refuse any other table.

    What names an estimate stands before it; behind it stands what else is known of it.  Each axis has the order of the
    table.
    """
    columns = [*table]
    if "estimate" not in columns:
        raise UsageError(f"no figures with intervals here; the table has {', '.join(map(str, columns))}")
    names = [name for name in columns[: columns.index("estimate")] if name not in _ABOUT]
    if table.duplicated(names).any():
        raise UsageError("several points have the same settings, so that none names one; to_pandas() has them all")
    if not table.duplicated(fewer := [name for name in names if name != "phase"]).any():
        names = fewer  # which the name of each figure holds
    named = table.fillna(dict.fromkeys(names, ""))
    return named.set_index(names).to_xarray().reindex({name: [*dict.fromkeys(named[name])] for name in names})


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


def interval_columns(name: str, estimate: Estimate | None) -> dict[str, float | None]:
    """Return an estimate as ``NAME``, ``NAME_low`` and ``NAME_high``, beside others of the same row; None for none."""
    values = (estimate.mean, estimate.low, estimate.high) if estimate else (None,) * 3
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def rows(table: DataFrame) -> list[dict[str, Any]]:
    """Return a table as plain rows; empty cells are None."""
    plain = table.astype(object).where(table.notna(), None).to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in plain]


def csv_text(table: DataFrame) -> str:
    """Return a table as CSV, every float with all its digits; counts that some rows lack stay whole numbers.

    What never comes is empty, as ``null`` is what JSON has for it.
    """
    floats = table.select_dtypes(float)
    counts = [name for name in floats if f"_{name}".endswith(_OF_COUNTS) and (floats[name].dropna() % 1 == 0).all()]
    endless = floats.columns[(abs(floats.to_numpy()) == math.inf).any(axis=0)]
    # Column by column: what takes a whole table takes seconds for one of two thousand columns.
    finite = {str(name): table[name].where(table[name].abs() != math.inf) for name in endless}
    whole = {str(name): table[name].astype("Int64") for name in counts}
    return str(table.assign(**finite, **whole).to_csv(index=False, lineterminator="\n"))
