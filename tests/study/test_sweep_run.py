"""Sweeps that are run: same traffic everywhere, and nothing lost or repeated when killed."""

import gc
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest
from programs import started

from tests.study.grids import make_grid, run_sweep
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.outcome import Phase
from vftsim.platform.outcomes import DomainUse
from vftsim.report.terminal import as_text
from vftsim.study.designs import experiment, points, runner
from vftsim.study.designs import study as designs_study
from vftsim.study.designs.study import shown
from vftsim.study.execution import Execution
from vftsim.study.runs.model import Model, load_model
from vftsim.study.runs.progress import Progress
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.database import DATABASE

FILES = ("results.csv", "replications.csv", "points.json", "charts.png")
SMALL = ["workloads.signaling=null", "measure.duration=100 ms", "measure.warm_up=300 ms"]
LONG = ["workloads.signaling=null", "measure.duration=100 s", "measure.warm_up=300 ms"]
"""So long that a sweep can be killed before it ends."""
GRID = "streams=" + ",".join(str(n) for n in range(2, 14))


IDLE = Phase("", None, 0, 1, {"domains.media": DomainUse(cpu_ns=1, seconds=1.0)})
NOTHING = RunRecord((IDLE,), {}, 0, 0, {}, {}).to_dict()


def small_grid(scheduler=None, streams="10,20", more=()):
    return make_grid("xen-media", scheduler, [f"streams={streams}"], [*SMALL, *more])


def test_a_point_is_what_run_media_gives(tmp_path):
    result = run_sweep(small_grid(), tmp_path / "s", 2, Execution(5, 1))
    spec = load_model("xen-media", [*SMALL, "workloads.media.streams=20"]).spec
    alone = run_model(spec, 5, 1)
    outcomes = alone.whole.outcomes
    assert result.of_points[1].values[1]["workloads.media.delay.p99"] == outcomes["workloads.media"].delay_ms(99) > 0
    assert result.of_points[1].values[1]["domains.media.cpu"] == outcomes["domains.media"].cpu
    again = run_sweep(small_grid(), tmp_path / "s", 2, Execution(5, 1), figures=["media.delivered"])
    assert (again.already, again.of_points[1].values[1]) == (
        4,
        {"workloads.media.delivered": outcomes["workloads.media"].delivered},
    ), "any figure is told from what is there"
    with pytest.raises(UsageError, match=r"there is no figure 'media\.deliverd'; nearest: workloads\.media\.delivered"):
        run_sweep(small_grid(), tmp_path / "s", 2, Execution(5, 1), figures=["media.deliverd"])


def test_an_axis_with_the_name_of_a_figure_has_a_column_of_its_own(tmp_path):
    rate, short = "workloads.calls.rate", ("measure.duration=1 s", "measure.warm_up=1 s")
    grid = make_grid("sip-farm-r1", None, [f"{rate}=10 /s,90 /s"], short)
    result = run_sweep(grid, tmp_path / "s", 1, Execution(1, 1), figures=["calls.rate"])
    table = result.replications
    assert list(table[f"set.{rate}"]) == ["10 /s", "90 /s"]
    assert list(table[rate]) == [of_point.values[0][rate] for of_point in result.of_points]
    assert set(result.results[rate]) == {"10 /s", "90 /s"}, "figures are in rows there"


def test_of_several_copies_all_together_are_in_the_table(tmp_path):
    path = tmp_path / "copies.yaml"
    path.write_text(
        "networks: {lan: {}}\nhosts: {host: {pcpus: 2}}\ndomains:\n  vm:\n    count: 2\n"
        "    interfaces: {eth0: {path: {kind: moderated}}}\n    applications: {srv: {kind: service}}\n"
        "workloads: {load: {kind: request_response, to: vm, clients: 1}}\n"
        "measure: {warm_up: 10 ms, duration: 100 ms}\n"
    )
    grid = make_grid(str(path), None, ["workloads.load.clients=1,2"], (), "checkpoint")
    result = run_sweep(grid, tmp_path / "s", 1, Execution(5, 1))
    owners = dict.fromkeys(address.owner for address in shown(result).values())
    assert list(owners) == ["workloads.load", "domains.vm", "domains.vm.protection"]
    text = str(result)
    assert "Of several copies of a domain the table has all together" in text
    assert "load-1: " not in text
    assert {"workloads.load.rate", "workloads.load-2.rate"} <= set(result.results["figure"])


def test_what_is_on_disk_is_not_computed_again(tmp_path, monkeypatch):
    first = run_sweep(small_grid(), tmp_path / "s", 1, Execution(1, 1))
    ran = []
    monkeypatch.setattr(runner, "simulate", lambda task, *_: ran.append(task) or NOTHING)
    more = run_sweep(small_grid(streams="10,20,30"), tmp_path / "s", 1, Execution(1, 1))
    assert (more.already, [task.spec.workloads["media"].streams for task in ran]) == (2, [30])
    assert [each.marks for each in more.of_points[:2]] == [each.marks for each in first.of_points]
    for more, seed, other in (
        ([], 2, {}),
        (["measure.duration=200 ms"], 1, {}),
        (["measure.warm_up=200 ms"], 1, {}),
        ([], 1, {"force": True}),
    ):
        ran.clear()
        run_sweep(small_grid(more=more), tmp_path / "s", 1, Execution(seed, 1), **other)
        assert len(ran) == 2, (more, seed, other)


@pytest.mark.thorough
def test_a_refusing_scheduler_is_named(tmp_path):
    result = run_sweep(small_grid("native,round_robin"), tmp_path / "s", 1, Execution(1, 1))
    assert list(result.refusals) == ["native"]
    assert "needs a pCPU of its own" in result.refusals["native"]
    assert set(result.results["scheduler"]) == {"round_robin"}
    assert result.finished == 2
    with pytest.raises(UsageError, match="no point could be run: native"):
        run_sweep(small_grid("native"), tmp_path / "n", 1, Execution(1, 1))
    assert not (tmp_path / "n").exists()


def test_an_axis_that_a_scheduler_does_not_read_is_named(tmp_path):
    grid = make_grid("xen-media", "round_robin", ["weight=256,512", "streams=10,20"], SMALL)
    result = run_sweep(grid, tmp_path / "s", 1, Execution(1, 1))
    assert result.without_effect() == [("round_robin", "weight")]


def test_interrupted_keeps_what_is_done(tmp_path, monkeypatch):
    def stop_at_second(task, *_):
        if task.spec.workloads["media"].streams == 20:
            raise KeyboardInterrupt
        return NOTHING

    monkeypatch.setattr(runner, "simulate", stop_at_second)
    result = run_sweep(small_grid(), tmp_path / "s", 1, Execution(1, 1))
    assert (result.interrupted, result.finished) == (True, 1)
    assert result.manifest["state"] == "interrupted"
    with pytest.raises(Interrupted):
        run_sweep(small_grid(streams="20"), tmp_path / "empty", 1, Execution(1, 1))
    assert not (tmp_path / "empty").exists()


def _command(folder: Path) -> list[str]:
    options = ["--grid", GRID, "-n", "1", "-j", "1", "-q", "--csv", *(f"--set={text}" for text in LONG)]
    return [sys.executable, "-m", "vftsim.cli.main", "sweep", "xen-media", *options, "-o", str(folder)]


def _stored(folder: Path) -> list[tuple]:
    connection = sqlite3.connect(folder / DATABASE)
    try:
        return connection.execute("SELECT * FROM replications ORDER BY rowid").fetchall()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The same sweep, never interrupted."""
    folder = tmp_path_factory.mktemp("sweeps") / "whole"
    grid = make_grid("xen-media", None, [GRID], LONG)
    run_sweep(grid, folder, 1, Execution(1, 1))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_killed_sweep_ends_in_the_same_results(tmp_path, whole, how):
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    folder = tmp_path / "killed"
    log = folder / f"{DATABASE}-wal"
    with started(_command(folder), env=environment) as process:
        end = time.monotonic() + 60
        while not (log.exists() and log.stat().st_size > 40_000):  # some points in
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(how)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == (-9 if how is signal.SIGKILL else 3)
    assert b"Traceback" not in errors
    before = _stored(folder)
    assert 0 < len(before) < 12
    again = subprocess.run(_command(folder), env=environment, capture_output=True, check=True)
    assert _stored(folder)[: len(before)] == before, "kept, not computed again"
    assert _stored(folder) == _stored(whole), "no point lost, none repeated"
    assert again.stdout == (whole / "results.csv").read_bytes()
    for name in FILES:
        assert (folder / name).read_bytes() == (whole / name).read_bytes()
    shown, expected = (json.loads((each / "blocks.json").read_text(encoding="utf-8")) for each in (folder, whole))
    assert shown["blocks"] == expected["blocks"], "nothing of how often it was begun"


def test_models_of_a_large_grid_are_not_kept_and_no_figure_is_drawn(tmp_path, monkeypatch):
    """Memory of 10,000 points would be that of their models; nobody reads a figure of more than a thousand."""
    monkeypatch.setattr(points, "MOST_DRAWN", 2)
    monkeypatch.setattr(experiment, "MOST_DRAWN", 2)
    monkeypatch.setattr(designs_study, "_MOST_ROWS", 2)
    made_at: list[tuple[str, ...]] = []
    make = points.Source.at
    monkeypatch.setattr(points.Source, "at", lambda *given: made_at.append(given[-1]) or make(*given))
    gc.collect()
    before = {id(each) for each in gc.get_objects() if isinstance(each, Model)}
    streams = range(10, 130, 10)
    grid = small_grid(streams=",".join(map(str, streams)))
    gc.collect()
    made = [each for each in gc.get_objects() if isinstance(each, Model) and id(each) not in before]
    assert len(made) <= 4, "the base, and points that were looked at last"
    told = list[str]()
    progress = type("Told", (Progress,), {"say_how_far": lambda _, text: told.append(text)})()
    result = run_sweep(grid, tmp_path / "s", 1, Execution(1, 1, progress))
    assert "checking 12 points before the first run" in told, "two minutes without a word of 100,000"
    assert len(made_at) <= 4 * len(streams) + 6, "to be checked, estimated, run and written; never to be told of"
    assert [point.model.spec.workloads["media"].streams for point in grid.points] == [*streams]
    assert result.finished == len(streams)
    assert not (tmp_path / "s" / "charts.png").exists()
    assert "The first 2 points; results.csv has all" in as_text(result.blocks())
