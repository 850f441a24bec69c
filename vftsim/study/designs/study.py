"""An experiment run: every finished run is kept, and what was killed or interrupted goes on with the same command.

Every point gets the same replications: the same traffic meets every setting, so differences between points are those of
the settings.  A finished replication is on disk before it is counted; the files in the end are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.files import sha256_of
from vftsim.report.blocks import Block
from vftsim.stats import StoppingRule
from vftsim.stats.replications import replicate as rounds_of
from vftsim.study.blocks.kept import write_result
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.experiment import Experiment, Found, PointFigures, Reader, refusals
from vftsim.study.designs.past import write_points
from vftsim.study.designs.runner import Runner
from vftsim.study.designs.study_blocks import study_blocks
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import DataFrame, rows, with_numbers
from vftsim.study.figures.names import only
from vftsim.study.figures.summary import Summary


@dataclass(frozen=True)
class StudyResult(Found, Printed):
    """The result of a study file or a sweep."""

    manifest: dict[str, Any] = field(kw_only=True)
    already: int = field(kw_only=True)
    """Replications that were on disk at the start."""
    remarks: list[str] = field(default_factory=list)
    """Remarks on the directory for the user."""

    def to_pandas(self) -> DataFrame:
        return with_numbers(self.results)

    def blocks(self) -> list[Block]:
        return study_blocks(self, self.manifest)

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "confidence": self.experiment.confidence,
            "results": rows(self.results),
            "outside_calibration": self.outside,
            "refused": self.refusals,
            "unreached": self.unreached,
            "without_effect": [list(pair) for pair in self.without_effect()],
            **({"crossovers": rows(self.crossovers)} if self.experiment.has_crossovers else {}),
        }

    def write_files(self, folder: Path) -> None:
        tables = {"results.csv": self.results, "replications.csv": self.replications}
        of_mechanisms = {"crossovers.csv": self.crossovers} if self.experiment.has_crossovers else {}
        write_points(folder, self.points)
        write_result(folder, self, tables | of_mechanisms, has_answer=False)


def run_experiment(experiment: Experiment, execution: Execution) -> StudyResult:
    """Run what the execution's store lacks of an experiment; an interrupted one returns what is done.

    The figures are told from whichever replications are there.  The execution's shard is a share of runs, with a rule
    of points.  Refuses figures that no model has, and points none of which can be run.
    """
    points, rule = experiment.points, experiment.rule
    execution.check(experiment.replications)
    experiment.check(execution.progress)
    interrupted, unreached = False, list[int]()
    wanted = [experiment.replications if rule is None else rule.initial + rule.look_ahead] * len(points)
    precise = Precise(rule, [{} for _ in points]) if rule else None
    runner = Runner(points, precise.take if precise else lambda *_: None, execution, precise is not None)
    already = runner.load(wanted)
    try:
        if precise is None:
            runner.run(wanted, lambda number: points[number].name)
        else:
            unreached = precise.until_known(runner, wanted)
    except KeyboardInterrupt:
        interrupted = True
    reasons = refusals(experiment, runner.refused)
    runner.check_any([f"{name}: {why}" for name, why in reasons.items()], interrupted=interrupted)
    bases = points.bases
    manifest = execution.manifest(bases, experiment.command, max(wanted), interrupted=interrupted)
    manifest[experiment.command] = {**experiment.about, "points": len(points)}
    of_points = _figures_of(runner, experiment)
    return StudyResult(experiment, bases, of_points, runner.refused, unreached, manifest=manifest, already=already)


def _figures_of(runner: Runner, experiment: Experiment) -> list[PointFigures]:
    """Return the figures of every point, read back one after the other: records of many points are large."""
    figures: list[PointFigures] = []
    first: dict[str, int] = {}
    reader = Reader(experiment.figures, experiment.confidence)
    for number, identity in enumerate(runner.identities):
        twin = first.setdefault(identity["model"], number)
        if twin < number:
            figures.append(figures[twin])
            continue
        data = runner.data(number)
        of_point = reader.read([(n, RunRecord.from_dict(each)) for n, each in data.items()]) if data else PointFigures()
        of_point.marks.update({n: sha256_of(each) for n, each in data.items()})
        figures.append(of_point)
    return figures


@dataclass(frozen=True)
class Precise:
    """A rule that says when a point has enough replications, and the figures that it goes by, of each point's runs."""

    rule: StoppingRule
    figures: list[dict[int, dict[str, float]]]

    def take(self, number: int, replication: int, data: Mapping[str, Any]) -> None:
        """Keep what a run of a point says."""
        summary, figures = Summary([(0, RunRecord.from_dict(data))]), {}
        for name in self.rule.metrics:
            found = summary.find(name)
            value = summary.values(only(name, found, found, "precision").text).get(0) if found else None
            if value is None:
                raise UsageError(
                    f"precision: nothing to measure of '{name}' in replication {replication} of point {number}"
                )
            figures[name] = value
        self.figures[number][replication] = figures

    def until_known(self, runner: Runner, wanted: list[int]) -> list[int]:
        """Run replications of each point until the rule holds there; return the points where it does not.

        What a point needs follows from its replications, so shares of points are those of the whole.
        """
        asking = {point.number: rounds_of(self.rule) for point in runner.points}
        numbers = {number: next(procedure) for number, procedure in asking.items()}
        unreached = []
        while numbers:
            for number, batch in numbers.items():
                wanted[number] = batch.stop
            runner.load(wanted)
            runner.run(wanted, lambda number: f"point {number}")
            for number, batch in list(numbers.items()):
                del numbers[number]
                known = self.figures[number]
                if not set(batch) <= known.keys():
                    continue  # refused, or of another share
                try:
                    numbers[number] = asking[number].send([known[n] for n in batch])
                except StopIteration as stop:
                    if not stop.value.reached:
                        unreached.append(number)
        return unreached
