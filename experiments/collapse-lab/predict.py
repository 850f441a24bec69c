"""The model's onset in every cell of the design, with prices from low rates; ``protocol.md`` says how it is judged.

    python experiments/collapse-lab/predict.py FITTED.json --output predicted.json

Each cell plays its ramp as the lab does: the same rates, steps of four seconds, a freeze in the middle of each.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from collapse import STEP_S, STEPS, ramp_rates
from design import Cell, cells
from record import Ramp, load_step

from vftsim.calibrate.figures import observe
from vftsim.composition.model import ModelSpec
from vftsim.labs.ramps import LIMITS_PERCENT
from vftsim.study.runs.model import load_model

HERE = Path(__file__).parent
RUNS, SEED = 10, 26
DATAGRAM_BYTES = 1280
"""Kernel memory of any datagram of this traffic (228 to 556 bytes)."""
_PROXY = "domains.sut.applications.proxy."
_CALLS = "workloads.calls."


def settings(cell: Cell, full: float) -> list[str]:
    """Return what the model is told of a cell, its ramp included."""
    rates = ramp_rates(full, cell)
    buffer_bytes = cell.buffer_kib * 1024
    found = [
        f"{_PROXY}socket_buffer={buffer_bytes} B",
        f"{_PROXY}memory_per_datagram={DATAGRAM_BYTES} B",
        f"domains.sut.interfaces.lo.path.ring={buffer_bytes // DATAGRAM_BYTES}",
        f"{_PROXY}t1={cell.t1_ms} ms",
        f"{_CALLS}t1={cell.t1_ms} ms",
        f"{_PROXY}processes={cell.workers}",
        f"{_CALLS}steps.initial={rates.first} /s",
        f"{_CALLS}steps.increment={rates.rise} /s",
    ]
    if cell.core_percent < 100:
        found += [f"domains.sut.quota={cell.core_percent / 10} ms", "domains.sut.period=10 ms"]
    if cell.freeze_ms:
        again = f"{{every: {STEP_S} s, most: {STEPS}}}"
        pause = f"kind: pause, at: step 1 + {STEP_S / 2} s, duration: {cell.freeze_ms} ms, repeat: {again}"
        found.append(f"faults=[{{{pause}}}]")
    return found


def model(cell: Cell, full: float, prices: Mapping[str, float]) -> ModelSpec:
    """Return the model of a cell's ramp."""
    price_settings = [f"{path}={value} ns" for path, value in prices.items()]
    return load_model(HERE / "proxy.yaml", [*price_settings, *settings(cell, full)]).spec


def ramp(cell: Cell, spec: ModelSpec, replication: int) -> Ramp:
    """Play a ramp."""
    seen = observe(spec, SEED, replication)
    phases = [f"step_{step}" for step in range(1, STEPS + 1)]
    rows = [[seen[phase, name] for name in ("load", "ihs/ims_uac", "cpu")] for phase in phases]
    return Ramp(cell, tuple(load_step(cell, *row) for row in rows))


def full_of(prices: Mapping[str, float]) -> float:
    """Return the load that fills the core when no message finds the proxy at rest: 13 touches and 720 rounds a call."""
    touch_ns, round_ns = (prices[f"{_PROXY}{name}"] for name in ("touch_cost", "script.cost"))
    return 1e9 / (13 * touch_ns + 720 * round_ns)


def predicted(ramps: Sequence[Ramp]) -> dict[str, Any]:
    """Return what is predicted of a cell: onsets of each run at each limit, and the load that fills its share."""
    return {
        "onset": {f"{limit:g}": [round(ramp.onset(limit), 2) for ramp in ramps] for limit in LIMITS_PERCENT},
        "full": round(statistics.median(ramp.full or 0.0 for ramp in ramps), 2),
        "load": [round(statistics.fmean(ramp.steps[step].load for ramp in ramps), 2) for step in range(STEPS)],
        "ihs_percent": [
            round(statistics.fmean(ramp.steps[step].inadequate_percent for ramp in ramps), 3) for step in range(STEPS)
        ],
    }


def main() -> None:
    """Play every cell and write what comes out."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("fitted", type=Path, help="outcome of 'vftsim calibrate' on the low rates")
    parser.add_argument("--full", type=float, help="calls a second that the lab took its rates from")
    parser.add_argument("--runs", type=int, default=RUNS)
    parser.add_argument("--output", type=Path, required=True)
    asked = parser.parse_args()
    parameters = json.loads(asked.fitted.read_text(encoding="utf-8"))["parameters"]
    prices = {path: float(found["value"]) for path, found in parameters.items()}
    full = asked.full or full_of(prices)
    found = {}
    for cell in cells("half"):
        spec = model(cell, full, prices)
        found[cell.name] = predicted([ramp(cell, spec, replication) for replication in range(asked.runs)])
        print(cell.name, found[cell.name]["onset"]["10"], found[cell.name]["full"], flush=True)
    told = {"full": round(full, 2), "prices": prices, "cells": found}
    asked.output.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
