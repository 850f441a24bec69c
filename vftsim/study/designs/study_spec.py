"""The fields of a study file: models, factors, the design of points, figures, replications, seed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Discriminator, Field, Tag, ValidationError, model_validator

from vftsim.errors import UsageError
from vftsim.spec import Items, Percent, Room, Spec, json_schema, load, shipped_dir
from vftsim.spec.shipped import file_or_shipped
from vftsim.spec.suggest import did_you_mean, listing
from vftsim.spec.units import numbers_of
from vftsim.study.figures.frames import OF_ESTIMATES

ROOM: Room = "experiments"
FOLDER = "studies"
Number = int | float | str
Name = Annotated[str, Field(min_length=1, max_length=200)]
COLUMNS = ("run", "point", "model", "replication", "figure", "unit", *OF_ESTIMATES)
"""Columns that the tables of every study have; no factor is called so."""


class ModelEntry(Spec):
    """A model of the study, with settings of its own."""

    model: str = Field(min_length=1, description="A model file relative to this file, or a shipped name.")
    label: str = Field("", max_length=100, description="What it is called in results; its name if empty.")
    set: Items[str] = Field((), description="Settings as with --set.")


class Factor(Spec):
    """A factor: values, or a range from which the design takes points."""

    key: str = Field("", description="Key of the model; the factor's name if empty.")
    keys: Items[str] = Field((), description="Instead of one: several keys that get the same value.")
    values: Items[Any] = Field((), description="Values, written as in a model file.")
    low: Number | None = Field(
        None, description="Instead of values, a range: its lower end, written as in a model file."
    )
    high: Number | None = Field(None, description="Upper end of the range.")
    scale: Literal["linear", "log"] = Field("linear", description="How points are spread over the range.")
    levels: int | None = Field(None, ge=2, le=1000, description="In a grid: evenly spread values of the range.")

    @model_validator(mode="after")
    def _of_one_form(self) -> Factor:
        is_range = self.low is not None or self.high is not None
        if is_range and (self.low is None or self.high is None):
            raise ValueError("a range needs both low and high")
        if is_range and self.values:
            raise ValueError("has either values or a range (low, high)")
        if self.key and self.keys:
            raise ValueError("has either key or keys")
        return self

    @property
    def is_range(self) -> bool:
        return self.low is not None


Varied = Annotated[
    Annotated[Items[Any], Tag("values")] | Annotated[Factor, Tag("factor")],
    Discriminator(lambda value: "values" if isinstance(value, list | tuple) else "factor"),
]


class Grid(Spec):
    """Every value of each factor with every value of the others."""

    kind: Literal["grid"] = "grid"


class Paired(Spec):
    """The first values of all factors together, the second values, and so on."""

    kind: Literal["paired"] = "paired"


class Listed(Spec):
    """Points one by one."""

    kind: Literal["list"] = "list"
    points: Annotated[Items[dict[Name, Any]], Field(min_length=1)] = Field(description="Each: factor and value.")


class LatinHypercube(Spec):
    """Points of ranges such that each of so many slices of each range has one; with every value of other factors."""

    kind: Literal["latin_hypercube"] = "latin_hypercube"
    points: int = Field(ge=1, le=100_000, description="How many. More of them are other points.")


class Sobol(Spec):
    """A scrambled Sobol sequence over ranges; with every value of other factors."""

    kind: Literal["sobol"] = "sobol"
    points: int = Field(ge=1, le=100_000, description="How many; best a power of 2. More of them go on from the first.")


Design = Annotated[Grid | Paired | Listed | LatinHypercube | Sobol, Field(discriminator="kind")]


class Precision(Spec):
    """As many replications of each point as its figures need."""

    percent: Percent = Field(gt=0, lt=100, description="Half width of the interval in percent of the figure.")
    of: Items[str] = Field((), description="Figures that must reach it; all if empty.")
    most: int = Field(200, ge=15, le=100_000, description="Most replications of a point.")


class StudySpec(Spec):
    """A study: models at points, each under the same replications."""

    name: str = Field(
        pattern=r"^[A-Za-z0-9][A-Za-z0-9_\-]*$",
        max_length=100,
        description="Name of the study and its directory: letters a to z, digits, - and _.",
    )
    description: str = Field("", max_length=4000, description="What it asks.")
    models: Annotated[Items[str | ModelEntry], Field(min_length=1)] = Field(
        description="Model files relative to this file, or shipped names; every point is made of each."
    )
    set: Items[str] = Field((), description="Settings of all models, as with --set.")
    factors: dict[Name, Varied] = Field(
        default_factory=dict,
        description="What is varied, as a list of values or as a range. A name is a key of the model, a short name of "
        "sweeps (weight, streams, checkpoint_interval, ...), `scheduler`, `protection`, or any name with `key`.",
    )
    design: Design = Field(default_factory=Grid, description="How points are made of the factors.")
    figures: Items[str] = Field(
        (), description="Figures, by the names of `vftsim compare --figure`; those that lead if none."
    )
    replications: int = Field(10, ge=1, le=100_000, description="Of each point.")
    precision: Precision | None = Field(None, description="Instead: until the figures are known this well.")
    seed: int = Field(1, ge=0, description="Root seed of traffic, and of points that are drawn.")
    confidence: Percent = Field(95.0, gt=50, lt=100, description="Of the intervals.")

    @property
    def entries(self) -> tuple[ModelEntry, ...]:
        return tuple(each if isinstance(each, ModelEntry) else ModelEntry(model=each) for each in self.models)

    @property
    def factor_of(self) -> dict[str, Factor]:
        """The factors, lists of values as factors too."""
        return {k: each if isinstance(each, Factor) else Factor(values=each) for k, each in self.factors.items()}

    @model_validator(mode="after")
    def _of_fitting_factors(self) -> StudySpec:
        for name, factor in self.factor_of.items():
            if (wrong := _incompatibility(self.design, name, factor)) is not None:
                raise ValueError(f"factor '{name}' {wrong}")
        if isinstance(self.design, Listed):
            for point in self.design.points:
                if further := [name for name in point if name not in self.factors]:
                    raise ValueError(
                        f"a point has '{further[0]}', which is no factor; {_instead(further[0], self.factors)}"
                    )
                if missing := [name for name in self.factors if name not in point]:
                    raise ValueError(f"a point lacks the factor '{missing[0]}'; every point says all of them")
        if isinstance(self.design, Paired):
            lengths = {name: len(factor.values) for name, factor in self.factor_of.items()}
            if len(set(lengths.values())) > 1:
                counts = listing([f"{name} has {count}" for name, count in lengths.items()])
                raise ValueError(f"paired factors need equally many values: {counts}")
        if isinstance(self.design, LatinHypercube | Sobol) and not any(f.is_range for f in self.factor_of.values()):
            raise ValueError(f"{self.design.kind} draws from ranges, and no factor has one (low, high)")
        return self

    @model_validator(mode="after")
    def _of_known_figures(self) -> StudySpec:
        if self.precision is not None and "replications" in self.model_fields_set:
            raise ValueError("replications and precision: each point has as many as its figures need; leave one out")
        if self.precision is not None and not self.figures:
            raise ValueError("precision: of which figures? name them in figures")
        for name in self.precision.of if self.precision else ():
            if name not in self.figures:
                raise ValueError(
                    f"precision is of '{name}', which is none of the figures; {_instead(name, self.figures)}"
                )
        return self


def _instead(name: str, names: Any) -> str:
    return f"there are {listing(list(names)) or 'none'}{did_you_mean(name, names)}"


def _incompatibility(design: Any, name: str, factor: Factor) -> str | None:
    """Return why a factor of this name does not fit the results or the design."""
    if name in COLUMNS:
        return (
            "has the name of a column that tables of results have anyway; give it another name, and say what it sets "
            f"with `key: {factor.key or 'KEY'}`"
        )
    if isinstance(design, Listed):
        return "has values of its own; in a list the points say them" if factor.values or factor.is_range else None
    if not factor.values and not factor.is_range:
        return "has neither values nor a range (low, high)"
    if isinstance(design, Paired):
        return "is a range; paired factors have values" if factor.is_range else None
    if has_twice([*map(str, factor.values)]):
        return "names a value twice"
    is_bare = factor.is_range and isinstance(design, Grid) and factor.levels is None
    return "is a range; a grid needs levels of it, or take design {kind: sobol, points: 32}" if is_bare else None


def study_schema() -> dict[str, Any]:
    return json_schema(StudySpec, "vftsim study")


def shipped_studies() -> dict[str, Path]:
    """Return the files of the shipped studies by name."""
    return {path.stem: path for path in sorted((shipped_dir(ROOM) / FOLDER).glob("*.yaml"))}


def find_study(name_or_path: str) -> Path:
    """Return the file that a user means, a path that exists, else a shipped name; refuse what is neither."""
    more = "; 'vftsim study --gen-config MODEL' prints one to begin with"
    return file_or_shipped(name_or_path, shipped_studies(), "study", more)


def read_study(name_or_path: str) -> tuple[StudySpec, Path]:
    """Return a checked study, and the folder to which its paths are relative; refuse a missing or wrong file."""
    path = find_study(name_or_path)
    spec = load(path, StudySpec, search=lambda name: path if name == str(path) else find_study(name))
    return spec, path.parent


def changed(spec: StudySpec, points: int | None, replications: int | None, seed: int | None) -> StudySpec:
    """Return a study with what the command says instead of the file; refuse what means nothing in it."""
    data = spec.model_dump(exclude_unset=True)
    if points is not None:
        if not isinstance(spec.design, LatinHypercube | Sobol):
            kind = spec.design.kind
            raise UsageError(f"--points: a {kind} has the points of its values; latin_hypercube and sobol draw")
        data["design"]["points"] = points
    if replications is not None:
        if spec.precision is not None:
            raise UsageError("--replications: the study runs until its precision; change `precision.most` there")
        data["replications"] = replications
    if seed is not None:
        data["seed"] = seed
    try:
        return StudySpec.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"--{first['loc'][-1]}: {first['msg']}") from None


def has_twice(values: Sequence[str]) -> bool:
    """Tell whether two values of an axis are one, also where they are written in two ways (``1 s`` and ``1000 ms``)."""
    numbers = numbers_of(values)
    return len(set(values if numbers is None else numbers[0])) < len(values)
