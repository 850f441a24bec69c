"""A SIP run's figures across replications: estimate, interval, and what the interval rests on.

The unit of observation is the replication.  Shares (IHS, scenario mix) are ratios of totals, never means of
ratios; percentiles of delays are those of all replications together; everything else (least and largest
value, and what is sampled each second, included) is the mean over replications of the replication's own
figure.  Ramps end at different steps, so later steps rest on fewer replications: those that came so far.
Such rows are conditional on that.

A mean over runs of which some went beyond the limit and others did not is that of two kinds of runs, and as
uncertain as the share of either: no interval of such a phase is given, but its lowest and highest run, and the
share of runs beyond the limit with its own (Clopper and Pearson: exact for a number of runs fixed beforehand).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vftsim.stats import (
    Estimate,
    Sections,
    binomial_interval,
    mean_interval,
    percentile_interval,
    ratio_of_sums,
    unless_mixed,
)
from vftsim.study.frames import frame
from vftsim.study.sip_tables import KEYS, STATISTICS
from vftsim.workloads.sip.messages import Scenario

if TYPE_CHECKING:
    import pandas as pd

COLUMNS = ("table", *KEYS, "metric", "scenario", "statistic", "estimate", "low", "high", "n", "confidence", "interval")
_DELAY_FIGURES = ("mean_ms", "sd_ms", "min_ms", "max_ms")
_MEANS = ("effective_saps", "cpu_percent", "memory_mb", "retransmissions_per_s")
_Key = tuple[Any, ...]
_Rows = dict[str, list[Any]]
"""Rows as a list for each column: of a thousand small groups, tables of pandas' own take most of a summary's time."""


def summarize(tables: Mapping[str, pd.DataFrame], confidence: float) -> pd.DataFrame:
    """Return all figures of a run in long form, one row a figure."""
    mixed = {key for key, group in _groups(tables["steps"], list(KEYS)) if len(set(group["within_limit"])) > 1}
    rows = [
        *_steps(tables["steps"], confidence, mixed),
        *_per_second(tables["per_second"], confidence, mixed),
        *_delays(tables["delays"], tables["percentiles"], confidence, mixed),
    ]
    return frame(rows, columns=list(COLUMNS))


def estimate_columns(estimate: Estimate) -> dict[str, Any]:
    """Return an estimate as columns of a tidy table; an interval that does not exist is empty.

    Where ``interval`` is ``range``, low and high are the lowest and the highest run and there is no confidence.
    """
    low, high = (x if math.isfinite(x) else math.nan for x in (estimate.low, estimate.high))
    interval: str = estimate.kind
    if estimate.half_width == 0.0 or (math.isnan(low) and math.isnan(high)):
        # One replication, or the same value in all: nothing is known about the spread.
        low, high, interval = math.nan, math.nan, "none"
    confidence = math.nan if interval in {"none", "range"} else estimate.confidence
    return {
        "estimate": estimate.mean, "low": low, "high": high, "n": estimate.n,
        "confidence": confidence, "interval": interval,
    }  # fmt: skip


def _row(table: str, key: tuple[Any, ...], statistic: str, e: Estimate) -> dict[str, Any]:
    """Return a row; ``key`` is phase, step, load, metric and scenario."""
    return {
        "table": table,
        **dict(zip((*KEYS, "metric", "scenario"), key, strict=True)),
        "statistic": statistic,
        **estimate_columns(e),
    }


def _steps(steps: pd.DataFrame, confidence: float, mixed: Collection[_Key]) -> Iterator[dict[str, Any]]:
    for key, group in _groups(steps, list(KEYS)):
        for metric in _MEANS:
            if values := _values(group, metric):  # none if the step is shorter than a sample
                yield _row("steps", (*key, metric, "all"), "mean", _mean(values, confidence, key in mixed))
        beyond = binomial_interval(sum(not each for each in group["within_limit"]), len(group["phase"]), confidence)
        yield _row("steps", (*key, "runs_beyond_limit_percent", "all"), "share", _percent(beyond))
        total = _values(group, [f"attempts_{s.label}" for s in Scenario])
        for scenario in (*Scenario, None):
            label = scenario.label if scenario is not None else "all"
            columns = [scenario.label] if scenario is not None else [s.label for s in Scenario]
            attempts = _values(group, [f"attempts_{c}" for c in columns])
            bad = _values(group, [f"inadequate_{c}" for c in columns])
            if scenario is not None and any(total):
                yield _row(
                    "steps", (*key, "ratio_percent", label), "share", _share(attempts, total, confidence, key in mixed)
                )
            if any(attempts):
                yield _row(
                    "steps", (*key, "ihs_percent", label), "share", _share(bad, attempts, confidence, key in mixed)
                )


def _per_second(table: pd.DataFrame, confidence: float, mixed: Collection[_Key]) -> Iterator[dict[str, Any]]:
    for key, group in _groups(table, [*KEYS, "quantity"]):
        for statistic in STATISTICS:
            values = _values(group, statistic)
            if values:
                estimate = _mean(values, confidence, key[: len(KEYS)] in mixed)
                yield _row("per_second", (*key, _scenario_of(key[3])), statistic, estimate)


def _delays(
    table: pd.DataFrame, percentiles: pd.DataFrame, confidence: float, mixed: Collection[_Key]
) -> Iterator[dict[str, Any]]:
    names = [*KEYS, "metric", "scenario"]
    pooled: dict[tuple[Any, ...], list[tuple[Any, _Rows]]] = {}
    for key, runs in _groups(percentiles, [*names, "percent"]):
        pooled.setdefault(key[:-1], []).append((key[-1], runs))
    for key, group in _groups(table, names):
        for statistic in _DELAY_FIGURES:
            values = _values(group, statistic)
            if values:
                yield _row("delays", key, statistic, _mean(values, confidence, key[: len(KEYS)] in mixed))
        for percent, runs in pooled[key]:
            found = _sections(runs)
            e = unless_mixed(percentile_interval(found, confidence), found.own, key[: len(KEYS)] in mixed)
            yield _row("delays", key, f"p{percent}_ms", e)


def _mean(values: list[float], confidence: float, is_mixed: bool) -> Estimate:
    return unless_mixed(mean_interval(values, confidence), values, is_mixed)


def _sections(runs: _Rows) -> Sections:
    columns = (tuple(runs[name]) for name in ("own_ms", "beyond", "beyond_p90"))
    return Sections(float(runs["pooled_ms"][0]), *columns)


def _share(parts: list[float], totals: list[float], confidence: float, is_mixed: bool) -> Estimate:
    single = [x / d for x, d in zip(parts, totals, strict=True) if d > 0.0]
    return _percent(unless_mixed(ratio_of_sums(parts, totals, confidence), single, is_mixed))


def _percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.mean, 100 * e.half_width, 100 * e.low, min(100 * e.high, 100.0), e.n, e.confidence, e.kind)


def _groups(table: pd.DataFrame, keys: Sequence[str]) -> Iterator[tuple[tuple[Any, ...], _Rows]]:
    """Yield the rows of equal keys, in the order in which keys come first."""
    if table.empty:  # without columns, too
        return
    columns: _Rows = {str(name): table[name].tolist() for name in table}
    places: dict[tuple[Any, ...], list[int]] = {}
    for place, key in enumerate(zip(*(columns[name] for name in keys), strict=True)):
        places.setdefault(key, []).append(place)
    for key, own in places.items():
        yield key, {name: [values[place] for place in own] for name, values in columns.items()}


def _values(group: _Rows, columns: str | list[str]) -> list[float]:
    """Return a column's values, or the sums of several columns, without the empty ones."""
    if isinstance(columns, list):
        return [float(sum(values)) for values in zip(*(group[name] for name in columns), strict=True)]
    return [float(x) for x in group[columns] if not math.isnan(x)]


def _scenario_of(quantity: str) -> str:
    for suffix, scenario in (("_uac_", "ims_uac"), ("_reg_", "ims_reg")):
        if suffix in quantity:
            return scenario
    return "all"
