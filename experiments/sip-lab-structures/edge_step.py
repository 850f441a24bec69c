"""Virtual step 6 over many replications, and where the three ramps stop, under each structure of the protocol.

The structures are those of ``calibration/sip-lab/protocol.md`` (S0 to S4, W1, W2), the shipped costs with the few that
``collapse.py`` sets again on input rows; nothing is fitted on a row that is printed here.  Step 6 is played alone at
its full 900 s, after the stir.  Its calls end in an idle system, which touches the 4 % of REL1 that come last.

    python experiments/sip-lab-structures/edge_step.py --replications 100 --ramps 20 --output edge.json
    python experiments/sip-lab-structures/edge_step.py --read edge.json
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from collapse import ALL, FLUSH, GROWTH, LATE, LOADS, NONCES, O1, PRICES, SERVER, STOPS, fitted, record, run

from vftsim.calibrate.figures import delay_percentiles, observed_in
from vftsim.report.markdown import markdown_table
from vftsim.stats.intervals import binomial_interval
from vftsim.workloads.ims_bench.metrics import PhaseRecord

STALL = (f"{SERVER}stall_duration=400 ms",)
STRUCTURES: dict[str, tuple[str, ...]] = {
    "S0, as shipped": (),
    "S3, all mechanisms": ALL,
    "W1, S3 with turns for o1": (*GROWTH, *FLUSH, *LATE, *PRICES, *NONCES),
    "W2, S0 with a stop of 0.4 s each minute": STALL,
    "S1 with prices, without flush and o1": (*GROWTH, *PRICES, *NONCES),
    "S4, S3 with disk sleeps": (*ALL, f"{SERVER}flush_waits_on_disk=true"),
    "W2 with ordinary prices": (*STALL, *PRICES),
    "S1, growth with utilization": GROWTH,
    "S2, S1 with flush and o1": (*GROWTH, *FLUSH, *LATE, *O1),
}
"""Structure: what it assigns to the shipped models."""

SEED = 2011
EDGE, LIMIT = 6, 10.0
BEFORE, BEYOND = 1, 1
"""Steps that a ramp plays before the step where the record stops, and after it."""
FIGURES = ("cpu", "ihs/global", "retransmissions", *sorted(delay_percentiles()))


def alone(environment: str, first: int, most: int) -> tuple[str, ...]:
    """Return assignments that play some steps of a ramp without what comes before."""
    initial, increment = LOADS[environment]
    return (
        f"workloads.calls.steps.initial={initial + (first - 1) * increment} /s",
        f"workloads.calls.steps.most={most}",
        "workloads.calls.pre_registration.duration=0 s",
    )


def observed(phases: Iterable[PhaseRecord]) -> dict[tuple[str, str], float]:
    """Return what phases say, by their names and those of datasets."""
    return {(each.name, name): x for each in phases for name, x in observed_in("workloads.calls", each).items()}


def edge(assignments: Sequence[str], replication: int) -> dict[str, float]:
    """Play virtual step 6 once; return its figures."""
    phases = run("virtual", (*assignments, *alone("virtual", EDGE, 1)), SEED, replication)
    seen = observed(phases.values())
    return {name: value for (_, name), value in seen.items() if name in FIGURES}


def ramp(environment: str, assignments: Sequence[str], replication: int) -> dict[str, Any]:
    """Play the steps around the record's stop; return where it ended, and the IHS and CPU of its steps."""
    first = STOPS[environment] - BEFORE
    phases = run(environment, (*assignments, *alone(environment, first, BEFORE + 1 + BEYOND)), SEED, replication)
    steps = list(phases.values())
    stop = next((first + n for n, step in enumerate(steps) if not step.passes(LIMIT)), first + len(steps))
    found = observed(steps)
    return {
        "stop": stop,
        "steps": {
            str(first + n): {name: v for (phase, name), v in found.items() if phase == step.name and name in _KEPT}
            for n, step in enumerate(steps)
        },
    }


_KEPT = frozenset({"cpu", "ihs/global", *(f"ihs/ims_{s}" for s in ("uac", "msgc", "reg", "dereg", "rereg"))})


def play(name: str, costs: Mapping[str, Sequence[str]], replications: int, ramps: int) -> dict[str, Any]:
    """Play everything of one structure."""

    def of(environment: str) -> tuple[str, ...]:
        assignments = STRUCTURES[name]
        return (*assignments, *costs[environment]) if GROWTH[0] in assignments else assignments

    return {
        "edge": [edge(of("virtual"), r) for r in range(replications)],
        "ramps": {e: [ramp(e, of(e), r) for r in range(ramps)] for e in STOPS},
    }


# What the runs say


def central(values: Sequence[float]) -> tuple[float, float]:
    """Return the 5th and the 95th percentile."""
    low, high = np.quantile(values, [0.05, 0.95])
    return float(low), float(high)


def edge_row(name: str, runs: Sequence[Mapping[str, float]]) -> list[str]:
    """Return what step 6 gives, beside the record."""
    measured = record("virtual")

    def cell(figure: str) -> str:
        low, high = central([run[figure] for run in runs])
        inside = low <= measured[f"step_{EDGE}", figure] <= high
        return f"{low:.1f} to {high:.1f}{' *' if inside else ''}"

    delays = sorted(delay_percentiles())
    ranges = {figure: central([run[figure] for run in runs if figure in run]) for figure in delays}
    held = sum(low <= measured[f"step_{EDGE}", figure] <= high for figure, (low, high) in ranges.items())
    width = float(np.median([high / low for low, high in ranges.values()]))
    collapsed = sum(run["ihs/global"] > LIMIT for run in runs)
    share = binomial_interval(collapsed, len(runs))
    return [
        name,
        *(cell(figure) for figure in ("cpu", "ihs/global", "retransmissions")),
        f"{held} of {len(delays)}",
        f"{width:.1f}",
        f"{collapsed}/{len(runs)} ({100 * share.low:.0f}-{100 * share.high:.0f} %)",
    ]


def stop_row(name: str, ramps: Mapping[str, Sequence[Mapping[str, Any]]]) -> list[str]:
    """Return where the ramps stop, and the IHS by scenario of the record's stop step in those that got there."""
    cells = [name]
    for environment, runs in ramps.items():
        stop, last = STOPS[environment], STOPS[environment] + BEYOND
        stops = [run["stop"] for run in runs]
        labels = {step: (str(step) if step <= last else f"after {last}") for step in sorted(set(stops))}
        cells.append(
            ", ".join(f"{label}: {100 * stops.count(step) / len(stops):.0f} %" for step, label in labels.items())
        )
        reached = [run["steps"][str(stop)] for run in runs if str(stop) in run["steps"]]
        cells.append(_scenarios(environment, stop, reached) if reached and environment != "virtual" else "")
    return [cell for number, cell in enumerate(cells) if number != 4]


def _scenarios(environment: str, stop: int, runs: Sequence[Mapping[str, float]]) -> str:
    names = sorted(name for name in _KEPT if name.startswith("ihs/ims"))
    found = {name: float(np.mean([run[name] for run in runs])) for name in names}
    worst = max(abs(value - record(environment)[f"step_{stop}", name]) for name, value in found.items())
    return " ".join(f"{value:.0f}" for value in found.values()) + f" ({worst:.0f})"


def tables(results: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Return both tables as lines of Markdown."""
    heads = ("structure", "CPU %", "IHS %", "retransmissions /s", "percentiles inside", "width", "collapsed (95 %)")
    yield markdown_table(heads, [edge_row(name, result["edge"]) for name, result in results.items()])
    yield ""
    heads = ("structure", "native (11)", "its IHS by scenario", "virtual (7)", "fault tolerant (7)", "its IHS")
    yield markdown_table(heads, [stop_row(name, result["ramps"]) for name, result in results.items()])


def main() -> None:
    """Play all structures, or those whose name contains ``--only``; keep each as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=100)
    parser.add_argument("--ramps", type=int, default=20)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--read", type=Path, help="print the tables of a file that an earlier run wrote")
    arguments = parser.parse_args()
    results: dict[str, Any] = json.loads(arguments.read.read_text()) if arguments.read else {}
    names = [] if arguments.read else [name for name in STRUCTURES if arguments.only in name]
    costs = fitted((*GROWTH, *FLUSH, *O1)) if any(GROWTH[0] in STRUCTURES[name] for name in names) else {}
    for name in names:
        results[name] = play(name, costs, arguments.replications, arguments.ramps)
        if arguments.output:
            arguments.output.write_text(json.dumps(results) + "\n", encoding="utf-8")
        print(name, file=sys.stderr, flush=True)
    print("\n".join(tables(results)))


if __name__ == "__main__":
    main()
