"""A front end under lockstep and checkpointing: what held outputs cost, and calls through a crash."""

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.spec import load

MS = 1_000_000
SHORT = ["measure.warm_up=100 ms", "measure.duration=500 ms", "faults=[]"]


def measured(model, *changes):
    record = run_model(load(model, ModelSpec, list(changes)), 1, 0, engine="compiled")
    return record, record.whole.outcomes["workloads.calls"]


@pytest.mark.thorough
def test_checkpointing_holds_three_messages_of_an_answer():
    """INVITE and 200 leave with a checkpoint each: two waits of 40 ms at most, and the time to send one."""
    _, plain = measured("sip-farm-checkpoint", *SHORT, "domains.front.protection=null")
    _, held = measured("sip-farm-checkpoint", *SHORT)
    added_ms = (held.response.mean - plain.response.mean) / MS
    assert 40 < added_ms < 100
    assert held.failed == 0


@pytest.mark.thorough
def test_lockstep_holds_each_message_for_a_round_trip_of_the_log():
    """Two outputs on the way of an answer, 149 us of channel each at least; calls by even gaps meet no other."""
    even = "workloads.calls.gap_cv=0"
    _, plain = measured("sip-farm-lockstep", *SHORT, even, "domains.front.protection=null")
    _, held = measured("sip-farm-lockstep", *SHORT, even)
    added_ms = (held.response.mean - plain.response.mean) / MS
    assert 0.298 < added_ms < 0.45


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["sip-farm-checkpoint", "sip-farm-lockstep"])
def test_no_call_fails_when_the_host_of_a_front_end_does(model):
    """Callers repeat while nobody answers; afterwards all are served."""
    record, found = measured(model, "workloads.calls.rate=100 /s")
    assert record.whole.outcomes["domains.front.protection"].counted["failovers"] == 1
    assert found.failed == 0
    assert found.retransmissions > 1
    assert found.rate == pytest.approx(found.offered_rate, rel=0.02)
