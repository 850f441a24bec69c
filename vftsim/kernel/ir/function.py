"""Statements: one function for arguments of given types."""

import ast
from collections.abc import Callable

from vftsim.kernel.ir.expressions import Expressions
from vftsim.kernel.ir.types import INT, NOTHING, REAL, Tuple, Type, Value, text_of, zero_of
from vftsim.kernel.ir.writer import Functions


class Function(Expressions):
    """A function in the making.

    Its text is written while the types are found, and once more only where a variable turned out wider than at its
    first mention (a whole number first, a float later).
    """

    def __init__(self, program: Functions, tree: ast.FunctionDef, types: list[Type], symbol: str) -> None:
        self.symbol = symbol
        self.types = types
        self.head = ""
        self._arguments = [a.arg for a in tree.args.args]
        self._loops: list[tuple[str, str]] = []
        if len(self._arguments) != len(types):
            self.tree = tree
            self.refuse(tree, f"is called with {len(types)} arguments")
        super().__init__(program, tree, types)

    def written(self) -> tuple[str, Type]:
        """Write it; return its symbol and the type of its result."""
        self.again = True
        while self.again:
            self.begin()
            self._block(self.tree.body)
            if self.is_open:
                self.leave()
        if self.program.checks:
            self.label("out")
            self.leave()
        result = NOTHING if self.result is None else self.result
        arguments = ", ".join(f"{text_of(t)} %a.{name}" for name, t in zip(self._arguments, self.types, strict=True))
        body, self.lines = self.lines, [f" %v.{name} = alloca {text_of(t)}" for name, t in self.variables.items()]
        for name, kind in self.variables.items():
            value = zero_of(kind)
            if name in self._arguments:
                value = self.to((f"%a.{name}", self.types[self._arguments.index(name)]), kind)
            self.add(f"store {text_of(kind)} {value}, ptr %v.{name}")
        self.lines += body
        self.head = f"define internal {text_of(result)} {self.symbol}({arguments}) nounwind"
        return self.symbol, result

    def _block(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if not self.is_open:
                return
            translate = getattr(self, f"_do_{type(statement).__name__}", None)
            if translate is None:
                self.refuse(statement, f"{type(statement).__name__} is no part of the language of kernels")
            translate(statement)

    def _do_Pass(self, node: ast.Pass) -> None:  # noqa: N802 - named after the nodes
        pass

    def _do_Expr(self, node: ast.Expr) -> None:  # noqa: N802
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _do_Return(self, node: ast.Return) -> None:  # noqa: N802
        value = self.value(node.value) if node.value is not None else ("", NOTHING)
        if value[1] == NOTHING:
            self.leave()
            return
        self.again |= self.result is None and " ret void" in self.lines
        self.result = self.widen(self.result, value[1])
        self.close(f"ret {text_of(self.result)} {self.to(value, self.result)}")

    def _do_Assign(self, node: ast.Assign) -> None:  # noqa: N802
        value = self.value(node.value)
        for target in node.targets:
            self._store(target, value)

    def _store(self, target: ast.expr, value: Value) -> None:
        if isinstance(target, ast.Name):
            self.put(target.id, value)
        elif isinstance(target, ast.Tuple):
            text, kind = value
            if not isinstance(kind, Tuple) or len(kind.types) != len(target.elts):
                self.refuse(target, "not as many values as names")
            parts = [(self.set(f"extractvalue {kind.text} {text}, {n}"), t) for n, t in enumerate(kind.types)]
            for element, part in zip(target.elts, parts, strict=True):
                self._store(element, part)
        else:
            self.write(self.lvalue(target), value)

    def _do_AugAssign(self, node: ast.AugAssign) -> None:  # noqa: N802
        if isinstance(node.target, ast.Name):
            before = self.get(node.target.id)
            self.put(node.target.id, self.operate(node, before, self.value(node.value)))
            return
        lvalue = self.lvalue(node.target)
        before = self.read(lvalue)
        self.write(lvalue, self.operate(node, before, self.value(node.value)))

    def _do_If(self, node: ast.If) -> None:  # noqa: N802
        yes, no, end = self.new("yes"), self.new("no"), self.new("end")
        self.branch(node.test, yes, no if node.orelse else end)
        goes_on = not node.orelse
        for label, statements in ((yes, node.body), (no, node.orelse)):
            if statements:
                self.label(label)
                self._block(statements)
                goes_on |= self.is_open
                if self.is_open:
                    self.close(f"br label %{end}")
        if goes_on:
            self.label(end)

    def _do_While(self, node: ast.While) -> None:  # noqa: N802
        if node.orelse:
            self.refuse(node, "a loop with else")

        def begin(body: str, end: str) -> None:
            self.branch(node.test, body, end)
            self.label(body)

        self._loop(begin, node.body, lambda: None)

    def _do_For(self, node: ast.For) -> None:  # noqa: N802
        numbers, target = node.iter, node.target
        if (
            node.orelse
            or not isinstance(target, ast.Name)
            or not isinstance(numbers, ast.Call)
            or not isinstance(numbers.func, ast.Name)
            or numbers.func.id != "range"
        ):
            self.refuse(node, "only for ... in range(...)")
        values = [self.value(v) for v in numbers.args]
        if REAL in [kind for _, kind in values]:
            self.refuse(node, "a range of floats")
        texts = [self.to(v, INT) for v in values]
        first, last, step = ["0", *texts, "1"] if len(texts) == 1 else [*texts, "1"][:3]
        if step.startswith("%") or step == "0":
            self.refuse(node, "a step that is no number, or 0")
        counter, name = self.new("for"), target.id
        self.put(counter, (first, INT))

        def begin(body: str, end: str) -> None:
            current = self.get(counter)[0]
            how = "sgt" if step.startswith("-") else "slt"
            self.branch_on(self.set(f"icmp {how} i64 {current}, {last}"), body, end)
            self.label(body)
            self.put(name, (current, INT))

        self._loop(
            begin, node.body, lambda: self.put(counter, (self.set(f"add i64 {self.get(counter)[0]}, {step}"), INT))
        )

    def _loop(self, begin: Callable[[str, str], None], body: list[ast.stmt], advance: Callable[[], None]) -> None:
        top, inside, on, end = self.new("top"), self.new("body"), self.new("on"), self.new("end")
        self.label(top)
        begin(inside, end)
        self._loops.append((on, end))
        self._block(body)
        self._loops.pop()
        self.label(on)
        advance()
        self.close(f"br label %{top}")
        self.label(end)

    def _do_Break(self, node: ast.Break) -> None:  # noqa: N802
        self.close(f"br label %{self._loops[-1][1]}")

    def _do_Continue(self, node: ast.Continue) -> None:  # noqa: N802
        self.close(f"br label %{self._loops[-1][0]}")
