"""The one kernel of all parts of the package: made when the package is built, else once on this machine.

A model of the package's parts runs on it and compiles nothing.  What is made when the package is built lies in the
package (``_kernels``); where there is none for this machine or of this source (a checkout that somebody works on), it
is made in some seconds and kept in the user's cache.
"""

import hashlib
import os
import platform
import sys
from contextlib import suppress
from functools import cache
from importlib.metadata import version
from pathlib import Path

from vftsim.composition import link
from vftsim.composition.link import all_parts, is_ours, linked_for, parts_in
from vftsim.composition.model import ModelSpec
from vftsim.kernel import Linked, cache_files, code_cache, object_code, prepared
from vftsim.kernel.choose import VARIABLE
from vftsim.kernel.compiled_engine import kernel_source
from vftsim.kernel.layout import layout_of
from vftsim.spec.shipped import PACKAGE

_SHIPPED = PACKAGE / "_kernels"
_ROOMS = ("kernel", "platform", "sampling", "spec", "stats", "workloads")
"""Where parts, and the constants that are folded into them, may come from; what links them is here."""

TRIPLES = {
    "linux-x86_64": ("x86_64-unknown-linux-gnu", "x86-64-v2"),
    "linux-aarch64": ("aarch64-unknown-linux-gnu", "generic"),
}
"""Machines for which a kernel is made when the package is built: how LLVM names them, and their processors."""


def prepared_for(spec: ModelSpec) -> Linked:
    """Return the kernel on which a model runs compiled: the one, or its own where a part comes from outside."""
    return the_kernel() if all(is_ours(type(part)) for part in parts_in(spec)) else linked_for(spec)


@cache
def the_kernel() -> Linked:
    """Return the kernel of all parts of the package, ready to run."""
    source = _source()
    is_for_here = (_SHIPPED / machine()).is_file() and object_code.processor() != "x86-64"
    content = cache_files.read_made(_SHIPPED / machine(), source) if is_for_here else None
    if content is None:
        made_of = f"one kernel {object_code.identity()} {version('numpy')} {source}"
        content = code_cache.cached(made_of, _build_announced)
    kernel, layout, code = prepared.loaded(content)
    kernel.compiled["compiled"] = code_cache.called(code), layout
    return kernel


def make_ready() -> None:
    """Have the kernel before workers begin, so that they find it; where that fails, each of them says why."""
    if os.environ.get(VARIABLE) != "simpy":
        with suppress(Exception):
            the_kernel()


def machine() -> str:
    return f"{sys.platform}-{platform.machine()}"


def _source() -> str:
    """Return the hash of every file that the kernel may be made of."""
    return source_of(PACKAGE, *_ROOMS, begin=Path(link.__file__).read_bytes())


def source_of(folder: Path, *rooms: str, begin: bytes = b"") -> str:
    """Return the hash of all Python source in some rooms of a folder, or in all of it."""
    digest = hashlib.sha256(begin)
    for room in rooms or (".",):
        for path in sorted((folder / room).rglob("*.py")):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode())
            digest.update(content)
    return digest.hexdigest()


def _build_announced(often: str) -> bytes:
    code_cache.announce(f"building the engine, {often}, about 12 s")
    return _build("", "")


def _build(triple: str, cpu: str) -> bytes:
    linked = all_parts()
    layout = layout_of(linked)
    code = code_cache.translated(kernel_source(linked), layout, triple=triple, cpu=cpu)
    return prepared.dumped(linked, layout, code)


def write(folder: Path, name: str) -> Path:
    """Write the kernel that the package brings for one of :data:`TRIPLES`; for the tool that builds it."""
    folder.mkdir(parents=True, exist_ok=True)
    cache_files.write_made(folder / name, _source(), _build(*TRIPLES[name]))
    return folder / name
