"""Programs that compute without end keep their CPU from one piece of work to the next."""

import pytest

import vftsim
from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model

HOGS = """\
hosts: {host: {pcpus: 1, scheduler: {kind: KIND}}}
domains:
  a: {applications: {w: A}}
  b: {applications: {w: B}}
measure: {warm_up: 1 s, duration: 10 s}
"""
ONE_PREFORK = {"kind": "prefork_web_server", "script": "1 ms", "start_servers": 1, "min_spare": 1, "max_clients": 1}
HTTPERF = {"kind": "httperf", "rate": "5000 /s", "connections": 1000}
BATCH = "{kind: batch, demand: 1 ms}", "{kind: batch, demand: 10 ms}"
CACHED = tuple(each.replace("}", ", disk_operations: 3, disk_wait: 0 ms}") for each in BATCH)
BOUND = "{kind: cpu_bound, duty: 100 %, cycle: 5 ms}", "{kind: cpu_bound, duty: 100 %, cycle: 100 ms}"
BY_CLOCK = tuple(text.replace("cycle", "by_clock: true, cycle") for text in BOUND)


def cpus(tmp_path, text):
    path = tmp_path / "model.yaml"
    path.write_text(text)
    whole = vftsim.run(path, 1).records[0][1].whole
    return {name: whole.outcomes[f"domains.{name}"].cpu_ns / 1e10 for name in ("a", "b")}, whole


@pytest.mark.parametrize("kind", ["credit", "credit2", "round_robin", "esxi", "cfs"])
@pytest.mark.parametrize("hogs", [BATCH, CACHED, BOUND, BY_CLOCK], ids=["batch", "no wait", "cpu_bound", "by clock"])
def test_two_of_them_share_a_cpu_evenly_whatever_their_pieces(tmp_path, kind, hogs):
    """Equal weights are half each; a hog that slept for no time lost its slice, or was woken with a boost."""
    text = HOGS.replace("KIND", kind).replace(" A}", f" {hogs[0]}}}").replace(" B}", f" {hogs[1]}}}")
    found, _ = cpus(tmp_path, text)
    assert found["a"] == pytest.approx(0.5, abs=0.01)
    assert found["b"] == pytest.approx(0.5, abs=0.01)


def test_a_light_domain_is_let_in_at_once_beside_one_under_credit(tmp_path):
    """BOOST is for who wakes (sched_credit.c): 10 us of work wait for no slice of a domain that never sleeps."""
    light = "{interfaces: {eth0: {path: {kind: direct}}}, applications: {s: {kind: service, demand: 10 us}}}"
    text = HOGS.replace("KIND", "credit").replace(" A}", f" {BATCH[0]}}}").replace("{applications: {w: B}}", light)
    text += "networks: {lan: {}}\nworkloads: {u: {kind: open_requests, to: b, rate: 7 /s}}\n"
    _, whole = cpus(tmp_path, text)
    assert whole.outcomes["domains.b.applications.s"].response.mean < 100_000


@pytest.mark.parametrize("speed", [0.001, 1.7, 2.0, 1000.0])
def test_bursts_by_the_clock_end_at_any_speed_of_a_cpu(tmp_path, speed):
    """The clock does not hang on it: 50 ms of each 100, and work of less than 1 ns would be looked at for ever."""
    path = tmp_path / "model.yaml"
    path.write_text(
        f"hosts: {{host: {{pcpus: 1, scheduler: {{kind: round_robin}}, cpu_speed: {speed}}}}}\n"
        "domains: {a: {applications: {w: {kind: cpu_bound, duty: 50 %, cycle: 100 ms, cv: 0, by_clock: true}}}}\n"
        "measure: {warm_up: 0 s, duration: 10 s}\n"
    )
    whole = vftsim.run(path, 1).records[0][1].whole
    assert whole.outcomes["domains.a"].cpu_ns / 1e10 == pytest.approx(0.5, abs=0.005)


def beside(kind, pcpus, web, users, **more):
    """A program in a domain of two vCPUs, on a host whose pCPUs lose 5 us by each switch, and ``more`` domains."""
    card = {"interfaces": {"eth0": {"path": {"kind": "moderated"}}}}
    host = {"pcpus": pcpus, "switch_cost": "5 us", "scheduler": {"kind": kind}}
    a = {**card, "vcpus": 2, "applications": {"web": web}}
    spec = ModelSpec.model_validate(
        {
            "hosts": {"host": host},
            "networks": {"lan": {"rate": "100 Gbit/s", "latency": "0 us"}},
            "domains": {"a": a, **{name: {**card, "applications": {"p": each}} for name, each in more.items()}},
            "workloads": {"u": {"to": "a", **users}},
            "measure": {"warm_up": "50 ms", "duration": "200 ms"},
        }
    )
    return run_model(spec, 1, 0, engine="simpy").whole.outcomes


@pytest.mark.parametrize("kind", ["credit", "cfs"])
def test_a_thread_takes_its_next_request_where_it_runs(kind):
    """One that is never without keeps one pCPU, and a job has the other: no vCPU is woken for the next request."""
    web, users = {"kind": "service", "threads": 1, "demand": "50 us"}, {"kind": "request_response", "clients": 8}
    found = beside(kind, 2, web, users, b={"kind": "batch", "demand": "10 ms"})
    assert found["domains.a"].cpu == pytest.approx(100, abs=0.1)
    assert found["domains.b"].cpu == pytest.approx(100, abs=0.1)
    assert found["workloads.u"].rate == pytest.approx(20_000, rel=0.001)


def test_a_thread_makes_its_calls_where_it_runs():
    """What a call costs is more of the same work: 25 us and 25 us take as long as 50 us in one piece."""
    users = {"kind": "open_requests", "rate": "1000 /s"}
    took = []
    for demand, cost in (("50 us", "0 us"), ("25 us", "25 us")):
        calls = [{"to": "b", "count": 1, "cost": cost, "timeout": "0 s"}]
        web = {"kind": "service", "demand": demand, "calls": calls}
        found = beside("credit", 1, web, users, b={"kind": "service", "demand": "1 us"})
        took.append(found["domains.a.applications.web"].response.mean)
    assert took[0] == took[1]


@pytest.mark.parametrize(
    ("program", "users"),
    [
        ({"kind": "udp_sink", "read_cost": "50 us"}, {"kind": "bulk_udp", "rate": "300 Mbit/s"}),
        ({"kind": "tcp_sink", "segment_cost": "50 us"}, {"kind": "bulk_tcp"}),
        ({"kind": "tcp_source", "segment_cost": "50 us"}, {"kind": "bulk_tcp", "direction": "download"}),
        ({"kind": "farm_server", "threads": 1, "demand": "300 us"}, {"kind": "farm_calls", "rate": "2000 /s"}),
        (ONE_PREFORK | {"reply_size": "10 kB"}, HTTPERF),
        (ONE_PREFORK | {"reply_size": "5 MB"}, HTTPERF),
    ],
    ids=["udp", "tcp", "tcp out", "farm", "web", "web in pieces"],
)
def test_other_programs_take_what_comes_next_where_they_run(program, users):
    """More comes than one thread can do: it has one pCPU, and a job the other."""
    found = beside("cfs", 2, program, users, b={"kind": "batch", "demand": "10 ms"})
    assert found["domains.a"].cpu == pytest.approx(100, abs=0.1)
    assert found["domains.b"].cpu == pytest.approx(100, abs=0.1)
