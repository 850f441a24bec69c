"""The report of a validation: every row of the record, in sample and held out apart, as a Markdown page."""

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from vftsim._version import __version__
from vftsim.calibrate import structure_error
from vftsim.calibrate.accuracy import LINE, PARABOLA, QUEUE, Row, is_relative
from vftsim.calibrate.capacities import section
from vftsim.calibrate.summary import error_of, groups_of, result, share_that_cannot_tell, table
from vftsim.calibrate.validated import Validated
from vftsim.calibrate.validation import RunValidationSpec, ValidationSpec
from vftsim.report.markdown import markdown_table
from vftsim.stats import binomial_interval

Columns = Mapping[str, Callable[[Any], str]]
"""A table's cells by the heads of their columns."""

_SAMPLES = {
    "out": "Held out: predictions",
    "input": "Saturated step used as a calibration input",
    "in": "In sample: fitted",
}


def page(validated: Validated, name: str) -> str:
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
    return [*([section(validated.left_out)] if validated.left_out else []), *structure_error.sections(validated.rows)]


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
