"""Expressions: operands from left to right, and the results that Python gives."""

import ast
import struct
from typing import Any

from vftsim.kernel.ir.types import INT, NOTHING, REAL, TRUTH, Array, Tuple, Type, Value, text_of, wider
from vftsim.kernel.ir.writer import DIVISION_BY_ZERO, Writer

_BITS = 64
_WHOLE = {"Add": "add", "Sub": "sub", "Mult": "mul", "BitAnd": "and", "BitOr": "or", "BitXor": "xor"}
_BITWISE = ("BitAnd", "BitOr", "BitXor", "LShift", "RShift")
_REAL = {"Add": "fadd", "Sub": "fsub", "Mult": "fmul", "Div": "fdiv"}
_WHOLE_TESTS = {"Eq": "eq", "NotEq": "ne", "Lt": "slt", "LtE": "sle", "Gt": "sgt", "GtE": "sge"}
_REAL_TESTS = {"Eq": "oeq", "NotEq": "une", "Lt": "olt", "LtE": "ole", "Gt": "ogt", "GtE": "oge"}
_CONVERTERS = {"int": INT, "float": REAL, "bool": TRUTH}
_OF_MACHINE = {"fmod__real": "frem", "floor__real": "floor", "copysign__real": "copysign"}
"""Used by the division of floats only."""


class Expressions(Writer):
    """Values of expressions."""

    def value(self, node: ast.expr) -> Value:
        translate = getattr(self, f"_{type(node).__name__}", None)
        if translate is None:
            self.refuse(node, f"{type(node).__name__} is no part of the language of kernels")
        value: Value = translate(node)
        return value

    def _Constant(self, node: ast.Constant) -> Value:  # noqa: N802 - named after the nodes
        value = node.value
        if isinstance(value, bool):
            return str(int(value)), TRUTH
        if isinstance(value, int) and -(1 << (_BITS - 1)) <= value < 1 << (_BITS - 1):
            return str(value), INT
        if not isinstance(value, float):
            self.refuse(node, "no number, or one that 64 bits do not hold")
        return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}", REAL

    def _Name(self, node: ast.Name) -> Value:  # noqa: N802
        return self.get(node.id)

    def _Attribute(self, node: ast.Attribute) -> Value:  # noqa: N802
        return self.read(self.lvalue(node))

    def _Subscript(self, node: ast.Subscript) -> Value:  # noqa: N802
        return self.read(self.lvalue(node))

    def lvalue(self, node: ast.expr) -> tuple[str, Any]:
        """Return address and kind of a field or an item."""
        if isinstance(node, ast.Attribute):
            return self.field(node, self.value(node.value))
        if not isinstance(node, ast.Subscript):
            self.refuse(node, "nothing that can be given a value")
        base = self.value(node.value)
        return self.item(node, base, self.value(node.slice))

    def _Tuple(self, node: ast.Tuple) -> Value:  # noqa: N802
        values, whole = [self.value(v) for v in node.elts], "poison"
        kind = Tuple([t for _, t in values])
        for n, (value, inside) in enumerate(zip(values, kind.types, strict=True)):
            whole = self.set(f"insertvalue {kind.text} {whole}, {text_of(inside)} {self.to(value, inside)}, {n}")
        return whole, kind

    def _BinOp(self, node: ast.BinOp) -> Value:  # noqa: N802
        left = self.value(node.left)
        return self.operate(node, left, self.value(node.right))

    def operate(self, node: ast.BinOp | ast.AugAssign, left: Value, right: Value) -> Value:
        """Return what an operator makes of two values."""
        name = type(node.op).__name__
        kind = REAL if REAL in (left[1], right[1]) or name == "Div" else INT
        if kind == REAL and name in _BITWISE:
            self.refuse(node, "bits of a float")
        a, b = self.to(left, kind), self.to(right, kind)
        if name in ("Div", "FloorDiv", "Mod"):
            self._look_at_divisor(node, b, kind)
        if kind == REAL and name in ("FloorDiv", "Mod"):
            return self.call("floor_div__real" if name == "FloorDiv" else "modulo__real", [(a, REAL), (b, REAL)])
        if name in ("FloorDiv", "Mod"):
            return self._divided(a, b, name), INT
        if name in ("LShift", "RShift"):
            return self._shifted(a, b, name), INT
        how = (_WHOLE if kind == INT else _REAL).get(name)
        if how is None:
            self.refuse(node, f"{name} is no operator of kernels")
        both_truths = left[1] == right[1] == TRUTH and name in _BITWISE
        text = self.set(f"{how} {kind} {a}, {b}")
        return (self.to((text, INT), TRUTH), TRUTH) if both_truths else (text, kind)

    def _look_at_divisor(self, node: ast.AST, divisor: str, kind: str) -> None:
        if self.program.checks:
            test = f"icmp ne i64 {divisor}, 0" if kind == INT else f"fcmp une double {divisor}, 0.0"
            self.leave_unless(self.set(test), DIVISION_BY_ZERO, getattr(node, "lineno", 0))

    def _divided(self, a: str, b: str, name: str) -> str:
        """Towards minus infinity; by 0 it is 0, and -2**63 by -1 wraps: the processor would end the process."""
        if b.isdecimal() and int(b).bit_count() == 1:
            # By a power of two the bits say it, of negative numbers too.
            return self.set(
                f"and i64 {a}, {int(b) - 1}" if name == "Mod" else f"ashr i64 {a}, {int(b).bit_length() - 1}"
            )
        is_zero, is_minus = self.set(f"icmp eq i64 {b}, 0"), self.set(f"icmp eq i64 {b}, -1")
        by = self.set(f"select i1 {self.set(f'or i1 {is_zero}, {is_minus}')}, i64 1, i64 {b}")
        remainder = self.set(f"srem i64 {a}, {by}")
        differs = self.set(f"icmp slt i64 {self.set(f'xor i64 {remainder}, {by}')}, 0")
        is_below = self.set(f"and i1 {self.set(f'icmp ne i64 {remainder}, 0')}, {differs}")
        if name == "Mod":
            return self.set(f"select i1 {is_below}, i64 {self.set(f'add i64 {remainder}, {by}')}, i64 {remainder}")
        whole = self.set(f"sub i64 {self.set(f'sdiv i64 {a}, {by}')}, {self.set(f'zext i1 {is_below} to i64')}")
        by_minus = self.set(f"select i1 {is_minus}, i64 {self.set(f'sub i64 0, {a}')}, i64 {whole}")
        return self.set(f"select i1 {is_zero}, i64 0, i64 {by_minus}")

    def _shifted(self, a: str, b: str, name: str) -> str:
        """By 64 bits and more nothing is left; the processor would count modulo 64."""
        is_less = self.set(f"icmp ult i64 {b}, {_BITS}")
        if name == "LShift":
            return self.set(f"select i1 {is_less}, i64 {self.set(f'shl i64 {a}, {b}')}, i64 0")
        return self.set(f"ashr i64 {a}, {self.set(f'select i1 {is_less}, i64 {b}, i64 {_BITS - 1}')}")

    def _UnaryOp(self, node: ast.UnaryOp) -> Value:  # noqa: N802
        name = type(node.op).__name__
        if name == "USub" and isinstance(node.operand, ast.Constant) and type(node.operand.value) is int:
            return self._Constant(ast.copy_location(ast.Constant(-node.operand.value), node))
        text, kind = self.value(node.operand)
        if name == "Not":
            return self.set(f"xor i1 {self.to((text, kind), TRUTH)}, 1"), TRUTH
        if name == "UAdd":
            return (text, kind) if kind == REAL else (self.to((text, kind), INT), INT)
        if kind == REAL and name == "USub":
            return self.set(f"fneg double {text}"), REAL
        if kind == REAL:
            self.refuse(node, "bits of a float")
        text = self.to((text, kind), INT)
        return self.set(f"sub i64 0, {text}" if name == "USub" else f"xor i64 {text}, -1"), INT

    def _Compare(self, node: ast.Compare) -> Value:  # noqa: N802
        if len(node.ops) > 1:
            return self._chosen(node, ast.Constant(True), ast.Constant(False))
        return self._compared(node, node.ops[0], self.value(node.left), node.comparators[0])[0], TRUTH

    def _compared(self, node: ast.Compare, op: ast.cmpop, left: Value, right: ast.expr) -> tuple[str, Value]:
        """Return the truth, and what stands on the right, for the next comparison of a chain."""
        name = type(op).__name__
        if name in ("In", "NotIn") and isinstance(right, ast.Tuple | ast.List | ast.Set):
            result = "0"
            for element in right.elts:
                result = self.set(f"or i1 {result}, {self._compared(node, ast.Eq(), left, element)[0]}")
            return (self.set(f"xor i1 {result}, 1") if name == "NotIn" else result), left
        if name not in _WHOLE_TESTS:
            self.refuse(node, f"{name} is no comparison of kernels")
        value = self.value(right)
        kind = wider(INT, wider(left[1], value[1]))
        how = f"icmp {_WHOLE_TESTS[name]}" if kind == INT else f"fcmp {_REAL_TESTS[name]}"
        return self.set(f"{how} {text_of(kind)} {self.to(left, kind)}, {self.to(value, kind)}"), value

    def _BoolOp(self, node: ast.BoolOp) -> Value:  # noqa: N802
        name, end = self.new("any"), self.new("end")
        for n, operand in enumerate(node.values):
            value = self.value(operand)
            self.put(name, value)
            if n + 1 < len(node.values):
                on, test = self.new("on"), self.to(value, TRUTH)
                yes, no = (on, end) if isinstance(node.op, ast.And) else (end, on)
                self.branch_on(test, yes, no)
                self.label(on)
        self.label(end)
        return self.get(name)

    def _IfExp(self, node: ast.IfExp) -> Value:  # noqa: N802
        return self._chosen(node.test, node.body, node.orelse)

    def _chosen(self, test: ast.expr, yes: ast.expr, no: ast.expr) -> Value:
        name, a, b, end = self.new("one"), self.new("yes"), self.new("no"), self.new("end")
        self.branch(test, a, b)
        for label, chosen in ((a, yes), (b, no)):
            self.label(label)
            self.put(name, self.value(chosen))
            self.close(f"br label %{end}")
        self.label(end)
        return self.get(name)

    def branch(self, node: ast.expr, yes: str, no: str) -> None:
        """Go to one of two blocks by the truth of an expression, looking no further than Python does."""
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            self.branch(node.operand, no, yes)
        elif isinstance(node, ast.BoolOp):
            for operand in node.values[:-1]:
                on = self.new("on")
                self.branch(operand, *((on, no) if isinstance(node.op, ast.And) else (yes, on)))
                self.label(on)
            self.branch(node.values[-1], yes, no)
        elif isinstance(node, ast.Compare):
            left = self.value(node.left)
            for op, right in zip(node.ops[:-1], node.comparators, strict=False):
                on = self.new("on")
                test, left = self._compared(node, op, left, right)
                self.branch_on(test, on, no)
                self.label(on)
            self.branch_on(self._compared(node, node.ops[-1], left, node.comparators[-1])[0], yes, no)
        else:
            self.branch_on(self.to(self.value(node), TRUTH), yes, no)

    def _Call(self, node: ast.Call) -> Value:  # noqa: N802
        if not isinstance(node.func, ast.Name) or node.keywords:
            self.refuse(node, "only functions by name are called, without keywords")
        name, values = node.func.id, [self.value(v) for v in node.args]
        if name in ("min", "max"):
            return self._extreme(node, name, values)
        if name in _CONVERTERS and len(values) == 1:
            kind = _CONVERTERS[name]
            return self.to(values[0], kind), kind
        if name == "len" and isinstance(values[0][1], Array):
            return str(values[0][1].count), INT
        if name == "abs":
            return self._absolute(values[0])
        if name in _OF_MACHINE:
            return self._of_machine(_OF_MACHINE[name], [v for v, _ in values])
        return self.call(name, values)

    def _extreme(self, node: ast.Call, name: str, values: list[Value]) -> Value:
        """The first of equals; what is nan is no less and no more."""
        if len(values) < 2:
            self.refuse(node, f"{name} of one value")
        best = values[0]
        for value in values[1:]:
            kind = wider(INT, wider(best[1], value[1]))
            a, b = self.to(best, kind), self.to(value, kind)
            how = ("icmp s" if kind == INT else "fcmp o") + ("lt" if name == "min" else "gt")
            test = self.set(f"{how} {text_of(kind)} {b}, {a}")
            best = self.set(f"select i1 {test}, {text_of(kind)} {b}, {text_of(kind)} {a}"), kind
        return best

    def _absolute(self, value: Value) -> Value:
        if value[1] == REAL:
            return self.set(f"call double @llvm.fabs.f64(double {value[0]})"), REAL
        return self.set(f"call i64 @llvm.abs.i64(i64 {self.to(value, INT)}, i1 0)"), INT

    def _of_machine(self, name: str, values: list[str]) -> Value:
        if name == "frem":
            return self.set(f"frem double {values[0]}, {values[1]}"), REAL
        return self.set(f"call double @llvm.{name}.f64({', '.join(f'double {v}' for v in values)})"), REAL

    def call(self, name: str, values: list[Value]) -> Value:
        """Call a function of the kernel."""
        symbol, result = self.program.function(name, [kind for _, kind in values])
        self.calls.append(symbol)
        arguments: list[tuple[str, Type]] = [(self.to(v, INT), INT) if v[1] == TRUTH else v for v in values]
        text = f"call {text_of(result)} {symbol}({', '.join(f'{text_of(t)} {v}' for v, t in arguments)})"
        if result == NOTHING:
            self.add(text)
        else:
            text = self.set(text)
        if self.program.checks:
            self.leave_unless(self.set(f"icmp eq i32 {self.set('load i32, ptr @raised')}, 0"))
        return text, result
