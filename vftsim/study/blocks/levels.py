"""The largest load, or other number of a model, under a limit, as blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from vftsim.report.blocks import Block, Cell, Chart, Note, Point, Series, Table
from vftsim.stats import Estimate
from vftsim.study.blocks.head import marked, outside_notes, within
from vftsim.study.blocks.search import (
    SEQUENTIAL,
    beside_the_ramp,
    curve_chart,
    doubts,
    of_prices,
    resources_blocks,
    search_answer,
    share_of,
)
from vftsim.study.level_search import SAPS, LevelSearch
from vftsim.study.resources import limit_in_words
from vftsim.study.results import rows
from vftsim.study.validity import outside


def level_blocks(found: LevelSearch) -> list[Block]:
    """Return the load that a system carries under a limit, and what limits it."""
    names, of_load, result = found.names, found.of_load, found.result
    blocks: list[Block] = [
        search_answer(
            names.title,
            result,
            found.settings,
            names.unit,
            names.within,
            form=".0f" if names.is_counted else ".4g",
            of_load=of_load,
            missing=found.missing,
        ),
    ]
    blocks += of_prices(found.with_prices, found.band, names.unit)
    if text := _with_the_load(found):
        blocks.append(Note(text))
    blocks += doubts(result, found.interrupted, found.missing)
    if names.key == SAPS and result.answer == "between":
        blocks.append(Note(beside_the_ramp(found.model.spec, result.estimate.mean, found.settings, names.judged_s)))
    blocks += _curves(found)
    if of_load and outside(of_load, found.loads):
        blocks += outside_notes(found.model)
    if found.resources.empty:
        return blocks
    highest = "the highest load tried" if found.missing is None else "the highest load offered"
    judged = "the lowest load that fails" if found.watched_level >= result.estimate.high else highest
    blocks.append(Note(f"Limiting resource: {limit_in_words(found.resources)}"))
    at = f"{found.watched_level:.4g} {names.unit}"
    return [*blocks, *resources_blocks(found.resources, f"Resources at {at}, {judged}")]


def _with_the_load(found: LevelSearch) -> str:
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
    shortened = " Whole runs, without --quick or --scale, differ less by chance." if found.model.notes else ""
    return (
        f"A run measures {measure.duration / 1e9:g} s after {measure.warm_up / 1e9:g} s.{shortened} {with_it}".rstrip()
    )


def _curves(found: LevelSearch) -> list[Block]:
    """Return the runs beyond the limit, and the figures that are judged, over the load."""
    key, of_load = found.names.key, found.of_load
    axis = found.names.axis or key
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
    charts: list[Block] = [curve_chart("Runs beyond the limit", axis, found.result, found.settings, of_load)]
    for name, words in zip(found.judged, figures, strict=True):
        points = [Point.of(row[key], e) for row in curve if isinstance(e := _range(row, name), Estimate)]
        limits = None if of_load is None else within(of_load)
        charts.append(Chart(words, axis, words, [Series("mean of the runs", points)], within=limits))
    return [
        *charts,
        Table(
            (axis, "runs", "runs beyond the limit %", *figures, "verdict"),
            body,
            "Runs by load",
            SEQUENTIAL + (" Figures: mean over the runs, lowest and highest run." if figures else ""),
        ),
    ]


def _range(row: Mapping[str, Any], figure: str) -> Estimate | str:
    mean, low, high = (row[f"{figure}_{what}"] for what in ("mean", "least", "largest"))
    if mean is None or math.isnan(mean):
        return "none"
    return Estimate(mean, (high - low) / 2.0, low, high, row["runs"], math.nan, "range")
