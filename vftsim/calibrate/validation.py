"""Validation files: which models are held against which measured environments, and how close they must come."""

from typing import Annotated

from pydantic import Field

from vftsim.spec import Items, Percent, PositiveDurationNs, Spec


class EnvironmentSpec(Spec):
    """One measured environment and the model that predicts it."""

    model: str = Field(description="Model: a file relative to this one, or a shipped name.")
    fitted_steps: int = Field(ge=1, description="Steps 1 to this one were used in the fit of the model.")
    pre_registration_fitted: bool = Field(True, description="Whether pre-registration was used in the fit.")
    inputs: Items[str] = Field((), description="Further phases used as calibration inputs.")
    stop_step: int = Field(ge=1, description="Step after which the measured run stopped.")
    cpu_points: float = Field(1.5, gt=0, description="Greatest CPU error of a held-out step below 90 %, in points.")
    edge_step: int | None = Field(None, description="A step at the edge of collapse, judged by the ensemble.")


class TargetsSpec(Spec):
    """Accuracy that was declared before fitting."""

    cpu_up_to: Percent = Field(90.0, description="CPU errors count up to this utilization.")
    in_sample_median: Percent = Field(12.0, description="Median error of the percentiles in sample.")
    next_step_median: Percent = Field(15.0, description="Median error of the percentiles one step beyond.")
    next_step_worst: Percent = Field(40.0, description="Worst error of the percentiles one step beyond.")
    stop_ihs_points: float = Field(10.0, gt=0, description="Greatest error of an IHS share in a stop step, in points.")


class ValidationSpec(Spec):
    """One validation: a dataset, its environments, the targets, and how much is simulated."""

    name: str = Field(min_length=1, max_length=100, description="Name.")
    dataset: str = Field(description="Dataset: its folder or dataset.yaml relative to this file, or a shipped name.")
    environments: Annotated[dict[str, EnvironmentSpec], Field(min_length=1)] = Field(description="By name in the data.")
    targets: TargetsSpec = Field(default_factory=TargetsSpec, description="Declared accuracy.")
    step_duration: PositiveDurationNs = Field(description="Simulated length of a step of the ramp.")
    transient: PositiveDurationNs = Field(30_000_000_000, description="Part of it that is not counted.")
    replications: int = Field(10, ge=2, le=1000, description="Replications of the ramp.")
    edge_replications: int = Field(20, ge=2, le=1000, description="Replications of an edge step, at full length.")
    edge_duration: PositiveDurationNs = Field(900_000_000_000, description="Length of an edge step.")
    seed: int = Field(1000, ge=0, description="Root seed; other than that of any fit.")
