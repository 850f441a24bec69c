"""``vftsim study``: a study file run, every finished run kept; killed or interrupted, the same command goes on."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from vftsim.errors import UsageError
from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, with_unit
from vftsim.spec.suggest import counted
from vftsim.stats import StoppingRule
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.stats.replications import replicate as rounds_of
from vftsim.study.blocks.head import not_fitted_notes
from vftsim.study.blocks.printed import Printed
from vftsim.study.blocks.run_charts import scale_of
from vftsim.study.designs.crossovers import numbers_of
from vftsim.study.designs.knob import knob_of, load_keys, written
from vftsim.study.designs.past import write_points
from vftsim.study.designs.points import PROTECTION, StudyPoint
from vftsim.study.designs.runner import Responses, Runner
from vftsim.study.designs.study_spec import StudySpec
from vftsim.study.designs.sweep_grid import MOST_DRAWN
from vftsim.study.figures.catalogue import catalogue, check_names
from vftsim.study.figures.frames import DataFrame, estimate_columns, factor_columns, frame
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.summary import of_no_run, resting_on_some, without_value
from vftsim.study.figures.validity import not_covered, not_covered_line
from vftsim.study.runs.estimate import Needs, total
from vftsim.study.runs.execution import Execution
from vftsim.study.runs.model import Model, load_model
from vftsim.study.runs.results import rows
from vftsim.study.store.resumable import resumable_store, write_result

COMMAND = "study"
_MOST_LOOKED_AT = 200


@dataclass(frozen=True)
class StudyResult(Printed):
    """The result of a study file."""

    spec: StudySpec
    points: list[StudyPoint]
    responses: Responses
    refused: dict[int, str]
    """Why points have no runs, by number."""
    manifest: dict[str, Any]
    wanted: list[int]
    """Replications asked for, of each point."""
    already: int
    """Runs that were on disk at the start."""
    unreached: list[int]
    """Points whose figures are not known as well as was asked for."""
    remarks: list[str] = field(default_factory=list)

    @property
    def finished(self) -> int:
        """Runs that are there."""
        return sum(map(len, self.responses.done))

    @cached_property
    def results(self) -> DataFrame:
        """Every response of every point: one row a figure."""
        table = []
        for point in self.points:
            for address in self.responses.addresses:
                if (estimate := self.responses.estimate(point.number, address.text)) is not None:
                    unit = address.entry.unit
                    table.append({**head(point), "figure": address.text, "unit": unit, **estimate_columns(estimate)})
        return frame(table)

    @cached_property
    def replications(self) -> DataFrame:
        """Every run with its responses: one row a run, numbered as `vftsim replay --run` does."""
        texts, table = {address.text for address in self.responses.addresses}, []
        for point in self.points:
            values = {a.text: self.responses.values(point.number, a.text) for a in self.responses.addresses}
            for n in sorted(self.responses.done[point.number]):
                figures = {text: each[n] for text, each in values.items() if n in each}
                number = n * len(self.points) + point.number
                table.append({"run": number, **head(point, texts), "replication": n, **figures})
        return frame(sorted(table, key=lambda row: row["run"]))

    def to_pandas(self) -> DataFrame:
        return self.results

    def blocks(self) -> list[Block]:
        """Return the question, a table with a row for each point, and notes."""
        spec, addresses = self.spec, self.responses.addresses
        several = len({point.label for point in self.points}) > 1
        table: list[list[Cell]] = []
        for point in self.points[:_MOST_ROWS]:
            if not self.responses.done[point.number]:
                continue
            words = [*([point.label] if several else []), *(f"{name}={value}" for name, value in point.values.items())]
            figures: list[Cell] = [self.responses.estimate(point.number, address.text) for address in addresses]
            table.append([f"{point.number}: {', '.join(words) or point.label}", *figures])
        heads = ["point", *(with_unit(address.text, address.entry.unit) for address in addresses)]
        description = "".join(f"{word} " for word in spec.description.split())
        points = counted(len(self.points), "point")
        keys = dict.fromkeys(key for point in self.points for key in not_covered(point.model.spec))
        return [
            *([Note(line, warns=True)] if (line := not_covered_line([*keys])) else []),
            *not_fitted_notes(self.manifest["models"]),
            Answer(f"{spec.name}: {description}{points}, {counted(self.finished, 'run')}."),
            *_charts(self),
            Table(heads, table),
            *(Note(text) for text in _notes(self)),
        ]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "confidence": self.spec.confidence / 100.0,
            "results": rows(self.results),
            "refused": {self.points[number].name: why for number, why in self.refused.items()},
            "unreached": self.unreached,
        }

    def write_files(self, folder: Path) -> None:
        """Write results, runs, points, the study as it was asked for, charts and manifest."""
        tables = {"results.csv": self.results, "replications.csv": self.replications}
        write_points(folder, self.points)
        write_result(folder, self, tables, has_answer=False)


def head(point: StudyPoint, figures: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns that name a point, in a table that has these figures as columns too."""
    return {"point": point.number, "model": point.label, **factor_columns(point.values, figures)}


def check_responses(spec: StudySpec, points: Sequence[StudyPoint]) -> None:
    """Refuse figures that no model of the study will have; of a large study the first point of each model tells."""
    check_names(spec.responses, [model.spec for model in _first_models(points)], "responses")


def some_models(points: Sequence[StudyPoint]) -> list[Model]:
    """Return the models of all points; of a large design, of points spread over it."""
    return [point.model for point in points[:: max(1, len(points) // _MOST_LOOKED_AT)]]


def takes(spec: StudySpec, points: Sequence[StudyPoint]) -> Needs:
    """Return what a study takes in all; with a precision, the most it may."""
    some = some_models(points)
    replications = spec.replications if spec.precision is None else spec.precision.most
    return total([model.spec for model in some], replications).times(len(points) / len(some))


def run_study_file(
    spec: StudySpec, points: list[StudyPoint], folder: Path, execution: Execution, *, force: bool = False
) -> StudyResult:
    """Run what is missing of a study; an interrupted one returns what is done.

    The folder has finished runs and results; ``force`` forgets what it holds, once the new result stands.  The
    execution has the study's seed; its shard is a share of runs, with a precision of points.  Refuses responses that no
    model has, and points none of which can be run.
    """
    execution.check(spec.replications)
    check_responses(spec, points)
    responses, interrupted, unreached = Responses(spec.responses, len(points), spec.confidence / 100.0), False, []
    rule = _rule(spec)
    wanted = [spec.replications if rule is None else rule.initial + rule.look_ahead] * len(points)
    with resumable_store(folder, COMMAND, force) as store:
        runner = Runner(points, responses.take, replace(execution, store=store), rule is not None)
        already = runner.load(wanted)
        try:
            if rule is None:
                runner.run(wanted, lambda number: points[number].name)
            else:
                unreached = _until_known(rule, runner, responses, wanted)
        except KeyboardInterrupt:
            interrupted = True
        runner.check_any(list(dict.fromkeys(runner.refused.values())), interrupted=interrupted)
        manifest = execution.manifest(_first_models(points), COMMAND, max(wanted), interrupted=interrupted)
        manifest["study"] = {**spec.model_dump(mode="json"), "points": len(points)}
        result = StudyResult(spec, points, responses, runner.refused, manifest, wanted, already, unreached)
        store.finish(result.write_files)
        result.remarks.extend(store.remarks)
    return result


def _rule(spec: StudySpec) -> StoppingRule | None:
    if spec.precision is None:
        return None
    return StoppingRule(
        spec.precision.of or spec.responses,
        relative_half_width=spec.precision.percent / 100.0,
        confidence=spec.confidence / 100.0,
        budget=spec.precision.most,
    )


def _until_known(rule: StoppingRule, runner: Runner, responses: Responses, wanted: list[int]) -> list[int]:
    """Run replications of each point until the rule holds there; return the points where it does not.

    What a point needs follows from its own replications, so shares of points are those of the whole.
    """
    asking = {point.number: rounds_of(rule) for point in runner.points}
    numbers = {number: next(procedure) for number, procedure in asking.items()}
    unreached = []
    while numbers:
        for number, batch in numbers.items():
            wanted[number] = batch.stop
        runner.load(wanted)
        runner.run(wanted, lambda number: f"point {number}")
        for number, batch in list(numbers.items()):
            del numbers[number]
            if not set(batch) <= responses.done[number]:
                continue  # refused, or of another share
            try:
                numbers[number] = asking[number].send([_outcome(rule, responses, number, n) for n in batch])
            except StopIteration as stop:
                if not stop.value.reached:
                    unreached.append(number)
    return unreached


def _outcome(rule: StoppingRule, responses: Responses, number: int, replication: int) -> dict[str, float]:
    figures = {}
    for name in rule.metrics:
        meant = responses.of(name)
        if len(meant) != 1:
            texts = ", ".join(address.text for address in meant[:4])
            raise UsageError(
                f"precision: '{name}' is no one figure{f', but {texts}' if texts else ''}; name one with `of`"
            )
        value = responses.values(number, meant[0].text).get(replication)
        if value is None:
            raise UsageError(
                f"precision: nothing to measure of '{name}' in replication {replication} of point {number}"
            )
        figures[name] = value
    return figures


def _first_models(points: Sequence[StudyPoint]) -> list[Model]:
    """Return the model of the first point of each model of the study."""
    firsts = dict[str, StudyPoint]()
    for point in points:
        firsts.setdefault(point.label, point)
    return [point.model for point in firsts.values()]


_MOST_ROWS = 100
_MOST_LISTED = 10
_MOST_CHARTS = 4
"""Of figures, and of factors."""


def _charts(study: StudyResult) -> list[Chart]:
    """Return every figure over every factor that is a number: a dot a point, the other factors anywhere in theirs."""
    if len(study.points) > MOST_DRAWN:
        return []
    axes = {name: numbers_of([point.values[name] for point in study.points]) for name in study.points[0].values}
    varied = [(name, axis) for name, axis in axes.items() if axis is not None and len(set(axis[0])) > 1]
    charts = []
    for address in study.responses.addresses[:_MOST_CHARTS]:
        for name, (positions, unit) in varied[:_MOST_CHARTS]:
            dots: dict[str, list[Point]] = {}
            for point in study.points:
                if (estimate := study.responses.estimate(point.number, address.text)) is not None:
                    dots.setdefault(point.label, []).append(Point.of(positions[point.number], estimate))
            series = [Series(label, dots_of_model, "dots") for label, dots_of_model in dots.items()]
            title, y = f"{address.text} over {name}", with_unit(address.text, address.entry.unit)
            charts.append(Chart(title, with_unit(name, unit), y, series, scale=scale_of(series)))
    return charts


def _costs(study: StudyResult) -> list[str]:
    """Return what the costs of mechanisms rest on that are a factor, but for those of which the head tells."""
    firsts = {(point.label, point.values.get(PROTECTION)): point for point in reversed(study.points)}
    in_head = {text for model in study.manifest["models"] for text in model["costs"]}
    texts = dict.fromkeys(text for point in reversed(firsts.values()) for text in cost_notes(point.model.spec))
    return [f"Costs of {text}" for text in texts if text not in in_head]


def _notes(study: StudyResult) -> list[str]:
    notes = _costs(study)
    if len(study.points) > _MOST_ROWS:
        notes.append(f"The first {_MOST_ROWS} points; results.csv has all.")
    for number, why in list(study.refused.items())[:_MOST_LISTED]:
        notes.append(f"Refused: point {number} ({study.points[number].name}): {why}")
    if study.unreached:
        listed = ", ".join(map(str, study.unreached[:_MOST_LISTED]))
        notes.append(f"Precision not reached within the most replications: points {listed}.")
    notes += of_no_run(without_value(study.spec.responses, study.responses.addresses))
    notes += resting_on_some(
        (f"point {number}: {address.text}", estimate.n, len(done))
        for number, done in enumerate(study.responses.done)
        for address in study.responses.addresses
        if (estimate := study.responses.estimate(number, address.text)) is not None
    )
    fewest = min((len(done) for done in study.responses.done if done), default=0)
    rests = "(x to y): lowest and highest replication, no interval" if fewest < FEWEST_RUNS else "± and [ ]: intervals"
    return [*notes, f"{counted(fewest, 'replication')} or more of each point, the same random numbers at all. {rests}."]


_FEW = 3
_TEXT = """\
# yaml-language-server: $schema=study.schema.json
# vftsim study FILE --dry-run lists the runs; vftsim study FILE makes them; the same command goes on.
name: my-study
description: What does {label} do under more and less load?

models: [{name}]            # files relative to this one, or shipped names; several are compared
# set: ["measure.duration=1 s"]    # holds at every point

factors:                    # what is varied: a list of values, or a range
  {key}: [{values}]
#  some-name: {{key: {key}, low: {low}, high: {high}, scale: log, levels: 5}}
#  scheduler: [credit, credit2]
#  protection: [none, lockstep]

design: {{kind: grid}}        # or paired, list, latin_hypercube and sobol (points: 64; for ranges)

responses:                  # figures, named as for vftsim compare --figure
{responses}

replications: 5             # or instead: precision: {{percent: 5 %, most: 100}}
seed: 1
"""


def template(name: str) -> str:
    """Return a study file for a model, complete and ready to run; refuse a model that declares no load."""
    model = load_model(name)
    keys = load_keys(model.spec)
    if not keys:
        raise UsageError("--gen-config: no workload of this model declares its load; write the factors yourself")
    knob = knob_of(model.spec, keys[0])
    values = [str(written(knob.value * share, knob.unit, knob.is_whole)) for share in (0.5, 1.0, 1.5)]
    leading = list(dict.fromkeys(a.text for a in catalogue(model.spec) if a.leads and "*" not in a.text))[:_FEW]
    return _TEXT.format(
        label=model.name,
        name=name,
        key=knob.key,
        values=", ".join(values),
        low=values[0],
        high=values[-1],
        responses="\n".join(f"  - {text}" for text in leading),
    )
