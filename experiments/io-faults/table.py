"""Tables of the experiments in a page of the docs, between two marks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path


def written(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines) + "\n"


def put(page: Path, script: str, text: str) -> None:
    """Replace what stands between a script's marks in a page."""
    begin, end = f"<!-- generated: {script} -->", "<!-- end of generated part -->"
    before, rest = page.read_text(encoding="utf-8").split(begin)
    after = rest.split(end, 1)[1]
    page.write_text(f"{before}{begin}\n\n{text}\n{end}{after}", encoding="utf-8")
