"""Several systems side by side under the same traffic, in any figures.

Every replication gives each model the same arrivals, scenarios, durations and demands (common random
numbers), so differences between models are differences of the systems and their intervals are those of
paired samples.  Differences are taken to the first model.  Phases of ramps are laid side by side by load, not by the
number of a step.

Of models that all have a benchmark the capacities are compared too: ratios and differences in each replication, of
which the middle one is given, since DOCs come in steps.  A ramp that never failed has no DOC but a bound, and gives
neither.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.report import blocks as page
from vftsim.spec import format_duration
from vftsim.spec.suggest import counted
from vftsim.stats import Estimate, median_interval
from vftsim.study.blocks.head import head, intervals, outside_notes
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.capacity_by_ramp import RampCapacity, doc_of, ramp_capacity_of, unfailed_notes
from vftsim.study.execution import Execution, Replications
from vftsim.study.figures import validity
from vftsim.study.figures.frames import CONFIDENCE, DataFrame, estimate_columns, frame, rows
from vftsim.study.figures.names import Address, check_names
from vftsim.study.figures.summary import OF_PAIRS, Summary, of_no_run, without_value
from vftsim.study.runs.model import Model, labels_apart, measured_ns, variant_of
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.opened import model_of, read_answer, read_manifest, records_of


@dataclass(frozen=True)
class Comparison(Printed):
    """Several models over the same replications."""

    models: tuple[Model, ...]
    """As they were named; the first is the reference."""
    summaries: tuple[Summary, ...]
    """Every figure of each."""
    figures: tuple[str, ...]
    """Names of the figures that were asked for; none: those that lead."""
    capacities: tuple[RampCapacity, ...]
    """Of models that all have a benchmark; else empty."""
    manifest: dict[str, Any]

    @cached_property
    def addresses(self) -> list[Address]:
        """The figures that are shown, those of one place together."""
        shown = dict[str, Address]()
        for summary in self.summaries:
            for address in self._of(summary):
                if any(each.estimate(address.text) for each in self.summaries):
                    shown.setdefault(address.text, address)
        prefixes = list(dict.fromkeys(address.prefix for address in shown.values()))
        return sorted(shown.values(), key=lambda address: prefixes.index(address.prefix))

    def _of(self, summary: Summary) -> Iterator[Address]:
        for name in self.figures:
            yield from summary.find(name)
        if not self.figures:
            yield from (address for address in summary.addresses if address.leads and not address.phase)

    @property
    def without_value(self) -> list[str]:
        """Figures that were asked for and that no run of any model has."""
        return without_value(self.figures, self.addresses)

    def estimate(self, number: int, address: Address) -> Estimate | None:
        return self.summaries[number].estimate(address.text)

    def difference_of(self, number: int, address: Address) -> Estimate | None:
        """Return how much a figure of a model is higher than the first model's."""
        return self.summaries[0].difference(self.summaries[number], address.text)

    def blocks(self) -> list[page.Block]:
        """Return the capacities of ramps, if they are compared, or the figures that were asked for or lead."""
        about = head(self.manifest["models"], self.manifest["seed"])
        if self.capacities and not self.figures:
            return [*about, *_capacities(self)]
        return [*about, *_figures(self)]

    @classmethod
    def opened(cls, folder: Path) -> Comparison:
        manifest, answer = read_manifest(folder), read_answer(folder)
        models = [model_of(manifest, number) for number in range(len(manifest["models"]))]
        return _compared(
            models, [records_of(folder, manifest, n) for n in range(len(models))], manifest, tuple(answer["asked"])
        )

    def figures_to_pandas(self) -> DataFrame:
        """Return one row a model and figure, the difference to the first model behind it."""
        table = []
        for address in self.addresses:
            for number, model in enumerate(self.models):
                estimate, less = self.estimate(number, address), self.difference_of(number, address)
                if estimate is not None:
                    row = {"model": model.label, "figure": address.text, "unit": address.entry.unit}
                    of_pairs = estimate_columns(less, "difference_") if less is not None and number else {}
                    table.append(row | estimate_columns(estimate) | of_pairs)
        return frame(table)

    def ratio(self, number: int) -> Estimate | None:
        """Return a model's capacity relative to the first one's; None when that is nothing, or one only a bound."""
        pairs = self._pairs(number)
        is_known = bool(pairs) and all(reference for _, reference in pairs)
        return median_interval([doc / reference for doc, reference in pairs], CONFIDENCE) if is_known else None

    def difference(self, number: int) -> Estimate | None:
        """Return a model's capacity less the first one's; None when one is only a bound."""
        gaps = [doc - reference for doc, reference in self._pairs(number)]
        return median_interval(gaps, CONFIDENCE) if gaps else None

    def _pairs(self, number: int) -> list[tuple[float, float]]:
        mine, first = self.capacities[number], self.capacities[0]
        if mine.unfailed or first.unfailed:
            return []
        return list(zip(mine.docs, first.docs, strict=True))

    def to_pandas(self) -> DataFrame:
        """Return one row a model and figure: capacity, ratio, difference; without capacities those of the figures."""
        if self.figures or not self.capacities:
            return self.figures_to_pandas()
        table = []
        for number, capacity in enumerate(self.capacities):
            label = capacity.model.label
            answer = {**estimate_columns(capacity.estimate), **capacity.columns()}
            table.append({"model": label, "figure": "capacity_saps", **answer})
            figures = {"ratio_to_first": self.ratio(number), "difference_to_first_saps": self.difference(number)}
            for name, estimate in figures.items() if number else ():
                if estimate is not None:
                    table.append({"model": label, "figure": name, **estimate_columns(estimate)})
        return frame(table)

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "asked": list(self.figures),
            "outside_calibration": {c.model.label: validity.outside(c.model.spec, c.loads) for c in self.capacities},
            "comparison": rows(self.to_pandas()),
            "figures": rows(self.figures_to_pandas()),
            "replications": [row for c in self.capacities for row in rows(c.to_pandas())],
        }


def compare_study(
    models: Sequence[Model], replications: int, execution: Execution, *, figures: Sequence[str] = ()
) -> Comparison:
    """Run every model over the same replications; refuse, before anything runs, a figure that no model has."""
    if len(models) < 2:
        raise UsageError("comparing takes at least two models; for one there is 'vftsim capacity'")
    labels = labels_apart([model.label for model in models], [model.assignments for model in models])
    models = [replace(model, label=label) for model, label in zip(models, labels, strict=True)]
    check_names(figures, [model.spec for model in models])
    done = Replications(models, execution)
    is_partial, common = not done.run(replications), done.common
    if not common:
        raise Interrupted("no replication of all models had finished")
    manifest = execution.manifest(models, "compare", common, wanted=replications, interrupted=is_partial)
    records = [[(n, each[n]) for n in common] for each in done.records]
    return _compared(models, records, manifest, tuple(figures))


def _compared(
    models: Sequence[Model],
    records: Sequence[list[tuple[int, RunRecord]]],
    manifest: dict[str, Any],
    figures: tuple[str, ...],
) -> Comparison:
    """Return the comparison of models by their replications, the same ones of each."""
    summaries = tuple(Summary(numbered, CONFIDENCE) for numbered in records)
    are_ramps = all(model.spec.ramp is not None for model in models)
    capacities = tuple(map(ramp_capacity_of, models, records)) if are_ramps else ()
    return Comparison(tuple(models), summaries, figures, capacities, manifest)


_LONGEST_LABEL = 18
_MOST_CHARTS = 6


def _capacities(comparison: Comparison) -> list[page.Block]:
    """Return capacities side by side; ratios and differences are to the first model."""
    first = comparison.capacities[0].model.label
    capacities = [[each.model.label, *_ends(each), doc_of(each)] for each in comparison.capacities]
    ratios: list[list[page.Cell]] = []
    for n, each in enumerate(comparison.capacities):
        to_first: list[page.Cell] = [comparison.ratio(n), comparison.difference(n)] if n else ["1", ""]
        ratios.append([each.model.label, each.model.spec.measured.capacity or "", *to_first, str(len(each.runs))])
    caption = (
        "Passes: highest load step that at least half of the ramps pass (in how many); fails: the step above. DOC: "
        "integer load of the last step within the limit, of the middle ramp; n ramps with the same traffic for all; "
        "ratio and difference are paired by ramp, the middle one is shown. [..]: interval of the middle, at least 95 % "
        "for any distribution, from six ramps on; (x to y): lowest and highest ramp; -: a ramp without end has only a "
        "bound."
    )
    points = [page.Point.of(float(position), each.estimate) for position, each in enumerate(comparison.capacities)]
    measured = [
        page.Point(float(position), each.model.spec.measured.capacity)
        for position, each in enumerate(comparison.capacities)
        if each.model.spec.measured.capacity is not None
    ]
    series = [page.Series("simulated", points, "dots")]
    series += [page.Series("measured", measured, "measured")] if measured else []
    names = [each.model.label for each in comparison.capacities]
    ratio = comparison.ratio(1) if len(names) == 2 else None
    answer = f"{page.in_words(ratio)} times as much as {first}" if ratio else f"{len(names)} systems beside each other"
    question = f"What does {names[1]} carry?" if len(names) == 2 else "What do they carry?"
    notes = [note for each in comparison.capacities for note in unfailed_notes(each)]
    return [
        page.Answer(answer, question),
        page.Cards([page.Card(each.model.label, doc_of(each), "SAPS") for each in comparison.capacities]),
        page.Chart("DOC of the middle ramp", "", "attempts a second", series, names=names),
        page.Table(("model", "passes", "fails", "DOC"), capacities, "Capacity (SAPS)"),
        page.Table(
            ("model", "measured", f"ratio to {first}", f"less {first}", "n"), ratios, "Beside each other", caption
        ),
        *outside_notes(*(c.model for c in comparison.capacities if c.ends_outside)),
        *notes,
    ]


def _ends(ramp: RampCapacity) -> tuple[page.Cell, page.Cell]:
    passes, fails, n, spec = ramp.passes, ramp.fails, len(ramp.runs), ramp.model.spec
    return (
        page.Counted(validity.marked(spec, passes.saps), f"({passes.passed} of {n})") if passes else "none",
        page.Counted(validity.marked(spec, fails.saps), f"({n - fails.passed} of {n})") if fails else "none",
    )


def _figures(comparison: Comparison) -> list[page.Block]:
    """Return an answer where one figure was asked for, the table, and notes."""
    labels = [model.label for model in comparison.models]
    names = _names(labels)
    others = range(1, len(names))
    heads = ["", *names, *(f"{names[n]} less {names[0]}" if len(names) > 2 else "difference" for n in others)]
    table: list[list[page.Cell]] = []
    prefix = ""
    for address in comparison.addresses:
        if address.prefix != prefix:
            prefix = address.prefix
            table.append([prefix])
        row: list[page.Cell] = [f"  {address.entry.words}"]
        row += [comparison.estimate(number, address) for number in range(len(names))]
        row += [comparison.difference_of(number, address) for number in others]
        table.append(row)
    notes = [page.Note(text) for text in _notes(comparison, names)]
    if not table:
        return [*notes]
    return [*_answer(comparison, names), *_differences(comparison, names), page.Table(heads, table), *notes]


def _names(labels: Sequence[str]) -> list[str]:
    """Return labels, of a variant that is too long for a column its changes, and of others a letter."""
    names = list[str]()
    for number, label in enumerate(labels):
        changes = "+".join(change[change.partition("=")[0].rfind(".") + 1 :] for change in variant_of(label)[1])
        shorter = (label, changes, chr(ord("A") + number))
        names.append(next(each for each in shorter if 0 < len(each) <= _LONGEST_LABEL and each not in names))
    return names


def _differences(comparison: Comparison, names: list[str]) -> list[page.Block]:
    """Return a chart of each figure that has the same unit in all models, at most a few."""
    charts: list[page.Block] = []
    for address in comparison.addresses[:_MOST_CHARTS]:
        estimates = [comparison.estimate(number, address) for number in range(len(names))]
        if None not in estimates:
            axis = address.entry.unit or address.entry.figure.label
            charts.append(page.dot_chart(address.text, axis, names, {address.text: estimates}))
    return charts


def _answer(comparison: Comparison, names: list[str]) -> list[page.Block]:
    """Say the difference where one figure of two models was asked for."""
    if len(comparison.addresses) != 1 or len(names) != 2:
        return []
    address = comparison.addresses[0]
    gap = comparison.difference_of(1, address)
    if gap is None:
        return []
    is_clear = gap.is_interval and (gap.low > 0.0 or gap.high < 0.0)
    chance = "" if is_clear or gap.low == gap.high else ", which may be chance"
    words = page.in_words(gap, address.entry.unit)
    return [page.Answer(f"{address.text}: {names[1]} differs from {names[0]} by {words}{chance}.")]


def _notes(comparison: Comparison, names: list[str]) -> list[str]:
    notes = [
        f"{name}: {model.label}" for name, model in zip(names, comparison.models, strict=True) if name != model.label
    ]
    notes += [*_unequal_loads(comparison), *_unequal_times(comparison)]
    notes += of_no_run(comparison.without_value)
    every = range(len(names))
    missing = (a.text for a in comparison.addresses if any(comparison.estimate(n, a) is None for n in every))
    if first := next(missing, ""):
        notes.append(f"-: not of this model, or not reached by it in any replication (first: {first}).")
    for name, summary in zip(names, comparison.summaries, strict=True):
        notes += [f"{name}, {text}." for text in summary.partly_known(comparison.addresses)]
    count = len(comparison.manifest["replications"])
    same = f"{counted(count, 'replication')} under the same random numbers."
    return [*notes, f"{same} {intervals(comparison.summaries[0].confidence)} {OF_PAIRS}"]


def _unequal_times(comparison: Comparison) -> list[str]:
    """Say for how long each model is measured, where that is not the same: more happens in a longer time."""
    times_ns = [measured_ns(model.spec) for model in comparison.models]
    if len(set(times_ns)) < 2:
        return []
    listed = ", ".join(map(format_duration, times_ns))
    return [f"They are measured for {listed} (a ramp each step): counts and extremes of a run differ by that too."]


def _unequal_loads(comparison: Comparison) -> list[str]:
    """Name workloads that are offered at another load: part of every difference is the load."""
    first, notes = comparison.models[0].spec, []
    for name, workload in first.workloads.items():
        loads = [workload.load()]
        for model in comparison.models[1:]:
            other = model.spec.workloads.get(name)
            loads.append(other.load() if other is not None and other.load_key == workload.load_key else loads[0])
        if len(set(loads)) > 1:
            listed = ", ".join("none" if load is None else f"{load:g}" for load in loads)
            notes.append(f"workloads.{name} is offered at {listed}: part of every difference is the load.")
    return notes
