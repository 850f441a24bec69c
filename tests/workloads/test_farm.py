"""A farm of servers by hand: a call's way, costs, threads, disks, repetition, reboot; then the runs of the record."""

import copy
import json

import numpy as np
import pytest

import vftsim
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run, run_model
from vftsim.errors import ModelFileError, UsageError
from vftsim.records.forms import sip_farm as farm
from vftsim.spec import load
from vftsim.study.designs.failover import Crashes, failover_study
from vftsim.study.execution import Execution
from vftsim.study.runs.estimate import events_of
from vftsim.study.runs.model import load_model
from vftsim.tracing.explain import exchanges
from vftsim.workloads.farm.records import calls, loads, requests, servers

US, MS = 1_000, 1_000_000
WIRE_NS = 500 * 8 + 10_000
"""A message of 500 bytes at 1 Gbit/s and 10 us."""
CARD = {"kind": "moderated", "moderation": "0 us"}
PLAIN = {
    "hosts": {"host": {"pcpus": 8, "scheduler": {"kind": "zvm"}}},
    "networks": {
        "outside": {"rate": "1 Gbit/s", "latency": "10 us"},
        "inside": {"rate": "8 Gbit/s", "latency": "1 us"},
    },
    "domains": {
        "balancer": {
            "interfaces": {"out": {"network": "outside", "path": CARD}},
            "applications": {"lvs": {"kind": "farm_server", "demand": "5 us", "passes_to": "front"}},
        },
        "front": {
            "count": 3,
            "interfaces": {"out": {"network": "outside", "path": CARD}, "in": {"network": "inside", "path": CARD}},
            "applications": {
                "sip": {
                    "kind": "farm_server",
                    "demand": "100 us",
                    "operations": {
                        "register": {"demand": "300 us", "asks": [{"to": "back", "message": "update"}]},
                        "invite": {
                            "demand": "200 us",
                            "asks": [{"to": "back", "message": "lookup", "times": 2, "size": "1000 B"}],
                        },
                    },
                }
            },
        },
        "back": {
            "interfaces": {"in": {"network": "inside", "path": CARD}},
            "disks": {"data": {"kind": "array", "disks": 2, "service": "1 ms", "interrupt": "0 us"}},
            "applications": {
                "cluster": {
                    "kind": "farm_server",
                    "operations": {"update": {"demand": "50 us"}, "lookup": {"demand": "40 us", "disk_operations": 1}},
                }
            },
        },
    },
    "workloads": {
        "calls": {
            "kind": "farm_calls",
            "to": "balancer",
            "rate": "10 /s",
            "gap_cv": 0,
            "established": False,
            "hold": "20 ms",
        }
    },
    "measure": {"warm_up": "0 s", "duration": "1 s"},
}

CLUSTER = "domains.back.applications.cluster"


def loaded(folder, base, changes):
    path = folder / "farm.yaml"
    path.write_text(json.dumps(base), encoding="utf-8")
    return load(path, ModelSpec, list(changes))


@pytest.fixture
def make(tmp_path):
    return lambda *changes, base=PLAIN: loaded(tmp_path, base, changes)


def measured(spec, engine="auto"):
    record = run_model(spec, 1, 0, engine=engine)
    return record, record.whole.outcomes["workloads.calls"]


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_an_answer_takes_the_sum_of_its_parts_to_the_nanosecond(make, engine):
    """INVITE: client, balancer, front, back twice with a disk, callee; then RINGING holds up OK on the one vCPU."""
    record, found = measured(make(), engine)
    inside_ns = 1000 + 1000
    asked_ns = 2 * (4 * inside_ns + 40 * US + MS)
    invite_ns = 3 * WIRE_NS + 5 * US + 200 * US + asked_ns + WIRE_NS
    # Each packet between domains leaves by the link from the host and comes in by the one to it. OK follows RINGING by
    # its time on the wire, and leaves after both messages' CPU times.
    answer_ns = WIRE_NS + 100 * US + 100 * US + WIRE_NS
    response = found.response
    assert (response.min, response.max) == (invite_ns + answer_ns,) * 2
    assert found.rate == 9.0
    assert record.drops == {}


def test_answers_to_calls_from_before_the_measured_time_are_not_those_of_what_was_offered(make):
    """100 calls a second that take 202 ms: those of the last 20 gaps are under way at the end, as at the beginning."""
    _, found = measured(
        make(
            "workloads.calls.rate=100 /s",
            "domains.back.disks.data.service=100 ms",
            "domains.back.disks.data.disks=100",
            "measure.warm_up=1005 ms",
        )
    )
    assert (found.offered, found.answered) == (100, 100)
    assert (found.served, found.behind) == (80.0, 0.0)


def test_each_call_is_an_exchange_of_its_own(tmp_path):
    """A second at 10 /s: nine calls of 20 ms and a little, from INVITE to the 200 to BYE, none with another's pause."""
    path = tmp_path / "farm.yaml"
    path.write_text(json.dumps(PLAIN), encoding="utf-8")
    found = exchanges(vftsim.trace(load_model(path), 0.0, 1.0))
    assert [(one.chain[0].label, one.chain[-1].label) for one in found] == 9 * [("INVITE", "BYE OK")]
    (length_ns,) = {one.delay_ns for one in found}
    assert 20 * MS < length_ns < 25 * MS


def test_a_registration_comes_first_and_takes_its_own_time(make):
    _, found = measured(make("workloads.calls.registered=true"))
    inside_ns = 512 + 1000
    taken_ns = 3 * WIRE_NS + 5 * US + 300 * US + 4 * inside_ns + 50 * US + WIRE_NS
    assert found.registration.min == found.registration.max == taken_ns


def test_every_call_costs_what_its_messages_cost(make):
    """Nine calls in a second, all over but the last: 200 + 5 x 100 us at a front end, 3 x 5 us at the balancer."""
    record, found = measured(make("measure.duration=950 ms"))
    cpu = {name: share * 0.95 * 1e6 for name, share in record.pcpus().items()}
    assert sum(cpu[f"front-{n}"] for n in (1, 2, 3)) == pytest.approx(9 * 700, abs=1)
    assert [cpu[f"front-{n}"] for n in (1, 2, 3)] == pytest.approx([3 * 700] * 3, abs=1)
    assert cpu["balancer"] == pytest.approx(9 * 15, abs=1)
    assert cpu["back"] == pytest.approx(9 * 80, abs=1)
    assert found.active_calls == 0


def test_calls_that_last_are_as_many_as_littles_law_has(make):
    """100 a second, held for 10 s, in a steady state from the start: 1,000, whether they began in the run or before."""
    steady = ["workloads.calls.rate=100 /s", "workloads.calls.hold=10 s", "workloads.calls.established=true"]
    for length in ("500 ms", "9 s", "12 s"):
        _, found = measured(make(*steady, f"measure.duration={length}"))
        assert found.active_calls == pytest.approx(1000, abs=1)
        assert found.most_active_calls == pytest.approx(1000, abs=2)
    _, empty = measured(make(*steady, "workloads.calls.established=false", "measure.duration=3 s"))
    assert empty.active_calls == empty.most_active_calls == pytest.approx(300, abs=1)


def test_fractions_are_made_up_by_whole_operations(make):
    """2.5 disk operations a lookup and 0.25 lookups a call: 2 and 3 in turn, of every fourth call."""
    setting = "domains.front.applications.sip.operations.invite.asks.0.times=0.25"
    spec = make(
        setting,
        "domains.back.applications.cluster.operations.lookup.disk_operations=2.5",
        "domains.front.count=1",
        "workloads.calls.rate=200 /s",
        "measure.duration=1010 ms",
    )
    record, _ = measured(spec)
    assert record.whole.outcomes[CLUSTER].message_rate * 1.01 == pytest.approx(50, abs=1e-6)
    assert record.whole.outcomes[CLUSTER].disk_rate * 1.01 == pytest.approx(125, abs=1.01)


def test_threads_and_disks_bound_what_they_hold(make):
    """One thread and a disk of 1 ms: 1 / 1.04 ms lookups a second, whatever is asked; 256 threads use two disks."""
    changes = [
        "domains.back.applications.cluster.threads=1",
        "workloads.calls.rate=1900 /s",
        "workloads.calls.retransmits=false",
        "measure.warm_up=100 ms",
        "measure.duration=150 ms",
    ]
    record, _ = measured(make(*changes))
    assert record.whole.outcomes[CLUSTER].message_rate == pytest.approx(1 / 1.04e-3, rel=0.01)
    assert record.whole.outcomes[CLUSTER].busy_threads == pytest.approx(1.0, rel=0.01)
    two, _ = measured(make(*changes[1:]))
    assert two.whole.outcomes[CLUSTER].message_rate == pytest.approx(2 / 1e-3, rel=0.01)
    hits, _ = measured(make("domains.back.disks.data.hits=50 %", "domains.back.disks.data.hit_time=0 us", *changes[1:]))
    assert hits.whole.outcomes[CLUSTER].message_rate == pytest.approx(3800, rel=0.04), "300 that miss, by chance"


def test_a_guest_that_stands_still_has_its_invites_repeated_and_absorbs_them(make):
    """A pause of 0.7 s: the INVITE of 0.1 s is repeated once, at half its price, and every call is answered."""
    base = copy.deepcopy(PLAIN)
    base["domains"]["front"]["count"] = 1
    base["faults"] = [{"kind": "pause", "at": "50 ms", "duration": "700 ms", "domain": "front"}]
    record, found = measured(make("measure.duration=1950 ms", base=base))
    assert found.retransmissions > 0
    assert found.failed == found.active_calls == found.dropped == 0
    # Calls of 0.1 and 0.2 s wait for more than T1 = 0.5 s: two INVITEs twice.
    assert record.pcpus()["front"] * 1.95e6 == pytest.approx(19 * 700 + 2 * 100, abs=1)
    assert found.response.max == pytest.approx(650 * MS, rel=0.02)


def test_invites_of_calls_that_were_given_up_are_no_repetitions_of_other_calls(make):
    """T1 of 10 ms: of the calls in a pause of 1 s the first four are given up (Timer B, 640 ms); all others are served.

    The server meets the INVITEs of the four when it runs again, before those of the calls that came after them.
    """
    base = copy.deepcopy(PLAIN)
    base["domains"]["front"]["count"] = 1
    base["faults"] = [{"kind": "pause", "at": "50 ms", "duration": "1 s", "domain": "front"}]
    _, found = measured(make("measure.duration=1950 ms", "workloads.calls.t1=10 ms", base=base))
    assert (found.offered, found.failed, found.answered, found.active_calls) == (19, 4, 15, 0)


def test_a_late_invite_does_not_make_a_server_forget_that_of_the_call_which_has_the_row_now(make):
    """Repeats are free here, so each front end pays 25 ms for every call that it was given, and for none twice.

    The first one stands still until 5 ms after call 8 has begun at the second one, in the row of call 1, which was
    given up (Timer B, 640 ms).  It meets seven INVITEs of call 1 before that of call 8 is repeated.
    """
    base = copy.deepcopy(PLAIN)
    base["domains"]["front"] |= {
        "count": 2,
        "applications": {
            "sip": {"kind": "farm_server", "operations": {"invite": {"demand": "25 ms"}}, "repeat_share": 0}
        },
    }
    base["faults"] = [{"kind": "pause", "at": "50 ms", "duration": "755 ms", "domain": "front-1"}]
    record, found = measured(make("workloads.calls.t1=10 ms", base=base))
    assert (found.offered, found.failed, found.answered) == (9, 1, 8)
    cpu = record.pcpus()
    assert [cpu["front-1"] * 1e3, cpu["front-2"] * 1e3] == pytest.approx([5 * 25, 4 * 25], abs=1e-3)


def test_a_balancer_passes_on_what_belongs_to_calls_that_are_over(make):
    """It stands still for 1 s: all INVITEs that waited for it, of calls that were given up too, cost a front end CPU.

    Nothing else does here, and every call but the four that were given up (Timer B, 640 ms) is served.  Calls take
    turns as they began, although calls 8 to 11 have the rows of calls 1 to 4 by then.
    """
    base = copy.deepcopy(PLAIN)
    base["domains"]["front"]["count"] = 2
    base["domains"]["front"]["applications"]["sip"] = {
        "kind": "farm_server",
        "operations": {"invite": {"demand": "10 us"}},
        "repeat_share": 1,
    }
    base["faults"] = [{"kind": "pause", "at": "50 ms", "duration": "995 ms", "domain": "balancer"}]
    record, found = measured(make("measure.duration=1950 ms", "workloads.calls.t1=10 ms", base=base))
    assert (found.offered, found.failed, found.answered, found.dropped) == (19, 4, 15, 0)
    for front in (1, 2):
        waiting = range(front, 11, 2)
        sent = sum(100 * call + 10 * (2**times - 1) < 1045 for call in waiting for times in range(7))
        sent += len(range(10 + front, 20, 2))
        assert record.pcpus()[f"front-{front}"] * 1.95e6 == pytest.approx(10 * sent, abs=1)


def test_what_a_balancer_passes_on_is_no_service_that_clients_see(tmp_path):
    """A crash of the only front end's host, the balancer on another: out until the secondary can be reached."""
    base = copy.deepcopy(PLAIN)
    base["hosts"]["other"] = {"pcpus": 2}
    base["domains"]["balancer"]["host"] = "other"
    base["domains"]["front"] |= {"count": 1, "host": "host", "protection": {"kind": "lockstep"}}
    base["domains"]["back"]["host"] = "other"
    path = tmp_path / "farm.yaml"
    path.write_text(json.dumps(base), encoding="utf-8")
    crashes = Crashes(2, domain="front", after_ns=5_000 * MS)
    for each in failover_study(load_model(path, ["measure.warm_up=1 s"]), crashes, Execution(1, 1)).failovers:
        # Detection, going live, being announced: heartbeats end 2 to 3 s after the crash.
        assert 2.1 < each.back_s <= each.outage_s + 0.02
        assert each.detection_s + each.takeover_s > 2.1


def restarted(domain):
    base = copy.deepcopy(PLAIN)
    base["domains"]["front"]["count"] = 1
    base["domains"][domain]["protection"] = {
        "kind": "ha_restart",
        "failover": {
            "detection": {"heartbeat_interval": "20 ms", "timeout": "100 ms"},
            "placement": "100 ms",
            "boot_time": "300 ms",
        },
    }
    base["faults"] = [{"kind": "primary_crash", "at": "1 s", "alone": True}]
    return base


def run_to_the_end(spec):
    run = Run(spec, 1, 0)
    run.run()
    rows = run.engine.rows
    return run, rows(loads)[1], [server for server in rows(servers)[1:] if server.row]


@pytest.mark.thorough
def test_requests_survive_a_back_end_that_is_booted(make):
    """What it had in hand is asked again; no thread of a front end is lost, and no call fails."""
    spec = make(
        "workloads.calls.rate=300 /s",
        "measure.duration=4 s",
        "domains.back.disks.data.service=10 ms",
        "domains.back.disks.data.disks=40",
        base=restarted("back"),
    )
    run, load, servers = run_to_the_end(spec)
    back = servers[-1]
    assert back.boots == 1
    assert load.failed == 0
    assert load.active < 300 * 0.1
    front = servers[1]
    assert front.active == front.in_hand.length <= 10
    assert np.count_nonzero(run.engine.rows(requests)["state"][1:]) <= front.active


@pytest.mark.thorough
def test_calls_of_a_front_end_that_is_booted_fail_or_are_repeated(make):
    """Callers without an answer repeat; those told that it is under way give up after 64 T1."""
    spec = make(
        "workloads.calls.rate=300 /s",
        "workloads.calls.t1=50 ms",
        "workloads.calls.t2=400 ms",
        "measure.duration=6 s",
        "domains.back.disks.data.service=10 ms",
        "domains.back.disks.data.disks=40",
        base=restarted("front"),
    )
    _, load, servers = run_to_the_end(spec)
    assert servers[1].boots == 1
    assert 0 < load.failed < 30
    assert load.answered > 0.9 * load.offered
    assert load.active < 300 * 0.1


def test_the_run_begins_in_the_steady_state_and_holds_a_row_for_each_call(make):
    spec = make(
        "workloads.calls.established=true",
        "workloads.calls.hold=60 s",
        "workloads.calls.rate=400 /s",
        "measure.warm_up=100 ms",
        "measure.duration=500 ms",
    )
    run, load, servers = run_to_the_end(spec)
    assert load.earlier == pytest.approx(0.6 * 400, abs=2)
    assert load.active == pytest.approx(0.6 * 400, abs=4)
    assert np.count_nonzero(run.engine.rows(calls)["stage"][1:]) == load.active
    assert sum(server.handled for server in servers[1:4]) == pytest.approx(0.5 * 400 * 6, abs=12)


def test_calls_of_before_the_run_take_no_turn_of_those_that_begin_in_it(make):
    """Both come evenly, one after the other: of 200 that begin and 200 that end each of two front ends has a half."""
    changes = ["domains.front.count=2", "workloads.calls.rate=200 /s", "workloads.calls.hold=60 s"]
    record, _ = measured(make("workloads.calls.established=true", *changes))
    # INVITE, 180, 200, ACK of a call that begins: 500 us; BYE and its 200: 200 us.
    cpu = record.pcpus()
    assert [cpu["front-1"], cpu["front-2"]] == pytest.approx([100 * 700e-6] * 2, rel=0.02)


@pytest.mark.parametrize("calls_held", [200, 201])
def test_established_calls_hang_up_where_calls_of_the_run_would(make, calls_held):
    """A long BYE is in the way of an INVITE or not: its server is that of the call begun as long ago as one is held."""
    changes = [
        "domains.front.count=2",
        "domains.front.applications.sip.operations.bye={demand: 900 us}",
        f"{CLUSTER}.operations.lookup.disk_operations=0",
        "workloads.calls.rate=1000 /s",
        f"workloads.calls.hold={1000 * calls_held} us",
        "measure.duration=100 ms",
    ]
    _, established = measured(make("workloads.calls.established=true", *changes))
    _, begun = measured(make("measure.warm_up=300 ms", *changes))
    # It differs by where in the gap a BYE falls: half a gap after a call here, after the response there.
    assert established.response.mean == pytest.approx(begun.response.mean, rel=0.1)
    assert (begun.response.mean > MS) == (calls_held % 2 == 1)


def test_mistakes_are_said_with_their_place(make):
    key = "domains.front.applications.sip.operations.invite.asks.0.to"
    with pytest.raises(ModelFileError, match="names no domain; did you mean 'back'"):
        make(f"{key}=bach")
    with pytest.raises(ModelFileError, match="'balancer' is on none of its networks"):
        make("domains.back.applications.cluster.passes_to=balancer")
    with pytest.raises(ModelFileError, match=r"domains.back.applications.cluster: it uses a disk, and its domain has"):
        make("domains.back.disks={}")
    with pytest.raises(ModelFileError, match="t2 is the longest"):
        make("workloads.calls.t2=1 ms")


@pytest.mark.slow
def test_both_engines_give_the_same(make):
    """A back end that is booted, and R7 above its bound with random costs."""
    over = [
        "measure.warm_up=50 ms",
        "measure.duration=200 ms",
        "workloads.calls.rate=1200 /s",
        "domains.front.applications.sip.demand_cv=1",
    ]
    booted = make("workloads.calls.rate=300 /s", "measure.duration=4 s", base=restarted("back"))
    for spec in (load("sip-farm-r7", ModelSpec, over), booted):
        one, two = (run_model(spec, 3, 0, engine=engine) for engine in ("simpy", "compiled"))
        assert one.events == two.events
        assert one.to_dict()["phases"] == two.to_dict()["phases"]
        ours, theirs = (each.whole.outcomes["workloads.calls"].response.to_dict() for each in (one, two))
        assert ours == theirs


CHEAP = {"R1": "1 s", "R2": "1 s", "R3": "200 ms", "R4": "3 s", "R5": "2 s", "R6": "1500 ms", "R7": "600 ms"}


def bounds_of(run, spec, record):
    """Bounds by the utilization law: what each resource could do over what it did."""
    calls_per_s = spec.workloads["calls"].rate
    cpu = record.pcpus()
    tiers = {"server": farm.SERVER, "front": farm.FRONT, "back": farm.BACK}
    found = {}
    for name, resource in tiers.items():
        shares = [share for domain, share in cpu.items() if domain.split("-")[0] == name]
        if sum(shares):
            found[resource] = 2 * len(shares) * calls_per_s / sum(shares)
    callers = sum(share for domain, share in cpu.items() if domain.startswith("generator"))
    found[farm.ALL_PROCESSORS] = 24 * calls_per_s / (sum(cpu.values()) - callers)
    found[farm.GENERATORS] = 24 * calls_per_s / callers
    if "domains.nas.applications.nfsd" in record.whole.outcomes:
        found[farm.STORAGE] = 35 * calls_per_s / record.whole.outcomes["domains.nas.applications.nfsd"].busy_threads
    return found


@pytest.mark.thorough
@pytest.mark.parametrize("run", list(CHEAP))
def test_the_event_model_agrees_with_the_bounds(run):
    changes = [f"measure.duration={CHEAP[run]}", "workloads.calls.gap_cv=0"]
    spec = load(f"sip-farm-{run.lower()}", ModelSpec, changes)
    record, found = measured(spec, "compiled")
    simulated, form = bounds_of(run, spec, record), farm.bounds(farm.costs_after(), farm.RUNS[run])
    form[farm.GENERATORS] = farm.generators_bound(farm.message_cost_s(spec), farm.RUNS[run])
    resource, least = farm.limit(form)
    assert farm.limit(simulated) == (resource, pytest.approx(least, rel=0.01))
    assert found.failed == found.dropped == 0
    assert record.drops == {}
    for name in form:
        slack = 0.03 if name == farm.ALL_PROCESSORS else 0.01  # R7's storage server computes too
        assert simulated[name] == pytest.approx(form[name], rel=slack), name


def test_requests_in_a_circle_are_refused(make):
    circle = "domains.back.applications.cluster.operations.lookup.asks=[{to: back, message: lookup}]"
    with pytest.raises(UsageError, match="in a circle"):
        events_of(make(circle))


def test_calls_come_through_a_network_that_loses():
    """At 5 % each way: at once with a chance of 0.95^4 (INVITE and 200, two ways each), within T1 of that another 16 %.

    The one repetition is that of the caller, of the server, or of the called one: 0.8145 x (0.05 + 0.05 + 0.0975).
    """
    data = {
        "networks": {"lan": {"loss": "5 %", "latency": "1 ms"}},
        "domains": {
            "proxy": {
                "interfaces": {"eth0": {"path": {"kind": "moderated"}}},
                "applications": {"sip": {"kind": "farm_server", "demand": "10 us"}},
            }
        },
        "workloads": {
            "calls": {"kind": "farm_calls", "to": "proxy", "rate": "50 /s", "hold": "1 s", "established": False}
        },
        "measure": {"warm_up": "20 s", "duration": "60 s"},
    }
    calls = run_model(ModelSpec.model_validate(data), 1, 0, "compiled").whole.outcomes["workloads.calls"]
    assert calls.failed == 0
    assert calls.offered > 2800
    for percent, waits in ((80.5, 0), (82.4, 1), (96.3, 1), (98.6, 2)):
        assert calls.response.percentile(percent) == pytest.approx((4 + 500 * waits) * 1e6, rel=0.1), percent


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
@pytest.mark.parametrize(("t1_ms", "messages"), [(700, 7), (500, 9), (200, 13)])
def test_a_server_forwards_an_invite_again_whose_answer_is_late(engine, t1_ms, messages):
    """One call, 300 ms from anywhere to the server, which answers and forwards at once.

    At 700 ms its 100, INVITE, 180, 200, ACK, and 200 and ACK again: the 200 of 0.6 s is repeated at 1.3 s, before its
    ACK comes at 1.8 s.  At 500 ms a second INVITE of the caller calls for a second 100 at 0.8 s, when the server
    repeats its own; the answer comes to it at 0.9 s.  At 200 ms there are three INVITEs from each, three 100, 200, ACK.
    """
    data = {
        "networks": {"lan": {"latency": "300 ms"}},
        "domains": {
            "proxy": {
                "interfaces": {"eth0": {"path": {"kind": "moderated"}}},
                "applications": {"sip": {"kind": "farm_server", "demand": "0 us"}},
            }
        },
        "workloads": {
            "calls": {
                "kind": "farm_calls",
                "to": "proxy",
                "rate": "0.01 /s",
                "gap_cv": 0,
                "hold": "10 s",
                "established": False,
                "t1": t1_ms * MS,
            }
        },
        "measure": {"warm_up": "0 s", "duration": "105 s"},
    }
    record = run_model(ModelSpec.model_validate(data), 1, 0, engine)
    assert record.whole.outcomes["networks.lan.from_host"].sent_bytes == 500 * messages
