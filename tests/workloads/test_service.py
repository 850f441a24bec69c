"""Tiers of services: queueing theory, closed and open; threads, calls, caches and time-outs by hand; failover."""

import json
from math import exp, sqrt

import pytest

from vftsim.composition import link
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run, run_model
from vftsim.errors import ModelFileError
from vftsim.kernel.compiled_engine import BoundsCheckedEngine
from vftsim.spec import load
from vftsim.study.designs.failover import Crashes, failover_study
from vftsim.study.execution import Execution
from vftsim.study.runs.model import load_model
from vftsim.tracing.explain import explain
from vftsim.tracing.trace import run_traced
from vftsim.workloads.request_response import OpenRequestsSpec
from vftsim.workloads.service.records import plans

MS = 1_000_000
CARD = {"eth0": {"path": {"kind": "moderated"}}}
CLOSED = {"kind": "request_response", "to": "web", "retry": "0 s", "turn_around_cv": 1.0, "spread": "100 ms"}


def model(tiers, users, seconds=10.0, *, rate="100 Gbit/s", latency="0 us", warm_up="1 s", **domains):
    """Return a model of services by name, each in a domain with vCPUs of its own; ``domains`` has more of them."""
    of = {
        name: {
            "interfaces": CARD,
            "applications": {name: {"kind": "service", "threads": 1000, **tier}},
            **domains.get(name, {}),
        }
        for name, tier in tiers.items()
    }
    first = 0
    for each in of.values():
        each["affinity"] = list(range(first, first := first + each.get("vcpus", 1)))
    return ModelSpec.model_validate(
        {
            "hosts": {"host": {"pcpus": first}},
            "networks": {"lan": {"rate": rate, "latency": latency}},
            "domains": of,
            "workloads": {"users": users},
            "measure": {"warm_up": warm_up, "duration": f"{seconds} s"},
        }
    )


def played(spec, engine="compiled"):
    """Run it; return what the clients saw, and what each service did."""
    found = run_model(spec, 1, 0, engine=engine).whole.outcomes
    for name in spec.domains:
        found[f"domains.{name}.applications.{name}"].__dict__["cpu"] = found[f"domains.{name}"].cpu
    return found["workloads.users"], {n: found[f"domains.{n}.applications.{n}"] for n in spec.domains}


def asks(to, **call):
    return {"to": to, "timeout": "0 s", **call}


def mva(demands_s, think_s, clients):
    """Exact mean-value analysis of a closed network (Reiser & Lavenberg 1980): throughput, and residence by station."""
    return mva_of_servers(demands_s, [1] * len(demands_s), think_s, clients)


def mva_of_servers(demands_s, servers, think_s, clients):
    """As they have it for stations of several servers: with the probabilities of finding j customers there."""
    found = [[1.0] for _ in demands_s]
    for n in range(1, clients + 1):
        residence = [
            demand * sum((j + 1) / min(j + 1, m) * chance for j, chance in enumerate(of))
            for demand, m, of in zip(demands_s, servers, found, strict=True)
        ]
        rate = n / (think_s + sum(residence))
        for k, (demand, m) in enumerate(zip(demands_s, servers, strict=True)):
            more = [demand * rate / min(j, m) * chance for j, chance in enumerate(found[k], 1)]
            found[k] = [1.0 - sum(more), *more]
    return rate, residence


THREE = {
    "web": {"demand": "4 ms", "demand_cv": 1.0, "calls": [asks("app", when="parallel")]},
    "app": {"demand": "8 ms", "demand_cv": 1.0, "calls": [asks("db", count=2, cache_hit="25 %")]},
    "db": {"demand": "5 ms", "demand_cv": 1.0},
}
DEMANDS_S = [0.004, 0.008, 0.0075]


@pytest.mark.parametrize(
    ("clients", "seconds"),
    [(20, 1000), (1, 2000), *(pytest.param(n, 2000, marks=pytest.mark.thorough) for n in (6, 40))],
)
def test_a_closed_three_tier_application_is_that_of_exact_mean_value_analysis(clients, seconds):
    """Think time 100 ms: response, throughput, each tier's use within 2 %; what a tier takes includes those below."""
    spec = model(THREE, {**CLOSED, "clients": clients, "turn_around": "100 ms"}, seconds)
    seen, of = played(spec)
    rate, residence = mva(DEMANDS_S, 0.1, clients)
    assert seen.rate == pytest.approx(rate, rel=0.02)
    assert seen.latency.mean / 1e9 == pytest.approx(sum(residence), rel=0.02)
    for n, (name, tier) in enumerate(of.items()):
        visits = 1.5 if name == "db" else 1.0
        assert tier.throughput == pytest.approx(visits * rate, rel=0.02)
        assert tier.response.mean / 1e9 == pytest.approx(sum(residence[n:]) / visits, rel=0.02)
        assert tier.busy_threads == pytest.approx(rate * sum(residence[n:]), rel=0.02), "Little's law"
        assert tier.cpu == pytest.approx(100 * rate * DEMANDS_S[n], rel=0.02)


@pytest.mark.thorough
def test_a_tier_of_several_cpus_is_a_station_of_several_servers():
    """Three CPUs for the middle tier, with three times the work."""
    tiers = {**THREE, "app": {**THREE["app"], "demand": "24 ms"}}
    users = {**CLOSED, "clients": 20, "turn_around": "100 ms"}
    seen, of = played(model(tiers, users, 1000, app={"vcpus": 3, "quantum": "1 s"}))
    rate, residence = mva_of_servers([0.004, 0.024, 0.0075], [1, 3, 1], 0.1, 20)
    assert seen.rate == pytest.approx(rate, rel=0.02)
    assert seen.latency.mean / 1e9 == pytest.approx(sum(residence), rel=0.02)
    assert of["app"].response.mean / 1e9 == pytest.approx(sum(residence[1:]), rel=0.02)


@pytest.mark.thorough
def test_processor_sharing_does_not_see_the_distribution_of_demands():
    """The theorem of BCMP: slices of 0.2 ms, demands constant at one tier and of variation 2 at the others."""
    tiers = {name: {**tier, "demand_cv": 0.0 if name == "app" else 2.0} for name, tier in THREE.items()}
    shared = {name: {"quantum": "200 us"} for name in tiers}
    seen, _ = played(model(tiers, {**CLOSED, "clients": 20, "turn_around": "100 ms"}, 1000, **shared))
    rate, residence = mva(DEMANDS_S, 0.1, 20)
    assert seen.rate == pytest.approx(rate, rel=0.02)
    assert seen.latency.mean / 1e9 == pytest.approx(sum(residence), rel=0.02)


def test_an_open_three_tier_application_is_three_queues_in_a_row():
    """Jackson: each tier is M/M/1 at 80 requests a second; demands of 4, 8 and 5 ms."""
    chain = {**THREE, "app": {**THREE["app"], "calls": [asks("db")]}}
    seen, of = played(model(chain, {"kind": "open_requests", "to": "web", "rate": "80 /s", "timeout": "10 s"}, 1500))
    residence = [demand / (1 - 80 * demand) for demand in (0.004, 0.008, 0.005)]
    assert seen.rate == pytest.approx(80, rel=0.01)
    assert seen.failed == 0
    assert seen.latency.mean / 1e9 == pytest.approx(sum(residence), rel=0.02)
    assert of["db"].response.mean / 1e9 == pytest.approx(residence[2], rel=0.02)


@pytest.mark.parametrize(
    ("reads", "hits", "on_disk"),
    [(0.1, "0 %", 1.0), (0.5, "0 %", 1.0), (1.0, "90 %", 0.1)],
    ids=["one in ten reads", "every second", "nine in ten in the cache"],
)
def test_what_needs_a_disk_comes_to_it_by_chance(reads, hits, on_disk):
    """Of a Poisson process a part by chance is one again: M/D/1 at 60 % (Pollaczek and Khinchine), 8.75 ms of 5."""
    array = {"kind": "array", "disks": 1, "service": "5 ms", "hits": hits, "hit_time": "0 s", "interrupt": "0 s"}
    tier = {"demand": "0 s", "reads": reads}
    users = {"kind": "open_requests", "to": "db", "rate": f"{120 / (reads * on_disk)} /s", "timeout": "10 s"}
    spec = model({"db": tier}, users, 200, db={"disks": {"data": array}})
    disk = run_model(spec, 1, 0, engine="compiled").whole.outcomes["domains.db.disks.data"]
    assert disk.use == pytest.approx(60, rel=0.03)
    assert disk.response_time / on_disk == pytest.approx(5 + 0.6 * 5 / (2 * 0.4), rel=0.05)


ALONE = {**CLOSED, "clients": 1, "turn_around": "1 ms", "turn_around_cv": 0.0, "spread": "0 s", "request_size": "200 B"}


@pytest.mark.parametrize("engine", ["simpy", "compiled"])
def test_a_round_through_three_tiers_is_the_sum_of_its_parts_to_the_nanosecond(engine):
    """1 Gbit/s and 10 us; calls of 500 B and answers of 1000 B cross two links; two reads, and a call costs 100 us."""
    tiers = {
        "web": {"demand": "1 ms", "calls": [asks("app", size="500 B", cost="100 us")], "answer_size": "1000 B"},
        "app": {"demand": "2 ms", "calls": [asks("db", size="500 B")], "answer_size": "1000 B"},
        "db": {"demand": "3 ms", "reads": 2.0, "answer_size": "1000 B", "transfer_size": "8000 B"},
    }
    disk = {"disks": {"data": {"kind": "local", "service": "4 ms", "rate": "640 Mbit/s", "interrupt": "5 us"}}}
    seen, of = played(model(tiers, ALONE, 2, rate="1 Gbit/s", latency="10 us", db=disk), engine)
    ask_ns, answer_ns = 2 * (4_000 + 10_000), 2 * (8_000 + 10_000)
    at_db = 3 * MS + 2 * (4 * MS + 100_000 + 5_000)
    at_app = 2 * MS + ask_ns + at_db + answer_ns
    at_web = MS + 100_000 + ask_ns + at_app + answer_ns
    assert {of["db"].response.min, of["db"].response.max} == {at_db}
    assert {of["app"].response.min, of["app"].response.max} == {at_app}
    assert {seen.latency.min, seen.latency.max} == {1_600 + 10_000 + at_web + 8_000 + 10_000}
    assert of["db"].transfers == pytest.approx(2 * of["db"].requests, abs=1)
    assert of["web"].transfers is None
    assert of["db"].calls is None


@pytest.mark.parametrize("cv", [0.0, 1.0])
def test_inflation_of_cpu_work_makes_every_request_as_much_dearer(cv):
    """Drawn demands too: the same draws, times 1.5."""
    users = {**ALONE, "clients": 4, "turn_around": "50 ms"}
    plain, dear = (
        played(model({"web": {"demand": "2 ms", "demand_cv": cv}}, users, 5, web={"cpu_inflation": each}))[1]["web"]
        for each in (1.0, 1.5)
    )
    assert dear.cpu / dear.throughput == pytest.approx(1.5 * plain.cpu / plain.throughput, rel=0.02)


def test_a_trace_tells_waiting_for_other_tiers_from_work():
    """Client, 1 ms and 100 us of work, 10 ms behind; on a network that takes 1 ms one way."""
    tiers = {"web": {"demand": "1 ms", "calls": [asks("app", cost="100 us")]}, "app": {"demand": "10 ms"}}
    _, trace = run_traced(model(tiers, {**ALONE, "to": "web"}, 1, latency="1 ms"), 1, 0, 100 * MS, 100 * MS, "compiled")
    users = next(packet for packet in trace.packets if packet.flow == "users" and packet.end == "delivered")
    works, waits = "application: works", "application: waits for disk or others"
    assert [(part.name, round(part.length_ns / MS, 1)) for part in explain(users, trace)] == [
        ("network to the host", 1.0),
        (works, 1.0),
        (works, 0.1),
        (waits, 14.0),
        ("network to the client", 1.0),
    ]


@pytest.mark.parametrize("threads", [1, 3])
def test_threads_that_wait_for_another_tier_bound_the_rate(threads):
    """Eight clients without thinking; the tier behind takes 10 ms and has a CPU for each: threads / 10 ms."""
    tiers = {"web": {"demand": "0 s", "threads": threads, "calls": [asks("app")]}, "app": {"demand": "10 ms"}}
    seen, of = played(model(tiers, {**ALONE, "clients": 8, "turn_around": "0 s"}, app={"vcpus": 4}))
    assert seen.rate == pytest.approx(threads * 100, rel=1e-3)
    assert of["web"].busy_threads == pytest.approx(threads, rel=1e-3)
    assert of["web"].wait.mean == pytest.approx((8 - threads) / threads * 10 * MS, rel=2e-3)


def test_a_thread_whose_request_is_not_over_is_busy():
    """Both threads have a request of 100 s for the whole of the run."""
    _, of = played(model({"web": {"demand": "100 s", "threads": 2}}, {**ALONE, "clients": 3}))
    assert of["web"].busy_threads == pytest.approx(2.0, rel=1e-3)


def test_a_full_queue_drops_and_its_drops_are_counted():
    """One thread of 100 ms and one place, three clients at once: the third is repeated after 30, 60 and 120 ms."""
    users = {**ALONE, "clients": 3, "turn_around": "100 s", "retry": "30 ms"}
    tiers = {"web": {"demand": "100 ms", "threads": 1, "backlog": 1}}
    record = run_model(model(tiers, users, 1, warm_up="0 s"), 1, 0)
    seen = record.whole.outcomes["workloads.users"]
    assert seen.answered == 3
    assert record.drops["web.web socket", "full"] == seen.dropped > 0


def test_where_none_waits_erlangs_formula_tells_how_many_are_refused():
    """Two erlang at three threads lose 4/19, whatever the distribution of what they last."""
    tier = {"threads": 3, "demand": "20 ms", "demand_cv": 2.0, "backlog": 0}
    users = {"kind": "open_requests", "to": "web", "rate": "100 /s", "retries": 0}
    seen, _ = played(model({"web": tier}, users, 300.0, web={"vcpus": 3}))
    assert seen.dropped / seen.offered == pytest.approx(4 / 19, rel=0.05)


@pytest.mark.parametrize(
    ("calls", "took_ms"),
    [
        ([asks("app", count=4)], 40),
        ([asks("app", count=4, when="parallel")], 10),
        ([asks("app", when="parallel"), asks("db", when="parallel"), asks("app")], 30),
        ([asks("app"), asks("db", when="parallel"), asks("app", when="parallel", count=2)], 30),
        ([asks("app", probability="0 %"), asks("db", cache_hit="100 %")], 0),
    ],
)
def test_calls_in_turn_add_up_and_of_parallel_ones_the_slowest_decides(calls, took_ms):
    """10 ms at one tier, 20 ms at the other, with a CPU for each call."""
    tiers = {"web": {"demand": "1 ms", "calls": calls}, "app": {"demand": "10 ms"}, "db": {"demand": "20 ms"}}
    seen, _ = played(model(tiers, ALONE, app={"vcpus": 4}))
    assert seen.latency.mean == pytest.approx((1 + took_ms) * MS, abs=3_000)


def test_a_share_of_requests_makes_calls_and_a_share_of_calls_finds_the_cache():
    """Standard error of the share of calls 0.5 %, of that of hits 0.6 %."""
    call = asks("app", probability="40 %", cache_hit="30 %", count=3)
    seen, of = played(model({"web": {"demand": "1 ms", "calls": [call]}, "app": {"demand": "100 us"}}, ALONE, 20))
    looked = of["web"].calls["app"] + of["web"].hits["app"]
    assert looked / seen.answers == pytest.approx(3 * 0.4, rel=0.05)
    assert of["web"].hits["app"] / looked == pytest.approx(0.3, rel=0.05)
    assert of["app"].requests == pytest.approx(of["web"].calls["app"], abs=1)


def test_an_empty_cache_fills_as_the_collector_of_coupons():
    """Of N answers n calls find N (1 - 1 / N)^n missing; three standard deviations of the classical problem."""
    size = 1000
    call = asks("app", cache_hit="100 %", cache_entries=size)
    run = Run(
        model({"web": {"demand": "1 ms", "calls": [call]}, "app": {"demand": "0 s"}}, ALONE, 4, warm_up="0 s"), 1, 0
    )
    run.start()
    run.engine.rows(plans)[1].filled = 0
    web = run.run().whole.outcomes["domains.web.applications.web"]
    n = web.calls["app"] + web.hits["app"]
    missed, c = size * (1 - (1 - 1 / size) ** n), n / size
    assert n > 1.5 * size
    assert abs(web.calls["app"] - missed) < 3 * sqrt(size * exp(-c) * (1 - (1 + c) * exp(-c)))


def test_a_call_is_repeated_after_twice_the_time_and_everybody_works_on_it():
    """350 ms of work: asked at 0, 100 and 300 ms; the first answer counts, all three are worked on."""
    tiers = {
        "web": {"demand": "1 ms", "calls": [{"to": "app", "timeout": "100 ms", "retries": 2}]},
        "app": {"demand": "350 ms"},
    }
    users = {**ALONE, "turn_around": "10 s"}
    seen, of = played(model(tiers, users, 5, app={"vcpus": 4}, warm_up="0 s"))
    assert seen.latency.max == pytest.approx(351 * MS, abs=3_000)
    assert (seen.answers, seen.failed, of["web"].repeated, of["app"].requests) == (1, 0, {"app": 2}, 3)


def one_of_two_dead(users, seconds, **call):
    """Return what is found where one of two copies crashes at 500 ms, for good; calls to it time out after 50 ms."""
    calls = [{"to": "app", "timeout": "50 ms", "retries": 1, **call}]
    tiers = {"web": {"demand": "1 ms", "calls": calls}, "app": {"demand": "10 ms"}}
    users = {"kind": "open_requests", "to": "web", **users}
    spec = model(tiers, users, seconds, app={"count": 2}).model_dump(exclude_unset=True)
    spec["hosts"] = {"host": {"pcpus": 2, "scheduler": {"kind": "credit"}}}
    spec["faults"] = [{"kind": "primary_crash", "at": "500 ms", "domain": "app-1", "alone": True}]
    return run_model(ModelSpec.model_validate(spec), 1, 0).whole.outcomes


@pytest.mark.parametrize(
    ("call", "silent"),
    [
        ({"max_fails": 0}, 50),  # each second one: no copy is passed over
        ({}, 1),  # at 0.55 s, and once 10 s later
        ({"fail_timeout": "1 s"}, 9),  # each eleventh: 50 ms and 1 s, and then to the next request
        ({"max_fails": 3}, 0),  # at 0.55, 0.75 and 0.95 s, before the measured time
    ],
)
def test_a_call_is_repeated_to_the_next_copy_and_later_ones_pass_over_the_silent_one(call, silent):
    """Ten requests a second for 10 s: those that are directed at the dead copy find the other after 50 ms."""
    found = one_of_two_dead({"rate": "10 /s", "gap_cv": 0.0}, 10, **call)
    assert (found["workloads.users"].answers, found["workloads.users"].failed) == (100, 0)
    assert found["workloads.users"].latency.mean == pytest.approx((11 + 50 * silent / 100) * MS, abs=10_000)
    assert found["domains.web.applications.web"].repeated == {"app": silent}
    assert found["domains.app-2.applications.app"].requests == 100


def test_share_of_calls_that_meet_a_time_out():
    """Poisson calls: a cycle is a time-out T, F in which the copy is passed over, and a wait of 1 / rate for a call.

    One call of each cycle meets it, so 1 of 1 + rate (T + F): of n cycles the number has a standard deviation below
    that of a renewal process whose intervals vary by 1 / rate only.
    """
    found = one_of_two_dead({"rate": "20 /s"}, 2000, fail_timeout="1 s")
    cycle_s = 0.05 + 1 + 1 / 20
    n = 2000 / cycle_s
    assert abs(found["domains.web.applications.web"].repeated["app"] - n) < 3 * sqrt(n) * (1 / 20) / cycle_s + 1


def test_a_copy_that_answers_again_is_asked_as_before():
    """A copy stands still from 2 to 4 s: what it answers in time, tried anew, gives it each second call again."""
    calls = [{"to": "app", "timeout": "50 ms", "retries": 1, "fail_timeout": "1 s"}]
    tiers = {"web": {"demand": "1 ms", "calls": calls}, "app": {"demand": "10 ms"}}
    users = {"kind": "open_requests", "to": "web", "rate": "10 /s", "gap_cv": 0.0}
    spec = model(tiers, users, 10, app={"count": 2, "vcpus": 1}).model_dump(exclude_unset=True)
    spec["hosts"] = {"host": {"pcpus": 2, "scheduler": {"kind": "credit"}}}
    spec["faults"] = [{"kind": "pause", "at": "2 s", "duration": "2 s", "domain": "app-1"}]
    found = run_model(ModelSpec.model_validate(spec), 1, 0).whole.outcomes
    assert found["domains.web.applications.web"].repeated == {"app": 2}
    # To the first: 5 to 2 s, 2 that it answers when it is back, 34 of the 68 from 4.3 s on.
    assert [found[f"domains.app-{copy}.applications.app"].requests for copy in (1, 2)] == [41, 61]


def test_where_all_copies_were_silent_they_are_asked_as_if_none_were():
    """Both are too slow, 60 ms of 50: calls take turns all the same, and each copy works for each second one."""
    calls = [{"to": "app", "timeout": "50 ms", "retries": 0}]
    tiers = {"web": {"demand": "1 ms", "calls": calls}, "app": {"demand": "60 ms"}}
    users = {"kind": "open_requests", "to": "web", "rate": "10 /s", "gap_cv": 0.0}
    spec = model(tiers, users, 10, app={"count": 2}).model_dump(exclude_unset=True)
    spec["hosts"] = {"host": {"pcpus": 4}}
    found = run_model(ModelSpec.model_validate(spec), 1, 0).whole.outcomes
    assert found["workloads.users"].failed == 100.0
    assert [found[f"domains.app-{copy}.applications.app"].requests for copy in (1, 2)] == [50, 50]


BRIEF = {"to": "db", "timeout": "100 ms", "retries": 1, "when": "parallel", "count": 2}


def test_a_call_that_is_given_up_fails_the_requests_above_it_at_once():
    """The database takes 350 ms, and is given up 300 ms after it was first asked: nobody above repeats that."""
    tiers = {
        "web": {"demand": "1 ms", "calls": [{"to": "app", "timeout": "2 s"}]},
        "app": {"demand": "1 ms", "calls": [BRIEF]},
        "db": {"demand": "350 ms"},
    }
    seen, of = played(model(tiers, {**ALONE, "turn_around": "10 s"}, 5, db={"vcpus": 4}, warm_up="0 s"))
    assert (seen.answers, seen.failed, seen.requests) == (0, 1, 1)
    assert (of["app"].failed, of["web"].failed, of["web"].calls_failed) == (1, 1, {"app": 1})
    assert of["app"].calls_failed == {"db": 1}
    assert of["app"].busy_ns == pytest.approx(301 * MS, abs=3_000)
    assert of["db"].requests == 4, "nobody told it to stop"


def test_requests_at_a_rate_are_given_up_after_their_last_repetition():
    """A service of 300 ms that is asked once a second, with time-outs of 100 and 200 ms: 299 ms are too short."""
    users = {"kind": "open_requests", "to": "web", "rate": "1 /s", "gap_cv": 0.0, "timeout": "100 ms", "retries": 1}
    seen, of = played(model({"web": {"demand": "299 ms"}}, users, 10, web={"vcpus": 4}, warm_up="0 s"))
    assert (seen.offered, seen.answers, seen.given_up) == (9, 9, 0)
    seen, of = played(model({"web": {"demand": "301 ms"}}, users, 10, web={"vcpus": 4}, warm_up="0 s"))
    assert (seen.answers, seen.given_up, seen.failed, seen.repeated) == (0, 9, 100.0, 9)
    assert of["web"].requests == 18


def test_no_wait_is_shorter_than_the_one_before():
    """A time-out of 100 s, longer than a doubled one may grow: both waits are of 100 s, and 190 s of work suffice."""
    users = {"kind": "open_requests", "to": "web", "rate": "0.01 /s", "gap_cv": 0.0, "timeout": "100 s", "retries": 1}
    spec = model({"web": {"demand": "190 s"}}, users, 495, web={"vcpus": 8}, warm_up="0 s")
    seen, _ = played(spec)
    assert (seen.answers, seen.given_up) == (3, 0)
    assert spec.workloads["users"].patience_ns == 200_000 * MS


def test_what_an_overloaded_service_leaves_unanswered_leads_its_figures():
    """10 ms a request are 100 answers a second of 160; 60 wait from before, whoever gives up does so after the run."""
    users = {"kind": "open_requests", "to": "web", "rate": "160 /s", "gap_cv": 0.0, "timeout": "1 min"}
    seen, _ = played(model({"web": {"demand": "10 ms", "threads": 1}}, users, 20))
    assert {"served", "failed"} <= {entry.path[0] for entry in seen.entries() if entry.leads}
    assert seen.behind == pytest.approx(37.5, abs=0.1)
    assert seen.served == pytest.approx((2000 - 60) / 32, abs=0.1)
    assert seen.failed == 0.0


def test_answers_to_requests_from_before_the_measured_time_are_not_those_of_what_was_offered():
    """Ten a second take 255 ms: of 100 the last three are under way at the end, as three were at the beginning."""
    users = {"kind": "open_requests", "to": "web", "rate": "10 /s", "gap_cv": 0.0}
    seen, _ = played(model({"web": {"demand": "255 ms"}}, users, 10, web={"vcpus": 4}, warm_up="1050 ms"))
    assert (seen.offered, seen.answers) == (100, 100)
    assert (seen.served, seen.behind) == (97.0, 0.0)


def test_requests_that_are_always_under_way_are_no_overload():
    """300 requests a second wait 1 s each for somebody: 300 of the 1,500 are under way at the end, nobody waits longer.

    So the share that is answered is no measure of what a slow service carries.
    """
    users = {"kind": "open_requests", "to": "web", "rate": "300 /s", "gap_cv": 0.0, "timeout": "20 s"}
    tiers = {"web": {"demand": "1 ms", "calls": [asks("app")]}, "app": {"demand": "0 s", "reads": 1}}
    disks = {"disks": {"data": {"kind": "array", "disks": 1000, "service": "1 s"}}}
    seen, _ = played(model(tiers, users, 5, warm_up="2 s", app=disks))
    assert seen.served == pytest.approx(80.0, abs=0.5)
    assert seen.behind == pytest.approx(0.0, abs=0.5)
    assert not any("served" in each for each in OpenRequestsSpec.objectives)


def everything(**changes):
    """All that services can do, at random, with a crash of the middle tier."""
    return load(
        "three-tier",
        ModelSpec,
        [
            "measure.warm_up=200 ms",
            "measure.duration=2 s",
            "workloads.users.turn_around=100 ms",
            "workloads.users.clients=30",
            "domains.app.vcpus=1",
            "domains.app.applications.logic.calls.0.probability=70 %",
            "domains.web.applications.pages.calls.0.timeout=60 ms",
            "domains.db.applications.reading.threads=4",
            *(f"{key}={value}" for key, value in changes.items()),
        ],
    )


CRASH = {"faults": "[{kind: primary_crash, at: 700 ms, domain: app}]"}


@pytest.mark.parametrize("kind", ["lockstep", pytest.param("checkpoint", marks=pytest.mark.thorough)])
def test_engines_agree_on_tiers_that_fail(kind, monkeypatch):
    """The checking build, which takes seconds to make, for one of them."""
    spec = everything(**CRASH, **{"domains.app.protection": f"{{kind: {kind}}}"})
    found = [run_model(spec, 3, 0, engine=engine).to_dict() for engine in ("simpy", "compiled")]
    if kind == "checkpoint":
        monkeypatch.setattr(
            "vftsim.composition.run.make_engine", lambda *given: BoundsCheckedEngine(link.all_parts(), given[2])
        )
        found.append(run_model(spec, 3, 0).to_dict())
    assert len({json.dumps(each, sort_keys=True, default=str) for each in found}) == 1


def test_a_workload_is_served_by_the_copy_it_is_directed_at_and_by_all_that_this_one_asks():
    """A crash of either is one that its clients see."""
    tiers = {"web": {"calls": [asks("app")]}, "app": {"calls": [asks("db")]}, "db": {}, "alone": {}}
    users = {**ALONE, "to": "web"}
    serving = model(tiers, users, db={"count": 2}, web={"count": 2, "vcpus": 1}).serving()
    assert serving == {f"users-{n}": [f"web-{n}", "app", "db-1", "db-2"] for n in (1, 2)}


@pytest.mark.thorough
def test_the_middle_tier_fails_over_under_three_mechanisms(monkeypatch):
    """The clients, who never speak to it, see the outage that the mechanism promises; a boot takes the longest."""
    monkeypatch.setenv("VFTSIM_ENGINE", "compiled")
    outage_s = {}
    for kind in ("lockstep", "checkpoint", "ha_restart"):
        found = failover_study(
            load_model("three-tier", [f"domains.app.protection={{kind: {kind}}}"]), Crashes(2), Execution(1, 1)
        )
        assert len(found.recovered) == 2
        outage_s[kind] = found.mean("outage_s").mean
    assert outage_s["checkpoint"] < outage_s["lockstep"] < 4
    assert 60 < outage_s["ha_restart"] < 90


@pytest.mark.parametrize(
    ("tiers", "message"),
    [
        (
            {"web": {"calls": [asks("app")]}, "app": {"calls": [asks("web")]}},
            "web.web -> app.app -> web.web is a circle",
        ),
        ({"web": {"calls": [asks("ap")]}, "app": {}}, "'ap' names no domain; did you mean 'app'?"),
        ({"web": {"calls": [asks("app", count=101)]}, "app": {}}, "less than or equal to 100"),
    ],
)
def test_calls_that_cannot_be_are_refused(tiers, message):
    with pytest.raises((ValueError, ModelFileError), match=message):
        model(tiers, ALONE)


def test_a_service_that_reads_needs_a_disk():
    with pytest.raises(ValueError, match=r"domains.web.applications.web: it uses a disk, and its domain has none"):
        model({"web": {"reads": 1.0}}, ALONE)
    model({"web": {"disk": "zz"}}, ALONE)  # it reads nothing


def test_threads_take_at_one_instant_what_came_during_a_stop():
    """A stop soon after the beginning: what the card's ring holds goes to idle threads at once, and all is answered."""
    card = {"kind": "moderated", "ring": 400}
    program = {"kind": "service", "threads": 400, "demand": "10 us", "demand_cv": 1.0}
    model = {
        "domains": {"a": {"interfaces": {"eth0": {"path": card}}, "applications": {"p": program}}},
        "workloads": {"load": {"kind": "open_requests", "to": "a", "rate": "1000 /s"}},
        "faults": [{"kind": "pause", "at": "10 ms", "duration": "380 ms"}],
        "measure": {"warm_up": "0 s", "duration": "500 ms"},
    }
    seen = run_model(ModelSpec.model_validate(model), 1, 0).whole.outcomes["workloads.load"]
    assert seen.dropped == 0
    assert 350 < seen.answers <= seen.offered <= seen.answers + 1
    # Those of the stop waited for what was left of it, half of it on average.
    assert seen.latency.percentile(50) > 100_000_000
