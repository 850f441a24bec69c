"""Calibration files: which parameters of which model are fitted to which observations."""

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from functools import partial
from typing import Annotated, Self, TypeVar

from pydantic import ConfigDict, Field, model_validator

from vftsim.spec import DURATION, Items, Quantity, Spec, find, format_duration, read_document
from vftsim.spec.suggest import instead, shown
from vftsim.spec.units import number_and_unit, quantity_of
from vftsim.spec.yaml_source import Node

T = TypeVar("T", bound=Spec)


class FreeParameter(Spec):
    """One number that a fit may move."""

    path: str = Field(pattern=r"^[a-z_][a-z0-9_.]*$", description="Key of the model, dotted.")
    low: float | str = Field(description="Lower bound, written as in a model file.")
    high: float | str = Field(description="Upper bound.")
    start: float | str = Field(description="Where the search begins.")
    scales: Items[str] = Field(
        (), description="Further keys multiplied by the same factor relative to the model's values."
    )
    environments: Items[str] = Field(
        (), description="With several environments: those whose runs it is set in; all when empty."
    )
    meaning: str = Field(min_length=3, description="What it is physically.")

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds in the base unit."""
        return _number(self.low), _number(self.high)

    @property
    def first(self) -> float:
        """Start in the base unit."""
        return _number(self.start)

    def unit(self, key: str) -> Quantity | None:
        """Return the quantity that one of the three is written as; None for a plain number."""
        value = getattr(self, key)
        return _quantity(value) if isinstance(value, str) else None

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        low, high = self.bounds
        if not low < high or not low <= self.first <= high:
            raise ValueError("need low < high and a start between them")
        return self


class CalibrationSpec(Spec):
    """One fit: model, data, free parameters, what is in sample and what is held out."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [
                {"required": ["environment"], "properties": {"environment": {"type": "string"}}},
                {"required": ["environments"]},
            ]
        }
    )

    name: str = Field(min_length=1, max_length=100, description="Name of the fit.")
    description: str = Field("", max_length=4000, description="What it is for.")
    model: str = Field(description="Model: a file relative to this one, or a shipped name.")
    dataset: str = Field(description="Dataset: its folder or dataset.yaml relative to this file, or a shipped name.")
    environment: str | None = Field(
        None, description="Environment of the dataset; the model plays its phases one after the other."
    )
    environments: dict[str, Items[str]] = Field(
        default_factory=dict,
        description="Instead of one: several, each with settings as with --set. Every phase of each is then a run of "
        "the model by itself, called `environment/phase` here; runs with equal settings are made once.",
    )
    phases: dict[str, Items[str]] = Field(
        default_factory=dict, description="With environments: settings of the phases, as with --set."
    )
    parameters: Annotated[Items[FreeParameter], Field(min_length=1, max_length=20)] = Field(
        description="Free parameters."
    )
    overrides: Items[str] = Field((), description="Settings for the fit, as with --set (shorter steps, fewer phases).")
    in_sample: Items[str] = Field(
        description="Phases whose observations are fitted; with environments, `environment/phase`."
    )
    held_out: Items[str] = Field((), description="Phases that the fit does not touch; noted in what it writes.")
    quantities: Items[str] = Field(
        ("cpu",),
        description="Observations used: names, `delays` for all percentiles, or `<phase>/<name>` for one phase only "
        "(`*` stands for any part of a name).",
    )
    cpu_scale_points: float = Field(0.5, gt=0, description="CPU residual that counts as 1.")
    log_scale: float = Field(0.15, gt=0, description="Logarithm of a ratio that counts as 1.")
    seed: int = Field(11, ge=0, description="Seed of every simulation of the fit.")
    replications: int = Field(1, ge=1, le=64, description="Replications averaged in every simulation of the fit.")
    most_evaluations: int = Field(12, ge=1, le=1000, description="Limit on the optimiser's steps, of each search.")
    starts: int = Field(
        1,
        ge=1,
        le=16,
        description="Points that a search begins at: the declared starts, then points spread over the bounds. Each is "
        "searched with the first replication; where the best one ends, the search goes on with all.",
    )

    @property
    def searches(self) -> int:
        """Number of runs of the optimiser."""
        return self.starts + (1 if self.starts > 1 and self.replications > 1 else 0)

    @property
    def runs(self) -> list[tuple[str, str]]:
        """Environment and phase of each run in sample; none where the model plays the phases itself."""
        return [run_of(label, self.environments) for label in self.in_sample] if self.environments else []

    @model_validator(mode="after")
    def _of_one_form(self) -> Self:
        if (self.environment is None) == (not self.environments):
            raise ValueError("needs either environment (one, whose phases the model plays) or environments (several)")
        if self.phases and not self.environments:
            raise ValueError("has settings of phases, which need environments: there each phase is a run by itself")
        for label in (*self.in_sample, *self.held_out) if self.environments else ():
            run_of(label, self.environments)
        if in_both := [label for label in self.held_out if label in self.in_sample]:
            raise ValueError(f"has {shown(in_both[0])} both in sample and held out; what is fitted is not held out")
        return self

    @model_validator(mode="after")
    def _of_parameters_told_apart(self) -> Self:
        paths = [parameter.path for parameter in self.parameters]
        if twice := next((path for path in paths if paths.count(path) > 1), None):
            raise ValueError(f"has two parameters with the path {twice}; a fit gives each key one value")
        moved = [*paths, *(path for parameter in self.parameters for path in parameter.scales)]
        if twice := next((path for path in moved if moved.count(path) > 1), None):
            raise ValueError(f"moves {twice} twice, in scales and by itself or in other scales; it can have one value")
        for parameter in self.parameters:
            for name in parameter.environments:
                if name not in self.environments:
                    others = instead(name, self.environments, "there are")
                    raise ValueError(f"{parameter.path} is for {shown(name)}, no environment here{others}")
        return self


def run_of(label: str, environments: Mapping[str, object]) -> tuple[str, str]:
    """Return environment and phase of ``environment/phase``; a ValueError where there is no such environment."""
    environment, _, phase = label.partition("/")
    if environment not in environments or not phase:
        others = instead(environment, environments, "environments here:")
        raise ValueError(f"{shown(label)} must be environment/phase{others}")
    return environment, phase


def read_definition(name_or_path: str, root: type[T]) -> tuple[T, Node]:
    """Return a checked calibration or validation, and its values with their places; refuse a missing or wrong file."""
    document = read_document(name_or_path, partial(find, "calibration"))
    return document.validate(root), document.tree


def _number(value: float | str) -> float:
    if isinstance(value, str):
        return float(_quantity(value).parse(value))
    return float(value)


def _quantity(text: str) -> Quantity:
    """Return the quantity that knows a text's unit; a duration where none does."""
    _, unit = number_and_unit(text) or (0.0, "")
    return quantity_of(unit) or DURATION


def in_unit(value: float, unit: str) -> str:
    """Return a parameter's number as text; a time in the unit that fits."""
    return format_duration(value) if unit == "ns" else f"{value:.4g} {unit}".rstrip()


def matches(name: str, pattern: str) -> bool:
    """Whether a name has a pattern's parts, in which ``*`` stands for anything but a slash."""
    parts, patterns = name.split("/"), pattern.split("/")
    return len(parts) == len(patterns) and all(map(fnmatchcase, parts, patterns))


def check_environments(tree: Node, names: Iterable[str], measured: Iterable[str], key: str = "environments") -> None:
    """Refuse an environment, named at a key of the file, that is none of those measured."""
    environments = list(measured)
    for name in names:
        if name not in environments:
            message = f"the dataset has no environment {shown(name)}{instead(name, environments, 'it has')}"
            raise tree.at(key).error(message, key)


def check_measured(node: Node, patterns: Iterable[str], measured: Iterable[str], runs: Iterable[str] = ()) -> None:
    """Refuse a pattern that fits nothing that was measured, so that a slip of the pen compares nothing unnoticed.

    The patterns stand at the node, and may begin with a phase or run.  The message has the quantities there are, the
    nearest first.
    """
    names, runs = list(measured), list(runs)
    every = [*names, *(f"{run}/{name}" for run in runs for name in names)]
    for pattern in patterns:
        if not any(matches(name, pattern) for name in every):
            message = f"nothing called {shown(pattern)} was measured{instead(pattern, names, 'the dataset has')}"
            raise node.error(message, "quantities")
