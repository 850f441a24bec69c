"""Capacity as a stochastic root search.

The capacity is the level (load) at which the probability that a run meets its service objective
crosses a required value.  Single runs pass or fail by chance near that level, so a plain bisection ends
at a random place without saying so.  Here a level is decided by a sequential test
(:mod:`vftsim.stats.bernoulli_test`): *pass* when the evidence says that the probability exceeds the required
one, *fail* when it says the opposite, *undecided* when the runs allowed per level do not settle it.
The answer is the interval from the highest level that passes to the lowest that fails.

Levels are taken from a grid of the stated resolution.  The search bisects; around an undecided level it closes in from
both sides.  The end of the range is tested first, as it fails cheaply; a bracket that does not hold the capacity is
extended.  Where a larger level *eases* the objective (a buffer, a number of CPUs), the answer is the smallest level
that passes: the interval goes from the highest that fails to the lowest that passes, by the same search with the two
verdicts in each other's place.  Until a level has passed, one at which a run failed leaves so many runs of the budget
as a lower one takes to pass.

Assumption: with common random numbers a replication that passes at some level passes at every lower
one.  Then a wrong decision at any level implies a wrong decision at the capacity itself, and the error
is ``(1 - confidence) / 2`` a side however many levels are probed.

Whether runs do pass less often at higher levels is checked, not assumed: a few levels outside the answer
are probed, and pairs of levels are compared replication by replication (exact sign test).  An
irregularity narrower than the distance between the probes stays unseen.

References: Waeber, Frazier and Henderson, *Bisection search with noisy responses*, SIAM J. Control
Optim. 51 (2013), for the setting.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple

from vftsim.errors import UsageError
from vftsim.stats.estimate import Estimate
from vftsim.stats.probing import BudgetUsedUp, Mapper, Probe, Prober, ProbeVerdict, is_non_monotone

Answer = Literal["between", "at least", "below", "unknown"]

MAXIMUM_DOUBLINGS = 6
_DOUBLINGS_BETWEEN = 2
CHECK_RUNS = 10
LOWER_CHECKS = 3
UPPER_CHECKS = 5


@dataclass(frozen=True, slots=True)
class CapacityResult:
    """Answer of a capacity search."""

    estimate: Estimate
    """Interval for the level at which the pass probability crosses the required one; ``n`` counts runs. The upper end
    is infinite when no level failed."""
    probes: tuple[Probe, ...]
    """Every level tried, in rising order: the curve of the service objective."""
    resolved: bool
    """Whether the interval is as short as the resolution."""
    non_monotone: bool
    """Whether a higher level passed significantly more often than a lower one: the answer then holds for the lowest
    crossing found, and the response deserves a look."""
    budget_ended: bool
    """Whether the search ended because its runs were used up."""
    runs_to_pass: int
    """Runs that a level takes to pass when none of them fails."""
    is_bounded: bool = False
    """Whether the highest level tried is the highest there can be; where larger ones ease and it passes, the lowest."""
    eases: bool = False
    """Whether larger levels are the easier ones: those above the interval pass, and those below it fail."""

    @property
    def answer(self) -> Answer:
        """What is known: the level lies between two, or is at least or below one, or nothing is."""
        below = ProbeVerdict.FAIL if self.eases else ProbeVerdict.PASS
        is_above = any(probe.decision is below and probe.level <= self.estimate.low for probe in self.probes)
        if math.isfinite(self.estimate.high):
            return "between" if is_above else "below"
        return "at least" if is_above else "unknown"


class SearchStart(NamedTuple):
    """Where a search begins, and whether larger levels are the easier ones there."""

    eases: bool
    low: float
    high: float


def search_start(
    passes: Callable[[float], bool | None],
    low: float,
    high: float,
    resolution: float,
    allows: Callable[[float], bool] = lambda _: True,
    *,
    may_ease: bool = True,
    least: float | None = None,
) -> SearchStart:
    """Return how to search, and between which levels, by single runs at levels ever farther apart.

    ``passes(level)`` is always of the same replication, None where a run tells nothing.  A search that begins between
    the two levels where its verdict changes spends no run on all those below.  Where it is the same at all levels,
    there is nothing to find in reach.  But if all fail, those between them are tried, a quarter of a doubling apart:
    levels that pass between others that fail are searched for their upper end.  No level below ``least`` is tried, by
    default the resolution.  Unless larger levels ``may_ease`` the objective, only those are where the verdict can
    change.
    """
    at_low, least = bool(passes(low)), resolution if least is None else least
    upper, lower = [low], [low]
    up = [(upper, high * 2.0**doubling) for doubling in range(MAXIMUM_DOUBLINGS + 1)]
    down = [(lower, low / 2.0 ** (doubling + 1)) for doubling in range(MAXIMUM_DOUBLINGS + 1)]
    # A load that is carried nowhere near is not raised before it is lowered: overloaded runs are the longest.
    for levels, level in chain.from_iterable(zip(up, down, strict=True)) if at_low else [*down, *up]:
        if level < least or not (may_ease or at_low is (level > low)) or not allows(level):
            continue
        is_within = passes(level)
        if is_within is (not at_low):
            return SearchStart(at_low == (level < low), *sorted((level, levels[-1])))
        if is_within is at_low:
            levels.append(level)
    for level in () if at_low or not may_ease else _between(low, high, resolution):
        if allows(level) and passes(level):
            return SearchStart(False, level, 2.0 * level)
    return SearchStart(False, low, high)


def _between(low: float, high: float, resolution: float) -> Iterator[float]:
    """Yield levels of the grid between powers of two of the lowest, the nearest first; few of the large, which cost."""
    tried = set[int]()
    for parts in (2, 4):
        for far in range(1, parts * (MAXIMUM_DOUBLINGS + 1), 2):
            for level in (low * 2.0 ** (far / parts), low / 2.0 ** (far / parts)):
                steps = round(level / resolution)
                if steps > 0 and steps not in tried and level < high * 2.0**_DOUBLINGS_BETWEEN:
                    tried.add(steps)
                    yield steps * resolution


def capacity_search(
    passes: Callable[[float, int], bool],
    low: float,
    high: float,
    resolution: float,
    *,
    probability: float = 0.9,
    confidence: float = 0.95,
    runs_per_level: int = 200,
    budget: int = 5000,
    mapper: Mapper = map,
    batch: int = 1,
    allows: Callable[[float], bool] = lambda _: True,
    eases: bool = False,
) -> CapacityResult:
    """Search for the highest level at which runs still pass with the required probability.

    If larger levels ease the objective, for the lowest.  ``passes(level, replication)`` runs one replication and tells
    whether it met the objective: its number must select its random numbers, the level must not.  The capacity is
    expected from ``low`` to ``high``, and searched further if it is not there, as far as ``allows`` says that there can
    be such a level; ``resolution`` is a difference that does not matter.  The level 0 is known to pass without a
    test: no load at all (to fail, if larger levels ease).  ``runs_per_level`` and ``budget`` bound the runs at one
    level and in all. ``mapper`` is as the built-in ``map``: an executor's runs a batch in parallel; the answer does not
    depend on its size.
    """
    if not (0.0 <= low < high and 0.0 < resolution <= high - low):
        raise UsageError(
            f"need 0 <= low < high and 0 < resolution <= high - low, "
            f"got low {low}, high {high}, resolution {resolution}"
        )
    if not (0.0 < probability < 1.0 and 0.0 < confidence < 1.0):
        raise UsageError(f"probability {probability} and confidence {confidence} must lie between 0 and 1")
    if min(runs_per_level, budget, batch) < 1:
        raise UsageError("runs per level, budget and batch must be at least 1")
    prober = Prober(passes, probability, (1.0 - confidence) / 2.0, runs_per_level, budget, mapper, batch)
    search = _Search(prober, low, high, resolution, allows, eases)
    budget_ended = False
    try:
        search.run()
        search.check_outside()
    except BudgetUsedUp:
        budget_ended = True
    return search.result(probability, confidence, budget_ended)


@dataclass
class _Search:
    """Bisection over the indices of a grid of levels; index 0 is the expected lower end."""

    prober: Prober
    low: float
    high: float
    resolution: float
    allows: Callable[[float], bool]
    eases: bool

    def __post_init__(self) -> None:
        self._is_bounded = False
        self._span = self._steps(self.low, self.high)
        self._floor_index = -self._steps(0.0, self.low)
        near = (0, 1, *(self._floor_index + (1 << n) for n in reversed(range((-self._floor_index).bit_length()))))
        self._inside = next((index for index in near if self.allows(self._level(index))), 0)
        lowest = self._floor_index + 1
        self._floor_index = self._last_allowed(lowest) - 1
        self._is_bounded_below = self._floor_index >= lowest
        ends = ProbeVerdict.PASS, ProbeVerdict.FAIL
        self._verdict_below, self._verdict_above = ends[::-1] if self.eases else ends
        self._below = self._floor_index
        self._above: int | None = None
        self._undecided: set[int] = set()

    def _steps(self, low: float, high: float) -> int:
        return math.ceil((high - low) / self.resolution * (1.0 - 1e-12))

    def run(self) -> None:
        """Find the highest level that passes and the lowest that fails; if larger levels ease, the other way round.

        The end that fails is tested first: passing takes many runs.
        """
        if self.eases:
            lowest = self._bracket_from_below(0)
            if self._above is None:
                self._bracket_from_above()
        else:
            lowest = min(0, self._bracket_from_above())
            self._bisect(lowest)
            lowest = self._bracket_from_below(lowest)
        self._bisect(max(lowest, self._below))

    def check_outside(self) -> None:
        """Probe levels away from the answer, where a monotone response has nothing new to say."""
        runs_below, runs_above = (None, CHECK_RUNS) if self.eases else (CHECK_RUNS, None)
        below = self._below - self._floor_index
        for j in range(1, LOWER_CHECKS + 1):
            self._probe(self._floor_index + j * below // (LOWER_CHECKS + 1), runs_below)
        if self._above is None:
            return
        lowest, above = self._above, max(self._span - self._above, UPPER_CHECKS + 1)
        for j in range(1, UPPER_CHECKS + 1):
            index = lowest + j * above // (UPPER_CHECKS + 1)
            if self.allows(self._level(index)):
                self._probe(index, runs_above)

    def result(self, probability: float, confidence: float, budget_ended: bool) -> CapacityResult:
        probes = self.prober.probes()
        low = self._level(self._below)
        high = math.inf if self._above is None else self._level(self._above)
        point = min(max(_crossing(probes, probability, low, eases=self.eases), low), high)
        runs = sum(probe.runs for probe in probes)
        estimate = Estimate(point, (high - low) / 2.0, low, high, runs, confidence, "capacity search")
        resolved = self._above is not None and self._above - self._below <= 1
        flags = (resolved, is_non_monotone(self.prober, eases=self.eases), budget_ended)
        is_lowest = self.eases and self._is_bounded_below and self._above == self._floor_index + 1
        bounded = self._is_bounded or is_lowest
        return CapacityResult(estimate, probes, *flags, self.prober.runs_to_pass(), bounded, self.eases)

    def _bracket_from_below(self, lowest: int) -> int:
        """Lower the level until it is below the answer, or there is none below it; return the index of the last."""
        step = self._span
        while self._below < lowest:
            if self._probe(lowest) is self._verdict_below:
                break
            lowest = max(lowest - step, self._floor_index)
            step *= 2
            if lowest == self._floor_index:
                break
        return lowest

    def _bracket_from_above(self) -> int:
        """Raise the level until it is above the answer, or there is none above it; return the index of the last."""
        index = highest = self._span
        for _ in range(MAXIMUM_DOUBLINGS + 1):
            highest = self._last_allowed(index)
            if self._probe(highest) is self._verdict_above:
                break
            if highest < index:
                self._is_bounded = True
                break
            index *= 2
        return highest

    def _last_allowed(self, index: int) -> int:
        """Return an index, or the closest to it at which there can be a level."""
        allowed, refused = self._inside, index
        if self.allows(self._level(index)):
            return index
        while abs(refused - allowed) > 1:
            middle = (allowed + refused) // 2
            allowed, refused = (middle, refused) if self.allows(self._level(middle)) else (allowed, middle)
        return allowed

    def _bisect(self, lowest: int) -> None:
        while self._above is not None:
            bottom = max(self._below, lowest)
            inside = [k for k in self._undecided if bottom < k < self._above]
            first, last = (min(inside), max(inside)) if inside else (self._above, self._above)
            if first - bottom > 1:
                self._probe((bottom + first) // 2)
            elif inside and self._above - last > 1:
                self._probe((last + self._above) // 2)
            else:
                return

    def _probe(self, index: int, runs: int | None = None) -> ProbeVerdict:
        if index <= self._floor_index:
            return self._verdict_below
        # Until a level has passed, one that may fail must not take the runs of another that may pass.
        to_pass = self.prober.runs_to_pass()
        has_passed = self._above is not None if self.eases else self._below > self._floor_index
        keeping = to_pass if not has_passed and self.prober.left > to_pass else 0
        decision = self.prober.decide(self._level(index), runs, keeping=keeping)
        if decision is self._verdict_below and (self._above is None or index < self._above):
            self._below = max(self._below, index)
        elif decision is self._verdict_above and index > self._below:
            self._above = index if self._above is None else min(self._above, index)
        elif decision is ProbeVerdict.UNDECIDED:
            self._undecided.add(index)
        return decision

    def _level(self, index: int) -> float:
        if index <= self._floor_index:
            return 0.0
        return float(f"{self.low + index * self.resolution:.12g}")


def _crossing(probes: Sequence[Probe], probability: float, default: float, *, eases: bool) -> float:
    """Return where the curve closest to the probes (isotonic regression) meets ``probability``.

    It falls over the level, or rises if larger levels ease.
    """
    blocks: list[list[float]] = []  # runs, passed, first level, last level
    for probe in reversed(probes) if eases else probes:
        blocks.append([probe.runs, probe.passed, probe.level, probe.level])
        while len(blocks) > 1 and blocks[-2][1] * blocks[-1][0] <= blocks[-1][1] * blocks[-2][0]:
            runs, passed, _, last = blocks.pop()
            blocks[-1] = [blocks[-1][0] + runs, blocks[-1][1] + passed, blocks[-1][2], last]
    point = default
    for k, (runs, passed, first, last) in enumerate(blocks):
        rate = passed / runs
        if rate >= probability:
            point = last
            continue
        if k:
            previous = blocks[k - 1][1] / blocks[k - 1][0]
            point += (first - point) * (previous - probability) / (previous - rate)
        break
    return point
