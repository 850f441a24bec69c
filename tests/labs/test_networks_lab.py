"""The lab of the how-to: what its tools wrote is read, its model is that of what was measured, refusals are said."""

import importlib.util
import json
import os
import sys
from pathlib import Path

import pytest

from vftsim.labs.importing import Source, figures_of, importer_for

FOLDER = Path(__file__).parents[2] / "experiments" / "networks-lab"
MEASURED = FOLDER / "measured"


def part(name):
    sys.path.insert(0, str(FOLDER))
    try:
        spec = importlib.util.spec_from_file_location(f"networks_lab_{name}", FOLDER / f"{name}.py")
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(FOLDER))


compare, place, measure = part("compare"), part("place"), part("measure")


@pytest.mark.parametrize(
    "path", sorted([*MEASURED.glob("*.txt"), *MEASURED.glob("*-[0-9]*.json")]), ids=lambda p: p.name
)
def test_every_file_of_the_tools_is_read(path):
    text = path.read_text(encoding="utf-8")
    kind = importer_for(text, path.name)
    assert kind.name == ("httperf" if path.suffix == ".txt" else "iperf3")
    found = {each.metric: each.statistics for each in figures_of(Source(text, path.name), kind)}
    assert found["connections" if path.suffix == ".txt" else "throughput"]


def test_the_one_figure_is_the_cpu_time_of_a_request_served_alone():
    lab = compare.Lab(MEASURED)
    assert lab.costs_s == pytest.approx([0.04339, 0.0433, 0.04289], abs=1e-5)
    assert lab.capacity_per_s() == pytest.approx(0.3 / 0.043194, rel=1e-3)
    assert {run["part"] for run in lab.facts["runs"]} == {"calibration", "curve", "burst", "tcp", "udp"}


def test_the_model_is_that_of_what_was_measured():
    lab = compare.Lab(MEASURED)
    spec = lab.web_model(lab.runs("burst")[0], ["max_clients=5"])
    server, load = spec.domains["server"], spec.workloads["web"]
    web = server.applications["web"]
    assert (server.quota, server.period, server.guest_scheduler.kind) == (3_000_000, 10_000_000, "eevdf")
    assert (web.script, web.reply_size, web.max_clients) == (pytest.approx(43_194_000, abs=1000), 521_443, 5)
    assert (load.rate, load.connections, load.timeout, load.linear_retries) == (100.0, 200, 5 * 10**9, 4)
    assert set(spec.workloads) == {"web"}


def test_without_a_limit_the_server_has_a_whole_processor(tmp_path):
    facts = json.loads((MEASURED / "lab.json").read_text(encoding="utf-8"))
    facts |= {"cpu_limit_percent": None, "kernel": "6.1.0", "syn_linear_timeouts": 0}
    for run in facts["runs"]:
        name = run["file"]
        (tmp_path / name).write_text((MEASURED / name).read_text(encoding="utf-8"), encoding="utf-8")
    (tmp_path / "lab.json").write_text(json.dumps(facts), encoding="utf-8")
    lab = compare.Lab(tmp_path)
    assert lab.capacity_per_s() == pytest.approx(1 / 0.043194, rel=1e-3)
    spec = lab.web_model(lab.runs("curve")[0])
    assert (spec.domains["server"].quota, spec.domains["server"].guest_scheduler.kind) == (0, "cfs")


def test_below_the_capacity_all_is_answered_and_a_request_takes_what_the_quota_makes_of_its_cost():
    """43.2 ms at 3 ms in 10: 14 whole periods and the rest, 143 to 150 ms, less what the first period has left."""
    lab = compare.Lab(MEASURED)
    run = dict(lab.runs("curve")[0], connections=10)
    compare_one = compare.REPLICATIONS
    compare.REPLICATIONS = 1
    try:
        (found,) = lab.predicted(run)
    finally:
        compare.REPLICATIONS = compare_one
    assert found.replies == 10
    assert 130 < found.connection_ms[1] < 150


def test_a_machine_that_refuses_is_left_as_it_was(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(place, "succeeds", lambda *command: False)
    network, limit = place.Network(100), place.CpuLimit(30)
    network.open()
    assert (network.is_apart, network.is_shaped, network.address) == (False, False, "127.0.0.1")
    assert network.inside("server", ["true"]) == ["true"]

    def refuse(self, name, root):
        raise PermissionError(13, "Permission denied", str(root))

    monkeypatch.setattr(place.CpuLimit, "_make", refuse)
    limit.open()
    assert not limit.is_on
    assert limit.around(["true"]) == ["true"]
    assert limit.reason
    assert limit.cpu_s(os.getpid()) > 0.0
    measure.tell_what_is_missing(measure.Lab(tmp_path, network, limit, True, []))
    printed = capsys.readouterr().out
    assert "No network namespaces here" in printed
    assert "No CPU limit in force" in printed


def test_a_group_is_joined_before_the_server_begins(tmp_path):
    limit = place.CpuLimit(30, {"cpu": tmp_path})
    (tmp_path / "cgroup.procs").touch()
    joins, *rest = limit.around(["apache2", "-f", "x"])[2:]
    assert f"{tmp_path}/cgroup.procs" in joins
    assert rest == ["sh", "apache2", "-f", "x"]
