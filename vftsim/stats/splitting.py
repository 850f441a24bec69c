"""Multilevel splitting with fixed effort: the probability of a rare event from many that are not rare.

An event is that a level of the state reaches a limit before a run is over.  Between the beginning and the limit stand
levels L1 < L2 < ...  Some trials begin at time 0 and end at L1, or with the run; as many go on from the states in which
L1 was reached, each with fresh random numbers, to L2; and so on.  The product of the shares that came further is an
unbiased estimate of the probability, wherever the levels stand, if they were chosen without these trials, and whatever
of the future the states share: those of one repetition are dependent, and the interval is made of independent
repetitions, each with its own random numbers from time 0 on.

States are continued equally often, as far as the number of trials allows, and who is continued once more is drawn.

The levels come from a pilot that is no part of the estimate: trials run to the limit or the end, and the next level is
the highest that a fifth of them reached (near exp(-2), which costs least for a given error where levels are many).

References: Glasserman, Heidelberger, Shahabuddin & Zajic, Operations Research 47 (1999); Garvels, *The splitting
method in rare event simulation* (2000), fixed effort and why it is unbiased; Cerou & Guyader, Stoch. Anal. Appl. 25
(2007), levels as quantiles.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from vftsim.errors import UsageError

SHARE = 0.2
_BRANCH_BITS = 32
_FEWEST, _MOST = 10, 20
"""A pilot tries until so many trials come further, so many times what a repetition tries at most."""


class SavedState(Protocol):
    """A state of a process."""

    def put_back(self) -> None:
        """Let the process be as it was."""
        ...


class Process(Protocol):
    """What runs until a level reaches a limit, or to its end, and can be put back to states that it had."""

    @property
    def events(self) -> int:
        """Events on the way to the present state."""
        ...

    @property
    def highest(self) -> int:
        """The highest level of the last trial."""
        ...

    def state(self) -> SavedState:
        """Return the present state."""
        ...

    def go_on(self, branch: int, limit: int) -> bool:
        """Go on with random numbers of a branch; false: the end comes before the limit."""
        ...


@dataclass(frozen=True)
class Trials:
    """What became of the trials of a repetition."""

    tried: int
    """At each level."""
    reached: tuple[int, ...]
    """How many came to each level, as far as any did."""
    events: int
    """Simulated for them."""

    def probability(self, levels: int) -> float:
        """Return the estimate of the probability of coming through so many levels."""
        if len(self.reached) < levels:
            return 0.0
        return math.prod(count / self.tried for count in self.reached[:levels])


@dataclass(frozen=True)
class Pilot:
    """Levels that divide the way to the limit, which is the last of them."""

    levels: tuple[int, ...]
    events: int
    """Simulated to find them."""
    run_events: float
    """Of a run from time 0, which ends with the event, on average."""


def split(process: Process, levels: Sequence[int], tried: int, choose: np.random.Generator) -> Trials:
    """Play one repetition of a process at its beginning, with so many trials at each level, the limit last.

    ``choose`` draws whose states are continued once more.
    """
    states, reached, events = [process.state()], list[int](), 0
    for number, level in enumerate(levels):
        arrived = list[SavedState]()
        for branch, state in _continued(states, number, tried, choose):
            is_there, taken = _try(process, state, branch, level)
            events += taken
            if is_there:
                # Nobody goes on from the last.
                arrived.append(process.state() if level != levels[-1] else state)
        reached.append(len(arrived))
        if not arrived:
            break
        states = arrived
    return Trials(tried, tuple(reached), events)


def find_levels(
    process: Process, limit: int, tried: int, choose: np.random.Generator, shown: Callable[[int], str] = str
) -> Pilot:
    """Find levels on the way to the limit, from each of which about a fifth of the trials come to the next.

    ``shown`` says a level in words.  Refuses a process of which no trial comes any further.
    """
    states, levels, events, run_events = [process.state()], list[int](), 0, 0.0
    while not levels or levels[-1] < limit:
        before = levels[-1] if levels else 0
        trials, highest = list[tuple[int, SavedState]](), list[int]()
        while sum(each > before for each in highest) < _FEWEST and len(trials) < _MOST * tried:
            more = _continued(states, len(levels), tried, choose, len(trials))
            for branch, state in more:
                is_there, taken = _try(process, state, branch, limit)
                highest.append(limit if is_there else process.highest)
                events += taken
            trials += more
        run_events = run_events or events / len(trials)
        levels.append(_next_level(highest, before, limit, shown))
        states = []
        # Once more, as far as the next begin: what a trial does hangs on its state and its branch alone.
        for (branch, state), came_to in zip(trials, highest, strict=True):
            if levels[-1] <= came_to and levels[-1] < limit:
                events += _try(process, state, branch, levels[-1])[1]
                states.append(process.state())
    return Pilot(tuple(levels), events, run_events)


def _try(process: Process, state: SavedState, branch: int, limit: int) -> tuple[bool, int]:
    """Continue a state; return whether the limit was reached, and how many events it took."""
    state.put_back()
    before = process.events
    return process.go_on(branch, limit), process.events - before


def _continued(
    states: Sequence[SavedState], level: int, tried: int, choose: np.random.Generator, already: int = 0
) -> list[tuple[int, SavedState]]:
    """Return the number of the branch of each trial of a level, and which state it goes on from."""
    order = [*range(len(states))] * (tried // len(states))
    order += choose.permutation(len(states))[: tried % len(states)].tolist()
    first = (level << _BRANCH_BITS) + already + 1
    return [(first + number, states[index]) for number, index in enumerate(order)]


def _next_level(highest: Sequence[int], before: int, limit: int, shown: Callable[[int], str]) -> int:
    """Return the highest level that enough trials reached, at least the next above the one before."""
    enough = sorted(highest, reverse=True)[math.ceil(SHARE * len(highest)) - 1]
    if enough <= before:
        above = [each for each in highest if each > before]
        if not above:
            raise UsageError(
                f"none of {len(highest)} trials came beyond level {shown(before)} of {shown(limit)}; take more "
                "(--trials), or choose levels (--levels)"
            )
        enough = min(above)
    return min(enough, limit)
