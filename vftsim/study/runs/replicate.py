"""Replications of one or several models under common random numbers."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TypeVar

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord as Record
from vftsim.composition.run import run_model
from vftsim.study.runs.estimate import share_by, worthwhile_jobs
from vftsim.study.runs.execution import Execution
from vftsim.study.runs.model import Model
from vftsim.study.runs.progress import Progress
from vftsim.study.runs.workers import deferred_interrupts, is_here
from vftsim.study.store.manifest import identity
from vftsim.study.store.resumable import RunCache

DEFAULT_REPLICATIONS = 10
QUICK_SHARE = 4
_FIRST_PART_NS = 1_000_000
_SHORT_S, _LONG_S = 0.1, 0.4
"""Real time between two looks at a replication under way; without influence on its result."""
R = TypeVar("R")
OnTime = Callable[[int], int]
"""Called with an instant of a run; returns after how much simulated time it is to be called again."""


@dataclass(slots=True)
class Replications:
    """Records of one model by replication."""

    model: Model
    records: dict[int, Record] = field(default_factory=dict)
    """By number of the replication."""
    interrupted: bool = False
    """Whether the user ended the study before all were done."""

    def ordered(self) -> list[tuple[int, Record]]:
        return sorted(self.records.items(), key=lambda item: item[0])


@dataclass(frozen=True, slots=True)
class Task:
    """One replication to be run, with all that determines it."""

    spec: ModelSpec
    seed: int
    replication: int


def _simulate(task: Task, on_time: OnTime | None = None) -> Record:
    return run_model(task.spec, task.seed, task.replication, on_time=on_time)


def simulated(simulate: Callable[..., R], tasks: Sequence[Task], execution: Execution) -> Iterator[tuple[int, R]]:
    """Yield (index of the task, what its run gave) as they arrive.

    ``simulate`` takes a task; in this process also an :data:`OnTime`, by which is shown how far the run is.
    """
    execution.progress.total(len(tasks))
    jobs = worthwhile_jobs(execution.worker_count, (task.spec for task in tasks))
    shown = partial(_in_parts, execution.progress, simulate)
    function = shown if is_here(jobs, len(tasks)) else simulate
    return execution.workers(function, jobs, is_counted=False).unordered(tasks)


def _in_parts(progress: Progress, simulate: Callable[..., R], task: Task) -> R:
    share = share_by(task.spec)
    part_ns, last_s = _FIRST_PART_NS, time.monotonic()

    def on_time(now_ns: int) -> int:
        nonlocal part_ns, last_s
        passed_s, last_s = time.monotonic() - last_s, time.monotonic()
        if passed_s < _SHORT_S:
            part_ns *= 2
        elif passed_s > _LONG_S:
            part_ns = max(part_ns // 2, 1)
        progress.part(min(share(now_ns), 0.99))
        return part_ns

    return simulate(task, on_time)


def fewer_crashes(model: Model, crashes: int | None, default: int, quick: bool) -> tuple[Model, int]:
    """Return how many crashes a study makes, and the model that says so where they are fewer than usual."""
    if crashes is not None or not quick:
        return model, default if crashes is None else crashes
    count = max(default // QUICK_SHARE, 2)
    note = f"{count} crashes instead of {default}; about {100 - 100 * count // default} % of the work saved"
    return replace(model, notes=(*model.notes, note)), count


def replicate(
    models: Sequence[Model],
    replications: int,
    execution: Execution,
    *,
    known: Sequence[dict[int, Record]] = (),
) -> list[Replications]:
    """Run every model for the same replications, 0 ... n-1 of the seed: each is the same traffic for every model.

    ``known`` are, for each model, records that the caller has already, which needs no store.
    """
    execution.check(replications)
    identities = [identity(model, execution.seed) if execution.store is not None else {} for model in models]
    caches = [RunCache(execution.store, each, Record.to_dict, Record.from_dict) for each in identities]
    results = [Replications(model, cache.known()) for model, cache in zip(models, caches, strict=True)]
    for result, records in zip(results, known, strict=False):
        result.records |= records
    for result in results:
        result.records = {n: record for n, record in result.records.items() if n < replications}
    # Replication by replication: an interrupted comparison has complete pairs.
    missing = [
        (number, n)
        for n in range(replications)
        for number, result in enumerate(results)
        if n not in result.records and execution.shard.has(n * len(models) + number)
    ]
    tasks = [Task(models[number].spec, execution.seed, n) for number, n in missing]
    stored = set[tuple[int, int]]()
    try:
        for index, record in simulated(_simulate, tasks, execution):
            number, n = missing[index]
            with deferred_interrupts():
                first = identities.index(identities[number])  # equal models share one cache
                if (first, n) not in stored:
                    caches[first].keep(n, record)
                    stored.add((first, n))
                results[number].records[n] = record
            execution.progress.advance()
    except KeyboardInterrupt:
        for result in results:
            result.interrupted = True
    return results
