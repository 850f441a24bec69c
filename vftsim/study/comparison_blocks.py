"""A comparison as blocks: what differs, by how much, and what the figures rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.report.blocks import (
    Answer,
    Block,
    Card,
    Cards,
    Cell,
    Chart,
    Counted,
    Note,
    Point,
    Series,
    Table,
    in_words,
    shown,
)
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.capacity import unfailed_notes
from vftsim.study.blocks.head import head, marked, outside_notes
from vftsim.study.figures.names import Address
from vftsim.study.validity import marked as marked_text

if TYPE_CHECKING:
    from vftsim.study.compare import Comparison
    from vftsim.study.ramp import RampCapacity

_LONGEST_LABEL = 18
_MOST_CHARTS = 6


def comparison_blocks(found: Comparison) -> list[Block]:
    """Return the capacities of ramps, if they are compared, or the figures that were asked for or lead."""
    said = head(found.manifest["models"], found.manifest["seed"])
    if found.capacities and not found.figures:
        return [*said, *_capacities(found)]
    return [*said, *_figures(found)]


def _capacities(found: Comparison) -> list[Block]:
    """Return capacities side by side; ratios and differences are to the first model."""
    first = found.capacities[0].model.label
    body = [[each.model.label, *_ends(each), _doc(each)] for each in found.capacities]
    beside: list[list[Cell]] = [
        [
            each.model.label,
            _measured(each),
            found.ratio(n) if n else "1",
            found.difference(n) if n else "",
            str(len(each.runs)),
        ]
        for n, each in enumerate(found.capacities)
    ]
    caption = (
        "Passes: highest load step that at least half of the ramps pass (in how many); fails: the step above. DOC: "
        "integer load of the last step within the limit, of the middle ramp; n ramps with the same traffic for all; "
        "ratio and difference are paired by ramp, the middle one is shown. [..]: interval of the middle, at least 95 % "
        "for any distribution, from six ramps on; (x to y): lowest and highest ramp; -: a ramp without end has only a "
        "bound."
    )
    points = [Point.of(float(place), each.estimate) for place, each in enumerate(found.capacities)]
    measured = [
        Point(float(place), each.model.spec.measured.capacity)
        for place, each in enumerate(found.capacities)
        if each.model.spec.measured.capacity is not None
    ]
    series = [Series("simulated", points, "dots"), *([Series("measured", measured, "measured")] if measured else [])]
    names = [each.model.label for each in found.capacities]
    ratio = found.ratio(1) if len(names) == 2 else None
    answer = f"{in_words(ratio)} times as much as {first}" if ratio else f"{len(names)} systems beside each other"
    asked = f"What does {names[1]} carry?" if len(names) == 2 else "What do they carry?"
    notes = [note for each in found.capacities for note in unfailed_notes(each)]
    return [
        Answer(answer, asked),
        Cards([Card(each.model.label, _doc(each), "SAPS") for each in found.capacities]),
        Chart("DOC of the middle ramp", "", "attempts a second", series, names=names),
        Table(("model", "passes", "fails", "DOC"), body, "Capacity (SAPS)"),
        Table(("model", "measured", f"ratio to {first}", f"less {first}", "n"), beside, "Beside each other", caption),
        *outside_notes(*(c.model for c in found.capacities if c.ends_outside)),
        *notes,
    ]


def _ends(ramp: RampCapacity) -> tuple[Cell, Cell]:
    passes, fails, n, spec = ramp.passes, ramp.fails, len(ramp.runs), ramp.model.spec
    return (
        Counted(marked_text(spec, passes.saps), f"({passes.passed} of {n})") if passes else "none",
        Counted(marked_text(spec, fails.saps), f"({n - fails.passed} of {n})") if fails else "none",
    )


def _doc(ramp: RampCapacity) -> Cell:
    """Return the DOC, marked if the step that it is of is outside of the calibration."""
    return marked(ramp.model.spec, ramp.passes.saps, ramp.estimate) if ramp.passes else ramp.estimate


def _measured(ramp: RampCapacity) -> float | str:
    """Return what a model's file says was measured on the real system."""
    measured = ramp.model.spec.measured.capacity
    return "" if measured is None else measured


def _figures(found: Comparison) -> list[Block]:
    """Return an answer where one figure was asked for, the table, and notes."""
    names = _columns(found)
    others = range(1, len(names))
    heads = ["", *names, *(f"{names[n]} less {names[0]}" if len(names) > 2 else "difference" for n in others)]
    table: list[list[Cell]] = []
    place = ""
    for address in found.addresses:
        if address.place != place:
            place = address.place
            table.append([place])
        row: list[Cell] = [f"  {address.entry.words}"]
        row += [found.estimate(number, address) for number in range(len(names))]
        row += [found.difference_of(number, address) for number in others]
        table.append(row)
    blocks: list[Block] = [*_answer(found, names), *_differences(found, names), Table(heads, table)] if table else []
    return [*blocks, *(Note(text) for text in _notes(found, names))]


def _differences(found: Comparison, names: list[str]) -> list[Block]:
    """Return a chart of each figure that has the same unit in all models, at most a few."""
    charts: list[Block] = []
    for address in found.addresses[:_MOST_CHARTS]:
        estimates = [found.estimate(number, address) for number in range(len(names))]
        points = [Point.of(float(place), e) for place, e in enumerate(estimates) if e is not None]
        if len(points) == len(names):
            unit, series = address.entry.unit, [Series(address.text, points, "dots")]
            charts.append(Chart(address.text, "", unit or address.entry.figure.label, series, names=names))
    return charts


def _columns(found: Comparison) -> list[str]:
    labels = [model.label for model in found.models]
    return [label if len(label) <= _LONGEST_LABEL else chr(ord("A") + n) for n, label in enumerate(labels)]


def _answer(found: Comparison, names: list[str]) -> list[Block]:
    """Say the difference where one figure of two models was asked for."""
    if len(found.addresses) != 1 or len(names) != 2:
        return []
    address = found.addresses[0]
    gap = found.difference_of(1, address)
    if gap is None:
        return []
    is_clear = gap.kind != "range" and (gap.low > 0.0 or gap.high < 0.0)
    words = " ".join(part for part in shown(gap) if part)
    unit = f" {address.entry.unit}" if address.entry.unit else ""
    chance = "" if is_clear or gap.low == gap.high else ", which may be chance"
    return [Answer(f"{address.text}: {names[1]} differs from {names[0]} by {words}{unit}{chance}.")]


def _notes(found: Comparison, names: list[str]) -> list[str]:
    notes = [f"{name}: {model.label}" for name, model in zip(names, found.models, strict=True) if name != model.label]
    notes += _unequal_loads(found)
    nowhere = "no run of any model has it: a step that none reaches, or beyond what its rule holds for."
    notes += [f"{name}: {nowhere}" for name in found.without_value]
    if missing := _first_missing(found):
        notes.append(f"-: not of this model, or not reached by it in any replication (first: {missing}).")
    count = len(found.manifest["replications"])
    if count < FEWEST_RUNS:
        rests_on = "(x to y): lowest and highest replication, no interval."
    else:
        percent = f"{100 * found.summaries[0].confidence:g}"
        rests_on = f"± and [ ]: {percent} % intervals, of differences those of pairs."
    return [*notes, f"{count} replications under the same random numbers. {rests_on}"]


def _unequal_loads(found: Comparison) -> list[str]:
    """Name workloads that are offered at another load: part of every difference is the load."""
    first, notes = found.models[0].spec, []
    for name, workload in first.workloads.items():
        loads = [workload.load()]
        for model in found.models[1:]:
            other = model.spec.workloads.get(name)
            loads.append(other.load() if other is not None and other.kind == workload.kind else loads[0])
        if len(set(loads)) > 1:
            told = ", ".join("none" if load is None else f"{load:g}" for load in loads)
            notes.append(f"workloads.{name} is offered at {told}: part of every difference is the load.")
    return notes


def _first_missing(found: Comparison) -> str:
    def is_missing(address: Address) -> bool:
        return any(found.estimate(number, address) is None for number in range(len(found.models)))

    return next((address.text for address in found.addresses if is_missing(address)), "")
