"""What the runs of a design say of the figures that were asked for: kept, everything else is left on disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.stats import Estimate
from vftsim.study.design.runner import REFUSED
from vftsim.study.figures.names import Address
from vftsim.study.figures.summary import Summary
from vftsim.study.replicate import Task


def observe(task: Task) -> dict[str, Any]:
    """Run a replication; a model that cannot be run gives its reason."""
    try:
        return run_model(task.spec, task.seed, task.replication).to_dict()
    except UsageError as error:
        return {REFUSED: str(error)}


class Responses:
    """Figures of the points of a design, by replication.

    Parameters
    ----------
    names : sequence of str
        What was asked for, each checked before.
    count : int
        Points.
    confidence : float

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
        for name in self.names:
            for address in one.find(name):
                row = one.rows[address.text]
                self._meant[name].setdefault(address.text, address)
                if address.text in point.rows:
                    point.rows[address.text].observed.update(row.observed)
                else:
                    point.rows[address.text] = row
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
