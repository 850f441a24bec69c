"""``vftsim run``: replications of one model, kept on disk if asked."""

from __future__ import annotations

from pathlib import Path

from vftsim.composition.record import RunRecord as Record
from vftsim.errors import UsageError
from vftsim.stats import StoppingRule
from vftsim.study.manifest import identity, manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.precision import run_until
from vftsim.study.progress import Progress
from vftsim.study.protection_figures import broken_promises
from vftsim.study.replicate import (
    DEFAULT_REPLICATIONS,
    DEFAULT_SEED,
    Replications,
    check_study,
    replicate,
)
from vftsim.study.results import RunResult
from vftsim.study.shard import WHOLE, Shard
from vftsim.study.store import Opening, Store
from vftsim.study.workers import Interrupted, checked_jobs


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
    if directory is None:
        return _run(model, replications, seed, workers, None, progress, rule, shard)
    opening = Opening.REPLACE if force else Opening.CONTINUE if resume else Opening.NEW
    with Store(directory, "run", opening) as store:
        if resume:
            store.check_only(identity(model, seed))
        return _run(model, replications, seed, workers, store, progress, rule, shard)


def _run(
    model: Model,
    replications: int,
    seed: int,
    jobs: int,
    store: Store | None,
    progress: Progress | None,
    rule: StoppingRule | None,
    shard: Shard,
) -> RunResult:
    started = utc_now()
    there = store.numbers(identity(model, seed)) if store is not None else []
    # Replications beyond those asked for are kept: a result never shrinks by being continued.
    wanted = max(replications, *(n + 1 for n in there), 0)

    def batch(count: int, records: dict[int, Record]) -> Replications:
        return replicate([model], count, seed, jobs, progress=progress, store=store, known=[records], shard=shard)[0]

    done, verdict = (batch(wanted, {}), None) if rule is None else run_until(rule, batch, {})
    if not done.records:
        shard.refuse_idle(done.interrupted)
        raise Interrupted("nothing had finished")
    result = _result(done, max(wanted, len(done.records)) if rule else wanted, jobs, started)
    result.precision = verdict
    result.remarks += broken_promises(done.ordered())
    if store is not None:
        store.finish(result.write_files)
        result.remarks += store.remarks
    if wanted > replications:
        result.remarks.append(
            f"{replications} replications were asked for and the result held more; it never shrinks and has {wanted}"
        )
    return result


def _result(done: Replications, wanted: int, jobs: int, started: str) -> RunResult:
    records = done.ordered()
    said = manifest(
        [done.model],
        "run",
        done.seed,
        [number for number, _ in records],
        jobs,
        started,
        wanted=wanted,
        interrupted=done.interrupted,
    )
    said["identity"] = identity(done.model, done.seed)
    return RunResult(done.model, records, said)
