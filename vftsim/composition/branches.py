"""A run that is continued from states of itself, each time with random numbers of its own, while a level is watched.

What a state is: :mod:`.saves`.  A continuation draws from the streams of its branch (:meth:`.Streams.branch_off`), and
so do feeds whose values nobody has taken yet.  What has been made of random numbers stays as it is: events that are
planned, phases and offsets, instants of faults, packets that an interface has been told of beforehand.
"""

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.composition.saves import CannotNoteError, State
from vftsim.errors import RunFailure, UsageError
from vftsim.kernel import Engine
from vftsim.kernel.engine import RewindableEngine
from vftsim.platform import levels
from vftsim.platform.io.link import links
from vftsim.platform.protection.passes import cuts_found

HELD, BACKLOG, LOST = "held", "backlog", "lost"


class _Reached(Exception):  # noqa: N818 - it ends a stretch of a run, as StopIteration does
    """The level has reached its limit."""


class Branches:
    """Continuations of one replication, watched at one of the :func:`level_names`.

    Refuses a model whose states cannot be kept here.
    """

    def __init__(self, spec: ModelSpec, seed: int, replication: int, level: str) -> None:
        self._run = run = Run(spec, seed, replication)
        self._engine: Engine = run.engine
        if not isinstance(run.engine, RewindableEngine):
            raise UsageError("rare events: only the engine 'compiled' keeps states of a run; it cannot be used here")
        self._rewindable = run.engine
        places = _places(run)
        owner, _, name = level.rpartition(".")
        kind, row = places.get(owner, (0, 0))
        of_losses = name == LOST
        if not kind or name not in (LOST, _name(kind)):
            raise UsageError(f"'{level}' is no level of this model; there are {', '.join(_names(run))}")
        levels.choose_level(self._engine, kind, row, is_of_losses=of_losses)
        run.engine.on_input = self._on_input

    @property
    def events(self) -> int:
        """Events of the run, on the way that led to its present state."""
        return self._engine.events

    @property
    def highest(self) -> int:
        """The highest level of the last stretch."""
        return int(self._engine.rows(levels.watched)[0].highest)

    def state(self) -> State:
        """Return the present state; refuse a model of which a part keeps something that cannot be read."""
        try:
            return State(self._rewindable, self)
        except CannotNoteError as error:
            raise UsageError(f"rare events: states of this model cannot be kept: a part of it holds {error}") from None

    def go_on(self, branch: int, limit: int) -> bool:
        """Go on with random numbers of a branch until the level reaches a limit; false: the run is over before.

        Refuses a run that comes to a crash that rolls a guest back.
        """
        self._run.branch_off(branch)
        for _, _, row in self._run.built.link_ends():
            # Drawn for all frames up to the next that is lost; how many have come says nothing of how many will.
            self._engine.rows(links)[row].until_lost = 0
        try:
            if self._is_watched(limit):
                return True
            self._run.go_on()
        except _Reached:
            return True
        except RunFailure:
            if cuts_found(self._engine):
                raise UsageError(
                    "rare events: a crash rolls a guest back to a state from before; leave out the fault or choose a "
                    "mechanism that does not"
                ) from None
            raise
        return False

    def _is_watched(self, limit: int) -> bool:
        """Come to where measuring begins, and watch from there; tell whether the limit is reached already."""
        run, engine = self._run, self._engine
        if not run.is_started:
            run.start()
            if not run.phased:
                engine.run(run.built.window_ns[0])
            engine.call(levels.forget_losses)
        return bool(engine.call(levels.begin_watching, engine.number(levels.check_after_event), limit))

    def _on_input(self) -> None:
        self._run.on_input()
        if self._engine.rows(levels.watched)[0].is_reached:
            raise _Reached


def level_names(spec: ModelSpec) -> list[str]:
    """Return the addresses of what can be watched in a model."""
    return _names(Run(spec, 0, 0))


def _places(run: Run) -> dict[str, tuple[int, int]]:
    """Return what can be watched, and its row, by its owner's address."""
    places: dict[str, tuple[int, int]] = {}
    for name, program in run.built.programs.items():
        domain, _, application = name.rpartition(".")
        if program.row and levels.choose_level(run.engine, levels.PROGRAM, program.row, is_of_losses=False):
            places[f"domains.{domain}.applications.{application}"] = levels.PROGRAM, program.row
    return places | {name: (levels.LINK, row) for name, _, row in run.built.link_ends()}


def _names(run: Run) -> list[str]:
    return [f"{owner}.{name}" for owner, (kind, _) in _places(run).items() for name in (_name(kind), LOST)]


def _name(kind: int) -> str:
    return HELD if kind == levels.PROGRAM else BACKLOG
