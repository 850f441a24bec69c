"""An episode: faults of a model's machine in a steady state, and what clients see of the last of them.

Between faults that are far apart nothing happens that a year's availability hangs on, so a year is simulated as
episodes: each begins well before its first fault and ends when redundancy is long back.  The outage of a fault is the
longest time from packet to packet that ends in its own stretch, from it to the next fault or the end, if that is longer
than any without faults.
"""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import with_domain
from vftsim.platform.protection.faults import FaultSpec
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.when import Instant
from vftsim.study.crash import DECLARED, LIVE, PROTECTED, common_gap, run_watched

_S = 1_000_000_000
_NEVER_NS = 1 << 62
_ALONE = {DECLARED, *LIVE, "secondary live too", "primary goes on alone", "backup crash"}
"""What the timeline says where there is one copy, or two that do not know of each other."""


@dataclass(frozen=True, slots=True)
class Blow:
    """A fault at an instant, in ns."""

    at_ns: int
    fault: FaultSpec


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """An episode to be simulated; its last fault is judged.

    Parameters
    ----------
    spec : ModelSpec
        Without faults, and as long as the episode is.
    blows : tuple of Blow
        In the time of the run; none: the longest time from packet to packet is told.
    from_ns : int
        Where the stretch begins that is judged.
    protected_from_ns : int
        When protection is turned on, where the mechanism can be; 0: from the start.
    """

    spec: ModelSpec
    domain: str
    seed: int
    replication: int
    blows: tuple[Blow, ...]
    from_ns: int
    protected_from_ns: int = 0


@dataclass(frozen=True, slots=True)
class Episode:
    """What came of the last fault.

    Parameters
    ----------
    gap_s : float
        The longest time from packet to packet.
    is_dead : bool
        Whether the machine is gone at the end.
    is_lost : bool
        Whether redundancy went and was not back at the end.
    protected_s : float
        From the fault until redundancy was back; 0 if it did not go, or is not back.
    """

    gap_s: float
    is_dead: bool
    is_lost: bool
    protected_s: float


def simulate_episode(task: EpisodeTask) -> Episode:
    """Run an episode."""
    spec, entry = task.spec, task.spec.entry_of(task.domain)
    if task.protected_from_ns:
        begins = {"active_from": Instant("run", task.protected_from_ns)}
        spec = with_domain(spec, entry, protection=spec.domains[entry].protection.model_copy(update=begins))
    faults = tuple(
        each.fault.model_copy(update={"at": Instant("run", each.at_ns), "repeat": None, "domain": task.domain})
        for each in task.blows
    )
    record, last, gaps = run_watched(
        spec.model_copy(update={"faults": faults}),
        task.seed,
        task.replication,
        task.domain,
        lambda _: (task.from_ns, _NEVER_NS),
    )
    gap = common_gap(list(gaps.values()))
    after = sorted((at_ns, what) for at_ns, what in record.timelines.get(task.domain, ()) if at_ns >= task.from_ns)
    redundant = [(at_ns, what) for at_ns, what in after if what == PROTECTED or what in _ALONE]
    is_back = bool(redundant) and redundant[-1][1] == PROTECTED
    guard = last.built.guards.get(task.domain, 0)
    return Episode(
        0.0 if gap is None else max(0.0, (gap.end_ns - gap.begin_ns) / _S),
        bool(guard and last.engine.rows(guards)[guard].dead),
        bool(redundant) and not is_back,
        (redundant[-1][0] - task.from_ns) / _S if is_back else 0.0,
    )
