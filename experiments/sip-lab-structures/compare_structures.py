"""Candidate structures of the SIP server, scored on a step they were not fitted to.

Each candidate is fitted to pre-registration and steps 1 to 3 of the virtual environment and scored on step 4 (mean
squared residual on the scales of the calibration, fresh seeds), as ``calibration/sip-lab/protocol.md`` says.

    python experiments/sip-lab-structures/compare_structures.py --jobs 2
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from loky import get_reusable_executor

from vftsim.calibrate.definition import CalibrationSpec, FreeParameter
from vftsim.calibrate.figures import measured
from vftsim.calibrate.fit import at_measured_traffic, chosen, observe, residual, search_for, with_values
from vftsim.spec import load, shipped_dir
from vftsim.study.runs.model import load_model

_SERVER = "domains.sut.applications.proxy."

CANDIDATES: dict[str, dict[str, float]] = {
    "both bursts, flush, growth with transactions, query, 4 workers": {},
    "the same without a query": {"database_cost": 0},
    "the same with 8 workers": {"processes": 8},
    "the same with 13 workers": {"processes": 13},
    "the same with 13 workers and without a query": {"processes": 13, "database_cost": 0},
    "constant burst": {"removal_cost": 0},
    "burst by expired transactions": {"housekeeping_cost": 0},
    "no bursts": {"removal_cost": 0, "housekeeping_cost": 0},
    "no flush": {"location_write_cost": 0},
    "no growth": {"growth_per_transaction": 0},
    "growth with workers at work": {"growth_per_transaction": 0},
    "growth with transactions and with workers": {},
    "messages of constant demand": {"demand_cv": 0},
}
"""Candidate: keys of the server that it holds at a value, unlike the first; others of the calibration are fitted."""

WORKERS_AT_WORK = FreeParameter(
    path=_SERVER + "growth_per_active_worker",
    low=0.0,
    high=0.5,
    start=0.1,
    meaning="relative growth of the work for each other worker that is at work",
)
FREED = {"growth with workers at work": WORKERS_AT_WORK, "growth with transactions and with workers": WORKERS_AT_WORK}
"""Candidate: a further parameter that is fitted."""

SCORED = "step_4"
SCORING_SEEDS = range(1000, 1004)


def candidate_score(name: str, fixed: dict[str, float]) -> dict[str, Any]:
    """Fit one candidate and score it."""
    fixed = {_SERVER + key: value for key, value in fixed.items()}
    folder = shipped_dir("calibration") / "sip-lab"
    whole = load(folder / "virtual.yaml", CalibrationSpec)
    definition = whole.model_copy(
        update={
            "parameters": (
                *(p for p in whole.parameters if p.path not in fixed),
                *([FREED[name]] if name in FREED else []),
            ),
            "in_sample": tuple(phase for phase in whole.in_sample if phase != SCORED),
        }
    )
    data = measured(folder / whole.dataset, whole.environment)
    spec = with_values(load_model(whole.model, whole.overrides).spec, fixed)
    found = search_for(definition, spec, data).fit
    fitted = with_values(spec, found.values)
    keys = chosen(definition.model_copy(update={"in_sample": (SCORED,)}), data)
    squares = {"cpu": [], "delays": []}
    cpu = []
    for seed in SCORING_SEEDS:
        seen = at_measured_traffic(observe(fitted, seed, 0), data, {"": fitted})
        cpu.append(seen[SCORED, "cpu"] - data[SCORED, "cpu"])
        for phase, quantity in keys:
            kind = "cpu" if quantity == "cpu" else "delays"
            squares[kind].append(residual(definition, quantity, seen[phase, quantity], data[phase, quantity]) ** 2)
    both = squares["cpu"] + squares["delays"]
    return {
        "structure": name,
        "fitted": len(definition.parameters),
        "in_sample": 2 * found.cost / len(found.residuals),
        "score": sum(both) / len(both),
        "score_delays": sum(squares["delays"]) / len(squares["delays"]),
        "cpu_error_points": sum(cpu) / len(cpu),
        "values": found.values,
    }


def _line(score: dict[str, Any]) -> str:
    parts = f"delays {score['score_delays']:5.2f}, CPU {score['cpu_error_points']:+.2f} points"
    return f"{score['score']:6.2f} ({parts})  in sample {score['in_sample']:5.2f}  {score['structure']}"


def main() -> None:
    """Score all candidates, or those whose name contains ``--only``."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", default="")
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    wanted = [(name, fixed) for name, fixed in CANDIDATES.items() if arguments.only in name]
    scores = []
    with get_reusable_executor(arguments.jobs) as pool:
        for score in pool.map(candidate_score, *zip(*wanted, strict=True)):
            scores.append(score)
            print(_line(score), file=sys.stderr, flush=True)
    text = json.dumps(sorted(scores, key=lambda s: s["score"]), indent=1)
    if arguments.output:
        arguments.output.write_text(text + "\n", encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
