"""Playing a run in passes, each of which foresees the rollbacks that the ones before have found.

See :mod:`vftsim.platform.protection.rollback`.  A crash that rolls guests back costs one pass more, and an unforeseen
crash ends its pass.  The next begins at a state that this one has kept, or where there is none at time 0.

What guests have saved that share a processor or a wire was found while all of them ran until the crash, as they do.
Where one of them is stopped at its end, and another comes to something else for that, it is found anew, and so is what
it comes to later.  Ends are settled one after the other, the earliest first, so that this comes to an end.
Assumption: what a guest has taken of a shared resource between its end and the crash, those that end later have without
it.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields
from typing import Any, Generic, TypeVar

from vftsim.errors import ConservationError, RunFailure
from vftsim.kernel import Engine
from vftsim.platform.protection import rollback
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.pair import NEVER_NS

R = TypeVar("R")
Key = tuple[int, int, int]
"""An end: whose, at which crash, and when."""


@dataclass(frozen=True, slots=True)
class FoundCut:
    """Where a guest's life ends, as a pass has found it; fields as in :class:`~.rollback.Finding`."""

    guard: int
    crash_ns: int
    is_fenced: bool
    point: int
    heard_ns: int
    rollback_ns: int
    execution_ns: int
    outputs_lost: int
    outputs_underivable: int
    limit_ns: int

    @property
    def ends_ns(self) -> int:
        """When the state was taken with which the guest's life ends."""
        return self.crash_ns - self.rollback_ns

    @property
    def key(self) -> Key:
        return self.guard, self.crash_ns, self.ends_ns


_FIELDS = tuple(field.name for field in fields(FoundCut) if field.name != "guard")


@dataclass(frozen=True, slots=True)
class Played(Generic[R]):
    """A run played to its end with all its rollbacks foreseen."""

    run: R
    cuts: tuple[FoundCut, ...]


def foresee(engine: Engine, cuts: Iterable[FoundCut]) -> None:
    """Tell a model that is built and has not run of cuts, in the order in which they were found."""
    for cut in cuts:
        row, cut_record = engine.add(rollback.cuts, guard=cut.guard)
        for name in _FIELDS:
            setattr(cut_record.finding, name, getattr(cut, name))
        engine.call(rollback.foresee, row)


def cuts_found(engine: Engine) -> list[FoundCut]:
    """Return the cuts at which a pass ended; none if it needs no other pass."""
    # A kernel without any guard has no such table.
    if rollback.foresights.name not in engine.linked.tables:
        return []
    rows = engine.rows(rollback.foresights)
    findings = [(guard, rows[guard].finding) for guard in range(1, engine.used(guards) + 1)]
    return [_cut(guard, finding) for guard, finding in findings if finding.is_found]


def _cut(guard: int, finding: Any) -> FoundCut:
    values: dict[str, Any] = {name: int(getattr(finding, name)) for name in _FIELDS}
    return FoundCut(guard, **{**values, "is_fenced": bool(finding.is_fenced)})


def play(
    build: Callable[[], R],
    engine_of: Callable[[R], Engine],
    run: Callable[[R], object],
    go_back: Callable[[R, int], bool] = lambda _, __: False,
) -> Played[R]:
    """Play a run in as many passes as it needs.

    ``build`` makes the run anew, ready to begin; every time the same.  ``engine_of`` returns its engine.  ``run`` plays
    it, and lets a RunFailure because of an unforeseen rollback get through.  ``go_back`` brings what was played back to
    how it was some time before an instant in ns; false if it cannot.  Fails with RunFailure if the run cannot continue
    for another reason, and with ConservationError if a pass does not come to a crash that it has foreseen, as the pass
    before did: a defect.
    """
    cuts: list[FoundCut] = []
    played: set[tuple[Key, frozenset[Key]]] = set()
    run_built = build()
    while True:
        try:
            run(run_built)
        except RunFailure:
            new_cuts = cuts_found(engine_of(run_built))
            if not new_cuts:
                raise
            standing, new_cuts, is_all = _settled(cuts, new_cuts)
            for cut in new_cuts:
                _must_be_new(cut, cuts, played)
            first_ns = min(cut.ends_ns for cut in new_cuts)
            cuts = [*standing, *new_cuts]
        else:
            return Played(run_built, tuple(cuts))
        # Before the guests' states were taken: that is when they must know that their lives end with them.
        if is_all and go_back(run_built, first_ns):
            foresee(engine_of(run_built), new_cuts)  # what was found before is in the state
        else:
            run_built = build()
            foresee(engine_of(run_built), cuts)


def _settled(cuts: list[FoundCut], new_cuts: list[FoundCut]) -> tuple[list[FoundCut], list[FoundCut], bool]:
    """Return what stands of cuts that were foreseen, and what of those found beside it; whether all that was stands.

    A life that ended after the first end that has been found is played anew, with whatever follows for its guest.
    """
    first_ns = min(cut.ends_ns for cut in new_cuts)
    crashes_ns = {cut.guard: cut.crash_ns for cut in new_cuts}
    replaced = [each for each in cuts if each.crash_ns >= crashes_ns.get(each.guard, NEVER_NS)]
    others = [each for each in cuts if each not in replaced]
    standing = [each for each in others if each.ends_ns <= first_ns]
    anew = {each.guard for each in others if each.ends_ns > first_ns}
    return standing, [cut for cut in new_cuts if cut.guard not in anew], len(standing) == len(cuts)


def _must_be_new(cut: FoundCut, cuts: Iterable[FoundCut], played: set[tuple[Key, frozenset[Key]]]) -> None:
    """Refuse an end that was foreseen, unless others have ended before that did not whenever it was found."""
    before = frozenset(each.key for each in cuts if each.guard != cut.guard and each.ends_ns < cut.ends_ns)
    if (cut.key, before) in played:
        raise ConservationError(f"the crash at {cut.crash_ns} ns was foreseen and not reached") from None
    played.add((cut.key, before))
