"""Predict the runs of protocol.md from the fit, before they are measured, and set them beside what was measured.

python experiments/own-lab/predict.py --write    # predicted.json, from fitted.json
python experiments/own-lab/predict.py            # the table: predicted.json beside the dataset
"""

from __future__ import annotations

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
PREDICTED = HERE / "predicted.json"
DRAWS, REPLICATIONS = 20, 2


def runs() -> dict[str, list[str]]:
    """Return the settings of each predicted run, by environment and phase."""
    spec, _ = read_validation(str(HERE / "validation.yaml"))
    assert isinstance(spec, RunValidationSpec)
    found = {}
    for run in spec.predicted:
        environment, _, phase = run.partition("/")
        found[run] = [*spec.environments[environment], *spec.phases[phase]]
    return found


def write() -> None:
    """Predict every run."""
    found = {}
    for run, settings in runs().items():
        model = load_model(HERE / "proxy.yaml", settings)
        result = vftsim.predict(
            model, fit=[str(HERE / "fitted.json")], draws=DRAWS, replications=REPLICATIONS, figures=["cpu"], jobs=2
        )
        (figure,) = result.figures
        found[run] = {"mean": figure.mean, "low": figure.low, "high": figure.high}
        print(run, found[run], file=sys.stderr)
    PREDICTED.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


def show() -> None:
    """Print the predictions beside what was measured, and what null models say."""
    dataset = HERE / "data" / "dataset.yaml"
    fitted = measured(dataset, "proxy")
    predicted = json.loads(PREDICTED.read_text(encoding="utf-8"))
    line = statistics.linear_regression(
        *zip(*[(rate, fitted[f"r{rate}", "cpu"]) for rate in (50, 100, 200, 300, 400)], strict=True)
    )
    rows, errors, null_errors, inside = [], [], [], 0
    for run, told in predicted.items():
        environment, _, phase = run.partition("/")
        figures = measured(dataset, environment)
        seen, completed = figures[phase, "cpu"], figures[phase, "completed"]
        null = line.intercept + line.slope * int(phase[1:])
        errors.append(abs(told["mean"] / seen - 1.0))
        null_errors.append(abs(null / seen - 1.0))
        inside += told["low"] <= seen <= told["high"]
        band = f"{told['low']:.1f} to {told['high']:.1f}"
        off = f"{100.0 * (told['mean'] / seen - 1.0):+.0f} %"
        row = (run, f"{told['mean']:.1f}", band, f"{seen:.1f}", off, f"{null:.1f}", f"{completed:.0f}")
        rows.append(row)
    print("## Table\n")
    print(
        markdown_table(("run", "predicted CPU %", "nine of ten", "measured", "off", "line", "calls/s completed"), rows)
    )
    median, of_line = (100.0 * statistics.median(each) for each in (errors, null_errors))
    print(f"\n## Judged\n\nmedian error {median:.1f} %, of the line {of_line:.1f} %")
    print(f"\n{inside} of {len(rows)} inside")


if __name__ == "__main__":
    write() if "--write" in sys.argv[1:] else show()
