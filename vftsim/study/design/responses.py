"""What the runs of a design say of the figures that were asked for: kept, everything else is left on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.outcome.declare import Verdict
from vftsim.stats import Estimate
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Summary


class Responses:
    """Figures of the points of a design, by replication.

    Parameters
    ----------
    names : sequence of str
        What was asked for, each checked before.
    count : int
        Points.

    Attributes
    ----------
    refused : dict
        Why points cannot be run, by number.
    """

    def __init__(self, names: Sequence[str], count: int, confidence: float) -> None:
        self.names = tuple(dict.fromkeys(names))
        self.points = [Summary("", [], confidence) for _ in range(count)]
        self.done: list[set[int]] = [set() for _ in range(count)]
        self.refused: dict[int, str] = {}
        self._meant: dict[str, dict[str, Address]] = {name: {} for name in self.names}

    def take(self, number: int, replication: int, data: Mapping[str, Any]) -> None:
        """Keep what a run of a point says."""
        one, point = Summary("", [(replication, RunRecord.from_dict(data))]), self.points[number]
        kept = [text for text, row in one.rows.items() if isinstance(row.address.entry.figure, Verdict)]
        for name in self.names:
            for address in one.find(name):
                self._meant[name].setdefault(address.text, address)
                kept.append(address.text)
        for text in dict.fromkeys(kept):
            if text in point.rows:
                point.rows[text].observed.update(one.rows[text].observed)
            else:
                point.rows[text] = one.rows[text]
        point.__dict__.pop("mixed", None)  # what it knows of verdicts is of the runs before
        self.done[number].add(replication)

    @property
    def addresses(self) -> list[Address]:
        """The figures that the names mean in the models run, in their order."""
        found = {text: address for name in self.names for text, address in self._meant[name].items()}
        return list(found.values())

    def of(self, name: str) -> list[Address]:
        """Return the figures that a name means."""
        return list(self._meant[name].values())

    def estimate(self, number: int, address: str) -> Estimate | None:
        """Return a figure of a point."""
        return self.points[number].estimate(address)

    def values(self, number: int, address: str) -> dict[int, float]:
        """Return what each replication of a point says."""
        return self.points[number].values(address)
