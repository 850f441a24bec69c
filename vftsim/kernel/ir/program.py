"""A whole kernel: the types of its state, and its functions by the types of their arguments."""

import ast
from collections import Counter
from typing import Any

import numpy as np

from vftsim.kernel.ir.function import Function
from vftsim.kernel.ir.types import INT, TRUTH, Array, Number, Row, Type, UntranslatableError
from vftsim.kernel.layout import Layout

_SHORT_LINES = 25
"""Shorter functions are put into their callers before anything is optimized; so are those with one caller."""

_ENTRY_ARGUMENTS = 6


class Program:
    """Translates the source of a kernel: functions, of which ``enter`` is where it is entered, with the state first.

    With ``checks`` an index out of range, or a division by zero, ends the call, and ``status`` says where.
    """

    def __init__(self, source: str, layout: Layout, *, checks: bool = False) -> None:
        self.trees = {f.name: f for f in ast.parse(source + _LIBRARY).body if isinstance(f, ast.FunctionDef)}
        self.checks = checks
        self._rows: dict[Any, Row] = {}
        self._memories = 0
        self._symbols: dict[tuple[str, tuple[Type, ...]], tuple[str, Type]] = {}
        self._written: list[tuple[str, str, list[str]]] = []
        self._calls: Counter[str] = Counter()
        self.state = self._state(layout)

    def _state(self, layout: Layout) -> Row:
        state = Row(layout.size)
        for name in layout.head.names or ():
            kind, offset = _field(layout.head, name)
            state.fields[name] = offset, self._kind(kind)
        for name, array in layout.arrays.items():
            state.fields[name] = array.offset, Array(self._item(array.dtype), array.count, array.dtype.itemsize)
        return state

    def _row(self, dtype: np.dtype[Any]) -> Row:
        row = self._rows.get(dtype)
        if row is None:
            row = self._rows[dtype] = Row(dtype.itemsize)
            for name in dtype.names or ():
                kind, offset = _field(dtype, name)
                row.fields[name] = offset, self._kind(kind)
        return row

    def _kind(self, dtype: np.dtype[Any]) -> Any:
        item, shape = dtype.subdtype or (dtype, ())
        return Array(self._item(item), shape[0], item.itemsize) if shape else self._item(item)

    def _item(self, dtype: np.dtype[Any]) -> Any:
        if dtype.names:
            return self._row(dtype)
        self._memories += 1
        return Number(dtype.str[1:], self._memories)

    def function(self, name: str, types: list[Type]) -> tuple[str, Type]:
        """Return symbol and result of a function for arguments of these types; truth values are passed as numbers."""
        key = name, tuple(INT if t == TRUTH else t for t in types)
        if key not in self._symbols:
            if name not in self.trees:
                raise UntranslatableError(f"there is no function {name} in the kernel")
            function = Function(self, self.trees[name], list(key[1]), f"@{name}.{len(self._symbols)}")
            try:
                self._symbols[key] = function.written()
            except UntranslatableError as error:
                error.add_note(f"in {name}")
                raise
            self._written.append((function.symbol, function.head, function.lines))
            self._calls.update(function.calls)
        return self._symbols[key]

    def text(self) -> str:
        """Return the whole module; ``enter`` takes the state and six numbers, and returns one."""
        arguments = [f"i64 %a{n}" for n in range(_ENTRY_ARGUMENTS)]
        symbol, result = self.function("enter", [self.state, *_ENTRY_ARGUMENTS * [INT]])
        if result != INT:
            raise UntranslatableError("enter returns no number")
        return self.module(
            f"define i64 @enter(ptr %state, {', '.join(arguments)}) {{\n"
            f" %result = call i64 {symbol}(ptr %state, {', '.join(arguments)})\n ret i64 %result\n}}\n"
        )

    def module(self, entry: str) -> str:
        """Return a module of the functions that were asked for, and an entry."""
        out = [_HEAD]
        for symbol, head, lines in self._written:
            is_put_in = len(lines) <= _SHORT_LINES or self._calls[symbol] == 1
            out += [f"{head}{' alwaysinline' if is_put_in else ''} {{", *lines, "}"]
        return "\n".join([*out, entry, *self._memory()])

    def _memory(self) -> list[str]:
        """Return what tells LLVM that a field is never another one (``tbaa``, type-based alias analysis).

        A number is only ever reached by its field's name, and rows of one layout are one type.  So what is written to
        one field leaves what was read of all others as it is.
        """
        lines = ['!0 = !{!"state"}']
        for number in range(1, self._memories + 1):
            kind = 2 * number - 1
            lines += [f'!{kind} = !{{!"{number}", !0, i64 0}}', f"!{kind + 1} = !{{!{kind}, !{kind}, i64 0}}"]
        return lines


def _field(dtype: np.dtype[Any], name: str) -> tuple[np.dtype[Any], int]:
    fields: Any = dtype.fields
    return fields[name][0], fields[name][1]


_HEAD = """
@raised = internal global i32 0
define i32 @status() {
 %status = load i32, ptr @raised
 store i32 0, ptr @raised
 ret i32 %status
}
"""

_LIBRARY = '''

def modulo__real(a, b):
    """As CPython's float_rem: the remainder has the sign of the divisor."""
    r = fmod__real(a, b)
    if r == 0.0:
        return copysign__real(0.0, b)
    return r + b if (r < 0.0) != (b < 0.0) else r

def floor_div__real(a, b):
    """As CPython's float_floor_div."""
    if b == 0.0:
        return a / b
    r = fmod__real(a, b)
    q = (a - r) / b
    if r != 0.0 and (r < 0.0) != (b < 0.0):
        q -= 1.0
    if q == 0.0:
        return copysign__real(0.0, a / b)
    f = floor__real(q)
    return f + 1.0 if q - f > 0.5 else f
'''
"""Division of floats, in the language itself."""
