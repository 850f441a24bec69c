"""Probes of a capacity search: one level, as many replications as its decision takes."""

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from itertools import combinations

from vftsim.stats.bernoulli_test import inversion_p_value, log_evidence_above, log_evidence_below

INVERSION_LEVEL = 0.001


Mapper = Callable[[Callable[[int], bool], range], Iterable[bool]]
"""Anything that applies a function to numbers, and returns the results in their order: ``map``, or an executor's."""


class ProbeVerdict(StrEnum):
    """What a probe says about a level."""

    PASS = "pass"
    FAIL = "fail"
    UNDECIDED = "undecided"


@dataclass(frozen=True, slots=True)
class Probe:
    """One level of a capacity search."""

    level: float
    """The load."""
    runs: int
    passed: int
    """Replications run, and how many of them met the objective."""
    decision: ProbeVerdict
    """What the sequential test made of them."""

    @property
    def beyond(self) -> int:
        """Replications that did not meet the objective."""
        return self.runs - self.passed


class BudgetUsedUp(Exception):  # noqa: N818 - ends a search, no fault
    """The search has no runs left."""


def runs_to_decide(probability: float, confidence: float) -> tuple[int, int]:
    """Return how many runs a level takes at least to pass, when none fails, and to fail, when all do."""
    threshold = -math.log((1.0 - confidence) / 2.0)
    return (
        _runs_until(lambda runs: log_evidence_above(runs, 0, probability) >= threshold),
        _runs_until(lambda runs: log_evidence_below(0, runs, probability) >= threshold),
    )


def _runs_until(is_decided: Callable[[int], bool]) -> int:
    """Return the least number of runs that decides; evidence of equal runs only grows."""
    most = 1
    while not is_decided(most):
        most *= 2
    return most // 2 + 1 + bisect_left(range(most // 2 + 1, most), True, key=is_decided)


@dataclass
class Prober:
    """Runs replications at a level until a sequential test decides it."""

    passes: Callable[[float, int], bool]
    """``passes(level, replication)``."""
    probability: float
    """Required pass probability."""
    error: float
    """Probability of a wrong decision at a level, for each of the two ways to be wrong."""
    runs_per_level: int
    left: int
    """Largest number of runs at one level, and what is left of that in all."""
    mapper: Mapper
    """Applies a function to a batch of replication numbers."""
    batch: int
    """Size of such a batch."""
    outcomes: dict[float, list[bool]] = field(default_factory=dict)
    _decisions: dict[float, ProbeVerdict] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._threshold = -math.log(self.error)

    def decide(self, level: float, runs: int | None = None, *, keeping: int = 0) -> ProbeVerdict:
        """Return the decision on a level, with at most ``runs`` replications.

        Once a run of the level has failed, ``keeping`` runs of the budget are left for other levels.
        """
        limit = self.runs_per_level if runs is None else min(runs, self.runs_per_level)
        outcomes = self.outcomes.setdefault(level, [])

        def goes_on() -> bool:
            is_open = (
                self._decisions.get(level, ProbeVerdict.UNDECIDED) is ProbeVerdict.UNDECIDED and len(outcomes) < limit
            )
            return is_open and (self.left > keeping or all(outcomes))

        while goes_on():
            if self.left == 0:
                raise BudgetUsedUp
            count = min(self.batch, limit - len(outcomes), self.left)
            numbers = range(len(outcomes), len(outcomes) + count)
            for passed in self.mapper(partial(self.passes, level), numbers):
                # Runs of the batch beyond the decision are dropped: the batch size must not matter.
                if goes_on():
                    outcomes.append(bool(passed))
                    self.left -= 1
                    self._decisions[level] = self._test(outcomes)
        return self._decisions.get(level, ProbeVerdict.UNDECIDED)

    def runs_to_pass(self) -> int:
        """Return how many runs a level takes to pass when none of them fails: fewer never can."""
        return _runs_until(lambda runs: log_evidence_above(runs, 0, self.probability) >= self._threshold)

    def probes(self) -> tuple[Probe, ...]:
        """Return all levels tried, in rising order."""
        return tuple(
            Probe(level, len(outcomes), sum(outcomes), self._decisions[level])
            for level, outcomes in sorted(self.outcomes.items())
            if outcomes
        )

    def _test(self, outcomes: list[bool]) -> ProbeVerdict:
        passed = sum(outcomes)
        failed = len(outcomes) - passed
        if log_evidence_above(passed, failed, self.probability) >= self._threshold:
            return ProbeVerdict.PASS
        if log_evidence_below(passed, failed, self.probability) >= self._threshold:
            return ProbeVerdict.FAIL
        return ProbeVerdict.UNDECIDED


def is_non_monotone(prober: Prober, *, eases: bool = False) -> bool:
    """Tell whether a higher level passed significantly more often than a lower one; the other way if larger ones ease.

    Either a level that fails lies below one that passes, or, among the replications run at both
    levels, those that fail at the lower and pass at the higher one are too many for chance.
    """
    probes = prober.probes()[::-1] if eases else prober.probes()
    pairs = list(combinations(probes, 2))
    for below, above in pairs:
        if below.decision is ProbeVerdict.FAIL and above.decision is ProbeVerdict.PASS:
            return True
        both = list(zip(prober.outcomes[below.level], prober.outcomes[above.level], strict=False))
        inversions = sum(not lower and upper for lower, upper in both)
        discordant = sum(lower != upper for lower, upper in both)
        if inversion_p_value(inversions, discordant) < INVERSION_LEVEL / len(pairs):
            return True
    return False
