"""``vftsim run``: replications of one model, as many as a precision takes (``--precision``).

The rule is :mod:`vftsim.stats.replications`: after each replication look at the interval of every watched figure, and
stop when all are narrow enough and stay so for five more.
"""

import math
from collections.abc import Callable, Sequence

from vftsim.composition.record import RunRecord as Record
from vftsim.errors import UsageError
from vftsim.stats import ReplicationResult, StoppingRule
from vftsim.stats.replications import replicate as rounds_of
from vftsim.study.figures.names import check_names, watched
from vftsim.study.figures.protection_costs import of_runs
from vftsim.study.figures.summary import figures_in
from vftsim.study.runs.execution import Execution, Replications, replicate
from vftsim.study.runs.model import Model
from vftsim.study.runs.results import RunResult
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.manifest import identity


def run_study(model: Model, replications: int, execution: Execution, *, rule: StoppingRule | None = None) -> RunResult:
    """Run a model, going on from what the execution's store has of it; an interrupted run returns what is done.

    A rule says when there are enough replications; ``replications`` are then what a result has at least.
    """
    execution.check(replications)
    of_model, store = identity(model, execution.seed), execution.store
    if store is not None:
        store.check_only(of_model)
    stored = store.numbers(of_model) if store is not None else []
    # Replications beyond those asked for are kept: a result never shrinks by being continued.
    wanted = max(replications, *(n + 1 for n in stored), 0)

    def batch(count: int, known: dict[int, Record]) -> Replications:
        return replicate([model], count, execution, known=[known])[0]

    done, precision = (batch(wanted, {}), None) if rule is None else run_until(rule, batch)
    if rule is not None and len(done.records) < wanted and not done.interrupted:
        done = batch(wanted, done.records)  # the precision took fewer
    if not done.records:
        execution.shard.refuse_idle(done.interrupted)
        raise Interrupted("nothing had finished")
    records, most = done.ordered(), max(wanted, len(done.records)) if rule else wanted
    numbers = [number for number, _ in records]
    manifest = execution.manifest([model], "run", numbers, wanted=most, interrupted=done.interrupted)
    result = RunResult(model, records, {**manifest, "identity": of_model})
    result.precision = precision
    result.remarks += of_runs(model.spec, records)
    if wanted > replications and rule is None:
        result.remarks.append(
            f"{replications} replications were asked for and the result held more; it never shrinks and has {wanted}"
        )
    return result


Batch = Callable[[int, dict[int, Record]], Replications]
"""Runs replications 0 to n-1 except the known ones: ``batch(n, known)``."""


def precision_rule(model: Model, percent: float, figures: Sequence[str], most: int) -> StoppingRule:
    """Return the rule for a percentage of each figure, the most; refuse one out of range, or an unknown figure."""
    if not 0.0 < percent < 100.0:
        raise UsageError(f"--precision: above 0 and below 100 %, got {percent:g} %")
    check_names(figures, [model.spec])
    chosen = tuple(dict.fromkeys(figures)) or (watched(model.spec),)
    return StoppingRule(chosen, relative_half_width=percent / 100.0, budget=most)


def run_until(rule: StoppingRule, batch: Batch) -> tuple[Replications, ReplicationResult | None]:
    """Run replications until the rule is met, its budget used up, or the user ends it (then without a verdict)."""
    procedure = rounds_of(rule)
    done, numbers = batch(1, {}), next(procedure)
    if not done.interrupted:  # one shows which figures there are, before the others cost their time
        watched_in(done.records[0], 0, rule.metrics)
        done = batch(numbers.stop, done.records)
    while not done.interrupted:
        try:
            numbers = procedure.send([watched_in(done.records[n], n, rule.metrics) for n in numbers])
        except StopIteration as end:
            return done, end.value
        done = batch(numbers.stop, done.records)
    return done, None


def watched_in(record: Record, replication: int, figures: Sequence[str]) -> dict[str, float]:
    """Return the watched figures of one replication; refuse a figure of which it says nothing."""
    figures_there = figures_in(record, figures)
    for name, value in figures_there.items():
        if not math.isfinite(value):
            raise UsageError(f"--figure {name}: nothing to measure in replication {replication}")
    return figures_there
