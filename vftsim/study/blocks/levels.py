"""The largest load, or other number of a model, under a limit, as blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vftsim.report.blocks import Block, Cell, Chart, Note, Point, Series, Table
from vftsim.stats import Estimate
from vftsim.study.blocks.head import head, marked, outside_notes, within
from vftsim.study.blocks.search import SEQUENTIAL, curve_chart, doubts, resources_blocks, search_answer, share_of
from vftsim.study.resources import limit_in_words
from vftsim.study.results import rows
from vftsim.study.validity import is_load, outside, varied

if TYPE_CHECKING:
    from vftsim.study.level_capacity import LevelCapacity


def level_blocks(found: LevelCapacity) -> list[Block]:
    """Return the load that a system carries under a limit, and what limits it."""
    spec, names = found.model.spec, found.names
    of_load = spec if is_load(spec, names.key) else None
    blocks: list[Block] = [
        *head([varied(model, spec, names.key) for model in found.manifest["models"]], found.manifest["seed"]),
        search_answer(
            "Capacity",
            found.result,
            found.settings,
            names.unit,
            names.within,
            form=".0f" if names.is_counted else ".4g",
            of_load=of_load,
            missing=found.missing,
        ),
    ]
    if text := _with_the_load(found):
        blocks.append(Note(text))
    blocks += [*doubts(found.result, found.interrupted, found.missing), *_curves(found)]
    if of_load and outside(of_load, found.loads):
        blocks += outside_notes(found.model)
    if found.resources.empty:
        return blocks
    highest = "the highest load tried" if found.missing is None else "the highest load offered"
    judged = "the lowest load that fails" if found.watched_level >= found.result.estimate.high else highest
    blocks.append(Note(f"Limiting resource: {limit_in_words(found.resources)}"))
    return [*blocks, *resources_blocks(found.resources, f"Resources at {found.watched_level:g} {names.unit}, {judged}")]


def _with_the_load(found: LevelCapacity) -> str:
    """Return for how long a run measures, and what else goes with the load."""
    names, at_it = found.names, found.result.estimate.mean
    goes = [f"{each:.3g} {what} for each" for what, each in names.per_unit.items() if each]
    there = [f"{each * at_it:.3g} {what} at the capacity" for what, each in names.per_unit.items() if each]
    with_it = f"With the load go {', '.join(goes)}" if goes else ""
    if with_it:
        with_it += f", {', '.join(there)}." if found.result.answer == "between" else "."
    if found.model.spec.ramp is not None:
        return ""
    measure = found.model.spec.measure
    return f"A run measures {measure.duration / 1e9:g} s after {measure.warm_up / 1e9:g} s. {with_it}".rstrip()


def _curves(found: LevelCapacity) -> list[Block]:
    """Return the runs beyond the limit, and the figures that are judged, over the load."""
    key, spec = found.names.key, found.model.spec
    of_load = spec if is_load(spec, key) else None
    curve, shares = rows(found.curve()), share_of(found.result, found.settings.confidence)
    body: list[list[Cell]] = [
        [
            marked(of_load, row[key]),
            str(row["runs"]),
            share,
            *(_range(row, name) for name in found.judged),
            str(row["decision"]),
        ]
        for row, share in zip(curve, shares, strict=True)
    ]
    figures = [name.replace("_percent", " %") for name in found.judged]
    charts: list[Block] = [curve_chart("Runs beyond the limit", key, found.result, found.settings, of_load)]
    for name, words in zip(found.judged, figures, strict=True):
        points = [Point.of(row[key], e) for row in curve if isinstance(e := _range(row, name), Estimate)]
        limits = None if of_load is None else within(of_load)
        charts.append(Chart(words, key, words, [Series("mean of the runs", points)], within=limits))
    return [
        *charts,
        Table(
            (key, "runs", "runs beyond the limit %", *figures, "verdict"),
            body,
            "Runs by load",
            f"{SEQUENTIAL} Figures: mean over the runs, lowest and highest run.",
        ),
    ]


def _range(row: Mapping[str, Any], figure: str) -> Estimate | str:
    mean, low, high = (row[f"{figure}_{what}"] for what in ("mean", "least", "largest"))
    if mean is None or math.isnan(mean):
        return "none"
    return Estimate(mean, (high - low) / 2.0, low, high, row["runs"], math.nan, "range")
