"""Kill commands at random moments, let the same command go on, and compare with an undisturbed run.

    python experiments/kills/kills.py [--kills 200] [--pairs 50] [--seed 1] [--write]

Every command is started in a directory of its own and hit by SIGKILL, SIGTERM or SIGINT: the command alone, its whole
process group, one of its workers, or loky's resource tracker.  Then it is started again until it is done.  Lost,
mixed or different results, tracebacks and processes that stay behind are counted.  ``--pairs`` starts pairs of
writers on one directory: the second one is refused or goes on after the first, and what is there in the end is the
whole result of each study that is there.

Most commands are children of this process that have imported everything already and begin at once (so a command's time
is that of its work and not of its start); every fifth one is a process of its own.  Where the command or
its group is hit, one in three has workers.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import importlib
import io
import json
import math
import os
import pkgutil
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections import Counter
from contextlib import closing
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "io-faults"))
sys.path.insert(0, str(Path(__file__).parents[2]))

from table import put, written

from tests.study.tiny import tiny

MODEL = tiny(
    subscribers="400",
    pre_registration="{duration: 2 s, rate: 20 /s, transient: 1 s}",
    stir="{duration: 1 s, steps: 1}",
    steps="{initial: 10 /s, increment: 10 /s, duration: 2 s, transient: 500 ms, most: 3}",
)
VFTSIM = [sys.executable, "-m", "vftsim"]
SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
TARGETS = (*("command", "group", "worker") * 3, "tracker")
LONGEST_S = 300
FRESH = 5
DEFECTS = ("tracebacks", "left behind", "could not go on", "different", "mixed", "hung")
HUNG, CRASHED = -99, 99
PAIRS = ("run", "sweep", "capacity", "run --force")
PAGE = Path(__file__).parents[2] / "docs" / "robustness.md"


def commands(model: str) -> dict[str, list[str]]:
    """Return the commands to be killed, without their directory."""
    search = ["--method", "search", "--probability", "0.5", "--resolution", "8", "--budget", "16"]
    return {
        "run": ["run", model, "-n", "6"],
        "run --force": ["run", model, "-n", "4", "--force"],
        "sweep": ["sweep", model, "--grid", "domains.sut.applications.proxy.touch_cost=3 ms,4 ms,5 ms", "-n", "2"],
        "compare": ["compare", model, model, "-n", "3"],
        "compare --protection": ["compare", model, "--protection", "none,lockstep", "-n", "2"],
        "capacity": ["capacity", model, "-n", "8"],
        "capacity --method search": ["capacity", model, *search],
        "failover": ["failover", model, "--protection", "checkpoint", "-n", "4", "--after", "3 s"],
        "availability": [
            "availability",
            model,
            "--mtbf",
            "8760 h",
            "--protection",
            "none,lockstep",
            "-n",
            "2",
            "--after",
            "3 s",
        ],
    }


class Command:
    """A command under way, in a process group of its own; a run goes on only when told to."""

    def __init__(self, words: list[str], folder: Path, jobs: int = 1, *, fresh: bool = False) -> None:
        resume = ["--resume"] if words[0] == "run" and "--force" not in words and folder.exists() else []
        line = [*words, "-j", str(jobs), "-q", "--csv", "-o", str(folder), *resume]
        handle, name = tempfile.mkstemp(dir=folder.parent)
        os.close(handle)
        self.errors = Path(name)
        self._process: subprocess.Popen[bytes] | None = None
        self.code: int | None = None
        if fresh:
            with self.errors.open("wb") as errors:
                self._process = subprocess.Popen(
                    [*VFTSIM, *line], stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True
                )
            self.pid = self._process.pid
            return
        self.pid = os.fork()
        if self.pid == 0:
            _be(line, self.errors)

    def ended(self, within_s: float) -> bool:
        """Wait so long at most; whether the command has ended."""
        end = time.monotonic() + within_s
        while self.code is None:
            if self._process is not None:
                self.code = self._process.poll()
            elif (found := os.waitpid(self.pid, os.WNOHANG))[0]:
                self.code = os.waitstatus_to_exitcode(found[1])
            if time.monotonic() > end:
                break
            time.sleep(0.01)
        return self.code is not None

    def end(self) -> tuple[int, str]:
        """Return the exit code and what was said on standard error; one that hangs is ended, code -99."""
        if not self.ended(LONGEST_S):
            os.killpg(self.pid, signal.SIGKILL)
            self.ended(LONGEST_S)
            self.code = HUNG
        assert self.code is not None
        return self.code, self.errors.read_text(errors="replace")


def _be(line: list[str], errors: Path) -> None:
    """Go on as a command that was started with these words, and never return."""
    code = CRASHED
    try:
        os.setsid()
        nothing = os.open(os.devnull, os.O_RDWR)
        for descriptor, target in ((nothing, 0), (nothing, 1), (os.open(errors, os.O_WRONLY), 2)):
            os.dup2(descriptor, target)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["vftsim", *line]
        code = importlib.import_module("vftsim.cli.main").console()
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
    except BaseException:
        traceback.print_exc()
    finally:
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def prepare(model: Path, place: Path) -> None:
    """Import everything, and do once what every command does first."""
    package = importlib.import_module("vftsim")
    for module in pkgutil.walk_packages(package.__path__, "vftsim."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    figure = importlib.import_module("matplotlib.figure").Figure
    figure.savefig = lambda _, path, **__: Path(path).write_bytes(b"a figure")  # half of the time of a short run
    with contextlib.redirect_stdout(io.StringIO()):
        main_of = importlib.import_module("vftsim.cli.main").main
        code = main_of(["run", str(model), "-n", "2", "-j", "1", "-q", "-o", str(place / "first")])
    assert code == 0
    # A child that begins here must not run what this process runs at its end.
    assert threading.active_count() == 1


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


def started_with(pid: int) -> str:
    """Return the words a process was started with."""
    with contextlib.suppress(OSError):
        return (Path("/proc") / str(pid) / "cmdline").read_text().replace("\0", " ")
    return ""


def hit(process: Command, target: str, number: signal.Signals, choose: random.Random) -> None:
    """Send a signal to a command, its group, or one of its workers."""
    try:
        if target == "group":
            os.killpg(process.pid, number)
        elif target in ("worker", "tracker"):
            mark = "popen_loky" if target == "worker" else "resource_tracker"
            found = [pid for pid in members(process.pid) if mark in started_with(pid)]
            os.kill(choose.choice(found) if found else process.pid, number)
        else:
            os.kill(process.pid, number)
    except ProcessLookupError:
        pass


def results(folder: Path) -> dict[str, object]:
    """Return what must be equal: every file without times of day, every stored replication, the names of figures."""
    found: dict[str, object] = {}
    for path in sorted(folder.rglob("*")):
        if path.suffix == ".json":
            data = json.loads(path.read_text())
            found[path.name] = data.get("replications") if path.name == "manifest.json" else [*data.items()][1:]
        elif path.suffix == ".png":
            found[str(path.relative_to(folder))] = "a figure"
        elif path.is_file() and not path.name.startswith("vftsim.sqlite"):
            found[str(path.relative_to(folder))] = path.read_bytes()
    with closing(sqlite3.connect(folder / "vftsim.sqlite")) as connection:
        rows = connection.execute("SELECT key, replication, data FROM replications JOIN studies ON studies.id = study")
        found["stored"] = sorted(rows)
    return found


def kill_once(
    name: str, words: list[str], folder: Path, known_s: dict[int, float], count: int, choose: random.Random
) -> Counter[str]:
    """Kill one command, go on, and say what was found; ``known_s`` is how long it takes with so many workers."""
    target, number = choose.choice(TARGETS), choose.choice(SIGNALS)
    jobs = 2 if target in ("worker", "tracker") else choose.choice((1, 1, 2))
    after_s = choose.uniform(0.05, 1.0) * known_s[jobs]
    process = Command(words, folder, jobs, fresh=count % FRESH == 0)
    if not process.ended(after_s):
        hit(process, target, number, choose)
    code, errors = process.end()
    found = Counter({"kills": 1, f"{number.name} to {target}": 1, "hung": int(code == HUNG)})
    found["ended by SIGKILL"] = int(code == -signal.SIGKILL)
    found["ended by SIGINT or SIGTERM"] = int(code in (-signal.SIGINT, -signal.SIGTERM))
    if code >= 0:
        found[f"ended with {code}"] = 1
    found["tracebacks"] = int("Traceback" in errors and not _is_of_tracker(errors))
    found["tracebacks of a killed resource tracker's successor"] = int(_is_of_tracker(errors))
    end = time.monotonic() + 10.0
    while members(process.pid) and time.monotonic() < end:
        time.sleep(0.05)
    found["left behind"] = len(members(process.pid))
    again, more = Command(words, folder, choose.choice((1, 1, 1, 2))).end()
    found["could not go on"] = int(again != 0)
    if again != 0 or found["tracebacks"] or found["left behind"]:
        print(f"{name}, {number.name} to {target} after {after_s:.1f} s: {(errors + more)[-3000:]}", flush=True)
    return found


def _is_of_tracker(errors: str) -> bool:
    """Whether every traceback is one of loky's tracker that stands in for a killed one (docs/robustness.md)."""
    parts = errors.split("Traceback (most recent call last)")[1:]
    return bool(parts) and all("resource_tracker.py" in part and "KeyError" in part for part in parts)


def pair_once(words: list[str], folder: Path, alone: dict[str, dict[str, object]], late_s: float) -> Counter[str]:
    """Start two writers of different studies on one directory: one result, of one study."""
    first = Command([*words, "--seed", "1"], folder)
    first.ended(late_s)
    both = [first, Command([*words, "--seed", "2"], folder)]
    ends = [process.end() for process in both]
    seed = str(json.loads((folder / "manifest.json").read_text())["seed"])
    found = Counter({"pairs": 1, f"pair ended with {sorted(code for code, _ in ends)}": 1})
    found["tracebacks"] = sum("Traceback" in errors for _, errors in ends)
    whole, there = dict(alone[seed]), results(folder)
    stored = {row for row in there.pop("stored") if row in whole["stored"]}  # type: ignore[attr-defined, operator]
    found["mixed"] = int(len(stored) != len(whole.pop("stored")) or there != whole)  # type: ignore[arg-type]
    if found["tracebacks"] or found["mixed"]:
        print(f"{words[0]}: {[errors[-2000:] for _, errors in ends]}", flush=True)
    return found


def undisturbed(
    known: dict[str, list[str]], place: Path
) -> tuple[dict[str, dict[str, object]], dict[str, dict[int, float]]]:
    """Return every command's result, and how long it takes with so many workers, roughly."""
    whole: dict[str, dict[str, object]] = {}
    seconds: dict[str, dict[int, float]] = {}
    for name, words in known.items():
        folder, begun = place / name, time.monotonic()
        code, errors = Command(words, folder).end()
        assert code == 0, f"{name}: {errors}"
        took_s = time.monotonic() - begun
        seconds[name] = {1: took_s, 2: 2.0 * took_s}  # workers have to start, and the commands are short
        whole[name] = results(folder)
    print({name: [round(each, 1) for each in times.values()] for name, times in seconds.items()}, file=sys.stderr)
    return whole, seconds


def pairs(known: dict[str, list[str]], place: Path, count: int, choose: random.Random, end: float) -> Counter[str]:
    """Start so many pairs of writers and say what was found."""
    found = Counter[str]()
    alone: dict[str, dict[str, dict[str, object]]] = {}
    for number in range(count):
        if time.monotonic() > end:
            break
        name = PAIRS[number % len(PAIRS)]
        if name not in alone:
            alone[name] = {}
            for seed in ("1", "2"):
                folder = place / f"{name} alone {seed}"
                Command([*known[name], "--seed", seed], folder).end()
                alone[name][seed] = results(folder)
        folder = place / f"pair {number}"
        found += pair_once(known[name], folder, alone[name], choose.choice((0.0, 0.0, 0.5, 2.0)))
        shutil.rmtree(folder)
        print(f"{number + 1} of {count} pairs: {name} {dict(found)}", file=sys.stderr, flush=True)
    return found


def keep(found: Counter[str], tally: Path | None) -> None:
    """Note what was found so far."""
    if tally:
        tally.write_text(json.dumps(found))


def main() -> int:
    """Kill as often as asked; exit code 1 when anything was lost."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=math.inf, help="end after this time, however many it were")
    parser.add_argument("--tally", type=Path, metavar="FILE", help="count on from what stands here")
    parser.add_argument("--write", action="store_true", help="write the table into docs/robustness.md")
    chosen = parser.parse_args()
    # A job in the background ignores it, and so would every command that is started here.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    found = Counter[str](json.loads(chosen.tally.read_text()) if chosen.tally and chosen.tally.exists() else {})
    # No TemporaryDirectory: a child that is a command would remove it when it ends.
    place = Path(tempfile.mkdtemp())
    try:
        model = place / "tiny.yaml"
        model.write_text(MODEL)
        prepare(model, place)
        end = time.monotonic() + 60.0 * chosen.minutes
        known = commands(str(model))
        whole, seconds = undisturbed(known, place)
        for count in range(found["kills"], chosen.kills):
            if time.monotonic() > end:
                break
            choose = random.Random(f"{chosen.seed} {count}")
            name = list(known)[count % len(known)]
            folder = place / f"killed {count}"
            found += kill_once(name, known[name], folder, seconds[name], count, choose)
            if results(folder) != whole[name]:
                found["different"] += 1
                print(f"no. {count}, {name}: another result", flush=True)
            shutil.rmtree(folder)
            keep(found, chosen.tally)
            print(f"{count + 1} of {chosen.kills}: {name} {dict(found)}", file=sys.stderr, flush=True)
        more = max(0, chosen.pairs - found["pairs"])
        found += pairs(known, place, more, random.Random(f"{chosen.seed} {found['pairs']}"), end + 12 * chosen.minutes)
        keep(found, chosen.tally)
    finally:
        shutil.rmtree(place, ignore_errors=True)
    for what in DEFECTS:
        found[what] += 0
    text = written(["what", "how often"], [[what, str(number)] for what, number in sorted(found.items())])
    print(text)
    if chosen.write:
        put(PAGE, "kills.py", text)
    return int(any(found[what] for what in DEFECTS))


if __name__ == "__main__":
    sys.exit(main())
