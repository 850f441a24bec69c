"""The fast engine: the same functions, compiled to machine code over one state in memory.

The linked functions make one source; its translation (:mod:`vftsim.kernel.ir`, :mod:`vftsim.kernel.object_code`) is
kept in the user's cache (:mod:`vftsim.kernel.code_cache`).  Events wait in the state (:mod:`vftsim.kernel.wheel`).
"""

import ast
import mmap
import platform
import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from vftsim.errors import RunFailure
from vftsim.kernel import code_cache, emit, wheel
from vftsim.kernel.declare import Entry, Table, event, watch
from vftsim.kernel.engine import FOREVER_NS, RewindableEngine
from vftsim.kernel.layout import layout_of
from vftsim.kernel.link import Linked, unlinked

_RUN, _AT, _NEW = 0, 1, 2
_ENTRIES_FROM = 3

EVENTS_AT_ONCE = 1 << 19
"""After so many events a run comes back to Python, however little time has passed: there Ctrl-C is heard."""

_NORESERVE: int = getattr(mmap, "MAP_NORESERVE", 0)
if not _NORESERVE and sys.platform == "linux" and platform.machine() in ("x86_64", "aarch64"):
    _NORESERVE = 0x4000  # Linux' number of it there, where Python has no name for it


def kernel_source(linked: Linked) -> str:
    """Return the functions of a kernel as one text, ``enter`` the last."""
    tables = sorted(linked.tables)
    families = {event.name: event, watch.name: watch} | linked.family_of
    pieces = [
        *(emit.table_source(linked, linked.tables[name], grows=False) for name in tables),
        *(emit.chain_source(linked.chains[name]) for name in sorted(linked.chains)),
        *(emit.slot_source(linked, linked.slots[name]) for name in sorted(linked.slots)),
        *(emit.family_source(linked, families[name]) for name in sorted(families)),
        *(ast.unparse(linked.functions[name].tree) + "\n" for name in sorted(linked.functions)),
        wheel.SOURCE,
        _enter(linked),
    ]
    return "\n".join(pieces)


def _enter(linked: Linked) -> str:
    lines = [
        "def enter(sim, what, a, b, c, d, e):",
        f"    if what == {_RUN}:",
        "        return run(sim, a, b)",
        f"    if what == {_AT}:",
        "        return at(sim, a, b, c, d, e)",
    ]
    for number, name in enumerate(own_tables(linked)):
        lines += [f"    if what == {_NEW} and a == {number}:", f"        return {name}__new(sim)"]
    for number, entry in enumerate(linked.entries, _ENTRIES_FROM):
        lines += [f"    if what == {number}:", f"        return {entry.name}(sim, a, b)"]
    return "\n".join([*lines, "    return 0", ""])


def own_tables(linked: Linked) -> list[str]:
    """Return the tables whose rows are taken by themselves."""
    return sorted(name for name, table in linked.tables.items() if table.takes_rows)


def with_fields(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of the same bytes whose scalars, and the records in them, have their fields as attributes.

    numpy's class for that (``record``) looks a name up in Python, five to ten times as slowly.
    """
    fields: Any = dtype.fields
    described: Any = {
        "names": list(fields),
        "formats": [_inside(kind) for kind, *_ in fields.values()],
        "offsets": [offset for _, offset, *_ in fields.values()],
        "itemsize": dtype.itemsize,
    }
    described = type("Row", (np.void,), {"__slots__": (), **{name: _field(name) for name in fields}}), described
    described_dtype: np.dtype[Any] = np.dtype(described)
    return described_dtype


def _inside(kind: np.dtype[Any]) -> Any:
    return (with_fields(kind.base), kind.shape) if kind.base.names else kind


def _field(name: str) -> property:
    def put(row: Any, value: Any) -> None:
        row[name] = value

    return property(itemgetter(name), put)


def zeroed(size: int) -> NDArray[np.uint8]:
    """Return so many zeros, of which only what is touched takes memory.

    In small pages: numpy would ask for pages of 2 MiB, and few bytes of a hundred places are touched.
    """
    if hasattr(mmap, "MAP_PRIVATE"):
        # Not reserved: a machine with less memory than all tables together runs what touches few of them, and a process
        # of many engines can still start another one (Linux counts what is reserved again for the child).
        memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NORESERVE)
    else:
        memory = mmap.mmap(-1, size)
    if hasattr(mmap, "MADV_NOHUGEPAGE"):
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, np.uint8)


class CompiledEngine(RewindableEngine):
    """See the module's text."""

    name = "compiled"

    checks_bounds = False

    def __init__(self, linked: Linked, on_input: Callable[[], None] | None = None) -> None:
        super().__init__(linked, on_input)
        if self.name not in linked.compiled:
            layout = layout_of(linked)
            linked.compiled[self.name] = (
                code_cache.entry_of(kernel_source(linked), layout, checks=self.checks_bounds),
                layout,
            )
        self._enter, self._layout = linked.compiled[self.name]
        layout = self._layout
        self._bytes = zeroed(layout.size)
        self._address = self._bytes.ctypes.data
        self._head = self._bytes[: layout.head.itemsize].view(layout.head)
        self._sim: Any = self._head.view(self._kind("", layout.head))[0]
        # numpy takes some microseconds for a field of a record; these are looked at after every call.
        self._failure, self._wants_input = self._head["failure"], self._head["wants_input"]
        self._now_ns = self._head["now_ns"]
        self._rows: dict[str, Any] = {}
        self._tables = own_tables(linked)
        starts = [layout.head.fields[f"{name}_used"][1] for name in self._tables] if layout.head.fields else []
        self._counts = np.array([byte for start in starts for byte in range(start, start + 8)], np.int64)

    @property
    def sim(self) -> Any:
        """The numbers of the state; its tables are :meth:`rows`."""
        return self._sim

    @property
    def now_ns(self) -> int:
        return int(self._now_ns.item())

    def rows(self, table: Table[Any]) -> Sequence[Any]:
        if table.name not in self._rows:
            array = self._layout.arrays.get(table.name)
            if array is None:
                raise unlinked(table)
            self._rows[table.name] = self._bytes[array.offset : array.end].view(self._kind(table.name, array.dtype))
        rows: Sequence[Any] = self._rows[table.name]
        return rows

    def _kind(self, name: str, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Return a dtype with fields, made once for all engines of a kernel."""
        kinds: dict[str, np.dtype[Any]] = self.linked.compiled.setdefault(f"{self.name}, rows", {})
        if name not in kinds:
            kinds[name] = with_fields(dtype)
        return kinds[name]

    def new(self, table: Table[Any]) -> int:
        return self._do(_NEW, self._tables.index(table.name))

    def call(self, entry: Entry, a: int = 0, b: int = 0) -> int:
        result = self._do(_ENTRIES_FROM - 1 + self.linked.number(entry), a, b)
        self._after()
        return result

    def at(self, time_ns: int, kind: int, entity: int, action: int, target: int) -> int:
        token = self._do(_AT, time_ns, int(kind), entity, action, target)
        self.check()
        return token

    def run(self, until_ns: int = FOREVER_NS, most_events: int = FOREVER_NS) -> None:
        events = moved_at = self.events
        before_ns = -1
        while events < most_events:
            if self.now_ns != before_ns:
                before_ns, moved_at = self.now_ns, events
            self.refuse_standing(events - moved_at)
            part = min(events + EVENTS_AT_ONCE, most_events)
            # Not 0: the run pauses for the driver, or has failed, and continues with the next event.
            while self._do(_RUN, until_ns, part):
                self._after()
            if self.events < part:
                return
            events = part

    def save(self) -> Any:
        """Return the parts of the state that are in use."""
        return [(part, self._bytes[part].copy()) for part in self._in_use() if self._is_touched(part)]

    def restore(self, saved: Any) -> None:
        """Go back to a state; what was taken since is zero again, as new rows must be."""
        # First by the counts of now, while the head still has them: they cover what was taken since.
        for part in self._in_use():
            if self._is_touched(part):
                self._bytes[part] = 0
        for part, content in saved:
            self._bytes[part] = content

    def _is_touched(self, part: slice) -> bool:
        """Tell whether there is anything but zeros; those of tables that a model does not use take no memory."""
        return bool(np.count_nonzero(self._bytes[part].view(np.bool_)))

    def _in_use(self) -> list[slice]:
        """Return where the state may be other than zero: of tables the rows taken so far, of the queue its events."""
        used = dict(zip(self._tables, self._bytes[self._counts].view(np.int64).tolist(), strict=True))
        head = self._head
        counts = {"heap": int(head["heap_length"][0]) + 1, "entries": int(head["entries_used"][0]) + 1}
        for name, table in self.linked.tables.items():
            owner = table.beside or table
            if not owner.is_fixed:
                counts[name] = counts[f"{name}_after"] = used[owner.name] + 1
            elif table.is_log and not self._is_written(table):
                counts[name] = 0
        parts = [slice(0, self._layout.head.itemsize)]
        for name, array in self._layout.arrays.items():
            count = counts.get(name, array.count)
            if count:
                parts.append(slice(array.offset, array.offset + array.dtype.itemsize * count))
        return parts

    def _is_written(self, table: Table[Any]) -> bool:
        """Tell whether a log is on, or holds anything that somebody has still to read."""
        rows: Any = self.rows(table)
        return bool(rows["is_on"].any() or rows["written"].any())

    def check(self) -> None:
        failure = self._failure.item()
        if failure == wheel.PAST:
            raise self.too_late()
        if failure == wheel.CROWDED:
            raise RunFailure(wheel.TOO_MANY)
        if failure:
            super().check()

    def _do(self, command: int, a: int = 0, b: int = 0, c: int = 0, d: int = 0, e: int = 0) -> int:
        return self._enter(self._address, command, a, b, c, d, e)  # type: ignore[no-any-return]

    def _after(self) -> None:
        self.check()
        # A failure has been raised by now: nobody fills the feeds of a run that has ended.
        if self._wants_input.item():
            # Cleared first: on_input() may call entries, which come here too.
            self._wants_input[0] = False
            if self.on_input is not None:
                self.on_input()


class BoundsCheckedEngine(CompiledEngine):
    """A test build of the compiled engine: an index out of range or below 0, and a division by 0, are errors."""

    name = "bounds-checked"
    checks_bounds = True
