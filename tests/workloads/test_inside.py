"""Programs of one domain that ask each other do so within it: no path, no link, and nothing that protection holds."""

import json

import pytest

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model

MS = 1_000_000
LINK_NS = 100_000
"""A link of a gigabit has so much latency."""
CARD = {"eth0": {"path": {"kind": "moderated", "moderation": "0 s"}}}


def model(calls, *, more=None, seconds=5.0, clients=1, web=None, faults=(), **domain):
    programs = {
        "web": {"kind": "service", "demand": "1 ms", "threads": 8, "calls": calls, **(web or {})},
        "db": {"kind": "service", "demand": "2 ms", "threads": 8},
    }
    spec = {
        "networks": {"lan": {"rate": "1 Gbit/s", "latency": "100 us"}},
        "hosts": {"host": {"pcpus": 2}},
        "domains": {"vm": {"interfaces": CARD, "applications": programs | (more or {}), **domain}},
        "workloads": {
            "users": {
                "kind": "request_response",
                "to": "vm.web",
                "clients": clients,
                "turn_around": "50 ms",
                "turn_around_cv": 0 if clients == 1 else 1,
            }
        },
        "faults": list(faults),
        "measure": {"warm_up": "1 s", "duration": f"{seconds} s"},
    }
    return ModelSpec.model_validate(spec)


def played(spec, engine="compiled"):
    return run_model(spec, 1, 0, engine=engine).whole.outcomes


def latency_ms(spec, engine="compiled"):
    return played(spec, engine)["workloads.users"].latency.mean / MS


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_request_takes_the_work_of_both_and_the_clients_link_alone(engine):
    """By hand: 128 bytes there and back over a link, 1 ms, and 2 ms for each call; the link carries nothing else."""
    rtt_ns = 2 * (LINK_NS + 128 * 8)
    outcomes = played(model([{"to": "vm.db", "count": 3}], seconds=1.0), engine)
    users, to_host = outcomes["workloads.users"], outcomes["networks.lan.to_host"]
    assert users.latency.min == users.latency.max == rtt_ns + 7 * MS
    assert to_host.sent_bytes == pytest.approx(128 * users.answers, abs=128)
    assert outcomes["domains.vm.applications.db"].requests == pytest.approx(3 * users.answers, abs=3)


def test_a_call_by_a_network_crosses_it():
    """By hand: 512 bytes out and in again, and 128 back."""
    crossing_ns = 4 * LINK_NS + 2 * (512 + 128) * 8
    inside, outside = (latency_ms(model([{"to": "vm.db", **via}])) for via in ({}, {"via": "lan"}))
    assert outside - inside == pytest.approx(crossing_ns / MS, abs=1e-6)


def test_copies_take_turns_and_each_asks_itself_without_a_network():
    """Of two, every second call goes to the other one, over both ways of the line."""
    outcomes = played(model([{"to": "vm.db"}], count=2, seconds=20.0))
    far_ms = 3.202048 + 4 * 0.1 + 2 * (512 + 128) * 8e-6
    users = outcomes["workloads.users-1"].latency
    assert (users.min / MS, users.max / MS) == pytest.approx((3.202048, far_ms), abs=0.001)
    assert users.mean / MS == pytest.approx((3.202048 + far_ms) / 2, abs=0.01)


def test_two_tiers_on_one_cpu_are_a_station():
    """Users who think for 50 ms and a processor that all requests share: mean-value analysis with 1 + 2 x 2 ms."""
    queue = 0.0
    for users in range(1, 11):
        response = 5.0 * (1 + queue)
        queue = response * users / (50.0 + response)
    spec = model(
        [{"to": "vm.db", "count": 2, "timeout": "0 s"}],
        clients=10,
        seconds=200.0,
        web={"threads": 10, "demand_cv": 1},
        quantum="50 us",
    )
    assert latency_ms(spec) == pytest.approx(response + 0.202, rel=0.02)


@pytest.mark.parametrize("protection", ["checkpoint", "event_sync", "coarse_lockstep"])
def test_protection_holds_what_leaves_the_machine_alone(protection):
    """Each request has one output, its answer, however often the programs ask each other."""
    found = [
        played(model([{"to": "vm.db", "count": n}] if n else [], protection={"kind": protection})) for n in (0, 1, 3)
    ]
    for outcomes in found:
        assert outcomes["domains.vm.protection"].released == pytest.approx(outcomes["workloads.users"].answers, abs=1)
    alone, one, three = (each["workloads.users"].latency.mean / MS for each in found)
    # A call takes 2 ms, and ends within an interval of 200 ms; without one outputs wait for none.
    if protection != "event_sync":  # where a state takes longer that has more pages
        more = (0, 0) if protection == "checkpoint" else (2, 6)
        assert (one - alone, three - alone) == pytest.approx(more, abs=0.2)


def test_messages_inside_dirty_pages():
    """Two pages by each message that a program takes: the request, and each call and its answer."""
    memory = {"working_set": 0}
    found = [
        played(model([{"to": "vm.db", "count": n}] if n else [], protection={"kind": "checkpoint", "memory": memory}))
        for n in (0, 3)
    ]
    dirtied = [each["domains.vm.protection"].dirty_pages / each["workloads.users"].answers for each in found]
    assert dirtied == pytest.approx([2, 2 * (1 + 2 * 3)], rel=0.05)


def test_engines_agree_through_a_crash():
    crash = {"kind": "primary_crash", "at": "2 s"}
    spec = model([{"to": "vm.db", "count": 2}], clients=20, faults=[crash], protection={"kind": "checkpoint"})
    of_both = [run_model(spec, 1, 0, engine=engine).to_dict() for engine in ("simpy", "compiled")]
    assert json.dumps(of_both[0]) == json.dumps(of_both[1])


def test_a_server_of_a_farm_asks_another_of_its_domain():
    """By hand: a lookup of 3 ms takes no time on the way, and the INVITE need not wait for the 4 us of the 100 then."""
    back = {"kind": "farm_server", "operations": {"lookup": {"demand": "3 ms"}}}
    took = []
    for asks in ([], [{"to": "vm.back"}]):
        front = {"kind": "farm_server", "operations": {"invite": {"demand": "1 ms", "asks": asks}}}
        spec = ModelSpec.model_validate(
            {
                "domains": {"vm": {"interfaces": CARD, "applications": {"front": front, "back": back}}},
                "workloads": {"calls": {"kind": "farm_calls", "to": "vm.front", "rate": "2 /s", "gap_cv": 0}},
                "measure": {"warm_up": "0 s", "duration": "4 s"},
            }
        )
        took.append(played(spec)["workloads.calls"].response.mean / MS)
    assert took[1] - took[0] == pytest.approx(3.0 - 0.004, abs=1e-6)
