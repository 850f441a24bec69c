"""A front end under lockstep and checkpointing: what held outputs cost, and calls through a crash."""

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.spec import load

MS = 1_000_000
SHORT = ["measure.warm_up=100 ms", "measure.duration=500 ms", "faults=[]"]


def measured(model, *changes):
    record = run_model(load(model, ModelSpec, list(changes)), 1, 0, engine="simpy")
    return record, record.workloads["calls"]


@pytest.mark.thorough
def test_checkpointing_holds_three_messages_of_an_answer():
    """INVITE and 200 leave with a checkpoint each: two waits of 40 ms at most, and the time to send one."""
    _, plain = measured("sip-farm-checkpoint", *SHORT, "domains.front.protection=null")
    _, held = measured("sip-farm-checkpoint", *SHORT)
    added_ms = (held.delays["response"].mean - plain.delays["response"].mean) / MS
    assert 40 < added_ms < 100
    assert held.figures["failed"] == 0


@pytest.mark.thorough
def test_lockstep_holds_each_message_for_a_round_trip_of_the_log():
    """Two outputs on the way of an answer, 149 us of channel each at least."""
    _, plain = measured("sip-farm-lockstep", *SHORT, "domains.front.protection=null")
    _, held = measured("sip-farm-lockstep", *SHORT)
    added_ms = (held.delays["response"].mean - plain.delays["response"].mean) / MS
    assert 0.298 < added_ms < 1.5


@pytest.mark.thorough
@pytest.mark.parametrize("model", ["sip-farm-checkpoint", "sip-farm-lockstep"])
def test_no_call_fails_when_the_host_of_a_front_end_does(model):
    """Callers repeat while nobody answers; afterwards all are served."""
    record, found = measured(model, "workloads.calls.rate=100 /s")
    assert record.protection["front"]["failovers"] == 1
    assert found.figures["failed"] == 0
    assert found.figures["retransmissions_percent"] > 1
    assert found.figures["calls_per_s"] == pytest.approx(found.figures["offered_per_s"], rel=0.02)
