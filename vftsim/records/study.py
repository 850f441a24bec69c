"""What the records of published studies have in common: many runs on several cores, tables, and a report."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from vftsim.report.markdown import markdown_table
from vftsim.study.progress import Progress
from vftsim.study.workers import Workers

R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class Table:
    """A part of a record: its title, its columns and its rows."""

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]


def in_order(
    function: Callable[[Any], R], tasks: Sequence[Any], labels: Sequence[str], jobs: int, progress: Progress
) -> list[R]:
    """Return the results of a module's function in the order of the tasks; each is told by its label as it arrives."""
    progress.total(len(tasks))
    found: dict[int, R] = {}
    for index, result in Workers(function, jobs, progress.say).as_they_come(tasks):
        found[index] = result
        progress.advance(labels[index])
    return [found[index] for index in range(len(tasks))]


def in_markdown(title: str, ran: str, scores: Sequence[str], tables: Iterable[Table]) -> str:
    """Return a record as Markdown: what was run, what is scored, and all tables."""
    lines = [f"# {title}", "", ran, *([""] if scores else []), *(f"* {line}" for line in scores)]
    for table in tables:
        lines += ["", f"## {table.title}", "", markdown_table(table.columns, table.rows)]
    return "\n".join(lines) + "\n"
