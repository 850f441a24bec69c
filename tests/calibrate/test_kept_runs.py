"""Calibrations and validations that were ended, however, go on with the same command and end in the same answer."""

import json
import os
import signal
import sqlite3
import sys
import time
from contextlib import closing

import pytest

from tests.calibrate.two_guests import CPU, DATASET, FIT, SPIN, VALIDATION
from tests.study.programs import started
from tests.study.tiny import tiny
from vftsim.calibrate import fit, validation
from vftsim.calibrate.fit import number_of
from vftsim.calibrate.validation import from_observations, to_observations
from vftsim.cli.main import main
from vftsim.study.store.database import DATABASE

FIT_TWICE = FIT.replace("most_evaluations: 8", "replications: 2\nmost_evaluations: 4")
BY_RUNS = VALIDATION.replace("points: 3", "points: 30").replace("replications: 2", "replications: 3")
LAB_MODEL = tiny(
    subscribers="400",
    ring_time="200 ms",
    hold_time="500 ms",
    pre_registration="{duration: 1 s, rate: 20 /s, transient: 200 ms}",
    stir="{duration: 1 s, steps: 1}",
    steps="{initial: 10 /s, increment: 10 /s, duration: 2 s, transient: 500 ms, most: 2}",
)
LAB_DATASET = """\
name: lab
environments: {bare: {}}
phases: {meaning: a load, repeats: again}
tables:
  cpu: {file: lab.csv, keys: {environment: where, phase: run, repeat: n}, columns: {cpu: {metric: cpu, unit: "%"}}}
"""
BY_RAMPS = """\
name: check
dataset: lab.yaml
replications: 2
edge_replications: 2
edge_duration: 2 s
seed: 3
step_duration: 2 s
transient: 500 ms
environments:
  bare: {model: tiny.yaml, fitted_steps: 1, stop_step: 3, edge_step: 2}
"""


def write(folder, duration="300 ms"):
    for name, text in (
        ("two-guests.yaml", SPIN.replace("500 ms, duration: 2 s", f"100 ms, duration: {duration}")),
        ("dataset.yaml", DATASET),
        ("cpu.csv", CPU),
        ("fit.yaml", FIT_TWICE),
        ("runs.yaml", BY_RUNS),
        ("tiny.yaml", LAB_MODEL),
        ("lab.yaml", LAB_DATASET),
        ("ramps.yaml", BY_RAMPS),
        ("lab.csv", "where,run,n,cpu\nbare,step_1,1,30\nbare,step_2,1,60\n"),
    ):
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def lab(tmp_path):
    (tmp_path / "lab").mkdir()
    return write(tmp_path / "lab")


def stored(folder):
    with closing(sqlite3.connect(folder / DATABASE)) as connection:
        return set(connection.execute("SELECT replication, data FROM replications"))


def said(text):
    return {name: value for name, value in json.loads(text).items() if name != "manifest"}


CASES = {
    "calibrate": (["calibrate", "fit.yaml"], ((fit, "_residuals"),)),
    "validate by runs": (["validate", "runs.yaml"], ((validation, "_observed"),)),
    "validate by ramps": (["validate", "ramps.yaml"], ((validation, "_observed"),)),
}


@pytest.mark.draws
@pytest.mark.thorough
@pytest.mark.parametrize("case", CASES)
def test_what_was_ended_goes_on_and_nothing_is_done_twice(lab, tmp_path, monkeypatch, capsys, case):
    (command, file), simulations = CASES[case]
    words, kept = [command, str(lab / file), "-j", "1", "-q", "--json"], tmp_path / "kept"
    code = main(words)
    whole = said(capsys.readouterr().out)
    ran = []

    def stopped_after(most):
        for owner, name in simulations:
            original = originals[name]

            def counted(task, original=original, name=name):
                if len(ran) == most:
                    raise KeyboardInterrupt
                ran.append(name)
                return original(task)

            monkeypatch.setattr(owner, name, counted)

    originals = {name: getattr(owner, name) for owner, name in simulations}
    for most, finished in ((1, "1 finished run is"), (3, "3 finished runs are")):
        stopped_after(most)
        assert main([*words, "--keep", str(kept)]) == 3
        assert f"{finished} in '{kept}', the same command goes on" in capsys.readouterr().err
        assert len(stored(kept)) == most
    before = stored(kept)
    stopped_after(None)
    assert main([*words, "--keep", str(kept)]) == code
    assert said(capsys.readouterr().out) == whole
    assert said((kept / "answer.json").read_text()) == whole
    assert stored(kept) > before
    assert len(ran) == len(stored(kept)), "none twice"
    assert main([*words, "--keep", str(kept)]) == code
    assert len(ran) == len(stored(kept)), "all from the store"
    assert (kept / "charts.png").read_bytes().startswith(b"\x89PNG"), "the charts of its page"
    assert said(capsys.readouterr().out) == whole


@pytest.mark.thorough
@pytest.mark.parametrize(
    "command", [["calibrate", "fit.yaml"], pytest.param(["validate", "runs.yaml"], marks=pytest.mark.slow)]
)
def test_killed_at_once_and_gone_on(lab, tmp_path, capsys, command):
    write(lab, "2 s")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "VFTSIM_ENGINE": "simpy"}
    words = [command[0], str(lab / command[1]), "-j", "1", "-q", "--json"]
    keep = ["--keep", str(tmp_path / "kept")]
    log = tmp_path / "kept" / f"{DATABASE}-wal"
    with started([sys.executable, "-m", "vftsim", *words, *keep], env=environ) as process:
        end = time.monotonic() + 300
        while not (log.exists() and log.stat().st_size > 4200):  # a run is in
            assert time.monotonic() < end
            assert process.poll() is None
            time.sleep(0.005)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=60)
    assert process.returncode == -9
    before = stored(tmp_path / "kept")
    code = main([*words, *keep])
    found = said(capsys.readouterr().out)
    assert before
    assert before < stored(tmp_path / "kept"), "kept, not computed again"
    assert main(words) == code
    assert said(capsys.readouterr().out) == found


@pytest.mark.thorough
def test_another_calibration_in_the_same_directory_counts_nothing_of_the_first(lab, tmp_path, capsys):
    words = ["calibrate", str(lab / "fit.yaml"), "-j", "1", "-q", "--json", "--keep", str(tmp_path / "kept")]
    assert main(words) == 0
    first, whole = len(stored(tmp_path / "kept")), said(capsys.readouterr().out)
    (lab / "cpu.csv").write_text("where,run,n,small,large\nbare,even,1,40,60\nbare,odd,1,20,80\n")
    assert main(words) == 0
    assert len(stored(tmp_path / "kept")) > first
    assert said(capsys.readouterr().out) != whole
    assert main(["validate", str(lab / "runs.yaml"), "-q", "--keep", str(tmp_path / "kept")]) == 2
    assert "holds a calibration, not a validation" in capsys.readouterr().err


def test_calibrate_can_be_called_again_after_the_package_of_its_name_was_imported(lab, tmp_path):
    import vftsim

    first = vftsim.calibrate(lab / "fit.yaml", keep=tmp_path / "kept")
    again = vftsim.calibrate(lab / "fit.yaml", keep=tmp_path / "kept")
    assert first.fit.values == again.fit.values


def test_number_of_a_point_is_its_own():
    near = [0.1 + 0.2, 5.0], [0.3, 5.0]
    assert len({number_of(point, r) for point in near for r in (0, 1)}) == 4
    assert number_of([0.3, 5.0], 1) == number_of((0.3, 5), 1) < 2**53


def test_observations_come_back_to_the_last_bit():
    seen = {("step_1", "cpu"): 0.1 + 0.2, ("step_1", "delay"): float("inf"), ("step_2", "cpu"): 3.0}
    data = json.loads(json.dumps(from_observations(seen)))
    assert list(to_observations(data).items()) == list(seen.items())
