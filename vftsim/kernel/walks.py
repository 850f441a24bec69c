"""Loops over rows: the words for them, and what engines run instead."""

import ast
from collections.abc import Sequence

_LIST = """
{x}__row = {first}.first
while {x}__row != 0:
    {x} = {sim}.{table}[{x}__row]
    pass
    {x}__row = {sim}.{links}[{x}__row].{link}"""
_SPAN = """
{x}__first = {first}
for {x}__row in range({x}__first, {x}__first + {count}):
    {x} = {sim}.{table}[{x}__row]
    pass"""
WALKS = {
    "chain.rows": _LIST.replace("{x}__row", "{x}").replace("    {x} = {sim}.{table}[{x}]\n", ""),
    "table.listed": _LIST,
    "table.span": _SPAN,
}
"""By its word what a loop becomes; the loop's body stands where this says ``pass``."""
WALK_ARGUMENTS = "sim", "first", "count"
"""What a loop's word is called with, in this order; ``first`` is the list where it walks one."""


def continues(body: Sequence[ast.stmt]) -> bool:
    """Tell whether a loop's body goes on with its next round by itself."""
    inside = [node for node in body if not isinstance(node, ast.For | ast.While)]
    return any(
        isinstance(node, ast.Continue) or continues([*getattr(node, "body", ()), *getattr(node, "orelse", ())])
        for node in inside
    )


def written(text: str, body: list[ast.stmt], location: ast.stmt) -> list[ast.stmt]:
    """Return the statements of a loop around its body, at its place in the file."""
    statements = ast.parse(text).body
    for node in (inner for statement in statements for inner in ast.walk(statement)):
        ast.copy_location(node, location)
    loop = statements[-1]
    assert isinstance(loop, ast.For | ast.While)
    at = next(n for n, statement in enumerate(loop.body) if isinstance(statement, ast.Pass))
    loop.body[at : at + 1] = body
    return statements
