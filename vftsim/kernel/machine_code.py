"""Machine code of a kernel in a file, loaded and called without numba.

Importing numba and having it find what it compiled before takes longer than a short run.  A kernel's one entry takes
numbers and the address of the state, returns a number, and raises nothing; so LLVM alone (llvmlite, which numba
brings) can link its object code, and ctypes call it.

The call is numba's own: addresses for the result and for an exception, then the array in its parts (two owners that
compiled code does not look at, items, bytes of an item, address, shape, stride), then the numbers; what is returned is
zero unless an exception was raised.  Where a compiled entry does not look like that, or the machine is not one that
this has been tried on, there is no code to keep and numba calls it as usual.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

Enter = Callable[[NDArray[Any], int, int, int, int, int, int], int]
"""The entry of a kernel: the state, what to do, and five numbers."""

_TYPE = "i32 (ptr, ptr, ptr, ptr, i64, i64, ptr, i64, i64" + 6 * ", i64" + ")"
_POINTER, _NUMBER = ctypes.c_void_p, ctypes.c_int64
_CALL = ctypes.CFUNCTYPE(
    ctypes.c_int32, *4 * [_POINTER], _NUMBER, _NUMBER, _POINTER, _NUMBER, _NUMBER, *6 * [_NUMBER]
)  # fmt: skip
_TRIED_ON = ("linux", "x86_64")


@dataclass(frozen=True, slots=True)
class MachineCode:
    """Object code of a kernel.

    Parameters
    ----------
    function : str
        Name of the entry in it.
    needs : tuple of str
        Functions that it calls and does not hold (of the C library).
    content : bytes
        The object file.
    """

    function: str
    needs: tuple[str, ...]
    content: bytes

    def write(self, path: Path) -> None:
        """Write it so that the file appears whole or not at all."""
        said = {"function": self.function, "needs": self.needs, "sha256": _sha256(self.content)}
        write_whole(path, json.dumps(said).encode() + b"\n" + self.content)


def write_whole(path: Path, content: bytes) -> None:
    """Write a file of the cache; with several writers at once, it appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
    with os.fdopen(handle, "wb") as file:
        file.write(content)
    os.replace(temporary, path)


def is_possible() -> bool:
    """Tell whether this is a machine on which code was kept and loaded."""
    return (sys.platform, platform.machine()) == _TRIED_ON


def identity() -> str:
    """Return all that machine code depends on beside its source: versions, processor, what steers numba."""
    import llvmlite.binding as llvm

    steering = sorted(f"{name}={value}" for name, value in os.environ.items() if name.startswith("NUMBA_"))
    processor = f"{llvm.get_host_cpu_name()} {llvm.get_host_cpu_features().flatten()}"
    return f"{version('numba')} {version('llvmlite')} {sys.version} {processor} {steering}"


def read(path: Path) -> MachineCode | None:
    """Return the code in a file; None where there is none, it is damaged, or this process lacks what it calls."""
    try:
        head, _, content = path.read_bytes().partition(b"\n")
        said = json.loads(head)
        code = MachineCode(said["function"], tuple(said["needs"]), content)
        # Linked with a name that is nowhere, LLVM would end the process.
        whole = said["sha256"] == _sha256(content) and _is_here(code.needs)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return code if whole else None


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _is_here(names: tuple[str, ...]) -> bool:
    process = ctypes.CDLL(None)
    return all(hasattr(process, name) for name in names)


def of_compiled(dispatcher: Any) -> MachineCode | None:
    """Return the code that numba has made of an entry; None where it is not as this module knows it."""
    try:
        (compiled,) = dispatcher.overloads.values()
        name = compiled.fndesc.llvm_func_name
        library = compiled.library
        if str(library.get_function(name).global_value_type) != _TYPE:
            return None
        module = library._final_module
        outside = [one.name for one in (*module.functions, *module.global_variables) if one.is_declaration]
        needs = tuple(sorted(one for one in outside if not one.startswith("llvm.")))
        return MachineCode(name, needs, library._get_compiled_object()) if _is_here(needs) else None
    except (AttributeError, NameError, RuntimeError, ValueError):
        return None


def loaded(code: MachineCode) -> Enter:
    """Return the entry, ready to be called."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
    holder = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    holder.add_object_file(llvm.ObjectFileRef.from_data(code.content))
    holder.finalize_object()
    function = _CALL(holder.get_function_address(code.function))
    result, raised = _NUMBER(), _POINTER()
    at_result, at_raised = ctypes.byref(result), ctypes.byref(raised)

    def enter(state: NDArray[Any], what: int, a: int, b: int, c: int, d: int, e: int) -> int:
        _ = holder  # the code lives as long as what holds it
        size = state.dtype.itemsize
        status = function(at_result, at_raised, None, None, 1, size, state.ctypes.data, 1, size, what, a, b, c, d, e)
        if status:
            raise RuntimeError(
                f"the kernel has raised an exception (status {status}); the engine simpy shows which and where"
            )
        return result.value

    return enter
