"""All runs of an environment of a validation, on several cores, each kept as it arrives."""

from __future__ import annotations

from typing import Any

from vftsim.calibrate.keep import from_observations, from_ramp, identity_of, played, to_observations, to_ramp
from vftsim.calibrate.predict import PredictedRamp, edge_spec, ramp_spec, run_edge, run_ramp
from vftsim.calibrate.validation import EnvironmentSpec, ValidationSpec
from vftsim.composition.model import ModelSpec
from vftsim.labs.dataset import Observations
from vftsim.study.kept import Kept
from vftsim.study.model import Model
from vftsim.study.progress import Progress
from vftsim.study.store import Store


def run_environment(
    spec: ModelSpec,
    environment: EnvironmentSpec,
    validation: ValidationSpec,
    jobs: int,
    progress: Progress,
    store: Store | None = None,
) -> tuple[list[PredictedRamp], list[Observations]]:
    """Return the replications of the ramp, and those of the edge step if there is one.

    Parameters
    ----------
    spec : ModelSpec
    environment : EnvironmentSpec
    validation : ValidationSpec
    jobs : int
        Worker processes; no influence on the result.
    progress : Progress
    store : Store, optional
        Where runs are that exist already, and where each goes as it arrives.
    """
    ramp = ramp_spec(spec, validation)
    runs: list[PredictedRamp] = played(
        Kept(store, _said(validation, ramp, "ramp"), from_ramp, to_ramp),
        _ramp,
        {r: (ramp, validation.seed, r) for r in range(validation.replications)},
        jobs,
        progress,
        f"{spec.name}: ramp",
    )
    step = environment.edge_step
    if step is None:
        return runs, []
    one = edge_spec(spec, validation, step)
    edge: list[Observations] = played(
        Kept(store, _said(validation, one, f"step {step}"), from_observations, to_observations),
        _edge,
        {r: (one, step, validation.seed, r) for r in range(validation.edge_replications)},
        jobs,
        progress,
        f"{spec.name}: step {step}",
    )
    return runs, edge


def _said(validation: ValidationSpec, spec: ModelSpec, part: str) -> dict[str, Any]:
    return identity_of(validation.seed, model=Model("", spec).digest(), part=part)


def _ramp(task: tuple[ModelSpec, int, int]) -> PredictedRamp:
    return run_ramp(*task)


def _edge(task: tuple[ModelSpec, int, int, int]) -> Observations:
    return run_edge(*task)
