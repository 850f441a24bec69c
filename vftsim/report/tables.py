"""The tables on the screen: every figure with its interval, every table with n, kind of interval and seed."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.views import bench_key, has_bench
from vftsim.report.head import INTERVALS, print_head, print_missing, print_outside, unseen, warn_unfailed
from vftsim.report.remarks import beside_the_ramp, next_step, print_mixed
from vftsim.report.screen import error_bar, print_blocks, print_table, print_text
from vftsim.study.figures.blocks import figures_table
from vftsim.study.validity import MARK, is_load, marked, outside, outside_phases, varied

if TYPE_CHECKING:
    import pandas as pd

    from vftsim.stats import CapacityResult, Estimate, ReplicationResult
    from vftsim.study.capacity import CapacityStudy
    from vftsim.study.compare import Comparison
    from vftsim.study.level_capacity import LevelCapacity
    from vftsim.study.offered import Missing
    from vftsim.study.ramp import RampCapacity
    from vftsim.study.results import RunResult
    from vftsim.study.search import SearchCapacity

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
_INTERVAL = "± or [..]: 95 % interval."
_BINOMIAL = "[..]: binomial interval, at least 95 % (Clopper and Pearson); '<', '>': bound, none or all."
_SEQUENTIAL = (
    "[..]: at least 95 % whenever a load's runs were ended; the share itself leans towards the verdict. '<', '>': none "
    "or all."
)


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


def print_capacity(study: CapacityStudy) -> None:
    """Print the capacities of one system."""
    print_head(study.manifest["models"], study.manifest["seed"])
    if study.ramp is not None:
        _print_ramp(study.ramp)
    if study.steady is not None:
        _print_search(study.steady, "Capacity at constant load")
        _print_resources(study.steady)
    if study.after_stop is not None and study.after_stop.stop is not None:
        length_s = study.after_stop.stop.length_ns / 1e9
        _print_search(study.after_stop, f"Failover-safe capacity: recovers after a stop of {length_s:g} s")
    if study.recovery is not None:
        _print_search(study.recovery, "Load from which a collapsed server (stop of 32 s) recovers by itself")


def print_levels(found: LevelCapacity) -> None:
    """Print the load that a system carries under a limit, and what limits it."""
    e, measure, names = found.result.estimate, found.model.spec.measure, found.names
    print_head(
        [varied(model, found.model.spec, names.key) for model in found.manifest["models"]], found.manifest["seed"]
    )
    of_load = found.model.spec if is_load(found.model.spec, names.key) else None
    form = ".0f" if names.is_counted else ".4g"
    print_text(f"Capacity: {_found(found, form, names.unit, names.within, of_load)}")
    goes = [f"{each:.3g} {what} for each" for what, each in names.per_unit.items() if each]
    at_it = [f"{each * e.mean:.3g} {what} at the capacity" for what, each in names.per_unit.items() if each]
    with_it = f" With the load go {', '.join(goes)}" if goes else ""
    if with_it:
        with_it += f", {', '.join(at_it)}." if found.result.answer == "between" else "."
    if not has_bench(found.model.spec):
        print_text(f"A run measures {measure.duration / 1e9:g} s after {measure.warm_up / 1e9:g} s.{with_it}")
    _print_doubts(found.result, found.interrupted, found.missing)
    body = [
        (
            _load(of_load, row[names.key]), str(row["runs"]), _share(row),
            *(_range(row, name) for name in found.judged), str(row["decision"]),
        )
        for _, row in found.curve().iterrows()
    ]  # fmt: skip
    figures = [name.replace("_percent", " %") for name in found.judged]
    print_table(
        "Runs by load", (names.key, "runs", "runs beyond the limit %", *figures, "verdict"), body,
        f"{_SEQUENTIAL} Figures: mean over the runs, lowest and highest run.",
    )  # fmt: skip
    if of_load and outside(of_load, found.loads):
        print_outside(found.model)
    if found.resources.empty:
        return
    from vftsim.study.resources import limit_in_words  # noqa: PLC0415 - only this table needs it

    print_text(f"Limiting resource: {limit_in_words(found.resources)}")
    highest = "the highest load tried" if found.missing is None else "the highest load offered"
    judged = "the lowest load that fails" if found.watched_level >= e.high else highest
    rows = [(str(r.resource), _figure(r), str(r.unit)) for r in found.resources.itertuples()]
    print_table(
        f"Resources at {found.watched_level:g} {names.unit}, {judged}", ("resource", "use", "unit"), rows,
        f"n={int(found.resources['n'].iloc[0])} runs; {_INTERVAL} Only one vCPU or pCPU that stands out is shown by "
        "itself.",
    )  # fmt: skip


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


def _print_ramp(ramp: RampCapacity) -> None:
    n, limit = len(ramp.runs), f"limit {ramp.limit_percent:g} % IHS of any scenario"
    print_text(f"Capacity by the lab's ramp: {_answer(ramp)}  ({limit})")
    measured = _measured(ramp.model.spec)
    if measured:
        print_text(f"Measured on the real system: {measured} SAPS")
    if ramp.passes and ramp.fails:
        print_text("Between the two steps nothing was tried; --method search looks there.")
    print_text(f"DOC of the middle ramp: {_doc(ramp)} SAPS; of single ramps {_spread(ramp)}")
    body = [
        (
            str(step.number),
            marked(ramp.model.spec, step.saps),
            str(step.passed),
            _passing(step.passed, n),
            str(step.stopped),
        )
        for step in ramp.steps
    ]
    print_table(
        "Ramps by step", ("step", "asked SAPS", "passed", "share %", "failed first here"), body,
        f"n={n} ramps; {_BINOMIAL}",
    )  # fmt: skip
    if outside(ramp.model.spec, ramp.loads):
        print_outside(ramp.model)
    warn_unfailed(ramp)


def _answer(ramp: RampCapacity) -> str:
    """Return between which load steps the capacity lies, and in how many ramps."""
    n, passes, fails, spec = len(ramp.runs), ramp.passes, ramp.fails, ramp.model.spec
    if fails is None:
        last = ramp.steps[-1]
        return f"at least {marked(spec, last.saps)} SAPS: {last.passed} of {n} ramps pass the last step of the model"
    failing = f"fails {marked(spec, fails.saps)} ({n - fails.passed} of {n} ramps)"
    if passes is None:
        return f"{failing}, the first step: lower {bench_key(spec)}.steps.initial"
    return f"passes {marked(spec, passes.saps)} SAPS ({passes.passed} of {n} ramps), {failing}"


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


def _spread(ramp: RampCapacity) -> str:
    spread = f"{min(ramp.docs):g} to {max(ramp.docs):g}"
    return f"{spread} or more" if ramp.unfailed else spread


def _passing(passed: int, n: int) -> str:
    from vftsim.stats import binomial_interval  # noqa: PLC0415 - loads scipy, which few tables need

    e = binomial_interval(passed, n)
    return _percent(e.kind, e.mean, e.low, e.high)


def _print_search(search: SearchCapacity, title: str) -> None:
    spec, within = search.model.spec, f"within {search.limit_percent:g} % IHS"
    print_text(f"{title}: {_found(search, '.4g', 'SAPS', within, spec)}")
    _print_doubts(search.result, search.interrupted, search.missing)
    if search.result.answer == "between":
        print_text(f"  {beside_the_ramp(search)}")
    what = "collapse: not within the limit a window after the stop" if search.stop else "IHS beyond the limit"
    body = [
        (_load(spec, row["load_saps"]), str(row["runs"]), _share(row), str(row["decision"]))
        for _, row in search.to_pandas().iterrows()
    ]
    print_table(
        f"Probability of {what}", ("SAPS", "runs", "share of runs %", "verdict"), body,
        _SEQUENTIAL,
    )  # fmt: skip
    if outside(spec, search.loads):
        print_outside(search.model)


def _found(search: SearchCapacity | LevelCapacity, form: str, unit: str, within: str, of_load: ModelSpec | None) -> str:
    """Return what a search has found; no figure for one that ended before any load had passed or failed.

    ``of_load`` is the model where the figures are attempts a second of its benchmark.
    """
    result, settings = search.result, search.settings
    e = result.estimate
    bound = "no load failed" if search.missing is None else "above it less was offered than asked"
    answer = {
        "between": f"{_load(of_load, e.mean, form)} {unit}, in [{_load(of_load, e.low)}, {_load(of_load, e.high)}]",
        "at least": f"at least {_load(of_load, e.low)} {unit}, {bound}",
        "below": f"below {_load(of_load, e.high)} {unit}, no load passed",
        "unknown": f"not found: no load passed or failed, up to {result.probes[-1].level:g} {unit} were tried",
    }[result.answer]
    share = f"{100 * settings.probability:g} % of runs {within}"
    return f"{answer}  ({100 * settings.confidence:g} %, {e.n} runs; {share})"


def _load(spec: ModelSpec | None, load: float, form: str = "g") -> str:
    return f"{load:{form}}" if spec is None else marked(spec, load, f"{load:{form}}")


def _print_doubts(result: CapacityResult, interrupted: bool, missing: Missing | None) -> None:
    """Print what a reader of a search's answer must know beside it."""
    ended = result.budget_ended and not interrupted
    is_open = (missing is None and result.answer != "between") or (ended and not result.resolved)
    for flag, text in (
        (interrupted, "interrupted: the search had not come to its end"),
        (missing is not None, str(missing)),
        (is_open, next_step(result)),
        (
            not (result.resolved or interrupted or ended) and result.answer == "between",
            "not resolved further: runs at the loads between pass and fail by chance",
        ),
        (result.non_monotone, "warning: a higher load passed more often than a lower one"),
    ):
        if flag:
            print_text(f"  {text}")


def _print_resources(search: SearchCapacity) -> None:
    if search.resources.empty:
        return
    body = [(str(r.resource), _figure(r), str(r.unit)) for r in search.resources.itertuples()]
    n = int(search.resources["n"].iloc[0])
    at = search.result.estimate.mean
    print_text(f"Limiting resource: {search.resources['resource'].iloc[0]}")
    print_table(
        f"Resources at {at:.4g} SAPS", ("resource", "use", "unit"), body, f"n={n} runs; ± or [..]: 95 % interval."
    )


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


def _range(row: Any, figure: str) -> str:
    if math.isnan(row[f"{figure}_mean"]):
        return "none"
    return error_bar(row[f"{figure}_mean"], row[f"{figure}_least"], row[f"{figure}_largest"], "range")


def _share(row: Any) -> str:
    """Return a binomial estimate in percent."""
    return _percent(row.interval, row.estimate, row.low, row.high)


def _percent(interval: str, estimate: float, low: float, high: float) -> str:
    if interval == "upper bound":
        return f"< {100 * high:.2g}"
    if interval == "lower bound":
        return f"> {100 * low:.2g}"
    return f"{100 * estimate:.3g} [{100 * low:.2g}, {100 * high:.2g}]"


def _bar(e: Estimate | None) -> str:
    if e is None:
        return "-"
    if math.isinf(e.high) and math.isfinite(e.low):
        return f"{e.mean:.4g}, at least {e.low:.4g}"
    return error_bar(e.mean, e.low, e.high, e.kind)
