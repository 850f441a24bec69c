"""Units of measured columns, and the one unit of each dimension that observations are in.

Observations are in ms, /s, %, MB, Mbit/s and counts, whatever a table is in.  Prefixes follow SI and IEC 80000-13
(k = 1000, Ki = 1024).
"""

from __future__ import annotations

from typing import Literal, get_args

Unit = Literal[
    "ns",
    "us",
    "ms",
    "s",
    "min",
    "/s",
    "/min",
    "/h",
    "%",
    "ratio",
    "B",
    "kB",
    "MB",
    "GB",
    "KiB",
    "MiB",
    "GiB",
    "bit/s",
    "kbit/s",
    "Mbit/s",
    "Gbit/s",
    "count",
]

UNITS: tuple[str, ...] = get_args(Unit)

_SIZES: dict[str, tuple[str, float]] = {
    "ns": ("ms", 1e-6),
    "us": ("ms", 1e-3),
    "ms": ("ms", 1.0),
    "s": ("ms", 1e3),
    "min": ("ms", 6e4),
    "/s": ("/s", 1.0),
    "/min": ("/s", 1 / 60),
    "/h": ("/s", 1 / 3600),
    "%": ("%", 1.0),
    "ratio": ("%", 100.0),
    "B": ("MB", 1e-6),
    "kB": ("MB", 1e-3),
    "MB": ("MB", 1.0),
    "GB": ("MB", 1e3),
    "KiB": ("MB", 2**10 / 1e6),
    "MiB": ("MB", 2**20 / 1e6),
    "GiB": ("MB", 2**30 / 1e6),
    "bit/s": ("Mbit/s", 1e-6),
    "kbit/s": ("Mbit/s", 1e-3),
    "Mbit/s": ("Mbit/s", 1.0),
    "Gbit/s": ("Mbit/s", 1e3),
    "count": ("count", 1.0),
}


def observed_unit(unit: str) -> str:
    """Return the unit of observations of the dimension that ``unit`` belongs to."""
    return _SIZES[unit][0]


def observed(value: float, unit: str) -> float:
    """Return a value in the unit of observations."""
    return value * _SIZES[unit][1]
