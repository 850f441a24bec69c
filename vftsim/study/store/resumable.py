"""Resumable studies: a cache of finished and judged runs in the store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vftsim.spec.suggest import counted
from vftsim.study.runs.workers import Interrupted, Workers, deferred_interrupts
from vftsim.study.store.store import Opening, Store


def _same(data: Any) -> Any:
    return data


@dataclass(frozen=True)
class RunCache:
    """Numbered tasks of one study, each kept when it arrives and never done twice."""

    store: Store | None = None
    """Without one nothing is kept."""
    identity: Mapping[str, Any] = field(default_factory=dict)
    """All that determines the tasks' results, except their numbers."""
    encode: Callable[[Any], Any] = _same
    decode: Callable[[Any], Any] = _same
    """From a result to plain data, and back without loss."""

    def at(self, **more: Any) -> RunCache:
        """Return the tasks that have more in common."""
        return replace(self, identity={**self.identity, **more})

    def count_stored(self, tasks: Mapping[int, Any]) -> int:
        """Return how many of the tasks are in the store."""
        return 0 if self.store is None else len(tasks.keys() & self.store.numbers(self.identity))

    def known(self) -> dict[int, Any]:
        """Return what is in the store; what cannot be read is done again."""
        results: dict[int, Any] = {}
        if self.store is None:
            return results
        for number, data in self.store.known(self.identity).items():
            try:
                results[number] = self.decode(data)
            except (KeyError, TypeError, ValueError, AttributeError):
                self.store.mark_damaged(self.identity, number)
        return results

    def keep(self, number: int, result: Any) -> None:
        """Put a result on disk, for good when this returns."""
        if self.store is not None:
            self.store.keep(self.identity, number, self.encode(result))

    def in_order(self, workers: Workers[Any, Any], tasks: Mapping[int, Any]) -> list[Any]:
        """Return the results of tasks by number, in their order; what is in the store is not done again."""
        return together([self], workers, [tasks])[0]


def together(
    caches: Sequence[RunCache], workers: Workers[Any, Any], tasks: Sequence[Mapping[int, Any]]
) -> list[list[Any]]:
    """Return the results of the tasks of several studies, done in one go; what is in the store is not done again."""
    results_by_number = [cache.known() for cache in caches]
    missing = [
        (n, number) for n, of_study in enumerate(tasks) for number in of_study if number not in results_by_number[n]
    ]
    done = 0
    try:
        for index, result in workers.unordered([tasks[n][number] for n, number in missing]):
            n, number = missing[index]
            with deferred_interrupts():
                caches[n].keep(number, result)
            results_by_number[n][number] = result
            done += 1
    except KeyboardInterrupt:
        if not done or any(cache.store is not None for cache in caches):
            raise
        raise Interrupted(
            f"{done} of {len(missing)} runs had finished and nobody keeps them; with -o DIR (or --keep) "
            "they stay, and the same command goes on"
        ) from None
    return [[of_study[number] for number in of] for of_study, of in zip(results_by_number, tasks, strict=True)]


@contextmanager
def resumable_store(directory: Path, command: str, opening: Opening = Opening.CONTINUE) -> Iterator[Store]:
    """Open the directory where a study of a kind keeps what it has; an interruption says what is kept there."""
    with Store(directory, command, opening) as store:
        try:
            yield store
        except KeyboardInterrupt as end:
            finished = sum(count for _, count in store.studies())
            if not finished or str(directory) in str(end):
                raise
            kept = f"{counted(finished, 'finished run')} {'is' if finished == 1 else 'are'} in '{directory}'"
            raise Interrupted("; ".join(filter(None, [str(end), f"{kept}, {store.going_on} goes on"]))) from None
