"""The same study of tiny tasks in one process, two processes, on Dask clusters and in shards; and under kills.

    python experiments/cluster/cluster.py [--points 20] [--replications 10] [--workers 20] [--coordinators 3] [--seed 1]

What has finished is in ``.cluster-experiment/results.json`` and is not done again; ``--again`` begins from nothing.
Stores are compared row by row with that of one process.  Everything is bound to loopback.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tests.study.tiny import tiny

PLACE = Path(".cluster-experiment")
MODEL = tiny(
    subscribers="400",
    pre_registration="{duration: 1 s, rate: 20 /s, transient: 500 ms}",
    stir="{duration: 1 s, steps: 1}",
    steps="{initial: 10 /s, increment: 10 /s, duration: 2 s, transient: 500 ms, most: 1}",
)
INTERRUPTED = 3


class Dask:
    """A scheduler, and workers that their nannies replace."""

    def __init__(self, folder: Path, workers: int) -> None:
        self.file = folder / f"scheduler-{time.monotonic_ns()}.json"
        self._log = (folder / "dask.log").open("a")
        scheduler = ["distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", str(self.file)]
        worker = ["distributed.cli.dask_worker", "--nworkers", str(workers), "--nthreads", "1", "--scheduler-file"]
        common = ["--host", "127.0.0.1", "--no-dashboard"]
        self._all = [self._begin([*scheduler, *common])]
        while not self.file.exists():
            time.sleep(0.05)
        self._all.append(self._begin([*worker, str(self.file), *common]))
        from distributed import Client

        with Client(scheduler_file=str(self.file), set_as_default=False) as client:
            client.wait_for_workers(workers, timeout=120)

    def _begin(self, words: list[str]) -> subprocess.Popen[bytes]:
        line = [sys.executable, "-m", *words]
        return subprocess.Popen(line, stdout=self._log, stderr=self._log, start_new_session=True)

    def worker_pids(self) -> list[int]:
        """Return the processes that work: the nannies' children that listen to a parent and have imported Dask."""
        nanny, found = self._all[1].pid, []
        for path in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                said = path.joinpath("stat").read_text().rsplit(")", 1)[1].split()
                line = path.joinpath("cmdline").read_bytes()
                if int(said[1]) == nanny and b"spawn_main" in line:
                    found.append(int(path.name))
        return found

    def end(self) -> None:
        """End all of it."""
        for process in reversed(self._all):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self._log.close()


def command(chosen: argparse.Namespace, model: Path, folder: Path, *more: str) -> list[str]:
    costs = ",".join(f"{3 + n / 100:.2f} ms" for n in range(chosen.points))
    grid = f"domains.sut.applications.proxy.touch_cost={costs}"
    return [
        sys.executable,
        "-m",
        "vftsim",
        "sweep",
        str(model),
        "--grid",
        grid,
        "-n",
        str(chosen.replications),
        "-q",
        "--csv",
        "--yes",
        "-o",
        str(folder),
        *more,
    ]


def rows(folder: Path) -> list[tuple[object, ...]]:
    """Return every finished replication, by study and number."""
    text = "SELECT key, replication, data FROM replications JOIN studies ON studies.id = study ORDER BY 1, 2"
    with contextlib.closing(sqlite3.connect(folder / "vftsim.sqlite")) as connection:
        return connection.execute(text).fetchall()


def timed(words: list[str]) -> dict[str, float]:
    """Run a command; return wall time, and CPU time of it and its children that ended."""
    before, begin = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode:
        raise SystemExit(done.stderr.decode())
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall_s": round(time.monotonic() - begin, 2), "cpu_s": round(used, 2)}


def killed(chosen: argparse.Namespace, model: Path, folder: Path, scratch: Path) -> dict[str, int]:
    """Run the study on a cluster while its workers and the command itself are killed at random."""
    pick, found = random.Random(chosen.seed), {"worker kills": 0, "coordinator kills": 0, "begun": 0}
    cluster = Dask(scratch, 2)
    words = command(chosen, model, folder, "--cluster", str(cluster.file))
    try:
        while True:
            found["begun"] += 1
            run = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True)
            kills = 0
            while run.poll() is None:
                time.sleep(pick.uniform(0.5, 2.5))
                if found["worker kills"] < chosen.workers and (pids := cluster.worker_pids()):
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pick.choice(pids), signal.SIGKILL)
                        found["worker kills"] += 1
                        kills += 1
                if kills >= 3 and found["coordinator kills"] < chosen.coordinators and run.poll() is None:
                    run.kill()
                    found["coordinator kills"] += 1
            if run.returncode == 0:
                return found
            said = run.stderr.read().decode() if run.stderr else ""
            if "Traceback" in said or run.returncode not in (-signal.SIGKILL, INTERRUPTED):
                raise SystemExit(said)
    finally:
        cluster.end()


def measured(name: str, chosen: argparse.Namespace, model: Path, scratch: Path) -> dict[str, object]:
    """Run the study in one of the ways, into a fresh directory."""
    folder = PLACE / name.replace(" ", "-")
    shutil.rmtree(folder, ignore_errors=True)
    found: dict[str, object] = {}
    if name.startswith("processes"):
        found |= timed(command(chosen, model, folder, "-j", name.split()[1]))
    elif name.startswith("dask"):
        cluster = Dask(scratch, int(name.split()[1]))
        try:
            found |= timed(command(chosen, model, folder, "--cluster", str(cluster.file)))
        finally:
            cluster.end()
    elif name == "shards 4":
        shards = [scratch / f"shard-{n}" for n in range(1, 5)]
        parts = [timed(command(chosen, model, at, "-j", "1", "--shard", f"{n}/4")) for n, at in enumerate(shards, 1)]
        merged = timed([sys.executable, "-m", "vftsim", "merge", *map(str, shards), "-o", str(folder)])
        found |= {key: round(sum(part[key] for part in parts), 2) for key in parts[0]}
        found |= {f"merge_{key}": value for key, value in merged.items()}
    else:
        found |= killed(chosen, model, folder, scratch)
    there, whole = rows(folder), rows(PLACE / "processes-1")
    return {**found, "rows": len(there), "equal": there == whole}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    for name, default in (("points", 20), ("replications", 10), ("workers", 20), ("coordinators", 3), ("seed", 1)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--again", action="store_true")
    chosen = parser.parse_args()
    if chosen.again:
        shutil.rmtree(PLACE, ignore_errors=True)
    PLACE.mkdir(exist_ok=True)
    results = PLACE / "results.json"
    known = json.loads(results.read_text()) if results.is_file() else {}
    for name in ("processes 1", "processes 2", "dask 2", "dask 4", "dask 8", "shards 4", "kills"):
        key = f"{name}, {chosen.points} x {chosen.replications}"
        if key not in known:
            model = PLACE / "tiny.yaml"
            model.write_text(MODEL)
            with tempfile.TemporaryDirectory() as scratch:
                known[key] = measured(name, chosen, model, Path(scratch))
            results.write_text(json.dumps(known, indent=2) + "\n")
        print(key, known[key], flush=True)


if __name__ == "__main__":
    main()
