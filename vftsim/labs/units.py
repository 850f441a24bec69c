"""Units of measured columns, and the one unit of each dimension that observations are in.

Observations are in ms, /s, %, MB, Mbit/s and counts, whatever a table is in.  Prefixes follow SI and IEC 80000-13
(k = 1000, Ki = 1024).
"""

from typing import Literal

Time = Literal["ns", "us", "ms", "s", "min"]
Rate = Literal["/s", "/min", "/h"]
Size = Literal["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"]
Throughput = Literal["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]
Unit = Literal[Time, Rate, "%", "ratio", Size, Throughput, "count"]

_SIZES: dict[str, dict[str, float]] = {
    "ms": {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3, "min": 6e4},
    "/s": {"/s": 1.0, "/min": 1 / 60, "/h": 1 / 3600},
    "%": {"%": 1.0, "ratio": 100.0},
    "MB": {"B": 1e-6, "kB": 1e-3, "MB": 1.0, "GB": 1e3, "KiB": 2**10 / 1e6, "MiB": 2**20 / 1e6, "GiB": 2**30 / 1e6},
    "Mbit/s": {"bit/s": 1e-6, "kbit/s": 1e-3, "Mbit/s": 1.0, "Gbit/s": 1e3},
    "count": {"count": 1.0},
}


def observed_unit(unit: str) -> str:
    """Return the unit of observations of the dimension that ``unit`` belongs to."""
    return next(base_unit for base_unit, sizes in _SIZES.items() if unit in sizes)


def observed(value: float, unit: str) -> float:
    """Return a value in the unit of observations."""
    return value * _SIZES[observed_unit(unit)][unit]
