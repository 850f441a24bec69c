"""Parts shared by all capacity searches: budget, workers, levels, curve.

The load is that of the system: scenario attempts a second, or media streams.

Of what a user asks a kind of system takes the wishes that make sense for it and refuses the others by name: an option
that is given is never ignored.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run, run_model
from vftsim.errors import UsageError
from vftsim.files import Number
from vftsim.stats import CapacityResult, Probe, capacity_search, search_start
from vftsim.stats.probing import BudgetUsedUp, runs_to_decide
from vftsim.stats.rootsearch import MAXIMUM_DOUBLINGS
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import estimate_columns
from vftsim.study.figures.validity import Missing, mean_missing
from vftsim.study.runs.model import Model
from vftsim.study.runs.workers import Interrupted
from vftsim.study.store.store import RunCache
from vftsim.workloads.offer import Offer
from vftsim.workloads.ramp import StepOutcome


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """Budget and precision of a search."""

    probability: float = 0.9
    """Share of runs that must stay within the limit."""
    resolution: float | None = None
    """Difference of loads that does not matter."""
    resolution_percent: float = 2.0
    """The same as a share of the load that saturates the system, if ``resolution`` is not given."""
    runs_per_level: int = 120
    budget: int = 800
    """Most runs at one load, and in all."""
    low: float | None = None
    high: float | None = None
    """Range of the search; by default from half the load that saturates the system to all of it."""
    confidence: float = 0.95

    @property
    def runs_to_decide(self) -> tuple[int, int]:
        """Least numbers of runs by which a load passes, and fails."""
        return runs_to_decide(self.probability, self.confidence)


_LEVELS = 3
"""No load takes more than a third of the budget, unless it could not pass with that."""

QUICK_SEARCH = SearchSettings(resolution_percent=5.0, runs_per_level=55, budget=160)
"""A first look: coarser levels, and just enough runs at each for a level that never fails to pass."""


OF_A_RAMP, OF_A_STOP = ("labs", "headroom_percent"), ("after_stop_ns", "window_ns")
"""Wishes of which only a benchmark's ramp knows, and only one that is stopped."""

_ROOM = 3
"""Budget that is advised, in runs that a load takes to pass: two loads near the capacity take as many, undecided."""


@dataclass(frozen=True)
class CapacityRequest:
    """The options of a capacity study; ``None`` where the user said nothing."""

    quick: bool = False
    method: str | None = None
    """``ramp`` or ``search``."""
    replications: int | None = None
    """Ramps."""
    ihs_limit_percent: float | None = None
    loss_limit_percent: float | None = None
    """Allowed share of inadequately handled attempts, or of lost media packets."""
    after_stop_ns: int | None = None
    window_ns: int | None = None
    """A stop to recover from, and the time for it."""
    probability: float | None = None
    resolution: float | None = None
    budget: int | None = None
    """Of a search."""
    labs: Path | None = None
    """File with ramps of further measured systems."""
    headroom_percent: float | None = None
    """Share of the load that fills the CPU to be left free."""
    vary: str | None = None
    """Key of the model to turn."""
    objectives: tuple[str, ...] = ()
    """Objectives of a run, each ``figure <= number``; it must meet all of them."""
    prices: bool = True
    """Play prices of the model's protection at both ends of their ranges."""

    def settings(self, thorough: SearchSettings) -> SearchSettings:
        """Return how hard a search has to try; ``thorough`` is the kind's default."""
        settings = QUICK_SEARCH if self.quick else thorough
        chosen = {name: getattr(self, name) for name in ("probability", "resolution", "budget")}
        for name, value in chosen.items():
            if value is not None and not value > 0:
                raise UsageError(f"--{name}: above 0, got {value:g}")
        if self.probability is not None and self.probability >= 1.0:
            raise UsageError(f"--probability: below 1, got {self.probability:g}")
        settings = replace(settings, **{name: value for name, value in chosen.items() if value is not None})
        to_pass, to_fail = settings.runs_to_decide
        if settings.budget < to_pass + to_fail:
            raise UsageError(
                f"--budget: {settings.budget} runs decide nothing: {100 * settings.probability:g} % of runs need "
                f"{to_pass} without a failure for a load to pass and {to_fail} for a higher one to fail; give "
                f"{_ROOM * to_pass} or more ({to_pass + to_fail} at the very least), or a lower --probability"
            )
        return replace(settings, runs_per_level=max(settings.runs_per_level, to_pass))

    def refuse(self, why: str, *names: str) -> None:
        """Refuse what was asked for, by fields of the request, and means nothing here; ``why``: what to do instead."""
        for name in names:
            if getattr(self, name) is not None:
                option = name.removesuffix("_percent").removesuffix("_ns").replace("_", "-")
                raise UsageError(f"--{option}: {why}")


@dataclass
class SearchMapper:
    """``map`` over worker processes that keeps what the runs gave; Ctrl-C ends the search with what it has."""

    execution: Execution
    unit: str
    """Of the load, for the progress."""
    cache: RunCache = field(default_factory=RunCache)
    """Cache of judged runs."""
    interrupted: bool = False
    outcomes: dict[float, list[JudgedRun]] = field(default_factory=dict)

    def __call__(self, function: Callable[[int], Any], numbers: range, /) -> Iterable[Any]:
        """Return the function's results, true for a run within the limit, in the order of the numbers."""
        level: float = getattr(function, "args")[0]  # noqa: B009 - the prober passes a partial
        try:
            results = self.judged(function, level, numbers)
        except KeyboardInterrupt:
            self.interrupted = True
            raise BudgetUsedUp from None
        self.outcomes.setdefault(level, []).extend(results)
        for _ in results:
            self.execution.progress.advance(f"at {level:g} {self.unit}")
        return results

    def judged(self, function: Callable[[int], Any], level: float, numbers: Iterable[int]) -> list[Any]:
        """Return what runs at a level gave, played or found; they are no part of the answer yet."""
        workers = self.execution.workers(function, is_counted=False)
        return self.cache.at(load=level).in_order(workers, {number: number for number in numbers})


def search_levels(
    study: LevelStudy, settings: SearchSettings, mapper: SearchMapper
) -> tuple[CapacityResult, Missing | None]:
    """Search for the capacity around the load that saturates a system, among loads that the model can have.

    Returns it with what was not offered at the load next to it that failed, if anything.
    """
    resolution, allows = study.resolution(settings), study.load.allows
    passes: Callable[[float, int], Any] = study.load
    low = settings.low or max(resolution, _floor(0.5 * study.saturated, resolution))
    high = settings.high or max(_floor(study.saturated, resolution), low) + resolution
    if not 0.0 < resolution <= high - low:
        raise UsageError(f"a resolution of {resolution:g} does not fit between {low:g} and {high:g}")
    eases, progress = False, mapper.execution.progress

    def tried(level: float) -> bool | None:
        (run,) = mapper.judged(partial(study.load, level), level, [0])
        progress.advance(f"one run at {level:g} {mapper.unit}")
        return None if any(map(math.isnan, run.figures.values())) else bool(run)

    if study.is_guessed:
        may_ease, least = study.names.may_ease, study.resolution(settings, low / 2.0**MAXIMUM_DOUBLINGS)
        start = search_start(tried, low, high, resolution, allows, may_ease=may_ease, least=least)
        if (start.low, start.high) != (low, high):
            resolution = study.resolution(settings, start.high)
            low, high = max(_floor(start.low, resolution), resolution), _floor(start.high, resolution) + resolution
        eases = start.eases
    progress.total(settings.budget)
    result = capacity_search(
        passes,
        low,
        high,
        resolution,
        probability=settings.probability,
        confidence=settings.confidence,
        runs_per_level=min(settings.runs_per_level, max(settings.budget // _LEVELS, settings.runs_to_decide[0])),
        budget=settings.budget,
        mapper=mapper,
        batch=mapper.execution.worker_count,
        allows=allows,
        eases=eases,
    )
    if mapper.interrupted and not result.probes:
        raise Interrupted("no run had finished")
    return without_short_offers(result, mapper.outcomes, mapper.unit)


def answer_columns(result: CapacityResult) -> dict[str, Any]:
    """Return a search's answer as columns; no estimate where the capacity is known from one side only."""
    columns = estimate_columns(result.estimate)
    if result.answer != "between":
        columns["estimate"] = math.nan
    names = ("answer", "resolved", "non_monotone", "budget_ended", "eases")
    return {**columns, **{name: getattr(result, name) for name in names}}


def _round_step(value: float) -> float:
    """Return 1, 2 or 5 times a power of ten, close to a value."""
    power = 10.0 ** math.floor(math.log10(value))
    return min((power * k for k in (1, 2, 5, 10)), key=lambda step: abs(step - value))


def _floor(value: float, step: float) -> float:
    return step * int(value / step)


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The judged figures of a run; true for a run within the limit whose load was offered."""

    figures: dict[str, Number]
    """Judged figures; nan where the run has none of the name."""
    is_within: bool
    short: Offer | None = None
    """Of the workload whose load is searched, where it sent less than it was asked: such a run proves nothing."""

    def __bool__(self) -> bool:
        return self.is_within and self.short is None


@dataclass(frozen=True, slots=True)
class JudgedLoad:
    """A model at any level of its load, and what a run at one is worth; what a capacity search calls; picklable."""

    spec: ModelSpec
    seed: int
    turned: Callable[[ModelSpec, float], ModelSpec]
    """Returns a model at a level."""
    criterion: Callable[[RunRecord], tuple[dict[str, float], bool]]
    """Returns the figures that a record is judged by, and whether it is within the limit."""
    offered: tuple[str, ...] = ()
    """Drivers of workloads that must have sent what they were asked."""

    def __call__(self, level: float, replication: int) -> JudgedRun:
        record = self.play(level, replication)
        figures, is_within = self.criterion(record)
        return JudgedRun(figures, is_within, short_offer(record, self.offered, figures))

    def at(self, level: float) -> ModelSpec:
        return self.turned(self.spec, level)

    def allows(self, level: float) -> bool:
        """Whether the model can have a level."""
        try:
            self.at(level)
        except UsageError:
            return False
        return True

    def of(self, spec: ModelSpec) -> Self:
        """Return the same load of another model."""
        return replace(self, spec=spec)

    def play(self, level: float, replication: int, prepare: Callable[[Run], None] | None = None) -> RunRecord:
        """Run; ``prepare`` is called with each pass that begins at time 0."""
        return run_model(self.at(level), self.seed, replication, prepare=prepare)


@dataclass(frozen=True)
class LoadNames:
    """Names of a load and of its limit."""

    key: str
    """Of the load in tables and JSON: ``streams``."""
    unit: str
    """Behind a figure for people: ``media streams``."""
    title: str
    """Name of the answer: ``Capacity``."""
    within: str
    """The limit as the end of a sentence about runs: ``lose at most 0.1 % of their media packets``."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """Further fields of limit and load in the JSON."""
    per_unit: Mapping[str, float] = field(default_factory=dict)
    """Amounts that belong to one unit of the load, by their unit: ``{"calls/s": 0.1}``."""
    beside: tuple[str, ...] = ()
    """Other workloads, which keep their load."""
    axis: str = ""
    """The load at a table or chart, where that is not its key."""
    judged_s: tuple[float, float] | None = None
    """After a stop of a benchmark: for how long attempts are judged, and how long after it."""
    is_counted: bool = False
    """Whether the load is a whole number."""
    fewest_judged: int = 0
    """A run measures until so many have been offered, if that is longer than the model says."""
    may_ease: bool = False
    """Whether a larger load may be the easier one, as a number of CPUs is: single runs say which it is."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Units of judged figures, by name, where the name does not say it."""


@dataclass(frozen=True)
class LevelStudy:
    """A load as a search sees it."""

    load: JudgedLoad
    names: LoadNames
    saturated: float
    """Load that would fill the system: where to look."""
    judged_by: Any
    """Plain data that says what a run is judged by; runs kept in a store under another are not taken."""
    is_watched: bool = True
    """Whether resources are looked at; where a run stands still for a while they say little."""
    is_guessed: bool = False
    """Whether ``saturated`` is a guess: single runs find where to look."""

    def cache(self, model: Model, execution: Execution) -> RunCache:
        """Return the cache of judged runs of a model, to be narrowed by the load."""
        return execution.cache(model, JudgedRun, judged_by={"limit": self.judged_by, "offered": True})

    def resolution(self, settings: SearchSettings, full: float | None = None) -> float:
        """Return the difference of loads that does not matter; a load that is counted has whole steps.

        It is a share of the load that fills the system: ``full`` where single runs have found that.
        """
        full = self.saturated if full is None else full
        resolution = settings.resolution or _round_step(settings.resolution_percent / 100.0 * full)
        return max(1.0, resolution) if self.names.is_counted else resolution


def short_offer(record: RunRecord, names: Collection[str], judged: Collection[str]) -> Offer | None:
    """Return the first offer of drivers of workloads that is short, and whose rest a judged figure lacks."""
    words = {word for address in judged for word in address.split(".")}
    offers = (_of_judged(record, name, judged) for name in record.offers if name in names)
    short = (offer for offer in offers if offer.is_short)
    return next((offer for offer in short if not offer.figure or offer.figure in words), None)


def _of_judged(record: RunRecord, name: str, judged: Collection[str]) -> Offer:
    """Return a workload's offer, of a ramp that of the steps whose figures are judged, if only such are."""
    steps = [(phase, step) for phase, owner, step in record.of_kind(StepOutcome) if owner == f"workloads.{name}"]
    words = [address.split(".") for address in judged]
    of_each = [[step for phase, step in steps if phase.name in each or phase.word in each] for each in words]
    if not of_each or not all(of_each):
        return record.offers[name]
    played = {step.index: step for judged_steps in of_each for step in judged_steps}.values()
    requested = math.fsum(step.requested_saps * step.seconds for step in played)
    return replace(record.offers[name], asked=requested, sent=requested - sum(step.missing for step in played))


def without_short_offers(
    result: CapacityResult, outcomes: Mapping[float, Sequence[JudgedRun]], load: str
) -> tuple[CapacityResult, Missing | None]:
    """Return a search's answer, and what was not offered at the load next to it that failed.

    Where no run there went beyond the limit, the load failed only because it was not offered: the answer is a bound.
    """
    failed = next_failed(result)
    if failed is None:
        return result, None
    runs = outcomes[failed.level][: failed.runs]
    load_text = f"the load at {failed.level:g} {load}"
    missing = mean_missing(load_text, [run.short for run in runs if run.short is not None])
    if missing is None or not all(run.is_within for run in runs):
        return result, missing
    estimate = result.estimate
    if result.eases:
        bound = replace(estimate, mean=estimate.high, low=0.0, half_width=estimate.high / 2.0)
    else:
        bound = replace(estimate, mean=estimate.low, high=math.inf, half_width=math.inf)
    return replace(result, estimate=bound), missing


def next_failed(result: CapacityResult) -> Probe | None:
    """Return the level beside the answer that failed."""
    if result.eases:
        return next((probe for probe in reversed(result.probes) if probe.level <= result.estimate.low), None)
    return next((probe for probe in result.probes if probe.level >= result.estimate.high), None)
