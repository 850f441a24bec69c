"""Which crashes are played in the quick tests and which in a long run."""

from __future__ import annotations

from typing import Any

import pytest


def quarters(quick: int) -> list[Any]:
    """Quarters of the stratified crashes of a mechanism: so many among the quick tests, the others in a long run.

    Those of the quick tests are 200 crashes of each mechanism at least, of all that befalls it together.
    """
    return [*range(quick), *(pytest.param(part, marks=pytest.mark.slow) for part in range(quick, 4))]
