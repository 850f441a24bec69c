"""Run the models of a validation and collect what they predict."""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.calibrate.figures import observations_of
from vftsim.calibrate.validation import ValidationSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.composition.views import ramp_of, with_ramp
from vftsim.labs.dataset import Observations
from vftsim.workloads.ramp import RampEnd, ramp_end


@dataclass(slots=True)
class PredictedRamp:
    """One replication of a ramp: what was observed, and where it ended."""

    observations: Observations
    end: RampEnd


def ramp_spec(spec: ModelSpec, validation: ValidationSpec) -> ModelSpec:
    """Return the model with the validation's step length."""
    ramp = ramp_of(spec)
    return with_ramp(spec, ramp.with_times(validation.transient, validation.step_duration - validation.transient))


def edge_spec(spec: ModelSpec, validation: ValidationSpec, step: int) -> ModelSpec:
    """Return the model that plays one step of the ramp alone, at full length."""
    ramp = ramp_of(spec)
    edge = ramp.at_load(ramp.step_loads()[step - 1])
    return with_ramp(spec, edge.with_times(validation.transient, validation.edge_duration - validation.transient))


def run_ramp(spec: ModelSpec, seed: int, replication: int) -> PredictedRamp:
    """Play the ramp once."""
    record = Run(spec, seed, replication).run()
    return PredictedRamp(observations_of(record), ramp_end(record.steps(), ramp_of(spec).limit_percent))


def run_edge(spec: ModelSpec, step: int, seed: int, replication: int) -> Observations:
    """Play one step once; its observations carry the step's own name."""
    seen = observations_of(Run(spec, seed, replication).run())
    return {(f"step_{step}" if phase == "step_1" else phase, quantity): v for (phase, quantity), v in seen.items()}
