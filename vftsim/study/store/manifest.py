"""Manifest of a result: enough to make it again, and to know with which results it can be compared."""

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, distributions, version
from pathlib import Path
from typing import Any

from vftsim._version import __version__
from vftsim.composition.one_kernel import machine, source_of, the_kernel
from vftsim.composition.without_effect import remarks, without_effect
from vftsim.kernel.choose import VARIABLE
from vftsim.sampling import STREAM_SCHEME
from vftsim.spec.registry import ENTRY_POINTS
from vftsim.spec.shipped import PACKAGE
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.validity import not_covered
from vftsim.study.runs.model import Model

PACKAGES = ("loky", "matplotlib", "numpy", "pandas", "pydantic", "ruamel.yaml", "scipy", "simpy")
BIT_GENERATOR = STREAM_SCHEME.split(":")[1]


def utc_now() -> str:
    """Return the time of day in UTC, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def about(model: Model) -> dict[str, Any]:
    return {
        "label": model.label,
        "workloads": list(model.workloads),
        "name": model.name,
        "set": list(model.assignments),
        "notes": list(model.notes),
        "without_effect": without_effect(model.spec),
        "remarks": remarks(model.spec),
        "not_covered": not_covered(model.spec),
        "costs": cost_notes(model.spec),
        "sha256": model.digest(),
        "resolved": model.resolved(),
    }


def here() -> dict[str, Any]:
    """Return on what a result is made: Python, machine, and packages."""
    return {
        "python": platform.python_version(),
        "os": platform.platform(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
        "packages": {name: _version(name) for name in PACKAGES},
        "versions": versions(engine_of_here()),
    }


def identity(model: Model, seed: int) -> dict[str, Any]:
    """Return what makes replications belong together."""
    return identity_of(model.digest(), seed)


def identity_of(digest: str, seed: int) -> dict[str, Any]:
    """Return what makes replications belong together, of a model with this digest."""
    return {"model": digest, "seed": seed, "stream_scheme": STREAM_SCHEME, "vftsim": __version__}


def git_state() -> dict[str, Any] | None:
    """Return commit and dirtiness of the repository that vftsim runs from; None for an installed one."""
    top, _, commit = (_git("rev-parse", "--show-toplevel", "HEAD") or "").strip().partition("\n")
    if not top or Path(top).resolve() != PACKAGE.parent:
        return None
    status = _git("status", "--porcelain")
    return None if status is None else {"commit": commit, "dirty": bool(status.strip())}


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(
            ["git", "-C", str(PACKAGE), *arguments], capture_output=True, text=True, timeout=10, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


@cache
def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


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


def engine_of_here() -> str:
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
