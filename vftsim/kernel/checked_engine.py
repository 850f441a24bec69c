"""A test build of the engine ``simpy`` that finds what compiled code would do silently.

Compiled integers have 64 bits, and a float stored in an integer field is cut.  Here every sum, difference, product and
shift, and every value stored in a field, is looked at; about six times slower than the plain engine.
"""

import ast
import copy
from collections.abc import Callable
from functools import cache
from typing import Any

from vftsim.kernel.declare import Table
from vftsim.kernel.link import Linked
from vftsim.kernel.record import Record, fields
from vftsim.kernel.simpy_engine import SimpyEngine

_LEAST, _MOST = -(2**63), 2**63 - 1
_GROWING = (ast.Add, ast.Sub, ast.Mult, ast.LShift)
_STRICT = {int: "an int", bool: "a bool"}


class KernelOverflowError(ArithmeticError):
    """Compiled code would have gone on with another value: a defect of the part."""


def checked(value: Any) -> Any:
    """Return a value that 64 bits hold."""
    if type(value) is int and not _LEAST <= value <= _MOST:
        raise KernelOverflowError(f"{value} does not fit 64 bits")
    return value


class _Arithmetic(ast.NodeTransformer):
    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        return _look_at(node) if isinstance(node.op, _GROWING) else node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        before = copy.deepcopy(node.target)
        before.ctx = ast.Load()
        value: ast.expr = ast.BinOp(before, node.op, node.value)
        return ast.Assign([node.target], _look_at(value) if isinstance(node.op, _GROWING) else value)


def _look_at(node: ast.expr) -> ast.expr:
    return ast.Call(ast.Name("checked", ast.Load()), [node], [])


@cache
def checked_record(table: Table[Any]) -> type[Record]:
    """Return a record for a table's rows, whose fields refuse values of another type or size."""
    record, kinds = table.record, fields(table.record)

    def set_field(self: Any, name: str, value: Any) -> None:
        kind = kinds[name]
        if kind in _STRICT and type(value) is not kind:
            raise KernelOverflowError(f"{record.__name__}.{name} is {_STRICT[kind]} and was given {value!r}")
        object.__setattr__(self, name, checked(value))

    return type(f"Checked{record.__name__}", (record,), {"__setattr__": set_field})


class CheckedEngine(SimpyEngine):
    """See the module's text."""

    name = "checked"

    def __init__(self, linked: Linked, on_input: Callable[[], None] | None = None) -> None:
        super().__init__(linked, on_input)
        self._namespace["checked"] = checked

    def prepare(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        rewritten: ast.FunctionDef = _Arithmetic().visit(copy.deepcopy(tree))
        return ast.fix_missing_locations(rewritten)

    def record_type(self, table: Table[Any]) -> type[Any]:
        return checked_record(table)
