"""The tables on the screen: every figure with its interval, every table with n, kind of interval and seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import has_bench
from vftsim.report.head import INTERVALS, print_head, print_missing, print_outside, unseen, warn_unfailed
from vftsim.report.remarks import print_mixed
from vftsim.report.screen import error_bar, print_blocks, print_table, print_text
from vftsim.study.figures.blocks import figures_table
from vftsim.study.validity import MARK, marked, outside_phases

if TYPE_CHECKING:
    import pandas as pd

    from vftsim.stats import Estimate, ReplicationResult
    from vftsim.study.compare import Comparison
    from vftsim.study.ramp import RampCapacity
    from vftsim.study.results import RunResult

_STEP_COLUMNS = (
    ("SAPS", "steps", "effective_saps", "all", "mean"),
    ("CPU %", "steps", "cpu_percent", "all", "mean"),
    ("IHS %", "steps", "ihs_percent", "all", "share"),
    ("IHS % calls", "steps", "ihs_percent", "ims_uac", "share"),
    ("retrans./s", "steps", "retransmissions_per_s", "all", "mean"),
    ("REG1 p50 ms", "delays", "PX_TRT-REG1", "all_registration", "p50_ms"),
    ("SES1 p50 ms", "delays", "PX_TRT-SES1", "ims_uac", "p50_ms"),
    ("SES1 p95 ms", "delays", "PX_TRT-SES1", "ims_uac", "p95_ms"),
)
_SCENARIOS = ("ims_rereg", "ims_reg", "ims_uac", "ims_dereg", "ims_msgc", "all")
_LOAD_FIGURES = ("mean", "variance", "sd", "min", "max", "p50", "p90", "p95", "p99")
_DELAY_FIGURES = ("mean_ms", "sd_ms", "min_ms", "max_ms", "p50_ms", "p90_ms", "p95_ms", "p99_ms")


def print_run(result: RunResult, everything: bool) -> None:
    """Print a run: the step table, or all tables of the report."""
    print_head(result.manifest["models"], result.manifest["seed"])
    summary, caption = result.summary, _caption(result)
    if not has_bench(result.model.spec):
        _print_any(result, caption, everything=everything)
        print_missing(result.missing)
        return
    summary = summary[~summary["table"].isin(["runs", "figures"])]
    header = ("phase", "asked", *(column[0] for column in _STEP_COLUMNS), "n")
    beyond = outside_phases(result.model.spec, result.records) or ()
    body = []
    for (phase, saps), rows in summary.groupby(["phase", "requested_saps"], sort=False):
        figures = _by_figure(rows)
        cells = [_cell(figures, *column[1:]) for column in _STEP_COLUMNS]
        asked = f"{saps:g}{MARK if phase in beyond else ''}"
        body.append((str(phase), asked, *cells, str(int(rows["n"].max()))))
    print_table("Steps", header, body)
    if everything:
        _print_scenarios(summary, beyond)
        for table, names in (("per_second", _LOAD_FIGURES), ("delays", _DELAY_FIGURES)):
            rows = summary[summary["table"] == table]
            for (metric, scenario), group in rows.groupby(["metric", "scenario"], sort=False):
                unit = "each second" if table == "per_second" else "ms"
                _print_figures(f"{metric}, {scenario} ({unit})", group, names, beyond)
    if beyond:
        print_outside(result.model)
    of_run = figures_table(result.figures_found, everything=everything)
    if len(of_run.rows) > 1:
        print_blocks([of_run])
    print_text(caption)
    print_mixed(summary)
    print_missing(result.missing)


def print_precision(found: ReplicationResult) -> None:
    """Print whether a precision was reached, and with how many replications."""
    reached = "reached with" if found.reached else "not reached with"
    figures = ", ".join(f"{name} = {_bar(e)}" for name, e in found.estimates.items())
    advice = "" if found.reached else "; more --replications, or a longer --scale"
    print_text(f"Precision {reached} {found.n} replications: {figures}{advice}")


def print_comparison(result: Comparison) -> None:
    """Print capacities side by side, and the figures that were asked for or lead."""
    print_head(result.manifest["models"], result.manifest["seed"])
    if result.capacities and not result.figures:
        _print_capacities(result)
    else:
        print_blocks(result.blocks())


def _print_capacities(result: Comparison) -> None:
    body = []
    for number, capacity in enumerate(result.capacities):
        ratio, difference = ("1", "") if not number else (_bar(result.ratio(number)), _bar(result.difference(number)))
        body.append((
            capacity.model.label, *_ends(capacity), _doc(capacity), _measured(capacity.model.spec), ratio,
            difference, str(len(capacity.runs)),
        ))  # fmt: skip
    first = result.capacities[0].model.label
    caption = (
        "Passes: highest load step that at least half of the ramps pass (in how many); fails: the step above. DOC: "
        "integer load of the last step within the limit, of the middle ramp; n ramps with the same traffic for all; "
        "ratio and difference are paired by ramp, the middle one is shown. [..]: interval of the middle, at least 95 % "
        "for any distribution, from six ramps on; (x to y): lowest and highest ramp; -: a ramp without end has only a "
        "bound."
    )
    columns = ("model", "passes", "fails", "DOC", "measured", f"ratio to {first}", f"less {first}", "n")
    print_table("Capacity (SAPS)", columns, body, caption)
    print_outside(*(c.model for c in result.capacities if c.ends_outside))
    for capacity in result.capacities:
        warn_unfailed(capacity)


def _measured(spec: ModelSpec) -> str:
    """Return what a model's file says was measured on the real system."""
    return "" if spec.measured.capacity is None else f"{spec.measured.capacity:g}"


def _ends(ramp: RampCapacity) -> tuple[str, str]:
    passes, fails, n, spec = ramp.passes, ramp.fails, len(ramp.runs), ramp.model.spec
    return (
        f"{marked(spec, passes.saps)} ({passes.passed} of {n})" if passes else "none",
        f"{marked(spec, fails.saps)} ({n - fails.passed} of {n})" if fails else "none",
    )


def _doc(ramp: RampCapacity) -> str:
    """Return the DOC, marked if the step that it is of is outside of the calibration."""
    bar = _bar(ramp.estimate)
    return marked(ramp.model.spec, ramp.passes.saps, bar) if ramp.passes else bar


def _print_scenarios(summary: pd.DataFrame, beyond: Collection[str]) -> None:
    for metric, title in (("ratio_percent", "Scenario mix (%)"), ("ihs_percent", "Inadequately handled (%)")):
        rows = summary[(summary["table"] == "steps") & (summary["metric"] == metric)]
        body = [
            (_phase(phase, beyond), *(_cell(figures, "steps", metric, s, "share") for s in _SCENARIOS))
            for phase, group in rows.groupby("phase", sort=False)
            for figures in [_by_figure(group)]
        ]
        print_table(title, ("phase", *_SCENARIOS), body)


def _phase(name: Any, beyond: Collection[str]) -> str:
    return f"{name}{MARK}" if name in beyond else str(name)


def _print_figures(title: str, rows: pd.DataFrame, names: Sequence[str], beyond: Collection[str]) -> None:
    """Print one quantity: a line a phase, a column a statistic."""
    body = []
    for phase, group in rows.groupby("phase", sort=False):
        found = {row.statistic: row for row in group.itertuples()}
        cells = [_figure(r) if (r := found.get(name)) else "" for name in names]
        body.append((_phase(phase, beyond), *cells, str(int(group["n"].max()))))
    print_table(title, ("phase", *(name.removesuffix("_ms") for name in names), "n"), body)


def _print_any(result: RunResult, caption: str, *, everything: bool) -> None:
    """Print the figures of a system that has no table of its own here."""
    print_blocks([figures_table(result.figures_found, everything=everything)])
    print_text(caption)


def _caption(result: RunResult) -> str:
    n = len(result.records)
    return f"{n} replications, seed {result.manifest['seed']}. {INTERVALS}{unseen(n)}"


def _by_figure(rows: pd.DataFrame) -> dict[tuple[Any, ...], Any]:
    """Return rows by table, metric, scenario and statistic."""
    return {(row.table, row.metric, row.scenario, row.statistic): row for row in rows.itertuples()}


def _cell(rows: Mapping[tuple[Any, ...], Any], *figure: str) -> str:
    return _figure(rows[figure]) if figure in rows else ""


def _figure(row: Any) -> str:
    return error_bar(row.estimate, row.low, row.high, row.interval)


def _bar(e: Estimate | None) -> str:
    if e is None:
        return "-"
    if math.isinf(e.high) and math.isfinite(e.low):
        return f"{e.mean:.4g}, at least {e.low:.4g}"
    return error_bar(e.mean, e.low, e.high, e.kind)
