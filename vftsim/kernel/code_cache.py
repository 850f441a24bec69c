"""Machine code of kernels: from the user's cache, or made and put there, by one process while others wait.

Cached code is named by all that it was made of: the source, the layout of the state, the translator and the processor.
So an edit anywhere makes another kernel, and nothing goes stale.
"""

import gc
import hashlib
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from vftsim.kernel import cache_files, object_code
from vftsim.kernel.alone import alone
from vftsim.kernel.layout import Layout
from vftsim.kernel.object_code import Call, Loaded

CODE, _LOCK = "kernel.o", "lock"

ONCE, AGAIN = "once", "again in each process"

_in_memory: dict[str, bytes] = {}
"""Code of this process that no file keeps."""


def announce(text: str) -> None:
    """Say what takes seconds before it begins; where that cannot be written there is nobody to tell."""
    with suppress(OSError, ValueError, AttributeError):
        print(f"vftsim: {text}", file=sys.stderr, flush=True)


def entry_of(source: str, layout: Layout, *, checks: bool = False) -> Call:
    """Return a kernel's entry.  Where the cache must not or cannot be used, its code is made in memory.

    The source is that of :func:`~vftsim.kernel.compiled_engine.kernel_source`, the layout that of the state.  With
    ``checks``, a build for tests, an index out of range or a division by zero raises.
    """
    made_of = f"{object_code.identity()} {checks} {layout.text()} {source}"

    def make(often: str) -> bytes:
        announce(f"compiling what this model's parts need, {often}, 2 to 5 s")
        return translated(source, layout, checks=checks)

    return called(cached(made_of, make), source, checks=checks)


def translated(source: str, layout: Layout, *, checks: bool = False, triple: str = "", cpu: str = "") -> bytes:
    """Return the object code of a kernel, for this machine or another (see :func:`.object_code.compiled`)."""
    from vftsim.kernel.ir import Program

    with _no_collection():
        return object_code.compiled(Program(source, layout, checks=checks).text(), triple, cpu)


def cached(made_of: str, make: Callable[[str], bytes]) -> bytes:
    """Return what was made of something: from the cache, or made now, by one process while others wait.

    ``make`` is told how often, in words: once, or again in each process, where nothing is kept.
    """
    name = hashlib.sha256(made_of.encode()).hexdigest()[:32]
    if name in _in_memory:
        return _in_memory[name]
    folder = cache_files.kernel_folder(name)
    if folder is None:
        _in_memory[name] = make(AGAIN)
        return _in_memory[name]
    path = folder / CODE
    code = cache_files.read_made(path, made_of)
    if code is None:
        with alone(folder / _LOCK):
            code = cache_files.read_made(path, made_of)
            if code is None:
                code = make(ONCE)
                try:
                    cache_files.write_made(path, made_of, code)
                except OSError as error:
                    announce(f"it cannot be kept ('{path}': {error.strerror}), and is made {AGAIN}")
    return code


def called(code: bytes, source: str = "", *, checks: bool = False) -> Call:
    """Return the entry of a kernel's object code."""
    loaded = Loaded(code)
    entry, status = loaded.entry(), loaded.status()

    def enter(state: int, command: int, a: int, b: int, c: int, d: int, e: int) -> int:
        _ = loaded  # the code lives as long as what calls it
        return entry(state, command, a, b, c, d, e)

    def enter_checked(state: int, command: int, a: int, b: int, c: int, d: int, e: int) -> int:
        result = enter(state, command, a, b, c, d, e)
        if ended := status():
            raise object_code.explained(ended, source)
        return result

    return enter_checked if checks else enter


@contextmanager
def _no_collection() -> Iterator[None]:
    """Translation leaves little garbage, and looking for it takes a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
