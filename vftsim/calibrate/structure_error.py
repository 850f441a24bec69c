"""Structure error: how far held-out figures lay from their predictions, as a range for figures of their kind to come.

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
from collections.abc import Iterable, Sequence
from dataclasses import asdict, astuple, dataclass
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from vftsim.calibrate.accuracy import Row, is_relative, kind_of
from vftsim.errors import UsageError
from vftsim.report.markdown import markdown_table
from vftsim.spec import shipped_dir
from vftsim.spec.explain import first_mistake
from vftsim.spec.shipped import file_or_shipped

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
