"""Object code of a kernel: made of its IR by LLVM (llvmlite), loaded and called through ctypes.

The code is made for the oldest processors worth naming (x86-64-v2: from 2009 on).  Made for the processor at hand it is
no faster, and so it can be shipped, or shared in a home folder.  No operations are fused, and the one library function
that computes is ``fmod``, which is exact: results are the same on every machine.
"""

import ctypes
import hashlib
import platform
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

Call = Callable[[int, int, int, int, int, int, int], int]
"""The entry of a kernel: the address of the state, what to do, and five numbers."""

_NUMBER = ctypes.c_int64
_CALL = ctypes.CFUNCTYPE(_NUMBER, ctypes.c_void_p, *6 * [_NUMBER])
_NEEDS = ("fmod", "memcpy", "memset")
"""Functions of the C library that LLVM may call."""
_X86 = ("x86_64", "amd64", "AMD64")
_V2 = ("sse4.2", "popcnt", "ssse3")
_FIRST = ("sroa", "simplify_cfg", "always_inliner", "global_dead_code_eliminate")
"""Passes before LLVM's own: what is short or called once is put into its callers before anything else is done."""


def processor() -> str:
    """Return what code is made for here."""
    import llvmlite.binding as llvm

    if platform.machine() not in _X86:
        return "generic"
    features = llvm.get_host_cpu_features()
    return "x86-64-v2" if all(features.get(each) for each in _V2) else "x86-64"


def identity() -> str:
    """Return all that object code depends on beside its source."""
    files = [Path(__file__), *sorted((Path(__file__).parent / "ir").glob("*.py"))]
    translator = hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()
    return f"{version('llvmlite')} {platform.system()} {platform.machine()} {processor()} {translator}"


def compiled(text: str, triple: str = "", cpu: str = "") -> bytes:
    """Return the object file of a module's text, for this machine or another."""
    import llvmlite.binding as llvm

    bindings: Any = llvm
    if triple:
        bindings.initialize_all_targets()
        bindings.initialize_all_asmprinters()
        target = bindings.Target.from_triple(triple)
    else:
        bindings.initialize_native_target()
        bindings.initialize_native_asmprinter()
        target = bindings.Target.from_default_triple()
    machine = target.create_target_machine(cpu=cpu or processor(), opt=2, reloc="pic", codemodel="small")
    module = bindings.parse_assembly(text)
    module.triple, module.data_layout = target.triple, str(machine.target_data)
    options = bindings.create_pipeline_tuning_options(speed_level=2)
    options.inlining_threshold = 100
    options.loop_unrolling = options.loop_interleaving = False
    options.loop_vectorization = options.slp_vectorization = False
    builder = bindings.create_pass_builder(machine, options)
    first = bindings.create_new_module_pass_manager()
    for name in _FIRST:
        getattr(first, f"add_{name}_pass")()
    first.run(module, builder)
    builder.getModulePassManager().run(module, builder)
    code: bytes = machine.emit_object(module)
    return code


class Loaded:
    """Object code in this process's memory, as long as this object lives; ``functions`` are called from outside it.

    An OSError says that the C library lacks what the code calls, a RuntimeError that it is no object file of this
    machine, or lacks one of the functions.
    """

    def __init__(self, content: bytes, functions: Sequence[str] = ("enter", "status")) -> None:
        import llvmlite.binding as llvm

        process = ctypes.CDLL("msvcrt" if platform.system() == "Windows" else None)
        if missing := [name for name in _NEEDS if not hasattr(process, name)]:
            raise OSError(f"this system's C library lacks {', '.join(missing)}")
        bindings: Any = llvm
        bindings.initialize_native_target()
        bindings.initialize_native_asmprinter()
        machine = bindings.Target.from_default_triple().create_target_machine(jit=True)
        # LLVM's older linker (MCJIT) maps each section by itself.  Between tables of gigabytes they came to lie more
        # than 2 GiB apart, which no offset of 32 bits spans, and LLVM ended the process.  This one takes one mapping.
        linker = bindings.create_lljit_compiler(machine, use_jit_link=True)
        library = bindings.JITLibraryBuilder().add_object_img(content)
        for name in _NEEDS:
            library.import_symbol(name, ctypes.cast(getattr(process, name), ctypes.c_void_p).value)
        for name in functions:
            library.export_symbol(name)
        self._addresses = library.link(linker, "kernel")

    def address(self, name: str) -> int:
        """Return where one of the functions is."""
        return int(self._addresses[name])

    def entry(self) -> Call:
        """Return a kernel's entry."""
        return _CALL(self.address("enter"))

    def status(self) -> Callable[[], int]:
        """Return what says of a checking build why its last call ended; 0: it came to its end."""
        return ctypes.CFUNCTYPE(ctypes.c_int32)(self.address("status"))


def explained(status: int, source: str) -> Exception:
    """Return what a status of a checking build means."""
    from vftsim.kernel.ir import writer

    line, reason = divmod(status, writer.REASONS)
    lines = source.splitlines()
    function = next((text for text in reversed(lines[:line]) if text.startswith("def ")), "")
    words = f"{function.removeprefix('def ').partition('(')[0]}: {lines[line - 1].strip()}"
    if reason == writer.DIVISION_BY_ZERO:
        return ZeroDivisionError(f"division by zero in {words}")
    return IndexError(f"index out of range in {words}")
