"""Model files: what every part of a model may say, how it is read, and what is said when it is wrong.

This room knows nothing of particular parts; see :mod:`vftsim.spec.base` for writing a spec,
:mod:`vftsim.spec.registry` for adding a part, :mod:`vftsim.spec.units` for quantities.
"""

from vftsim.spec.base import Items, Spec
from vftsim.spec.loader import Document, load, read_document
from vftsim.spec.registry import OneOf, PartRegistry, discover
from vftsim.spec.schema import json_schema
from vftsim.spec.shipped import Room, find, list_shipped, shipped_dir
from vftsim.spec.units import (
    BYTE_COUNT,
    DURATION,
    PERCENT,
    RATE,
    BitRate,
    ByteCount,
    ByteRate,
    DurationNs,
    Percent,
    PeriodNs,
    PositiveDurationNs,
    Quantity,
    RatePerSecond,
    format_duration,
)

__all__ = [
    "BYTE_COUNT",
    "DURATION",
    "PERCENT",
    "RATE",
    "BitRate",
    "ByteCount",
    "ByteRate",
    "Document",
    "DurationNs",
    "Items",
    "OneOf",
    "PartRegistry",
    "Percent",
    "PeriodNs",
    "PositiveDurationNs",
    "Quantity",
    "RatePerSecond",
    "Room",
    "Spec",
    "discover",
    "find",
    "format_duration",
    "json_schema",
    "list_shipped",
    "load",
    "read_document",
    "shipped_dir",
]
