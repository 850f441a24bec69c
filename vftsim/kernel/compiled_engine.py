"""The fast engine: the same functions, compiled by numba over one structured record.

The linked functions are written into one module in the user's cache, in a folder named by a hash of the source and of numba's version;
numba then caches the machine code of its one entry beside it.  (Functions cached module by module go stale without a word when one
they call changes.)  Events wait in a binary heap of five parallel arrays in the record itself.
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from vftsim.kernel import emit
from vftsim.kernel.declare import Entry, Table
from vftsim.kernel.engine import FOREVER_NS, Engine
from vftsim.kernel.link import Linked
from vftsim.kernel.order import ENTITY_BITS
from vftsim.kernel.quick_compile import only_entry_optimized
from vftsim.kernel.record import dtype_of

_EVENTS = 1 << 21
_RUN, _AT, _NEW = 0, 1, 2
# Inner functions are called from compiled code only; a division by zero is found by the other engine.
_INNER = '@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")'
_ENTRIES_FROM = 3

_QUEUE = f'''
def at(sim, time_ns, kind, entity, action, place):
    if time_ns < sim.now_ns or sim.heap_length >= {_EVENTS}:
        if sim.failure == 0:
            sim.failure = {{past}} if time_ns < sim.now_ns else {{crowded}}
        return 0
    sim.tokens += 1
    token = sim.tokens
    order = (kind << {ENTITY_BITS}) | entity
    here = sim.heap_length
    sim.heap_length = here + 1
    while here > 0:
        above = (here - 1) >> 1
        above_ns = sim.heap_ns[above]
        if above_ns < time_ns or (above_ns == time_ns and sim.heap_order[above] <= order):
            break
        sim.heap_ns[here] = above_ns
        sim.heap_order[here] = sim.heap_order[above]
        sim.heap_token[here] = sim.heap_token[above]
        sim.heap_action[here] = sim.heap_action[above]
        sim.heap_place[here] = sim.heap_place[above]
        here = above
    sim.heap_ns[here] = time_ns
    sim.heap_order[here] = order
    sim.heap_token[here] = token
    sim.heap_action[here] = action
    sim.heap_place[here] = place
    return token


def is_due_before(sim, kind):
    return sim.heap_length > 0 and sim.heap_ns[0] == sim.now_ns and sim.heap_order[0] < kind << {ENTITY_BITS}


def fail(sim, failure):
    if sim.failure == 0:
        sim.failure = failure


def precedes(sim, one, other):
    if sim.heap_ns[one] != sim.heap_ns[other]:
        return sim.heap_ns[one] < sim.heap_ns[other]
    if sim.heap_order[one] != sim.heap_order[other]:
        return sim.heap_order[one] < sim.heap_order[other]
    return sim.heap_token[one] < sim.heap_token[other]


def drop_first(sim):
    last = sim.heap_length - 1
    sim.heap_length = last
    if last == 0:
        return
    time_ns = sim.heap_ns[last]
    order = sim.heap_order[last]
    token = sim.heap_token[last]
    here = 0
    while True:
        below = 2 * here + 1
        if below >= last:
            break
        if below + 1 < last and precedes(sim, below + 1, below):
            below += 1
        below_ns = sim.heap_ns[below]
        if below_ns > time_ns:
            break
        if below_ns == time_ns:
            below_order = sim.heap_order[below]
            if below_order > order or (below_order == order and sim.heap_token[below] > token):
                break
        sim.heap_ns[here] = below_ns
        sim.heap_order[here] = sim.heap_order[below]
        sim.heap_token[here] = sim.heap_token[below]
        sim.heap_action[here] = sim.heap_action[below]
        sim.heap_place[here] = sim.heap_place[below]
        here = below
    sim.heap_ns[here] = time_ns
    sim.heap_order[here] = order
    sim.heap_token[here] = token
    sim.heap_action[here] = sim.heap_action[last]
    sim.heap_place[here] = sim.heap_place[last]


def run(sim, until_ns):
    while sim.heap_length > 0 and sim.heap_ns[0] < until_ns:
        sim.now_ns = sim.heap_ns[0]
        action = sim.heap_action[0]
        place = sim.heap_place[0]
        token = sim.heap_token[0]
        drop_first(sim)
        sim.events += 1
        call_event(sim, action, place, token)
        if sim.wants_input or sim.failure != 0:
            return 1
    if until_ns < {FOREVER_NS}:
        sim.now_ns = until_ns
    return 0
'''
_PAST, _CROWDED = 900, 901
_QUEUE_FAILURES = {
    _PAST: "an event was planned for a time that has passed",
    _CROWDED: f"more than {_EVENTS} events are planned at one time; make the model smaller",
}


def kernel_source(linked: Linked) -> str:
    """Return the module that numba compiles."""
    tables = sorted(linked.tables)
    pieces = [
        *(emit.table_source(linked, linked.tables[name], grows=False) for name in tables),
        *(emit.chain_source(linked.chains[name]) for name in sorted(linked.chains)),
        *(emit.slot_source(linked, linked.slots[name]) for name in sorted(linked.slots)),
        *(emit.family_source(linked, linked.family_of[name]) for name in sorted(linked.family_of)),
        *(ast.unparse(linked.functions[name].tree) + "\n" for name in sorted(linked.functions)),
        _QUEUE.format(past=_PAST, crowded=_CROWDED),
    ]
    if "event" not in linked.family_of:
        pieces.append("def call_event(sim, action, a0, a1):\n    pass\n")
    text = "\n".join(pieces).replace("\ndef ", f"\n{_INNER}\ndef ")
    return f"from numba import njit\n\n{text}\n\n{_enter(linked)}"


def _enter(linked: Linked) -> str:
    lines = [
        "@njit(cache=True)",
        "def enter(state, what, a, b, c, d, e):",
        "    sim = state[0]",
        f"    if what == {_RUN}:",
        "        return run(sim, a)",
        f"    if what == {_AT}:",
        "        return at(sim, a, b, c, d, e)",
    ]
    for number, name in enumerate(own_tables(linked)):
        lines += [f"    if what == {_NEW} and a == {number}:", f"        return {name}__new(sim)"]
    for number, one in enumerate(linked.entries, _ENTRIES_FROM):
        lines += [f"    if what == {number}:", f"        return {one.name}(sim, a, b)"]
    return "\n".join([*lines, "    return 0", ""])


def own_tables(linked: Linked) -> list[str]:
    """Return the tables whose rows are taken by themselves."""
    return sorted(name for name, table in linked.tables.items() if table.beside is None and not table.is_fixed)


def state_dtype(linked: Linked) -> np.dtype[Any]:
    """Return the layout of the whole state."""
    columns: list[Any] = [
        ("now_ns", "i8"), ("wants_input", "?"), ("failure", "i8"), ("events", "i8"), ("tokens", "i8"),
        ("heap_length", "i8"), ("heap_ns", "i8", (_EVENTS,)), ("heap_order", "i8", (_EVENTS,)),
        ("heap_token", "i8", (_EVENTS,)), ("heap_action", "i4", (_EVENTS,)), ("heap_place", "i8", (_EVENTS,)),
    ]  # fmt: skip
    for name in sorted(linked.tables):
        table = linked.tables[name]
        columns.append((name, dtype_of(table.record), (table.capacity,)))
        if table.beside is None and not table.is_fixed:
            columns += [(f"{name}_used", "i8"), (f"{name}_unused", "i8"), (f"{name}_after", "i4", (table.capacity,))]
    return np.dtype(columns)


def cache_directory() -> Path:
    """Return where kernels are kept: ``VFTSIM_CACHE_DIR``, or ``vftsim`` in the user's cache folder."""
    chosen = os.environ.get("VFTSIM_CACHE_DIR")
    if chosen:
        return Path(chosen)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "vftsim"


def load_kernel(source: str) -> ModuleType:
    """Write a kernel's module into the cache, unless it is there, and import it.

    Several processes may do so at once: a file appears whole or not at all, and its content follows from its
    name.  Where the cache cannot be written to, a temporary folder serves.
    """
    import numba

    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {source}".encode()).hexdigest()[:24]
    name = f"vftsim_kernel_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    try:
        path = _written(cache_directory() / "kernels" / digest, source)
    except OSError:
        path = _written(Path(tempfile.mkdtemp(prefix="vftsim-kernel-")), source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _written(folder: Path, source: str) -> Path:
    path = folder / "kernel.py"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=folder, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(source)
        os.replace(temporary, path)
    return path


class CompiledEngine(Engine):
    """See the module's text."""

    name = "compiled"

    def __init__(self, linked: Linked, on_input: Callable[[], None] | None = None) -> None:
        super().__init__(linked, on_input)
        if linked.compiled is None:
            linked.compiled = (load_kernel(kernel_source(linked)).enter, state_dtype(linked))
        self._enter, dtype = linked.compiled
        self._state = np.zeros(1, dtype)
        if not self._enter.signatures:
            with only_entry_optimized("enter"):
                self._do(_RUN, 0)
        self._sim: Any = self._state.view(np.recarray)[0]
        self._tables = own_tables(linked)

    @property
    def sim(self) -> Any:
        """The state."""
        return self._sim

    def rows(self, table: Table[Any]) -> Sequence[Any]:
        """Return a table's rows."""
        rows: Sequence[Any] = getattr(self._sim, table.name)
        return rows

    def new(self, table: Table[Any]) -> int:
        """Take a row of a table."""
        return self._do(_NEW, self._tables.index(table.name))

    def call(self, entry: Entry, a: int = 0, b: int = 0) -> int:
        """Call an entry."""
        result = self._do(_ENTRIES_FROM - 1 + self.linked.number(entry), a, b)
        self._after()
        return result

    def at(self, time_ns: int, kind: int, entity: int, action: int, place: int) -> int:
        """Plan an event from outside."""
        token = self._do(_AT, time_ns, kind, entity, action, place)
        self.check()
        return token

    def run(self, until_ns: int = FOREVER_NS) -> None:
        """Run to an instant (its events not included) or until nothing is planned."""
        while self._do(_RUN, until_ns):
            self._after()

    def check(self) -> None:
        """Raise :class:`~vftsim.errors.RunFailure` if the run has failed."""
        failure = int(self._sim.failure)
        if failure in _QUEUE_FAILURES:
            raise AssertionError(_QUEUE_FAILURES[failure])
        super().check()

    def _do(self, what: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
        return int(self._enter(self._state, what, a, b, c, d, e))

    def _after(self) -> None:
        self.check()
        if self._sim.wants_input:
            self._sim.wants_input = False
            if self.on_input is not None:
                self.on_input()
