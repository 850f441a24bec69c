"""The commands from outside: what they print, what they write, how they end."""

import contextlib
import csv
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time

import pytest
from programs import started

from vftsim.cli import main as main_module
from vftsim.cli.main import main
from vftsim.study.runs.workers import ENDING

COMMAND = [sys.executable, "-m", "vftsim.cli.main"]


def run_main(capsys, *arguments):
    assert main([str(a) for a in arguments]) == 0
    return capsys.readouterr().out


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from vftsim.cli.main import main; main(['--help']);"
        "heavy = {'scipy', 'matplotlib', 'pandas', 'numpy', 'loky', 'simpy', 'rich.markdown'} & set(sys.modules);"
        "sys.exit(f'imported {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    for name in ("run", "capacity", "compare", "models", "schema", "Exit codes"):
        assert name in done.stdout


def test_a_run_of_next_to_nothing_imports_no_more_than_it_needs(tiny_path):
    """Tables of pandas, quantiles of scipy and worker processes take 0.1 to 0.3 CPU s each before they do anything."""
    code = (
        "import sys; from vftsim.cli.main import main; code = main(['run', sys.argv[1], '-n', '1', '-q']);"
        "heavy = {'scipy.special', 'matplotlib', 'pandas', 'loky', 'simpy'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else code)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tiny_path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "step_1" in done.stdout


def test_the_shell_completes_commands_options_and_shipped_models():
    def offered(words: str) -> list[str]:
        asked = {"_VFTSIM_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
        program = "from vftsim.cli.main import build_app; build_app()(prog_name='vftsim')"
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env={**os.environ, **asked}, capture_output=True, text=True, check=False)
        return done.stdout.split()

    assert offered("vftsim cap") == ["capacity"]
    assert offered("vftsim run lab-virtual-") == ["lab-virtual-ft", "lab-virtual-shared-nic"]
    assert "--objective" in offered("vftsim capacity --obj")
    assert offered("vftsim compare lab-native lab-virtual-f") == ["lab-virtual-ft"]
    assert offered("vftsim failover lab-virtual --protection coarse") == ["coarse_lockstep"]
    assert offered("vftsim sweep xen-media --scheduler sedf,cred") == ["sedf,credit", "sedf,credit2"]
    assert offered("vftsim calibrate linux-lab/w") == ["linux-lab/waking"]


def test_importing_the_package_imports_nothing_else():
    loaded = "{m for m in sys.modules if m.startswith('vftsim.') and not m.startswith('vftsim.interface')}"
    others = "{'numpy', 'pandas', 'pydantic', 'matplotlib', 'simpy'} & sys.modules.keys()"
    code = f"import vftsim, sys; sys.exit({loaded} != {{'vftsim._version'}} or bool({others}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_version(capsys):
    from vftsim import __version__

    assert run_main(capsys, "--version") == f"vftsim {__version__}\n"


def test_one_replication_is_not_said_to_be_several(tiny_path, capsys):
    assert "\n1 replication, seed 5. " in run_main(capsys, "run", tiny_path, "-n", 1, "--seed", 5, "-j", 1, "-q")


def test_run_prints_n_interval_and_seed(tiny_path, capsys):
    out = run_main(capsys, "run", tiny_path, "-n", 2, "--seed", 5, "-j", 1, "-q")
    assert "seed 5" in out
    assert "2 replications" in out
    assert "95 % interval" in out
    assert "step_3" in out


def test_run_json_is_one_document_with_manifest_and_tables(tiny_path, capsys):
    data = json.loads(run_main(capsys, "run", tiny_path, "-n", 2, "-j", 1, "-q", "--json"))
    assert data["manifest"]["seed"] == 1
    assert data["manifest"]["models"][0]["resolved"]["domains"]["sut"]["applications"]["proxy"]["touch_cost"] == "4 ms"
    assert {"steps", "per_second", "delays", "percentiles", "figures", "windows", "drops"} == set(data["tables"])
    row = next(r for r in data["summary"] if r["phase"] == "step_1" and r["metric"] == "cpu_percent")
    assert row["n"] == 2
    assert row["low"] < row["estimate"] < row["high"]


def test_run_csv_is_the_summary(tiny_path, capsys):
    rows = list(csv.DictReader(io.StringIO(run_main(capsys, "run", tiny_path, "-n", 1, "-j", 1, "-q", "--csv"))))
    assert {"steps", "per_second", "delays", "figures", "windows"} == {row["table"] for row in rows}
    assert "workloads.calls.at_10.setup.p99" in {row["figure"] for row in rows}
    assert {"PX_TRT-SES1", "PX_TRT-REG4"} <= {row["metric"] for row in rows}


@pytest.mark.thorough
def test_run_all_tables(tiny_path, capsys):
    out = run_main(capsys, "run", tiny_path, "-n", 1, "-j", 1, "-q", "--tables", "all")
    for title in ("share of the attempts", "memory free, MB", "retransmissions, /s", "BYE to 200", "ims_dereg"):
        assert title in out


@pytest.mark.thorough
def test_capacity_says_what_passes_and_what_fails(tiny_path, capsys):
    out = " ".join(run_main(capsys, "capacity", tiny_path, "-n", 3, "-j", 1, "-q").split())
    assert "Capacity by the lab's ramp" in out
    assert "n=3 ramps" in out
    assert re.search(r"passes [1-9]0 SAPS \(\d of 3 ramps\), fails [1-9]0 \(\d of 3 ramps\)", out)
    assert "Ramps by step" in out


def test_capacity_json(tiny_path, capsys):
    data = json.loads(run_main(capsys, "capacity", tiny_path, "-n", 3, "-j", 1, "-q", "--json"))
    (row,) = data["capacity"]
    assert (row["capacity"], row["n"], row["interval"]) == ("ramp", 3, "range")
    assert row["passes_saps"] < row["fails_saps"]
    assert min(row["ramps_passing"], row["ramps_failing"]) >= 2
    assert row["ramps_unfailed"] == 0
    assert len(data["ramp"]["replications"]) == 3


@pytest.mark.own_process
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_only_the_first_signal_interrupts_the_console(monkeypatch, number):
    """A second one would kill the programs that end the workers, and leave the command hanging."""

    def sent_twice():
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), number)
        os.kill(os.getpid(), number)
        assert signal.getsignal(number) == signal.SIG_IGN
        return 3

    monkeypatch.setattr(main_module, "main", sent_twice)
    before = {each: signal.getsignal(each) for each in ENDING}
    try:
        assert main_module.console() == 3
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def test_an_interruption_that_a_library_disguises_is_one(monkeypatch, capsys):
    def disguised(*_):
        raise ValueError("Error calling function: KeyboardInterrupt: ")

    monkeypatch.setattr("vftsim.study.runs.model.load_model", disguised)
    assert main(["run", "lab-native"]) == 3
    assert capsys.readouterr().err == "vftsim: interrupted; nothing had finished\n"


def test_what_is_ignored_from_outside_stays_ignored(monkeypatch):
    monkeypatch.setattr(main_module, "main", lambda: int(signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN))
    before = {each: signal.getsignal(each) for each in ENDING}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert main_module.console() == 0
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


@pytest.mark.thorough
def test_capacity_search_prints_the_curve_and_the_limit(tiny_path, capsys):
    out = run_main(
        capsys,
        "capacity",
        tiny_path,
        "--method",
        "search",
        "--budget",
        60,
        "--resolution",
        8,
        "--probability",
        0.8,
        "-j",
        1,
        "-q",
    )
    assert "Capacity at constant load" in out
    assert re.search(r"Limiting resource: (1 pCPU|sut: 1 vCPU)", out)
    assert re.search(r"Capacity at constant load: [\d.]+ SAPS, in \[", out), "24 runs without a failure pass a load"
    assert "not the ramp's capacity, and it may lie above: the ramp tries nothing between" in out


@pytest.mark.thorough
def test_capacity_after_a_stop_prints_safe_steady_and_recovery(tiny_path, capsys):
    """Durations of the command line reach the fault as whole nanoseconds."""
    stop = (
        "--after-stop",
        "1.5 s",
        "--window",
        "2 s",
        "--probability",
        0.5,
        "--budget",
        16,
        "--resolution",
        8,
        "-j",
        1,
        "-q",
        "--json",
    )
    data = json.loads(run_main(capsys, "capacity", tiny_path, *stop))
    assert {row["capacity"] for row in data["capacity"]} >= {"after_stop", "recovery"}
    assert (data["after_stop"]["stop_ns"], data["after_stop"]["window_ns"]) == (1_500_000_000, 2_000_000_000)


@pytest.mark.thorough
def test_compare_prints_ratios(tiny_path, capsys):
    out = " ".join(run_main(capsys, "compare", tiny_path, tiny_path, "-n", 2, "-j", 1, "-q").split())
    assert "ratio to" in out
    assert "passes" in out
    assert "interval of the middle, at least 95 %" in out


def test_models_lists_and_shows(tiny_path, capsys):
    assert "lab-native" in run_main(capsys, "models")
    shown = run_main(capsys, "models", tiny_path, "--set", "domains.sut.applications.proxy.touch_cost=5 ms")
    assert "touch_cost: 5 ms" in shown
    assert "transaction_wait: 5 s" in shown, "defaults are written out"


def test_schema_is_json(capsys):
    assert json.loads(run_main(capsys, "schema"))["title"] == "vftsim model"
    assert json.loads(run_main(capsys, "schema", "calibration"))["title"] == "vftsim calibration"


def wait_for(condition, seconds=60.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


@pytest.mark.thorough
@pytest.mark.parametrize(("jobs", "how"), [(1, signal.SIGTERM), (2, signal.SIGINT)])
def test_an_interrupted_run_keeps_finished_replications(tiny_path, tmp_path, capsys, jobs, how):
    """Interrupt after two of very many: exit code 3, a whole result, no traceback, and it can be continued."""
    out = tmp_path / "out"
    one_step = ["--set", "workloads.calls.steps.most=1"]
    words = [*COMMAND, "run", str(tiny_path), *one_step, "-n", "5000", "-j", str(jobs), "-q", "-o", str(out), "--csv"]
    log = out / "vftsim.sqlite-wal"
    with started(words, text=True) as process:
        wait_for(lambda: log.exists() and log.stat().st_size > 60_000)  # some replications in
        os.killpg(process.pid, how)  # as a terminal or a batch system does: to every process
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 3, stderr
    assert "Traceback" not in stderr
    assert "--resume continues" in stderr
    assert stdout.startswith("figure,unit")
    manifest = json.loads((out / "manifest.json").read_text())
    done = len(manifest["replications"])
    assert done >= 2
    assert (manifest["state"], manifest["replications_wanted"]) == ("interrupted", 5000)
    with contextlib.closing(sqlite3.connect(out / "vftsim.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM replications").fetchone() == (done,)
    more = max(manifest["replications"]) + 2
    run_main(capsys, "run", tiny_path, *one_step, "-n", more, "-j", 1, "-q", "-o", out, "--resume", "--csv")
    assert json.loads((out / "manifest.json").read_text())["replications"] == list(range(more))


@pytest.mark.thorough
def test_ctrl_c_before_anything_is_done_writes_nothing(tiny_path, tmp_path):
    long = ["--set", "workloads.calls.steps.duration=5 h", "--yes"]
    words = [*COMMAND, "run", str(tiny_path), *long, "-j", "1", "-q", "-o", "out"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with started(words, text=True, cwd=tmp_path, env=environment) as process:
        wait_for((tmp_path / "out" / "vftsim.sqlite-wal").exists)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 3, stderr
    assert stdout == ""
    assert "Traceback" not in stderr
    assert [p.name for p in tmp_path.iterdir()] == ["tiny.yaml"]
