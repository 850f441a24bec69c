"""``vftsim run``: replications of one model, as many as a precision takes (``--precision``).

The rule is :mod:`vftsim.stats.replications`: after each replication look at the interval of every watched figure, and
stop when all are narrow enough and stay so for five more.
"""

import math
from collections.abc import Sequence

from vftsim.composition.record import RunRecord as Record
from vftsim.errors import UsageError
from vftsim.stats import ReplicationResult, StoppingRule
from vftsim.stats.replications import replicate as rounds_of
from vftsim.study.figures.names import check_names, watched
from vftsim.study.figures.protection_costs import of_runs
from vftsim.study.figures.summary import figures_in
from vftsim.study.runs.execution import Execution, Replications
from vftsim.study.runs.model import Model
from vftsim.study.runs.results import RunResult
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.manifest import identity


def run_study(
    model: Model,
    replications: int,
    execution: Execution,
    *,
    rule: StoppingRule | None = None,
    figures: Sequence[str] = (),
) -> RunResult:
    """Run a model, going on from what the execution's store has of it; an interrupted run returns what is done.

    The result shows ``figures``, or what leads.  A rule says when there are enough replications; ``replications`` are
    then what a result has at least.
    """
    execution.check(replications)
    of_model, store = identity(model, execution.seed), execution.store
    if store is not None:
        store.check_only(of_model)
    stored = store.numbers(of_model) if store is not None else []
    # Replications beyond those asked for are kept: a result never shrinks by being continued.
    wanted = max(replications, *(n + 1 for n in stored), 0)

    done = Replications([model], execution)
    precision = None if rule is None else run_until(rule, done)
    if not done.interrupted:
        done.run(wanted)  # a precision may have taken fewer
    records = sorted(done.records[0].items())
    if not records:
        execution.shard.refuse_idle(done.interrupted)
        raise Interrupted("nothing had finished")
    most = wanted if rule is None else max(wanted, len(records))
    numbers = [number for number, _ in records]
    manifest = execution.manifest([model], "run", numbers, wanted=most, interrupted=done.interrupted)
    result = RunResult(model, records, {**manifest, "identity": of_model})
    result.precision, result.figures = precision, figures
    result.remarks += of_runs(model.spec, records)
    if wanted > replications and rule is None:
        result.remarks.append(
            f"{replications} replications were asked for and the result held more; it never shrinks and has {wanted}"
        )
    return result


def precision_rule(model: Model, percent: float, figures: Sequence[str], most: int) -> StoppingRule:
    """Return the rule for a percentage of each figure, the most; refuse one out of range, or an unknown figure."""
    if not 0.0 < percent < 100.0:
        raise UsageError(f"--precision: above 0 and below 100 %, got {percent:g} %")
    check_names(figures, [model.spec])
    chosen = tuple(dict.fromkeys(figures)) or (watched(model.spec),)
    return StoppingRule(chosen, relative_half_width=percent / 100.0, budget=most)


def run_until(rule: StoppingRule, done: Replications) -> ReplicationResult | None:
    """Run replications of a model until the rule is met, or its budget used up; None where the user ends it."""
    procedure, records = rounds_of(rule), done.records[0]
    numbers = next(procedure)
    if done.run(1):  # one shows which figures there are, before the others cost their time
        watched_in(records[0], 0, rule.metrics)
    while not done.interrupted and done.run(numbers.stop):
        try:
            numbers = procedure.send([watched_in(records[n], n, rule.metrics) for n in numbers])
        except StopIteration as end:
            verdict: ReplicationResult = end.value
            return verdict
    return None


def watched_in(record: Record, replication: int, figures: Sequence[str]) -> dict[str, float]:
    """Return the watched figures of one replication; refuse a figure of which it says nothing."""
    figures_there = figures_in(record, figures)
    for name, value in figures_there.items():
        if not math.isfinite(value):
            raise UsageError(f"--figure {name}: nothing to measure in replication {replication}")
    return figures_there
