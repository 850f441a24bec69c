"""Summary of replications: the estimate of every figure of a model, and differences of paired replications.

Also replications as tidy tables, whatever was measured: what each outcome declares, and the summary over all of them.
Figures stand there under the names that files have had for them (:attr:`~vftsim.outcome.Entry.column`), beside their
address.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from vftsim.composition.record import RunRecord
from vftsim.outcome import Entry, Outcome, Phase
from vftsim.outcome.declare import Delays, Series, Verdict, path_word
from vftsim.outcome.estimators import is_known
from vftsim.platform.outcomes import RESOURCES
from vftsim.spec.suggest import listing
from vftsim.stats import Estimate, sections, unless_mixed
from vftsim.study.figures.frames import DataFrame, estimate_columns, frame, joined
from vftsim.study.figures.names import Address, find, only

OF_PAIRS = "Differences are of pairs; one with (x to y) is the mean of the replications' own, with lowest and highest."
"""What stands below a table of :meth:`Summary.difference`."""


@dataclass
class Row:
    """A figure with what each replication says of it."""

    address: Address
    kind: type[Outcome]
    """Class of the outcome that declares it: two workloads of one name need not be the same."""
    phase: Phase
    """The phase of one of the replications."""
    _unread: dict[int, tuple[Entry, Outcome]] = field(default_factory=dict)
    _observed: dict[int, Any] = field(default_factory=dict)

    @property
    def observed(self) -> dict[int, Any]:
        """Values of the figure by number of the replication; one that knows none is left out.

        Read when somebody asks: a model has two thousand figures, and most studies show twenty.
        """
        for number, (entry, outcome) in self._unread.items():
            if is_known(observed := entry.observe(outcome)):
                self._observed[number] = observed
        self._unread.clear()
        return self._observed

    def is_like(self, other: Row) -> bool:
        """Whether both are one declared figure, or one is what copies have together of the other."""
        is_same = self.address.entry.figure is other.address.entry.figure
        return is_same or self.kind.of_copies() is other.kind or other.kind.of_copies() is self.kind

    def add(self, number: int, entry: Entry, outcome: Outcome) -> None:
        """Take in a replication; ``entry`` is the figure as its outcome has it."""
        self._unread[number] = entry, outcome


class Summary:
    """Every figure of a model over its replications, which are given by number."""

    def __init__(self, records: Sequence[tuple[int, RunRecord]], confidence: float = 0.95) -> None:
        self.confidence, self.replications = confidence, len(records)
        self.rows: dict[str, Row] = {}
        self._estimates: dict[str, Estimate] = {}
        self._outcomes: dict[tuple[str, str], dict[int, tuple[Phase, Outcome]]] = {}
        self._of_copies = {copy for _, record in records for copy in record.of_copies}
        for number, record in records:
            for phase in record.phases:
                word, step = phase.word, _step(phase)
                for owner, outcome in phase.outcomes.items():
                    self._outcomes.setdefault((owner, word), {})[number] = phase, outcome
                    for entry in outcome.entries():
                        address = Address(owner, word, step, entry, owner in self._of_copies)
                        self._take(number, phase, address, outcome)

    @property
    def addresses(self) -> list[Address]:
        """Return the addresses of all figures that some replication knows."""
        return [row.address for row in self.rows.values()]

    def find(self, name: str) -> list[Address]:
        """Return the figures that a name may mean; a percentile that nobody has listed comes to be."""
        if addresses := find(name, self.addresses):
            return addresses
        (head, _, word), derived = name.rpartition("."), list[Address]()
        for (owner, _), outcomes in list(self._outcomes.items()):
            phase, first = next(iter(outcomes.values()))
            for entry in filter(None, (figure.further(word) for figure in first.declared.values())):
                address = Address(owner, phase.word, _step(phase), entry, owner in self._of_copies)
                if not head or address.is_meant(name.split(".")):
                    for number, (phase_of_run, outcome) in outcomes.items():
                        self._take(number, phase_of_run, address, outcome)
                    derived.append(address)
        return derived

    def lead(self, names: Iterable[str]) -> list[str]:
        """Have the figures of these names lead, and no others; return the names of which no run has a figure."""
        meant = {name: self.find(name) for name in names}
        chosen = {address.text for addresses in meant.values() for address in addresses}
        for row in self.rows.values():
            address, leads = row.address, row.address.text in chosen
            row.address = replace(address, entry=replace(address.entry, leads=leads), is_of_copy=not leads)
        return [name for name, addresses in meant.items() if not any(self.estimate(each.text) for each in addresses)]

    def estimate(self, address: str) -> Estimate | None:
        """Return a figure with the interval that its estimator allows; None where no replication says anything."""
        row = self.rows.get(address)
        if row is None or not row.observed:
            return None
        if address not in self._estimates:
            observed, estimator = list(row.observed.values()), row.address.entry.estimator
            interval, singles = estimator.interval(observed, self.confidence), list(map(estimator.single, observed))
            self._estimates[address] = unless_mixed(interval, singles, self._is_mixed(row))
        return self._estimates[address]

    @cached_property
    def mixed(self) -> frozenset[str]:
        """Phases in which some replications went beyond a limit and others did not: no mean of theirs has an interval.

        A mean over both is that of two kinds of runs, and as uncertain as the share of either.
        """
        verdicts = (row for row in self.rows.values() if isinstance(row.address.entry.figure, Verdict))
        return frozenset(row.address.phase for row in verdicts if len(set(map(bool, row.observed.values()))) > 1)

    def _is_mixed(self, row: Row) -> bool:
        return row.address.phase in self.mixed and not isinstance(row.address.entry.figure, Verdict)

    def partly_known(self, addresses: Iterable[Address]) -> list[str]:
        """Say of figures which rest on some of the replications only, and on how many."""
        return resting_on_some((each.text, len(self.values(each.text)), self.replications) for each in addresses)

    def values(self, address: str) -> dict[int, float]:
        """Return what each replication says by itself."""
        row = self.rows.get(address)
        if row is None:
            return {}
        return {number: row.address.entry.estimator.single(each) for number, each in row.observed.items()}

    def of_run(self, name: str, option: str = "--objective") -> float:
        """Return a figure of the only run by its name, nan where the run lacks it; refuse a name of several."""
        addresses = self.find(name)
        return self.values(only(name, addresses, addresses, option).text).get(0, math.nan) if addresses else math.nan

    def difference(self, other: Summary, address: str, its_address: str = "") -> Estimate | None:
        """Return how much higher another model's figure is, by the replications that both have.

        None where one has no such figure, or another of the same address.  The other may have it at another one.
        """
        mine, its = self.rows.get(address), other.rows.get(its_address or address)
        if mine is None or its is None or not mine.is_like(its):
            return None
        common = sorted(mine.observed.keys() & its.observed.keys())
        if not common:
            return None
        first, second = ([row.observed[number] for number in common] for row in (mine, its))
        estimator = mine.address.entry.estimator
        is_mixed = self._is_mixed(mine) or other._is_mixed(its)
        return estimator.difference(first, second, self.confidence, is_mixed=is_mixed)

    def _take(self, number: int, phase: Phase, address: Address, outcome: Outcome) -> None:
        row = self.rows.get(address.text)
        if row is None:
            row = self.rows[address.text] = Row(address, type(outcome), phase)
        elif address.entry.leads:
            row.address = address  # it leads where any replication says so
        row.add(number, address.entry, outcome)


def resting_on_some(figures: Iterable[tuple[str, int, int]]) -> list[str]:
    """Say of figures, each with how many replications know it and how many there are, which not all of them know."""
    names_of: dict[tuple[int, int], list[str]] = {}
    for name, count, replications in figures:
        if 0 < count < replications:
            names_of.setdefault((count, replications), []).append(name)
    return [
        f"{listing(names)}: from {count} of {replications} replications; the others say nothing of them"
        for (count, replications), names in names_of.items()
    ]


def without_value(names: Iterable[str], addresses: Sequence[Address]) -> list[str]:
    """Return the figures that were asked for and are none of those that runs have."""
    return [name for name in names if not find(name, addresses)]


def of_no_run(names: Iterable[str]) -> list[str]:
    """Say of figures that no run has them."""
    why = "a step that none reaches, nothing of it in the measured time, or beyond what its rule holds for"
    return [f"{name}: no run has it: {why}" for name in names]


def figures_in(record: RunRecord, names: Sequence[str]) -> dict[str, float]:
    """Return figures of one run by their names, nan for one that it lacks; refuse a name of several."""
    summary = Summary([(0, record)])
    return {name: summary.of_run(name, "--figure") for name in names}


def _step(phase: Phase) -> str:
    return phase.name if phase.name != phase.word else ""


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
        for time_ns, event in sorted(timeline):
            yield {"replication": number, "domain": domain, "time_s": time_ns / 1e9, "what": event}


def _window_rows(number: int, record: RunRecord) -> Iterator[dict[str, Any]]:
    """Yield the use of resources in each phase."""
    for phase in record.phases:
        window = {"window": phase.name or WHOLE, "begin_s": phase.begin_ns / 1e9, "end_s": phase.end_ns / 1e9}
        for owner, outcome in phase.outcomes.items():
            if isinstance(outcome, RESOURCES):
                for figure, value in outcome.columns().items():
                    yield {"replication": number, **window, "resource": owner, "figure": figure, "value": value}
