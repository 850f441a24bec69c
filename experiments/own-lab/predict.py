"""Predict the runs of protocol.md from the fit, before they are measured, and set them beside what was measured.

python experiments/own-lab/predict.py second --write    # predicted.json, from fitted.json
python experiments/own-lab/predict.py [second]          # the table: predicted.json beside the dataset
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path

import vftsim
from vftsim.calibrate.figures import measured
from vftsim.calibrate.validation import RunValidationSpec, read_validation
from vftsim.report.markdown import markdown_table
from vftsim.study.runs.model import load_model

HERE = Path(__file__).resolve().parent
DRAWS, REPLICATIONS = 20, 2
HELD_OUT = {"first": None, "second": "linux-lab"}
"""Of each time: the laboratory whose held-out errors the ranges have in them."""


def runs() -> dict[str, list[str]]:
    """Return the settings of each predicted run, by environment and phase: the same each time."""
    spec, _ = read_validation(str(HERE / "first" / "validation.yaml"))
    assert isinstance(spec, RunValidationSpec)
    found = {}
    for run in spec.predicted:
        environment, _, phase = run.partition("/")
        found[run] = [*spec.environments[environment], *spec.phases[phase]]
    return found


def write(folder: Path, held_out: str | None) -> None:
    """Predict every run."""
    found = {}
    for run, settings in runs().items():
        model = load_model(HERE / "proxy.yaml", settings)
        result = vftsim.predict(
            model,
            fit=[str(folder / "fitted.json")],
            draws=DRAWS,
            replications=REPLICATIONS,
            figures=["cpu"],
            held_out=held_out,
            jobs=2,
        )
        (figure,) = result.figures
        found[run] = {"mean": figure.mean, "low": figure.low, "high": figure.high}
        if held_out is not None:
            found[run] |= {"learned_low": figure.learned_low, "learned_high": figure.learned_high}
        print(run, found[run], file=sys.stderr)
    (folder / "predicted.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def show(folder: Path, held_out: str | None) -> None:
    """Print the predictions beside what was measured, and what null models say."""
    dataset = folder / "data" / "dataset.yaml"
    fitted = measured(dataset, "proxy")
    predicted = json.loads((folder / "predicted.json").read_text(encoding="utf-8"))
    line = statistics.linear_regression(
        *zip(*[(rate, fitted[f"r{rate}", "cpu"]) for rate in (50, 100, 200, 300, 400)], strict=True)
    )
    ranges = {"nine of ten": ("low", "high")}
    if held_out is not None:
        ranges["with held-out errors"] = ("learned_low", "learned_high")
    rows, errors = [], {"model": [], "line": [], "same as without": []}
    inside = dict.fromkeys(ranges, 0)
    for run, told in predicted.items():
        environment, _, phase = run.partition("/")
        figures = measured(dataset, environment)
        seen, completed = figures[phase, "cpu"], figures[phase, "completed"]
        of_line = line.intercept + line.slope * int(phase[1:])
        without = fitted[phase, "cpu"] if environment != "proxy" else None
        for name, value in zip(errors, (told["mean"], of_line, without), strict=True):
            if value is not None:
                errors[name].append(abs(value / seen - 1.0))
        for name, (low, high) in ranges.items():
            inside[name] += told[low] <= seen <= told[high]
        bands = [f"{told[low]:.1f} to {told[high]:.1f}" for low, high in ranges.values()]
        off = f"{100.0 * (told['mean'] / seen - 1.0):+.0f} %"
        rows.append((run, f"{told['mean']:.1f}", *bands, f"{seen:.1f}", off, f"{of_line:.1f}", f"{completed:.0f}"))
    print("## Table\n")
    print(markdown_table(("run", "predicted CPU %", *ranges, "measured", "off", "line", "calls/s completed"), rows))
    print("\n## Judged\n")
    for name, off_by in errors.items():
        print(f"median error of {name}: {100.0 * statistics.median(off_by):.1f} % of {len(off_by)}")
    for name, count in inside.items():
        print(f"{name}: {count} of {len(rows)} inside")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("time", nargs="?", choices=tuple(HELD_OUT), default="first")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    (write if asked.write else show)(HERE / asked.time, HELD_OUT[asked.time])
