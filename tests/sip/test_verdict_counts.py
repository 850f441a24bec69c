"""What is counted of attempts when they end, and which threshold belongs to which delay."""

from __future__ import annotations

import pytest
from bench import US, Bench, S

from vftsim.kernel.declare import part_of
from vftsim.workloads.ims_bench import metrics
from vftsim.workloads.ims_bench.verdict import end, limit_ns, measure
from vftsim.workloads.sip.messages import Message, Scenario

LIMITS = {
    metrics.SES1: "session_setup_ns",
    metrics.SES2: "session_setup_ns",
    metrics.REL1: "release_ns",
    metrics.PMM1: "message_ns",
    metrics.REG4: "reregistration_ns",
    metrics.REG1: "registration_ns",
}


def with_limits() -> Bench:
    bench = Bench()
    for number, name in enumerate(dict.fromkeys(LIMITS.values())):
        setattr(bench.agents, name, (number + 1) * 1000)
    return bench


@pytest.mark.parametrize("delay", LIMITS)
def test_a_delay_at_its_own_threshold_is_adequate_and_one_above_is_not(delay: int) -> None:
    bench = with_limits()
    limit = getattr(bench.agents, LIMITS[delay])
    assert bench.wires.engine._namespace[part_of(limit_ns).name](bench.agents, delay) == limit
    attempt = bench.attempt(Scenario.IMS_UAC)
    for value_ns, inadequate in ((limit - 1, 0), (limit, 0), (limit + 1, 1), (limit + 2, 1)):
        bench.wires.call(measure, bench.agents, attempt._row, delay, value_ns)
        assert (bench.agents.inadequate, bench.agents.uac_inadequate) == (inadequate, inadequate), "once at most"


def test_instants_of_ends_add_up_by_scenario() -> None:
    """A message that is answered within milliseconds, and one whose requests are all lost: given up after 31.5 s."""
    bench = Bench(loses=lambda where, message, nth: (where, message) == ("server", Message.MESSAGE) and nth > 1)
    bench.attempt(Scenario.IMS_MSGC)
    bench.attempt(Scenario.IMS_MSGC, at_us=1_000_000)
    bench.run()
    scenario = int(Scenario.IMS_MSGC)
    assert [ended_us for ended_us, _ in bench.ended][-1] == 32_500_000
    assert bench.agents.ends_ns[scenario] == sum(round(ended_us * US) for ended_us, _ in bench.ended) > 32 * S
    assert (bench.agents.ended[scenario], bench.agents.failed[scenario], bench.agents.over) == (2, 1, 2)
    assert sum(bench.agents.ended) == 2
    assert bench.record.inadequate[scenario] == bench.agents.inadequate == 1
    assert bench.agents.uac_inadequate == 0


def test_an_attempt_ends_once() -> None:
    bench = Bench()
    attempt = bench.attempt(Scenario.IMS_MSGC)
    bench.run()
    assert (bench.agents.over, attempt.ended) == (1, True)
    bench.wires.call(end, bench.agents, attempt._row)
    assert bench.agents.over == 1
