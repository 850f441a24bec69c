"""A capacity found by judging whole runs at levels of one load: search, curve, and the resources at the limit.

The load is a number of the model, the judgement a condition on what a run measured.  Attempts a second of a benchmark
(:mod:`.sip_capacity`), media streams (:mod:`.stream_capacity`) and any other key of a model (:mod:`.knob_capacity`)
share all of this.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from vftsim.composition.model import ModelSpec
from vftsim.composition.run import Run
from vftsim.stats import CapacityResult, Estimate
from vftsim.study.frames import frame
from vftsim.study.judged_run import JudgedRun
from vftsim.study.kept import RunCache
from vftsim.study.manifest import identity
from vftsim.study.model import Model
from vftsim.study.offered import Missing, rows_of
from vftsim.study.opened import number
from vftsim.study.price_bands import Band
from vftsim.study.progress import Progress, Silent
from vftsim.study.resources import WatchedRun, from_rows, resource_table, to_rows, watch
from vftsim.study.results import rows
from vftsim.study.search_levels import (
    SearchMapper,
    SearchSettings,
    probe_table,
    search_from_plain,
    search_levels,
    search_to_plain,
)
from vftsim.study.store import Store
from vftsim.study.validity import is_load
from vftsim.study.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

SAPS = "load_saps"
"""Key of the attempts a second of a benchmark."""
WATCHED_REPLICATIONS = 10


class JudgedLoad(Protocol):
    """A model at any level of its load, and what a run at one is worth; picklable."""

    def __call__(self, level: float, replication: int) -> JudgedRun:
        """Run and judge."""
        ...

    def at(self, level: float) -> ModelSpec:
        """Return the model at a level."""
        ...

    def of(self, spec: ModelSpec) -> JudgedLoad:
        """Return the same load of another model."""
        ...

    def prepare(self, level: float, replication: int) -> Run:
        """Return the run, ready to begin."""
        ...


@dataclass(frozen=True)
class LoadNames:
    """How a load and its limit are called.

    Parameters
    ----------
    key : str
        Of the load in tables and JSON: ``streams``.
    unit : str
        Behind a figure for people: ``media streams``.
    title : str
        What the answer says: ``Capacity``.
    within : str
        What runs within the limit do, as the end of a sentence: ``lose at most 0.1 % of their media packets``.
    details : mapping
        What else the JSON says of limit and load.
    per_unit : mapping
        What goes with each unit of the load, by unit: ``{"calls/s": 0.1}``.
    axis : str
        The load at a table or chart, where that is not its key.
    judged_s : (float, float), optional
        After a stop of a benchmark: for how long attempts are judged, and how long after it.
    is_counted : bool
        Whether the load is a whole number.
    """

    key: str
    unit: str
    title: str
    within: str
    details: Mapping[str, Any] = field(default_factory=dict)
    per_unit: Mapping[str, float] = field(default_factory=dict)
    axis: str = ""
    judged_s: tuple[float, float] | None = None
    is_counted: bool = False


@dataclass(frozen=True)
class LevelSearch:
    """A capacity found by search.

    Parameters
    ----------
    model : Model
    names : LoadNames
    result : CapacityResult
    settings : SearchSettings
    figures : dict
        The judged figures of every run, by load and name.
    watched_level : float
        Load whose resources were watched: the lowest that failed, or the highest that passed if none did.
    resources : DataFrame
        Use of the resources there, the limiting one first; empty after an interruption, and of a search with a stop.
    interrupted : bool
    missing : Missing, optional
        What was not offered at the lowest load that failed.
    band : Band, optional
        What the ranges of a mechanism's prices make of the capacity.
    """

    model: Model
    names: LoadNames
    result: CapacityResult
    settings: SearchSettings
    figures: dict[float, dict[str, list[float]]]
    watched_level: float
    resources: pd.DataFrame
    interrupted: bool = False
    missing: Missing | None = None
    band: Band | None = None

    @property
    def with_prices(self) -> Estimate | None:
        """The capacity with an interval for search and prices; None where no price moves it."""
        return None if self.band is None else self.band.around(self.result.estimate, 0.0)

    @property
    def loads(self) -> list[float]:
        """Levels at which runs were judged."""
        return [probe.level for probe in self.result.probes]

    @property
    def of_load(self) -> ModelSpec | None:
        """The model, where the levels are attempts a second of its benchmark."""
        spec, key = self.model.spec, self.names.key
        return spec if key == SAPS or is_load(spec, key) else None

    @property
    def judged(self) -> tuple[str, ...]:
        """Names of the figures by which runs were judged."""
        return tuple(next(iter(self.figures.values())))

    def curve(self) -> pd.DataFrame:
        """Return one row a load: the runs beyond the limit, and mean, least and largest of each judged figure.

        The figures have no interval: a load is left when its runs have decided it, which is when they were on one
        side.
        """
        table = probe_table(self.result, self.settings.confidence, self.names.key)
        levels = table[self.names.key]
        for name in self.judged:
            known = [[x for x in self.figures[level][name] if not math.isnan(x)] for level in levels]
            table[f"{name}_mean"] = [math.fsum(values) / len(values) if values else math.nan for values in known]
            table[f"{name}_least"] = [min(values, default=math.nan) for values in known]
            table[f"{name}_largest"] = [max(values, default=math.nan) for values in known]
        return table

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            **self.names.details,
            "not_offered": rows_of([self.missing] if self.missing else []),
            "probability": self.settings.probability,
            "beyond_limit_by_load": rows(self.curve()),
            "watched": self.watched_level,
            "resources": rows(self.resources),
            "prices": asdict(self.band) if self.band else None,
            "search": {
                **search_to_plain(self.result, self.settings),
                "names": asdict(self.names),
                "figures": [[level, self.figures[level]] for level in self.loads],
            },
        }

    @classmethod
    def from_machines(cls, model: Model, data: Mapping[str, Any], *, interrupted: bool) -> LevelSearch:
        """Rebuild what :meth:`for_machines` returned."""
        result, settings = search_from_plain(data["search"])
        names = LoadNames(**data["search"]["names"])
        figures = {
            level: {name: [number(x) for x in values] for name, values in judged.items()}
            for level, judged in data["search"]["figures"]
        }
        missing = next((Missing(**each) for each in data["not_offered"]), None)
        watched, resources = data["watched"], frame(data["resources"])
        band = Band.from_plain(data["prices"]) if data.get("prices") else None
        return cls(model, names, result, settings, figures, watched, resources, interrupted, missing, band)


@dataclass(frozen=True)
class LevelStudy:
    """What a search needs to know of a load.

    Parameters
    ----------
    load : JudgedLoad
    names : LoadNames
    saturated : float
        Load that would fill the system: where to look.
    judged_by : any
        Plain data that says what a run is judged by; runs kept in a store under another are not taken.
    is_watched : bool
        Whether resources are looked at; where a run stands still for a while they say little.
    """

    load: JudgedLoad
    names: LoadNames
    saturated: float
    judged_by: Any
    is_watched: bool = True

    def kept(self, store: Store | None, model: Model, seed: int) -> RunCache:
        """Return where judged runs of a model are kept, by the load."""
        judged_by = {"limit": self.judged_by, "offered": True}
        return RunCache(store, identity(model, seed), JudgedRun.to_plain, JudgedRun.from_plain).at(judged_by=judged_by)


def search_level(
    model: Model,
    seed: int,
    jobs: int,
    settings: SearchSettings,
    study: LevelStudy,
    *,
    progress: Progress | None = None,
    store: Store | None = None,
) -> LevelSearch:
    """Search for the capacity, and watch the resources at the limit.

    Raises
    ------
    Interrupted
        Ctrl-C before a single run was judged.
    """
    mapper = SearchMapper(jobs, progress or Silent(), study.names.unit, study.kept(store, model, seed))
    result, missing = search_levels(study.load, study.saturated, settings, mapper, whole=study.names.is_counted)
    # Runs of a batch beyond a level's decision are left out, as in the search: --jobs must not matter.
    figures = {p.level: _by_name(mapper.outcomes[p.level][: p.runs]) for p in result.probes}
    failed = [p.level for p in result.probes if p.level >= result.estimate.high]
    watched = failed[0] if failed else result.probes[-1].level if missing is None else result.estimate.low
    watched = watched or result.probes[0].level
    resources, interrupted = frame(), mapper.interrupted
    if study.is_watched and not interrupted:
        try:
            window_ns = _window_ns(study.load.at(watched))
            tasks = {n: WatchedRun(study.load, watched, n, *window_ns) for n in range(WATCHED_REPLICATIONS)}
            of_watching = RunCache(store, identity(model, seed), to_rows, from_rows).at(
                watched=watched, load=study.names.key
            )
            uses = of_watching.in_order(Workers(watch, jobs, mapper.progress.say), tasks)
            resources = resource_table(uses, settings.confidence)
        except KeyboardInterrupt:
            interrupted = True
    return LevelSearch(model, study.names, result, settings, figures, watched, resources, interrupted, missing)


def _by_name(runs: Sequence[JudgedRun]) -> dict[str, list[float]]:
    return {name: [run.figures[name] for run in runs] for name in runs[0].figures}


def _window_ns(spec: ModelSpec) -> tuple[int, int]:
    """Return when the resources are watched: the measured time, of a benchmark that of its first step."""
    if spec.ramp is not None:
        return spec.ramp.first_window_ns()
    begin_ns, length_ns = spec.measure.warm_up, spec.measure.duration
    return begin_ns, begin_ns + length_ns
