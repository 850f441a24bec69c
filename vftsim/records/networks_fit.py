"""Fit the web script's cost on two figures of httperf's printed example, for the model and each wrong one.

``python -m vftsim.records.networks_fit`` writes ``fit.json``: every point with its two figures, and the best.  The two
are the 34 replies and the 25 of them in the first 5 s; the objective is the sum of their squared relative deviations,
of means over replications.  Protocol: ``calibration/networks/protocol.md``.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from vftsim.composition.keys import with_values
from vftsim.composition.run import run_model
from vftsim.records.forms.networks import example_figures
from vftsim.records.runner import read

STATED = {"replies": 34.0, "first_5_s": 25.0}
MODELS = tuple(read("networks").spec.axes["example"])
SEED, REPLICATIONS = 101, 5
_SCRIPT = "domains.server.applications.web.script"
_HIGHEST_MS, _STEP_MS = 180, 5
_LOWEST_MS = {"150 processes at once": 20}
"""Where the grid begins, if not at 80 ms."""
_AROUND = 4


def evaluate(name: str, script_ms: int) -> dict[str, float]:
    """Return the two figures at a cost, and how far off they are."""
    spec = with_values(read("networks").model(f"example {name}"), {_SCRIPT: script_ms * 1_000_000})
    found = [example_figures(run_model(spec, SEED, replication)) for replication in range(REPLICATIONS)]
    means = {key: sum(each[key] for each in found) / len(found) for key in STATED}
    off = sum((means[key] / value - 1.0) ** 2 for key, value in STATED.items())
    return {"script_ms": float(script_ms), **means, "objective": off}


def fit(name: str) -> dict[str, Any]:
    """Return the best cost of a model of the web server and all points, in steps of 5 ms, then of 1 ms."""
    coarse = range(_LOWEST_MS.get(name, 80), _HIGHEST_MS + 1, _STEP_MS)
    points = {ms: evaluate(name, ms) for ms in coarse}
    middle = _best(points)
    for ms in range(middle - _AROUND, middle + _AROUND + 1):
        if ms not in points:
            points[ms] = evaluate(name, ms)
    best = _best(points)
    return {**points[best], "points": [points[ms] for ms in sorted(points)]}


def _best(points: dict[int, dict[str, float]]) -> int:
    return min(points, key=lambda ms: (points[ms]["objective"], ms))


def main() -> None:
    """Fit all, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-o", "--output", type=Path, default=Path("calibration/networks/fit.json"))
    output: Path = parser.parse_args().output
    models = {name: fit(name) for name in MODELS}
    found = {"stated": STATED, "seed": SEED, "replications": REPLICATIONS, "models": models}
    output.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
