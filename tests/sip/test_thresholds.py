"""A delay above its threshold makes an attempt inadequately handled, once, and does not end it."""

from __future__ import annotations

from typing import Any

import pytest
from bench import US, Bench

from vftsim.workloads.ims_bench.parameters import Thresholds
from vftsim.workloads.ims_bench.workload import ImsBenchSpec
from vftsim.workloads.sip.messages import Scenario

_CASES = [
    # scenario, threshold, the delay on wires of 1 ms
    (Scenario.IMS_REG, "registration", 2_200),
    (Scenario.IMS_DEREG, "registration", 2_200),
    (Scenario.IMS_REREG, "reregistration", 4_400),
    (Scenario.IMS_UAC, "session_setup", 8_900),
    (Scenario.IMS_UAC, "release", 4_400),
    (Scenario.IMS_MSGC, "message", 4_400),
]


def _played(scenario: Scenario, **limits: int) -> Bench:
    bench = Bench(workload=ImsBenchSpec(to="server", thresholds=Thresholds(**limits)))
    bench.attempt(scenario)
    bench.run()
    return bench


@pytest.mark.parametrize(("scenario", "threshold", "delay_us"), _CASES)
def test_a_delay_at_the_threshold_is_adequate_and_one_above_is_not(
    scenario: Scenario, threshold: str, delay_us: int
) -> None:
    at_limit = _played(scenario, **{threshold: delay_us * US})
    assert at_limit.record.inadequate == [0] * 5
    above = _played(scenario, **{threshold: delay_us * US - 1})
    assert above.record.inadequate[scenario] == 1
    assert sum(above.record.inadequate) == 1
    # It is played to its end all the same, and its delays are measured.
    assert [time for time, _ in above.ended] == [time for time, _ in at_limit.ended]
    assert above.record.delays["REG1"].count == at_limit.record.delays["REG1"].count


def test_an_attempt_fails_once_however_many_delays_are_too_long() -> None:
    bench = _played(Scenario.IMS_UAC, session_setup=1, release=1)
    assert bench.record.inadequate[Scenario.IMS_UAC] == 1
    assert (bench.agents.inadequate, bench.agents.uac_inadequate) == (1, 1)
    bench = _played(Scenario.IMS_REREG, registration=1, reregistration=1)
    assert (bench.agents.inadequate, bench.agents.uac_inadequate) == (1, 0)


def test_an_attempt_of_the_transient_leaves_no_mark_in_the_record() -> None:
    bench = Bench(workload=ImsBenchSpec(to="server", thresholds=Thresholds(registration=1)))
    bench.attempt(Scenario.IMS_REG).leave_uncounted()
    bench.run()
    assert bench.record.inadequate == [0] * 5
    assert all(histogram.count == 0 for histogram in bench.record.delays.values())
    assert bench.agents.inadequate == 1  # the per-second series sees it


def test_the_first_of_two_delays_that_matter_is_measured_from_its_first_transmission() -> None:
    """The 401 is lost: REG1 counts from the first REGISTER, REG2 from the second."""
    losses: dict[str, Any] = {"loses": lambda where, message, nth: where == "agents" and nth == 1}
    bench = Bench(**losses)
    bench.attempt(Scenario.IMS_REREG)
    bench.run()
    # The 401 is lost (0.5 s), then the first 200 too (0.5 s).
    assert bench.delays_us("REG1") == (1, 502_200)
    assert bench.delays_us("REG2") == (1, 502_200)
    assert bench.delays_us("REG4") == (1, 1_004_400)
