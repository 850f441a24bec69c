"""Syntax trees of files, read once, and their statements without the expressions in them, a tenth of all nodes."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def statements(path: Path) -> Iterator[ast.AST]:
    """Yield every statement of a file, wherever in it."""
    left: list[ast.AST] = [tree(path)]
    while left:
        yield (node := left.pop())
        for block in ("body", "orelse", "finalbody", "handlers", "cases"):
            within = getattr(node, block, ())
            left += within if isinstance(within, list) else ()
