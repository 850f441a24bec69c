"""The runs of a design: every point a model, every point under the same replications, each run kept when it arrives.

Sweeps, study files, sensitivity and optimization differ in how their points come about and in what they make of the
figures; what is missing is computed here.  Points that are the same model share their runs.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.errors import UsageError
from vftsim.files import to_json
from vftsim.spec.suggest import counted
from vftsim.stats import Estimate
from vftsim.study.designs.points import Point
from vftsim.study.execution import Execution, OnTime, Task, simulated
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.workers import Interrupted, deferred_interrupts
from vftsim.study.store.opened import identity_of
from vftsim.study.store.store import Store

REFUSED = "refused"
"""Key of the reason why a point cannot be run, instead of what a run gives."""

Take = Callable[[int, int, dict[str, Any]], None]
"""Called with (number of the point, replication, what the run gave)."""


def simulate(task: Task, on_time: OnTime | None = None) -> dict[str, Any]:
    """Run a replication and return its record; a model that cannot be run gives its reason."""
    try:
        return run_model(task.spec, task.seed, task.replication, on_time=on_time).to_dict()
    except UsageError as error:
        return {REFUSED: str(error)}


@dataclass
class Runner:
    """The runs of points."""

    points: Sequence[Point]
    take: Take
    """Told of each run, whether it was in the store or has just arrived."""
    execution: Execution
    """With a store; its shard is a share of the runs of all points."""
    by_points: bool = False
    """Whether a share is of points, not of runs: where how many a point needs follows from those before."""
    refused: dict[int, str] = field(default_factory=dict)
    """Why points cannot be run, by number."""
    identities: list[dict[str, Any]] = field(default_factory=list)
    _alike: dict[str, list[int]] = field(default_factory=dict)
    taken: list[set[int]] = field(default_factory=list)
    """Of each point, the replications that were told of."""

    def __post_init__(self) -> None:
        for point in self.points:
            self.identities.append(identity_of(point.digest, self.execution.seed))
            self._alike.setdefault(self.identities[-1]["model"], []).append(point.number)
            self.taken.append(set())

    @property
    def store(self) -> Store:
        """Where the runs are."""
        assert self.execution.store is not None
        return self.execution.store

    def data(self, number: int) -> dict[int, Any]:
        """Return the runs of a point by replication, read back: those of many points are large."""
        numbers = self.taken[number]
        stored = self.store.known(self.identities[number]) if numbers else {}
        return {n: stored[n] for n in sorted(numbers)}

    def records(self, number: int) -> list[tuple[int, RunRecord]]:
        return [(n, RunRecord.from_dict(data)) for n, data in self.data(number).items()]

    def load(self, counts: Sequence[int]) -> int:
        """Take the runs that are in the store, of those wanted of each point; say and return how many it had before.

        The answer does not hold it: a study that went on ends with the files of one that nobody interrupted.
        """
        loaded = 0
        for number, identity in enumerate(self.identities):
            missing = set(range(counts[number])) - self.taken[number]
            for n, data in self.store.known(identity).items() if missing else ():
                if n in missing:
                    self._take(number, n, data)
                    loaded += self.store.is_from_before(identity, n)
        if loaded:
            all_wanted, verb = counted(sum(counts), "replication"), "is" if sum(counts) == 1 else "are"
            self.execution.progress.say_how_far(f"{loaded} of {all_wanted} {verb} on disk already")
        return loaded

    def run(self, counts: Sequence[int], name: Callable[[int], str]) -> None:
        """Compute what is missing of the runs wanted of each point; what has arrived before an interruption is kept."""
        tasks = _Tasks(self, self._missing(counts))
        for index, data in simulated(simulate, tasks, self.execution):
            number, n = tasks.places[index]
            with deferred_interrupts():
                self._arrived(number, n, data)
            self.execution.progress.advance(name(number))

    def check_any(self, refusals: Sequence[str], *, interrupted: bool) -> None:
        """Refuse to make a result of no runs.

        Ctrl-C came before anything was done, no point can be run, or none is of this share.
        """
        if any(self.taken):
            return
        if interrupted:
            raise Interrupted("nothing had finished")
        if not self.refused:
            self.execution.shard.refuse_idle(interrupted)
        raise UsageError(f"no point could be run: {'; '.join(refusals)}")

    def _missing(self, counts: Sequence[int]) -> list[tuple[int, int]]:
        missing = []
        for n in range(max(counts, default=0)):
            planned: set[str] = set()
            for number, identity in enumerate(self.identities):
                if n >= counts[number] or n in self.taken[number] or number in self.refused:
                    continue
                of_shards = number if self.by_points else n * len(self.points) + number
                if identity["model"] not in planned and self.execution.shard.has(of_shards):
                    missing.append((number, n))
                planned.add(identity["model"])
        return missing

    def _arrived(self, number: int, n: int, data: dict[str, Any]) -> None:
        identity = self.identities[number]
        if REFUSED not in data:
            self.store.keep(identity, n, data)
            data = json.loads(to_json(data, indent=None))
        for other in self._alike[identity["model"]]:
            if REFUSED in data:
                self.refused[other] = data[REFUSED]
            else:
                self._take(other, n, data)

    def _take(self, number: int, n: int, data: dict[str, Any]) -> None:
        self.taken[number].add(n)
        self.take(number, n, data)


class _Tasks(Sequence[Task]):
    """The tasks of a design, each made when its turn comes."""

    def __init__(self, runner: Runner, places: list[tuple[int, int]]) -> None:
        self._runner, self.places = runner, places

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, index: Any) -> Any:
        number, n = self.places[index]
        return Task(self._runner.points[number].model.spec, self._runner.execution.seed, n)


@dataclass
class Evaluator:
    """Runs points whose figures decide which are run next."""

    confidence: float
    execution: Execution
    runs: int = 0
    """Runs that the points so far rest on."""

    def __call__(self, points: Sequence[Point], replications: int) -> Runner:
        """Return the runs of points, which are numbered from 0; KeyboardInterrupt keeps what has arrived."""
        counts = [replications] * len(points)
        runner = Runner(points, lambda *_: None, self.execution)
        runner.load(counts)
        runner.run(counts, lambda number: points[number].name)
        self.runs += sum(map(len, runner.taken))
        return runner

    def summary(self, runner: Runner, number: int) -> Summary:
        """Return every figure of a point; refuse one that cannot be run."""
        if (why := runner.refused.get(number)) is not None:
            raise UsageError(f"{runner.points[number].name} cannot be run: {why}")
        return Summary(runner.records(number), self.confidence)


def found_of(summary: Summary, name: str) -> tuple[str, Estimate | None]:
    """Return address and estimate of the one figure that a name means at a point: that of step 2 is by the load there.

    There is no estimate where no replication says anything.
    """
    addresses = summary.find(name)
    address = addresses[0].text if len(addresses) == 1 else name
    return address, summary.estimate(address)


def found_at(point: Point, summary: Summary, name: str) -> tuple[str, Estimate]:
    """Return address and estimate of the one figure that a name means; refuse a point that says nothing of it."""
    address, estimate = found_of(summary, name)
    if estimate is None:
        raise UsageError(f"'{name}' says nothing at {point.name}; choose a figure, or ranges, where it always does")
    return address, estimate
