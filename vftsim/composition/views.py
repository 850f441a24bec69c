"""A model seen from one of its parts: its ramp, media streams with their calls."""

from __future__ import annotations

from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.workloads.calls import CallsWorkload
from vftsim.workloads.flow_result import FlowResult
from vftsim.workloads.parts import WorkloadSpec
from vftsim.workloads.ramp import RampSpec
from vftsim.workloads.rtp import RtpWorkload


def of_kind(spec: ModelSpec, kind: type[WorkloadSpec]) -> str | None:
    """Return the name of the first workload of a class; ``None`` if the model has none."""
    return next((name for name, workload in spec.workloads.items() if isinstance(workload, kind)), None)


def ramp_of(spec: ModelSpec) -> RampSpec:
    """Return the workload of a model that plays a ramp.

    Raises
    ------
    UsageError
        It has none: there are no steps to speak of.
    """
    if spec.ramp is None:
        raise UsageError(f"'{spec.name or 'the model'}' has no workload that plays steps of load, such as ims_bench")
    return spec.ramp


def ramp_key(spec: ModelSpec, key: str) -> str:
    """Return a parameter of a model's ramp as ``--set`` has it: ``workloads.calls.steps.initial``."""
    return f"workloads.{spec.phased}.{key}"


def with_ramp(spec: ModelSpec, ramp: RampSpec) -> ModelSpec:
    """Return the model with another ramp in the place of its own."""
    return with_workload(spec, spec.phased or "", ramp)


def with_workload(spec: ModelSpec, name: str, workload: WorkloadSpec) -> ModelSpec:
    """Return the model with a workload replaced."""
    return spec.model_copy(update={"workloads": {**spec.workloads, name: workload}})


def without_workload(spec: ModelSpec, name: str) -> ModelSpec:
    """Return the model without a workload."""
    return spec.model_copy(update={"workloads": {n: w for n, w in spec.workloads.items() if n != name}})


def with_domain(spec: ModelSpec, name: str, **changes: Any) -> ModelSpec:
    """Return the model with fields of a domain replaced."""
    return spec.model_copy(update={"domains": {**spec.domains, name: spec.domains[name].model_copy(update=changes)}})


def rtp_of(spec: ModelSpec) -> RtpWorkload | None:
    """Return the media streams of a model, if it has any."""
    name = of_kind(spec, RtpWorkload)
    found = spec.workloads[name] if name is not None else None
    assert found is None or isinstance(found, RtpWorkload)
    return found


def calls_of(spec: ModelSpec) -> CallsWorkload | None:
    """Return the calls of a model, if it has any."""
    name = of_kind(spec, CallsWorkload)
    found = spec.workloads[name] if name is not None else None
    assert found is None or isinstance(found, CallsWorkload)
    return found


def flows_of(record: RunRecord) -> dict[str, FlowResult]:
    """Return what the clients of each flow saw."""
    return {owner.removeprefix("workloads."): outcome for _, owner, outcome in record.of_kind(FlowResult)}


def media_of(spec: ModelSpec, record: RunRecord) -> FlowResult:
    """Return what the receivers of media streams saw.

    Raises
    ------
    UsageError
        The model has no media streams.
    """
    found = flows_of(record).get(of_kind(spec, RtpWorkload) or "")
    if found is None:
        raise UsageError("the model has no media streams: add a workload of kind rtp")
    return found
