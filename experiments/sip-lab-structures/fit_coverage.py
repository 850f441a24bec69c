"""Coverage of a fit itself: refit data that the model made with known parameters, and count how often it finds them.

Each data set is one ramp of the model with the fitted values, steps of 900 s as in the lab, on a seed of its own.
The shipped calibration is then run on it as on the lab's record: same starts, bounds, step lengths and seed.

    python experiments/sip-lab-structures/fit_coverage.py ft --sets 20 --output coverage.json
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from vftsim.calibrate.definition import CalibrationSpec
from vftsim.calibrate.drawn import read_fit
from vftsim.calibrate.fit import fit, observe, with_values
from vftsim.calibrate.references import model_file, read_definition
from vftsim.labs.place import place
from vftsim.stats.intervals import binomial_interval
from vftsim.study.model import load_model

FULL = ("workloads.calls.steps.duration=900 s", "workloads.calls.steps.transient=30 s")
FIRST_SEED = 7000


def truth(name: str, definition: CalibrationSpec) -> dict[str, float]:
    """Return the fitted values in the order of the calibration's parameters."""
    values = read_fit(f"sip-lab/{name}").values
    return {p.path: values[p.path] for p in definition.parameters}


def refit(name: str, number: int) -> dict[str, Any]:
    """Make one data set and fit it; return truth and interval of every parameter."""
    definition, tree = read_definition(f"sip-lab/{name}", CalibrationSpec)
    file = model_file(place(tree, "model"), "model")
    known = truth(name, definition)
    whole = with_values(load_model(file, (*definition.overrides, *FULL)).spec, known)
    data = observe(whole, FIRST_SEED + number, 0)
    found = fit(definition, load_model(file, definition.overrides).spec, data)
    return {
        path: {"truth": value, "value": found.values[path], "low": found.low[path], "high": found.high[path]}
        for path, value in known.items()
    }


def table(name: str, refits: list[dict[str, Any]]) -> str:
    """Return coverage, mean error and mean half width of every parameter, in percent of the true value."""
    lines = ["| fit | parameter | true value | mean error | mean half width | inside |", "|---|---|---|---|---|---|"]
    for path in refits[0]:
        own = [each[path] for each in refits]
        known = own[0]["truth"]
        inside = sum(each["low"] <= known <= each["high"] for each in own)
        share = binomial_interval(inside, len(own))
        error = sum(each["value"] / known - 1.0 for each in own) / len(own)
        width = sum((each["high"] - each["low"]) / 2.0 / known for each in own) / len(own)
        lines.append(
            f"| {name} | {path.rsplit('.', 1)[-1]} | {known:.6g} | {100 * error:+.1f} % | {100 * width:.1f} % | "
            f"{inside} of {len(own)} ({100 * share.low:.0f}-{100 * share.high:.0f} %) |"
        )
    return "\n".join(lines)


def main() -> None:
    """Refit the data sets of one calibration; keep each as soon as it is done."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("fit", choices=["virtual", "native", "ft"])
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--output", type=Path)
    arguments = parser.parse_args()
    refits = []
    for number in range(arguments.sets):
        refits.append(refit(arguments.fit, number))
        print(json.dumps(refits[-1]), file=sys.stderr, flush=True)
        if arguments.output:
            arguments.output.write_text(json.dumps(refits) + "\n", encoding="utf-8")
    print(table(arguments.fit, refits))


if __name__ == "__main__":
    main()
