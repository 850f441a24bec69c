"""Ramps of measured systems: what each step carried, the capacity under a limit, and the load that would fill the CPU.

The same arithmetic serves steps of a simulated ramp.  The capacity under a limit is the load of the last step before
the first in which a larger share of any scenario, or of all together, was inadequately handled; whole attempts a
second, as the lab prints it.  It is read from the figures of the steps: a ramp that ends at its own limit says nothing
beyond.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.dataset import Dataset, Observations, read_dataset
from vftsim.labs.named_files import dataset_path
from vftsim.spec import Document, RatePerSecond, Spec, read_document, shipped_dir
from vftsim.spec.suggest import instead, shown

LIMITS_PERCENT = (0.1, 1.0, 5.0, 10.0)
"""Shares of inadequately handled attempts by which a capacity is judged."""

UNDISTURBED_PERCENT = 1.0
"""A step with at most this share inadequately handled was not yet in trouble."""

SHIPPED = "ramps.yaml"
_LAST = 3
BEFORE_THE_STEPS = "pre_registration"


@dataclass(frozen=True, slots=True)
class LoadStep:
    """One step of a ramp."""

    load: float
    """Attempts a second."""
    inadequate_percent: float
    """Of the scenario with the largest share, or of all together."""
    cpu_percent: float | None = None
    """Of the CPU that the server has."""


@dataclass(frozen=True, slots=True)
class Ramp:
    """A system whose load was raised until it failed."""

    system: str
    steps: tuple[LoadStep, ...]
    """By load; empty where only the three figures are known."""
    carried: float
    """Load of the last step that was not in trouble."""
    tipped: float
    """Load of the first one that was."""
    full: float
    """Load that would fill the CPU, as the steps before promised."""
    source: tuple[Path, str] | None = None
    """Dataset and environment."""

    @property
    def shares(self) -> tuple[float, float]:
        """Shares of the full load between which it tipped: last carried, first not carried."""
        return self.carried / self.full, self.tipped / self.full


def shares_seen(ramps: Iterable[Ramp]) -> tuple[float, float]:
    """Return the shares of the full load between which systems tipped: the lowest carried, the highest not carried."""
    shares = [ramp.shares for ramp in ramps]
    return min(low for low, _ in shares), max(high for _, high in shares)


def load_steps(figures: Observations, inadequate: str = "", attempts: str = "") -> list[LoadStep]:
    """Return the steps of an environment that can be judged, by load; the pre-registration is no step.

    ``inadequate`` and ``attempts`` are quantities that are counts of attempts, where shares ``ihs/...`` were not
    measured.  A phase without load or attempts, or in which one of them was not measured, cannot be judged.
    """
    steps = []
    for phase in dict.fromkeys(phase for phase, quantity in figures if quantity == "load"):
        if phase == BEFORE_THE_STEPS or figures[phase, "load"] <= 0.0:
            continue
        if inadequate:
            failed, of = figures.get((phase, inadequate)), figures.get((phase, attempts))
            shares = [100.0 * failed / of] if failed is not None and of else []
        else:
            shares = [value for (name, quantity), value in figures.items() if name == phase and quantity[:4] == "ihs/"]
        if shares:
            steps.append(LoadStep(figures[phase, "load"], max(shares), figures.get((phase, "cpu"))))
    return sorted(steps, key=lambda step: step.load)


def capacity_at(steps: Sequence[LoadStep], limit_percent: float) -> int:
    """Return the capacity under a limit; 0: the first step fails."""
    saps = 0
    for step in steps:
        if step.inadequate_percent > limit_percent:
            return saps
        saps = int(step.load)
    return saps


def is_bound(steps: Sequence[LoadStep], limit_percent: float) -> bool:
    """Tell whether no step fails, so that the capacity is a lower bound."""
    return all(step.inadequate_percent <= limit_percent for step in steps)


def full_load(steps: Sequence[LoadStep]) -> float | None:
    """Return the load that would fill the CPU by what the last three undisturbed steps need; None for fewer than two.

    CPU time an attempt goes on as the straight line through them over load; where it falls, or all steps have one load,
    it stays at their mean: a price that falls for ever is not to be had.
    """
    calm = [step for step in _undisturbed(steps) if (step.cpu_percent or 0.0) > 0.0][-_LAST:]
    if len(calm) < 2:
        return None
    loads, prices = [step.load for step in calm], [(step.cpu_percent or 0.0) / step.load for step in calm]
    slope, start = statistics.linear_regression(loads, prices) if len({*loads}) > 1 else (0.0, prices[0])
    if slope <= 0.0:
        return 100.0 / statistics.fmean(prices)
    return (math.sqrt(start * start + 400.0 * slope) - start) / (2.0 * slope)


def mean_steps(ramps: Iterable[Sequence[LoadStep]]) -> list[LoadStep]:
    """Return the steps of several ramps of one system as one: each the mean of the ramps that reached it."""
    reached = ([step for step in steps if step is not None] for steps in zip_longest(*ramps))
    return [
        LoadStep(
            statistics.fmean(step.load for step in steps),
            statistics.fmean(step.inadequate_percent for step in steps),
            statistics.fmean(step.cpu_percent or 0.0 for step in steps),
        )
        for steps in reached
    ]


def _undisturbed(steps: Sequence[LoadStep]) -> list[LoadStep]:
    return list(takewhile(lambda step: step.inadequate_percent <= UNDISTURBED_PERCENT, steps))


class MeasuredRamp(Spec):
    """One system whose load was raised until it failed: its rows in a dataset, or three figures."""

    dataset: str | None = Field(None, description="Dataset: its folder relative to this file, or a shipped name.")
    environment: str | None = Field(None, description="Environment of the dataset.")
    inadequate: str | None = Field(
        None, description="Quantity that counts attempts inadequately handled, where there are no shares `ihs/...`."
    )
    attempts: str | None = Field(None, description="Quantity that counts all attempts, beside `inadequate`.")
    carried: RatePerSecond | None = Field(
        None, gt=0, description="Without a dataset: last load carried with at most 1 % inadequately handled."
    )
    tipped: RatePerSecond | None = Field(None, gt=0, description="First load with more.")
    full: RatePerSecond | None = Field(None, gt=0, description="Load that would have filled its CPU.")

    @model_validator(mode="after")
    def _says_one(self) -> Self:
        rows, figures = (self.dataset, self.environment), (self.carried, self.tipped, self.full)
        if not (all(rows) and not any(figures)) and not (all(figures) and not any(rows)):
            raise ValueError("needs either dataset and environment, or carried, tipped and full")
        if (self.inadequate is None) != (self.attempts is None):
            raise ValueError("inadequate and attempts go together")
        if self.carried and self.tipped and self.carried >= self.tipped:
            raise ValueError("needs carried < tipped: a load that was carried lies below the first that was not")
        return self


class MeasuredRamps(Spec):
    """Systems of one kind whose load was raised until they failed."""

    systems: Annotated[dict[str, MeasuredRamp], Field(min_length=1)] = Field(description="By name.")


def measured_ramp(system: str | None, ramps: Mapping[str, Ramp]) -> Ramp | None:
    """Return the measured ramp of the system that a model names, None where it names none; refuse an unknown system."""
    if system is None:
        return None
    if system not in ramps:
        raise UsageError(f"measured.system: no system {shown(system)}{instead(system, ramps, 'there are')}")
    return ramps[system]


@cache
def shipped_ramps() -> Mapping[str, Ramp]:
    """Return the ramps of the laboratories that come with vftsim, by system."""
    return read_ramps(shipped_dir("calibration") / SHIPPED)


def shipped_observations(system: str | None) -> Observations:
    """Return all that was measured of a system of the laboratories that come with vftsim; nothing for any other."""
    document = read_document(shipped_dir("calibration") / SHIPPED)
    measured = document.validate(MeasuredRamps).systems.get(system or "")
    if measured is None or measured.environment is None:
        return {}
    return read_dataset(dataset_path(document.tree.at("systems", system or "", "dataset"))).observations(
        measured.environment
    )


def read_ramps(path: Path) -> dict[str, Ramp]:
    """Return the ramps that a file names, by system; refuse wrong data, and a system that never came into trouble."""
    document = read_document(path)
    systems = document.validate(MeasuredRamps).systems
    return {name: _ramp(document, name, measured) for name, measured in systems.items()}


def _ramp(document: Document, name: str, measured: MeasuredRamp) -> Ramp:
    if measured.carried and measured.tipped and measured.full:
        return Ramp(name, (), measured.carried, measured.tipped, measured.full)
    node = document.tree.at("systems", name, "dataset")
    dataset = read_dataset(dataset_path(node))
    observations = dataset.observations(measured.environment or "")
    _check_counts(dataset, observations, measured)
    steps = load_steps(observations, measured.inadequate or "", measured.attempts or "")
    calm = _undisturbed(steps)
    full = full_load(steps)
    if full is None or is_bound(steps, UNDISTURBED_PERCENT):
        raise node.error(
            f"'{measured.environment}' tells of no tipping: it takes two steps or more with load, cpu and at most "
            f"{UNDISTURBED_PERCENT:g} % inadequately handled, and one above with more",
            "dataset",
        )
    source = (dataset.path.resolve(), measured.environment or "")
    return Ramp(name, tuple(steps), calm[-1].load, steps[len(calm)].load, full, source)


def _check_counts(dataset: Dataset, observations: Mapping[tuple[str, str], float], measured: MeasuredRamp) -> None:
    for quantity in (measured.inadequate, measured.attempts):
        if quantity is not None and not any(name == quantity for _, name in observations):
            raise ModelFileError(f"'{quantity}' was not measured in '{measured.environment}'", str(dataset.path))
