"""Points under the same replications, and what their runs say: a study file and a sweep are both of this form.

Of figures that have phases, without names to go by, those of the first step are taken, under its number: the load of
the first step may itself be a factor.
"""

import json
import math
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import combinations
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.outcome.declare import Verdict
from vftsim.spec.units import numbers_of
from vftsim.stats import Estimate, StoppingRule
from vftsim.study.designs.axes import knob_of, load_keys, written
from vftsim.study.designs.crossovers import crossovers, needed_to_tell
from vftsim.study.designs.points import MOST_DRAWN, PROTECTION, SCHEDULER, Point, Points
from vftsim.study.designs.study_spec import Grid, StudySpec
from vftsim.study.figures.frames import DataFrame, estimate_columns, factor_columns, frame
from vftsim.study.figures.names import Address, catalogue, check_names
from vftsim.study.figures.summary import Summary
from vftsim.study.figures.validity import is_of_load_outside
from vftsim.study.runs.estimate import Needs
from vftsim.study.runs.model import Model, load_model
from vftsim.study.runs.progress import Progress

FIRST_STEP = "step_1"
Figures = dict[str, float]
"""Of one replication, by name."""


@dataclass(frozen=True)
class PointFigures:
    """Figures of one point."""

    values: dict[int, Figures] = field(default_factory=dict)
    """By replication."""
    estimates: dict[str, tuple[Address, Estimate]] = field(default_factory=dict)
    """Address and estimate of each figure, by its name in the design."""
    marks: dict[int, str] = field(default_factory=dict)
    """By replication: what tells records apart to the last digit."""


@dataclass(frozen=True)
class Reader:
    """Finds the figures of points."""

    names: Sequence[str]
    """Figures that were asked for; none: those that lead."""
    confidence: float
    _same: dict[tuple[Any, ...], tuple[str, Address]] = field(default_factory=dict)

    def read(self, records: Sequence[tuple[int, RunRecord]]) -> PointFigures:
        summary, figures = Summary(records, self.confidence), PointFigures()
        for name_given, address_here in chosen(summary, self.names):
            estimate = summary.estimate(address_here.text)
            if estimate is not None:
                name, address = self._shared(name_given, address_here)
                figures.estimates[name] = address, estimate
                for number, value in summary.values(address_here.text).items():
                    figures.values.setdefault(number, {})[name] = value
        for number, _ in records:
            figures.values.setdefault(number, {})
        return figures

    def _shared(self, name_given: str, address: Address) -> tuple[str, Address]:
        """Return name and address of a figure, one object for all points: thousands of them take most of the memory."""
        entry = address.entry
        key = name_given, address.owner, address.phase, address.step, entry.path, entry.figure, entry.leads
        if key not in self._same:
            self._same[key] = name_of(address, name_given), address
        return self._same[key]


def chosen(summary: Summary, names: Collection[str]) -> Iterator[tuple[str, Address]]:
    """Yield each figure that is named, behind the name; without names those that lead, and failed runs if some did."""
    if names:
        yield from ((name, address) for name in names for address in summary.find(name))
        return
    of_run = {(address.owner, address.entry.path) for address in summary.addresses if not address.phase}
    for address in summary.addresses:
        is_of_run = (address.owner, address.entry.path) in of_run
        is_first = not address.phase if is_of_run else FIRST_STEP in (address.phase, address.step)
        is_mixed = address.phase in summary.mixed and isinstance(address.entry.figure, Verdict)
        if is_first and (address.entry.leads or is_mixed):
            yield "", address


def name_of(address: Address, name_given: str = "") -> str:
    """Return a figure's address: with the number of its step, unless it was asked for by the load of that."""
    phase = address.phase if address.phase in name_given.split(".") else address.step or address.phase
    return ".".join((address.owner, *filter(None, [phase]), *address.entry.path))


_OF_PAIR = ("figure", "before", "after", "axis", "unit", "held")
_OF_PLACE = ("estimate", "low", "high", "n", "interval", "from_point", "to_point")
COLUMNS = (*_OF_PAIR, *_OF_PLACE)
"""``before`` and ``after``: the mechanism that has less on either side; ``held``: the values of the other factors."""

_PROTECTION = ".protection."


@dataclass(frozen=True, slots=True)
class Curves:
    """A figure of two mechanisms over a factor of a grid, in the order of its numbers."""

    figure: str
    kinds: tuple[str, str]
    axis: str
    unit: str
    held: str
    """The values of the other factors."""
    places: Sequence[float]
    values: tuple[Sequence[Sequence[float]], Sequence[Sequence[float]]]
    """Of each mechanism, at each place, what every replication measured; those that a point lacks are left out."""

    def crossings(self, confidence: float) -> Iterator[dict[str, Any]]:
        """Yield a row for every crossover; the columns are :data:`COLUMNS`."""
        for crossover in crossovers(self.places, *self.values, confidence):
            before, after = self.kinds if crossover.first_is_lower_before else self.kinds[::-1]
            at = crossover.at
            where = (at.mean, at.low, at.high, at.n, at.kind, crossover.low, crossover.high)
            row = (self.figure, before, after, self.axis, self.unit, self.held, *where)
            yield dict(zip(COLUMNS, row, strict=True))


def mechanism_curves(points: Sequence[Point], figures: Sequence[Mapping[int, Figures]]) -> Iterator[Curves]:
    """Yield the figures of every two mechanisms over every other factor of a grid that has numbers."""
    for axis in points[0].values:
        for held, by_kind in _groups(points, axis).items() if axis != PROTECTION else ():
            if (numbers := numbers_of([*next(iter(by_kind.values()))])) is None:
                continue
            for kinds in combinations(by_kind, 2):
                lines = [[figures[n] for n in by_kind[kind].values()] for kind in kinds]
                yield from _of_pair((axis, numbers, held), kinds, lines)


def _groups(points: Sequence[Point], axis: str) -> dict[str, dict[str, dict[str, int]]]:
    """Return the number of each point, by what is held fixed, by its mechanism, and by its value of an axis."""
    several = len({point.label for point in points}) > 1
    groups: dict[str, dict[str, dict[str, int]]] = {}
    for point in points:
        fixed = {name: value for name, value in point.values.items() if name not in (axis, PROTECTION)}
        others = [value if name == SCHEDULER else f"{name}={value}" for name, value in fixed.items()]
        held = ", ".join([*([point.label] if several else []), *others])
        by_kind = groups.setdefault(held, {})
        by_kind.setdefault(point.values[PROTECTION], {})[point.values[axis]] = point.number
    return groups


def _of_pair(
    about: tuple[str, tuple[list[float], str], str],
    kinds: tuple[str, str],
    lines: Sequence[Sequence[Mapping[int, Figures]]],
) -> Iterator[Curves]:
    axis, (numbers, unit), held = about
    order = sorted(range(len(numbers)), key=lambda n: numbers[n])
    common = sorted(set.intersection(*(set(of_point) for line in lines for of_point in line)))
    names = dict.fromkeys(name for line in lines for of_point in line for each in of_point.values() for name in each)
    for name in names if common else ():
        otherwise = 0.0 if _PROTECTION in name else math.nan  # without a mechanism those of protection are 0
        first, second = ([[line[n][r].get(name, otherwise) for r in common] for n in order] for line in lines)
        yield Curves(name, kinds, axis, unit, held, [numbers[n] for n in order], (first, second))


@dataclass(frozen=True)
class Experiment:
    """What is asked: points, their replications, and figures."""

    command: str
    points: Points
    question: str
    figures: tuple[str, ...]
    """Names of figures to be told; none: those that lead."""
    option: str
    """Where the user wrote them; messages about them begin so."""
    replications: int
    """Of each point."""
    about: Mapping[str, Any]
    """What the manifest says of it."""
    confidence: float
    is_grid: bool
    """Whether every value of a factor is there with every value of the others."""
    rule: StoppingRule | None = None
    """Says, in place of a number of replications, when a point has enough."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """Why, by kinds of parts that the model could not be written with."""

    @cached_property
    def factors(self) -> dict[str, list[str]]:
        """The values of each factor, in their order."""
        values_of = self.points.rows
        return {name: list(dict.fromkeys(values[name] for values in values_of)) for name in values_of[0]}

    @property
    def has_crossovers(self) -> bool:
        """Whether mechanisms are compared at all values of the other factors."""
        return self.is_grid and len(self.factors.get(PROTECTION, ())) > 1

    @property
    def is_drawn(self) -> bool:
        """Whether charts are among the files: nobody reads charts of more points."""
        return len(self.points) <= MOST_DRAWN

    @property
    def files(self) -> str:
        """What the directory holds in the end."""
        of_mechanisms = "crossovers.csv, " if self.has_crossovers else ""
        charts = "charts.png" if self.is_drawn else "no charts of so many points"
        return f"results.csv, replications.csv, {of_mechanisms}points.json, {charts}, manifest.json, vftsim.sqlite"

    def check(self, progress: Progress) -> None:
        """Refuse points that nothing can run, and figures that no model will have, before the work.

        That takes a ms or two a point, so how many there are is told of a large experiment.
        """
        if not self.is_drawn:
            progress.say_how_far(f"checking {len(self.points):,} points before the first run")
        self.check_figures()

    def check_figures(self) -> None:
        """Refuse figures that no model will have; of a large experiment the first point of each kind of model tells."""
        firsts = dict[tuple[str, str | None], Point]()
        for point in self.points:
            firsts.setdefault((point.label, point.values.get(PROTECTION)), point)
        check_names(self.figures, [point.model.spec for point in firsts.values()], self.option)

    def takes(self) -> Needs:
        """Return what it takes in all; with a rule, the most it may."""
        return self.points.takes(self.replications if self.rule is None else self.rule.budget)


@dataclass(frozen=True)
class ExperimentResult:
    """What the runs of an experiment say."""

    experiment: Experiment
    bases: list[Model]
    """The models without the values of factors."""
    of_points: list[PointFigures]
    """Of each point."""
    refused: dict[int, str]
    """Why points have no runs, by number."""
    unreached: list[int]
    """Points whose figures are not known as well as was asked for."""

    @property
    def points(self) -> Points:
        return self.experiment.points

    @property
    def finished(self) -> int:
        """Replications that are there."""
        return sum(len(of_point.values) for of_point in self.of_points)

    @property
    def refusals(self) -> dict[str, str]:
        """Kinds of parts, and points, that could not run, and why."""
        return refusals(self.experiment, self.refused)

    @cached_property
    def addresses(self) -> dict[str, Address]:
        """The figures that were found, by name."""
        return {name: address for of_point in self.of_points for name, (address, _) in of_point.estimates.items()}

    @cached_property
    def results(self) -> DataFrame:
        """Every figure of every point across replications: one row a figure."""
        # Column by column: a dict a row takes several times the memory of the table.
        columns: dict[str, list[Any]] = {}
        for point, of_point in zip(self.points, self.of_points, strict=True):
            for name, (address, estimate) in of_point.estimates.items():
                about = {**head(point), "figure": name, "unit": address.entry.unit}
                for column, value in {**about, **estimate_columns(estimate)}.items():
                    columns.setdefault(column, []).append(value)
        return frame(columns)

    @cached_property
    def replications(self) -> DataFrame:
        """Every run with its figures: one row a run, numbered as `vftsim replay --run` does."""
        names, count = self.addresses, len(self.points)
        table = [
            {"run": n * count + point.number, **head(point, names), "replication": n, **of_point.values[n]}
            for point, of_point in zip(self.points, self.of_points, strict=True)
            for n in of_point.values
        ]
        return frame(sorted(table, key=lambda row: row["run"]))

    @cached_property
    def crossovers(self) -> DataFrame:
        """Crossovers of mechanisms: one row for each figure, pair of mechanisms and crossing."""
        return frame(self._orders[0], columns=[*COLUMNS])

    @property
    def open_orders(self) -> dict[str, float]:
        """About how many replications would tell where mechanisms cross, by figures of which only the means do."""
        return self._orders[1]

    @cached_property
    def _orders(self) -> tuple[list[dict[str, Any]], dict[str, float]]:
        rows, needed, confidence = list[dict[str, Any]](), dict[str, float](), self.experiment.confidence
        values = [of_point.values for of_point in self.of_points]
        for curves in mechanism_curves(self.points, values) if self.experiment.has_crossovers else ():
            crossings = [*curves.crossings(confidence)]
            rows += crossings
            if not crossings and (runs := needed_to_tell(*curves.values, confidence)):
                needed[curves.figure] = max(runs, needed.get(curves.figure, 0.0))
        return rows, needed

    @cached_property
    def outside(self) -> list[list[Any]] | None:
        """Point and figure where a load is outside of what the model was fitted to; None if none says to what."""
        if all(base.spec.calibrated is None for base in self.bases):
            return None
        return [
            [point.number, name]
            for point, of_point in zip(self.points, self.of_points, strict=True)
            for name, (address, estimate) in of_point.estimates.items()
            if is_of_load_outside(point.model.spec, address, estimate.mean)
        ]

    @property
    def not_covered(self) -> list[str]:
        """Keys that are something else at a point than when the model was fitted; mechanisms, if compared, left out."""
        keys = dict.fromkeys(key for point in self.points for key in point.not_covered)
        compared = ["protection"] if PROTECTION in self.experiment.factors else None
        return [key for key in keys if key.split(".")[2:3] != compared]

    def without_effect(self) -> list[tuple[str, str]]:
        """Return (model and kinds of its parts, factor) where no value of it changed anything, to the last digit."""
        pairs = []
        variants: dict[str, list[Point]] = {}
        for point in self.points if self.experiment.is_grid else ():
            if self.of_points[point.number].marks:
                label = point.label if len(self.bases) > 1 else ""
                variants.setdefault(", ".join(filter(None, [label, _kinds(point)])), []).append(point)
        for variant, points in variants.items():
            for factor in points[0].values:
                if factor in (SCHEDULER, PROTECTION):
                    continue
                groups: dict[str, list[str]] = {}
                for point in points:
                    others = json.dumps({name: value for name, value in point.values.items() if name != factor})
                    marks = json.dumps(self.of_points[point.number].marks, sort_keys=True)
                    groups.setdefault(others, []).append(marks)
                if any(len(g) > 1 for g in groups.values()) and all(len(set(g)) == 1 for g in groups.values()):
                    pairs.append((variant, factor))
        return pairs


def head(point: Point, figures: Collection[str] = ()) -> dict[str, Any]:
    """Return the columns that name a point, in a table that has these figures as columns too."""
    return {"point": point.number, "model": point.label, **factor_columns(point.values, figures)}


def refusals(experiment: Experiment, refused: Mapping[int, str]) -> dict[str, str]:
    """Return why kinds of parts and points cannot run; kinds none of whose points can are named instead of them."""
    kinds_of = [_kinds(point) for point in experiment.points]
    counts, missing = Counter(kinds_of), Counter(kinds_of[number] for number in refused)
    reasons = dict(experiment.refused)
    for number, why in refused.items():
        kinds = kinds_of[number]
        reasons[kinds if kinds and missing[kinds] == counts[kinds] else experiment.points[number].name] = why
    return reasons


def _kinds(point: Point) -> str:
    """Return the kinds of the parts that factors switch, in words."""
    return ", ".join(point.values[name] for name in (SCHEDULER, PROTECTION) if name in point.values)


def experiment_of(spec: StudySpec, points: Points) -> Experiment:
    rule, precision, confidence = None, spec.precision, spec.confidence / 100.0
    if precision is not None:
        most, half_width = precision.most, precision.percent / 100.0
        rule = StoppingRule(precision.of or spec.figures, half_width, confidence=confidence, budget=most)
    return Experiment(
        "study",
        points,
        f"{spec.name}: {' '.join(spec.description.split())}".rstrip(": "),
        spec.figures,
        "figures",
        spec.replications,
        spec.model_dump(mode="json"),
        confidence,
        is_grid=isinstance(spec.design, Grid),
        rule=rule,
    )


_FEW = 3
_TEXT = """\
# yaml-language-server: $schema=study.schema.json
# vftsim study FILE --dry-run lists the runs; vftsim study FILE makes them; the same command goes on.
name: my-study
description: What does {label} do {under}?

models: [{name}]            # files relative to this one, or shipped names; several are compared
# set: ["measure.duration=1 s"]    # holds at every point

factors:                    # what is varied: a list of values, or a range
  {key}: [{values}]
#  some-name: {{key: {key}, low: {low}, high: {high}, scale: log, levels: 5}}
#  scheduler: [credit, credit2]
#  protection: [none, lockstep]

design: {{kind: grid}}        # or paired, list, latin_hypercube and sobol (points: 64; for ranges)

figures:                    # named as for vftsim compare --figure
{figures}

replications: 5             # or instead: precision: {{percent: 5 %, most: 100}}
seed: 1
"""


def template(name: str) -> str:
    """Return a study file for a model, complete and ready to run: over its load, or its processors if it has none."""
    model = load_model(name)
    under, keys = "under more and less load", load_keys(model.spec)
    if not keys:
        under, keys = "on slower and faster processors", [f"hosts.{next(iter(model.spec.hosts))}.cpu_speed"]
    knob = knob_of(model.spec, keys[0])
    values = [str(written(knob.value * share, knob.unit, knob.is_whole)) for share in (0.5, 1.0, 1.5)]
    leading = list(dict.fromkeys(a.text for a in catalogue(model.spec) if a.leads and "*" not in a.text))[:_FEW]
    return _TEXT.format(
        label=model.name,
        under=under,
        name=name,
        key=knob.key,
        values=", ".join(values),
        low=values[0],
        high=values[-1],
        figures="\n".join(f"  - {text}" for text in leading),
    )
