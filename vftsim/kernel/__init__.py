"""How a model runs: records, the event queue, linking, and the two engines."""

from typing import Annotated

from vftsim.kernel.choose import ENGINE_NAMES, EngineWarning, make_engine
from vftsim.kernel.declare import (
    BESIDE,
    Action,
    Chain,
    Entry,
    Failure,
    Family,
    Fifo,
    Kind,
    Sim,
    Sort,
    Table,
    at,
    entry,
    event,
    fail,
    is_due_before,
    timer,
    watch,
)
from vftsim.kernel.engine import FOREVER_NS, Engine
from vftsim.kernel.link import Linked, LinkError, link
from vftsim.kernel.order import EventKind
from vftsim.kernel.record import Record, Row

__all__ = [
    "BESIDE",
    "ENGINE_NAMES",
    "FOREVER_NS",
    "Action",
    "Annotated",
    "Chain",
    "Engine",
    "EngineWarning",
    "Entry",
    "EventKind",
    "Failure",
    "Family",
    "Fifo",
    "Kind",
    "LinkError",
    "Linked",
    "Record",
    "Row",
    "Sim",
    "Sort",
    "Table",
    "at",
    "entry",
    "event",
    "fail",
    "is_due_before",
    "link",
    "make_engine",
    "timer",
    "watch",
]
