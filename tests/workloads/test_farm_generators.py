"""User agents in guests of the model: their CPU time by hand, and their bound."""

import copy

import pytest

from tests.workloads.test_farm import PLAIN, US, loaded, measured
from vftsim.errors import ModelFileError

COST_NS = 50 * US


@pytest.fixture
def make(tmp_path):
    model = copy.deepcopy(PLAIN)
    model["hosts"]["other"] = {"pcpus": 4, "scheduler": {"kind": "zvm"}}
    for domain in model["domains"].values():
        domain["host"] = "host"
    model["domains"]["generator"] = {"host": "other", "count": 2}
    model["workloads"]["calls"] |= {"agents_in": "generator", "message_cost": "50 us"}
    return lambda *changes: loaded(tmp_path, model, changes)


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_an_answer_waits_for_four_pieces_of_work(make, engine):
    """INVITE said and heard, RINGING said, OK heard; what is said after RINGING is done while a server handles that."""
    _, free = measured(make("workloads.calls.message_cost=0 us"), engine)
    _, found = measured(make(), engine)
    free_ns = free.response
    assert free_ns.min == free_ns.max
    assert (found.response.min, found.response.max) == (free_ns.max + 4 * COST_NS,) * 2


def test_a_call_costs_thirteen_messages_shared_by_its_two_ends(make):
    """Nine calls, by turns on the two guests: seven messages at the caller's, six at the called one's."""
    record, found = measured(make("measure.duration=950 ms"))
    cpu_ns = {name: share * 0.95e9 for name, share in record.pcpus().items()}
    assert found.active_calls == 0
    assert cpu_ns["generator-1"] == pytest.approx((4 * 7 + 5 * 6) * COST_NS, abs=1)
    assert cpu_ns["generator-2"] == pytest.approx((5 * 7 + 4 * 6) * COST_NS, abs=1)


def test_a_registered_call_costs_two_more(make):
    record, _ = measured(make("measure.duration=950 ms", "workloads.calls.registered=true"))
    cpu = record.pcpus()
    used_ns = 0.95e9 * (cpu["generator-1"] + cpu["generator-2"])
    assert used_ns == pytest.approx(9 * 15 * COST_NS, abs=2)


def test_generators_without_cpu_time_left_are_the_limit(make):
    """26 ms a call on two guests of one CPU allow 77 calls/s: both are busy, no server is."""
    changes = ("workloads.calls.message_cost=2 ms", "workloads.calls.rate=120 /s", "measure.duration=2 s")
    record, found = measured(make(*changes, "workloads.calls.retransmits=false"))
    cpu = record.pcpus()
    assert cpu["generator-1"] + cpu["generator-2"] == pytest.approx(2.0, rel=0.02)
    assert max(share for name, share in cpu.items() if not name.startswith("generator")) < 0.1
    assert found.rate < 120


@pytest.mark.slow
def test_both_engines_give_the_same(make):
    changes = ("workloads.calls.gap_cv=1", "workloads.calls.rate=200 /s", "workloads.calls.registered=true")
    one, other = (measured(make(*changes), engine) for engine in ("simpy", "compiled"))
    assert one[0].to_dict() | {"events": 0} == other[0].to_dict() | {"events": 0}


def test_a_cost_needs_a_domain(make):
    with pytest.raises(ModelFileError, match="say which with agents_in"):
        make("workloads.calls.agents_in=null")
    with pytest.raises(ModelFileError, match="no domain 'generators'; did you mean 'generator'"):
        make("workloads.calls.agents_in=generators")
