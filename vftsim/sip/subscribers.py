"""Pools of subscribers: registered, unregistered, and those busy in an attempt."""

from __future__ import annotations

from collections.abc import Iterable

from vftsim.errors import ConservationError


class Subscribers:
    """Who is free to take part in an attempt.

    A subscriber in an attempt is in neither pool; drawing one takes it out, :meth:`release` puts it back.
    Memory is one machine word for each subscriber.

    Parameters
    ----------
    count : int
        Provisioned subscribers.
    registered : int
        How many of them are registered at first.
    """

    def __init__(self, count: int, registered: int) -> None:
        self.count = count
        self.registered = list(range(registered))
        self.unregistered = list(range(count - 1, registered - 1, -1))

    def take(self, registered: bool, choice: float) -> int:
        """Take a free subscriber; ``choice`` in [0, 1) picks it.  Returns -1 if there is none."""
        pool = self.registered if registered else self.unregistered
        if not pool:
            return -1
        position = int(choice * len(pool))
        pool[position], pool[-1] = pool[-1], pool[position]
        return pool.pop()

    def release(self, subscriber: int, registered: bool) -> None:
        """The attempt is over."""
        (self.registered if registered else self.unregistered).append(subscriber)

    def check(self, busy: Iterable[int]) -> None:
        """Every subscriber is in exactly one place."""
        everyone = sorted([*self.registered, *self.unregistered, *busy])
        if everyone != list(range(self.count)):
            raise ConservationError("a subscriber is lost or in two places")
