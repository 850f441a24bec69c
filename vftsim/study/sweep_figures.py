"""What a sweep knows of a point: figures of every replication by name, and their estimates.

Of figures that have phases those of the first step are taken, under its number: the load of the first step may itself
be an axis.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

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


@dataclass(frozen=True)
class Reader:
    """Finds the figures of points.

    Parameters
    ----------
    names : sequence of str
        Figures that were asked for; none: those that lead.
    confidence : float
    """

    names: Sequence[str]
    confidence: float
    _same: dict[tuple[Any, ...], tuple[str, Address]] = field(default_factory=dict)

    def read(self, records: Sequence[tuple[int, RunRecord]]) -> PointFigures:
        """Return the figures of a point."""
        summary, made = Summary("", records, self.confidence), PointFigures()
        for own in chosen(summary, self.names):
            estimate = summary.estimate(own.text)
            if estimate is not None:
                name, address = self._shared(own)
                made.found[name] = address, estimate
                for number, value in summary.values(own.text).items():
                    made.values.setdefault(number, {})[name] = value
        for number, record in records:
            made.values.setdefault(number, {})
            made.marks[number] = sha256_of(record.to_dict())
        return made

    def _shared(self, address: Address) -> tuple[str, Address]:
        """Return name and address of a figure, one object for all points: thousands of them take most of the memory."""
        entry = address.entry
        said = address.owner, address.phase, address.step, entry.path, entry.figure, entry.leads
        if said not in self._same:
            self._same[said] = name_of(address), address
        return self._same[said]


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
