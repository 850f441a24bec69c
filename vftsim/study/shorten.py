"""Less simulated time, for a first look or by a factor: ``--quick`` and ``--scale``, of any model."""

from __future__ import annotations

from dataclasses import dataclass, replace

from vftsim.composition.model import LONGEST_NS, SHORTEST_NS, ModelSpec
from vftsim.errors import UsageError
from vftsim.spec import format_duration
from vftsim.study.estimate import events_of

_QUICK_STEP_NS = 60_000_000_000
QUICK_NS = 500_000_000


@dataclass(frozen=True, slots=True)
class Shortened:
    """A spec with less simulated time, and what was changed, in words for the user (empty: nothing)."""

    spec: ModelSpec
    note: str


def shorten(spec: ModelSpec, factor: float) -> Shortened:
    """Scale what is measured.

    Transients and warm-up stay: they are as long as a call or the scheduler's memory lasts, not as a test.
    """
    if spec.phased is not None:
        return _with_steps(spec, factor)
    return _measured_for(spec, round(spec.measure.duration * factor))


def quick(spec: ModelSpec) -> Shortened:
    """Measure a minute of each step, or half a second, at most; a workload's own test and faults keep their time."""
    if spec.faults:
        return Shortened(spec, "--quick shortens nothing: faults have their instants")
    if spec.phased is not None:
        longest_ns = max(workload.step_ns() for workload in spec.workloads.values())
        short = _with_steps(spec, min(1.0, _QUICK_STEP_NS / longest_ns))
    else:
        tests_ns = max((workload.test_ns() for workload in spec.workloads.values()), default=0)
        shortest_ns = QUICK_NS + max(tests_ns - spec.measure.warm_up, 0) if tests_ns else QUICK_NS
        short = _measured_for(spec, min(spec.measure.duration, shortest_ns))
    if not short.note:
        return Shortened(spec, "--quick shortens nothing: the model is as short as its tests")
    saved = 100.0 * (1.0 - events_of(short.spec) / max(events_of(spec), 1.0))
    return replace(short, note=f"{short.note}; about {saved:.0f} % of the work saved")


def _with_steps(spec: ModelSpec, factor: float) -> Shortened:
    scaled = {name: workload.scaled(factor) for name, workload in spec.workloads.items()}
    note = "; ".join(said for _, said in scaled.values() if said)
    workloads = {name: workload for name, (workload, _) in scaled.items()}
    return Shortened(spec.model_copy(update={"workloads": workloads}) if note else spec, note)


def _measured_for(spec: ModelSpec, measured_ns: int) -> Shortened:
    before_ns = spec.measure.duration
    measured_ns = max(measured_ns, min(SHORTEST_NS, before_ns))
    if measured_ns > LONGEST_NS:
        raise UsageError(
            f"that would measure {format_duration(measured_ns)}; a steady state is measured for at most "
            f"{format_duration(LONGEST_NS)}"
        )
    if measured_ns == before_ns:
        return Shortened(spec, "")
    _refuse_to_end_before_faults(spec, spec.measure.warm_up + measured_ns)
    measure = spec.measure.model_copy(update={"duration": measured_ns})
    note = (
        f"measured for {format_duration(measured_ns)} instead of {format_duration(before_ns)} "
        f"(warm-up of {format_duration(measure.warm_up)} kept)"
    )
    if measured_ns < before_ns:
        note += "; losses come in bursts, so shorter runs differ more"
    return Shortened(spec.model_copy(update={"measure": measure}), note)


def _refuse_to_end_before_faults(spec: ModelSpec, ends_ns: int) -> None:
    for fault in spec.faults:
        if spec.time_of(fault.at) > ends_ns:
            raise UsageError(f"the fault at {fault.at} would be after the end of a run of {format_duration(ends_ns)}")
