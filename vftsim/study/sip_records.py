"""A SIP run's measurements as plain data and back, without loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vftsim.stats import DelayHistogram
from vftsim.workloads.ims_bench.metrics import PhaseRecord

_PLAIN = ("name", "index", "requested_saps", "start_ns", "measure_from_ns", "end_ns", "attempts", "inadequate",
          "judged_until_ns", "judged_attempts", "judged_inadequate", "not_started", "dropped")  # fmt: skip

SipRecord = list[PhaseRecord]
"""The phases of one replication, in order."""


def to_dict(record: Sequence[PhaseRecord]) -> dict[str, Any]:
    """Return a replication's phases as JSON-ready data."""
    return {"phases": [_phase_to_dict(phase) for phase in record]}


def from_dict(data: Mapping[str, Any]) -> SipRecord:
    """Rebuild what :func:`to_dict` returned."""
    return [_phase_from_dict(phase) for phase in data["phases"]]


def steps_of(record: Sequence[PhaseRecord]) -> SipRecord:
    """Return the load steps among the phases."""
    return [phase for phase in record if phase.index > 0]


def _phase_to_dict(phase: PhaseRecord) -> dict[str, Any]:
    data: dict[str, Any] = {name: getattr(phase, name) for name in _PLAIN}
    data["delays"] = {name: histogram.to_dict() for name, histogram in phase.delays.items()}
    data["series"] = phase.series
    return data


def _phase_from_dict(data: Mapping[str, Any]) -> PhaseRecord:
    phase = PhaseRecord(data["name"], data["index"], data["requested_saps"])
    for name in _PLAIN:
        setattr(phase, name, data[name])
    phase.delays = {name: DelayHistogram.from_dict(h) for name, h in data["delays"].items()}
    phase.series = {name: list(values) for name, values in data["series"].items()}
    return phase
