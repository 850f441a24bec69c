"""Instants at which the driver looks at a running model: the end of a warm-up, samples.

A pause takes place with the events of its instant, last among them but for faults and managers, and changes nothing.
"""

from collections.abc import Callable

from vftsim.kernel import Engine, EventKind, Record, Sim, Table, at, event


class Pause(Record):
    """One instant, or one every ``every_ns`` before ``until_ns``; ``entity`` orders those of one instant."""

    entity: int
    every_ns: int
    until_ns: int
    is_due: bool


pauses = Table("pauses", Pause, 4096)


@event
def on_pause(sim: Sim, pause_row: int) -> None:
    """Have the driver called after this event."""
    pause = pauses(sim)[pause_row]
    pause.is_due = True
    sim.wants_input = True
    if pause.every_ns > 0 and sim.now_ns + pause.every_ns < pause.until_ns:
        at(sim, sim.now_ns + pause.every_ns, EventKind.CONTROL, pause.entity, on_pause, pause_row)


ACTIONS = (on_pause,)
TABLES = (pauses,)


class Pauses:
    """The pauses of one engine, whose ``on_input`` must call :meth:`look`."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._callbacks: dict[int, Callable[[], None]] = {}

    def add(
        self, time_ns: int, entity: int, callback: Callable[[], None], every_ns: int = 0, until_ns: int = 0
    ) -> None:
        """Call ``callback`` at ``time_ns``, and then every ``every_ns`` before ``until_ns``."""
        row, _ = self._engine.add(pauses, entity=entity, every_ns=every_ns, until_ns=until_ns)
        self._callbacks[row] = callback
        self._engine.at(time_ns, EventKind.CONTROL, entity, self._engine.number(on_pause), row)

    def call_due(self) -> None:
        """Call whoever wanted to be called at this instant."""
        for row, callback in self._callbacks.items():
            pause = self._engine.rows(pauses)[row]
            if pause.is_due:
                pause.is_due = False
                callback()
