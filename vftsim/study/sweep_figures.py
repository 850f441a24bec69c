"""What a sweep knows of a point: figures of every replication by name, and their estimates.

Of figures that have phases those of the first step are taken, under its number: the load of the first step may itself
be an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from vftsim.composition.record import RunRecord
from vftsim.outcome.declare import Verdict
from vftsim.stats import Estimate
from vftsim.study.digest import sha256_of
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Summary

FIRST_STEP = "step_1"
Figures = dict[str, float]
"""Of one replication, by name."""


@dataclass(frozen=True)
class PointFigures:
    """Figures of one point.

    Parameters
    ----------
    values : dict
        By replication.
    found : dict
        Address and estimate of each figure, by its name in the sweep.
    marks : dict
        By replication: what tells records apart to the last digit.
    """

    values: dict[int, Figures] = field(default_factory=dict)
    found: dict[str, tuple[Address, Estimate]] = field(default_factory=dict)
    marks: dict[int, str] = field(default_factory=dict)


def point_figures(records: Sequence[tuple[int, RunRecord]], names: Sequence[str], confidence: float) -> PointFigures:
    """Return the figures of a point: those that are named, or those that lead."""
    summary, made = Summary("", records, confidence), PointFigures()
    for address in chosen(summary, names):
        estimate, name = summary.estimate(address.text), name_of(address)
        if estimate is not None:
            made.found[name] = address, estimate
            for number, value in summary.values(address.text).items():
                made.values.setdefault(number, {})[name] = value
    for number, record in records:
        made.values.setdefault(number, {})
        made.marks[number] = sha256_of(record.to_dict())
    return made


def chosen(summary: Summary, names: Iterable[str]) -> Iterator[Address]:
    """Yield the figures that are named; without names those that lead, and how many runs failed if some did."""
    found = [address for name in names for address in summary.find(name)]
    of_run = {(address.owner, address.entry.path) for address in summary.addresses if not address.phase}
    for address in found or summary.addresses:
        is_of_run = (address.owner, address.entry.path) in of_run
        is_first = not address.phase if is_of_run else FIRST_STEP in (address.phase, address.step)
        is_mixed = address.phase in summary.mixed and isinstance(address.entry.figure, Verdict)
        if found or (is_first and (address.entry.leads or is_mixed)):
            yield address


def name_of(address: Address) -> str:
    """Return a figure's address with the number of its step."""
    return ".".join((address.owner, *filter(None, [address.step or address.phase]), *address.entry.path))
