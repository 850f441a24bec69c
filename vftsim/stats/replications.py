"""How many replications a figure needs: a sequential stopping rule.

After each replication, in the order of their numbers, look at the interval of the mean.  Stop when the
half width is within the target *and stays there for the next few looks*: stopping at the first
lucky look selects samples whose variance happens to be small and covers the truth too rarely
(Hoad, Robinson and Davies, J. Oper. Res. Soc. 61, 2010, call this the look-ahead).  At a target of 10 %,
ten initial replications bring the coverage of a nominal 95 % interval to .95, three to .92.

The rule asks for replications in batches, which may run in parallel.  Results beyond the stopping
point are not used, so the answer does not depend on the batch size.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass

from vftsim.errors import UsageError
from vftsim.stats.estimate import Estimate
from vftsim.stats.intervals import bonferroni, mean_interval

MINIMUM_INITIAL = 10

Outcome = Mapping[str, float]
"""What one replication gives: a value for each metric."""


@dataclass(frozen=True, slots=True)
class StoppingRule:
    """When enough replications have been run."""

    metrics: tuple[str, ...]
    """The metrics that must reach the target together (Bonferroni: each at a stricter confidence)."""
    relative_half_width: float = 0.05
    """Target as a fraction of the mean."""
    absolute_half_width: float = 0.0
    """Alternative target in the metric's unit, for metrics that may be zero; 0 for none."""
    confidence: float = 0.95
    """Joint confidence level."""
    initial: int = 10
    """Replications before the first look, at least 10."""
    look_ahead: int = 5
    """Further looks that must confirm the first success."""
    budget: int = 200
    """Largest number of replications."""
    batch: int = 10
    """Replications asked for at a time after the first batch."""

    def __post_init__(self) -> None:
        if not self.metrics:
            raise UsageError("name at least one metric to stop on")
        if self.initial < MINIMUM_INITIAL:
            raise UsageError(f"initial replications: at least {MINIMUM_INITIAL}, got {self.initial}")
        if self.look_ahead < 0 or self.batch < 1:
            raise UsageError(f"look-ahead {self.look_ahead} or batch {self.batch} is too small")
        if self.budget < self.initial + self.look_ahead:
            raise UsageError(
                f"a precision takes {self.initial + self.look_ahead} replications at least, {self.look_ahead} of which "
                f"confirm; {self.budget} are allowed"
            )
        if self.relative_half_width < 0.0 or self.absolute_half_width < 0.0:
            raise UsageError("a target half width cannot be negative")
        if not 0.0 < self.confidence < 1.0:
            raise UsageError(f"a confidence level lies between 0 and 1, got {self.confidence}")

    def accepts(self, estimate: Estimate) -> bool:
        """Tell whether an interval is narrow enough.

        A sample of nothing but zeros never is: its interval has no width because nothing has been seen yet.
        """
        if estimate.mean == 0.0 and estimate.half_width == 0.0:
            return False
        target = max(self.relative_half_width * abs(estimate.mean), self.absolute_half_width)
        return estimate.half_width <= target


@dataclass(frozen=True, slots=True)
class ReplicationResult:
    """What a sequential procedure ended with."""

    reached: bool
    """Whether the target was reached and confirmed within the budget."""
    estimates: Mapping[str, Estimate]
    """Interval of each metric, over all ``n`` replications, at the joint confidence level."""
    n: int
    """Replications used."""


def replicate(rule: StoppingRule) -> Generator[range, Sequence[Outcome], ReplicationResult]:
    """Ask for replications until the rule is met or the budget is used up.

    Yields the numbers of the replications to run next; send back their outcomes in the same order.
    The generator's return value is the result.
    """
    confidence = bonferroni(rule.confidence, len(rule.metrics))
    values: dict[str, list[float]] = {name: [] for name in rule.metrics}
    n = successes = 0
    size = rule.initial + rule.look_ahead
    while n < rule.budget:
        numbers = range(n, min(n + size, rule.budget))
        outcomes = yield numbers
        if len(outcomes) != len(numbers):
            raise ValueError(f"asked for replications {numbers}, got {len(outcomes)} outcomes")
        for outcome in outcomes:
            n += 1
            for name, series in values.items():
                series.append(_finite(name, outcome[name]))
            if n < rule.initial:
                continue
            looks = [mean_interval(series, confidence) for series in values.values()]
            successes = successes + 1 if all(map(rule.accepts, looks)) else 0
            if successes > rule.look_ahead:
                return _result(True, values, n, confidence)
        size = rule.batch
    return _result(False, values, n, confidence)


def _finite(name: str, value: float) -> float:
    if not math.isfinite(value):
        raise ValueError(f"metric {name!r} of a replication is {value}")
    return float(value)


def _result(reached: bool, values: Mapping[str, list[float]], n: int, confidence: float) -> ReplicationResult:
    return ReplicationResult(reached, {name: mean_interval(x, confidence) for name, x in values.items()}, n)
