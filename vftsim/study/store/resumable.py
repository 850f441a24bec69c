"""Resumable studies: a cache of finished and judged runs in the store, and the answer in a file beside it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError

from vftsim.errors import UsageError
from vftsim.files import codec, write_file, write_json
from vftsim.report.blocks import Block
from vftsim.report.pictures import write_charts
from vftsim.spec.suggest import counted
from vftsim.study.blocks.printed import Printed
from vftsim.study.figures.frames import DataFrame, csv_text, rows
from vftsim.study.runs.workers import Interrupted, Workers, deferred_interrupts
from vftsim.study.store.opened import read_answer, read_data, read_manifest
from vftsim.study.store.store import ANSWER, MANIFEST, Opening, Store


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


def write_answer(store: Store, answer: Any) -> list[str]:
    """Write an answer beside the store, in its own form or :func:`write_result`'s; return remarks on both."""
    main = getattr(answer, "to_pandas", None)

    def write(folder: Path) -> None:
        write_result(folder, answer, {} if main is None else {answer.table: main()})

    store.finish(getattr(answer, "write_files", write))
    remarks: list[str] = getattr(answer, "remarks", [])
    remarks += store.remarks
    return remarks


BLOCKS = "blocks.json"
_TABLES = ("results.csv", "sensitivity.csv", "configurations.csv", "answer.csv")
_KINDS = {kind.__name__: kind for kind in get_args(Block)}


@dataclass(frozen=True)
class Stored(Printed):
    """A result as its directory describes it."""

    folder: Path
    name: str
    """Its title."""
    found: list[Block]
    manifest: dict[str, Any]

    @classmethod
    def opened(cls, folder: Path) -> Stored:
        """Return what is in a directory; refuse one that does not describe itself, or is damaged."""
        manifest, data = read_manifest(folder), read_data(folder, BLOCKS)
        try:
            blocks = [_block(entry) for entry in data["blocks"]]
            return cls(folder, str(data["title"]), blocks, manifest)
        except (ValidationError, KeyError, TypeError, AttributeError):
            raise UsageError(
                f"'{folder / BLOCKS}': damaged; the command that made '{folder}' writes it again"
            ) from None

    @property
    def title(self) -> str:
        return self.name

    def blocks(self) -> list[Block]:
        return self.found

    def to_pandas(self) -> DataFrame:
        """Return the main table; refuse a directory without one."""
        import pandas as pd  # noqa: PLC0415 - takes its time

        name = next((each for each in _TABLES if (self.folder / each).is_file()), None)
        if name is None:
            raise UsageError(f"'{self.folder}' has no table; the command that made it writes it again")
        # An empty cell alone is none: "null" and "NA" are values of settings.
        return pd.read_csv(self.folder / name, keep_default_na=False, na_values=[""])

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data, or the main table where that is all that is kept."""
        if (self.folder / ANSWER).is_file():
            return read_answer(self.folder)
        return {"manifest": self.manifest, "results": rows(self.to_pandas())}


def write_result(folder: Path, result: Printed, tables: Mapping[str, DataFrame], *, has_answer: bool = True) -> None:
    """Write a result's tables by name, its charts, what it says of itself, all of its answer, and the manifest."""
    for name, table in tables.items():
        write_file(folder / name, csv_text(table).encode())
    blocks = result.blocks()
    write_charts(folder, blocks)
    if not hasattr(result, "opened"):  # whose class reads it back
        entries = [{"is": type(block).__name__, **_plain(block)} for block in blocks]
        write_json(folder / BLOCKS, {"title": result.title, "blocks": entries}, indent=None)
    if has_answer:
        write_json(folder / ANSWER, result.for_machines())
    write_json(folder / MANIFEST, result.origin)


def _block(entry: Mapping[str, Any]) -> Block:
    kind = _KINDS[entry["is"]]
    block: Block = codec(kind)[1]({name: value for name, value in entry.items() if name != "is"})
    return block


def _plain(data: Any) -> Any:
    """Return blocks as JSON has them; where a field must have a number, one that JSON lacks is its word.

    A cell without a number is one of which nothing is known.
    """
    if is_dataclass(data):
        values = {each.name: getattr(data, each.name) for each in fields(data)}
        return {name: _word(value) if name != "cell" else _plain(value) for name, value in values.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(each) for each in data]
    return data


def _word(value: Any) -> Any:
    is_word = isinstance(value, float) and not math.isfinite(value)
    return str(float(value)) if is_word else _plain(value)
