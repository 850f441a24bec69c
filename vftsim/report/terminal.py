"""Blocks as text for a terminal, none of whose lines is longer than it is wide."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence

from vftsim.report.blocks import Block, Note, Table, shown

NARROWEST = 60
_GAP = "  "
_LEAST_LABEL = 14


def as_text(blocks: Sequence[Block], width: int = 80) -> str:
    """Return blocks as text of at most ``width`` columns, at least :data:`NARROWEST`."""
    wide = max(width, NARROWEST)
    return "\n\n".join("\n".join(line.rstrip() for line in _lines(block, wide)) for block in blocks)


def _lines(block: Block, width: int) -> list[str]:
    if isinstance(block, Table):
        for layout in (_behind, _under):
            lines = layout(block, width)
            if max(map(len, lines)) <= width:
                return lines
        return _stacked(block, width)
    return textwrap.wrap(block.text, width, subsequent_indent=_GAP if isinstance(block, Note) else "")


def _behind(table: Table, width: int) -> list[str]:
    """Return a table with intervals behind the figures."""
    body = [[(str(row[0]), ""), *map(shown, row[1:])] for row in table.rows]
    full = [row for row in body if len(row) > 1]
    labels = max((len(row[0][0]) for row in full), default=_LEAST_LABEL)
    columns = []
    for number, name in enumerate(table.columns[1:], 1):
        values, behind = (max((len(row[number][part]) for row in full), default=0) for part in (0, 1))
        cells = [f"{row[number][0]:>{values}} {row[number][1]:<{behind}}" if len(row) > 1 else "" for row in body]
        wide = max(len(name), values + 1 + behind)
        columns.append([name.ljust(wide), *(cell.ljust(wide) for cell in cells)])
    head = _GAP.join([table.columns[0].ljust(labels), *(column[0] for column in columns)])
    lines = [head, "─" * min(width, max(len(head.rstrip()), labels))]
    for number, row in enumerate(body, 1):
        label = row[0][0]
        lines.append(label if len(row) == 1 else _GAP.join([label.ljust(labels), *(c[number] for c in columns)]))
    return lines


def _under(table: Table, width: int) -> list[str]:
    """Return a table with intervals under the figures; labels take what is left, on several lines."""
    body = [(str(row[0]), [shown(cell) for cell in row[1:]]) for row in table.rows]
    sizes = [
        max([len(name), *(len(text) for _, cells in body if cells for text in cells[number])])
        for number, name in enumerate(table.columns[1:])
    ]
    longest = max((len(label) for label, cells in body if cells), default=_LEAST_LABEL)
    room = max(_LEAST_LABEL, min(width - sum(sizes) - len(_GAP) * len(sizes), longest))
    heads = [name.rjust(size) for name, size in zip(table.columns[1:], sizes, strict=True)]
    lines = [_GAP.join([table.columns[0].ljust(room), *heads])]
    lines.append("─" * min(width, len(lines[0])))
    for label, cells in body:
        if not cells:
            lines.append(label)
            continue
        parts = textwrap.wrap(label, room, subsequent_indent="    ", initial_indent=_indent(label)) or [""]
        for number in range(max(len(parts), 2 if any(behind for _, behind in cells) else 1)):
            texts = [(cell[number] if number < 2 else "").rjust(size) for cell, size in zip(cells, sizes, strict=True)]
            lines.append(_GAP.join([(parts[number] if number < len(parts) else "").ljust(room), *texts]))
    return lines


def _stacked(table: Table, width: int) -> list[str]:
    """Return a table too wide for columns, one figure a line."""
    lines = []
    for label, *cells in table.rows:
        lines += textwrap.wrap(str(label), width, initial_indent=_indent(str(label)))
        for name, cell in zip(table.columns[1:], cells, strict=False):
            lines += textwrap.wrap(
                f"{name}: {' '.join(shown(cell))}", width, initial_indent="    ", subsequent_indent="      "
            )
    return lines


def _indent(label: str) -> str:
    return " " * (len(label) - len(label.lstrip()))
