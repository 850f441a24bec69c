"""Any key of a model turned until runs no longer meet what is asked, on a system whose answers are arithmetic.

One CPU works 1 ms a request; each client asks, waits for the answer and 20 ms more.  With N clients a round takes
21 ms until the CPU is full, and N ms beyond, so that 21 clients are the most that all wait no longer than 1 ms; the
answer's delay beyond is N - 20 ms.
"""

import json
from dataclasses import replace

import pytest

from vftsim.cli.main import main
from vftsim.errors import UsageError
from vftsim.study.designs.find_capacity import knob_capacity
from vftsim.study.designs.knob import knob_of
from vftsim.study.designs.search_levels import CapacityRequest
from vftsim.study.figures.objective import Objective, read_objective
from vftsim.study.runs.execution import Execution
from vftsim.study.runs.model import load_model

SERVER = """\
format: 2
hosts: {host: {pcpus: 1, scheduler: {kind: native}, nics: {eth0: {}}}}
networks: {lan: {latency: 10 us}}
domains:
  server:
    vcpus: 1
    interfaces: {eth0: {path: {kind: native, event_cost: 0, driver_receive_cost: 0, driver_transmit_cost: 0}}}
    applications: {app: {kind: service, demand: 1 ms}}
workloads:
  load: {kind: request_response, to: server, clients: 15, turn_around: 20 ms}
measure: {duration: 100 ms, warm_up: 100 ms}
"""
ASKED = CapacityRequest(probability=0.5, resolution=1.0, budget=60)


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("server") / "server.yaml"
    path.write_text(SERVER)
    return load_model(path)


def turned(model, request):
    (found,) = knob_capacity(model, request, Execution(1, 1)).searches.values()
    return found


def asking(**more):
    return replace(ASKED, **more)


@pytest.mark.thorough
def test_the_declared_load_is_turned_until_the_cpu_is_full(server):
    """A p95 of at most 5.5 ms: 25 clients wait 5 ms, 26 wait 6."""
    found = turned(server, asking(objectives=("latency_p95_ms <= 5.5",)))
    assert found.names.key == "workloads.load.clients"
    assert (found.result.estimate.low, found.result.estimate.high) == (25.0, 26.0)
    curve = found.curve().set_index("workloads.load.clients")
    assert curve["workloads.load.latency.p95_mean"][26.0] == pytest.approx(6.0, rel=0.05)
    assert found.resources.iloc[0]["resource"] == "1 pCPU"


@pytest.mark.thorough
def test_any_key_can_be_turned(server):
    """15 clients and 20 ms: the answer comes in 5.5 ms as long as a request takes no more than about 25.5/15 ms."""
    found = turned(
        server,
        asking(
            vary="domains.server.applications.app.demand", resolution=0.1, objectives=("load.latency_p95_ms <= 5.5",)
        ),
    )
    assert found.names.details["unit"] == "ms"
    assert found.result.estimate.low <= 25.5 / 15 <= found.result.estimate.high + 0.1


@pytest.mark.thorough
def test_several_objectives_must_all_hold(server):
    both = turned(server, asking(objectives=("load.latency.p95 <= 5.5", "server.cpu < 90")))
    assert both.result.estimate.high <= 20.0, "19 clients of 1 ms in 21 ms fill 0.9 of the CPU"
    assert len(both.judged) == 2


@pytest.mark.thorough
def test_the_command_prints_the_answer_and_writes_json(server, capsys):
    words = ["capacity", server.label, "--objective", "latency_p95_ms <= 5.5", "--probability", "0.5", "--budget", "60"]
    assert main([*words, "--resolution", "1", "-j", "1", "-q"]) == 0
    out = capsys.readouterr().out
    assert "Capacity: 26 (workloads.load.clients), in [25, 26]" in out
    assert "50 % of runs have workloads.load.latency.p95 <= 5.5" in out
    assert main([*words, "--resolution", "1", "-j", "1", "-q", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["capacity"][0]["capacity"] == "workloads.load.clients"
    assert said["workloads.load.clients"]["objectives"] == [
        {"figure": "workloads.load.latency.p95", "relation": "<=", "value": 5.5, "unit": "ms"}
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({}, "say what a run must achieve.*workloads.load.latency.p50"),
        ({"objectives": ("latency_p95_ms",)}, "is not of the form"),
        ({"objectives": ("latency_p95_ms <= 1.2.3",)}, "is not of the form"),
        ({"objectives": ("latency_p59_ms <= 3",)}, "there is no figure 'latency_p59_ms'; nearest: "),
        ({"vary": "workloads.load.client"}, "no 'client' in 'workloads.load'; did you mean 'clients'"),
        ({"vary": "workloads.load.kind"}, "begins at 'request_response', not at a number"),
        ({"vary": "workloads.load.clients.more"}, "nothing below 'workloads.load.clients'"),
        ({"objectives": ("load.dropped <= 0",), "method": "ramp"}, "--method ramp"),
        ({"objectives": ("load.dropped <= 0",), "loss_limit_percent": 1.0}, "--loss-limit: the limit is said with"),
    ],
)
def test_what_cannot_be_answered_is_said(server, change, message):
    with pytest.raises(UsageError, match=message):
        knob_capacity(server, asking(**change), Execution(1, 1))


def test_a_model_without_a_load_names_the_option(server):
    spec = server.spec.model_copy(update={"workloads": {}})
    with pytest.raises(UsageError, match="--vary names a key"):
        knob_capacity(type(server)("empty", spec), ASKED, Execution(1, 1))


def test_levels_are_written_in_the_keys_own_unit(server):
    spec = load_model("net-kvm").spec
    rate, window = knob_of(spec, "workloads.udp.rate"), knob_of(spec, "workloads.tcp.window")
    assert (rate.written(1.05), window.written(100.3), rate.value) == ("1.05 Gbit/s", "102707 B", 1.0)
    assert knob_of(spec, "workloads.web.rate").at(spec, 20.5).workloads["web"].rate == 20.5
    with pytest.raises(UsageError, match="the model cannot have"):
        knob_of(server.spec, "hosts.host.pcpus").at(server.spec, 1e9)


def test_an_objective_without_a_figure_in_a_run_fails():
    assert not Objective("a", "<=", 1.0).holds(float("nan"))
    assert not Objective("a", ">=", 1.0).holds(float("nan"))
    assert Objective("a", ">=", 1.0).holds(1.0)
    assert read_objective(" a.b c  >= -1e2 ") == Objective("a.b c", ">=", -100.0)
