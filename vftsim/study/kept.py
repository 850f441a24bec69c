"""Studies that go on where they were ended: their replications and judged runs in a store, their answer beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

from vftsim.study.files import write_file, write_json
from vftsim.study.printed import Printed
from vftsim.study.results import csv_text
from vftsim.study.store import ANSWER, MANIFEST, Opening, Store
from vftsim.study.stored import write_blocks
from vftsim.study.workers import Interrupted, Workers, deferred_interrupts

Answered = TypeVar("Answered", bound=Printed)


def _same(data: Any) -> Any:
    return data


@dataclass(frozen=True)
class RunCache:
    """Numbered tasks of one study, each kept when it arrives and never done twice.

    Parameters
    ----------
    store : Store, optional
        Without one nothing is kept.
    identity : mapping
        All that determines the tasks' results, except their numbers.
    encode, decode : callable
        From a result to plain data, and back without loss.
    """

    store: Store | None = None
    identity: Mapping[str, Any] | None = None
    encode: Callable[[Any], Any] = _same
    decode: Callable[[Any], Any] = _same

    def at(self, **more: Any) -> RunCache:
        """Return the tasks that have more in common."""
        return replace(self, identity={**(self.identity or {}), **more})

    def there(self, tasks: Mapping[int, Any]) -> int:
        """Return how many of the tasks are in the store."""
        return 0 if self.store is None else len(tasks.keys() & self.store.numbers(self.identity or {}))

    def known(self) -> dict[int, Any]:
        """Return what is in the store; what cannot be read is done again."""
        found: dict[int, Any] = {}
        if self.store is None:
            return found
        for number, data in self.store.known(self.identity or {}).items():
            try:
                found[number] = self.decode(data)
            except (KeyError, TypeError, ValueError, AttributeError):
                self.store.disown(self.identity or {}, number)
        return found

    def keep(self, number: int, result: Any) -> None:
        """Put a result on disk, for good when this returns."""
        if self.store is not None:
            self.store.keep(self.identity or {}, number, self.encode(result))

    def in_order(self, workers: Workers[Any, Any], tasks: Mapping[int, Any]) -> list[Any]:
        """Return the results of tasks by number, in their order; what is in the store is not done again."""
        return together([self], workers, [tasks])[0]


def together(
    kept: Sequence[RunCache], workers: Workers[Any, Any], tasks: Sequence[Mapping[int, Any]]
) -> list[list[Any]]:
    """Return the results of the tasks of several studies, done in one go; what is in the store is not done again.

    Raises
    ------
    Interrupted
        Ctrl-C, and nobody keeps what had finished.
    """
    found = [one.known() for one in kept]
    missing = [(n, number) for n, own in enumerate(tasks) for number in own if number not in found[n]]
    done = 0
    try:
        for index, result in workers.as_they_come([tasks[n][number] for n, number in missing]):
            n, number = missing[index]
            with deferred_interrupts():
                kept[n].keep(number, result)
            found[n][number] = result
            done += 1
    except KeyboardInterrupt:
        if not done or any(one.store is not None for one in kept):
            raise
        raise Interrupted(
            f"{done} of {len(missing)} runs had finished and nobody keeps them; with -o DIR (or --keep) "
            "they stay, and the same command goes on"
        ) from None
    return [[own[number] for number in of] for own, of in zip(found, tasks, strict=True)]


@contextmanager
def kept_in(directory: Path | None, command: str, force: bool = False) -> Iterator[Store | None]:
    """Open the directory where a study keeps what it has; None if none was named.

    Parameters
    ----------
    command : str
        The kind of study.
    force : bool
        Forget what is there, once the new answer stands.
    """
    if directory is None:
        yield None
        return
    with going_on_in(directory, command, force) as store:
        yield store


@contextmanager
def going_on_in(directory: Path, command: str, force: bool = False) -> Iterator[Store]:
    """Open the same where one is named: an interruption says what is kept there."""
    with Store(directory, command, Opening.REPLACE if force else Opening.CONTINUE) as store:
        try:
            yield store
        except KeyboardInterrupt as end:
            if str(end) or store.is_empty:
                raise
            kept = sum(count for _, count in store.studies())
            raise Interrupted(f"{kept} finished runs are in '{directory}', the same command goes on") from None


def answer_in(
    directory: Path | None, command: str, force: bool, study: Callable[[Store | None], Answered]
) -> tuple[Answered, list[str]]:
    """Return a study's answer, its runs and itself kept in a directory if one was named, and remarks on that."""
    with kept_in(directory, command, force) as store:
        found = study(store)
        keep_answer(store, found)
    return found, store.remarks if store is not None else []


def keep_answer(store: Store | None, answer: Printed) -> None:
    """Write an answer's main table, where it has one, its blocks, the whole of it and the manifest beside the store."""

    def write(folder: Path) -> None:
        if (table := getattr(answer, "to_pandas", None)) is not None:
            write_file(folder / "answer.csv", csv_text(table()).encode())
        write_blocks(folder, answer)
        write_json(folder / ANSWER, answer.for_machines())
        write_json(folder / MANIFEST, answer.origin)

    if store is not None:
        store.finish(write)
