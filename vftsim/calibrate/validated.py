"""What a validation found: its rows and verdicts, as blocks, as plain data, and as a Markdown page."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from vftsim._version import __version__
from vftsim.calibrate.accuracy import (
    LINE,
    PARABOLA,
    QUEUE,
    Row,
    Verdict,
    error_of,
    groups_of,
    is_relative,
    result,
    sections,
    share_that_cannot_tell,
    step_number,
    table,
)
from vftsim.calibrate.capacities import CapacityRow, LeftOut, RatioRow, section
from vftsim.calibrate.figures import unit_of_figure
from vftsim.calibrate.validation import RunValidationSpec, ValidationSpec
from vftsim.files import read_back
from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, with_unit
from vftsim.report.markdown import markdown_table
from vftsim.stats import Estimate, binomial_interval
from vftsim.study.blocks.printed import Printed
from vftsim.study.store.opened import read_answer, read_manifest

_MOST_CHARTS = 6
_WIDE = 20.0
"""Axes are logarithmic where the largest measured figure is so many times the least."""


@dataclass(slots=True)
class Validated(Printed):
    """Rows and verdicts; what only ramps have is empty of runs."""

    spec: ValidationSpec | RunValidationSpec
    rows: list[Row] = field(default_factory=list)
    edge_rows: list[Row] = field(default_factory=list)
    verdicts: list[Verdict] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What makes the result doubtful, in words."""
    capacities: list[CapacityRow] = field(default_factory=list)
    ratios: list[RatioRow] = field(default_factory=list)
    left_out: list[LeftOut] = field(default_factory=list)
    data_sha256: dict[str, str] = field(default_factory=dict)
    """Hash of the measured data, by environment."""
    collapse: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Environment -> (replications of the edge step that collapsed, all)."""
    manifest: dict[str, Any] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        return all(verdict.passed for verdict in self.verdicts)

    def add(self, environment: str, verdicts: Sequence[Verdict]) -> None:
        self.verdicts += [replace(verdict, environment=environment) for verdict in verdicts]

    @classmethod
    def opened(cls, folder: Path) -> Self:
        how, data = read_manifest(folder), read_answer(folder)
        form = RunValidationSpec if "model" in data["validation"] else ValidationSpec
        collapse = {name: (each["collapsed"], each["n"]) for name, each in data["collapse"].items()}
        return read_back(cls, data, spec=form.model_validate(data["validation"]), collapse=collapse, manifest=how)

    def for_machines(self) -> dict[str, Any]:
        return {
            "validation": self.spec.model_dump(mode="json"),
            "warnings": self.warnings,
            "verdicts": [asdict(verdict) for verdict in self.verdicts],
            "collapse": {n: {"collapsed": bad, "n": total} for n, (bad, total) in self.collapse.items()},
            "capacities": [row.as_data() for row in self.capacities],
            "ratios": [asdict(row) for row in self.ratios],
            "summary": [group.as_data() for group in groups_of(self.rows)],
            "cannot_tell": share_that_cannot_tell(self.rows),
            "left_out": [each.as_data() for each in self.left_out],
            "rows": [row.to_plain() for row in self.rows],
            "edge_rows": [row.to_plain() for row in self.edge_rows],
        }

    def blocks(self) -> list[Block]:
        """Return whether the declared accuracy is met, and what was predicted for every measured row."""
        spec, verdicts = self.spec, self.verdicts
        sample, share = f"n={spec.replications}, seed {spec.seed}", share_that_cannot_tell(self.rows)
        declared = [[v.target, result(v, "MISSED"), v.found] for v in verdicts]
        if isinstance(spec, RunValidationSpec):
            tables: list[Block] = [
                *_against_charts(self.rows),
                rows_table(self.rows, f"Predicted runs: {spec.name}", sample),
                Table(("target", "", "found"), declared, "Declared accuracy", texts=3),
            ]
        else:
            by_environment = [[v.environment, *cells] for v, cells in zip(verdicts, declared, strict=True)]
            heads, title = ("environment", "target", "", "found"), f"Declared accuracy: {spec.name}"
            tables = [*_measured_charts(self.rows), Table(heads, by_environment, title, f"ramp {sample}", texts=4)]
        return [
            *(Note(f"warning: {text}", warns=True) for text in self.warnings),
            _verdict(spec.name, verdicts),
            *tables,
            *([Note(f"Beside null models: {share}.")] if share else []),
            *(
                Note(f"{where}: the edge step collapsed in {bad} of {n} replications")
                for where, (bad, n) in self.collapse.items()
            ),
        ]


def rows_table(rows: Iterable[Row], title: str, caption: str) -> Table:
    """Return measured rows beside their predictions."""
    columns = ("run", "", "quantity", "measured", "predicted", "error")
    body: list[Sequence[Cell]] = []
    for row in rows:
        predicted = Estimate(row.predicted, (row.high - row.low) / 2.0, row.low, row.high, row.n, 0.9, "range")
        use = "fitted" if row.sample == "in" else ""
        body.append([row.run, use, row.quantity, row.measured, predicted, error_of(row)])
    return Table(columns, body, title, f"{caption}; (x to y): central 90 % of the runs", texts=3)


def _verdict(name: str, verdicts: Sequence[Verdict]) -> Answer:
    met = sum(verdict.passed for verdict in verdicts)
    missed = [verdict.target for verdict in verdicts if not verdict.passed]
    return Answer(
        f"{met} of {len(verdicts)} declared targets are met",
        f"How well does the model predict {name}?",
        f"missed: {'; '.join(missed)}" if missed else "",
    )


def _measured_charts(rows: Sequence[Row]) -> list[Block]:
    """Return what was predicted and what was measured over the steps, for the figures with most rows beyond the fit."""
    groups: dict[tuple[str, str], list[tuple[int, Row]]] = {}
    for row in rows:
        if step := step_number(row.phase):
            groups.setdefault((row.environment, row.quantity), []).append((step, row))
    charts: list[Block] = []
    for environment in dict.fromkeys(where for where, _ in groups):
        for quantity in ("cpu", "ihs/global", "SES1/p50", "SES1/p95"):
            steps = groups.get((environment, quantity), [])
            if len(steps) > 1:
                charts.append(_beside(f"{quantity}: {environment}", quantity, steps))
    return charts


def _against_charts(rows: Sequence[Row]) -> list[Block]:
    """Return predictions over what was measured, of the quantities with most rows; on the line they are equal."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if math.isfinite(row.measured) and math.isfinite(row.predicted):
            groups.setdefault(row.quantity, []).append(row)
    charts: list[Block] = []
    for quantity, group in sorted(groups.items(), key=lambda each: -len(each[1]))[:_MOST_CHARTS]:
        measured = sorted(row.measured for row in group)
        if measured[0] == measured[-1]:
            continue
        is_wide = measured[0] > 0.0 and measured[-1] > _WIDE * measured[0] and min(row.low for row in group) > 0.0
        scale: Literal["log", "linear"] = "log" if is_wide else "linear"
        series = {"fitted to": ("in", "input"), "predicted": ("out",)}
        of_series = {name: [row for row in group if row.sample in samples] for name, samples in series.items()}
        points = {n: [Point(r.measured, r.predicted, r.low, r.high) for r in each] for n, each in of_series.items()}
        dots = [Series(name, of, "dots") for name, of in points.items() if of]
        equal = Series("equal", [Point(value, value) for value in (measured[0], measured[-1])], "curve")
        x, y = (with_unit(name, unit_of_figure(quantity)) for name in ("measured", "predicted"))
        title = f"{quantity}: predicted against measured"
        charts.append(Chart(title, x, y, [*dots, equal], scale=scale, x_scale=scale))
    return charts


def _beside(title: str, quantity: str, steps: Sequence[tuple[int, Row]]) -> Chart:
    predicted = [Point(float(step), row.predicted, row.low, row.high) for step, row in steps]
    measured = [Point(float(step), row.measured) for step, row in steps]
    fitted_to = [step for step, row in steps if row.sample == "in"]
    unit = unit_of_figure(quantity)
    return Chart(
        title,
        "step",
        with_unit(quantity, unit),
        [Series("predicted, central 90 %", predicted), Series("measured", measured, "measured")],
        within=(min(fitted_to), max(fitted_to)) if fitted_to else None,
        scale="log" if unit == "ms" else "linear",
    )


Columns = Mapping[str, Callable[[Any], str]]
"""A table's cells by the heads of their columns."""

_SAMPLES = {
    "out": "Held out: predictions",
    "input": "Saturated step used as a calibration input",
    "in": "In sample: fitted",
}


def page(validated: Validated, name: str) -> str:
    """Return the report: every row of the record, in sample and held out apart."""
    spec = validated.spec
    parts = _of_runs(validated, spec, name) if isinstance(spec, RunValidationSpec) else _of_ramps(validated, spec, name)
    return "\n\n".join(parts) + "\n"


def _of_runs(validated: Validated, spec: RunValidationSpec, name: str) -> list[str]:
    return [
        f"# {spec.name}: predicted against measured",
        f"Written by `vftsim validate {name}` (vftsim {__version__}, seed {spec.seed}): {spec.replications} "
        "replications of each run; a prediction is their mean, the range their central 90 %. CPU is compared at the "
        "measured load. Errors of delays and rates in percent, of CPU and shares in points. `fitted`: the model was "
        "fitted to this run.",
        *_warnings(validated),
        *_declared(validated, {}),
        *_beside_nulls(validated),
        table(groups_of(validated.rows)),
        *_learned(validated),
        "## Every row",
        _table(_RUN_COLUMNS, validated.rows),
    ]


def _beside_nulls(validated: Validated) -> list[str]:
    cannot_tell = _cannot_tell(validated)
    if not cannot_tell:
        return ["## Summary of errors"]
    return [
        "## Beside null models",
        "Line and M/M/1 queue know the fitted runs of the system alone, the queue the CPU that is left to it, too; "
        "*same as without* is what was measured of the system alone at the same load, whether the model has seen it or "
        f"not.{cannot_tell}",
    ]


def _cannot_tell(validated: Validated) -> str:
    share = share_that_cannot_tell(validated.rows)
    return share and f" {share}: its figure lies within the model's range."


def _of_ramps(validated: Validated, spec: ValidationSpec, name: str) -> list[str]:
    parts = [
        "# Accuracy: predicted against measured",
        f"Written by `vftsim validate {name} --report docs/accuracy.md --force` (vftsim {__version__}, "
        f"seed {spec.seed}, measured data {', '.join(f'{n} {h[:12]}' for n, h in validated.data_sha256.items())}). "
        f"Each ramp: {spec.replications} replications of steps of {spec.step_duration / 1e9:g} s (the lab: 900 s); "
        f"each edge step: {spec.edge_replications} replications of {spec.edge_duration / 1e9:g} s. "
        "A prediction is the mean of the replications that reached the step; the range is their central 90 %. "
        f"CPU up to {spec.targets.cpu_up_to:g} % is brought to the measured load and mix of its step, as fits have it. "
        "Null models know the same in-sample steps: the straight line and the parabola through them over load (of the "
        "logarithm for delays), and an M/M/1 queue whose price of an attempt is their mean; their capacity is the last "
        f"step below a full CPU.{_cannot_tell(validated)} "
        "Memory is compared only when steps have their full length, because it falls with every attempt. "
        "What was fitted to what: `calibration/sip-lab/protocol.md`.",
        *_warnings(validated),
        *_declared(validated, {"environment": lambda v: v.environment}),
    ]
    for environment, (bad, n) in validated.collapse.items():
        interval = binomial_interval(bad, n)
        parts.append(
            f"Probability of collapse in the edge step of `{environment}` (more than 10 % handled inadequately): "
            f"{bad} of {n} replications, 95 % interval {interval.low:.2f} to {interval.high:.2f}."
        )
    parts += ["## Capacities", _table(_CAPACITIES, validated.capacities)]
    if validated.ratios:
        parts += ["Ratios under the same traffic, replication by replication:", _table(_RATIOS, validated.ratios)]
    parts += _learned(validated)
    if validated.edge_rows:
        parts += ["## Edge step, at full length", _table(_STEP_COLUMNS, validated.edge_rows)]
    parts += ["## Summary of errors", table(groups_of(validated.rows))]
    for sample, title in _SAMPLES.items():
        if rows := [row for row in validated.rows if row.sample == sample]:
            parts += [f"## {title}", _table(_STEP_COLUMNS, rows)]
    return parts


def _warnings(validated: Validated) -> list[str]:
    return [f"**Warning**: {warning}." for warning in validated.warnings]


def _declared(validated: Validated, first: Columns) -> list[str]:
    columns: Columns = {
        **first,
        "target": lambda v: v.target,
        "result": result,
        "found": lambda v: v.found,
        "null models that meet it": lambda v: ", ".join(v.by_nulls),
    }
    return ["## Declared accuracy", _table(columns, validated.verdicts)]


def _learned(validated: Validated) -> list[str]:
    return [*([section(validated.left_out)] if validated.left_out else []), *sections(validated.rows)]


def _table(columns: Columns, rows: Iterable[Any]) -> str:
    return markdown_table(tuple(columns), [[cell(row) for cell in columns.values()] for row in rows])


def _nulls(digits: str) -> Columns:
    def cell(null: str) -> Callable[[Any], str]:
        return lambda row: format(row.nulls[null], digits) if null in row.nulls else ""

    return {null: cell(null) for null in (LINE, PARABOLA, QUEUE)}


def _error_of_step(row: Row) -> str:
    if math.isnan(row.error):
        return ""
    return f"{100 * row.error:+.0f} %" if is_relative(row.quantity) else f"{row.error:+.2f}"


_RUN_COLUMNS: Columns = {
    "run": lambda row: row.run,
    "": lambda row: "fitted" if row.sample == "in" else "",
    "quantity": lambda row: row.quantity,
    "measured": lambda row: f"{row.measured:.4g}",
    "predicted": lambda row: f"{row.predicted:.4g}",
    "central 90 %": lambda row: f"{row.low:.4g} to {row.high:.4g}",
    "error": error_of,
}
_STEP_COLUMNS: Columns = {
    "environment": lambda row: row.environment,
    "phase": lambda row: row.phase,
    "quantity": lambda row: row.quantity,
    "measured": lambda row: f"{row.measured:g}",
    "predicted": lambda row: f"{row.predicted:.2f}",
    "central 90 %": lambda row: f"{row.low:.2f} to {row.high:.2f}",
    "n": lambda row: str(row.n),
    "error": _error_of_step,
    "inside": lambda row: "yes" if row.is_inside else "no",
    **_nulls(".4g"),
}
_CAPACITIES: Columns = {
    "environment": lambda row: row.environment,
    "limit": lambda row: f"{row.limit_percent:g} %",
    "measured": lambda row: str(row.measured),
    "predicted (median)": lambda row: f"{row.predicted:.0f}",
    "central 90 %": lambda row: "{:.0f} to {:.0f}".format(*row.range),
    "n": lambda row: str(len(row.replications)),
    **_nulls(".0f"),
}
_RATIOS: Columns = {
    "capacities": lambda row: f"{row.environment} to {row.reference}",
    "limit": lambda row: f"{row.limit_percent:g} %",
    "measured": lambda row: f"{row.measured:.3f}",
    "predicted (median)": lambda row: f"{row.predicted:.3f}",
    "central 90 %": lambda row: f"{row.low:.3f} to {row.high:.3f}",
    "n": lambda row: str(row.n),
}
