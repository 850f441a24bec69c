"""Kill commands at random moments, let the same command go on, and compare with an undisturbed run.

    python experiments/kills/kills.py [--kills 200] [--pairs 50] [--seed 1] [--write]

Every command is started in a directory of its own and hit by SIGKILL, SIGTERM or SIGINT: the command alone, its whole
process group, or one of its workers.  Then it is started again until it is done.  Lost, mixed or different results,
tracebacks and processes that stay behind are counted.  ``--pairs`` starts pairs of writers on one directory: the second
one is refused or goes on after the first, and what is there in the end is the whole result of each study that is there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "io-faults"))

from table import put, written

MODEL = """\
name: tiny
domains:
  sut:
    interfaces:
      eth0: {path: {kind: moderated}}
    applications:
      proxy: {kind: sip_server, touch_cost: 4 ms, register_touch_cost: 4 ms}
workloads:
  calls:
    kind: ims_bench
    to: sut.proxy
    subscribers: 2000
    registered: 50 %
    ring_time: 500 ms
    hold_time: 1 s
    pre_registration: {duration: 3 s, rate: 20 /s, transient: 1 s}
    stir: {duration: 2 s, steps: 1}
    steps: {initial: 10 /s, increment: 10 /s, duration: 6 s, transient: 2 s, most: 3}
"""
VFTSIM = [sys.executable, "-m", "vftsim"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TARGETS = ("command", "group", "worker")
LONGEST_S = 300
PAIRS = ("run", "sweep", "capacity", "run --force")
PAGE = Path(__file__).parents[2] / "docs" / "robustness.md"


def commands(model: str) -> dict[str, list[str]]:
    """Return the commands to be killed, without their directory."""
    search = ["--method", "search", "--probability", "0.5", "--resolution", "8", "--budget", "40"]
    return {
        "run": ["run", model, "-n", "12"],
        "run --force": ["run", model, "-n", "8", "--force"],
        "sweep": ["sweep", model, "--grid", "domains.sut.applications.proxy.touch_cost=3 ms,4 ms,5 ms", "-n", "3"],
        "compare": ["compare", model, model, "-n", "6"],
        "compare --protection": ["compare", model, "--protection", "none,lockstep", "-n", "3"],
        "capacity": ["capacity", model, "-n", "10"],
        "capacity --method search": ["capacity", model, *search],
        "failover": ["failover", model, "--protection", "checkpoint", "-n", "6", "--after", "3 s"],
        "availability": ["availability", model, "--mtbf", "8760 h", "--protection", "none,lockstep", "-n", "3",
                         "--after", "3 s"],
    }  # fmt: skip


def start(words: list[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own; a run goes on only when told to."""
    resume = ["--resume"] if words[0] == "run" and "--force" not in words and folder.exists() else []
    options = ["-q", "--csv", "-o", str(folder), *resume]
    return subprocess.Popen(
        [*VFTSIM, *words, *options], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
    )


def members(group: int) -> list[int]:
    """Return the processes of a group that are alive (Linux)."""
    found = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            found.append(int(entry.name))
    return found


def hit(process: subprocess.Popen[bytes], target: str, number: signal.Signals, choose: random.Random) -> None:
    """Send a signal to a command, its group, or one of its workers."""
    try:
        if target == "group":
            os.killpg(process.pid, number)
        elif target == "worker":
            workers = [pid for pid in members(process.pid) if pid != process.pid]
            os.kill(choose.choice(workers) if workers else process.pid, number)
        else:
            process.send_signal(number)
    except ProcessLookupError:
        pass


def results(folder: Path) -> dict[str, object]:
    """Return what must be equal: every file without times of day, every stored replication."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json":
            data = json.loads(path.read_text())
            found[path.name] = data.get("replications") if path.name == "manifest.json" else [*data.items()][1:]
        elif path.is_file() and not path.name.startswith("vftsim.sqlite"):
            found[str(path.relative_to(folder))] = path.read_bytes()
    with closing(sqlite3.connect(folder / "vftsim.sqlite")) as connection:
        rows = connection.execute("SELECT key, replication, data FROM replications JOIN studies ON studies.id = study")
        found["stored"] = sorted(rows)
    return found


def kill_once(name: str, words: list[str], folder: Path, whole_s: float, choose: random.Random) -> Counter[str]:
    """Kill one command, go on, and say what was found; the reference stands in ``folder``'s neighbour."""
    target, number = choose.choice(TARGETS), choose.choice(SIGNALS)
    after_s = choose.uniform(0.3, 1.0) * whole_s
    process = start(words, folder)
    try:
        process.wait(after_s)
    except subprocess.TimeoutExpired:
        hit(process, target, number, choose)
    first = process.communicate(timeout=LONGEST_S)[1]
    found = Counter({"kills": 1, f"ended with {process.returncode}": 1, "tracebacks": int(b"Traceback" in first)})
    end = time.monotonic() + 10.0
    while members(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    found["left behind"] = len(members(process.pid))
    again = start(words, folder)
    errors = again.communicate(timeout=LONGEST_S)[1]
    found["could not go on"] = int(again.returncode != 0)
    if again.returncode != 0 or found["tracebacks"]:
        print(
            f"{name}, {number.name} to {target} after {after_s:.1f} s: {(first + errors).decode()[-3000:]}", flush=True
        )
    return found


def pair_once(words: list[str], folder: Path) -> Counter[str]:
    """Start two writers of different studies on one directory: one result, of one study."""
    both = [start([*words, "--seed", seed], folder) for seed in ("1", "2")]
    errors = [process.communicate(timeout=LONGEST_S)[1] for process in both]
    codes = sorted(process.returncode for process in both)
    seeds = json.loads((folder / "manifest.json").read_text())["seed"]
    alone = folder.with_name(f"{folder.name} alone")
    start([*words, "--seed", str(seeds)], alone).communicate(timeout=LONGEST_S)
    found = Counter({"pairs": 1, f"pair ended with {codes}": 1})
    found["tracebacks"] = sum(b"Traceback" in error for error in errors)
    whole, there = results(alone), results(folder)
    stored = {row for row in there.pop("stored") if row in whole["stored"]}  # type: ignore[attr-defined]
    found["mixed"] = int(len(stored) != len(whole.pop("stored")) or there != whole)  # type: ignore[arg-type]
    return found


def main() -> int:
    """Kill as often as asked; exit code 1 when anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", default="2")
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after this time, however many it were")
    parser.add_argument("--write", action="store_true", help="write the table into docs/robustness.md")
    chosen = parser.parse_args()
    choose, found = random.Random(chosen.seed), Counter[str]()
    with tempfile.TemporaryDirectory() as place:
        model = Path(place) / "tiny.yaml"
        model.write_text(MODEL)
        known = {name: [*words, "-j", chosen.jobs] for name, words in commands(str(model)).items()}
        whole, seconds = {}, {}
        for name, words in known.items():
            begun = time.monotonic()
            start(words, Path(place) / name).communicate(timeout=LONGEST_S)
            seconds[name] = time.monotonic() - begun
            whole[name] = results(Path(place) / name)
        end = time.monotonic() + 60.0 * chosen.minutes
        for count in range(chosen.kills):
            if time.monotonic() > end:
                break
            name = list(known)[count % len(known)]
            folder = Path(place) / f"killed {count}"
            found += kill_once(name, known[name], folder, seconds[name], choose)
            found["different"] += int(results(folder) != whole[name])
            print(f"{count + 1} of {chosen.kills}: {name} {dict(found)}", file=sys.stderr, flush=True)
        for count in range(chosen.pairs):
            if time.monotonic() > end + 60.0 * chosen.minutes / 5:
                break
            found += pair_once(known[PAIRS[count % len(PAIRS)]], Path(place) / f"pair {count}")
    text = written(["what", "how often"], [[what, str(number)] for what, number in sorted(found.items())])
    print(text)
    if chosen.write:
        put(PAGE, "kills.py", text)
    return int(any(found[what] for what in ("tracebacks", "left behind", "could not go on", "different", "mixed")))


if __name__ == "__main__":
    sys.exit(main())
