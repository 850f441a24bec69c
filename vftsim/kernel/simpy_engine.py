"""The engine for reading: plain Python objects, events in a SimPy environment.

Functions keep their file names and line numbers, so a debugger stops in the mechanism's source.  A user's
own SimPy process can take part: it yields :meth:`SimpyEngine.wait` (SimPy's ``timeout`` has a priority that
would mean another order here).
"""

import ast
from collections.abc import Callable, Generator, Sequence
from types import CodeType
from typing import Any

import simpy
from simpy.events import Event

from vftsim.kernel import emit
from vftsim.kernel.declare import Entry, Table, event
from vftsim.kernel.engine import FOREVER_NS, Engine
from vftsim.kernel.link import Function, Linked, unlinked
from vftsim.kernel.order import ENTITY_BITS

_BEFORE_ALL = -1


class _State:
    """The state of a run; the tables are attributes.  The rows of one are made when it is first looked at."""

    def __init__(self, linked: Linked, record_type: Callable[[Table[Any]], type[Any]]) -> None:
        self.now_ns = 0
        self.wants_input = False
        self.failure = 0
        self.events = 0
        self.watching = 0
        self._tables, self._record_type = linked.tables, record_type
        for name, table in linked.tables.items():
            if not table.is_fixed:
                setattr(self, name, [record_type(table)()])
                setattr(self, f"{name}_used", 0)
                setattr(self, f"{name}_unused", 0)
                setattr(self, f"{name}_after", [0])

    def __getattr__(self, name: str) -> list[Any]:
        """Make the rows of a fixed table, thousands that most runs do not look at."""
        table = self.__dict__["_tables"].get(name)
        if table is None:
            raise AttributeError(name)
        rows = [self._record_type(table)() for _ in range(table.capacity)]
        setattr(self, name, rows)
        return rows


class _Planned(Event):
    """An event of the model."""

    def __init__(self, environment: simpy.Environment, action: int, target: int, token: int, callbacks: Any) -> None:
        self.env = environment
        self.callbacks = callbacks
        self._ok = True
        self._value = None
        self.action = action
        self.target = target
        self.token = token


class SimpyEngine(Engine):
    """See the module's text."""

    name = "simpy"

    def __init__(self, linked: Linked, on_input: Callable[[], None] | None = None) -> None:
        super().__init__(linked, on_input)
        self._sim = _State(linked, self.record_type)
        # Typed Any: SimPy's stubs know three priorities and float times, its code any integer.
        self._environment: Any = simpy.Environment(initial_time=0)
        self._namespace = self._compile()
        members = [self._namespace[a.name] for a in linked.families.get(event.name, [])]
        self._actions: list[Callable[..., None]] = [_nothing, *members]
        self._tokens = 0
        self._moved_at = 0

    @property
    def sim(self) -> Any:
        return self._sim

    def rows(self, table: Table[Any]) -> Sequence[Any]:
        rows: Sequence[Any] | None = getattr(self._sim, table.name, None)
        if rows is None:
            raise unlinked(table)
        return rows

    def new(self, table: Table[Any]) -> int:
        row: int = self._namespace[f"{table.name}__new"](self._sim)
        return row

    def call(self, entry: Entry, a: int = 0, b: int = 0) -> int:
        result: int | None = self._namespace[entry.name](self._sim, a, b)
        self._after()
        return result or 0

    def at(self, time_ns: int, kind: int, entity: int, action: int, target: int) -> int:
        return self._at(self._sim, time_ns, kind, entity, action, target)

    def wait(self, delay_ns: int, kind: int, entity: int) -> Event:
        """Return an event for a process to yield: ``delay_ns`` from now, ordered like every other event."""
        event = Event(self._environment)
        # Triggered already, like SimPy's timeout: what is scheduled is only its callbacks.
        event._ok = True
        event._value = None
        event.callbacks = [self._tell_time]
        self._environment.schedule(event, (kind << ENTITY_BITS) | entity, delay_ns)
        return event

    def process(self, generator: Generator[Event, Any, Any]) -> simpy.Process:
        """Start a SimPy process; it yields events of :meth:`wait`."""
        started: simpy.Process = self._environment.process(generator)
        return started

    def run(self, until_ns: int = FOREVER_NS, most_events: int = FOREVER_NS) -> None:
        if most_events < FOREVER_NS:
            self._step(until_ns, most_events)
        if self._sim.events < most_events:
            self._go_to(until_ns)
        self.check()

    def _go_to(self, until_ns: int) -> None:
        environment = self._environment
        if until_ns >= FOREVER_NS:
            environment.run()
        elif until_ns > environment._now:
            # SimPy's stop event would come after CPU events of entity 0 at that instant.
            stop = Event(environment)
            stop._ok = True
            stop._value = None
            environment.schedule(stop, _BEFORE_ALL, until_ns - environment._now)
            environment.run(until=stop)
            self._tell_time()

    def _step(self, until_ns: int, most_events: int) -> None:
        # Asked before each event: peek() is the time of the next one, infinite if there is none.
        while self._sim.events < most_events and self._environment.peek() < until_ns:
            self._environment.step()

    def _at(self, sim: Any, time_ns: int, kind: int, entity: int, action: int, target: int) -> int:
        environment = self._environment
        delay_ns = time_ns - environment._now
        if delay_ns < 0:
            raise self.too_late()
        self._tokens += 1
        planned = _Planned(environment, action, target, self._tokens, [self._fire])
        environment.schedule(planned, (kind << ENTITY_BITS) | entity, delay_ns)
        return self._tokens

    def _is_due_before(self, sim: Any, kind: int) -> bool:
        # The event that takes place now is off the queue already.
        queue = self._environment._queue
        return bool(queue) and queue[0][0] == sim.now_ns and queue[0][1] < kind << ENTITY_BITS

    def _fire(self, planned: Any) -> None:
        sim = self._sim
        self._tell_time()
        sim.events += 1
        self._actions[planned.action](sim, planned.target, planned.token)
        if sim.watching:
            self._namespace["call_watch"](sim, sim.watching)
        if sim.wants_input or sim.failure:
            self._after()

    def _after(self) -> None:
        sim = self._sim
        self.check()
        if sim.wants_input:
            # Cleared first: on_input() may call entries, which come here too.
            sim.wants_input = False
            if self.on_input is not None:
                self.on_input()

    def _tell_time(self, _: Any = None) -> None:
        """SimPy's clock is the master; the model reads its own copy, as in the other engine."""
        sim, now_ns = self._sim, self._environment._now
        if sim.now_ns != now_ns:
            sim.now_ns, self._moved_at = now_ns, sim.events
        else:
            self.refuse_standing(sim.events - self._moved_at)

    def _compile(self) -> dict[str, Any]:
        linked = self.linked
        namespace: dict[str, Any] = {"at": self._at, "is_due_before": self._is_due_before, "fail": _fail}
        namespace |= {f"{name}__record": self.record_type(table) for name, table in linked.tables.items()}
        if self.name not in linked.compiled:
            linked.compiled[self.name] = self._bytecode()
        for code in linked.compiled[self.name]:
            exec(code, namespace)
        return namespace

    def _bytecode(self) -> list[CodeType]:
        """Compile the kernel's functions to Python's code, each under the name of its file."""
        linked = self.linked
        pieces = [emit.table_source(linked, table, grows=True) for table in linked.tables.values()]
        pieces += [emit.chain_source(chain) for chain in linked.chains.values()]
        pieces += [emit.slot_source(linked, slot) for slot in linked.slots.values()]
        pieces += [emit.family_source(linked, family) for family in linked.family_of.values()]
        functions = [self._code(function) for function in linked.functions.values()]
        return [compile("\n".join(pieces), "<vftsim kernel>", "exec"), *functions]

    def _code(self, function: Function) -> CodeType:
        """Compile a function, once for all kernels that have it as it is."""
        if self.name not in function.codes:
            module = ast.Module([self.prepare(function.tree)], [])
            function.codes[self.name] = compile(module, function.path, "exec")
        return function.codes[self.name]

    def prepare(self, tree: ast.FunctionDef) -> ast.FunctionDef:
        """Return the form of a function that this engine runs."""
        return ast.fix_missing_locations(tree)

    def record_type(self, table: Table[Any]) -> type[Any]:
        """Return the class of a table's rows."""
        return table.record


def _fail(sim: Any, failure: int) -> None:
    if sim.failure == 0:
        sim.failure = failure


def _nothing(sim: Any, target: int, token: int) -> None:
    """Stand for action 0."""
