"""Judges what a record states against what its experiments gave, and writes the record as tables.

The rules are those of :class:`~vftsim.records.definition.Judged`; a comparison is judged on differences paired by
replication: beyond their 95 % interval, and shown to be within a margin by two one-sided tests (Schuirmann 1987).
"""

import fnmatch
import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import fmean
from typing import Any

import numpy as np

from vftsim._version import __version__
from vftsim.errors import UsageError
from vftsim.records.definition import Expression, Judged, Statement
from vftsim.records.definition import Table as TableSpec
from vftsim.records.expressions import Names, evaluate, write
from vftsim.records.runner import Record, Results
from vftsim.report.blocks import Answer, Block, Facts, Note, Table, across
from vftsim.report.markdown import markdown_table
from vftsim.report.screen import print_blocks, print_text
from vftsim.spec.suggest import shown
from vftsim.stats.intervals import t_interval
from vftsim.study.blocks.printed import Printed

HOLDS, MISSED, NOISE, UNDECIDED = "holds", "missed", "within noise", "undecided"
_ONE_SIDED = 0.90
"""Confidence of the interval that holds both one-sided tests at 5 %."""


@dataclass(frozen=True, slots=True)
class Row:
    """A statement, what was found, whether it holds, and whether a model without a mechanism holds it as well."""

    key: str
    stated: str
    found: str
    verdict: str
    null: str = ""
    notes: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> Names:
        """Return what a table's cells may name."""
        row = {"key": self.key, "stated": self.stated, "found": self.found, "verdict": self.verdict, "null": self.null}
        return {**row, **self.notes}


def row_of(statement: Statement, names: Names) -> Row:
    """Return a statement with what was found, by what its expressions may name."""
    names = {**names, "value": evaluate(statement.value, names)}
    verdict, null = _judged(statement, statement.judged, names), ""
    if statement.null is not None:
        alike = statement.judged.model_copy(update={"verdict": None})
        null = _judged(statement, alike, {**names, "value": evaluate(statement.null, names)})
    names = {**names, "verdict": verdict}
    notes = {name: write(text, names) for name, text in statement.notes.items()}
    return Row(statement.key, write(statement.stated, names), write(statement.found, names), verdict, null, notes)


_OF_A_GROUP = ("key", "stated", "found", "verdict")


def table_of(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    return Table(columns, rows, title, texts=len(columns))


@dataclass(frozen=True)
class Judgement(Printed):
    """A record with its results."""

    record: Record
    results: Results

    @property
    def title(self) -> str:
        """Whose statements they are."""
        return self.record.spec.title

    @property
    def origin(self) -> Mapping[str, Any]:
        """How the result came to be: its runs have no manifest of their own."""
        return {}

    def blocks(self) -> list[Block]:
        """Return scores and tables as blocks."""
        first, *further = [*self.scores(), ""]
        budget = [(name, f"{value:g}") for name, value in self.record.budget.items()]
        return [
            *([Answer(first, "Predicted against stated")] if first else []),
            *(Note(each) for each in further if each),
            Note(self.ran),
            *self.tables(),
            Facts("How to get it again", [("command", self.record.command), ("vftsim", __version__), *budget]),
        ]

    def print_tables(self) -> None:
        print_blocks(self.tables())
        for line in (self.ran, *self.scores()):
            print_text(line)

    @cached_property
    def names(self) -> Names:
        """Return what an expression may name once everything was run."""
        of_runs = {"mean": self.mean, "each": self.each, "means": self.means, "results": self.results}
        return with_values({**self.record.names, **of_runs, "span": self.span}, self.record.spec.values)

    def each(self, run: str, figure: str) -> np.ndarray:
        """Return a figure of an experiment by replication."""
        if run not in self.results or figure not in self.results[run]:
            raise UsageError(f"no experiment '{run}' has a figure '{figure}'")
        return np.array(self.results[run][figure])

    def mean(self, run: str, figure: str) -> float:
        """Return a figure of an experiment, its mean over the replications."""
        values = self.each(run, figure).tolist()
        return fmean(values)

    def means(self, runs: str, figure: str) -> np.ndarray:
        """Return a figure of all experiments whose names match, in their order."""
        return np.array([self.mean(run, figure) for run in fnmatch.filter(self.results, runs)])

    def span(self, run: str, figure: str, digits: int = 4) -> str:
        """Return the least and the greatest value of the replications as text."""
        return across(self.each(run, figure).tolist(), digits)

    @cached_property
    def groups(self) -> Mapping[str, list[Row]]:
        """Return every statement with its verdict, by group."""
        return {
            name: [row_of(each, {**self.names, **case}) for each in group for case in self.record.cases(each.over)]
            for name, group in self.record.spec.statements.items()
        }

    def tables(self) -> list[Table]:
        """Return the tables of the record; of one that has none, every group of statements."""
        spec = self.record.spec
        of_groups = (TableSpec(title=group, columns=_OF_A_GROUP, statements=group) for group in spec.statements)
        shown = spec.tables or tuple(of_groups)
        titled = [(write(table.title, self.names), table) for table in shown]
        return [table_of(title, table.columns, list(self._rows(table))) for title, table in titled]

    def _rows(self, table: TableSpec) -> Iterable[tuple[str, ...]]:
        if table.call is not None:
            yield from evaluate(table.call, {**self.names, "judgement": self})
            return
        if table.statements is not None:
            rows = [_Blank(row.names) for row in self.groups[table.statements]]
            yield from (tuple(write(cell, names) for cell in table.cells) for names in rows)
            return
        for case in self.record.cases(table.over):
            names = with_values({**self.names, **case}, table.values)
            yield from (tuple(write(cell, names) for cell in cells) for cells in table.rows or (table.cells,))

    def scores(self) -> list[str]:
        """Return how many statements hold, and how many of them cannot tell."""
        names = {**self.names, "count": self.count, "by_verdict": self.by_verdict, "judgement": self}
        return [write(line, names) for line in self.record.spec.scores]

    def count(self, group: str, verdict: str = "*", null: str = "*", note: str = "") -> int:
        """Return how many statements of a group have a verdict, and their null model, or a note."""
        noted = [row for row in self.groups[group] if not note or row.notes.get(note)]
        return sum(fnmatch.fnmatch(row.verdict, verdict) and fnmatch.fnmatch(row.null, null) for row in noted)

    def by_verdict(self, group: str) -> str:
        return in_counts(self.groups[group])

    @property
    def ran(self) -> str:
        return self.record.ran

    def markdown(self) -> str:
        scores = self.scores()
        lines = [f"# {self.record.spec.title}", "", self.ran, *([""] if scores else []), *(f"* {s}" for s in scores)]
        for table in self.tables():
            lines += [
                "",
                f"## {table.title}",
                "",
                markdown_table(table.columns, [list(map(str, row)) for row in table.rows]),
            ]
        return "\n".join(lines) + "\n"

    def for_machines(self) -> dict[str, Any]:
        tables = [{"title": each.title, "columns": each.columns, "rows": each.rows} for each in self.tables()]
        return {"budget": dict(self.record.budget), "results": self.results, "tables": tables, "scores": self.scores()}


def in_counts(rows: Iterable[Row]) -> str:
    """Return how many statements have which verdict, as text."""
    counts = Counter(row.verdict for row in rows)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def with_values(names: dict[str, Any], values: Mapping[str, Expression]) -> dict[str, Any]:
    """Return names with further values, each of which may use the former."""
    for name, text in values.items():
        names[name] = evaluate(text, names)
    return names


def judge(record: Record, results: Results) -> Judgement:
    """Return a record judged, in its own way where its forms have one."""
    if record.spec.judgement is None:
        return Judgement(record, results)
    module = importlib.import_module(f"vftsim.records.forms.{record.spec.forms}")
    judgement: Judgement = getattr(module, record.spec.judgement)(record, results)
    return judgement


class _Blank(dict[str, Any]):
    """Names of a row, of which a note that a statement lacks is empty."""

    def __contains__(self, key: object) -> bool:
        return True

    def __missing__(self, key: str) -> str:
        return ""


def _is_near(limits: Mapping[str, Any], value: Any) -> bool:
    near = limits["near"]
    if "by" in limits:
        return bool(abs(value - near) <= limits["by"])
    if "factor" in limits:
        return bool(1 / limits["factor"] <= value / near <= limits["factor"])
    return bool(abs(value / near - 1.0) <= limits["within"])


def _verdict(judged: Judged, names: Names) -> str:
    """Judge the value among the names."""
    if judged.verdict is not None:
        return write(judged.verdict, names)
    limits = {name: evaluate(each, names) for name, each in judged if each is not None}
    compared = next((name for name in ("less_than", "more_than", "same_as") if name in limits), None)
    if compared is not None:
        return compare(compared, names["value"], limits[compared], limits["margin"])
    return HOLDS if all(rule(limits, names["value"]) for name, rule in _RULES.items() if name in limits) else MISSED


def _judged(statement: Statement, judged: Judged, names: Names) -> str:
    """Judge the value among the names; refuse a rule that does not fit it."""
    try:
        return _verdict(judged, names)
    except UsageError:
        raise
    except (TypeError, ValueError, ArithmeticError) as error:
        key = statement.key or statement.stated
        raise UsageError(f"the statement {shown(key)} cannot be judged by its rule: {error}") from error


_RULES: dict[str, Callable[[Mapping[str, Any], Any], Any]] = {
    "near": _is_near,
    "covers": lambda limits, value: min(value) <= limits["covers"] <= max(value),
    "least": lambda limits, value: np.all(value >= limits["least"]),
    "most": lambda limits, value: np.all(value <= limits["most"]),
    "above": lambda limits, value: np.all(value > limits["above"]),
    "below": lambda limits, value: np.all(value < limits["below"]),
    "so": lambda limits, value: limits["so"],
}


def compare(rule: str, mine: Sequence[float], other: Sequence[float], margin: float) -> str:
    """Judge a comparison of two figures, paired by replication; the margin is a share of the other's mean."""
    left, right = np.array(mine), np.array(other)
    limit = margin * abs(float(np.mean(right)))
    lead = (right - left if rule == "less_than" else left - right).tolist()
    return same_verdict(lead, limit) if rule == "same_as" else lead_verdict(lead, beyond=limit, same=limit)


def lead_verdict(lead: Sequence[float], *, beyond: float = 0.0, against: float = 0.0, same: float | None = None) -> str:
    """Judge whether one figure leads another, by their differences of each replication.

    It holds where the mean lead is at least ``beyond``, its 95 % interval above 0; it is missed where the other leads
    by ``against`` like that.  Else two one-sided tests say whether the difference is within ``same``, if given.
    """
    interval = t_interval(lead)
    if interval.low > 0.0 and interval.mean >= beyond:
        return HOLDS
    if interval.high < 0.0 and interval.mean <= -against:
        return MISSED
    return NOISE if same is None or same_verdict(lead, same) == HOLDS else UNDECIDED


def same_verdict(differences: Sequence[float], margin: float, *, only_less: bool = False) -> str:
    """Judge whether differences are shown to be within a margin; ``only_less``: not below it."""
    interval = t_interval(differences, _ONE_SIDED)
    if interval.low > -margin and (only_less or interval.high < margin):
        return HOLDS
    outside = interval.high < -margin or (interval.low > margin and not only_less)
    return MISSED if outside else UNDECIDED
