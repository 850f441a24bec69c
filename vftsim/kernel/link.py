"""Linking: the functions that a model uses, put together into one kernel.

From the entries, everything that can be reached is collected, through calls, callbacks and the slots of the
chosen kinds. Each function is rewritten through its syntax tree: names of other functions get their kernel-wide
form, constants and enumerations are folded to numbers, ``table(sim)`` becomes a field of the state, callbacks
become numbers, a slot becomes a direct call where one kind implements it and a dispatch where there are
several.

What comes out serves both engines (:mod:`vftsim.kernel.simpy_engine` keeps file names and line numbers, so that
a debugger stops in the mechanism's file; :mod:`vftsim.kernel.compiled_engine` writes one module).

The static call graph must have no cycle: compiled functions cannot call each other in a circle.  The remedy for
one is a queue that an outer loop drains.
"""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import sys
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import CodeType, FunctionType
from typing import Any, NoReturn, TypeVar, get_type_hints

from vftsim.kernel import declare
from vftsim.kernel.declare import (
    BESIDE,
    TABLES,
    Action,
    Chain,
    Entry,
    Failure,
    Family,
    Kind,
    Part,
    Slot,
    Sort,
    Table,
    part_of,
)
from vftsim.kernel.record import Record, fields
from vftsim.kernel.walks import WALK_ARGUMENTS, WALKS, continues, written

BUILTINS = frozenset({"abs", "bool", "float", "int", "len", "max", "min", "range"})
T = TypeVar("T")
_QUEUE: dict[Any, str] = {declare.at: "at", declare.is_due_before: "is_due_before", declare.fail: "fail"}


class LinkError(TypeError):
    """A mechanism's code that no kernel can contain: a defect of the part, not of a model."""


def unlinked(table: Table[Any]) -> LinkError:
    """Return what says that a kernel has no such table."""
    return LinkError(
        f"this kernel has no table '{table.name}': no function of its parts names it, "
        "and no workload or application has it among its 'tables'"
    )


@dataclass
class Function:
    """A function of the kernel, rewritten."""

    name: str
    tree: ast.FunctionDef
    path: str
    calls: set[str]
    codes: dict[str, CodeType] = field(default_factory=dict)
    """What an engine of plain Python made of it, by the engine's name."""


@dataclass
class Linked:
    """The parts of a kernel."""

    functions: dict[str, Function] = field(default_factory=dict)
    tables: dict[str, Table[Any]] = field(default_factory=dict)
    chains: dict[str, Chain[Any]] = field(default_factory=dict)
    families: dict[str, list[Action]] = field(default_factory=dict)
    family_of: dict[str, Family] = field(default_factory=dict)
    entries: list[Entry] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    kinds: dict[str, list[Kind]] = field(default_factory=dict)
    slots: dict[str, Slot] = field(default_factory=dict)
    compiled: dict[str, Any] = field(default_factory=dict)
    """What an engine keeps of a kernel from one replication to the next, by the engine's name."""

    def number(self, declared: Action | Entry | Kind) -> int:
        """Return the number by which a callback, an entry or a kind is known in records."""
        if isinstance(declared, Kind):
            return self.kinds[declared.sort.name].index(declared) + 1
        if isinstance(declared, Entry):
            return self.entries.index(declared) + 1
        return self.families[declared.family.name].index(declared) + 1


def link(
    entries: Iterable[Entry],
    kinds: Mapping[Sort, Sequence[Kind]],
    actions: Iterable[Any] = (),
    tables: Iterable[Table[Any]] = (),
) -> Linked:
    """Collect and rewrite everything that ``entries`` and ``actions`` reach with these kinds of parts.

    Parameters
    ----------
    entries : iterable of Entry
        What the driver calls.
    kinds : mapping of Sort to sequence of Kind
        The parts chosen for each sort.
    actions : iterable of Action
        Callbacks that only the driver refers to.
    tables : iterable of Table
        Tables that only the driver refers to.

    Raises
    ------
    LinkError
        If the code cannot be linked: an unknown name, a circle of calls, a name that stands for two things.
    """
    linker = _Linker(kinds)
    for entry in sorted(entries, key=lambda e: e.name):
        linker.entry(entry)
    for action in actions:
        linker.action(action)
    for table in tables:
        linker.table(table)
    return linker.finish()


class _Linker:
    def __init__(self, kinds: Mapping[Sort, Sequence[Kind]]) -> None:
        self.linked = Linked()
        self.linked.kinds = {sort.name: sorted(chosen, key=lambda k: k.name) for sort, chosen in kinds.items()}
        self._waiting: list[Part] = []
        self._parts: dict[str, Part] = {}
        self._actions: dict[Action, list[ast.Constant]] = {}
        self._sources = _Sources()

    def entry(self, entry: Entry) -> None:
        self.linked.entries.append(entry)
        self.need(entry)

    def action(self, action: Action) -> ast.Constant:
        """Return a constant that :meth:`finish` sets to the action's number."""
        constant = ast.Constant(0)
        self._actions.setdefault(action, []).append(constant)
        self.family(action.family)
        self.need(action)
        return constant

    def family(self, family: Family) -> str:
        self._unique(self.linked.family_of, family.name, family)
        return f"call_{family.name}"

    def failure(self, failure: Failure) -> ast.Constant:
        if failure not in self.linked.failures:
            self.linked.failures.append(failure)
        return ast.Constant(1 + self.linked.failures.index(failure))

    def table(self, table: Table[Any]) -> str:
        self._unique(self.linked.tables, table.name, table)
        if table.beside is not None:
            self.table(table.beside)
        return table.name

    def chain(self, chain: Chain[Any]) -> str:
        self.table(chain.table)
        self._unique(self.linked.chains, chain.name, chain)
        return chain.name

    def need(self, part: Part) -> str:
        """Have a function in the kernel; return its name there."""
        if part.name not in self._parts:
            self._parts[part.name] = part
            self._waiting.append(part)
            if isinstance(part, Slot):
                self.linked.slots[part.name] = part
                for kind in self.linked.kinds.get(part.sort.name, ()):
                    implementation = kind.implementations.get(part.name)
                    if implementation is not None:
                        self.need(implementation)
        elif self._parts[part.name] is not part:
            raise LinkError(f"two functions are called {part.name}")
        return part.name

    def finish(self) -> Linked:
        while self._waiting:
            part = self._waiting.pop()
            self._rewrite(part)
        linked = self.linked
        for name in linked.family_of:
            linked.families[name] = sorted(
                (a for a in self._actions if a.family is linked.family_of[name]), key=lambda a: a.name
            )
        for action, constants in self._actions.items():
            for constant in constants:
                constant.value = linked.number(action)
        refuse_cycles(linked)
        return linked

    def _rewrite(self, part: Part) -> None:
        rewriter = _Rewriter(self, part)
        written = _WRITTEN.get(part)
        if written is None or not written.is_still_so(rewriter):
            written = _WRITTEN[part] = self._written(part, rewriter)
        else:
            for ask, declared in written.asked:
                ask(self, declared)
        self.linked.functions[written.function.name] = written.function

    def _written(self, part: Part, rewriter: _Rewriter) -> _Written:
        path, tree = self._sources.tree(part)
        body = tree.body
        if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant) and len(body) > 1:
            body = body[1:]
        arguments = ast.arguments([], [ast.arg(a.arg) for a in tree.args.args], None, [], [], None, [])
        fresh = ast.FunctionDef(f"{part.name}__default" if isinstance(part, Slot) else part.name, arguments, [], [])
        ast.copy_location(fresh, tree)
        first = [*rewriter.rows_looked_up(fresh), *rewriter.called_by_number(fresh)]
        slot = part.slot if isinstance(part, Action | Entry) else None
        fresh.body = first + (rewriter.statements(body) if slot is None else rewriter.call_of(slot, tree))
        function = Function(fresh.name, fresh, path, rewriter.calls)
        return _Written(function, part.function, rewriter.resolved, rewriter.asked)

    @staticmethod
    def _unique(by_name: dict[str, Any], name: str, declared: Any) -> None:
        if (first := by_name.setdefault(name, declared)) is not declared:
            of_records = " and ".join(_of_record(each) for each in (first, declared) if isinstance(each, Table))
            raise LinkError(f"two different things are called {name}{of_records and f': tables of {of_records}'}")


def _of_record(table: Table[Any]) -> str:
    return f"{table.record.__module__}.{table.record.__name__}"


@dataclass
class _Written:
    """A function as it was rewritten, for the next kernel that has it."""

    function: Function
    source: Any
    resolved: list[tuple[ast.expr, Any]]
    asked: list[tuple[Any, Any]]

    def is_still_so(self, rewriter: _Rewriter) -> bool:
        """Tell whether it would be written so again: without numbers of one kernel, and with the same names."""
        return (
            self.source is rewriter.part.function
            and all(declared.__class__ not in (Action, Failure) for _, declared in self.asked)
            and all(_is_same(rewriter.resolve(node), value) for node, value in self.resolved)
        )


def _is_same(one: Any, other: Any) -> bool:
    return one is other or (type(one) is type(other) and bool(one == other))


_WRITTEN: dict[Part, _Written] = {}


class _Sources:
    """Syntax trees of functions, which nobody changes: a file is parsed once for all of its functions and kernels."""

    def __init__(self) -> None:
        self._files: dict[str, dict[int, ast.FunctionDef]] = {}

    def tree(self, part: Part) -> tuple[str, ast.FunctionDef]:
        """Return a function's file and its tree, with the lines that it has there."""
        function = part.function
        path, first = inspect.getsourcefile(function) or "<unknown>", function.__code__.co_firstlineno
        if path not in self._files:
            self._files[path] = _functions("".join(linecache.getlines(path)))
        # None: inside another function.
        return path, self._files[path].get(first) or _alone(function, first)


@cache
def _functions(text: str) -> dict[int, ast.FunctionDef]:
    """Return the functions of a file by their first line."""
    functions = [f for f in ast.parse(text).body if isinstance(f, ast.FunctionDef)]
    return {min([f.lineno, *(d.lineno for d in f.decorator_list)]): f for f in functions}


def _alone(function: Any, first: int) -> ast.FunctionDef:
    """Return the tree of a function parsed by itself; empty lines before it give every node the line of its file."""
    text = textwrap.dedent("".join(inspect.getsourcelines(function)[0]))
    tree = ast.parse("\n" * (first - 1) + text).body[0]
    assert isinstance(tree, ast.FunctionDef)
    return tree


_MISSING = object()
_TAKEN = "row__taken"
"""A row that is returned as it is taken, in the function."""


def _rows_that_go_with(name: str, table: Table[Any], hints: Mapping[str, Any]) -> list[str]:
    """Return how the row of a table follows from the parameters that are given: beside one, or named by a field."""
    beside = None if table.beside is None else table.beside.record
    rows = [f"{parameter}.row" for parameter, record in hints.items() if record is not None and record is beside]
    for field_name in (name, "state_row"):
        rows = rows or [
            f"{parameter}.{field_name}" for parameter, record in hints.items() if hasattr(record, field_name)
        ]
    return rows


class _Rewriter(ast.NodeVisitor):
    """Writes one function anew."""

    def __init__(self, linker: _Linker, part: Part) -> None:
        self.linker = linker
        self.part = part
        self.local = frozenset({*part.function.__code__.co_varnames, _TAKEN})
        self.scope = vars(sys.modules[part.function.__module__])
        if part.function.__closure__:
            self.scope = {**self.scope, **inspect.getclosurevars(part.function).nonlocals}
        self.calls: set[str] = set()
        self.resolved: list[tuple[ast.expr, Any]] = []
        self.asked: list[tuple[Any, Any]] = []

    def resolve(self, node: ast.expr) -> Any:
        """Return what a global name or a chain of attributes of one stands for."""
        if isinstance(node, ast.Name):
            if node.id in self.local:
                return _MISSING
            if node.id in self.scope:
                return self.scope[node.id]
            return getattr(builtins, node.id, _MISSING)
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            return _MISSING if base is _MISSING else getattr(base, node.attr, _MISSING)
        return _MISSING

    def _resolved(self, node: ast.expr) -> Any:
        value = self.resolve(node)
        if value is not _MISSING:
            self.resolved.append((node, value))
        return value

    def _ask(self, method: Callable[[_Linker, Any], T], declared: Any) -> T:
        self.asked.append((method, declared))
        return method(self.linker, declared)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Return a copy of a node with its parts rewritten."""
        fields = {name: self._part(getattr(node, name)) for name in node._fields}
        places = {name: getattr(node, name) for name in node._attributes}
        return type(node)(**fields, **places)

    def _part(self, value: Any) -> Any:
        if isinstance(value, list):
            return self.statements(value)
        return self.visit(value) if isinstance(value, ast.AST) and value._fields else value

    def statements(self, nodes: Sequence[Any]) -> list[Any]:
        """Return statements (or other nodes in a row) rewritten, of which one may become several."""
        written = [self._part(node) for node in nodes]
        return [each for one in written for each in (one if isinstance(one, list) else [one])]

    def rows_looked_up(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """Return what looks up the rows that a function works on and is not called with, and leave its arguments.

        A callback or an entry is called with numbers of rows, and nobody with a row that goes with another's
        (:data:`.declare.BESIDE`).
        """
        arguments = function.args.args
        count = len(arguments) - sum(value is BESIDE for value in self.part.function.__defaults__ or ())
        is_called_by_number = isinstance(self.part, Action | Entry)
        if count == len(arguments) and not is_called_by_number:
            return []
        hints, sim = get_type_hints(self.part.function), arguments[0].arg
        parameters = {argument.arg: hints.get(argument.arg) for argument in arguments[1:count]}
        lookups = []
        for argument in arguments[1:count] if is_called_by_number else ():
            record = hints.get(argument.arg)
            if isinstance(record, type) and issubclass(record, Record):
                lookups.append((argument.arg, self._table_of(record, function), f"{argument.arg}__row"))
                argument.arg += "__row"
        for argument in arguments[count:]:
            table = self._table_of(hints[argument.arg], function)
            rows = _rows_that_go_with(argument.arg, table, parameters)
            if len(rows) != 1:
                self._refuse(function, f"{argument.arg} goes with {len(rows)} of its arguments: it must be with one")
            lookups.append((argument.arg, table, rows[0]))
        del arguments[count:]
        return [self._parsed(f"{name} = {sim}.{table.name}[{row}]", function) for name, table, row in lookups]

    def called_by_number(self, function: ast.FunctionDef) -> list[ast.stmt]:
        """Give a callback the arguments that it leaves out; return what ends a timer that was called off."""
        part, arguments = self.part, function.args.args
        if isinstance(part, Action | Entry):
            arguments.extend(ast.arg(f"unused__{n}") for n in range(len(arguments), 1 + part.arguments))
        if not isinstance(part, Action) or part.kept is None:
            return []
        table, field = part.kept
        self._ask(_Linker.table, table)
        sim, target, token = (argument.arg for argument in arguments)
        row = f"{sim}.{table.name}[{target}]"
        lines = (f"kept__row = {row}", f"if {token} != kept__row.{field}: return", f"kept__row.{field} = 0")
        return [self._parsed(line, function) for line in lines]

    def call_of(self, slot: Slot, tree: ast.FunctionDef) -> list[ast.stmt]:
        """Return the body of a callback that is a slot's call."""
        name = self._ask(_Linker.need, slot)
        self.calls.add(name)
        return [self._parsed(f"return {name}({', '.join(argument.arg for argument in tree.args.args)})", tree)]

    def _table_of(self, record: type[Record], location: ast.AST) -> Table[Any]:
        tables = TABLES.get(record, [])
        if len(tables) != 1:
            self._refuse(location, f"is handed a {record.__name__}, of which there are {len(tables)} tables")
        self._ask(_Linker.table, tables[0])
        return tables[0]

    def _parsed(self, text: str, location: ast.AST) -> ast.stmt:
        statement = ast.parse(text).body[0]
        for node in ast.walk(statement):
            ast.copy_location(node, location)
        return statement

    def visit_For(self, node: ast.For) -> Any:
        call = node.iter
        method: Any = self.resolve(call.func) if isinstance(call, ast.Call) else _MISSING
        owner = getattr(method, "__self__", None)
        if not isinstance(owner, Chain | Table) or not isinstance(call, ast.Call):
            return self.generic_visit(node)
        word = f"{type(owner).__name__.lower()}.{method.__name__}"
        if word not in WALKS or not isinstance(node.target, ast.Name) or node.orelse:
            self._refuse(node, f"rows are walked by {', '.join(WALKS)}, one at a time and without else")
        self._resolved(call.func)
        arguments, chain, names = list(call.args), None, {"x": node.target.id}
        if word != "table.span":
            chain = owner if isinstance(owner, Chain) else self._resolved(arguments.pop(1))
            if not isinstance(chain, Chain) or continues(node.body):
                self._refuse(node, "a list is walked by its chain, without continue")
        names |= self._names_of_walk(owner, chain)
        names |= {name: ast.unparse(self.visit(each)) for name, each in zip(WALK_ARGUMENTS, arguments, strict=False)}
        return written(WALKS[word].format(**names), self.statements(node.body), node)

    def _names_of_walk(self, owner: Chain[Any] | Table[Any], chain: Chain[Any] | None) -> dict[str, str]:
        names = {"table": self._ask(_Linker.table, owner)} if isinstance(owner, Table) else {}
        if chain is not None:
            names |= {"links": self._ask(_Linker.table, chain.table), "link": chain.link}
        return names

    def visit_Assign(self, node: ast.Assign) -> Any:
        call, target = node.value, node.targets[0]
        if not isinstance(call, ast.Call) or not call.keywords or not isinstance(target, ast.Name):
            return self.generic_visit(node)
        method = self.resolve(call.func)
        table = getattr(method, "__self__", None)
        if not isinstance(table, Table) or method.__name__ != "new":
            return self.generic_visit(node)
        unknown = [each.arg for each in call.keywords if each.arg not in fields(table.record)]
        if unknown:
            self._refuse(node, f"{table.record.__name__} has no {', '.join(map(str, unknown))}")
        alias = f"{target.id}__of_{table.name}"
        taken = self.generic_visit(
            ast.copy_location(ast.Assign(node.targets, ast.Call(call.func, call.args, [])), node)
        )
        record = self._parsed(f"{alias} = {ast.unparse(self.visit(call.args[0]))}.{table.name}[{target.id}]", node)
        values = [(each.arg, self.visit(each.value)) for each in call.keywords]
        filled = [
            ast.Assign([ast.Attribute(ast.Name(alias, ast.Load()), str(name), ast.Store())], value)
            for name, value in values
        ]
        return [ast.fix_missing_locations(ast.copy_location(each, node)) for each in (taken, record, *filled)]

    def visit_Return(self, node: ast.Return) -> Any:
        if not isinstance(node.value, ast.Call) or not node.value.keywords:
            return self.generic_visit(node)
        row = ast.Name(_TAKEN, ast.Store())
        taken = self.statements([ast.copy_location(ast.Assign([row], node.value), node)])
        return [*taken, ast.fix_missing_locations(ast.copy_location(ast.Return(ast.Name(_TAKEN, ast.Load())), node))]

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> Any:
        if node.value is None:
            return ast.Pass()
        return ast.copy_location(ast.Assign([self.visit(node.target)], self.visit(node.value)), node)

    def visit_Name(self, node: ast.Name) -> Any:
        return node if node.id in self.local else self._value(node, self._resolved(node))

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        value = self._resolved(node)
        return self.generic_visit(node) if value is _MISSING else self._value(node, value)

    def visit_Call(self, node: ast.Call) -> Any:
        callee = self._resolved(node.func)
        if callee is _MISSING:
            self._refuse(node, f"calls {ast.unparse(node.func)}, which is no part")
        if node.keywords:
            self._refuse(node, "calls with keyword arguments")
        if isinstance(callee, Table):
            name = self._ask(_Linker.table, callee)
            return ast.copy_location(ast.Attribute(self.visit(node.args[0]), name, ast.Load()), node)
        name = self._callee(node, callee)
        self.calls.add(name)
        call = ast.Call(ast.Name(name, ast.Load()), [self.visit(argument) for argument in node.args], [])
        return ast.copy_location(call, node)

    def _callee(self, node: ast.Call, callee: Any) -> str:
        owner = getattr(callee, "__self__", None)
        method = getattr(callee, "__name__", "")
        if isinstance(owner, Table | Chain | Family):
            return self._method(owner, method)
        if isinstance(callee, Action):
            self._refuse(node, f"calls the callback {callee.__name__}; call a part instead")
        if isinstance(callee, FunctionType) and callee not in _QUEUE and "return" in callee.__annotations__:
            callee = part_of(callee)
        if isinstance(callee, Part):
            return self._ask(_Linker.need, callee)
        name = _QUEUE.get(callee) or (method if method in BUILTINS else None)
        if name is None:
            self._refuse(node, f"calls {ast.unparse(node.func)}, which is no part")
        return name

    def _method(self, owner: Table[Any] | Chain[Any] | Family, method: str) -> str:
        if isinstance(owner, Table):
            return f"{self._ask(_Linker.table, owner)}__{method}"
        if isinstance(owner, Chain):
            return f"{self._ask(_Linker.chain, owner)}__{method}"
        return self._ask(_Linker.family, owner)

    def _value(self, node: ast.Name | ast.Attribute, value: Any) -> ast.expr:
        if isinstance(value, Action):
            constant: ast.expr = self._ask(_Linker.action, value)
        elif isinstance(value, Failure):
            constant = self._ask(_Linker.failure, value)
        elif isinstance(value, bool):
            constant = ast.Constant(value)
        elif isinstance(value, int):
            constant = ast.Constant(int(value)) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-int(value)))
        elif isinstance(value, float):
            constant = ast.Constant(value) if value >= 0 else ast.UnaryOp(ast.USub(), ast.Constant(-value))
        else:
            self._refuse(node, f"uses {ast.unparse(node)}, which is no number")
        return ast.copy_location(constant, node)

    def _refuse(self, node: ast.AST, why: str) -> NoReturn:
        function = self.part.function
        raise LinkError(f"{function.__module__}.{function.__qualname__}, line {getattr(node, 'lineno', '?')}: {why}")


def implementations(linked: Linked, slot: Slot) -> list[tuple[int, Part]]:
    """Return the chosen kinds' implementations of a slot with the kinds' numbers."""
    kinds = linked.kinds.get(slot.sort.name, [])
    return [(n, k.implementations[slot.name]) for n, k in enumerate(kinds, 1) if slot.name in k.implementations]


def call_graph(linked: Linked) -> dict[str, set[str]]:
    """Return who calls whom, through slots and families too."""
    graph = {name: set(function.calls) for name, function in linked.functions.items()}
    for name, slot in linked.slots.items():
        graph[name] = {part.name for _, part in implementations(linked, slot)} | {f"{name}__default"}
    for name, members in linked.families.items():
        graph[f"call_{name}"] = {member.name for member in members}
    return graph


def refuse_cycles(linked: Linked) -> None:
    """Raise :class:`LinkError` naming a circle of calls, if there is one."""
    graph = call_graph(linked)
    done: set[str] = set()
    for start in sorted(graph):
        _walk(start, graph, done, [])


def _walk(name: str, graph: dict[str, set[str]], done: set[str], path: list[str]) -> None:
    if name in path:
        circle = " -> ".join([*path[path.index(name) :], name])
        raise LinkError(f"these functions call each other in a circle: {circle}; let a queue that a loop drains cut it")
    if name in done or name not in graph:
        return
    for callee in sorted(graph[name]):
        _walk(callee, graph, done, [*path, name])
    done.add(name)
