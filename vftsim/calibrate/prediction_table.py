"""The table of a prediction with its parts."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import TYPE_CHECKING

from vftsim.calibrate.prediction import DEFAULT_DRAWS, FEW_DRAWS
from vftsim.report.head import print_head, print_outside
from vftsim.report.screen import print_table, print_text
from vftsim.study.validity import MARK

if TYPE_CHECKING:
    from vftsim.calibrate.prediction import Figure, Prediction


def print_prediction(found: Prediction) -> None:
    """Print every figure with what makes it uncertain."""
    print_head(found.manifest["models"], found.manifest["seed"])
    several = len(found.structures) > 1
    columns = ["figure", "mean", "between runs", "parameters", *(["structures"] if several else []), "nine of ten runs"]
    print_table(
        "Prediction", (*columns, "n"), [_row(figure, several, found.outside) for figure in found.figures],
        f"{found.draws} points of {found.runs} runs"
        + (f" in each of {len(found.structures)} structures: {', '.join(found.structures)}" if several else "")
        + ". Between runs, parameters: standard deviations of one run by its traffic and by the fitted numbers. "
        "Nine of ten runs: traffic and numbers together" + (", of the widest structure" if several else "")
        + "; n: runs that have the figure. The fit's own intervals are taken as they are.",
    )  # fmt: skip
    for line in _remarks(found):
        print_text(line)
    if found.outside:
        print_outside(found.model)


def _remarks(found: Prediction) -> list[str]:
    """Return what the ranges rest on, and what was drawn otherwise than the fit's interval says."""
    low, high = (f"{100 * x:.0f}" for x in found.range_holds)
    lines = [
        f"Nine of ten rests on the outermost of {found.draws * found.runs} runs at {found.draws} points: a range holds "
        f"{low} to {high} % of further runs (95 %, runs of a point counted as one)"
    ]
    if found.draws < FEW_DRAWS:
        lines[0] += f"; few points: with --draws {5 * DEFAULT_DRAWS} the ranges may come out wider or narrower"
    if found.undetermined:
        keys = ", ".join(found.undetermined)
        lines.append(f"Not told by the data, so drawn evenly from what the fit took as possible beforehand: {keys}")
    if found.refused:
        lines.append(f"Drawn again, as the model's own checks refuse them: {found.refused} points")
    return lines


def _row(figure: Figure, several: bool, outside: Collection[str]) -> list[str]:
    mark = MARK if figure.name in outside else ""
    means = [f"{figure.least:.4g} to {figure.most:.4g}"] if several else []
    count = f"{figure.runs}" if figure.runs == figure.of else f"{figure.runs} of {figure.of}"
    parts = (_sd(figure.replications_sd), _sd(figure.parameters_sd))
    return [
        f"{figure.name}{mark}", f"{figure.mean:.4g}", *parts, *means, f"{figure.low:.4g} to {figure.high:.4g}", count
    ]  # fmt: skip


def _sd(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.2g}"
