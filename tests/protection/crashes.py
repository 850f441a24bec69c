"""Which crashes are played in the quick tests and which in a long run, and in which engine."""

from __future__ import annotations

from typing import Any

import pytest

from vftsim.kernel import Engine
from vftsim.kernel.compiled_engine import CompiledEngine
from vftsim.kernel.simpy_engine import SimpyEngine


def quarters(quick: int) -> list[Any]:
    """Quarters of the stratified crashes of a mechanism: so many among the quick tests, the others in a long run.

    Those of the quick tests are 200 crashes of each mechanism at least, of all that befalls it together.
    """
    return [*range(quick), *(pytest.param(part, marks=pytest.mark.slow) for part in range(quick, 4))]


def engine_of_many(spoil: object = None) -> type[Engine]:
    """Return the engine for hundreds of crashes of one plant: compiled, unless a function of it is replaced."""
    return CompiledEngine if spoil is None else SimpyEngine
