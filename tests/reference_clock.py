"""A clock for systems that are written a second time: what happens at one instant, in the order of the model's page.

Work ends first, then packets arrive, then devices and timers go off, then workloads begin something.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

MS, S = 1_000_000, 1_000_000_000
WORK, DELIVERY, DEVICE, TIMER, ARRIVAL = range(5)


class Clock:
    """What is to happen, by time, kind, entity and order of planning."""

    def __init__(self) -> None:
        self.now_ns = 0
        self._events: list[tuple[int, int, int, int, Callable[[], None]]] = []
        self._serial = itertools.count()

    def at(self, time_ns: int, kind: int, entity: int, action: Callable[[], None]) -> None:
        heapq.heappush(self._events, (time_ns, kind, entity, next(self._serial), action))

    def run(self, until_ns: int) -> None:
        while self._events and self._events[0][0] < until_ns:
            self.now_ns, *_, action = heapq.heappop(self._events)
            action()


class Timer:
    """An action at a time that may be moved or given up."""

    def __init__(self, clock: Clock, action: Callable[[], None], entity: int = 0) -> None:
        self._clock, self._action, self._entity, self._serial = clock, action, entity, 0
        self.is_set = False

    def set(self, wait_ns: int) -> None:
        self._serial += 1
        self.is_set, serial = True, self._serial
        self._clock.at(self._clock.now_ns + wait_ns, TIMER, self._entity, lambda: self._due(serial))

    def stop(self) -> None:
        self._serial += 1
        self.is_set = False

    def _due(self, serial: int) -> None:
        if self.is_set and serial == self._serial:
            self.is_set = False
            self._action()
