"""Headings and tables of a report, from HTML or from text whose cells are separated by tabs."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

_MARKS = re.compile(r"</?[a-z]+>|\*\*|\\(?=[_*])", re.IGNORECASE)
_NUMBERED = re.compile(r"#*\s*[0-9]+(\.[0-9]+)*\.?\s+\S")

Table = list[tuple[int, list[str]]]
"""Rows of cells, each with its line."""


def blocks(text: str) -> Iterator[str | Table]:
    """Yield headings, as text, and tables in order."""
    yield from (_of_html(text) if re.search(r"<t(able|r)\b", text, re.IGNORECASE) else _of_text(text))


def _of_text(text: str) -> Iterator[str | Table]:
    rows: Table = []
    for line, raw in enumerate(text.splitlines(), start=1):
        plain = _MARKS.sub("", raw)
        if "\t" in plain:
            cells = [cell.strip() for cell in plain.split("\t")]
            while len(cells) > 1 and not cells[-1]:
                cells.pop()
            rows.append((line, cells))
            continue
        if rows:
            yield rows
            rows = []
        if raw.startswith("#") or _NUMBERED.match(plain):
            yield plain.lstrip("# ").strip()
    if rows:
        yield rows


def _of_html(text: str) -> list[str | Table]:
    reader = _Reader()
    reader.feed(text)
    reader.close()
    return reader.blocks


class _Reader(HTMLParser):
    """Collects headings, and the cells of tables."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks: list[str | Table] = []
        self.rows: Table | None = None
        self.words: list[str] | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        line = self.getpos()[0]
        if tag == "table":
            self.rows = []
        elif tag == "tr" and self.rows is not None:
            self.rows.append((line, []))
        elif tag in ("td", "th") or re.fullmatch("h[1-6]", tag):
            self.words = []

    def handle_endtag(self, tag: str) -> None:
        text = " ".join("".join(self.words or ()).split())
        if tag == "table" and self.rows is not None:
            self.blocks.append([row for row in self.rows if row[1]])
            self.rows = None
        elif tag in ("td", "th") and self.rows:
            self.rows[-1][1].append(text)
            self.words = None
        elif re.fullmatch("h[1-6]", tag):
            self.blocks.append(text)
            self.words = None

    def handle_data(self, data: str) -> None:
        if self.words is not None:
            self.words.append(data)
