"""As many replications as a precision takes: ``vftsim run --precision``.

The rule is :mod:`vftsim.stats.replications`: after each replication look at the interval of every watched
figure, and stop when all are narrow enough and stay so for five more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from vftsim.composition.record import RunRecord as Record
from vftsim.errors import UsageError
from vftsim.stats import ReplicationResult, StoppingRule, run_replications
from vftsim.study.figures.catalogue import check_names, watched
from vftsim.study.figures.summary import figures_in
from vftsim.study.model import Model
from vftsim.study.replicate import Replications

Batch = Callable[[int, dict[int, Record]], Replications]
"""Runs replications 0 to n-1 except the known ones: ``batch(n, known)``."""


def precision_rule(model: Model, percent: float, figures: Sequence[str], most: int) -> StoppingRule:
    """Return the rule for a precision in percent of each figure.

    Raises
    ------
    UsageError
        A precision out of range, too small a number of replications, or a figure that the model will not have.
    """
    if not 0.0 < percent < 100.0:
        raise UsageError(f"--precision: above 0 and below 100 %, got {percent:g} %")
    check_names(figures, [model.spec])
    chosen = tuple(dict.fromkeys(figures)) or (watched(model.spec),)
    return StoppingRule(chosen, relative_half_width=percent / 100.0, budget=most)


def run_until(
    rule: StoppingRule, batch: Batch, known: dict[int, Record]
) -> tuple[Replications, ReplicationResult | None]:
    """Run replications until the rule is met, its budget used up, or the user ends it (then without a verdict)."""
    done = [batch(1, known)]  # one shows which figures there are, before the others cost their time
    if done[0].interrupted:
        return done[0], None
    watched_in(done[0].records[0], 0, rule.metrics)

    def run_batch(numbers: range) -> list[dict[str, float]]:
        records = done[-1].records
        done.append(batch(numbers.stop, records))
        if done[-1].interrupted:
            raise _Ended
        return [watched_in(done[-1].records[n], n, rule.metrics) for n in numbers]

    try:
        verdict = run_replications(run_batch, rule)
    except _Ended:
        return done[-1], None
    return done[-1], verdict


def watched_in(record: Record, replication: int, figures: Sequence[str]) -> dict[str, float]:
    """Return the watched figures of one replication.

    Raises
    ------
    UsageError
        The replication says nothing of one.
    """
    found = figures_in(record, figures)
    for name, value in found.items():
        if not math.isfinite(value):
            raise UsageError(f"--figure {name}: nothing to measure in replication {replication}")
    return found


class _Ended(Exception):  # noqa: N818 - the user's wish, no fault
    """The user has ended the study."""
