"""Blocks as text for a terminal, none of whose lines is longer than it is wide.  Charts are for other renderers."""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import replace

from vftsim.report.blocks import Answer, Block, Cell, Note, Table, Timeline, shown

NARROWEST = 60
_GAP = "  "
_LEAST_TEXT = 14
_Row = list[tuple[str, str]]


def as_text(blocks: Sequence[Block], width: int = 80) -> str:
    """Return blocks as text of at most ``width`` columns, at least :data:`NARROWEST`."""
    wide, parts, was_note = max(width, NARROWEST), "", False
    for block in blocks:
        text = "\n".join(line.rstrip() for line in _lines(block, wide))
        if not text:
            continue
        is_note = isinstance(block, Answer | Note)
        between = "" if not parts else "\n" if is_note and was_note else "\n\n"
        parts, was_note = parts + between + text, is_note
    return parts


def _lines(block: Block, width: int) -> list[str]:
    if isinstance(block, Table):
        return [*_wrapped(block.title, width), *_table(block, width), *_wrapped(block.caption, width)]
    if isinstance(block, Timeline):
        times = [f"{time_s:12.6f} s{_GAP}" for time_s, _ in block.events]
        events = [
            _wrapped(time + text, width, " " * len(time)) for time, (_, text) in zip(times, block.events, strict=True)
        ]
        return [*_wrapped(block.title, width), *(line for lines in events for line in lines)]
    if isinstance(block, Answer):
        prefix = f"{block.question}{'' if block.question.endswith('?') else ':'} " if block.question else ""
        return [*_wrapped(prefix + block.text, width, _GAP), *_wrapped(block.more, width, _GAP)]
    return _wrapped(block.text, width, _GAP) if isinstance(block, Note) else []


def _wrapped(text: str, width: int, indent: str = "") -> list[str]:
    return textwrap.wrap(
        text, width, subsequent_indent=indent, break_on_hyphens=False, drop_whitespace=True, replace_whitespace=False
    )


def _table(table: Table, width: int) -> list[str]:
    """Return a table with intervals behind the figures; too wide, with them below; too wide still, a figure a line."""
    body = [[shown(cell) for cell in row] for row in table.rows]
    full = [row for row in body if len(row) > 1]
    for is_below, may_wrap in ((False, False), (True, False), (True, True)):
        sizes = _number_sizes(table, full, is_below)
        room = width - sum(sizes) - len(_GAP) * len(sizes)
        texts = _text_sizes(table, full, room, may_wrap)
        if texts is not None:
            return _laid_out(table, body, texts, sizes, width, is_below=is_below)
    return _apart(table, width)


def _number_sizes(table: Table, rows: Sequence[_Row], is_below: bool) -> list[int]:
    """Return how wide each column of figures is; a heading may take several lines, a word of it one."""
    sizes = []
    for number in range(table.texts, len(table.columns)):
        of_cells = _widths([row[number] for row in rows if number < len(row)], is_below)
        sizes.append(max(sum(of_cells), *map(len, table.columns[number].split() or [" "])))
    return sizes


def _widths(cells: Sequence[tuple[str, str]], is_below: bool) -> tuple[int, int]:
    """Return the widths of values and of what stands behind them, with the gap."""
    value, behind = (max((len(cell[part]) for cell in cells), default=0) for part in (0, 1))
    return (max(value, behind), 0) if is_below else (value, behind + 1 if behind else 0)


def _text_sizes(table: Table, rows: Sequence[_Row], room: int, may_wrap: bool) -> list[int] | None:
    """Return how wide each column of words is within a room; None if they do not fit."""
    count = min(table.texts, len(table.columns))
    wide = [max([1, len(table.columns[n]), *(len(row[n][0]) for row in rows if n < len(row))]) for n in range(count)]
    room -= len(_GAP) * (count - 1)
    if sum(wide) <= room:
        return wide
    if not may_wrap:
        return None
    cap = next((cap for cap in range(max(wide), _LEAST_TEXT - 1, -1) if sum(min(w, cap) for w in wide) <= room), None)
    sizes = [min(w, cap or 0) for w in wide]
    is_broken = any(_breaks_number(row[n][0], size) for row in rows for n, size in enumerate(sizes) if n < len(row))
    return None if cap is None or is_broken else sizes


def _laid_out(
    table: Table, body: Sequence[_Row], texts: Sequence[int], sizes: Sequence[int], width: int, *, is_below: bool
) -> list[str]:
    full = [row for row in body if len(row) > 1]
    pairs = [_widths([row[n] for row in full if n < len(row)], is_below) for n in range(len(texts), len(table.columns))]
    one_line = [max(size, len(name)) for size, name in zip(sizes, table.columns[table.texts :], strict=True)]
    if sum(texts) + sum(one_line) + len(_GAP) * (len(texts) + len(sizes) - 1) <= width:
        sizes = one_line
    lines = _heading(table, texts, sizes, pairs)
    lines.append("─" * min(width, max(len(line.rstrip()) for line in lines)))
    for row in body:
        if len(row) == 1:
            lines += _wrapped(row[0][0], width)
            continue
        words = [_in_column(row[n][0], size) for n, size in enumerate(texts)]
        figures = [
            _figure(row[n], pair, size, is_below)
            for n, (pair, size) in enumerate(zip(pairs, sizes, strict=True), len(texts))
        ]
        lines += _side_by_side([*words, *figures], [*texts, *sizes])
    return lines


def _heading(table: Table, texts: Sequence[int], sizes: Sequence[int], pairs: Sequence[tuple[int, int]]) -> list[str]:
    words = [_in_column(name, size) for name, size in zip(table.columns, texts, strict=False)]
    heads = []
    for name, size, (_, behind) in zip(table.columns[table.texts :], sizes, pairs, strict=True):
        justify = str.ljust if behind and len(name) <= size else str.rjust
        heads.append([justify(line, size) for line in _wrapped(name, size) or [""]])
    most = max(len(column) for column in [*words, *heads])
    columns = [[""] * (most - len(column)) + column for column in [*words, *heads]]
    return _side_by_side(columns, [*texts, *sizes])


def _in_column(text: str, size: int) -> list[str]:
    """Return words within a column; what goes on in a further line is set in."""
    if len(text) <= size:
        return [text.rstrip()]
    indent = " " * (len(text) - len(text.lstrip()))
    deeper, lines = f"{indent}  ", [""]
    for word in text.split():
        for number, part in enumerate(_chopped(word, max(size - len(deeper), 1))):
            between = " " if number == 0 and lines[-1] else ""
            if lines[-1] and len(lines[-1] + between + part) > size:
                lines.append(deeper + part)
            else:
                lines[-1] += (between if lines[-1] else indent) + part
    return lines


def _parts(word: str, size: int) -> list[str]:
    """Return the parts between which a word that is longer than a size may be broken: an address ends a line at a dot.

    Where what is between two is too long, a name does at a hyphen; a number nowhere.
    """
    parts = [word]
    for end in (r"(?<=[.=/])(?=[^\W\d])", r"(?<=[-_+])(?=[^\W\d])"):
        parts = [each for part in parts for each in (re.split(end, part) if len(part) > size else [part])]
    return parts


def _chopped(word: str, size: int) -> list[str]:
    """Return the parts of a word, none longer than a size."""
    return [part[begin : begin + size] for part in _parts(word, size) for begin in range(0, len(part), size)]


def _breaks_number(text: str, size: int) -> bool:
    """Whether a number within words is broken in a column of a size."""
    room = max(size - len(text) + len(text.lstrip()) - 2, 1)
    parts = (part for word in text.split() for part in _parts(word, room) if len(text) > size)
    return any(len(part) > room and re.search(r"\d", part) for part in parts)


def _figure(cell: tuple[str, str], pair: tuple[int, int], size: int, is_below: bool) -> list[str]:
    value, behind = cell
    if is_below:
        return [value.rjust(size), *([behind.rjust(size)] if behind else [])]
    text = f"{value:>{pair[0]}}" + (f" {behind}".ljust(pair[1]) if pair[1] else "")
    return [text.rjust(size)]


def _side_by_side(columns: Sequence[Sequence[str]], sizes: Sequence[int]) -> list[str]:
    count = max(map(len, columns))
    rows = [[column[n] if n < len(column) else "" for column in columns] for n in range(count)]
    return [_GAP.join(cell.ljust(size) for cell, size in zip(row, sizes, strict=True)) for row in rows]


def _apart(table: Table, width: int) -> list[str]:
    """Return a table in several, each with as many columns of figures as fit; a figure a line where none fits."""
    for count in range(len(table.columns) - 1, table.texts, -1):
        first = _columns(table, table.texts, count)
        full = [[shown(cell) for cell in row] for row in first.rows if len(row) > 1]
        sizes = _number_sizes(first, full, is_below=True)
        if _text_sizes(first, full, width - sum(sizes) - len(_GAP) * len(sizes), may_wrap=False) is not None:
            return [*_table(first, width), "", *_table(_columns(table, count, len(table.columns)), width)]
    return _stacked(table, width)


def _columns(table: Table, begin: int, end: int) -> Table:
    """Return the table with its words and some of its columns of figures."""

    def chosen(row: Sequence[Cell]) -> list[Cell]:
        return [*row[: table.texts], *row[begin:end]]

    columns = [*table.columns[: table.texts], *table.columns[begin:end]]
    return replace(table, columns=columns, rows=[chosen(row) for row in table.rows])


def _stacked(table: Table, width: int) -> list[str]:
    """Return a table too wide for columns, one figure a line."""
    lines = []
    for label, *cells in table.rows:
        lines += _in_column(shown(label)[0], width)
        for name, cell in zip(table.columns[1:], cells, strict=False):
            lines += textwrap.wrap(
                f"{name}: {' '.join(shown(cell))}".rstrip(), width, initial_indent="    ", subsequent_indent="      "
            )
    return lines
