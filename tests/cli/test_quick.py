"""``--quick``: every command that simulates has it, it cuts no test below its own length, and says what it saves."""

import inspect
import json

import pytest

import vftsim
from tests.study.tiny import tiny
from vftsim.cli.main import build_app, main
from vftsim.interface.plan import plan_of
from vftsim.study.designs.optimize import Request as Choice
from vftsim.study.designs.points import points_of, read_range
from vftsim.study.designs.sensitivity import Request as Ranges
from vftsim.study.designs.study_spec import read_study
from vftsim.study.runs.estimate import needs_of
from vftsim.study.runs.model import load_model

TCP = """\
format: 2
domains:
  vm: {interfaces: {eth0: {path: {kind: moderated}}}, applications: {app: {kind: tcp_sink}}}
networks: {lan: {rate: 10 Mbit/s}}
workloads:
  tcp: {kind: bulk_tcp, to: vm, duration: 1 s}
measure: {duration: 10 s, warm_up: 0 s}
"""
COMMANDS = ("run", "capacity", "compare", "sweep", "failover", "predict", "pilot", "availability")


@pytest.fixture
def tcp(tmp_path):
    path = tmp_path / "tcp.yaml"
    path.write_text(TCP)
    return path


@pytest.fixture
def sip(tmp_path):
    path = tmp_path / "sip.yaml"
    path.write_text(tiny())
    return path


def test_every_command_that_simulates_has_it():
    callbacks = {each.name: each.callback for each in build_app().registered_commands}
    assert [name for name in COMMANDS if "quick" not in inspect.signature(callbacks[name]).parameters] == []


def test_a_test_is_not_cut_below_its_own_length(tcp, capsys):
    assert main(["run", str(tcp), "--quick", "-n", "1", "-j", "1", "-q", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    figures = {row["metric"]: row["estimate"] for row in printed["summary"]}
    assert figures["tcp.mbit_per_s"] == pytest.approx(10 * 1448 / 1538, rel=0.05), "full segments on 10 Mbit/s"
    assert 1.0 < load_model(tcp).quick().spec.measure.duration / 1e9 < 2.0


def test_what_is_saved_is_what_the_estimate_says(sip):
    model = load_model(sip, ["workloads.calls.steps.duration=302 s"])
    quick = model.quick()
    saved = 100 * (1 - needs_of(quick.spec).events / needs_of(model.spec).events)
    assert f"about {saved:.0f} % of the work saved" in quick.notes[0]
    assert saved > 70, "60 of 300 s are measured"


def test_a_sweep_is_shortened_at_every_point(sip, tmp_path, capsys):
    steps = ["--set", "workloads.calls.steps.duration=302 s", "--set", "workloads.calls.steps.most=1"]
    words = ["sweep", str(sip), "--grid", "domains.sut.weight=1,2", *steps, "-n", "1", "-j", "1", "-q", "--quick"]
    assert main([*words, "-o", str(tmp_path / "out"), "--json"]) == 0
    models = json.loads(capsys.readouterr().out)["manifest"]["models"]
    assert models[0]["resolved"]["workloads"]["calls"]["steps"]["duration"] == "62 s"


def test_fewer_crashes_are_said(tmp_path, capsys):
    file = tmp_path / "rr.yaml"
    rr = TCP.replace("tcp_sink", "service").replace(
        "{kind: bulk_tcp, to: vm, duration: 1 s}", "{kind: request_response, to: vm}"
    )
    file.write_text(rr)
    words = ["failover", str(file), "--protection", "lockstep", "-j", "1", "-q", "--after", "200 ms", "--over", "50 ms"]
    assert main([*words, "--quick", "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert len(printed["failovers"]) == 5
    assert printed["manifest"]["models"][0]["notes"][0].startswith("5 crashes instead of 20; about 75 %")
    assert main([*words, "--quick", "-n", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["failovers"]) == 1


PATIENT = """\
format: 2
name: patient
domains:
  vm: {interfaces: {eth0: {path: {kind: native}}}, applications: {app: {kind: service, demand: 1 ms}}}
workloads:
  users: {kind: open_requests, to: vm, rate: 20 /s, timeout: 200 ms, retries: 0}
measure: {duration: 4 s, warm_up: 100 ms}
"""
TIMEOUT = "workloads.users.timeout"
PAUSE = "faults=[{kind: pause, at: 3 s, duration: 200 ms}]"


@pytest.fixture
def patient(tmp_path):
    path = tmp_path / "patient.yaml"
    path.write_text(PATIENT)
    return path


@pytest.fixture
def lengths(patient, tmp_path):
    """Of every study of the same system whose clients wait 200 ms or 2 s: the measured seconds of its points."""
    study = tmp_path / "study.yaml"
    factors = {TIMEOUT: ["200 ms", "2 s"]}
    study.write_text(json.dumps({"name": "s", "models": ["patient.yaml"], "factors": factors, "figures": ["rate"]}))
    choice = Choice.read(
        str(patient), (), load_model(patient), [f"{TIMEOUT}=200 ms,2 s"], ["rate > 1"], None, quick=True
    )
    spans = dict([read_range(f"{TIMEOUT}=200 ms..2 s"), read_range("domains.vm.weight=1..9")])
    ranges = Ranges(str(patient), (), "users.rate", spans, load_model(patient)).first_look()
    points = {
        "study": points_of(*read_study(str(study)), quick=True),
        "optimize": choice.points[0],
        "sensitivity": ranges.points([{TIMEOUT: "200 ms"}, {}, {TIMEOUT: "300 ms"}]),
    }
    shown = {"optimize": choice.base, "sensitivity": ranges.base}
    return {
        name: {each.spec.measure.duration / 1e9 for each in (*(point.model for point in made), shown.get(name)) if each}
        for name, made in points.items()
    }


def test_what_is_compared_is_measured_for_the_same_time(lengths):
    """Clients that wait 2 s need 2.5 s; those that wait 200 ms alone need 700 ms, and are measured as long."""
    assert lengths == {"study": {2.5}, "optimize": {2.5}, "sensitivity": {2.5}}


def test_what_is_compared_with_faults_is_measured_as_long(patient, sip):
    """A pause at 3 s lets nothing be shortened; the model without it is to be as long."""
    models = plan_of(
        vftsim.compare, {"models": [load_model(patient), load_model(patient, [PAUSE])], "quick": True}
    ).models
    assert [model.spec.measure.duration / 1e9 for model in models] == [4.0, 4.0]
    assert models[0].notes == ("--quick shortens nothing: what it stands beside needs as long",)
    long = load_model(sip, ["workloads.calls.steps.duration=302 s"])
    paused = load_model(sip, ["workloads.calls.steps.duration=302 s", PAUSE])
    ramps = plan_of(vftsim.compare, {"models": [long, paused], "quick": True}).models
    assert [model.spec.workloads["calls"].step_ns() / 1e9 for model in ramps] == [300.0, 300.0]
