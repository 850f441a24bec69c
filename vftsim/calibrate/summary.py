"""Errors by environment and kind of quantity beside those of null models, and how many rows cannot tell."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from vftsim.calibrate.accuracy import NAMES, Row, Verdict, is_percentile, is_relative
from vftsim.calibrate.figures import is_ratio
from vftsim.report.markdown import markdown_table

SAMPLES = {"in": "in", "out": "held out", "input": "input"}


@dataclass(frozen=True)
class Group:
    """Rows of one environment, sample and kind."""

    environment: str
    sample: str
    kind: str
    rows: Sequence[Row]

    @property
    def errors(self) -> list[float]:
        """Errors without their sign: of one for delays, else in the quantity's unit; ascending."""
        return _errors(self.rows)

    @property
    def unit(self) -> tuple[float, str]:
        """What errors are shown in: a factor and a name."""
        if is_relative(self.rows[0].quantity):
            return 100.0, " %"
        return 1.0, " /s" if self.rows[0].quantity == "completed" else " points"

    def nearer(self, null: str) -> tuple[float, int, int]:
        """Return a null model's median error, in how many rows it is nearer, and of how many it says something."""
        pairs = [(row, other) for row in self.rows if (other := row.by(null)) is not None]
        nearer = sum(abs(other.error) < abs(row.error) for row, other in pairs)
        errors = _errors([other for _, other in pairs])
        return (float(np.median(errors)) if errors else math.nan), nearer, len(pairs)

    @property
    def cannot_tell(self) -> int:
        """Rows in which a null model's figure lies within the model's central range."""
        return sum(not row.tells for row in self.rows)

    def as_data(self) -> dict[str, Any]:
        nulls = {null: self.nearer(null) for null in NAMES}
        return {
            "environment": self.environment,
            "sample": SAMPLES[self.sample],
            "kind": self.kind,
            "rows": len(self.rows),
            "median_error": float(np.median(self.errors)),
            "worst_error": self.errors[-1],
            "inside": sum(row.is_inside for row in self.rows),
            "cannot_tell": self.cannot_tell,
            "nulls": {
                null: {"median_error": median, "nearer": f"{nearer} of {judged}"}
                for null, (median, nearer, judged) in nulls.items()
                if judged
            },
        }


def groups_of(rows: Iterable[Row]) -> list[Group]:
    """Return the rows by environment, sample and kind, without those that are not summed up."""
    by_key: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        if kind := kind_of(row.quantity):
            by_key.setdefault((row.environment, row.sample, kind), []).append(row)
    return [Group(*key, members) for key, members in by_key.items() if _errors(members)]


def table(groups: Sequence[Group]) -> str:
    nulls = [null for null in NAMES if any(group.nearer(null)[2] for group in groups)]
    head = ("environment", "sample", "kind", "rows", "median error", "worst error", "inside")
    beside = (f"{null}: median error, nearer in" for null in nulls)
    return markdown_table((*head, *beside, "cannot tell"), [_line(group, nulls) for group in groups])


def _line(group: Group, nulls: Sequence[str]) -> tuple[str, ...]:
    factor, unit = group.unit
    cells = []
    for null in nulls:
        median, nearer, judged = group.nearer(null)
        cells.append(f"{factor * median:.1f}{unit}, {nearer} of {judged}" if judged else "")
    count, inside = len(group.rows), sum(row.is_inside for row in group.rows)
    errors = [f"{factor * error:.1f}{unit}" for error in (float(np.median(group.errors)), group.errors[-1])]
    about = group.environment, SAMPLES[group.sample], group.kind, str(count)
    return (*about, *errors, f"{inside} of {count}", *cells, f"{group.cannot_tell} of {count}")


def share_that_cannot_tell(rows: Iterable[Row]) -> str:
    """Return how many predicted rows cannot tell, as text; empty where none has a null model beside it."""
    predicted = [row for row in rows if row.sample == "out" and row.nulls]
    if not predicted:
        return ""
    cannot = sum(not row.tells for row in predicted)
    share = 100.0 * cannot / len(predicted)
    return f"{cannot} of {len(predicted)} predicted rows ({share:.0f} %) cannot tell the model from a null model"


def result(verdict: Verdict, missed: str = "**missed**") -> str:
    """Return what is shown of a target: one that a null model meets as well says nothing for the model."""
    if not verdict.passed:
        return missed
    return "met, as without a model" if verdict.by_nulls else "met"


def error_of(row: Row) -> str:
    """Return the error of a prediction: in percent, or in points of a share."""
    if not is_ratio(row.quantity) and row.quantity != "completed":
        return f"{row.predicted - row.measured:+.1f} points"
    return f"{100.0 * (row.predicted / row.measured - 1.0):+.0f} %" if row.measured else ""


def _errors(rows: Sequence[Row]) -> list[float]:
    return sorted(abs(row.error) for row in rows if not math.isnan(row.error))


def kind_of(quantity: str) -> str:
    """Return what a quantity is summed up with; nothing for one that is not."""
    if is_percentile(quantity):
        return "delay percentiles"
    if is_relative(quantity):
        return "largest delays"
    return "IHS" if quantity.startswith("ihs/") else quantity if quantity in {"cpu", "completed"} else ""
