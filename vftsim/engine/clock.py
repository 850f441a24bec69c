"""Simulated time: a SimPy environment in integer nanoseconds with a stated order of simultaneous events.

Events at the same instant happen in the order of (kind, entity), whatever the order in which they
were planned: commensurate timers (30 ms slices, 20 ms packets) coincide by construction, and
insertion order differs between engines.  SimPy's integer ``priority`` carries the pair.  Events of
equal (time, kind, entity) keep their order of planning.

Model parts see this class only, never SimPy itself, so that another kernel can take its place.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from enum import IntEnum
from typing import Any

import simpy
from simpy.events import Event

_ENTITY_BITS = 40
_BEFORE_ALL = -1


class EventKind(IntEnum):
    """What happens at an instant, in the order in which simultaneous events take effect."""

    CPU = 0  # a piece of CPU work ends
    SLICE = 1  # a scheduler's slice or rate limit ends
    TICK = 2  # a scheduler's tick
    ACCOUNTING = 3  # a scheduler's accounting or replenishment
    CHANNEL = 4  # a log entry, an acknowledgement or a checkpoint arrives
    DELIVERY = 5  # a packet reaches the far end of a link
    DEVICE = 6  # an interrupt coalescing timer, a disk completion
    TIMER = 7  # a protocol or application timer
    ARRIVAL = 8  # a sample of the time before is taken, then the workload starts something
    CONTROL = 9  # a fault, the benchmark manager


class Alarm(Event):
    """One planned event; :meth:`cancel` makes it a no-op that leaves the heap when its time comes."""

    def __init__(self, environment: simpy.Environment, action: Callable[[Any], None], argument: Any) -> None:
        self.env = environment
        self.callbacks = [_fire]
        self._ok = True
        self._value = None
        self.action: Callable[[Any], None] | None = action
        self.argument = argument

    def cancel(self) -> None:
        """Forget the action; harmless when it has already happened."""
        self.action = None
        self.argument = None


def _fire(alarm: Any) -> None:
    action = alarm.action
    if action is not None:
        alarm.action = None
        action(alarm.argument)


class Clock:
    """Simulated time in integer nanoseconds from 0."""

    def __init__(self) -> None:
        # Typed Any: SimPy's stubs know three priorities and float times, its code any integer.
        self._environment: Any = simpy.Environment(initial_time=0)
        self.events = 0

    @property
    def now_ns(self) -> int:
        """Current simulated time."""
        now_ns: int = self._environment._now  # the property of SimPy costs twice as much
        return now_ns

    def at(
        self, time_ns: int, kind: EventKind, entity: int, action: Callable[[Any], None], argument: Any = None
    ) -> Alarm:
        """Plan ``action(argument)`` at ``time_ns``; ``entity`` (>= 0) orders events of one kind at one instant."""
        environment = self._environment
        delay_ns = time_ns - environment._now
        if delay_ns < 0:
            raise ValueError(f"cannot plan for {time_ns} ns: it is {environment._now} ns already")
        alarm = Alarm(environment, action, argument)
        self.events += 1
        environment.schedule(alarm, (kind << _ENTITY_BITS) | entity, delay_ns)
        return alarm

    def after(
        self, delay_ns: int, kind: EventKind, entity: int, action: Callable[[Any], None], argument: Any = None
    ) -> Alarm:
        """Plan ``action(argument)`` ``delay_ns`` from now."""
        if delay_ns < 0:
            raise ValueError(f"cannot plan {-delay_ns} ns ago")
        environment = self._environment
        alarm = Alarm(environment, action, argument)
        self.events += 1
        environment.schedule(alarm, (kind << _ENTITY_BITS) | entity, delay_ns)
        return alarm

    def wait(self, delay_ns: int, kind: EventKind, entity: int) -> Event:
        """Event for a process to yield: ``delay_ns`` from now, ordered like every other event."""
        event = Event(self._environment)
        event._ok = True
        event._value = None
        self.events += 1
        self._environment.schedule(event, (kind << _ENTITY_BITS) | entity, delay_ns)
        return event

    def process(self, generator: Generator[Event, Any, Any]) -> simpy.Process:
        """Start a SimPy process; it should yield events of :meth:`wait`."""
        process: simpy.Process = self._environment.process(generator)
        return process

    def run(self, until_ns: int | None = None) -> None:
        """Run to ``until_ns`` (events at that instant not included) or until nothing is planned."""
        if until_ns is None:
            self._environment.run()
        elif until_ns > self.now_ns:
            # SimPy's own stop event would come after CPU events of entity 0 at that instant.
            stop = Event(self._environment)
            stop._ok = True
            stop._value = None
            self._environment.schedule(stop, _BEFORE_ALL, until_ns - self.now_ns)
            self._environment.run(until=stop)
