"""One price or a cost of waking: which predicts the Linux lab's held-out rows better, all of them together.

What is run, and what counts, stands in calibration/linux-lab/protocol-waking.md.

    python experiments/linux-lab/waking.py [-n REPLICATIONS]
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence

import numpy as np
from busy_processor import Structure, by_rate, by_repeats, fitted, hours
from rate_price import GROUPS, BaseRuns, scores
from score import NAME, OVERLOADED, label, percentiles, played

from vftsim.calibrate.accuracy import Row, each_left_out, held_out
from vftsim.calibrate.definition import CalibrationSpec, read_definition
from vftsim.calibrate.fit import residual
from vftsim.calibrate.fitted import read_fit
from vftsim.calibrate.validation import RunValidationSpec
from vftsim.report.markdown import markdown_table

RESAMPLES = 2000
REST = ("noloop", "register")
ONE_PRICE, WAKING = "one price", "waking"


def counted(rows: Sequence[Row]) -> list[Row]:
    """Return the rows that the criterion is about: of overloaded runs CPU and completed calls alone."""
    return [
        row
        for row in rows
        if row.sample == "out" and (label(row) not in OVERLOADED or row.quantity in ("cpu", "completed"))
    ]


def sizes(rows: Sequence[Row]) -> dict[str, list[float]]:
    """Return the sizes of errors by run, on the scales of the fit."""
    definition, _ = read_definition("linux-lab/base", CalibrationSpec)
    found: dict[str, list[float]] = {}
    for row in counted(rows):
        error = abs(residual(definition, row.quantity, row.predicted, row.measured))
        found.setdefault(label(row), []).append(error)
    return found


def criterion(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return the mean size of errors of each structure: over all rows, and by group of runs."""
    every = {name: sizes(each) for name, each in rows.items()}
    groups = {"all": (), **GROUPS, "without loop or calls": REST}
    lines = []
    for group, environments in groups.items():
        cells = []
        for of_runs in every.values():
            chosen_errors = [e for run, errors in of_runs.items() if _is_in(run, environments) for e in errors]
            cells.append(f"{np.mean(chosen_errors):.3f} ({len(chosen_errors)})")
        lines.append((group, *cells))
    return markdown_table(("mean size of an error (rows)", *rows), lines)


def _is_in(run: str, environments: Sequence[str]) -> bool:
    return not environments or run.partition("/")[0] in environments


def sureness(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return in how many resamples of the runs waking has the lower mean."""
    one, waking = (sizes(rows[name]) for name in (ONE_PRICE, WAKING))
    lost = np.array([[sum(waking[run]) - sum(one[run]), len(one[run])] for run in one])
    drawn = np.random.default_rng(1).integers(0, len(lost), (RESAMPLES, len(lost)))
    means = lost[drawn, 0].sum(axis=1) / lost[drawn, 1].sum(axis=1)
    nearer, better = int((means < 0.0).sum()), int((lost[:, 0] < 0.0).sum())
    return f"waking is nearer in {better} of {len(lost)} runs, and in {nearer} of {RESAMPLES} resamples of the runs"


def coverage(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return how many rows lie inside the central 90 %: by the model's own runs, and with errors of other runs."""
    lines = []
    for name, each in rows.items():
        judged = each_left_out(held_out(counted(each)))
        for group, environments in {"all": (), **GROUPS}.items():
            for kind in ("delay percentiles", "cpu", ""):
                subset = [j for j in judged if _is_in(j.environment, environments) and j.kind.startswith(kind)]
                if sum(j.rows for j in subset) and (kind or group == "all"):
                    of = sum(j.rows for j in subset)
                    cells = (
                        _share(sum(j.in_own_range for j in subset), of),
                        _share(sum(j.by_runs for j in subset), of),
                    )
                    lines.append((name, group, kind or "all kinds", *cells))
    return markdown_table(("structure", "runs", "kind", "own range", "with errors of other runs"), lines)


def _share(inside: int, of: int) -> str:
    return f"{inside} of {of}, {100 * inside / of:.0f} %"


def usual(rows: Mapping[str, Sequence[Row]]) -> str:
    """Return median errors by group beside null models, of the rows that the other scripts count."""
    shown = {}
    for name, each in rows.items():
        usual_rows = [row for row in each if label(row) not in OVERLOADED and row.environment not in REST]
        shown[name] = [*percentiles(usual_rows), *(row for row in usual_rows if row.quantity == "cpu")]
    return scores(shown)


def main() -> None:
    """Play the structures, and print the criterion, the targets and what the lab's repeats differ by."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", type=int, default=20, help="replications of each predicted run")
    count = parser.parse_args().n
    whole, _ = read_definition("linux-lab/base", CalibrationSpec)
    spec, _ = read_definition(NAME, RunValidationSpec)
    wrong = by_rate(BaseRuns(), -1.0)
    print("## Fitted anew\n", flush=True)
    structures = {
        ONE_PRICE: Structure(),
        WAKING: Structure(read_fit("linux-lab/waking").values),
        "the other way": Structure(fitted("the other way", factors=wrong(whole.in_sample)), wrong(spec.predicted)),
    }
    speeds = hours(count)
    for title, each in (("As it is", [1.0] * count), ("With the speed of the hour", speeds)):
        found = {name: played(s.factors, count, s.on, each, every=True) for name, s in structures.items()}
        print(f"\n## Criterion: {title[0].lower()}{title[1:]}\n\n{criterion(found)}\n\n{sureness(found)}")
        print(f"\n## {title}\n\n{usual(found)}\n\n## Inside: {title[0].lower()}{title[1:]}\n\n{coverage(found)}")
    print(f"\n## A repeat for the others\n\n{by_repeats()}")


if __name__ == "__main__":
    main()
