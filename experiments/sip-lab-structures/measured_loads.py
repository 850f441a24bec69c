"""Where structures of the SIP lab stop at the loads that were measured, as they are and with their CPU put right.

The lab's steps ask for 150 and 40 attempts a second and got 148.63 and 38.08; a model whose CPU is some points off in
the step before tips earlier or later for that alone.  So each structure is played at the measured loads around the
record's stop, first as it is, then on a CPU as fast or slow as makes its CPU right in the last step before trouble.  A
stop is judged at 0.1, 1, 5 and 10 % inadequately handled.  The largest of all seven delays of the virtual machine's
first five steps stand beside the record's.

    python experiments/sip-lab-structures/measured_loads.py --runs 4 --output measured-loads.json
    python experiments/sip-lab-structures/measured_loads.py --read experiments/sip-lab-structures/measured-loads.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import joint
from collapse import ALL, GROWTH, MODELS, NONCES, PRICES, fitted, record

from vftsim.calibrate.figures import observe
from vftsim.composition.keys import with_values
from vftsim.composition.model import ModelSpec
from vftsim.labs.ramps import LIMITS_PERCENT, capacity_at, is_bound, load_steps
from vftsim.report.markdown import markdown_table
from vftsim.study.runs.model import load_model
from vftsim.workloads.ims_bench.metrics import DELAYS

BENCH = "workloads.calls."
SPEED = "hosts.host.cpu_speed"
SEED = 2011
LOADS = {
    "native": (129.78, 139.75, 148.63, 158.6, 168.6),
    "virtual": (80.12, 89.87, 100.44, 109.0, 119.0),
    "virtual_ft": (29.83, 34.84, 38.08, 43.1, 48.1),
}
"""Measured loads around the stop, and two steps beyond as far apart as the lab's."""
CALM = {"native": ("step_10", 139.75), "virtual": ("step_5", 89.87), "virtual_ft": ("step_6", 34.84)}
"""Last step of the record that was not in trouble, and its load."""
FIRST = {"native": 9, "virtual": 4, "virtual_ft": 5}
NEAR_POINTS = 0.1
MOST_TRIES = 4

FITTED = {
    "S0, as shipped": "shipped",
    "growth, one fit": "growth, full",
    "flush under o1": "flush",
    "flush in turns (wrong on purpose)": "turns (wrong on purpose)",
    "growth, stop of 0.4 s each minute (wrong on purpose)": "stall (wrong on purpose)",
}
"""Structures with a fit of their own, by their names in :mod:`joint`."""
SET = {"S0, ordinary prices": PRICES, "growth of 0.52, ordinary prices": (*GROWTH, *PRICES, *NONCES), "all": ALL}
"""Structures with costs set again by :mod:`collapse`."""
Make = Callable[[str, Sequence[str]], ModelSpec]


def structures(only: str) -> dict[str, Make]:
    """Return what makes the model of an environment with further settings, by structure."""
    found: dict[str, Make] = {}
    for name, key in FITTED.items():
        found[name] = lambda environment, settings, key=key: joint.model(key, environment, settings)
    costs: dict[str, tuple[str, ...]] = {}
    for name, assignments in SET.items():

        def make(environment: str, settings: Sequence[str], assignments: tuple[str, ...] = assignments) -> ModelSpec:
            if GROWTH[0] in assignments and not costs:
                costs.update(fitted(ALL))
            extra = costs[environment] if GROWTH[0] in assignments else ()
            return load_model(MODELS[environment], (*assignments, *extra, *settings)).spec

        found[name] = make
    return {name: make for name, make in found.items() if only in name}


def settings(loads: Sequence[float], is_whole: bool = False) -> tuple[str, ...]:
    """Return assignments that play some loads; pre-registration only before a whole ramp."""
    listed = ", ".join(f"{load} /s" for load in loads)
    alone = () if is_whole else (f"{BENCH}pre_registration.duration=0 s",)
    return (*alone, f"{BENCH}steps.loads=[{listed}]", f"{BENCH}steps.most={len(loads)}")


def right_speed(make: Make, environment: str) -> tuple[float, float]:
    """Return the error of CPU in the last calm step, in points, and the speed of the CPU at which it is right."""
    phase, load = CALM[environment]
    wanted = record(environment)[phase, "cpu"]
    spec = make(environment, settings([load]))
    speed, error = 1.0, 0.0
    for n in range(MOST_TRIES):
        seen = observe(with_values(spec, {SPEED: speed}), SEED, 0)
        found = seen["step_1", "cpu"] * load / seen["step_1", "load"]
        error = found - wanted if n == 0 else error
        if abs(found - wanted) < NEAR_POINTS:
            break
        speed *= found / wanted
    return error, speed


def ramp(make: Make, environment: str, speed: float, replication: int) -> dict[str, float]:
    """Play the steps around the record's stop; return load, CPU and shares by step of the record."""
    seen = observe(with_values(make(environment, settings(LOADS[environment])), {SPEED: speed}), SEED, replication)
    kept = {}
    for (phase, quantity), value in seen.items():
        if phase.startswith("step_") and (quantity in {"load", "cpu"} or quantity.startswith("ihs/")):
            kept[f"step_{FIRST[environment] - 1 + int(phase.removeprefix('step_'))} {quantity}"] = value
    return kept


def maxima(make: Make, replication: int) -> dict[str, float]:
    """Play the virtual machine from pre-registration to step 5; return the largest of each delay in ms."""
    loads = [record("virtual")[f"step_{n}", "load"] for n in range(1, 6)]
    seen = observe(make("virtual", settings(loads, is_whole=True)), SEED, replication)
    return {f"{phase} {quantity}": value for (phase, quantity), value in seen.items() if quantity.endswith("/max")}


def play(make: Make, runs: int) -> dict[str, Any]:
    """Play everything of one structure."""
    found: dict[str, Any] = {}
    for environment in MODELS:
        error, speed = right_speed(make, environment)
        found[environment] = {
            "cpu_error": error,
            "speed": speed,
            "as it is": [ramp(make, environment, 1.0, r) for r in range(runs)],
            "CPU right": [ramp(make, environment, speed, r) for r in range(runs)],
        }
    found["maxima"] = [maxima(make, r) for r in range(max(1, runs // 2))]
    return found


def compact(value: Any) -> Any:
    """Return results as they are kept: four decimals, figures of a run by name."""
    if isinstance(value, list):
        return [compact(each) for each in value]
    if isinstance(value, dict):
        items = sorted(value.items()) if all(isinstance(each, float) for each in value.values()) else value.items()
        return {name: compact(each) for name, each in items}
    return round(value, 4)


# What they say


def capacities(runs: Sequence[Mapping[str, float]]) -> list[str]:
    """Return the middle run's capacity at each limit; those that no step of any run was beyond as a bound."""
    ramps = [load_steps({_key(name): value for name, value in run.items()}) for run in runs]
    cells = []
    for limit in LIMITS_PERCENT:
        middle = statistics.median_low(capacity_at(each, limit) for each in ramps)
        bound = 2 * sum(is_bound(each, limit) for each in ramps) > len(ramps)
        cells.append(f"{'>= ' if bound else ''}{middle}" if middle else f"< {int(ramps[0][0].load)}")
    return cells


def stops(environment: str, runs: Sequence[Mapping[str, float]]) -> str:
    """Return at which step of the record the runs stop, by the lab's rule of 10 %."""
    last = FIRST[environment] - 1 + len(LOADS[environment])
    found = []
    for run in runs:
        bad = [int(_key(name)[0][5:]) for name, value in run.items() if " ihs/" in name and value > LIMITS_PERCENT[-1]]
        found.append(min(bad, default=last + 1))
    counts = {step: found.count(step) for step in sorted(set(found))}
    return ", ".join(f"{step if step <= last else f'not by {last}'}: {n}/{len(runs)}" for step, n in counts.items())


def _key(name: str) -> tuple[str, str]:
    phase, _, quantity = name.partition(" ")
    return phase, quantity


def stop_rows(results: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield error of CPU and stops, as the structures are and with CPU right."""
    for name, found in results.items():
        yield [
            name,
            *(f"{found[e]['cpu_error']:+.1f}" for e in MODELS),
            *(stops(e, found[e][how]) for how in ("as it is", "CPU right") for e in MODELS),
        ]


def capacity_rows(results: Mapping[str, Any], how: str) -> Iterator[list[str]]:
    """Yield the capacities at each limit."""
    yield ["**record**", *("**" + " ".join(_recorded(e)) + "**" for e in MODELS)]
    for name, found in results.items():
        yield [name, *(", ".join(capacities(found[e][how])) for e in MODELS)]


def _recorded(environment: str) -> list[str]:
    steps = load_steps(record(environment))
    return [str(capacity_at(steps, limit)) for limit in LIMITS_PERCENT]


def maxima_rows(results: Mapping[str, Any]) -> Iterator[list[str]]:
    """Yield the largest delays of steps 1 to 4 in ms, and how many are below half the record's or above twice."""
    measured = record("virtual")
    yield ["**record**", *(_listed(lambda n, d: measured[f"step_{n}", f"{d}/max"], d) for d in DELAYS), "", ""]
    for name, found in results.items():
        middle = {key: statistics.median(run[key] for run in found["maxima"]) for key in found["maxima"][0]}
        ratios = [middle[f"step_{n} {d}/max"] / measured[f"step_{n}", f"{d}/max"] for n in range(1, 5) for d in DELAYS]
        counts = sum(ratio < 0.5 for ratio in ratios), sum(ratio > 2.0 for ratio in ratios)
        cells = [_listed(lambda n, d, m=middle: m[f"step_{n} {d}/max"], d) for d in DELAYS]
        yield [name, *cells, *(f"{count} of {len(ratios)}" for count in counts)]


def _listed(value: Callable[[int, str], float], delay: str) -> str:
    return " ".join(f"{value(n, delay):.0f}" for n in range(1, 5))


def page(results: Mapping[str, Any]) -> str:
    """Return all tables as Markdown."""
    limits = ", ".join(f"{limit:g}" for limit in LIMITS_PERCENT)
    heads = [f"{name}, at {limits} %" for name in ("native", "virtual", "fault tolerant")]
    parts = [
        "## Stops",
        markdown_table(
            (
                "structure",
                "CPU, native 10",
                "virtual 5",
                "FT 6",
                "native (11)",
                "virtual (6 or 7)",
                "FT (7)",
                "native, CPU right",
                "virtual, CPU right",
                "FT, CPU right",
            ),
            list(stop_rows(results)),
        ),
        "## Capacities, CPU right",
        markdown_table(("structure", *heads), list(capacity_rows(results, "CPU right"))),
        "## Capacities, as they are",
        markdown_table(("structure", *heads), list(capacity_rows(results, "as it is"))),
        "## Largest delays",
        markdown_table(("structure", *DELAYS, "below half of the record's", "above twice"), list(maxima_rows(results))),
    ]
    return "\n\n".join(parts) + "\n"


def main() -> None:
    """Play all structures, or those whose name contains ``--only``; keep each as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=4)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path, help="JSON; what it has of a structure stays and is not played again")
    parser.add_argument("--read", type=Path, help="print the tables of a file that an earlier run wrote")
    arguments = parser.parse_args()
    kept = arguments.read or arguments.output
    results: dict[str, Any] = json.loads(kept.read_text(encoding="utf-8")) if kept and kept.exists() else {}
    for name, make in ({} if arguments.read else structures(arguments.only)).items():
        if name not in results:
            results[name] = compact(play(make, arguments.runs))
            if arguments.output:
                arguments.output.write_text(json.dumps(results) + "\n", encoding="utf-8")
            print(name, file=sys.stderr, flush=True)
    print(page(results), end="")


if __name__ == "__main__":
    main()
