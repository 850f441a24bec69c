"""Runs of calibrations and validations in a store: ended at any moment, the same command goes on.

A run of a model is kept under the model's hash and its number.  An evaluation of a fit is kept under a number that is a
hash of the point and the replication: the optimiser, which does the same from the same numbers, asks
for the same points again, and another one's points are never taken for them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

from vftsim._version import __version__
from vftsim.labs.dataset import Observations
from vftsim.sampling import STREAM_SCHEME

_DIGITS = 13  # of the hash: 52 bits, which every reader of JSON holds exactly


def identity_of(seed: int, **more: Any) -> dict[str, Any]:
    """Return what makes runs belong together: seed, stream scheme, version, and what the caller adds."""
    return {"seed": seed, "stream_scheme": STREAM_SCHEME, "vftsim": __version__, **more}


def number_of(point: Sequence[float], replication: int) -> int:
    """Return the number of an evaluation, the same only for the same point, to the last bit, and replication."""
    text = ",".join([*(float(value).hex() for value in point), str(replication)])
    return int(hashlib.sha256(text.encode()).hexdigest()[:_DIGITS], 16)


def from_observations(seen: Observations) -> list[list[Any]]:
    """Return observations as plain data; JSON has no infinite numbers and none that are not a number."""
    return [
        [phase, quantity, value if math.isfinite(value) else str(value)] for (phase, quantity), value in seen.items()
    ]


def to_observations(data: Sequence[Sequence[Any]]) -> Observations:
    """Return observations from plain data, in the same order."""
    return {(phase, quantity): float(value) for phase, quantity, value in data}
