"""``--quick``: every command that simulates has it, it cuts no test below its own length, and says what it saves."""

import inspect
import json

import pytest

from tests.study.tiny import tiny
from vftsim.cli.main import build_app, main
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
    said = json.loads(capsys.readouterr().out)
    figures = {row["metric"]: row["estimate"] for row in said["summary"]}
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
    said = json.loads(capsys.readouterr().out)
    assert len(said["failovers"]) == 5
    assert said["manifest"]["models"][0]["notes"][0].startswith("5 crashes instead of 20; about 75 %")
    assert main([*words, "--quick", "-n", "1", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["failovers"]) == 1
