"""Run the models of a validation and collect what they predict."""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.calibrate.observations import simulated
from vftsim.calibrate.validation import ValidationSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.composition.views import bench_of, phases_of, with_bench
from vftsim.labs.dataset import Observations
from vftsim.workloads.ims_bench.ramp_end import RampEnd, ramp_end


@dataclass(slots=True)
class PredictedRamp:
    """One replication of a ramp: what was observed, and where it ended."""

    observations: Observations
    end: RampEnd


def ramp_spec(spec: ModelSpec, validation: ValidationSpec) -> ModelSpec:
    """Return the model with the validation's step length."""
    bench = bench_of(spec)
    steps = bench.steps.model_copy(update={"duration": validation.step_duration, "transient": validation.transient})
    return with_bench(spec, bench.model_copy(update={"steps": steps}))


def edge_spec(spec: ModelSpec, validation: ValidationSpec, step: int) -> ModelSpec:
    """Return the model that plays one step of the ramp alone, at full length."""
    workload = bench_of(spec)
    load = workload.steps.initial + (step - 1) * workload.steps.increment
    steps = workload.steps.model_copy(
        update={
            "initial": load,
            "most": 1,
            "duration": validation.edge_duration,
            "transient": validation.transient,
        }
    )
    pre = workload.pre_registration.model_copy(update={"duration": 0})
    changed = workload.model_copy(update={"steps": steps, "pre_registration": pre})
    return with_bench(spec, changed)


def run_ramp(spec: ModelSpec, seed: int, replication: int) -> PredictedRamp:
    """Play the ramp once."""
    phases = phases_of(Run(spec, seed, replication).run())
    return PredictedRamp(simulated(phases), ramp_end(phases, bench_of(spec).steps.stop_above_ihs))


def run_edge(spec: ModelSpec, step: int, seed: int, replication: int) -> Observations:
    """Play one step once; its observations carry the step's own name."""
    seen = simulated(phases_of(Run(spec, seed, replication).run()))
    return {(f"step_{step}" if phase == "step_1" else phase, quantity): v for (phase, quantity), v in seen.items()}
