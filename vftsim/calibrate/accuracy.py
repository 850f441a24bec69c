"""Predicted against measured, for every row of a record, and whether a declared accuracy was met.

In-sample and held-out rows are kept apart, and beside each prediction stand null models, which know nothing of
a system: where they are as near, a row says nothing for the model, and the table shows it.

``line`` and ``parabola`` go through the runs that the model was fitted to, over load (of the logarithm for delays).
``M/M/1`` is a queue with one server fitted to them: CPU an attempt is their mean, and a delay grows as 1 / (1 - load
over what the CPU carries).  ``same as without`` is what was measured at the same load without what is predicted;
between measured loads the straight line (of the logarithm for delays).  It has seen runs that the model has not.

Errors are summed up by environment and kind of quantity beside those of null models, with how many rows cannot tell.

*Structure error*: how far held-out figures lay from their predictions, as a range for figures of their kind to come.
Draws of a fit and replications say what a model may give; that the model is wrong they do not say.  What rows that no
fit used tell of it: the logarithm of measured over predicted of delays, the difference of shares and CPU, by kind of
figure.  Of n such errors the range from the floor((n + 1) 0.05)-th to the ceil((n + 1) 0.95)-th holds nine of ten
further ones, if those come as these did; no distribution is assumed (split conformal prediction: Vovk, Gammerman and
Shafer, Algorithmic Learning in a Random World, 2005, section 4.1; Lei and others, JASA 113(523), 2018).  Fewer than 19
hold less: their outermost are taken, and their number is said.  Rows of one run err together, so ranges of few runs
are surer of themselves than they should be.  A measured run's chance is in these errors already, as is that of the
fitted numbers; so the range around a prediction is the wider one at either end, not the sum of both.
"""

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, replace
from typing import Annotated, Any, Self

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from vftsim.calibrate.figures import is_ratio
from vftsim.errors import UsageError
from vftsim.files import Number
from vftsim.labs.dataset import Observations
from vftsim.report.markdown import markdown_table
from vftsim.spec import shipped_dir
from vftsim.spec.explain import first_mistake
from vftsim.spec.shipped import file_or_shipped
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


def labelled(environment: str, observations: Observations) -> Observations:
    """Return the observations of an environment with the names of its phases in full: ``environment/phase``."""
    return {(f"{environment}/{phase}", quantity): value for (phase, quantity), value in observations.items()}


def rows_of(
    data: Observations,
    runs: Sequence[Observations],
    is_wanted: Callable[[str], bool],
    sample_of: Callable[[str], str],
    nulls_of: Callable[[str, str], Mapping[str, float]],
) -> list[Row]:
    """Return a row for every measured number that the runs have too.

    Phases are called ``environment/phase`` in the measured data, which have the order of the rows, and in the runs,
    one for each replication; one that stopped early lacks the later phases.  ``is_wanted`` tells whether a quantity is
    compared, ``sample_of`` what a run was used for (:attr:`Row.sample`), ``nulls_of`` what null models give of a run's
    quantity.
    """
    rows = []
    for (run, quantity), measured in data.items():
        values = [run_figures[run, quantity] for run_figures in runs if (run, quantity) in run_figures]
        if not values or not is_wanted(quantity):
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


def present_nulls(nulls: Mapping[str, float | None]) -> dict[str, float]:
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


ENOUGH = 19
"""Errors from which a range of nine of ten is one by its rule."""
_SHARE_BELOW = 0.05
LEARNED_FROM = ("other runs", "other environments")


def learned_as(quantity: str) -> str:
    """Return the kind of figure by which errors are learned; nothing for one of which none are."""
    return "cpu" if quantity.startswith("cpu.") else kind_of(quantity)


_LEFT_OUT: dict[str, Any] = {"sample": "out", "n": 0, "nulls": {}}
"""Fields of a row that its file leaves out, as they are read."""


def _whole(row: Any) -> Any:
    return _LEFT_OUT | row if isinstance(row, dict) else row


class HeldOutFile(BaseModel):
    """Rows of a validation that no fit used, without what is the same of all, and null models."""

    model_config = ConfigDict(extra="ignore", allow_inf_nan=False)
    rows: list[Annotated[Row, BeforeValidator(_whole)]] = Field(min_length=1)


def _error(row: Row) -> float:
    """Return measured less predicted; of delays the logarithm of their ratio."""
    return math.log(row.measured / row.predicted) if is_relative(row.quantity) else row.measured - row.predicted


def _at(quantity: str, predicted: float, error: float) -> float:
    """Return what a figure is with an error; shares, loads and sizes, which differ by points, are not below 0."""
    return predicted * math.exp(error) if is_relative(quantity) else max(predicted + error, 0.0)


@dataclass(frozen=True, slots=True)
class StructureError:
    """Errors by kind of figure, ascending, and how many runs they are of."""

    errors: dict[str, Sequence[float]]
    runs: int

    @classmethod
    def learned(cls, rows: Iterable[Row]) -> Self:
        errors_of: dict[str, list[float]] = {}
        runs = set()
        for row in rows:
            errors_of.setdefault(learned_as(row.quantity), []).append(_error(row))
            runs.add((row.environment, row.phase))
        return cls({kind: sorted(errors) for kind, errors in errors_of.items()}, len(runs))

    def around(self, quantity: str, predicted: float, low: float, high: float) -> tuple[float, float]:
        """Return the range of a figure: that of its runs, or what held-out ones tell where that is wider."""
        errors = self.errors.get(learned_as(quantity), ())
        if not errors or (is_relative(quantity) and predicted <= 0.0):
            return low, high
        count = len(errors)
        first, last = math.floor((count + 1) * _SHARE_BELOW), math.ceil((count + 1) * (1.0 - _SHARE_BELOW))
        least, most = errors[max(first, 1) - 1], errors[min(last, count) - 1]
        return min(low, _at(quantity, predicted, least)), max(high, _at(quantity, predicted, most))

    def count(self, quantity: str) -> int:
        """Return how many errors a figure's range rests on."""
        return len(self.errors.get(learned_as(quantity), ()))


def held_out(rows: Iterable[Row]) -> list[Row]:
    """Return the rows of a validation that no fit used and that errors can be told of."""
    return [row for row in rows if row.sample == "out" and learned_as(row.quantity) and _has_error(row)]


def _short(value: Any) -> Any:
    return float(f"{value:.4g}") if isinstance(value, float) else value


def as_file(rows: Iterable[Row]) -> bytes:
    """Return the held-out rows of a validation as they are read again, one a line, to four digits."""
    lines = [
        json.dumps({key: _short(value) for key, value in asdict(row).items() if key not in _LEFT_OUT})
        for row in held_out(rows)
    ]
    return ('{"rows": [\n' + ",\n".join(lines) + "\n]}\n").encode()


def _has_error(row: Row) -> bool:
    if not (math.isfinite(row.measured) and math.isfinite(row.predicted)):
        return False
    return not is_relative(row.quantity) or (row.measured > 0.0 and row.predicted > 0.0)


def read_held_out(name_or_path: str) -> StructureError:
    """Return what held-out rows tell: a file's (of ``vftsim validate --held-out``) or a shipped lab's.

    Refuses a file that is not there, or has no such rows.
    """
    labs = {path.parent.name: path for path in sorted(shipped_dir("calibration").glob("*/held-out.json"))}
    path = file_or_shipped(name_or_path, labs, "lab's held-out rows")
    try:
        file = HeldOutFile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        why = first_mistake(error)
        raise UsageError(f"--held-out: '{path}' is not what 'vftsim validate' wrote: {why}") from None
    if wrong := next((row for row in file.rows if not _has_error(row)), None):
        raise UsageError(f"--held-out: '{path}': a delay of 0 or less has no ratio ({wrong.phase}, {wrong.quantity})")
    return StructureError.learned(file.rows)


# A validation, each run left out


@dataclass(frozen=True, slots=True)
class LeftOutRows:
    """Rows of an environment and kind: how many lie inside the model's range, and inside ranges learned from others."""

    environment: str
    kind: str
    rows: int
    in_own_range: int
    by_runs: int
    by_environments: int


def each_left_out(rows: Sequence[Row]) -> list[LeftOutRows]:
    """Judge every held-out row by the range that the rows of other runs, or other environments, tell."""
    by_kind: dict[tuple[str, str], list[tuple[bool, bool, bool]]] = {}
    from_runs = {run: _without(rows, *run) for run in dict.fromkeys((r.environment, r.phase) for r in rows)}
    from_others = {name: _without(rows, name) for name in dict.fromkeys(r.environment for r in rows)}
    for row in rows:
        inside = [row.low <= row.measured <= row.high]
        for error in (from_runs[row.environment, row.phase], from_others[row.environment]):
            low, high = error.around(row.quantity, row.predicted, row.low, row.high)
            inside.append(low <= row.measured <= high)
        by_kind.setdefault((row.environment, learned_as(row.quantity)), []).append((inside[0], inside[1], inside[2]))
    return [LeftOutRows(*key, len(judged), *map(sum, zip(*judged, strict=True))) for key, judged in by_kind.items()]


def _without(rows: Sequence[Row], environment: str, phase: str | None = None) -> StructureError:
    return StructureError.learned(
        row for row in rows if row.environment != environment or (phase is not None and row.phase != phase)
    )


def sections(validated: Iterable[Row]) -> list[str]:
    """Return the table with what it says, as Markdown; nothing without held-out rows."""
    if not (rows := held_out(validated)):
        return []
    judged = [astuple(each) for each in each_left_out(rows)]
    names = dict.fromkeys(each[0] for each in judged)
    totals = [_total(name, [each for each in judged if each[0] == name]) for name in names]
    lines = [*judged, *totals, _total("all", judged)]
    return [
        "## Structure error, each run left out",
        "Rows that no fit used; how many lie within the central 90 % of the model's own runs, and within the range "
        "that errors of the same kind tell of other runs, or of other environments alone.",
        markdown_table(
            ("environment", "kind", "rows", "own range", *LEARNED_FROM), [list(map(str, line)) for line in lines]
        ),
    ]


def _total(name: str, judged: Sequence[tuple[str | int, ...]]) -> tuple[str | int, ...]:
    counts = [tuple(int(value) for value in each[2:]) for each in judged]
    return f"**{name}**", "", *map(sum, zip(*counts, strict=True))
