"""Where a ramp ends and what its capacity is, on steps made by hand."""

from __future__ import annotations

from bench import S

from vftsim.workloads.ims_bench.metrics import PhaseRecord
from vftsim.workloads.ramp import RampEnd, ramp_end
from vftsim.workloads.sip.messages import Scenario


def _step(index: int, saps: float, attempts: int, judged_inadequate: int, inadequate: int | None = None) -> PhaseRecord:
    """A step of 10 s with calls, failures known when it ended, and failures in the end."""
    phase = PhaseRecord.begun(f"step_{index}", index, saps)
    phase.end(10 * S)
    phase.attempts[Scenario.IMS_UAC] = phase.judged_attempts[Scenario.IMS_UAC] = attempts
    phase.judged_inadequate[Scenario.IMS_UAC] = judged_inadequate
    phase.inadequate[Scenario.IMS_UAC] = judged_inadequate if inadequate is None else inadequate
    return phase


def test_doc_is_the_integer_load_of_the_step_before_the_first_failure() -> None:
    """501, 608 and 690 attempts in 10 s; the third step fails with 70 of 690, just above 10 %."""
    end = ramp_end([_step(1, 50, 501, 0), _step(2, 60, 608, 60), _step(3, 70, 690, 70)], 10.0)
    assert end == RampEnd(3, 70, 60.8)
    assert end.doc_saps == 60


def test_exactly_the_limit_passes() -> None:
    assert ramp_end([_step(1, 50, 500, 50)], 10.0).stop_step == 0
    assert ramp_end([_step(1, 50, 500, 51)], 10.0).stop_step == 1


def test_a_stricter_limit_ends_earlier() -> None:
    steps = [_step(1, 50, 501, 0), _step(2, 60, 608, 60), _step(3, 70, 690, 70)]
    assert ramp_end(steps, 1.0) == RampEnd(2, 60, 50.1)


def test_a_ramp_that_fails_at_once_carries_nothing() -> None:
    assert ramp_end([_step(1, 50, 501, 400)], 10.0) == RampEnd(1, 50, 0.0)


def test_a_ramp_that_ran_out_of_steps_is_a_lower_bound() -> None:
    assert ramp_end([_step(1, 50, 501, 0), _step(2, 60, 608, 0)], 10.0) == RampEnd(0, 60, 60.8)


def test_a_step_is_not_failed_by_the_overload_of_the_next() -> None:
    """120 of the 608 calls of step 2 hang up in step 3 and get no answer; its manager had let it pass."""
    end = ramp_end([_step(1, 50, 501, 0), _step(2, 60, 608, 0, inadequate=120), _step(3, 70, 690, 300)], 10.0)
    assert (end.stop_step, end.doc_saps) == (3, 60)


def test_phases_before_the_steps_do_not_count() -> None:
    before = PhaseRecord.begun("pre_registration", 0, 50.0)
    before.end_ns = 10 * S
    before.attempts[Scenario.IMS_REG] = before.inadequate[Scenario.IMS_REG] = 500
    assert ramp_end([before, _step(1, 50, 501, 0)], 10.0) == RampEnd(0, 50, 50.1)
