"""``vftsim run``: replications of one model, kept on disk if asked, as many as a precision takes (``--precision``).

The rule is :mod:`vftsim.stats.replications`: after each replication look at the interval of every watched figure, and
stop when all are narrow enough and stay so for five more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from pathlib import Path

from vftsim.composition.record import RunRecord as Record
from vftsim.errors import UsageError
from vftsim.stats import ReplicationResult, StoppingRule, run_replications
from vftsim.study.figures.catalogue import check_names, watched
from vftsim.study.figures.protection_costs import broken_promises
from vftsim.study.figures.summary import figures_in
from vftsim.study.runs.model import Model
from vftsim.study.runs.progress import Progress
from vftsim.study.runs.replicate import DEFAULT_REPLICATIONS, DEFAULT_SEED, Replications, check_study, replicate
from vftsim.study.runs.results import RunResult
from vftsim.study.runs.shard import WHOLE, Shard
from vftsim.study.runs.workers import Interrupted, checked_jobs
from vftsim.study.store.manifest import identity, manifest, utc_now
from vftsim.study.store.store import Opening, Store


def run_study(
    model: Model,
    replications: int = DEFAULT_REPLICATIONS,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    directory: Path | None = None,
    force: bool = False,
    resume: bool = False,
    progress: Progress | None = None,
    rule: StoppingRule | None = None,
    shard: Shard = WHOLE,
) -> RunResult:
    """Run a model; an interrupted run returns what is done.

    Parameters
    ----------
    jobs : int, optional
        Worker processes; by default all cores.
    directory : Path, optional
        Where the result goes.
    force, resume : bool
        Replace the directory, or go on with it.
    rule : StoppingRule, optional
        When there are enough replications; ``replications`` are then what a result has at least.
    shard : Shard
        The share of the replications to be run.

    Raises
    ------
    Interrupted
        Ctrl-C before anything was done.
    """
    if force and resume:
        raise UsageError("--force discards an existing result and --resume continues it: choose one")
    workers = checked_jobs(jobs)
    check_study(replications, seed, workers)
    opening = Opening.REPLACE if force else Opening.CONTINUE if resume else Opening.NEW
    with nullcontext() if directory is None else Store(directory, "run", opening) as store:
        own, started = identity(model, seed), utc_now()
        if store is not None and resume:
            store.check_only(own)
        there = store.numbers(own) if store is not None else []
        # Replications beyond those asked for are kept: a result never shrinks by being continued.
        wanted = max(replications, *(n + 1 for n in there), 0)

        def batch(count: int, known: dict[int, Record]) -> Replications:
            models, records = [model], [known]
            return replicate(models, count, seed, workers, progress=progress, store=store, known=records, shard=shard)[
                0
            ]

        done, verdict = (batch(wanted, {}), None) if rule is None else run_until(rule, batch, {})
        if not done.records:
            shard.refuse_idle(done.interrupted)
            raise Interrupted("nothing had finished")
        records, most = done.ordered(), max(wanted, len(done.records)) if rule else wanted
        numbers = [number for number, _ in records]
        said = manifest([model], "run", seed, numbers, workers, started, wanted=most, interrupted=done.interrupted)
        result = RunResult(model, records, {**said, "identity": own})
        result.precision = verdict
        result.remarks += broken_promises(records)
        if store is not None:
            store.finish(result.write_files)
            result.remarks += store.remarks
    if wanted > replications:
        result.remarks.append(
            f"{replications} replications were asked for and the result held more; it never shrinks and has {wanted}"
        )
    return result


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
