"""Figures of one model as blocks."""

from __future__ import annotations

from vftsim.report.blocks import Cell, Table
from vftsim.study.figures.summary import Summary


def figures_table(summary: Summary, *, everything: bool = False) -> Table:
    """Return the figures of the whole run, those of one place together: the leading ones, or all."""
    rows: list[list[Cell]] = []
    addresses = [each for each in summary.addresses if not each.phase and (everything or each.entry.leads)]
    for place in dict.fromkeys(address.place for address in addresses):
        own = [(each, summary.estimate(each.text)) for each in addresses if each.place == place]
        known = [(each, found) for each, found in own if found is not None]
        if known:
            rows.append([place])
            rows += [[f"  {each.entry.words}", found] for each, found in known]
    return Table(["", "estimate"], rows)
