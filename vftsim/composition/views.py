"""A model seen from one of its parts: the benchmark with its server, media streams with their calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vftsim.composition.hosts import DomainSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.workloads.calls import CallsWorkload
from vftsim.workloads.flow_result import FlowResult
from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ims_bench.workload import ImsBenchWorkload
from vftsim.workloads.parts import WorkloadSpec
from vftsim.workloads.rtp import RtpWorkload
from vftsim.workloads.sip.application import SipServerApplication


def of_kind(spec: ModelSpec, kind: type[WorkloadSpec]) -> str | None:
    """Return the name of the first workload of a class; ``None`` if the model has none."""
    return next((name for name, workload in spec.workloads.items() if isinstance(workload, kind)), None)


def has_bench(spec: ModelSpec) -> bool:
    """Whether the model has a SIP benchmark."""
    return of_kind(spec, ImsBenchWorkload) is not None


def bench_of(spec: ModelSpec) -> ImsBenchWorkload:
    """Return the benchmark of a model.

    Raises
    ------
    UsageError
        It has none: there are no attempts a second to speak of.
    """
    name = of_kind(spec, ImsBenchWorkload)
    if name is None:
        raise UsageError(f"'{spec.name or 'the model'}' has no workload of kind ims_bench, whose load is in SAPS")
    workload = spec.workloads[name]
    assert isinstance(workload, ImsBenchWorkload)
    return workload


def bench_key(spec: ModelSpec) -> str:
    """Return the key of a model's benchmark, as ``--set`` has it: ``workloads.calls``."""
    return f"workloads.{bench_name(spec)}"


def bench_name(spec: ModelSpec) -> str:
    """Return the name of a model's benchmark."""
    return str(of_kind(spec, ImsBenchWorkload))


def with_bench(spec: ModelSpec, bench: ImsBenchWorkload) -> ModelSpec:
    """Return the model with another benchmark in the place of its own."""
    return with_workload(spec, of_kind(spec, ImsBenchWorkload) or "", bench)


def with_workload(spec: ModelSpec, name: str, workload: WorkloadSpec) -> ModelSpec:
    """Return the model with a workload replaced."""
    return spec.model_copy(update={"workloads": {**spec.workloads, name: workload}})


def without_workload(spec: ModelSpec, name: str) -> ModelSpec:
    """Return the model without a workload."""
    return spec.model_copy(update={"workloads": {n: w for n, w in spec.workloads.items() if n != name}})


def tested_of(spec: ModelSpec) -> tuple[str, DomainSpec, SipServerApplication]:
    """Return name and spec of the domain under the benchmark, and its server."""
    domain, _, server = spec.target_of(bench_of(spec))
    assert isinstance(server, SipServerApplication)
    return domain, spec.domains[domain], server


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


def phases_of(record: RunRecord) -> Sequence[PhaseRecord]:
    """Return the measured phases of the benchmark; none if there is no benchmark."""
    return [outcome for _, _, outcome in record.of_kind(PhaseRecord)]


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
