"""The report of a validation by runs: every row, as a Markdown page, as plain data, as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from vftsim.calibrate.accuracy import Row
from vftsim.calibrate.figures import is_ratio
from vftsim.calibrate.left_out import section
from vftsim.calibrate.validate_runs import ValidatedRuns
from vftsim.report.markdown import markdown_table

_COLUMNS = ("run", "", "quantity", "measured", "predicted", "central 90 %", "error")


def page(found: ValidatedRuns, name: str, made_by: str) -> str:
    """Return the report as Markdown."""
    spec = found.spec
    rows = [(v.text, "met" if v.passed else "**missed**", v.found) for _, v in found.verdicts]
    return "\n\n".join([
        f"# {spec.name}: predicted against measured",
        f"Written by `vftsim validate {name}` ({made_by}, seed {spec.seed}): {spec.replications} "
        "replications of each run; a prediction is their mean, the range their central 90 %. CPU is compared at the "
        "measured load. Errors of delays and rates in percent, of CPU and shares in points. `fitted`: the model was "
        "fitted to this run.",
        "## Declared accuracy",
        markdown_table(("target", "result", "found"), rows),
        *([section(found.left_out)] if found.left_out else []),
        "## Every row",
        markdown_table(_COLUMNS, lines(found.rows)),
    ]) + "\n"  # fmt: skip


def as_data(found: ValidatedRuns) -> dict[str, Any]:
    """Return rows and verdicts as plain data."""
    return {
        "verdicts": [{"target": v.text, "passed": v.passed, "found": v.found} for _, v in found.verdicts],
        "left_out": [each.as_data() for each in found.left_out],
        "rows": [{name: getattr(row, name) for name in Row.__slots__} for row in found.rows],
    }


def lines(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return rows as cells of a table."""
    return [
        (f"{row.environment}/{row.phase}", "fitted" if row.sample == "in" else "", row.quantity,
         f"{row.measured:.4g}", f"{row.predicted:.4g}", f"{row.low:.4g} to {row.high:.4g}", error_of(row))
        for row in rows
    ]  # fmt: skip


def error_of(row: Row) -> str:
    """Return the error of a prediction: in percent, or in points of a share."""
    if not is_ratio(row.quantity) and row.quantity != "completed":
        return f"{row.predicted - row.measured:+.1f} points"
    return f"{100.0 * (row.predicted / row.measured - 1.0):+.0f} %" if row.measured else ""
