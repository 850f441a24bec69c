"""Points that a study asks for as it goes: run, kept, and found again when the same command goes on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from vftsim.errors import UsageError
from vftsim.study.design.points import StudyPoint
from vftsim.study.design.responses import Responses
from vftsim.study.design.runner import Runner, simulate
from vftsim.study.progress import Progress
from vftsim.study.store import Store


@dataclass
class Evaluator:
    """Runs points and gives their figures.

    Parameters
    ----------
    names : sequence of str
        Whole addresses of figures.

    Attributes
    ----------
    runs : int
        Runs that the points so far rest on.
    """

    names: Sequence[str]
    seed: int
    confidence: float
    store: Store
    jobs: int
    show: Progress
    runs: int = 0

    def __call__(self, points: Sequence[StudyPoint], replications: int) -> Responses:
        """Return the figures of points, which are numbered from 0; :attr:`.Responses.refused` says which cannot be run.

        Raises
        ------
        KeyboardInterrupt
            The user ends it; what has arrived is kept.
        """
        wanted = [replications] * len(points)
        found = Responses(self.names, len(points), self.confidence)
        runner = Runner(points, self.seed, simulate, found.take, self.store)
        runner.load(wanted)
        runner.run(wanted, self.jobs, self.show, lambda number: points[number].name)
        found.refused = runner.refused
        self.runs += sum(map(len, found.done))
        return found

    def single(self, found: Responses, number: int, name: str, point: StudyPoint) -> float:
        """Return a figure of a point.

        Raises
        ------
        UsageError
            It cannot be run, or no replication says anything of it.
        """
        if (why := found.refused.get(number)) is not None:
            raise UsageError(f"{point.name} cannot be run: {why}")
        estimate = found.estimate(number, name)
        if estimate is None:
            raise UsageError(f"'{name}' says nothing at {point.name}; choose a figure, or ranges, where it always does")
        return estimate.mean
