"""Simulated years beside the Markov chain, as blocks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from vftsim.report.blocks import Answer, Block, Cell, Note, Table
from vftsim.stats import Estimate
from vftsim.study.blocks.head import INTERVALS, head
from vftsim.study.results import CONFIDENCE

if TYPE_CHECKING:
    from vftsim.study.simulated_years import SimulatedYears

_DAY_S = 86_400.0


def years_blocks(study: SimulatedYears) -> list[Block]:
    """Return downtime and time unprotected by simulation and by the chain, and what each kind of fault cost."""
    agreeing = [kind for kind, each in study.found.items() if each.agrees]
    count = len(next(iter(study.found.values())).years)
    years: list[list[Cell]] = []
    for kind, each in study.found.items():
        beside = f"{each.chain_unprotected_s / 3600.0:.3g}"
        deaths = sum(year.deaths for year in each.years) / count
        verdict = "within" if each.agrees else "beyond"
        low, high = (each.chain_down_s + sign * each.chain_around_s for sign in (-1, 1))
        chain = Estimate(each.chain_down_s, each.chain_around_s, low, high, count, CONFIDENCE, "skew-corrected t")
        row: list[Cell] = [kind, chain, each.down_s, verdict, f"{deaths:.3g}"]
        years.append([*row, beside, f"{each.unprotected_s.mean / 3600.0:.3g}"])
    columns = [
        "a year",
        "chain: down, s",
        "simulated: down, s",
        "it is",
        "brought back",
        "unprotected, h: chain",
        "simulated",
    ]
    names = [rate.name for rate in study.rates]
    parts: list[list[Cell]] = []
    for kind, each in study.found.items():
        row = [kind]
        for name in names:
            own = [year.down_by[name] for year in each.years if name in year.down_by]
            row.append(sum(own) / count if own else None)
        parts.append(row)
    how_often = ", ".join(f"{rate.name} {rate.mean_s / _DAY_S:.4g}" for rate in study.rates)
    return [
        *head(study.manifest["models"], study.manifest["seed"]),
        Answer(
            f"of {len(agreeing)} of {len(study.found)} mechanisms",
            f"Is the downtime of {count} simulated years within the interval of the Markov chain?",
        ),
        Table(columns, years, caption=f"Downtime: as clients see it. {INTERVALS}"),
        Table(["down, s/year, by fault", *names], parts),
        Note(f"Mean days between faults: {how_often}."),
        Note(
            f"What does not come back by itself somebody brings back in {study.restart_s:g} s (--restart), redundancy "
            "included; nothing strikes a machine that is down. The chain has the rates and, of each fault by itself, "
            "what it was measured to do; the years play faults that come close to each other together."
        ),
        *(Note(f"Left out: {kind}: {why}") for kind, why in study.refused.items()),
    ]
