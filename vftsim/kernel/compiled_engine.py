"""The fast engine: the same functions, compiled by numba over one structured record.

The linked functions are written into one module in the user's cache, in a folder named by a hash of the source, of
the layout of the state and of numba's version; the machine code of its one entry is kept beside it
(:mod:`vftsim.kernel.machine_code`) and needs no numba from then on.  (Functions cached module by module go stale
without a word when one they call changes.)  Events wait in the record itself (:mod:`vftsim.kernel.wheel`).
"""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import mmap
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vftsim.kernel import emit, machine_code, wheel
from vftsim.kernel.declare import Entry, Table
from vftsim.kernel.engine import FOREVER_NS, Engine
from vftsim.kernel.link import Linked
from vftsim.kernel.machine_code import Enter
from vftsim.kernel.quick_compile import only_entry_optimized
from vftsim.kernel.record import dtype_of

_RUN, _AT, _NEW = 0, 1, 2
# Inner functions are called from compiled code only; a division by zero is found by the other engine.
_INNER = '@njit(no_cpython_wrapper=True, no_cfunc_wrapper=True, error_model="numpy")'
_ENTRIES_FROM = 3
_CODE, _NO_CODE = "kernel.code", "kernel.by-numba"


def kernel_source(linked: Linked, *, checks_bounds: bool = False) -> str:
    """Return the module that numba compiles; ``checks_bounds``: an index out of range raises."""
    tables = sorted(linked.tables)
    pieces = [
        *(emit.table_source(linked, linked.tables[name], grows=False) for name in tables),
        *(emit.chain_source(linked.chains[name]) for name in sorted(linked.chains)),
        *(emit.slot_source(linked, linked.slots[name]) for name in sorted(linked.slots)),
        *(emit.family_source(linked, linked.family_of[name]) for name in sorted(linked.family_of)),
        *(ast.unparse(linked.functions[name].tree) + "\n" for name in sorted(linked.functions)),
        wheel.SOURCE,
    ]
    if "event" not in linked.family_of:
        pieces.append("def call_event(sim, action, a0, a1):\n    pass\n")
    inner = _INNER.replace(")", ", boundscheck=True)") if checks_bounds else _INNER
    text = "\n".join(pieces).replace("\ndef ", f"\n{inner}\ndef ")
    return f"from numba import njit\n\n{text}\n\n{_enter(linked)}"


def _enter(linked: Linked) -> str:
    lines = [
        "def enter(state, what, a, b, c, d, e):",
        "    sim = state[0]",
        f"    if what == {_RUN}:",
        "        return run(sim, a, b)",
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
        ("now_ns", "i8"), ("wants_input", "?"), ("failure", "i8"), ("events", "i8"), *wheel.columns(),
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


def load_kernel(source: str, dtype: np.dtype[Any], *, by_numba: bool = False) -> Enter:
    """Return a kernel's entry: from the cache, or compiled and put there.

    Several processes may do so at once: a file appears whole or not at all, and its content follows from its
    name.  Where the cache cannot be written to, a temporary folder serves.

    Parameters
    ----------
    source : str
        The module, of :func:`kernel_source`.
    dtype : dtype
        Layout of the state.
    by_numba : bool
        Whether numba shall call it, which passes on exceptions; also taken where numba does not give its code away.
    """
    text = f"{machine_code.identity()} {dtype} {source}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:24]
    folder = cache_directory() / "kernels" / digest
    if by_numba or not machine_code.is_possible() or (folder / _NO_CODE).exists():
        called: Enter = _compiled(_imported(digest, folder, source).enter, dtype, cache=True)
        return called
    known = machine_code.read(folder / _CODE)
    if known is not None:
        return machine_code.loaded(known)
    module = _imported(digest, folder, source)
    code = machine_code.of_compiled(_compiled(module.enter, dtype, no_cpython_wrapper=True))
    place = Path(str(module.__file__)).parent
    with suppress(OSError):  # a full disk: it is compiled again next time
        if code is None:
            (place / _NO_CODE).touch()
        else:
            code.write(place / _CODE)
    return machine_code.loaded(code) if code is not None else load_kernel(source, dtype, by_numba=True)


def _imported(digest: str, folder: Path, source: str) -> ModuleType:
    """Return a kernel's module, written into its folder or, where that cannot be, into a temporary one."""
    name = f"vftsim_kernel_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    try:
        path = _written(folder, source)
    except OSError:
        path = _written(Path(tempfile.mkdtemp(prefix="vftsim-kernel-")), source)
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _compiled(entry: Any, dtype: np.dtype[Any], **options: bool) -> Any:
    """Return numba's dispatcher of the entry, compiled."""
    import numba

    compiler: Any = numba
    dispatcher = compiler.njit(no_cfunc_wrapper=True, **options)(entry)
    with only_entry_optimized("enter"):
        dispatcher.compile((compiler.types.Array(compiler.from_dtype(dtype), 1, "C"), *6 * [compiler.types.int64]))
    return dispatcher


def _written(folder: Path, source: str) -> Path:
    path = folder / "kernel.py"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        machine_code.write_whole(path, source.encode())
    return path


def zeroed(dtype: np.dtype[Any]) -> NDArray[Any]:
    """Return one record of zeros, of which only what is touched takes memory.

    In small pages: numpy would ask for pages of 2 MiB, and few bytes of a hundred places are touched.
    """
    if dtype.itemsize < 0:  # numpy counts the bytes of a record in 32 bits
        raise OverflowError("the tables of all its parts together are larger than 2 GiB")
    memory = mmap.mmap(-1, dtype.itemsize)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, dtype, count=1)


class CompiledEngine(Engine):
    """See the module's text."""

    name = "compiled"
    can_go_back = True

    checks_bounds = False

    def __init__(self, linked: Linked, on_input: Callable[[], None] | None = None) -> None:
        super().__init__(linked, on_input)
        if self.name not in linked.compiled:
            source = kernel_source(linked, checks_bounds=self.checks_bounds)
            dtype = state_dtype(linked)
            linked.compiled[self.name] = (load_kernel(source, dtype, by_numba=self.checks_bounds), dtype)
        self._enter, dtype = linked.compiled[self.name]
        self._state = zeroed(dtype)
        self._sim: Any = self._state.view(np.recarray)[0]
        # numpy takes some microseconds for a field of a record; these are looked at after every call.
        self._failure, self._wants_input = self._state["failure"], self._state["wants_input"]
        self._rows: dict[str, Any] = {}
        self._tables = own_tables(linked)
        self._bytes = self._state.view(np.uint8)

    @property
    def sim(self) -> Any:
        """The state."""
        return self._sim

    def rows(self, table: Table[Any]) -> Sequence[Any]:
        """Return a table's rows."""
        rows: Sequence[Any] | None = self._rows.get(table.name)
        if rows is None:
            rows = self._rows[table.name] = getattr(self._sim, table.name)
        return rows

    def column(self, table: Table[Any], name: str, first: int, count: int) -> list[Any]:
        """Return one field of consecutive rows."""
        values: list[Any] = self._state[table.name][name][0, first : first + count].tolist()
        return values

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
        token = self._do(_AT, time_ns, int(kind), entity, action, place)
        self.check()
        return token

    def run(self, until_ns: int = FOREVER_NS, most_events: int = FOREVER_NS) -> None:
        """Run to an instant (its events not included), until nothing is planned, or for so many events in all."""
        while self._do(_RUN, until_ns, most_events):
            self._after()

    def save(self) -> Any:
        """Return the parts of the state that are in use."""
        return [(part, self._bytes[part].copy()) for part in self._in_use()]

    def restore(self, saved: Any) -> None:
        """Go back to a state; what was taken since is zero again, as new rows must be."""
        for part in self._in_use():
            self._bytes[part] = 0
        for part, content in saved:
            self._bytes[part] = content

    def _in_use(self) -> list[slice]:
        """Return where the state may be other than zero: of tables the rows taken so far, of the queue its events."""
        fields: Any = self._state.dtype.fields
        counts = {"heap": int(self._sim.heap_length) + 1, "entries": int(self._sim.entries_used) + 1}
        for name, table in self.linked.tables.items():
            owner = table.beside or table
            if not owner.is_fixed:
                counts[name] = counts[f"{name}_after"] = self.used(owner) + 1
        found = []
        for name, (dtype, offset, *_) in fields.items():
            one, shape = dtype.subdtype or (dtype, (1,))
            found.append(slice(offset, offset + one.itemsize * counts.get(name, shape[0])))
        return found

    def check(self) -> None:
        """Raise :class:`~vftsim.errors.RunFailure` if the run has failed."""
        failure = int(self._failure[0])
        if failure in wheel.FAILURES:
            raise AssertionError(wheel.FAILURES[failure])
        if failure:
            super().check()

    def _do(self, what: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
        return int(self._enter(self._state, what, a, b, c, d, e))

    def _after(self) -> None:
        self.check()
        if self._wants_input[0]:
            self._wants_input[0] = False
            if self.on_input is not None:
                self.on_input()


class BoundsCheckedEngine(CompiledEngine):
    """A test build of the compiled engine: an index out of range raises ``IndexError``."""

    name = "bounds-checked"
    checks_bounds = True
