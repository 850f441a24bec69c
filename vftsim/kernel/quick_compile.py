"""Compiling a kernel without optimizing and emitting its inner functions one by one.

numba optimizes every function with all that it calls, and makes machine code of each, although only the
kernel's one entry is ever called from outside: most of the time of a first compilation.  Here, while a kernel
compiles, inner functions are only linked; the entry is optimized with everything in it, so the machine code
that runs is the same.

Two more costs fall away: the text of a record type, which numba writes anew for every use of it, and its
timers, which are nested as deeply as the calls.

This reaches into numba's inner workings.  Where they are not as known, nothing is changed and compilation takes
its usual time (about three times as long).
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_EXPECTED = ("_linking_libraries", "_get_module_for_linking", "_optimize_final_module", "_finalize_final_module")


def is_possible() -> bool:
    """Tell whether numba's inner workings are as this module knows them."""
    try:
        from numba.core.codegen import CPUCodeLibrary
        from numba.core.cpu import CPUContext

        source = inspect.getsource(CPUCodeLibrary.finalize)
        arguments = list(inspect.signature(CPUContext.get_executable).parameters)
    except (ImportError, AttributeError, OSError, TypeError, ValueError):
        return False
    return all(name in source for name in _EXPECTED) and arguments == ["self", "library", "fndesc", "env"]


@contextmanager
def only_entry_optimized(entry: str) -> Iterator[None]:
    """While active, compile fully only functions of this name; does nothing where it is not possible."""
    if not is_possible():
        yield
        return
    from numba.core import event, types
    from numba.core.codegen import CPUCodeLibrary
    from numba.core.cpu import CPUContext

    finalize: Any = CPUCodeLibrary.finalize
    executable: Any = CPUContext.get_executable
    text = types.Record.__repr__

    def link_only(library: Any) -> None:
        if library.name == entry:
            finalize(library)
            return
        library._raise_if_finalized()
        for other in dict.fromkeys(library._linking_libraries):
            library._reload_init.update(other._reload_init)
            library._final_module.link_in(other._get_module_for_linking(), preserve=True)
        library._finalized = True

    def entry_executable(context: Any, library: Any, fndesc: Any, env: Any) -> Any:
        # A dispatcher wants a builtin of its own; inner functions are never called from Python.
        return executable(context, library, fndesc, env) if library.name == entry else [].append

    def text_once(record: Any) -> str:
        known: str | None = record.__dict__.get("_vftsim_text")
        if known is None:
            known = record.__dict__["_vftsim_text"] = text(record)
        return known

    with (
        _replaced(CPUCodeLibrary, "finalize", link_only),
        _replaced(CPUContext, "get_executable", entry_executable),
        _replaced(event, "broadcast", _say_nothing),
        _replaced(types.Record, "__repr__", text_once),
    ):
        yield


@contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    before = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


def _say_nothing(_: Any) -> None:
    """Stand for numba's broadcast of its own progress."""
