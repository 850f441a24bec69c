"""Predicted against measured, for every row of a record, and whether a declared accuracy was met.

In-sample and held-out rows are kept apart, and beside each prediction stand null models, which know nothing of
a system: where they are as near, a row says nothing for the model, and the table shows it.

``line`` and ``parabola`` go through the runs that the model was fitted to, over load (of the logarithm for delays).
``M/M/1`` is a queue with one server fitted to them: CPU an attempt is their mean, and a delay grows as 1 / (1 - load
over what the CPU carries).  ``same as without`` is what was measured at the same load without what is predicted;
between measured loads the straight line (of the logarithm for delays).  It has seen runs that the model has not.

Errors are summed up by environment and kind of quantity beside those of null models, with how many rows cannot tell.
"""

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np

from vftsim.calibrate.figures import is_ratio
from vftsim.files import Number
from vftsim.labs.dataset import Observations
from vftsim.report.markdown import markdown_table
from vftsim.stats import central_range


@dataclass(frozen=True, slots=True)
class Row:
    """One number of the record and its prediction (mean and central 90 % of the replications)."""

    environment: str
    phase: str
    quantity: str
    sample: str
    """``in``: fitted, ``input``: a saturated calibration input, ``out``: predicted."""
    measured: Number
    predicted: Number
    low: Number
    high: Number
    n: int
    nulls: Mapping[str, float]

    def to_plain(self) -> dict[str, Any]:
        return asdict(self) | {"error": self.error}

    @property
    def run(self) -> str:
        """The run or step, ``environment/phase``."""
        return f"{self.environment}/{self.phase}"

    @property
    def is_inside(self) -> bool:
        """Whether the central 90 % of the replications contain the measured number."""
        return self.low <= self.measured <= self.high

    @property
    def tells(self) -> bool:
        """Whether every null model, if there is one, gives another figure than this model may."""
        return not any(self.low <= value <= self.high for value in self.nulls.values())

    def by(self, null: str) -> Self | None:
        """Return the row as a null model would have it; None where that says nothing."""
        value = self.nulls.get(null)
        return None if value is None else replace(self, predicted=value, low=value, high=value)

    @property
    def error(self) -> float:
        """Relative (1 = 100 %) for delays; of others in their unit: points of shares and CPU, /s of rates."""
        if is_relative(self.quantity):
            return self.predicted / self.measured - 1.0 if self.measured else float("nan")
        return self.predicted - self.measured


@dataclass(frozen=True, slots=True)
class Verdict:
    """One declared target and what came out."""

    target: str
    """In words."""
    passed: bool
    found: str
    by_nulls: tuple[str, ...] = ()
    """Null models that meet it too: then it says nothing for the model."""
    environment: str = ""


def labelled(environment: str, seen: Observations) -> Observations:
    """Return the observations of an environment with the names of its phases in full: ``environment/phase``."""
    return {(f"{environment}/{phase}", quantity): value for (phase, quantity), value in seen.items()}


def rows_of(
    data: Observations,
    runs: Sequence[Observations],
    wanted: Callable[[str], bool],
    sample_of: Callable[[str], str],
    nulls_of: Callable[[str, str], Mapping[str, float]],
) -> list[Row]:
    """Return a row for every measured number that the runs have too.

    Phases are called ``environment/phase`` in the measured data, which have the order of the rows, and in the runs,
    one for each replication; one that stopped early lacks the later phases.  ``wanted`` tells whether a quantity is
    compared, ``sample_of`` what a run was used for (:attr:`Row.sample`), ``nulls_of`` what null models give of a run's
    quantity.
    """
    rows = []
    for (run, quantity), measured in data.items():
        values = [seen[run, quantity] for seen in runs if (run, quantity) in seen]
        if not values or not wanted(quantity):
            continue
        environment, _, phase = run.partition("/")
        low, high = central_range(values)
        nulls = nulls_of(run, quantity) if (run, "load") in data else {}
        mean, n = float(np.mean(values)), len(values)
        rows.append(Row(environment, phase, quantity, sample_of(run), measured, mean, low, high, n, nulls))
    return rows


def beside_nulls(
    judge: Callable[[list[Row]], list[Verdict]], rows: list[Row], *, of_all: bool = False
) -> list[Verdict]:
    """Judge rows, and beside them those of every null model; ``of_all``: where it says something of all of them."""
    verdicts = judge(rows)
    for null in NAMES:
        others = [other for row in rows if (other := row.by(null)) is not None]
        if of_all and not 0 < len(others) == len(rows):
            continue
        verdicts = [
            replace(verdict, by_nulls=(*verdict.by_nulls, null)) if other.passed else verdict
            for verdict, other in zip(verdicts, judge(others), strict=True)
        ]
    return verdicts


LINE, PARABOLA, QUEUE, WITHOUT = "line", "parabola", "M/M/1", "same as without"
NAMES = (LINE, PARABOLA, QUEUE, WITHOUT)
_MOST_LOGARITHM = 700.0
FULL_PERCENT = 100.0


def is_relative(quantity: str) -> bool:
    """Whether errors of a quantity are told in percent of the measured value."""
    return is_percentile(quantity) or quantity.endswith("/max")


def step_number(phase: str) -> int:
    """Return the number of a step; 0 for what is none."""
    match = re.fullmatch(r"step_([0-9]+)", phase)
    return int(match[1]) if match else 0


def is_percentile(quantity: str) -> bool:
    return "/p" in quantity


@dataclass(frozen=True, slots=True)
class Base:
    """What a null model knows: loads, CPU in percent and a quantity of some runs."""

    quantity: str
    loads: Sequence[float]
    cpu: Sequence[float]
    values: Sequence[float]

    @classmethod
    def of(cls, data: Observations, phases: Sequence[str], quantity: str) -> Self:
        """Return it, without the phases in which something was not measured."""
        keys = ("load", "cpu", quantity)
        rows = [[data[phase, key] for key in keys] for phase in phases if all((phase, key) in data for key in keys)]
        return cls(quantity, *map(list, zip(*sorted(rows), strict=True))) if rows else cls(quantity, [], [], [])

    @property
    def is_of_logarithms(self) -> bool:
        """Whether straight lines are drawn through logarithms."""
        return is_relative(self.quantity) and bool(self.values) and min(self.values) > 0.0

    def curve(self, load: float, degree: int) -> float | None:
        """Return the line or parabola at a load; None for too few runs."""
        if len(self.loads) <= degree:
            return None
        values = np.log(self.values) if self.is_of_logarithms else self.values
        value = float(np.polyval(np.polyfit(self.loads, values, degree), load))
        return math.exp(min(value, _MOST_LOGARITHM)) if self.is_of_logarithms else value

    def queue(self, load: float, share: float = 1.0) -> float | None:
        """Return what a queue whose server has a share of the CPU gives at a load; None where it says nothing."""
        prices = [cpu / at for cpu, at in zip(self.cpu, self.loads, strict=True) if at > 0.0]
        price = float(np.mean(prices)) if prices else 0.0
        if not price > 0.0:
            return None
        most = share * FULL_PERCENT / price
        if self.quantity == "cpu":
            return min(price * load, share * FULL_PERCENT)
        if self.quantity == "completed":
            return min(load, most)
        if self.quantity.startswith("ihs/"):
            return 100.0 * (1.0 - most / load) if load > most else 0.0
        idle = [1.0 - cpu / FULL_PERCENT for cpu in self.cpu]
        if not self.is_of_logarithms or load >= most or min(idle) <= 0.0:
            return None
        mean_log = np.mean([math.log(value * free) for value, free in zip(self.values, idle, strict=True)])
        return float(math.exp(mean_log) / (1.0 - load / most))

    def between(self, load: float) -> float | None:
        """Return what was measured at a load, between two of the runs; None outside of them."""
        if not self.loads or not self.loads[0] <= load <= self.loads[-1]:
            return None
        values = np.log(self.values) if self.is_of_logarithms else self.values
        value = float(np.interp(load, self.loads, values))
        return math.exp(value) if self.is_of_logarithms else value


def known(nulls: Mapping[str, float | None]) -> dict[str, float]:
    """Return the nulls that say something."""
    return {name: value for name, value in nulls.items() if value is not None}


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
