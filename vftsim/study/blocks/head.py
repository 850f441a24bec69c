"""The head of every result: the simulated model, and the basis of its figures."""

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.report.blocks import Cell, Marked, Note
from vftsim.stats import Estimate, binomial_interval
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.figures.validity import MARK, Missing, below_table, is_outside, not_covered_line
from vftsim.study.runs.model import Model

_INTERVALS = (
    "± or [..]: {} % interval over replications, corrected for skewness, from ten replications on; (x to y): lowest "
    "and highest replication, no interval; neither: one replication or no spread. What happens in few runs may be "
    "missing from all: coverage is measured in docs/interval-coverage.md."
)


def intervals(confidence: float) -> str:
    """Return what intervals in a table mean."""
    return _INTERVALS.format(f"{100.0 * confidence:g}")


INTERVALS = intervals(0.95)


def unseen(n: int) -> str:
    """Return how often at most something happens that no replication has shown; nothing for few."""
    if n < FEWEST_RUNS:
        return ""
    return f" What none of these {n} has shown may befall up to {100 * binomial_interval(0, n).high:.2g} % of runs."


def head(models: Sequence[Mapping[str, Any]], seed: int) -> list[Note]:
    """Return what was simulated and changed, what was set in vain, and what the model's values and costs rest on."""
    notes = []
    for model in models:
        changes = [*(f"--set {text}" for text in model["set"]), *model["notes"]]
        changed = "".join(f"; {change}" for change in changes)
        kinds = f" ({', '.join(model['workloads'])})" if model["workloads"] else ""
        notes.append(Note(f"{model['label']}{kinds}, seed {seed}{changed}"))
        for setting in model["without_effect"]:
            key, _, why = setting.partition(": ")
            notes.append(Note(f"{key} has no effect: {why}", warns=True))
        notes += [Note(remark) for remark in model.get("remarks", ())]
        if line := not_covered_line(model.get("not_covered", ())):
            notes.append(Note(line, warns=True))
        notes += [Note(f"Costs of {costs}") for costs in model.get("costs", ())]
    return [*notes, *not_fitted_notes(models)]


def not_fitted_notes(models: Sequence[Mapping[str, Any]]) -> list[Note]:
    """Return which models do not say what they were fitted to; nothing for none."""
    names = dict.fromkeys(model["name"] for model in models if not model["resolved"].get("calibrated"))
    were = "was" if len(names) == 1 else "were"
    text = f"no domain of validity is known: nothing says what {', '.join(names)} {were} fitted to"
    return [Note(text, warns=True)] if names else []


def outside_notes(*models: Model) -> list[Note]:
    """Return what the asterisks in a table mean, for the models that have one there; nothing for none."""
    line = below_table([(model.label, model.spec) for model in models])
    return [Note(line, warns=True)] if line else []


def missing_notes(missing: Iterable[Missing]) -> list[Note]:
    """Return what was asked and did not happen: figures are of what did."""
    return [Note(str(each), warns=True) for each in missing]


def marked(spec: ModelSpec | None, load: float, cell: Estimate | float | str | None = None) -> Cell:
    """Return a load, or another figure at it, with an asterisk if the load is outside of the calibration."""
    shown = load if cell is None else cell
    return Marked(shown, MARK) if spec is not None and is_outside(spec, load) else shown


def within(spec: ModelSpec) -> tuple[float, float] | None:
    """Return the loads that a model was fitted to, as a chart shades what lies beyond; None if it does not say."""
    if spec.calibrated is None:
        return None
    low, high = spec.calibrated.loads
    return low, high


def estimate_of(row: Mapping[str, Any]) -> Estimate:
    """Return the estimate that columns of a table hold (:func:`~vftsim.study.figures.frames.estimate_columns`)."""
    value, low, high = (math.nan if row[name] is None else float(row[name]) for name in ("estimate", "low", "high"))
    kind: Any = "range" if row["interval"] == "none" else row["interval"]
    confidence = row["confidence"] if row["confidence"] is not None else math.nan
    return Estimate(value, (high - low) / 2.0, low, high, int(row["n"]), confidence, kind)


def share_in_words(e: Estimate) -> str:
    """Return a share of runs in percent, by the interval that is known of it."""
    if bound := e.bound(lambda share: f"{100 * share:.2g} %"):
        return bound
    return " to ".join(f"{100 * x:.2g}" if x < 0.99 else f"{100 * x:.1f}" for x in (e.low, e.high)) + " %"
