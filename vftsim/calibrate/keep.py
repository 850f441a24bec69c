"""Runs of calibrations and validations in a store: ended at any moment, the same command goes on.

A run of a model is kept under the model's hash and its number.  An evaluation of a fit is kept under a number that is a
hash of the point and the replication: the optimiser, which does the same from the same numbers, asks
for the same points again, and another one's points are never taken for them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from vftsim._version import __version__
from vftsim.calibrate.predict import PredictedRamp
from vftsim.labs.dataset import Observations
from vftsim.sampling import STREAM_SCHEME
from vftsim.study.files import to_json, write_file
from vftsim.study.store import MANIFEST, Store
from vftsim.study.workers import Workers
from vftsim.workloads.ims_bench.ramp_end import RampEnd

T = TypeVar("T")
R = TypeVar("R")
_DIGITS = 13  # of the hash: 52 bits, which every reader of JSON holds exactly


class Shown(Workers[T, R]):
    """Works on tasks and tells of each that has come."""

    def __init__(
        self, function: Callable[[T], R], jobs: int, say: Callable[[str], None], came: Callable[[], None]
    ) -> None:
        super().__init__(function, jobs, say)
        self._came = came

    def as_they_come(self, tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """Yield (index of the task, result) as results arrive."""
        for found in super().as_they_come(tasks):
            self._came()
            yield found


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


def write_answer(store: Store | None, data: Mapping[str, Any], how: Mapping[str, Any]) -> None:
    """Write an answer and its manifest beside the store."""
    if store is None:
        return

    def write(folder: Any) -> None:
        write_file(folder / "answer.json", (to_json(data) + "\n").encode())
        write_file(folder / MANIFEST, (to_json(how) + "\n").encode())

    store.finish(write)
