"""Replications of one or several models under common random numbers."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord as Record
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.study.runs.estimate import share_by, worthwhile_jobs
from vftsim.study.runs.model import Model
from vftsim.study.runs.progress import Progress, Silent
from vftsim.study.runs.shard import WHOLE, Shard
from vftsim.study.runs.workers import Workers, checked_jobs, deferred_interrupts, is_here
from vftsim.study.store.manifest import identity
from vftsim.study.store.resumable import RunCache
from vftsim.study.store.store import Store

DEFAULT_SEED = 1
DEFAULT_REPLICATIONS = 10
QUICK_SHARE = 4
MOST_REPLICATIONS = 100_000
_FIRST_PART_NS = 1_000_000
_SHORT_S, _LONG_S = 0.1, 0.4
"""Real time between two looks at a replication under way; without influence on its result."""

OnResult = Callable[[int, int, Record], None]
"""Called with (number of the model, replication, record) when a replication has arrived."""


@dataclass(slots=True)
class Replications:
    """Records of one model by replication.

    Attributes
    ----------
    records : dict
        By number of the replication.
    interrupted : bool
        Whether the user ended the study before all were done.
    """

    model: Model
    seed: int
    records: dict[int, Record] = field(default_factory=dict)
    interrupted: bool = False

    def ordered(self) -> list[tuple[int, Record]]:
        """Return (replication, record) in the order of the replications."""
        return sorted(self.records.items(), key=lambda item: item[0])


@dataclass(frozen=True, slots=True)
class Task:
    """One replication to be run, with all that determines it."""

    spec: ModelSpec
    seed: int
    replication: int


def _simulate(task: Task, tell: Callable[[int], int] | None = None) -> Record:
    return run_model(task.spec, task.seed, task.replication, on_time=tell)


class _Telling:
    """Simulates in this process, and tells how far a replication is."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, task: Task) -> Record:
        share = share_by(task.spec)
        part_ns, told_s = _FIRST_PART_NS, time.monotonic()

        def tell(now_ns: int) -> int:
            nonlocal part_ns, told_s
            passed_s, told_s = time.monotonic() - told_s, time.monotonic()
            if passed_s < _SHORT_S:
                part_ns *= 2
            elif passed_s > _LONG_S:
                part_ns = max(part_ns // 2, 1)
            self._progress.part(min(share(now_ns), 0.99))
            return part_ns

        return _simulate(task, tell)


def fewer_crashes(model: Model, asked: int | None, default: int, quick: bool) -> tuple[Model, int]:
    """Return how many crashes a study makes, and the model that says so where they are fewer than usual."""
    if asked is not None or not quick:
        return model, default if asked is None else asked
    count = max(default // QUICK_SHARE, 2)
    note = f"{count} crashes instead of {default}; about {100 - 100 * count // default} % of the work saved"
    return replace(model, notes=(*model.notes, note)), count


def check_study(replications: int, seed: int, jobs: int) -> None:
    """Refuse numbers that make no sense.

    Raises
    ------
    UsageError
        One of them is out of range.
    """
    if not 1 <= replications <= MOST_REPLICATIONS:
        raise UsageError(f"replications: from 1 to {MOST_REPLICATIONS}, got {replications}")
    if not 0 <= seed < 2**128:
        raise UsageError(f"the seed must be from 0 to 2**128 - 1, got {seed}")
    checked_jobs(jobs)


def replicate(
    models: Sequence[Model],
    replications: int,
    seed: int = DEFAULT_SEED,
    jobs: int = 1,
    *,
    progress: Progress | None = None,
    store: Store | None = None,
    known: Sequence[dict[int, Record]] = (),
    on_result: OnResult | None = None,
    shard: Shard = WHOLE,
) -> list[Replications]:
    """Run every model for the same replications.

    Parameters
    ----------
    replications : int
        Replications 0 ... n-1 of the seed: each is the same traffic for every model.
    seed : int
        Root seed.
    jobs : int
        Worker processes; without influence on the results.
    store : Store, optional
        Where records are that exist already, and where each goes as it arrives.
    known : sequence of dict, optional
        For each model, records that the caller has already; needs no store.
    on_result : callable, optional
        Told of each record as it arrives.
    shard : Shard
        The share of the runs that is to be done.
    """
    check_study(replications, seed, jobs)
    show = progress or Silent()
    results = [Replications(model, seed) for model in models]
    said = [identity(model, seed) if store is not None else {} for model in models]
    kept = set[tuple[int, int]]()
    places = [RunCache(store, own, Record.to_dict, Record.from_dict) for own in said]
    for number, (result, place) in enumerate(zip(results, places, strict=True)):
        result.records = {n: record for n, record in place.known().items() if n < replications}
        if number < len(known):
            result.records |= {n: r for n, r in known[number].items() if n < replications}
    # Replication by replication: an interrupted comparison has complete pairs.
    wanted = [
        (m, n)
        for n in range(replications)
        for m, result in enumerate(results)
        if n not in result.records and shard.has(n * len(models) + m)
    ]
    tasks = [Task(models[m].spec, seed, n) for m, n in wanted]
    show.total(len(tasks))
    jobs = worthwhile_jobs(jobs, (task.spec for task in tasks))
    try:
        function = _Telling(show) if is_here(jobs, len(tasks)) and progress is not None else _simulate
        for index, record in Workers(function, jobs, show.say).as_they_come(tasks):
            number, replication = wanted[index]
            with deferred_interrupts():
                first = said.index(said[number])  # equal models share one place
                if (first, replication) not in kept:
                    places[first].keep(replication, record)
                    kept.add((first, replication))
                results[number].records[replication] = record
                if on_result is not None:
                    on_result(number, replication, record)
            show.advance()
    except KeyboardInterrupt:
        for result in results:
            result.interrupted = True
    return results
