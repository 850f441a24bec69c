"""What a record computes of its results, as text in its file: arithmetic over named values, no more.

``100 * (1 - mean('protected', 'rate') / mean('plain', 'rate'))`` is read into a syntax tree, and only numbers, texts,
lists, names, arithmetic, comparisons, choices, subscripts, and calls of the functions at hand are worked out; nothing
else is reached.  A list is worked with number by number.  A dotted name, ``domains.guest.cpu``, is the address of a
figure.  In a template such an expression stands in braces, before a format: ``{rate:.1f} calls/s``.
"""

import ast
import operator
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from vftsim.errors import UsageError
from vftsim.spec.suggest import did_you_mean

Names = Mapping[str, Any]

_ARITHMETIC: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda item, of: item in of,
}
_LONGEST = 2000


def evaluate(text: str | float, names: Names) -> Any:
    """Return the value of an expression, a number as it is; refuse what is none, or names what there is not."""
    if not isinstance(text, str):
        return text
    try:
        if len(text) > _LONGEST:
            raise UsageError(f"it is longer than {_LONGEST} characters")
        return _Reader(names).visit(ast.parse(text.strip(), mode="eval").body)
    except UsageError as error:
        raise UsageError(f"'{text}': {error}") from error
    except (SyntaxError, TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as error:
        raise UsageError(f"'{text}' cannot be worked out: {error}") from error


class _Reader(ast.NodeVisitor):
    """Works out a tree, a method for each thing that may stand in one."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def generic_visit(self, node: ast.AST) -> Any:
        raise UsageError(f"'{ast.unparse(node)}' is not arithmetic over names")

    def visit_Constant(self, node: ast.Constant) -> Any:
        return node.value

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id not in self._names:
            raise UsageError(f"there is no '{node.id}'{did_you_mean(node.id, list(self._names)) or ''}")
        return self._names[node.id]

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        head = node.value
        if isinstance(head, ast.Name) and isinstance(self._names.get(head.id), Mapping):
            return self._names[head.id][node.attr]
        if "figure" not in self._names:
            raise UsageError(f"'{ast.unparse(node)}' is the address of a figure, and no run is at hand")
        return self._names["figure"](ast.unparse(node))

    def visit_List(self, node: ast.List) -> Any:
        items = [self.visit(each) for each in node.elts]
        return items if any(isinstance(each, str) for each in items) else np.array(items)

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        return self.visit(node.value)[self.visit(node.slice)]

    def visit_Slice(self, node: ast.Slice) -> slice:
        return slice(*(None if each is None else self.visit(each) for each in (node.lower, node.upper, node.step)))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        return self.visit(node.body if self.visit(node.test) else node.orelse)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self._of(node.op)(self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return self._of(node.op)(self.visit(node.left), self.visit(node.right))

    def visit_BoolOp(self, node: ast.BoolOp) -> bool:
        parts = (bool(np.all(self.visit(each))) for each in node.values)
        return all(parts) if isinstance(node.op, ast.And) else any(parts)

    def visit_Compare(self, node: ast.Compare) -> bool:
        sides = [self.visit(each) for each in (node.left, *node.comparators)]
        pairs = zip(node.ops, sides, sides[1:], strict=False)
        return all(bool(np.all(self._of(op)(a, b))) for op, a, b in pairs)

    def visit_Call(self, node: ast.Call) -> Any:
        if not isinstance(node.func, ast.Name):
            raise UsageError(f"'{ast.unparse(node.func)}' is no function at hand")
        arguments = [self.visit(each) for each in node.args]
        return self.visit(node.func)(*arguments, **{str(each.arg): self.visit(each.value) for each in node.keywords})

    def _of(self, node: ast.AST) -> Callable[..., Any]:
        if type(node) not in _ARITHMETIC:
            self.generic_visit(node)
        return _ARITHMETIC[type(node)]


class _Template(string.Formatter):
    """Writes expressions into a text, a list with `` and `` between its numbers."""

    def __init__(self, names: Names) -> None:
        self._names = names

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, str]:
        return evaluate(field_name, self._names), field_name

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, np.ndarray):
            return " and ".join(format(each, format_spec) for each in value)
        return format(value, format_spec)


def write(template: str, names: Names) -> str:
    """Return a text with its expressions worked out; refuse one that cannot be, and braces that do not match."""
    try:
        return _Template(names).vformat(template, (), names)
    except ValueError as error:
        raise UsageError(f"'{template}' cannot be written: {error}") from error
