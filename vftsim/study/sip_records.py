"""The phases of one replication of a benchmark."""

from __future__ import annotations

from collections.abc import Sequence

from vftsim.workloads.ims_bench.metrics import PhaseRecord

SipRecord = list[PhaseRecord]
"""The phases of one replication, in order."""


def steps_of(record: Sequence[PhaseRecord]) -> SipRecord:
    """Return the load steps among the phases."""
    return [phase for phase in record if phase.index > 0]
