"""A test build of the engine ``simpy`` that finds what compiled code would do silently.

Compiled integers have 64 bits, and a float stored in an integer field is cut.  Here every sum, difference, product and
shift, and every value stored in a field, is looked at; about six times slower than the plain engine.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from vftsim.kernel.declare import Table
from vftsim.kernel.link import Linked
from vftsim.kernel.record import Record, fields
from vftsim.kernel.simpy_engine import SimpyEngine

_LEAST, _MOST = -(2**63), 2**63 - 1
_GROWING = (ast.Add, ast.Sub, ast.Mult, ast.LShift)


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


def checked_record(record: type[Record]) -> type[Record]:
    """Return a record whose fields refuse values of another type or size."""
    kinds: dict[str, type | None] = {name: _scalar(hint) for name, hint in fields(record).items()}

    def set_field(self: Any, name: str, value: Any) -> None:
        kind = kinds[name]
        if kind is int and type(value) is not int:
            raise KernelOverflowError(f"{record.__name__}.{name} is an int and was given {value!r}")
        if kind is bool and type(value) is not bool:
            raise KernelOverflowError(f"{record.__name__}.{name} is a bool and was given {value!r}")
        object.__setattr__(self, name, checked(value))

    return type(f"Checked{record.__name__}", (record,), {"__setattr__": set_field})


def _scalar(hint: Any) -> type | None:
    return hint if hint in (int, bool) else None


class CheckedEngine(SimpyEngine):
    """See the module's text."""

    name = "checked"

    def __init__(self, linked: Linked, on_input: Callable[[], None] | None = None) -> None:
        self._records: dict[str, type[Any]] = {}
        super().__init__(linked, on_input)
        self._namespace["checked"] = checked

    def prepare(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        """Return the function with every result of its arithmetic looked at."""
        rewritten: ast.FunctionDef = _Arithmetic().visit(copy.deepcopy(tree))
        return ast.fix_missing_locations(rewritten)

    def record_type(self, table: Table[Any]) -> type[Any]:
        """Return a record whose fields refuse values of another type or size."""
        if table.name not in self._records:
            self._records[table.name] = checked_record(table.record)
        return self._records[table.name]
