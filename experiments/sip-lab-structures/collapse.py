"""Where the three ramps of the SIP lab end with each mechanism of an early collapse, alone and together.

No constant is fitted on a step at which a ramp stops.  Those of the mechanisms are from sources or stated as
assumptions (``docs/sip/collapse.md``).  Where the work grows with utilization instead of with transactions, three
costs are set again so that CPU meets input rows: registrations by CPU of native pre-registration, messages by CPU
of native steps 1 to 4, relay cost by CPU of virtual steps 1 to 4, cost of exits by CPU of fault-tolerant steps 1 to
4.

    python experiments/sip-lab-structures/collapse.py --runs 8 --jobs 2 --output collapse.json
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections import Counter
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from loky import get_reusable_executor

from vftsim.calibrate.figures import measured
from vftsim.composition.run import Run
from vftsim.spec import shipped_dir
from vftsim.study.runs.model import load_model

SERVER = "domains.sut.applications.proxy."
FLUSH = (f"{SERVER}flush_in_timer_process=true",)
O1 = ("domains.sut.guest_scheduler={kind: o1}",)
LATE = (f"{SERVER}timers_wait_for_flush=true",)
PRICES = (
    f"{SERVER}repeated_request_cost=0.65",
    f"{SERVER}repeated_reply_cost=0.5",
    f"{SERVER}repeated_ok_cost=1",
    f"{SERVER}own_repeat_cost=1",
)
NONCES = (f"{SERVER}nonces_good_once=true", "workloads.calls.fails_on_second_challenge=true")
GROWTH = (f"{SERVER}growth_with_utilization=0.52", f"{SERVER}growth_per_transaction=0")
ALL = (*GROWTH, *FLUSH, *O1, *LATE, *PRICES, *NONCES)

VARIANTS: dict[str, tuple[str, ...]] = {
    "all together": ALL,
    "as shipped": (),
    "flush in the timer process, o1": (*FLUSH, *O1),
    "the same, timers wait": (*FLUSH, *O1, *LATE),
    "ordinary prices": PRICES,
    "all but o1 (turns)": (*GROWTH, *FLUSH, *LATE, *PRICES, *NONCES),
    "all, 0.76 ms a record under FT": ALL,
    "all, disk sleeps": (*ALL, f"{SERVER}flush_waits_on_disk=true"),
    "growth with utilization": GROWTH,
    "growth with utilization, ordinary prices": (*GROWTH, *PRICES),
    "nonces good once": NONCES,
    "all but ordinary prices": (*GROWTH, *FLUSH, *O1, *LATE, *NONCES),
    "flush in the timer process, turns": FLUSH,
    "all, prices 0.35": (*ALL, f"{SERVER}repeated_request_cost=0.35"),
    "all, no growth with utilization": (*FLUSH, *O1, *LATE, *PRICES, *NONCES),
    "all but nonces": (*GROWTH, *FLUSH, *O1, *LATE, *PRICES),
    "o1 alone": O1,
    "all, cfs for o1": (*ALL, "domains.sut.guest_scheduler={kind: cfs}"),
    "all, eevdf for o1": (*ALL, "domains.sut.guest_scheduler={kind: eevdf}"),
}
"""Variant: what is assigned to the shipped models."""

FT_FLUSH = (f"{SERVER}location_write_cost=0.502 ms",)
"""0.76 ms a record after both factors of the protected guest (1.2905 and 1.172), if all extra CPU of the protected
machine in pre-registration is flush."""

MODELS = {"native": "lab-native", "virtual": "lab-virtual", "virtual_ft": "lab-virtual-ft"}
STOPS = {"native": 11, "virtual": 7, "virtual_ft": 7}
FIRST = {"native": 9, "virtual": 1, "virtual_ft": 5}
"""Step at which the ramp begins: nothing fails below, and only the virtual machine's delays are in the record."""
LOADS = {"native": (50, 10), "virtual": (50, 10), "virtual_ft": (10, 5)}
INPUTS = ["step_1", "step_2", "step_3", "step_4"]
SHORT = ("workloads.calls.steps.duration=300 s", "workloads.calls.steps.transient=30 s")
REGISTRATIONS = {f"{SERVER}register_touch_cost": 0.4559, f"{SERVER}database_cost": 0.1011}
MESSAGES = {f"{SERVER}touch_cost": 0.4581}
RELAY = {f"{SERVER}relay_cost": 0.1143}
EXITS = {"domains.sut.protection.cost.exits": 9.422}


@cache
def record(environment: str) -> dict[tuple[str, str], float]:
    """Return the measured numbers of an environment."""
    return dict(measured(shipped_dir("calibration") / "sip-lab" / "data", environment))


def run(environment: str, assignments: tuple[str, ...], seed: int, replication: int) -> Any:
    """Play one ramp; return what it measured by phase."""
    model = load_model(MODELS[environment], assignments)
    return {phase.name: phase for phase in Run(model.spec, seed, replication).run().played()}


def cpu_percent(phase: Any) -> float:
    """Return the mean CPU of a phase."""
    return statistics.fmean(phase.series["cpu_percent"])


# Input rows


def scaled(costs: Mapping[str, float], factor: float) -> tuple[str, ...]:
    """Return assignments of costs (ms, or a factor without a unit) times a factor."""
    return tuple(
        f"{path}={value * factor:.6g}" + ("" if path.endswith("exits") else " ms") for path, value in costs.items()
    )


def miss(environment: str, assignments: tuple[str, ...], phases: list[str]) -> float:
    """Return by how many points of CPU short steps at the measured loads miss the record on average."""
    data = record(environment)
    loads = "[" + ", ".join(f"{data[step, 'load']} /s" for step in INPUTS) + "]"
    found = run(
        environment,
        (*assignments, *SHORT, f"workloads.calls.steps.loads={loads}", "workloads.calls.steps.most=4"),
        11,
        0,
    )
    return statistics.fmean(cpu_percent(found[phase]) - data[phase, "cpu"] for phase in phases)


def factor_for(
    environment: str, assignments: tuple[str, ...], costs: Mapping[str, float], phases: list[str]
) -> tuple[str, ...]:
    """Return the costs times the factor at which CPU meets the record, by the rule of false position."""
    low, high = 0.5, 1.5
    at_low, at_high = (miss(environment, (*assignments, *scaled(costs, f)), phases) for f in (low, high))
    for _ in range(4):
        middle = low - at_low * (high - low) / (at_high - at_low)
        at_middle = miss(environment, (*assignments, *scaled(costs, middle)), phases)
        if abs(at_middle) < 0.02:
            break
        if at_middle < 0:
            low, at_low = middle, at_middle
        else:
            high, at_high = middle, at_middle
    return scaled(costs, middle)


def fitted(assignments: tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Set the costs again for work that grows with utilization: registrations, messages, relays, exits."""
    native = factor_for("native", assignments, REGISTRATIONS, ["pre_registration"])
    native = (*native, *factor_for("native", (*assignments, *native), MESSAGES, INPUTS))
    virtual = (*native, *factor_for("virtual", (*assignments, *native), RELAY, INPUTS))
    protected = (*virtual, *factor_for("virtual_ft", (*assignments, *virtual), EXITS, INPUTS))
    return {"native": native, "virtual": virtual, "virtual_ft": protected}


# Runs and what they say


def assignments_of(name: str, environment: str, costs: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """Return all assignments of a variant in an environment."""
    assignments = VARIANTS[name]
    if GROWTH[0] in assignments:
        assignments = (*assignments, *costs[environment])
    if environment == "virtual_ft" and "0.76" in name:
        assignments = (*assignments, *FT_FLUSH)
    return assignments


def summary(name: str, environment: str, assignments: tuple[str, ...], replication: int) -> dict[str, Any]:
    """Play a ramp that may go two steps beyond the record's stop, and keep what is compared."""
    first, (initial, increment) = FIRST[environment], LOADS[environment]
    ramp = (
        f"workloads.calls.steps.most={STOPS[environment] + 3 - first}",
        f"workloads.calls.steps.initial={initial + (first - 1) * increment} /s",
    )
    phases = run(environment, (*assignments, *ramp), 2011, replication)
    steps = [phase for name, phase in phases.items() if name != "pre_registration"]
    collapsed = not steps[-1].passes(10.0)
    return {
        "variant": name,
        "environment": environment,
        "stop": first - 1 + len(steps) + (0 if collapsed else 1),
        "ihs": [phase.ihs_percent() for phase in steps],
        "cpu": [cpu_percent(phase) for phase in phases.values()],
        "largest_ms": {
            delay: [max(phase.delays[delay].max, 0) / 1e6 for phase in phases.values()] for delay in ("REG1", "REG2")
        },
        "retransmissions": [statistics.fmean(phase.series["retransmissions_all"]) for phase in steps],
    }


def shares(stops: list[int]) -> str:
    """Return in which share of runs which step stopped the ramp."""
    counts = Counter(stops)
    return ", ".join(f"{step}: {counts[step]}/{len(stops)}" for step in sorted(counts))


def table(results: list[dict[str, Any]]) -> str:
    """Return the results as rows of text."""
    heads = ("variant", "native (11)", "virtual (7)", "FT (7)", "REG1, virtual 1-5", "REG2", "pre-registration")
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for name in VARIANTS:
        of_variant = [r for r in results if r["variant"] == name]
        if not of_variant:
            continue
        cells = [shares([r["stop"] for r in of_variant if r["environment"] == e]) for e in MODELS]
        virtual = [r["largest_ms"] for r in of_variant if r["environment"] == "virtual"]
        cells += [" ".join(medians(virtual, delay)[1:]) for delay in ("REG1", "REG2")]
        cells.append(" ".join(medians(virtual, delay)[0] for delay in ("REG1", "REG2")))
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def medians(largest: list[dict[str, list[float]]], delay: str) -> list[str]:
    """Return the median over runs of the largest delay of pre-registration and steps 1 to 5, in ms."""
    rows = [r[delay] for r in largest if len(r[delay]) > 5]
    return [f"{statistics.median(r[phase] for r in rows):.0f}" for phase in range(6)] if rows else ["-"] * 6


def main() -> None:
    """Play all variants, or those whose name contains ``--only``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=8)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    names = [name for name in VARIANTS if arguments.only in name]
    costs: dict[str, tuple[str, ...]] = {}
    if any(GROWTH[0] in VARIANTS[name] for name in names):
        costs = fitted((*GROWTH, *FLUSH, *O1))
        print(costs, file=sys.stderr, flush=True)
    asked = [(name, e, assignments_of(name, e, costs)) for name in names for e in MODELS]
    results = []
    runs = [(*one, n) for one in asked for n in range(arguments.runs)]
    with get_reusable_executor(arguments.jobs) as pool:
        for result in pool.map(summary, *zip(*runs, strict=True)):
            results.append(result)
            if len(results) % (len(MODELS) * arguments.runs) == 0:
                print(table(results).splitlines()[-1], file=sys.stderr, flush=True)
                if arguments.output:
                    text = json.dumps({"costs": costs, "runs": results})
                    arguments.output.write_text(text + "\n", encoding="utf-8")
    print(table(results))


if __name__ == "__main__":
    main()
