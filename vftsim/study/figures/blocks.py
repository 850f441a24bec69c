"""Figures of one model as blocks."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from vftsim.report.blocks import Cell, Table
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Row, Summary
from vftsim.study.validity import MARK


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


def phase_table(summary: Summary, marked: Collection[str] = ()) -> Table:
    """Return the figures of workloads that lead, a row a phase; those marked bear an asterisk."""
    rows = [row for row in summary.rows.values() if row.address.phase and row.address.owner.startswith("workloads.")]
    return _by_phase(summary, [row for row in rows if row.address.entry.leads], "head", marked)


def every_phase_table(summary: Summary, marked: Collection[str] = ()) -> list[Table]:
    """Return a table for each figure that has phases, under its owner and label: a row a phase, a column a part."""
    groups: dict[tuple[str, str], list[Row]] = {}
    for row in summary.rows.values():
        if row.address.phase:
            figure = row.address.entry.figure
            unit = f", {figure.unit}" if figure.unit else ""
            groups.setdefault((row.address.owner, f"{figure.label}{unit}"), []).append(row)
    tables = [(f"{owner}: {label}", _by_phase(summary, rows, "", marked)) for (owner, label), rows in groups.items()]
    return [replace(table, title=title) for title, table in tables]


def _by_phase(summary: Summary, rows: Iterable[Row], heads: str, marked: Collection[str]) -> Table:
    columns: dict[tuple[str, ...], str] = {}
    phases: dict[str, dict[tuple[str, ...], Address]] = {}
    loads: dict[str, str] = {}
    for row in rows:
        entry, phase = row.address.entry, row.phase
        columns[entry.path] = entry.head if heads else " ".join(entry.path[1:]) or _whole(entry.path)
        phases.setdefault(phase.name, {})[entry.path] = row.address
        loads[phase.name] = "" if phase.load is None else f"{phase.load:g}"
    body: list[list[Cell]] = []
    for phase_name, own in phases.items():
        found = [summary.estimate(own[path].text) if path in own else None for path in columns]
        n = max((each.n for each in found if each is not None), default=0)
        body.append([f"{phase_name}{MARK if phase_name in marked else ''}", loads[phase_name], *found, str(n)])
    return Table(["phase", "asked", *columns.values(), "n"], body)


def _whole(path: tuple[str, ...]) -> str:
    return "all" if len(path) == 1 else path[-1]
