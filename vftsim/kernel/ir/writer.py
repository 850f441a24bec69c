"""The lines of one function: values, blocks, variables, memory."""

import ast
from typing import Any, NoReturn, Protocol

from vftsim.kernel.ir.types import (
    INT,
    NOTHING,
    REAL,
    TRUTH,
    Array,
    Number,
    Row,
    Type,
    UntranslatableError,
    Value,
    text_of,
    wider,
    zero_of,
)

OUT_OF_RANGE, DIVISION_BY_ZERO = 1, 2
REASONS = 4
"""What a checking build says of a call that it has ended: line times this, plus one of the reasons."""

_WIDTHS = {"i8": ("i64", INT), "i4": ("i32", INT), "f8": ("double", REAL), "b1": ("i8", TRUTH)}
_CONVERSIONS = {
    (TRUTH, INT): "zext i1 {} to i64",
    (TRUTH, REAL): "uitofp i1 {} to double",
    (INT, REAL): "sitofp i64 {} to double",
    # Towards zero; what 64 bits do not hold becomes the nearest that they hold, nan 0, on every processor.
    (REAL, INT): "call i64 @llvm.fptosi.sat.i64.f64(double {})",
    (INT, TRUTH): "icmp ne i64 {}, 0",
    (REAL, TRUTH): "fcmp une double {}, 0.0",
}


class Functions(Protocol):
    """What a function asks of the program that it is part of (:class:`vftsim.kernel.ir.program.Program`)."""

    checks: bool

    def function(self, name: str, types: list[Type]) -> tuple[str, Type]:
        """Return symbol and result of a function for arguments of these types."""
        ...


class Writer:
    """Lines in the making.  A value is a pair of its text and its type."""

    def __init__(self, program: Functions, tree: ast.FunctionDef, types: list[Type]) -> None:
        self.program = program
        self.tree = tree
        self.variables: dict[str, Type] = dict(zip((a.arg for a in tree.args.args), types, strict=True))
        self.result: Type | None = None
        self.begin()

    def begin(self) -> None:
        """Forget the lines, but not the types that were found."""
        self.again = False
        self.lines: list[str] = []
        self.calls: list[str] = []
        self.is_open = True
        self._values = 0
        self._names = 0

    def refuse(self, node: ast.AST, why: str) -> NoReturn:
        """Raise an error that names the line."""
        text = ast.unparse(node).partition("\n")[0]
        raise UntranslatableError(f"{self.tree.name}: {why}: {text}")

    def add(self, line: str) -> None:
        """Write a line."""
        self.lines.append(" " + line)

    def set(self, line: str) -> str:
        """Write a line that gives a value; return its name."""
        self._values += 1
        self.add(f"%r{self._values} = {line}")
        return f"%r{self._values}"

    def new(self, prefix: str) -> str:
        """Return a name for a block or a variable that no Python name is."""
        self._names += 1
        return f"{prefix}.{self._names}"

    def label(self, label: str) -> None:
        """Begin a block."""
        if self.is_open:
            self.add(f"br label %{label}")
        self.lines.append(f"{label}:")
        self.is_open = True

    def close(self, line: str) -> None:
        """End a block."""
        self.add(line)
        self.is_open = False

    def branch_on(self, test: str, yes: str, no: str) -> None:
        """End a block with a choice between two."""
        self.close(f"br i1 {test}, label %{yes}, label %{no}")

    def leave(self) -> None:
        """Return without a value."""
        kind = self.result
        self.close("ret void" if kind is None else f"ret {text_of(kind)} {zero_of(kind)}")

    def to(self, value: Value, kind: Type) -> str:
        text, have = value
        if have == kind:
            return text
        how = _CONVERSIONS.get((have, kind)) if isinstance(have, str) and isinstance(kind, str) else None
        if how is None:
            raise UntranslatableError(
                f"{self.tree.name}: a row stands where a number is needed, or the other way round"
            )
        return self.set(how.format(text))

    def widen(self, previous: Type | None, kind: Type) -> Type:
        """Return the type of a variable that is given one more value; where it was narrower, write once more."""
        widened = kind if previous is None else wider(previous, kind)
        self.again |= previous is not None and widened != previous
        return widened

    def put(self, name: str, value: Value) -> None:
        """Give a variable a value."""
        if value[1] == NOTHING:
            raise UntranslatableError(f"{self.tree.name}: uses the result of a function that has none")
        kind = self.variables[name] = self.widen(self.variables.get(name), value[1])
        self.add(f"store {text_of(kind)} {self.to(value, kind)}, ptr %v.{name}")

    def get(self, name: str) -> Value:
        """Return a variable's value."""
        if name not in self.variables:
            raise UntranslatableError(f"{self.tree.name}: {name} is used before it is given a value")
        kind = self.variables[name]
        return self.set(f"load {text_of(kind)}, ptr %v.{name}"), kind

    def field(self, node: ast.Attribute, base: Value) -> tuple[str, Any]:
        """Return address and kind of a record's field."""
        text, kind = base
        if not isinstance(kind, Row) or node.attr not in kind.fields:
            self.refuse(node, f"there is no field {node.attr}")
        offset, inside = kind.fields[node.attr]
        return (self.set(f"getelementptr inbounds i8, ptr {text}, i64 {offset}") if offset else text), inside

    def item(self, node: ast.Subscript, base: Value, index: Value) -> tuple[str, Any]:
        """Return address and kind of an array's item."""
        text, kind = base
        if not isinstance(kind, Array) or index[1] == REAL:
            self.refuse(node, "only arrays and tables have items, by whole numbers")
        number = self.to(index, INT)
        if self.program.checks:
            self.leave_unless(self.set(f"icmp ult i64 {number}, {kind.count}"), OUT_OF_RANGE, node.lineno)
        return self.set(f"getelementptr inbounds [{kind.size} x i8], ptr {text}, i64 {number}"), kind.item

    def leave_unless(self, test: str, reason: int = 0, line: int = 0) -> None:
        """Return at once unless something holds; without a reason, one is known already."""
        bad, good = self.new("bad"), self.new("good")
        self.branch_on(test, good, bad)
        self.label(bad)
        if reason:
            self.add(f"store i32 {line * REASONS + reason}, ptr @raised")
        self.close("br label %out")
        self.label(good)

    def read(self, lvalue: tuple[str, Any]) -> Value:
        """Return what is in memory: a row or an array stands for itself."""
        address, kind = lvalue
        if not isinstance(kind, Number):
            return address, kind
        width, register = _WIDTHS[kind.name]
        text = self.set(f"load {width}, ptr {address}, align 1, !tbaa !{2 * kind.memory}")
        if kind.name == "i4":
            text = self.set(f"sext i32 {text} to i64")
        return (self.set(f"icmp ne i8 {text}, 0") if kind.name == "b1" else text), register

    def write(self, lvalue: tuple[str, Any], value: Value) -> None:
        """Put a number into memory."""
        address, kind = lvalue
        if not isinstance(kind, Number):
            raise UntranslatableError(f"{self.tree.name}: gives a value to a whole record")
        width, register = _WIDTHS[kind.name]
        text = self.to(value, register)
        if width != register:
            text = self.set(f"trunc i64 {text} to i32" if kind.name == "i4" else f"zext i1 {text} to i8")
        self.add(f"store {width} {text}, ptr {address}, align 1, !tbaa !{2 * kind.memory}")
