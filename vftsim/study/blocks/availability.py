"""A year with each mechanism as blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Chart, Counted, Note, Point, Series, Table
from vftsim.report.blocks import in_words as words_of
from vftsim.stats import Estimate, binomial_interval
from vftsim.study.blocks.failover import ASK_AGAIN
from vftsim.study.blocks.head import head, outside_notes, share_in_words
from vftsim.study.protection_costs import cost_notes
from vftsim.study.protections import fitting
from vftsim.study.validity import MARK

if TYPE_CHECKING:
    from vftsim.study.availability import AvailabilityStudy

_OF_CRASHES = ("mechanism", "came back", "outage s", "protected again after s")
_OF_YEAR = ("mechanism", "nines", "downtime s/year", "unprotected h/year", "attempts failed/year")


def availability_blocks(study: AvailabilityStudy) -> list[Block]:
    """Return how long the service is down with each mechanism, and what that rests on."""
    mark = MARK if study.outside else ""
    crashes = Table(_OF_CRASHES, [_of_crashes(row) for row in study.rows], f"Failovers{mark}")
    table = Table(
        _OF_YEAR,
        [_of_a_year(row) for row in study.rows],
        f"A year{mark}",
        "Outage and time unprotected: means of the simulated failovers; the year: a Markov model of failures, failover "
        "and re-protection. What does not come back by itself somebody restarts by hand, and has it back after "
        f"--restart ({study.restart_s:g} s): assumed, not simulated as that of ha_restart is. Came back: share of "
        "crashes (binomial, at least 95 %, Clopper and Pearson). ± or [..]: 95 % interval of the simulated outages, "
        "failures taken as given, from ten crashes on that all came back; (x to y): of the lowest and highest crash.",
    )
    assumed = (
        f"Each host fails once in {study.mtbf_s / 86_400:.4g} days on average; second outage {study.restart_s:g} s"
    )
    best = min(study.rows, key=lambda row: row["downtime_s_per_year"])
    blocks: list[Block] = [
        *head(study.manifest["models"], study.manifest["seed"]),
        *(Note(f"Costs of {costs}") for costs in _costs(study)),
        Note(assumed),
        Answer(
            f"least with {best['mechanism']}: {words_of(_of_year(best, 'downtime', 'downtime_s_per_year'), 's')}",
            f"How long is {study.model.name} down in a year?",
        ),
        Cards([_card(row) for row in study.rows]),
        *_charts(study),
        crashes,
        table,
    ]
    blocks += [
        Note(
            f"{row['mechanism']}: after {row['not_asked_again']} of {row['crashes']} crashes the guest was back and no "
            f"client asked again: {ASK_AGAIN} The outage is until the guest could be reached."
        )
        for row in study.rows
        if row["not_asked_again"]
    ]
    if study.outside:
        blocks += outside_notes(study.model)
    return [*blocks, *(Note(f"Left out: {kind}: {why}") for kind, why in study.refused.items())]


def _costs(study: AvailabilityStudy) -> list[str]:
    """Return what the costs of each mechanism rest on, but for the model's own, of which the head tells."""
    models, _ = fitting(study.model, [row["mechanism"] for row in study.rows])
    told = study.manifest["models"][0]["costs"]
    return [costs for model in models.values() for costs in cost_notes(model.spec) if costs not in told]


def _charts(study: AvailabilityStudy) -> list[Block]:
    names = [str(row["mechanism"]) for row in study.rows]
    shown = (
        ("Down in a year", "downtime", "downtime_s_per_year", "seconds a year"),
        ("Attempts that fail in a year", "failed", "failed_per_year", "attempts a year"),
    )
    charts: list[Block] = []
    for title, name, figure, unit in shown:
        cells = [_of_year(row, name, figure) for row in study.rows]
        points = [Point.of(float(place), cell) for place, cell in enumerate(cells) if not isinstance(cell, str | None)]
        if points:
            is_wide = min(point.y for point in points) > 0.0
            series = [Series(title.lower(), points, "dots")]
            charts.append(Chart(title, "", unit, series, scale="log" if is_wide else "symlog", names=names))
    return charts


def _card(row: Mapping[str, Any]) -> Card:
    more = f"{_nines(row['nines'])} nines" if math.isfinite(row["nines"]) else "no outage"
    return Card(row["mechanism"], _of_year(row, "downtime", "downtime_s_per_year"), "s a year", more)


def _of_crashes(row: Mapping[str, Any]) -> list[Cell]:
    came_back = share_in_words(binomial_interval(row["came_back"], row["crashes"]))
    outage = _known(row["outage_s"]) if row["came_back"] else f"{row['outage_s']:.4g} (assumed)"
    back = Counted(f"{row['came_back']} of {row['crashes']}", f"({came_back})")
    return [row["mechanism"], back, outage, _known(row["reprotection_s"])]


def _of_a_year(row: Mapping[str, Any]) -> list[Cell]:
    return [
        row["mechanism"],
        _nines(row["nines"]),
        _of_year(row, "downtime", "downtime_s_per_year"),
        _known(row["unprotected_h_per_year"]),
        _of_year(row, "failed", "failed_per_year"),
    ]


def _known(value: float) -> float | str | None:
    return None if math.isnan(value) else "never" if math.isinf(value) else value


def _nines(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "no outage"


def _of_year(row: Mapping[str, Any], name: str, figure: str) -> Estimate | float | str | None:
    kind = row[f"{name}_interval"]
    if kind == "none":
        return _known(row[figure])
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    return Estimate(row[figure], (high - low) / 2.0, low, high, row["crashes"], 0.95, kind)
