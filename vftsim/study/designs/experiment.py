"""Points under the same replications, and what their runs say: a study file and a sweep are both of this form."""

import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from vftsim.stats import StoppingRule
from vftsim.study.designs.crossovers import needed_to_tell
from vftsim.study.designs.point_figures import COLUMNS, PointFigures, mechanism_curves
from vftsim.study.designs.points import MOST_DRAWN, PROTECTION, SCHEDULER, Point, Points
from vftsim.study.figures.catalogue import check_names
from vftsim.study.figures.frames import DataFrame, estimate_columns, factor_columns, frame
from vftsim.study.figures.names import Address
from vftsim.study.figures.validity import is_of_load_outside
from vftsim.study.runs.estimate import Needs
from vftsim.study.runs.model import Model


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
class Found:
    """What the runs of an experiment say."""

    experiment: Experiment
    bases: list[Model]
    """The models without the values of factors."""
    found: list[PointFigures]
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
        return sum(len(of_point.values) for of_point in self.found)

    @property
    def refusals(self) -> dict[str, str]:
        """Kinds of parts, and points, that could not run, and why."""
        return refusals(self.experiment, self.refused)

    @cached_property
    def addresses(self) -> dict[str, Address]:
        """The figures that were found, by name."""
        return {name: address for of_point in self.found for name, (address, _) in of_point.found.items()}

    @cached_property
    def results(self) -> DataFrame:
        """Every figure of every point across replications: one row a figure."""
        # Column by column: a dict a row takes several times the memory of the table.
        columns: dict[str, list[Any]] = {}
        for point, of_point in zip(self.points, self.found, strict=True):
            for name, (address, estimate) in of_point.found.items():
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
            for point, of_point in zip(self.points, self.found, strict=True)
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
        values = [of_point.values for of_point in self.found]
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
            for point, of_point in zip(self.points, self.found, strict=True)
            for name, (address, estimate) in of_point.found.items()
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
            if self.found[point.number].marks:
                variants.setdefault(self._variant(point), []).append(point)
        for variant, points in variants.items():
            for factor in points[0].values:
                if factor in (SCHEDULER, PROTECTION):
                    continue
                groups: dict[str, list[str]] = {}
                for point in points:
                    others = json.dumps({name: value for name, value in point.values.items() if name != factor})
                    marks = json.dumps(self.found[point.number].marks, sort_keys=True)
                    groups.setdefault(others, []).append(marks)
                if any(len(g) > 1 for g in groups.values()) and all(len(set(g)) == 1 for g in groups.values()):
                    pairs.append((variant, factor))
        return pairs

    def _variant(self, point: Point) -> str:
        return ", ".join(filter(None, [point.label if len(self.bases) > 1 else "", _kinds(point)]))


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
