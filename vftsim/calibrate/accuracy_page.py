"""The accuracy report: every row of the record, in sample and held out apart, as a Markdown page."""

from __future__ import annotations

import math

from vftsim.calibrate import structure_error
from vftsim.calibrate.accuracy import Row
from vftsim.calibrate.left_out import section
from vftsim.calibrate.nulls import LINE, PARABOLA, QUEUE, is_relative
from vftsim.calibrate.summary import groups_of, result, table, told
from vftsim.calibrate.validate import Validated
from vftsim.report.markdown import markdown_table
from vftsim.stats import binomial_interval

_NULLS = (LINE, PARABOLA, QUEUE)
_SAMPLES = {
    "out": "Held out: predictions",
    "input": "Saturated step used as a calibration input",
    "in": "In sample: fitted",
}


def page(found: Validated, name: str, made_by: str) -> str:
    """Return the report as Markdown."""
    spec = found.spec
    parts = [
        "# Accuracy: predicted against measured",
        f"Written by `vftsim validate {name} --report docs/accuracy.md --force` ({made_by}, "
        f"seed {spec.seed}, measured data {', '.join(f'{n} {h[:12]}' for n, h in found.data_sha256.items())}). "
        f"Each ramp: {spec.replications} replications of steps of {spec.step_duration / 1e9:g} s (the lab: 900 s); "
        f"each edge step: {spec.edge_replications} replications of {spec.edge_duration / 1e9:g} s. "
        "A prediction is the mean of the replications that reached the step; the range is their central 90 %. "
        f"CPU up to {spec.targets.cpu_up_to:g} % is brought to the measured load and mix of its step, as fits have it. "
        "Null models know the same in-sample steps: the straight line and the parabola through them over load (of the "
        "logarithm for delays), and an M/M/1 queue whose price of an attempt is their mean; their capacity is the last "
        f"step below a full CPU. {told(found.rows)}: its figure lies within the model's range. Memory is compared only "
        "when steps have their full length, because it falls with every attempt. "
        "What was fitted to what: `calibration/sip-lab/protocol.md`.",
        *(f"**Warning**: {warning}." for warning in found.warnings),
        "## Declared accuracy",
        markdown_table(
            ("environment", "target", "result", "found", "null models that meet it"),
            [(n, v.text, result(v), v.found, ", ".join(v.by_nulls)) for n, v in found.verdicts],
        ),
    ]
    for environment, (bad, n) in found.collapse.items():
        interval = binomial_interval(bad, n)
        parts.append(
            f"Probability of collapse in the edge step of `{environment}` (more than 10 % handled inadequately): "
            f"{bad} of {n} replications, 95 % interval {interval.low:.2f} to {interval.high:.2f}."
        )
    parts += ["## Capacities", _capacities(found)]
    if found.ratios:
        parts += ["Ratios under the same traffic, replication by replication:", _ratios(found)]
    if found.left_out:
        parts.append(section(found.left_out))
    parts += structure_error.sections(found.rows)
    if found.edge_rows:
        parts += ["## Edge step, at full length", _rows(found.edge_rows)]
    parts += ["## Summary of errors", table(groups_of(found.rows))]
    for sample, title in _SAMPLES.items():
        rows = [row for row in found.rows if row.sample == sample]
        if rows:
            parts += [f"## {title}", _rows(rows)]
    return "\n\n".join(parts) + "\n"


def _rows(rows: list[Row]) -> str:
    lines = []
    for row in rows:
        curves = (f"{row.nulls[null]:.4g}" if null in row.nulls else "" for null in _NULLS)
        lines.append(
            (
                row.environment,
                row.phase,
                row.quantity,
                f"{row.measured:g}",
                f"{row.predicted:.2f}",
                f"{row.low:.2f} to {row.high:.2f}",
                str(row.n),
                _error(row.quantity, row.error),
                "yes" if row.is_inside else "no",
                *curves,
            )
        )
    return markdown_table(
        (
            "environment",
            "phase",
            "quantity",
            "measured",
            "predicted",
            "central 90 %",
            "n",
            "error",
            "inside",
            *_NULLS,
        ),
        lines,
    )


def _capacities(found: Validated) -> str:
    """Attempts a second under several limits on the share of inadequately handled attempts."""
    lines = [
        (
            row.environment,
            f"{row.limit_percent:g} %",
            str(row.measured),
            f"{row.predicted:.0f}",
            "{:.0f} to {:.0f}".format(*row.range),
            str(len(row.replications)),
            *(f"{row.nulls[null]:.0f}" if null in row.nulls else "" for null in _NULLS),
        )
        for row in found.capacities
    ]
    head = ("environment", "limit", "measured", "predicted (median)", "central 90 %", "n", *_NULLS)
    return markdown_table(head, lines)


def _ratios(found: Validated) -> str:
    lines = [
        (
            f"{row.environment} to {row.reference}",
            f"{row.limit_percent:g} %",
            f"{row.measured:.3f}",
            f"{row.predicted:.3f}",
            f"{row.low:.3f} to {row.high:.3f}",
            str(row.n),
        )
        for row in found.ratios
    ]
    return markdown_table(("capacities", "limit", "measured", "predicted (median)", "central 90 %", "n"), lines)


def _error(quantity: str, error: float) -> str:
    if math.isnan(error):
        return ""
    return f"{100 * error:+.0f} %" if is_relative(quantity) else f"{error:+.2f}"
