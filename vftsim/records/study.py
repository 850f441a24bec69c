"""What the records that are not yet data have in common: a report of tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from vftsim.records.judge import Table
from vftsim.records.runner import in_order
from vftsim.report.markdown import markdown_table

__all__ = ["Table", "in_markdown", "in_order"]


def in_markdown(title: str, ran: str, scores: Sequence[str], tables: Iterable[Table]) -> str:
    """Return a record as Markdown: what was run, what is scored, and all tables."""
    lines = [f"# {title}", "", ran, *([""] if scores else []), *(f"* {line}" for line in scores)]
    for table in tables:
        lines += ["", f"## {table.title}", "", markdown_table(table.columns, table.rows)]
    return "\n".join(lines) + "\n"
