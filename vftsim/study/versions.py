"""What results depend on beside the model and the seed: the code of a process, and what it computes with."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from importlib.metadata import distributions, version
from pathlib import Path

from vftsim.composition.one_kernel import machine, source_of, the_kernel
from vftsim.kernel.choose import VARIABLE
from vftsim.spec.registry import ENTRY_POINTS

SIMPY = "simpy"
_NONE = "none"


def versions(engine: str) -> dict[str, str]:
    """Return what two processes must have in common to give the same results to the last bit.

    Parameters
    ----------
    engine : str
        What runs the model; all but ``simpy`` need a kernel, which is made here if there is none.
    """
    return {
        "source of vftsim": _source(),
        "parts from elsewhere": _parts(),
        "python": ".".join(platform.python_version_tuple()[:2]),
        "numpy": version("numpy"),
        "pydantic": version("pydantic"),
        "kernel": SIMPY if engine == SIMPY else _kernel(),
    }


def engine_of_here() -> str:
    """Return the engine that this process asks for, ``simpy`` where it has no other."""
    named = os.environ.get(VARIABLE) or "auto"
    return SIMPY if named == "auto" and _kernel().startswith(_NONE) else named


def different(expected: Mapping[str, str], found: Mapping[str, str]) -> str:
    """Return in words what is not as expected; empty if all is."""
    wrong = [f"{name}: {found.get(name)}, not {said}" for name, said in expected.items() if found.get(name) != said]
    return "; ".join(wrong)


@cache
def _source() -> str:
    package = Path(__file__).parents[1]
    rooms = sorted(path.parent.name for path in package.glob("*/__init__.py"))
    return source_of(package, *rooms)[:16]


@cache
def _parts() -> str:
    own = {
        f"{one.metadata['Name']} {one.version}"
        for one in distributions()
        if any(entry.group == ENTRY_POINTS for entry in one.entry_points)
    }
    return ", ".join(sorted(own)) or _NONE


@cache
def _kernel() -> str:
    """Return what made the kernel of this process, and for what machine; or why there is none."""
    try:
        the_kernel()
        return f"llvmlite {version('llvmlite')}, {machine()}"
    except Exception as error:  # whatever LLVM or the disk has
        return f"{_NONE} ({error})"
