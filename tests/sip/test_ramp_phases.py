"""Phases before the first step are no steps of a ramp."""

from __future__ import annotations

from bench import S

from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ramp import RampEnd, ramp_end
from vftsim.workloads.sip.messages import Scenario


def _phase(name: str, index: int, saps: float, inadequate: int) -> PhaseRecord:
    """A phase of 10 s with 500 calls."""
    phase = PhaseRecord.begun(name, index, saps)
    phase.end(10 * S)
    phase.attempts[Scenario.IMS_UAC] = phase.judged_attempts[Scenario.IMS_UAC] = 500
    phase.judged_inadequate[Scenario.IMS_UAC] = phase.inadequate[Scenario.IMS_UAC] = inadequate
    return phase


def test_failures_of_the_stir_phase_end_no_ramp() -> None:
    stir, first, second = _phase("stir", 0, 50, 400), _phase("step_1", 1, 50, 0), _phase("step_2", 2, 60, 400)
    assert ramp_end([stir, first, second], 10.0) == RampEnd(2, 60, 50.0)
