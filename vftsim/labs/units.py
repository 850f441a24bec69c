"""Units of measured columns, and the one unit of each dimension that observations are in.

Observations are in ms, /s, %, MB, Mbit/s and counts, whatever a table is in.  Prefixes follow SI and IEC 80000-13
(k = 1000, Ki = 1024).
"""

from typing import Literal

from vftsim.spec.units import converted

Time = Literal["ns", "us", "ms", "s", "min"]
Rate = Literal["/s", "/min", "/h"]
Size = Literal["B", "kB", "MB", "GB", "KiB", "MiB", "GiB"]
Throughput = Literal["bit/s", "kbit/s", "Mbit/s", "Gbit/s"]
Unit = Literal[Time, Rate, "%", "ratio", Size, Throughput, "count"]

_OBSERVED: tuple[Unit, ...] = ("ms", "/s", "%", "MB", "Mbit/s", "count")


def observed_unit(unit: str) -> str:
    """Return the unit of observations of the dimension that ``unit`` belongs to."""
    return "%" if unit == "ratio" else next(each for each in _OBSERVED if converted(1.0, unit, each) is not None)


def observed(value: float, unit: str) -> float:
    """Return a value in the unit of observations."""
    in_its_unit = 100.0 * value if unit == "ratio" else converted(value, unit, observed_unit(unit))
    assert in_its_unit is not None
    return in_its_unit
