"""What a validation found: its rows and verdicts, as blocks and as plain data."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self

from vftsim.calibrate.accuracy import Row, Verdict, step_number
from vftsim.calibrate.capacities import CapacityRow, LeftOut, RatioRow
from vftsim.calibrate.figures import unit_of_figure
from vftsim.calibrate.summary import error_of, groups_of, result, share_that_cannot_tell
from vftsim.calibrate.validation import RunValidationSpec, ValidationSpec
from vftsim.files import read_back
from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, with_unit
from vftsim.stats import Estimate
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
