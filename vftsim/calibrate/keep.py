"""Runs of calibrations and validations in a store: ended at any moment, the same command goes on.

A run of a model is kept under the model's hash and its number.  An evaluation of a fit is kept under a number that is a
hash of the point and the replication: the optimiser, which does the same from the same numbers, asks
for the same points again, and another one's points are never taken for them.
"""

from __future__ import annotations

import hashlib
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from vftsim._version import __version__
from vftsim.calibrate.predict import PredictedRamp
from vftsim.labs.dataset import Observations
from vftsim.sampling import STREAM_SCHEME
from vftsim.study.kept import Kept
from vftsim.study.progress import Progress
from vftsim.study.workers import Workers
from vftsim.workloads.ramp import RampEnd

_DIGITS = 13  # of the hash: 52 bits, which every reader of JSON holds exactly


def played(
    kept: Kept,
    function: Callable[[Any], Any],
    tasks: Mapping[int, Any],
    jobs: int,
    progress: Progress,
    words: str,
) -> list[Any]:
    """Return the results of numbered tasks in their order, those that the store has from there; show how far it is."""
    done = itertools.count(1)

    def came() -> None:
        progress.advance(f"{words} {next(done)}/{len(tasks)}")

    for _ in range(kept.there(tasks)):
        came()
    return kept.in_order(Workers(function, jobs, progress.say, came), tasks)


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


def from_ramp(run: PredictedRamp) -> dict[str, Any]:
    """Return a ramp as plain data."""
    return {"observations": from_observations(run.observations), "end": asdict(run.end)}


def to_ramp(data: Mapping[str, Any]) -> PredictedRamp:
    """Return a ramp from plain data."""
    return PredictedRamp(to_observations(data["observations"]), RampEnd(**data["end"]))
