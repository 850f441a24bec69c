"""Write ``baseline.json``, the speed of the engine ``simpy``: ``python -m tests.golden.baseline``.

For information: figures of the machine at hand.  The file as it stands was measured of the object model that went
before, to be quoted beside those of the engine.
"""

import platform
import time
from pathlib import Path
from statistics import median
from typing import Any

from vftsim.composition.run import Run
from vftsim.study.model import load_model

from .compact import write

BASELINE = Path(__file__).with_name("baseline.json")
RUNS = 8
SEED, REPLICATION = 1, 0
_SIP = (
    "workloads.calls.pre_registration={duration: 10 s, rate: 50 /s, transient: 1 s}",
    "workloads.calls.stir={duration: 5 s, steps: 2}",
)
_MEDIA = ("measure.duration=300 ms", "measure.warm_up=100 ms")


def _steps(loads: str) -> str:
    return f"workloads.calls.steps={{loads: [{loads}], duration: 20 s, transient: 2 s}}"


SETTINGS = {
    "lab-native": (*_SIP, _steps("80 /s, 130 /s")),
    "lab-virtual": (*_SIP, _steps("60 /s, 95 /s")),
    "lab-virtual-ft": (*_SIP, _steps("20 /s, 32 /s")),
    "lab-virtual-shared-nic": (*_SIP, _steps("55 /s, 85 /s")),
    "lab-single-host": (*_SIP, _steps("60 /s, 95 /s")),
    "xen-media": _MEDIA,
    "xen-media-native": _MEDIA,
    "xen-media-turnkey": _MEDIA,
    "xen-media-two-core": _MEDIA,
    "xen-media-bypass": _MEDIA,
}

METHOD = (
    "CPU time (process_time) of the simulation alone, model file read and parts put together before: lowest and "
    f"median of {RUNS} runs in one process, the models in turn, seed {SEED}, replication {REPLICATION}. us_per_event "
    "and simulated_s_per_cpu_s are of the lowest. events: all that the engine's clock was asked for, cancelled ones "
    "included; simulated_s: from time 0 to the end of the run, drain included. CPython with SimPy, one thread. The "
    "machine had other work on both CPUs, which CPU time does not count but feels: the medians show how much."
)


def run(model: str) -> tuple[float, int, int]:
    """Run one model; return CPU seconds, events and the simulated time at the end in ns."""
    whole = Run(load_model(model, SETTINGS[model]).spec, SEED, REPLICATION, engine="simpy")
    begun_s = time.process_time()
    whole.run()
    return time.process_time() - begun_s, whole.engine.events, whole.now_ns


def figures(model: str, runs: list[tuple[float, int, int]]) -> dict[str, Any]:
    """Return what is stored of the runs of a model."""
    cpu_s, events, end_ns = min(runs)
    return {
        "assignments": list(SETTINGS[model]),
        "events": events,
        "simulated_s": end_ns / 1e9,
        "cpu_s": round(cpu_s, 4),
        "cpu_s_median": round(median(run[0] for run in runs), 4),
        "us_per_event": round(1e6 * cpu_s / events, 3),
        "simulated_s_per_cpu_s": round(end_ns / 1e9 / cpu_s, 4),
    }


def main() -> None:
    """Time every shipped model."""
    runs: dict[str, list[tuple[float, int, int]]] = {model: [] for model in SETTINGS}
    for _ in range(RUNS):
        # In turn, so that a time when the machine is busy does not fall on one model alone.
        for model in SETTINGS:
            runs[model].append(run(model))
    models = {model: figures(model, runs[model]) for model in SETTINGS}
    for model, found in models.items():
        print(f"{model:24} {found['events']:8} events {found['cpu_s']:7} s {found['us_per_event']:7} us an event")
    python = f"{platform.python_implementation()} {platform.python_version()}"
    machine = {"python": python, "processor": _processor()}
    write(BASELINE, {"measured": METHOD, "machine": machine, "models": models})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({len(names)} CPUs seen)" if names else platform.machine()


if __name__ == "__main__":
    main()
