"""Replications as tidy tables, whatever was measured: what each outcome declares, and the summary over all of them.

Figures stand under the names that files have had for them (:attr:`~vftsim.outcome.Entry.column`), beside their address.
"""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from vftsim.composition.record import RunRecord
from vftsim.outcome import Entry, Outcome, Phase
from vftsim.outcome.declare import Delays, Series, Verdict, path_word
from vftsim.platform.outcomes import RESOURCES
from vftsim.stats import sections
from vftsim.study.figures.frames import DataFrame, estimate_columns, frame, joined
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Summary

Records = Sequence[tuple[int, RunRecord]]
PERCENTILES = (50, 90, 95, 99)
WHOLE = "measured"
"""Name of the phase in tables of a run without phases."""


def tables(label: str, records: Records) -> dict[str, DataFrame]:
    """Return the tables that have rows, one row a replication and observation; drops always."""
    delays = list(_delays(records))
    same: dict[Any, list[Any]] = {}
    for each in delays:
        same.setdefault(each[2], []).append(each)
    samples = [part for each in _services(records) for part in _samples(*each)]
    named_tables = {
        "steps": frame([row for each in _services(records) for row in _step_rows(label, *each)]),
        "figures": frame([row for number, record in records for row in _figure_rows(number, record)]),
        "per_second": frame([row for each in _services(records) for row in _series_rows(*each)]),
        "delays": frame([_delay_row(place, number, delay) for place, number, _, delay in delays]),
        "percentiles": frame([row for each in same.values() for row in _percentile_rows(each)]),
        "series": joined(samples) if samples else frame(),
        "windows": frame([row for number, record in records for row in _window_rows(number, record)]),
        "timeline": frame([row for number, record in records for row in _timeline_rows(number, record)]),
    }
    drops = [
        {"replication": number, "place": place, "cause": cause, "packets": count}
        for number, record in records
        for (place, cause), count in record.drops.items()
    ]
    named_tables = {name: table for name, table in named_tables.items() if not table.empty}
    return named_tables | {"drops": frame(drops, columns=["replication", "place", "cause", "packets"])}


def summary_table(summary: Summary) -> DataFrame:
    """Return every figure across replications, one row a figure: address, names of old, estimate with interval."""
    rows = []
    for row in summary.rows.values():
        address, estimate = row.address, summary.estimate(row.address.text)
        if estimate is not None:
            about = {"figure": address.text, "unit": address.entry.unit, **_names(address), **_key(row.phase)}
            rows.append({**about, **estimate_columns(estimate)})
    return frame(rows)


def short_owner(owner: str) -> str:
    """Return an owner without its sort: ``web`` of ``workloads.web``, ``vm.db`` of ``domains.vm.applications.db``."""
    return owner.partition(".")[2].replace(".applications", "") or owner


def is_service(owner: str) -> bool:
    """Whether an owner is a workload or a program."""
    return owner.startswith("workloads.") or ".applications." in owner


def _key(phase: Phase) -> dict[str, Any]:
    """Return the columns that say which phase a row is of."""
    number = phase.name.removeprefix("step_")
    index = int(number) if number.isdigit() else 0 if phase.name else None
    return {"phase": phase.name or WHOLE, "step_index": index, "requested_saps": phase.load}


def _names(address: Address) -> dict[str, str | None]:
    """Return the table that has a figure by replication, and what it is called there."""
    entry, figure = address.entry, address.entry.figure
    if not address.phase or not address.owner.startswith("workloads."):
        table = "figures" if is_service(address.owner) else "windows"
        name = f"{short_owner(address.owner)}.{entry.column}"
        return {"table": table, "metric": name, "scenario": None, "statistic": None}
    if isinstance(figure, Delays):
        table, statistic = "delays", f"{entry.path[-1]}_{figure.unit}"
    elif isinstance(figure, Series):
        table, statistic = "per_second", (*entry.path, "mean")[1]
    else:
        table, statistic = "steps", figure.statistic
    return {"table": table, "metric": figure.metric, "scenario": entry.part, "statistic": statistic}


def _services(records: Records) -> Iterator[tuple[int, Phase, str, Outcome]]:
    """Yield what workloads measured in phases of their own, and in the whole run where there are none."""
    for number, record in records:
        phases = [phase for phase in record.phases if phase.name] or [record.whole]
        for phase in phases:
            for owner, outcome in phase.outcomes.items():
                if owner.startswith("workloads."):
                    yield number, phase, owner, outcome


def _of(outcome: Outcome, kind: type[Any]) -> list[Any]:
    return [figure for figure in outcome.declared.values() if isinstance(figure, kind)]


def _step_rows(label: str, number: int, phase: Phase, owner: str, outcome: Outcome) -> Iterator[dict[str, Any]]:
    """Yield the row of a step: totals, rates, shares, and means of what is sampled."""
    if not phase.name:
        return
    row = {"replication": number, "environment": label, **_key(phase)}
    for entry in outcome.entries():
        if isinstance(entry.figure, Verdict):
            row["within_limit"] = not entry.observe(outcome)
        elif isinstance(entry.figure, Series) and len(entry.path) > 1:
            continue
        elif not isinstance(entry.figure, Delays):
            row[entry.column] = entry.value(outcome)
    yield {**row, "seconds": outcome.seconds, "workload": short_owner(owner)}


def _series_rows(number: int, phase: Phase, owner: str, outcome: Outcome) -> Iterator[dict[str, Any]]:
    for figure in _of(outcome, Series):
        if samples := figure.held(outcome):
            entries: list[Entry] = list(figure.entries(outcome))
            statistics = {entry.path[1] if entry.path[1:] else "mean": entry.value(outcome) for entry in entries}
            row = {"replication": number, **_key(phase), "quantity": figure.metric}
            yield {**row, "seconds": float(len(samples)), **statistics}


def _samples(number: int, phase: Phase, owner: str, outcome: Outcome) -> Iterator[DataFrame]:
    """Yield a table with a row a sample, and the simulated time at its end."""
    sampled = {figure: figure.held(outcome) for figure in _of(outcome, Series) if figure.period}
    count = max(map(len, sampled.values()), default=0)
    if count:
        period_ns = getattr(outcome, next(iter(sampled)).period)
        times_s = (phase.begin_ns + period_ns * np.arange(1, count + 1)) / 1e9
        columns = {figure.metric: values for figure, values in sampled.items() if len(values) == count}
        yield frame({"replication": number, "phase": phase.name or WHOLE, "time_s": times_s, **columns})


def _delays(records: Records) -> Iterator[tuple[dict[str, Any], int, tuple[Any, ...], tuple[Any, Any]]]:
    """Yield place, replication, name and (figure, distribution) of every delay that occurred."""
    for number, phase, owner, outcome in _services(records):
        for figure in _of(outcome, Delays):
            if (distribution := figure.held(outcome)).count:
                metric = figure.metric if phase.name else f"{short_owner(owner)}.{figure.metric}"
                columns = {**_key(phase), "metric": metric, "scenario": figure.part or "all"}
                yield columns, number, (owner, phase.word, figure.name), (figure, distribution)


def _delay_row(columns: dict[str, Any], number: int, delay: tuple[Any, Any]) -> dict[str, Any]:
    figure, distribution = delay
    statistics = {
        "mean": distribution.mean,
        "sd": distribution.sd if distribution.count > 1 else math.nan,
        "min": distribution.min,
        "max": distribution.max,
        **{path_word(f"p{percent:g}"): distribution.percentile(percent) for percent in figure.percents},
    }
    return {
        "replication": number,
        **columns,
        "count": distribution.count,
        **{f"{name}_{figure.unit}": value / figure.unit_ns for name, value in statistics.items()},
        "beyond_p99": float(distribution.samples_beyond(99)),
    }


def _percentile_rows(delays: Sequence[tuple[dict[str, Any], int, Any, tuple[Any, Any]]]) -> Iterator[dict[str, Any]]:
    """Yield what each run says about a percentile of one delay: its own beside that of all runs together.

    ``beyond`` counts the run's delays beyond the pooled percentile, ``beyond_p90`` those beyond the pooled 90 %.
    """
    columns, figure = delays[0][0], delays[0][3][0]
    for percent, percentile in zip(PERCENTILES, sections([each for *_, (_, each) in delays], PERCENTILES), strict=True):
        for (_, number, *_), own_ns, beyond, beyond_body in zip(
            delays, percentile.by_run, percentile.beyond, percentile.beyond_body, strict=True
        ):
            values = {"own": own_ns, "pooled": percentile.pooled}
            in_unit = {f"{name}_{figure.unit}": value / figure.unit_ns for name, value in values.items()}
            row = {"replication": number, **columns, "percent": percent, **in_unit}
            yield {**row, "beyond": beyond, "beyond_p90": beyond_body}


def _figure_rows(number: int, record: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield what workloads and programs measured in the whole run."""
    for owner, outcome in record.whole.outcomes.items():
        if is_service(owner):
            for figure, value in outcome.columns().items():
                yield {"replication": number, "workload": short_owner(owner), "figure": figure, "value": value}


def _timeline_rows(number: int, record: RunRecord) -> Iterator[dict[str, Any]]:
    for domain, timeline in record.timelines.items():
        for time_ns, what in sorted(timeline):
            yield {"replication": number, "domain": domain, "time_s": time_ns / 1e9, "what": what}


def _window_rows(number: int, record: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield the use of resources in each phase."""
    for phase in record.phases:
        window = {"window": phase.name or WHOLE, "begin_s": phase.begin_ns / 1e9, "end_s": phase.end_ns / 1e9}
        for owner, outcome in phase.outcomes.items():
            if isinstance(outcome, RESOURCES):
                for figure, value in outcome.columns().items():
                    yield {"replication": number, **window, "resource": owner, "figure": figure, "value": value}
