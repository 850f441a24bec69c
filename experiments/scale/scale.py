"""What a million points on a thousand cores need, from what one machine can measure; prints JSON.

    python experiments/scale/scale.py [--rows 100000] [--points 1000] [--tasks 150]

1. **Design**: time and memory of a point of a study, before its first run.
2. **Store**: time to keep a result (each durable when it has arrived), bytes of a row, the same at the largest size,
   time to open it and to find a point's result.
3. **Coordinator**: results a second through Dask, from workers whose tasks sleep, each result kept in the store.
4. **Check**: the coordinator with its store as one server, workers as others (two tasks each, one under way), a model
   of vftsim itself: its rate beside the measured one for tasks of several lengths, its saturation for 1,000 workers.

Times are of this machine and whatever else runs on it.  Everything is bound to loopback.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))
sys.path.insert(0, str(Path(__file__).parents[1] / "cluster"))

from cluster import Dask

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import run_model
from vftsim.study.designs.points import points_of
from vftsim.study.designs.runner import Runner
from vftsim.study.designs.study_spec import read_study
from vftsim.study.execution import Execution
from vftsim.study.runs.cluster import Cluster
from vftsim.study.runs.model import load_model
from vftsim.study.store.store import Opening, Store

MODEL = Path(__file__).parents[1] / "rare" / "queue.yaml"
AHEAD = 2
"""Tasks that a worker has, as vftsim.study.runs.cluster gives them."""
POINTS, CORES = 1_000_000, 1_000
SLEEPS_MS = (0.0, 2.0, 5.0, 10.0, 20.0, 50.0)
DISCARDED = 0.1
ROUNDS = 3
LONGEST_MS = 600_000.0
TASKS_S = (0.1, 1.0, 10.0)


def resident_bytes() -> int:
    """Return the memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextmanager
def timed(into: dict[str, float], name: str, each: int = 1, unit: float = 1e3) -> Iterator[None]:
    """Note how long something took, of each of several, in ms or another unit."""
    begin = time.perf_counter()
    yield
    into[name] = (time.perf_counter() - begin) / each * unit


def design(points: int, folder: Path) -> dict[str, float]:
    """Return what a point costs before its first run."""
    rates = ", ".join(f"{100 + n / points:.6f} /s" for n in range(points))
    file = folder / "study.yaml"
    file.write_text(
        f"name: scale\nmodels: [{MODEL}]\nfactors: {{workloads.requests.rate: [{rates}]}}\n"
        "figures: [requests.failed]\nreplications: 1\n"
    )
    found: dict[str, float] = {"points": points}
    spec, place = read_study(str(file))
    before = resident_bytes()
    with timed(found, "point_ms", points), Store(folder / "design", "study") as store:
        made = points_of(spec, place)
        runner = Runner(made, lambda *_: None, Execution(1, store=store))
    found["point_kB"] = (resident_bytes() - before) / points / 1e3
    assert len(runner.identities) == points
    return found


def identity(number: int) -> dict[str, Any]:
    """Return what tells a point's runs from another's, as long as a real one."""
    return {"model": f"{number:064x}", "seed": 1, "stream_scheme": "1:PCG64DXSM:blake2b-128", "vftsim": "0.1.0"}


def store(rows: int, folder: Path, result: dict[str, Any]) -> dict[str, float]:
    """Return what the store costs, empty and full."""
    found: dict[str, float] = {"rows": rows}
    some, many = 300, 1000
    with Store(folder / "store", "study") as kept:
        with timed(found, "keep_ms", some):
            for n in range(some):
                kept.keep(identity(n), 0, result)
        with timed(found, "keep_together_ms", rows - some):
            for n in range(some, rows, many):
                kept.keep_all((identity(k), 0, result) for k in range(n, min(n + many, rows)))
        with timed(found, "keep_full_ms", some):
            for n in range(rows, rows + some):
                kept.keep(identity(n), 0, result)
    found["row_bytes"] = sum(path.stat().st_size for path in (folder / "store").iterdir()) / (rows + some)
    with timed(found, "open_s", unit=1.0):
        again = Store(folder / "store", "study", Opening.CONTINUE)
    with again:
        places = range(0, rows, max(1, rows // 1000))
        with timed(found, "find_ms", len(places)):
            for n in places:
                assert again.known(identity(n))
    return found


def through_dask(workers: int, tasks: int, folder: Path, result: dict[str, Any]) -> dict[str, Any]:
    """Return results a second by the length of a task that sleeps, each kept when it arrives; CPU time that one takes.

    Rates are the best of several rounds: what else the machine does only makes them lower.
    """
    cluster, best, used_s, done = Dask(folder, workers), dict.fromkeys(SLEEPS_MS, 0.0), 0.0, 0
    try:
        lead = Cluster(str(cluster.file))
        pid = cluster._all[0].pid
        begin_s = time.process_time() + cpu_s(pid)
        with Store(folder / "dask", "study") as kept:
            for _, sleep_ms in itertools.product(range(ROUNDS), SLEEPS_MS):
                arrived: list[float] = []
                for _, _ in lead.map_unordered(time.sleep, [sleep_ms / 1e3] * tasks):
                    kept.keep(identity(done), 0, result)
                    arrived.append(time.perf_counter())
                    done += 1
                first, last = int(DISCARDED * tasks), len(arrived) - 1
                best[sleep_ms] = max(best[sleep_ms], (last - first) / (arrived[last] - arrived[first]))
        used_s = time.process_time() + cpu_s(pid) - begin_s
        lead.close()
    finally:
        cluster.end()
    return {"rates": best, "cpu_ms": used_s / done * 1e3, "resident_MB": resident_bytes() / 1e6}


def cpu_s(pid: int) -> float:
    """Return the CPU time that a process has used."""
    user, system = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


def modelled(workers: int, task_ms: float, service_ms: float) -> float:
    """Return results a second of a vftsim model: workers that compute, one server that leads and stores."""
    link = {"eth0": {"path": {"kind": "moderated", "moderation": "0 us"}}}

    def server(demand_ms: float, **more: Any) -> dict[str, Any]:
        return {"kind": "service", "threads": 100_000, "backlog": 1, "demand": f"{demand_ms} ms", **more}

    calls, turn_ms = [{"to": "coordinator", "timeout": "0 s"}], task_ms + workers * service_ms
    spec = ModelSpec.model_validate(
        {
            "hosts": {"workers": {"pcpus": workers}, "lead": {}},
            "networks": {"lan": {"rate": "100 Gbit/s", "latency": "0 us", "queue": "100 MiB"}},
            "domains": {
                "coordinator": {"host": "lead", "interfaces": link, "applications": {"lead": server(service_ms)}},
                "worker": {
                    "host": "workers",
                    "count": workers,
                    "interfaces": link,
                    "applications": {"run": server(task_ms, calls=calls)},
                },
            },
            "workloads": {
                "tasks": {
                    "kind": "request_response",
                    "to": "worker",
                    "clients": AHEAD,
                    "turn_around": "0 s",
                    "retry": "0 s",
                    "spread": f"{max(task_ms, service_ms)} ms",
                }
            },
            "measure": {"warm_up": f"{3 * turn_ms} ms", "duration": f"{min(20 * turn_ms, LONGEST_MS)} ms"},
        }
    )
    outcome: Any = run_model(spec, 1, 0).whole.outcomes["domains.coordinator.applications.lead"]
    return float(outcome.throughput)


def fed(task_s: float, service_ms: float) -> dict[str, float]:
    """Return how many of the cores have work, and how long all points take, by the model."""
    rate_per_s = modelled(CORES, task_s * 1e3, service_ms)
    return {"cores": task_s * rate_per_s, "hours": POINTS / rate_per_s / 3600.0}


def extrapolated(said: dict[str, Any], service_ms: float) -> dict[str, Any]:
    """Return what a million points need on a thousand cores, by proportion, and which task the coordinator can feed."""
    point, kept = said["design"], said["store"]
    return {
        "design_h": point["point_ms"] * POINTS / 3.6e6,
        "design_GB": point["point_kB"] * POINTS / 1e6,
        "store_GB": kept["row_bytes"] * POINTS / 1e9,
        "store_h": kept["keep_full_ms"] * POINTS / 3.6e6,
        "open_min": kept["open_s"] * POINTS / kept["rows"] / 60.0,
        "find_h": kept["find_ms"] * POINTS / 3.6e6,
        "lead_h": service_ms * POINTS / 3.6e6,
        "shortest_task_s": service_ms * CORES / 1e3,
        "fed": {f"{task_s:g} s": fed(task_s, service_ms) for task_s in TASKS_S},
    }


def main() -> None:
    """Measure, extrapolate, and print."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rows", type=int, default=100_000)
    arguments.add_argument("--points", type=int, default=1000)
    arguments.add_argument("--tasks", type=int, default=150)
    arguments.add_argument("--workers", type=int, default=2)
    given = arguments.parse_args()
    os.environ["PYTHONPATH"] = str(Path(__file__).parents[2])
    result = run_model(load_model(str(MODEL)).spec, 1, 0).to_dict()
    said: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        said["design"] = design(given.points, folder)
        said["store"] = store(given.rows, folder, result)
        dask = through_dask(given.workers, given.tasks, folder, result)
    rates = dask.pop("rates")
    service_ms = 1e3 / max(rates.values())
    said["coordinator"] = {"workers": given.workers, "service_ms": service_ms, "most_per_s": 1e3 / service_ms, **dask}
    said["check"] = {
        f"{ms:g} ms": {"measured": rate, "modelled": modelled(given.workers, max(ms, 0.001), service_ms)}
        for ms, rate in rates.items()
    }
    said["million"] = extrapolated(said, service_ms)
    print(json.dumps(said, indent=1))


if __name__ == "__main__":
    main()
