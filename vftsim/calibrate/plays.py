"""Runs of a validation: the ramp of an environment, or measured runs, each in some replications.

A play is called after what it stands for: ``environment`` for all phases, ``environment/phase`` for that phase alone.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from vftsim.calibrate.figures import as_run, observations_of
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.composition.views import ramp_of
from vftsim.labs.dataset import Observations
from vftsim.study.runs.execution import Execution
from vftsim.study.runs.model import Model
from vftsim.study.runs.workers import Workers
from vftsim.study.store.resumable import together
from vftsim.workloads.ramp import ramp_end

STOP_STEP = ("ramp", "stop_step")
"""Beside the figures of a ramp: the first step over its limit, 0 for none."""


@dataclass(frozen=True, slots=True)
class Play:
    """A model, and in how many replications it is played."""

    model: ModelSpec
    replications: int


@dataclass(slots=True)
class Plays:
    """Runs by their name, and measurements by environment."""

    dataset: Path
    folder: Path
    """Of the validation."""
    models: dict[str, ModelSpec] = field(default_factory=dict)
    """By environment or run, as their files have them."""
    plays: dict[str, Play] = field(default_factory=dict)
    data: dict[str, Observations] = field(default_factory=dict)
    shown: list[Model] = field(default_factory=list)
    """Models for the manifest."""


def played(plays: Mapping[str, Play], execution: Execution) -> dict[str, list[Observations]]:
    """Return what was observed in every replication of each play; what the store has is not played again."""
    seed, progress = execution.seed, execution.progress
    tasks = [{r: (name, play.model, seed, r) for r in range(play.replications)} for name, play in plays.items()]
    cache = [
        replace(execution.cache(Model("", play.model), part=name), encode=from_observations, decode=to_observations)
        for name, play in plays.items()
    ]
    total = sum(map(len, tasks))
    count = itertools.count(1)

    def count_run() -> None:
        progress.advance(f"run {next(count)}/{total}")

    progress.total(total)
    for run_cache, numbered in zip(cache, tasks, strict=True):
        for _ in range(run_cache.count_stored(numbered)):
            count_run()
    observed = together(cache, Workers(_observed, execution.worker_count, progress.say, count_run), tasks)
    return dict(zip(plays, observed, strict=True))


def _observed(task: tuple[str, ModelSpec, int, int]) -> Observations:
    """Play a model once; return its figures by phase, of a play for one phase under the name of the play."""
    name, spec, seed, replication = task
    record = run_model(spec, seed, replication)
    seen = observations_of(record)
    if "/" in name:
        return as_run(seen, name)
    stop = ramp_end(record.steps(), ramp_of(spec).limit_percent).stop_step
    return {**seen, STOP_STEP: float(stop)}


def from_observations(seen: Observations) -> list[list[Any]]:
    """Return observations as plain data; JSON has no infinite numbers and none that are not a number."""
    return [
        [phase, quantity, value if math.isfinite(value) else str(value)] for (phase, quantity), value in seen.items()
    ]


def to_observations(data: Sequence[Sequence[Any]]) -> Observations:
    """Return observations from plain data, in the same order."""
    return {(phase, quantity): float(value) for phase, quantity, value in data}
