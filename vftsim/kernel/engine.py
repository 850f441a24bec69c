"""What the two engines have in common: a linked kernel with its state, and how a driver runs it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from vftsim.errors import RunFailure
from vftsim.kernel.declare import Action, Entry, Kind, Table
from vftsim.kernel.emit import failure_message
from vftsim.kernel.link import Linked

FOREVER_NS = 1 << 62
MOST_EVENTS = 1 << 21
"""Planned at one time: more that take place at one instant come from each other."""


class Engine(ABC):
    """A kernel ready to run one replication.

    Parameters
    ----------
    on_input : callable, optional
        Called whenever the model asks for more pre-drawn numbers or has filled a log.
    """

    name: str
    most_at_once = MOST_EVENTS

    def __init__(self, linked: Linked, on_input: Callable[[], None] | None = None) -> None:
        self.linked = linked
        self.on_input = on_input

    @property
    @abstractmethod
    def sim(self) -> Any:
        """The state."""

    @abstractmethod
    def rows(self, table: Table[Any]) -> Sequence[Any]:
        """Return a table's rows, to be read and set up.

        Raises
        ------
        LinkError
            If no function of the kernel names the table.
        """

    @abstractmethod
    def new(self, table: Table[Any]) -> int:
        """Take a row of a table."""

    @abstractmethod
    def call(self, entry: Entry, a: int = 0, b: int = 0) -> int:
        """Call an entry."""

    @abstractmethod
    def at(self, time_ns: int, kind: int, entity: int, action: int, target: int) -> int:
        """Plan an event from outside."""

    @abstractmethod
    def run(self, until_ns: int = FOREVER_NS, most_events: int = FOREVER_NS) -> None:
        """Run to an instant (its events not included), until nothing is planned, or for so many events in all."""

    def used(self, table: Table[Any]) -> int:
        """Return the highest row taken so far."""
        return int(getattr(self.sim, f"{table.name}_used"))

    def add(self, table: Table[Any], **values: Any) -> tuple[int, Any]:
        """Take a row and set fields; return its number and the row."""
        number = self.new(table)
        self.check()
        row = self.rows(table)[number]
        for name, value in values.items():
            setattr(row, name, value)
        return number, row

    def number(self, declared: Action | Entry | Kind | Any) -> int:
        """Return the number by which records know a callback or a kind."""
        return self.linked.number(declared)

    def check(self) -> None:
        """Raise :class:`~vftsim.errors.RunFailure` if the run has failed."""
        failure = int(self.sim.failure)
        if failure:
            raise RunFailure(failure_message(self.linked, failure))

    def refuse_standing(self, events: int) -> None:
        """Raise :class:`~vftsim.errors.RunFailure` where so many events, since time went on last, say it never will."""
        if events >= self.most_at_once:
            raise RunFailure(
                f"time stands still at {self.now_ns / 1e9:.9g} s: {events} events in a row took none; let something of "
                "what goes round there take time (latency, turn-around, service, CPU work)"
            )

    def too_late(self) -> RunFailure:
        """Return why an event cannot be planned for an earlier instant than this one."""
        return RunFailure(
            f"at {self.now_ns / 1e9:.9g} s an event was planned for a time that has passed; plan it for sim.now_ns or "
            "later"
        )

    @property
    def now_ns(self) -> int:
        """Simulated time."""
        return int(self.sim.now_ns)

    @property
    def events(self) -> int:
        """Events that have taken place."""
        return int(self.sim.events)


class RewindableEngine(Engine):
    """An engine that can go back to a state it had."""

    @abstractmethod
    def save(self) -> Any:
        """Return the whole state between two events."""

    @abstractmethod
    def restore(self, saved: Any) -> None:
        """Go back to a state that :meth:`save` has returned."""
