"""Capacity as a stochastic root search.

The capacity is the level (load) at which the probability that a run meets its service objective
crosses a required value.  Single runs pass or fail by chance near that level, so a plain bisection ends
at a random place without saying so.  Here a level is decided by a sequential test
(:mod:`vftsim.stats.bernoulli_test`): *pass* when the evidence says that the probability exceeds the required
one, *fail* when it says the opposite, *undecided* when the runs allowed per level do not settle it.
The answer is the interval from the highest level that passes to the lowest that fails.

Levels are taken from a grid of the stated resolution.  The search bisects; around an undecided level
it closes in from both sides.  The end of the range is tested first, as it fails cheaply; a bracket that
does not hold the capacity is extended.  Until a level has passed, one at which a run failed leaves so many
runs of the budget as a lower one takes to pass.

Assumption: with common random numbers a replication that passes at some level passes at every lower
one.  Then a wrong decision at any level implies a wrong decision at the capacity itself, and the error
is ``(1 - confidence) / 2`` a side however many levels are probed.  ``independent_levels=True`` turns the
assumption off and divides the error by the number of levels instead.

Whether runs do pass less often at higher levels is checked, not assumed: a few levels outside the answer
are probed, and pairs of levels are compared replication by replication (exact sign test).  An
irregularity narrower than the distance between the probes stays unseen.

References: Waeber, Frazier and Henderson, *Bisection search with noisy responses*, SIAM J. Control
Optim. 51 (2013), for the setting.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from vftsim.errors import UsageError
from vftsim.stats.estimate import Estimate
from vftsim.stats.probing import BudgetUsedUp, Decision, Mapper, Probe, Prober, is_non_monotone

Answer = Literal["between", "at least", "below", "unknown"]

MAXIMUM_DOUBLINGS = 6
LOWER_CHECK_RUNS = 10
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
    """Whether the highest level tried is the highest there can be."""

    @property
    def answer(self) -> Answer:
        """What is known: the capacity lies between two levels, or is at least or below one, or nothing is."""
        has_passed = any(probe.decision is Decision.PASS and probe.level <= self.estimate.low for probe in self.probes)
        if math.isfinite(self.estimate.high):
            return "between" if has_passed else "below"
        return "at least" if has_passed else "unknown"


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
    floor: float = 0.0,
    independent_levels: bool = False,
    mapper: Mapper = map,
    batch: int = 1,
    allows: Callable[[float], bool] = lambda _: True,
) -> CapacityResult:
    """Search for the highest level at which runs still pass with the required probability.

    Parameters
    ----------
    passes : callable
        ``passes(level, replication)`` runs one replication and tells whether it met the objective.
        The replication's number must select its random numbers, the level must not.
    low, high : float
        Where the capacity is expected; extended when it is not there.
    resolution : float
        Difference of levels that does not matter.
    probability : float
        Required pass probability.
    confidence : float
        Confidence of the interval.
    runs_per_level, budget : int
        Largest number of runs at one level and in all.
    floor : float
        A level known to pass without a test: no load at all.
    independent_levels : bool
        Do not rely on runs being ordered from level to level.
    mapper : callable
        As the built-in ``map``: pass an executor's ``map`` to run a batch in parallel.
    batch : int
        Runs started together.  The answer does not depend on it.
    allows : callable
        Whether there can be such a level; if not, there is none above it.
    """
    if not (floor <= low < high and 0.0 < resolution <= high - low):
        raise UsageError(
            f"need floor <= low < high and 0 < resolution <= high - low, got floor {floor}, "
            f"low {low}, high {high}, resolution {resolution}"
        )
    if not (0.0 < probability < 1.0 and 0.0 < confidence < 1.0):
        raise UsageError(f"probability {probability} and confidence {confidence} must lie between 0 and 1")
    if min(runs_per_level, budget, batch) < 1:
        raise UsageError("runs per level, budget and batch must be at least 1")
    error = (1.0 - confidence) / 2.0
    if independent_levels:
        steps = math.ceil(math.log2((high - floor) / resolution)) + MAXIMUM_DOUBLINGS
        error /= 2 * steps
    prober = Prober(
        passes,
        probability=probability,
        error=error,
        runs_per_level=runs_per_level,
        budget=budget,
        mapper=mapper,
        batch=batch,
    )
    search = _Search(prober, floor, low, high, resolution, allows)
    budget_ended = False
    try:
        search.run()
        search.check_outside()
    except BudgetUsedUp:
        budget_ended = True
    return search.result(probability, confidence, budget_ended)


class _Search:
    """Bisection over the indices of a grid of levels; index 0 is the expected lower end."""

    def __init__(
        self,
        prober: Prober,
        floor: float,
        low: float,
        high: float,
        resolution: float,
        allows: Callable[[float], bool],
    ) -> None:
        self._prober = prober
        self._allows = allows
        self._is_bounded = False
        self._floor = floor
        self._low = low
        self._resolution = resolution
        self._span = math.ceil((high - low) / resolution * (1.0 - 1e-12))
        self._floor_index = -math.ceil((low - floor) / resolution * (1.0 - 1e-12))
        self._passed = self._floor_index
        self._failed: int | None = None
        self._undecided: set[int] = set()

    def run(self) -> None:
        """Find the highest level that passes and the lowest that fails."""
        lowest = min(0, self._bracket_from_above())
        self._bisect(lowest)
        # The lower end is tested only if nothing above it passed: passing takes many runs.
        step = self._span
        while self._passed < lowest:
            if self._probe(lowest) is Decision.PASS:
                break
            lowest = max(lowest - step, self._floor_index)
            step *= 2
            if lowest == self._floor_index:
                break
        self._bisect(max(lowest, self._passed))

    def check_outside(self) -> None:
        """Probe levels away from the answer, where a monotone response has nothing new to say."""
        below = self._passed - self._floor_index
        for j in range(1, LOWER_CHECKS + 1):
            self._probe(self._floor_index + j * below // (LOWER_CHECKS + 1), LOWER_CHECK_RUNS)
        if self._failed is None:
            return
        failed, above = self._failed, max(self._span - self._failed, UPPER_CHECKS + 1)
        for j in range(1, UPPER_CHECKS + 1):
            index = failed + j * above // (UPPER_CHECKS + 1)
            if self._allows(self._level(index)):
                self._probe(index)

    def result(self, probability: float, confidence: float, budget_ended: bool) -> CapacityResult:
        probes = self._prober.probes()
        low = self._level(self._passed)
        high = math.inf if self._failed is None else self._level(self._failed)
        point = min(max(_crossing(probes, probability, low), low), high)
        runs = sum(probe.runs for probe in probes)
        estimate = Estimate(point, (high - low) / 2.0, low, high, runs, confidence, "capacity search")
        resolved = self._failed is not None and self._failed - self._passed <= 1
        flags = (resolved, is_non_monotone(self._prober), budget_ended)
        return CapacityResult(estimate, probes, *flags, self._prober.runs_to_pass(), self._is_bounded)

    def _bracket_from_above(self) -> int:
        """Raise the level until it fails, or there is none above it; return the index of the last."""
        index = highest = self._span
        for _ in range(MAXIMUM_DOUBLINGS + 1):
            highest = self._highest_allowed(index)
            if self._probe(highest) is Decision.FAIL:
                break
            if highest < index:
                self._is_bounded = True
                break
            index *= 2
        return highest

    def _highest_allowed(self, index: int) -> int:
        """Return an index, or the highest below it at which there can be a level."""
        lowest, highest = self._floor_index, index + 1
        if self._allows(self._level(index)):
            return index
        while highest - lowest > 1:
            middle = (lowest + highest) // 2
            lowest, highest = (middle, highest) if self._allows(self._level(middle)) else (lowest, middle)
        return lowest

    def _bisect(self, lowest: int) -> None:
        while self._failed is not None:
            bottom = max(self._passed, lowest)
            inside = [k for k in self._undecided if bottom < k < self._failed]
            first, last = (min(inside), max(inside)) if inside else (self._failed, self._failed)
            if first - bottom > 1:
                self._probe((bottom + first) // 2)
            elif inside and self._failed - last > 1:
                self._probe((last + self._failed) // 2)
            else:
                return

    def _probe(self, index: int, runs: int | None = None) -> Decision:
        if index <= self._floor_index:
            return Decision.PASS
        # Until a level has passed, one that may fail must not take the runs of a lower one that may pass.
        to_pass = self._prober.runs_to_pass()
        keeping = to_pass if self._passed == self._floor_index and self._prober.left > to_pass else 0
        decision = self._prober.decide(self._level(index), runs, keeping=keeping)
        if decision is Decision.PASS and (self._failed is None or index < self._failed):
            self._passed = max(self._passed, index)
        elif decision is Decision.FAIL and index > self._passed:
            self._failed = index if self._failed is None else min(self._failed, index)
        elif decision is Decision.UNDECIDED:
            self._undecided.add(index)
        return decision

    def _level(self, index: int) -> float:
        if index <= self._floor_index:
            return self._floor
        return float(f"{self._low + index * self._resolution:.12g}")


def _crossing(probes: Sequence[Probe], probability: float, default: float) -> float:
    """Return where the falling curve closest to the probes (isotonic regression) meets ``probability``."""
    blocks: list[list[float]] = []  # runs, passed, first level, last level
    for probe in probes:
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
