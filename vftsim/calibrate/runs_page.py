"""The report of a validation by runs: every row, as a Markdown page, as lines of a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from vftsim.calibrate import structure_error
from vftsim.calibrate.accuracy import Row
from vftsim.calibrate.figures import is_ratio
from vftsim.calibrate.left_out import section
from vftsim.calibrate.summary import groups_of, result, table, told
from vftsim.report.markdown import markdown_table

if TYPE_CHECKING:
    from vftsim.calibrate.validate_runs import ValidatedRuns

_COLUMNS = ("run", "", "quantity", "measured", "predicted", "central 90 %", "error")


def page(found: ValidatedRuns, name: str, made_by: str) -> str:
    """Return the report as Markdown."""
    spec = found.spec
    rows = [(v.text, result(v), v.found, ", ".join(v.by_nulls)) for _, v in found.verdicts]
    return (
        "\n\n".join(
            [
                f"# {spec.name}: predicted against measured",
                f"Written by `vftsim validate {name}` ({made_by}, seed {spec.seed}): {spec.replications} "
                "replications of each run; a prediction is their mean, the range their central 90 %. CPU is compared "
                "at the "
                "measured load. Errors of delays and rates in percent, of CPU and shares in points. `fitted`: the "
                "model was "
                "fitted to this run.",
                "## Declared accuracy",
                markdown_table(("target", "result", "found", "null models that meet it"), rows),
                "## Beside null models",
                "Line and M/M/1 queue know the fitted runs of the system alone, the queue the CPU that is left to "
                "it, too; "
                "*same as without* is what was measured of the system alone at the same load, whether the model has "
                "seen it or "
                f"not. {told(found.rows)}: its figure lies within the model's range.",
                table(groups_of(found.rows)),
                *([section(found.left_out)] if found.left_out else []),
                *structure_error.sections(found.rows),
                "## Every row",
                markdown_table(_COLUMNS, lines(found.rows)),
            ]
        )
        + "\n"
    )


def lines(rows: Iterable[Row]) -> list[tuple[str, ...]]:
    """Return rows as cells of a table."""
    return [
        (
            f"{row.environment}/{row.phase}",
            "fitted" if row.sample == "in" else "",
            row.quantity,
            f"{row.measured:.4g}",
            f"{row.predicted:.4g}",
            f"{row.low:.4g} to {row.high:.4g}",
            error_of(row),
        )
        for row in rows
    ]


def error_of(row: Row) -> str:
    """Return the error of a prediction: in percent, or in points of a share."""
    if not is_ratio(row.quantity) and row.quantity != "completed":
        return f"{row.predicted - row.measured:+.1f} points"
    return f"{100.0 * (row.predicted / row.measured - 1.0):+.0f} %" if row.measured else ""
