"""What two processes must have in common to give the same results: sources, parts, libraries, the kernel."""

import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distributions, version

from vftsim.composition.one_kernel import machine, source_of, the_kernel
from vftsim.kernel.choose import VARIABLE
from vftsim.spec.registry import ENTRY_POINTS
from vftsim.spec.shipped import PACKAGE

SIMPY = "simpy"
_NONE = "none"


def versions(engine: str) -> dict[str, str]:
    """Return what two processes must have in common to give the same results to the last bit.

    All engines but ``simpy`` need a kernel, which is made here if there is none.
    """
    return {
        "source of vftsim": _source(),
        "parts from elsewhere": _parts(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": version("numpy"),
        "pydantic": version("pydantic"),
        "kernel": SIMPY if engine == SIMPY else _kernel(),
    }


def installed_engine() -> str:
    """Return the engine that this process asks for, ``simpy`` where it has no other."""
    named = os.environ.get(VARIABLE) or "auto"
    return SIMPY if named == "auto" and _kernel().startswith(_NONE) else named


def different(expected: Mapping[str, str], used: Mapping[str, str]) -> str:
    """Return in words what is not as expected; empty if all is."""
    wrong = {name: known for name, known in expected.items() if used.get(name) != known}
    return "; ".join(f"{name}: {used.get(name)}, not {known}" for name, known in wrong.items())


@cache
def _source() -> str:
    rooms = sorted(path.parent.name for path in PACKAGE.glob("*/__init__.py"))
    beside = b"".join(path.read_bytes() for path in sorted(PACKAGE.glob("*.py")))
    return source_of(PACKAGE, *rooms, begin=beside)[:16]


@cache
def _parts() -> str:
    packages = {
        f"{package.metadata['Name']} {package.version}"
        for package in distributions()
        if any(entry.group == ENTRY_POINTS for entry in package.entry_points)
    }
    return ", ".join(sorted(packages)) or _NONE


@cache
def _kernel() -> str:
    """Return what made the kernel of this process, and for what machine; or why there is none."""
    try:
        the_kernel()
        return f"llvmlite {version('llvmlite')}, {machine()}"
    except Exception as error:  # whatever LLVM or the disk has
        return f"{_NONE} ({error})"
