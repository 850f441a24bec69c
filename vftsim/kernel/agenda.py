"""What the driver does at an instant of a run, in the order of all events: phases, judgements, readings.

A run pauses between two events when the model sets ``sim.wants_input``; an :class:`Agenda` uses that to have something
done right after an event of its own, or of the model's (:func:`tell`).
"""

from collections.abc import Callable

from vftsim.kernel.declare import Sim, Table, event
from vftsim.kernel.engine import Engine
from vftsim.kernel.record import Record


class Due(Record):
    """The item of the agenda that is due after this event; 0: none."""

    number: int


agenda_due = Table("agenda_due", Due, 1, is_fixed=True)


def make_due(sim: Sim, item: int) -> None:
    """Have the driver do an item of its agenda after this event; one at most for an event."""
    agenda_due(sim)[0].number = item
    sim.wants_input = True


on_due = event(make_due)


class Agenda:
    """Actions of one run's driver."""

    ACTIONS = (on_due,)
    """What the driver refers to: for :func:`~vftsim.kernel.link`."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._items: list[Callable[[], None]] = []

    def add(self, action: Callable[[], None]) -> int:
        """Add an item; return its number for :func:`tell`."""
        self._items.append(action)
        return len(self._items)

    def at(self, time_ns: int, kind: int, entity: int, item: int) -> None:
        """Plan an item."""
        self.engine.at(time_ns, kind, entity, self.engine.number(on_due), item)

    def serve(self) -> None:
        """Do what is due; for an engine's ``on_input``."""
        due = self.engine.rows(agenda_due)[0]
        item = int(due.number)
        if item:
            due.number = 0
            self._items[item - 1]()
