"""The event engine: simulated time and the order of events."""

from vftsim.engine.clock import Alarm, Clock, EventKind

__all__ = ["Alarm", "Clock", "EventKind"]
