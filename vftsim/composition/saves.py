"""Saved states of a run: the memory of its engine and what its driver remembers, so that the run can go back to them.

A crash that rolls a guest back is foreseen in the next pass (:mod:`vftsim.platform.protection.rollback`), and that pass
need not begin at time 0: whatever lies before the state to which the guest goes back is as it was.  So a run with
faults keeps a state now and then, a few MB each, and goes back to the last that is old enough.

The engine says what is its state.  The driver is Python objects, in parts that nobody has to write for this: they are
walked through, and the contents of whatever can change are noted, to be put back into the same objects.

Only what is known is noted: containers, arrays and generators of these very types, specs, outcomes, and objects of this
package's own classes.  A part from outside, which may keep something where nobody looks, says itself what is its state
(:class:`Rewindable`).  A function from outside is noted with what it names: its globals, too, unless it sets them.
Anything else (an iterator, a file, a lock, an object or class from outside that does not say) means that nothing is
kept, and a warning names it.  The next pass then begins at time 0: the same result, only later.
"""

import dis
import io
import mmap
import struct
import sys
import types
import warnings
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from functools import cache, partial
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.random import BitGenerator, Generator

from vftsim.kernel import Chain, Engine, Failure, Family, Kind, Linked, Sort, Table
from vftsim.kernel.declare import Part
from vftsim.kernel.engine import RewindableEngine
from vftsim.outcome import Outcome
from vftsim.spec.base import Spec

EVENTS_BETWEEN = 500_000
"""A state costs about as much as 20,000 events."""
MOST = 4
PACKAGES = frozenset({"vftsim"})
"""Whose classes and functions keep nothing but what is noted of them."""
_PLAIN = frozenset({int, float, complex, bool, str, bytes, type(None), range})
_DECLARED = (Chain, Engine, Failure, Family, Kind, Linked, Part, Sort, Table)
_UNSET: Any = object()
_POINTER_BYTES = struct.calcsize("P")

Note = Callable[[], object]
"""Puts something back."""


class CannotNoteError(Exception):
    """The driver holds something whose state cannot be read."""


class SavedStateWarning(UserWarning):
    """A run holds a part whose state cannot be kept: what a crash rolls back is played from the beginning."""


@runtime_checkable
class Rewindable(Protocol):
    """An object of a part from outside that can go back."""

    def save(self) -> Any:
        """Return all that it remembers, in a form that does not change when it does."""

    def restore(self, state: Any) -> None:
        """Remember what it remembered then."""


class State:
    """A run as it is between two events, to be put back as often as is wanted.

    Everything that the run's driver remembers is reached from the driver; what stands apart does not belong to the run.
    A driver that holds something whose state cannot be read is refused.
    """

    def __init__(self, engine: RewindableEngine, driver: object, apart: Iterable[object] = ()) -> None:
        self.time_ns = engine.now_ns
        self._engine = engine
        self._notes = notes_of(driver, apart)
        self._saved = engine.save()

    def put_back(self) -> None:
        """Let the run be as it was."""
        self._engine.restore(self._saved)
        for put_back in self._notes:
            put_back()


class Saves:
    """The states that one run can go back to.

    ``apart`` returns what does not belong to the run, such as who is told of its progress.
    """

    def __init__(self, engine: RewindableEngine, driver: object, apart: Callable[[], Iterable[object]]) -> None:
        self._engine = engine
        self._driver = driver
        self._apart = apart
        self._kept: deque[State] = deque(maxlen=MOST)
        self.next_event = EVENTS_BETWEEN
        """So many events in all, and the next state is due."""

    def save(self) -> None:
        """Keep the present state, between two events."""
        self.next_event = self._engine.events + EVENTS_BETWEEN
        try:
            self._kept.append(State(self._engine, self._driver, self._apart()))
        except CannotNoteError as error:
            self.next_event = sys.maxsize
            warnings.warn(
                f"{error} cannot be kept with a state of the run: each crash that rolls a guest back is played from "
                "the beginning; the result is the same. Methods save() and restore(state) make it go back",
                SavedStateWarning,
                stacklevel=2,
            )

    def go_back(self, before_ns: int) -> bool:
        """Go back to the last state from before an instant; false: there is none, and nothing has changed."""
        while self._kept and self._kept[-1].time_ns >= before_ns:
            self._kept.pop()
        if not self._kept:
            return False
        self._kept[-1].put_back()
        # None of them knows what the run is told now; it is to be kept anew when it goes on.
        self._kept.clear()
        self.next_event = self._engine.events
        return True


def notes_of(driver: object, apart: Iterable[object] = ()) -> list[Note]:
    """Return the contents of everything that can change and can be reached from an object.

    Does not look into what is apart.  Refuses something whose state cannot be read.
    """
    visited = {id(obj) for obj in apart}
    waiting, notes = [driver], list[Note]()
    while waiting:
        obj = waiting.pop()
        if type(obj) in _PLAIN or id(obj) in visited:
            continue
        visited.add(id(obj))
        for note, inside in _looked_into(obj):
            if note is not None:
                notes.append(note)
            # Series are long lists of numbers.
            if not set(map(type, inside)) <= _PLAIN:
                waiting.extend(inside)
    return notes


Look = tuple[Note | None, list[Any]]


def _looked_into(obj: Any) -> Iterator[Look]:
    look_into = _LOOKS.get(type(obj))
    if look_into is not None:
        yield from look_into(obj)
    elif isinstance(obj, type) and issubclass(obj, (Spec, Outcome)):
        pass  # declarations, whoever has made them
    elif isinstance(obj, (type, types.ModuleType)):
        _check_known(obj.__name__ if isinstance(obj, types.ModuleType) else obj.__module__, obj)
    elif isinstance(obj, (np.generic, np.dtype)):
        _check_known(type(obj).__module__, obj, "numpy")
    elif isinstance(obj, (Generator, BitGenerator)):
        _check_known(type(obj).__module__, obj, "numpy")
        if isinstance(obj, Generator):
            yield None, [obj.bit_generator]
        else:
            yield partial(setattr, obj, "state", obj.state), []
    elif _is_rewindable(obj):
        yield partial(obj.restore, obj.save()), []
    else:
        if not isinstance(obj, (Spec, Outcome)):  # values of what is declared, whoever has made its class
            _check_known(type(obj).__module__, obj)
        if not isinstance(obj, _DECLARED):
            yield from _by_type(obj)


def _check_known(module: str | None, obj: Any, *packages: str) -> None:
    """Raise :class:`CannotNoteError` for what another package has made."""
    if (module or "").partition(".")[0] not in PACKAGES.union(packages):
        raise CannotNoteError(f"a {type(obj).__name__} of {module}")


def _is_rewindable(obj: Any) -> bool:
    """Whether an object from outside says itself what is its state."""
    return type(obj).__module__.partition(".")[0] not in PACKAGES and isinstance(obj, Rewindable)


def _by_type(obj: Any) -> Iterator[Look]:
    """Look into an object of one of this package's classes, and into the container that it may be as well."""
    if isinstance(obj, dict):
        yield from _dict(obj)
    elif isinstance(obj, list):
        yield from _list(obj)
    elif isinstance(obj, tuple):
        yield from _tuple(obj)
    elif not isinstance(obj, (int, float, str)) and not _is_of_python_class(obj):
        raise CannotNoteError(f"a {type(obj).__name__}")
    yield from _object(obj)


def _is_of_python_class(obj: Any) -> bool:
    """Whether all that an object holds are attributes: in memory it has no room for what C code would keep there."""
    kinds = type(obj).__mro__
    room = object.__basicsize__ + _POINTER_BYTES * (2 + sum(len(_slots_of(kind)) for kind in kinds))
    has_attributes = any({"__dict__", "__slots__"} & vars(kind).keys() for kind in kinds)
    return has_attributes and type(obj).__basicsize__ <= room and not isinstance(obj, io.IOBase)


def _dict(obj: dict[Any, Any]) -> Iterator[Look]:
    content = dict(obj)
    yield partial(_put, obj, content), [*content.keys(), *content.values()]
    if isinstance(obj, defaultdict):
        yield None, [obj.default_factory]
    if isinstance(obj, (Counter, OrderedDict)):
        yield from _dict(vars(obj))


def _put(obj: Any, content: Any) -> None:
    obj.clear()
    (obj.extend if isinstance(obj, deque) else obj.update)(content)


def _list(obj: list[Any]) -> Iterator[Look]:
    content = list(obj)
    yield partial(list.__setitem__, obj, slice(None), content), content


def _set(obj: Any) -> Iterator[Look]:
    content = list(obj)
    yield partial(_put, obj, content), content


def _tuple(obj: Iterable[Any]) -> Iterator[Look]:
    yield None, list(obj)


def _array(obj: np.ndarray[Any, Any]) -> Iterator[Look]:
    if obj.dtype.hasobject:
        raise CannotNoteError("an array of objects")
    if obj.flags.writeable and not isinstance(_memory_of(obj), mmap.mmap):  # that is the engine's state
        yield partial(np.copyto, obj, obj.copy()), []


def _memory_of(obj: Any) -> Any:
    """Return what an array's numbers lie in: itself, or what it is a view of."""
    while (inner := getattr(obj, "obj" if isinstance(obj, memoryview) else "base", None)) is not None:
        obj = inner
    return obj


def _builtin(obj: types.BuiltinMethodType) -> Iterator[Look]:
    if not isinstance(obj.__self__, types.ModuleType):
        yield None, [obj.__self__]
    else:
        _check_known(obj.__module__, obj, "builtins", "math")


def _function(obj: types.FunctionType) -> Iterator[Look]:
    if (obj.__module__ or "").partition(".")[0] not in PACKAGES:
        yield None, _named_by(obj, obj.__code__)
    yield None, [*(obj.__defaults__ or ()), *(obj.__kwdefaults__ or {}).values()]
    yield from _dict(vars(obj))
    for cell in obj.__closure__ or ():
        value = _in_cell(cell)
        yield partial(_put_cell, cell, value), [] if value is _UNSET else [value]


_ELSEWHERE = frozenset({"STORE_GLOBAL", "DELETE_GLOBAL", "IMPORT_NAME"})


def _named_by(obj: types.FunctionType, code: types.CodeType) -> list[Any]:
    """Return the globals that a function names; refuse one that sets any, or imports."""
    if any(each.opname in _ELSEWHERE for each in dis.get_instructions(code)):
        raise CannotNoteError(f"a {type(obj).__name__} of {obj.__module__} that sets globals or imports")
    inside = [each for inner in code.co_consts if isinstance(inner, types.CodeType) for each in _named_by(obj, inner)]
    return [obj.__globals__[name] for name in code.co_names if name in obj.__globals__] + inside


def _in_cell(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # of a variable that has no value yet
        return _UNSET


def _put_cell(cell: types.CellType, value: Any) -> None:
    if value is not _UNSET:
        cell.cell_contents = value
    elif _in_cell(cell) is not _UNSET:
        del cell.cell_contents


def _method(obj: types.MethodType) -> Iterator[Look]:
    yield None, [obj.__self__] if _is_rewindable(obj.__self__) else [obj.__self__, obj.__func__]


def _partial(obj: partial[Any]) -> Iterator[Look]:
    yield None, [obj.func, *obj.args, *obj.keywords.values()]
    yield from _dict(vars(obj))


def _object(obj: Any) -> Iterator[Look]:
    if hasattr(obj, "__dict__"):
        yield from _dict(vars(obj))
    for kind in type(obj).__mro__:
        for name in _slots_of(kind):
            value = getattr(obj, name, _UNSET)
            yield partial(_put_slot, obj, name, value), [] if value is _UNSET else [value]


@cache
def _slots_of(kind: type) -> tuple[str, ...]:
    """Return a class's slots, by the names under which they are kept."""
    slots = vars(kind).get("__slots__", ())
    names = (slots,) if isinstance(slots, str) else tuple(slots)
    private = f"_{kind.__name__.lstrip('_')}"
    return tuple(
        f"{private}{name}" if name.startswith("__") and not name.endswith("__") else name
        for name in names
        if name not in ("__dict__", "__weakref__")
    )


def _put_slot(obj: Any, name: str, value: Any) -> None:
    if value is not _UNSET:
        object.__setattr__(obj, name, value)  # of a frozen class too
    elif hasattr(obj, name):
        object.__delattr__(obj, name)


_LOOKS: dict[type, Callable[[Any], Iterator[Look]]] = {
    **dict.fromkeys((dict, Counter, OrderedDict, defaultdict), _dict),
    list: _list,
    **dict.fromkeys((set, deque), _set),
    **dict.fromkeys((tuple, frozenset), _tuple),
    **dict.fromkeys((np.ndarray, np.recarray), _array),
    types.BuiltinMethodType: _builtin,
    types.FunctionType: _function,
    types.MethodType: _method,
    partial: _partial,
}
