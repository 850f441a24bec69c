"""Compiling a kernel without optimizing and emitting its inner functions one by one.

numba optimizes every function with all that it calls, and makes machine code of each, although only the kernel's one
entry is ever called from outside: most of the time of a first compilation.  Here, while a kernel compiles, inner
functions are kept aside; the entry is linked with each of them once and optimized as a whole.

numba also compiles a function anew for every number that is written at a call, and for integers of every width that a
record may hold.  Here it is compiled once, for 64 bits and any number: a third of the time.

Linked, inner functions are made internal to the kernel.  numba leaves them open to callers from other modules, which
keeps LLVM from moving a function to its only caller, and from dropping arguments and error codes that nobody uses: a
sixth of a run's time.

More costs fall away: the text of a record type, which numba writes anew for every use of it; its timers, which are
nested as deeply as the calls; and the collection of garbage, of which there is little.

This reaches into numba's inner workings.  Where they are not as known, nothing is changed and compilation takes
its usual time (about three times as long).
"""

from __future__ import annotations

import gc
import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_WIDTH = 64
_EXPECTED = ("_linking_libraries", "_get_module_for_linking", "_optimize_final_module", "_finalize_final_module")


def is_possible() -> bool:
    """Tell whether numba's inner workings are as this module knows them."""
    try:
        from numba.core.codegen import CPUCodeLibrary
        from numba.core.cpu import CPUContext
        from numba.core.dispatcher import Dispatcher

        source = inspect.getsource(CPUCodeLibrary.finalize)
        arguments = list(inspect.signature(CPUContext.get_executable).parameters)
        call = list(inspect.signature(Dispatcher.get_call_template).parameters)
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return False
    return all(name in source for name in _EXPECTED) and (arguments, call) == (
        ["self", "library", "fndesc", "env"], ["self", "args", "kws"],
    )  # fmt: skip


@contextmanager
def only_entry_optimized(entry: str) -> Iterator[None]:
    """While active, compile fully only functions of this name; does nothing where it is not possible."""
    if not is_possible():
        yield
        return
    from numba.core import event, types
    from numba.core.codegen import CPUCodeLibrary
    from numba.core.cpu import CPUContext
    from numba.core.dispatcher import Dispatcher

    executable: Any = CPUContext.get_executable
    with (
        _replaced(CPUCodeLibrary, "finalize", _linking_once(entry, CPUCodeLibrary.finalize)),
        _replaced(CPUCodeLibrary, "_optimize_final_module", _as_a_whole(CPUCodeLibrary._optimize_final_module)),
        _replaced(CPUContext, "get_executable", _only_of(entry, executable)),
        _replaced(Dispatcher, "get_call_template", _of_any_number(Dispatcher.get_call_template)),
        _replaced(event, "broadcast", _say_nothing),
        _replaced(types.Record, "__repr__", _once(types.Record.__repr__)),
        _no_collection(),
    ):
        yield


def _linking_once(entry: str, finalize: Any) -> Any:
    def changed(library: Any) -> None:
        if library.name == entry:
            library._linking_libraries = _all_linked(library)
            finalize(library)
        else:
            library._raise_if_finalized()
            library._finalized = True

    return changed


def _as_a_whole(optimize: Any) -> Any:
    from llvmlite.binding import Linkage

    def changed(library: Any) -> None:
        for function in library._final_module.functions:
            if function.is_declaration:
                if function.name.startswith("_ZN"):  # LLVM would end the process
                    raise RuntimeError(f"the compiler has lost {function.name}")
            elif function.linkage != Linkage.external:
                function.linkage = Linkage.internal
        optimize(library)

    return changed


def _only_of(entry: str, executable: Any) -> Any:
    def changed(context: Any, library: Any, fndesc: Any, env: Any) -> Any:
        # A dispatcher wants a builtin of its own; inner functions are never called from Python.
        return executable(context, library, fndesc, env) if library.name == entry else [].append

    return changed


def _of_any_number(template: Any) -> Any:
    import numba

    types: Any = numba.types

    def widened(argument: Any) -> Any:
        plain = types.unliteral(argument)
        narrow = isinstance(plain, types.Integer) and plain.signed and plain.bitwidth < _WIDTH
        return types.int64 if narrow else plain

    def changed(dispatcher: Any, args: Any, kws: Any) -> Any:
        return template(dispatcher, tuple(map(widened, args)), kws)

    return changed


def _once(text: Any) -> Any:
    def changed(record: Any) -> str:
        known: str | None = record.__dict__.get("_vftsim_text")
        if known is None:
            known = record.__dict__["_vftsim_text"] = text(record)
        return known

    return changed


def _all_linked(library: Any) -> list[Any]:
    """Return the libraries that one needs, and those that these need; callers first.

    In any other order LLVM would drop what nobody has called yet.
    """
    found: dict[Any, None] = {}

    def visit(one: Any) -> None:
        for other in one._linking_libraries:
            if other not in found:
                visit(other)
        found[one] = None

    visit(library)
    return list(found)[-2::-1]


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


@contextmanager
def _no_collection() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _say_nothing(_: Any) -> None:
    """Stand for numba's broadcast of its own progress."""
