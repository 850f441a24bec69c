"""Manifest of a result: enough to make it again, and to know with which results it can be compared."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from vftsim._version import __version__
from vftsim.composition.without_effect import remarks, without_effect
from vftsim.sampling import STREAM_SCHEME
from vftsim.spec.shipped import PACKAGE
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.validity import not_covered
from vftsim.study.runs.model import Model
from vftsim.study.runs.versions import engine_of_here, versions

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
