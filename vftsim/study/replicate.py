"""Replications of one or several models under common random numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vftsim.errors import UsageError
from vftsim.study.model import Model
from vftsim.study.progress import Progress, Silent
from vftsim.study.system import Record, system_of
from vftsim.study.workers import Workers, checked_jobs, deferred_interrupts

DEFAULT_SEED = 1
DEFAULT_REPLICATIONS = 10
MOST_REPLICATIONS = 100_000

OnResult = Callable[[int, int, Record], None]
"""Called with (number of the model, replication, record) when a replication has arrived."""


@dataclass(slots=True)
class Replications:
    """Records of one model by replication.

    Attributes
    ----------
    model : Model
    seed : int
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
class _Task:
    kind: str
    spec: Any
    seed: int
    replication: int


def _simulate(task: _Task) -> Record:
    return system_of(task.kind).simulate(task.spec, task.seed, task.replication)


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
    done: Sequence[dict[int, Record]] = (),
    on_result: OnResult | None = None,
) -> list[Replications]:
    """Run every model for the same replications.

    Parameters
    ----------
    models : sequence of Model
    replications : int
        Replications 0 ... n-1 of the seed: each is the same traffic for every model.
    seed : int
        Root seed.
    jobs : int
        Worker processes; without influence on the results.
    progress : Progress, optional
    done : sequence of dict
        For each model, records that exist already.
    on_result : callable, optional
        Told of each record as it arrives.
    """
    check_study(replications, seed, jobs)
    show = progress or Silent()
    results = [Replications(model, seed) for model in models]
    for result, known in zip(results, done, strict=False):
        result.records.update({n: r for n, r in known.items() if n < replications})
    # Replication by replication: an interrupted comparison has complete pairs.
    wanted = [(m, n) for n in range(replications) for m, result in enumerate(results) if n not in result.records]
    tasks = [_Task(models[m].kind, models[m].spec, seed, n) for m, n in wanted]
    show.total(len(tasks))
    try:
        for index, record in Workers(_simulate, jobs, show.say).as_they_come(tasks):
            number, replication = wanted[index]
            with deferred_interrupts():
                results[number].records[replication] = record
                if on_result is not None:
                    on_result(number, replication, record)
            show.advance()
    except KeyboardInterrupt:
        for result in results:
            result.interrupted = True
    return results
