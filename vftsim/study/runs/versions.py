"""What two processes must have in common to give the same results: sources, parts, libraries, the kernel.

A part of another distribution is known by its source, which may change without a word of the model's and without
another version: a hash of every Python file of the package that it is in, or of its one file.
"""

import inspect
import linecache
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import EntryPoint, distributions, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from vftsim.composition.link import is_ours, parts_in
from vftsim.composition.model import ModelSpec
from vftsim.composition.one_kernel import machine, source_of, the_kernel
from vftsim.files import sha256_of
from vftsim.kernel.choose import VARIABLE
from vftsim.spec.base import Spec
from vftsim.spec.registry import ENTRY_POINTS
from vftsim.spec.shipped import PACKAGE

SIMPY = "simpy"
ELSEWHERE = "parts from elsewhere"
NONE = "none"


def versions(engine: str) -> dict[str, str]:
    """Return what two processes must have in common to give the same results to the last bit.

    All engines but ``simpy`` need a kernel, which is made here if there is none.
    """
    return {
        "source of vftsim": _source(),
        ELSEWHERE: parts_elsewhere(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": version("numpy"),
        "pydantic": version("pydantic"),
        "kernel": SIMPY if engine == SIMPY else _kernel(),
    }


def installed_engine() -> str:
    """Return the engine that this process asks for, ``simpy`` where it has no other."""
    named = os.environ.get(VARIABLE) or "auto"
    return SIMPY if named == "auto" and _kernel().startswith(NONE) else named


def different(expected: Mapping[str, str], used: Mapping[str, str]) -> str:
    """Return in words what is not as expected; empty if all is."""
    wrong = {name: needed for name, needed in expected.items() if used.get(name) != needed}
    return "; ".join(f"{name}: {used.get(name)}, not {needed}" for name, needed in wrong.items())


def source_elsewhere(spec: ModelSpec) -> dict[str, str]:
    """Return the hash of the source of each module outside vftsim that a model's parts come from; most have none."""
    parts = dict.fromkeys(part for each in parts_in(spec) if not is_ours(part := type(each)))
    modules = {module.partition(".")[0] for part in parts for module in _modules_of(part)}
    return {name: _source_of_module(name) or sha256_of(sorted(map(_texts_of, parts))) for name in sorted(modules)}


def _modules_of(part: type[Any]) -> Iterator[str]:
    """Yield the modules outside vftsim whose code a part runs, in Python or in a kernel."""
    yield from (base.__module__ for base in part.__mro__ if issubclass(base, Spec) and not is_ours(base))
    functions = part.part.implementations.values()
    yield from (each.__module__ for each in functions if not is_ours(each))


@cache
def _source_of_module(name: str) -> str:
    """Return the hash of a package, or of a module that is one file; empty where it has none, as in a notebook."""
    loaded = sys.modules.get(name)
    module_spec = loaded.__spec__ if loaded is not None else find_spec(name)
    folders = list(module_spec.submodule_search_locations or ()) if module_spec is not None else []
    if folders:
        return sha256_of([source_of(Path(folder)) for folder in sorted(folders)])
    file = getattr(loaded, "__file__", None) if loaded is not None else module_spec and module_spec.origin
    return sha256_of(Path(file).read_text(encoding="utf-8")) if file and Path(file).is_file() else ""


def _texts_of(part: type[Any]) -> list[str]:
    """Return the text of the cells of a notebook in which a part's functions stand."""
    functions = [each for each in vars(part).values() if inspect.isfunction(each)]
    functions += [each.function for each in part.part.implementations.values()]
    cells = dict.fromkeys(each.__code__.co_filename for each in functions)
    return ["".join(linecache.getlines(cell)) for cell in cells]


@cache
def _source() -> str:
    rooms = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    beside = b"".join(path.read_bytes() for path in sorted(PACKAGE.glob("*.py")))
    return source_of(PACKAGE, *rooms, begin=beside)[:16]


@cache
def parts_elsewhere() -> str:
    """Return the distributions with parts that are installed, each with its version and the hash of its source."""
    packages = {
        f"{package.metadata['Name']} {package.version} ({_source_of_points(points)})"
        for package in distributions()
        if (points := [entry for entry in package.entry_points if entry.group == ENTRY_POINTS])
    }
    return ", ".join(sorted(packages)) or NONE


def _source_of_points(points: list[EntryPoint]) -> str:
    names = sorted({each.module.partition(".")[0] for each in points})
    return sha256_of([_source_of_module(name) for name in names])[:8]


@cache
def _kernel() -> str:
    """Return what made the kernel of this process, and for what machine; or why there is none."""
    try:
        the_kernel()
        return f"llvmlite {version('llvmlite')}, {machine()}"
    except Exception as error:  # whatever LLVM or the disk has
        return f"{NONE} ({error})"
