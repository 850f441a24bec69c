"""A comparison as blocks: what differs, by how much, and what the figures rest on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Block, Cell, Note, Table, shown
from vftsim.study.figures.names import Address

if TYPE_CHECKING:
    from vftsim.study.compare import Comparison

_LONGEST_LABEL = 18
_FEWEST = 10


def comparison_blocks(found: Comparison) -> list[Block]:
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
    blocks: list[Block] = [*_answer(found, names), Table(heads, table)] if table else []
    return [*blocks, *(Note(text) for text in _notes(found, names))]


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
    if missing := _first_missing(found):
        notes.append(f"-: not of this model, or not reached by it in any replication (first: {missing}).")
    count = len(found.manifest["replications"])
    if count < _FEWEST:
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
