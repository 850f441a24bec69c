"""The answer of ``vftsim capacity``: the load that a system carries, by the lab's ramp or by search.

*Bands*, over the ranges of the prices of a protected server's mechanism.  By the ramp: one ramp is played at each end
of each price.  By a search: replication 0 is within the limit up to some load, and beyond it above (the other way round
where larger loads ease); that load is found at the prices in use and at each end of each price, in quarters of the
search's resolution.  How far it moves is taken as how far the capacity does, whatever share of runs a search asks for.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from vftsim.files import codec
from vftsim.report.blocks import Block
from vftsim.stats import Estimate
from vftsim.stats.rootsearch import MAXIMUM_DOUBLINGS
from vftsim.study.blocks.head import head
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.capacity_by_ramp import RampCapacity, ramp_blocks, ramp_capacity_of
from vftsim.study.designs.capacity_by_search import SAPS, LevelSearch, level_blocks, of_prices, search_level
from vftsim.study.designs.capacity_search import JudgedLoad, JudgedRun, LevelStudy, SearchSettings, answer_columns
from vftsim.study.designs.failover import protected_domain
from vftsim.study.designs.price_bands import Band, Variant, band_of, effects_of, variants
from vftsim.study.execution import Execution, Replications
from vftsim.study.figures.frames import DataFrame, estimate_columns, frame, rows
from vftsim.study.figures.validity import outside, rows_of, varied
from vftsim.study.runs.estimate import Needs, needs_of
from vftsim.study.runs.model import Model
from vftsim.study.store.opened import model_of, read_answer, read_manifest, records_of
from vftsim.study.store.store import together

_OF_ATTEMPTS = "/s"


@dataclass(frozen=True)
class CapacityStudy(Printed):
    """One or more capacities of one system."""

    manifest: dict[str, Any]
    ramp: RampCapacity | None = None
    """By the lab's procedure."""
    searches: Mapping[str, LevelSearch] = field(default_factory=dict)
    """By name: the load that is raised (``streams``); of a benchmark ``steady``, the capacity at constant load,
    ``after_stop``, after a stop, and ``recovery``, the load from which a collapsed server recovers by itself."""
    band: Band | None = None
    """The band of the ramp's capacity over the ranges of a mechanism's prices."""

    @property
    def with_prices(self) -> Estimate | None:
        """The ramp's capacity with an interval for replications and prices; None where no price moves it."""
        return None if self.band is None or self.ramp is None else self.band.around(self.ramp.estimate, 0.0)

    @property
    def outside(self) -> list[float] | None:
        """Loads tried that are outside of what the model was fitted to; None if it does not say to what."""
        if self.ramp is not None:
            return outside(self.ramp.model.spec, self.ramp.loads)
        searches = list(self.searches.values())
        return outside(searches[0].model.spec, [load for each in searches if each.of_load for load in each.loads])

    def to_pandas(self) -> DataFrame:
        """Return one row a capacity, with its interval."""
        table = []
        if self.ramp is not None:
            columns = {**estimate_columns(self.ramp.estimate), **self.ramp.columns()}
            prices = _of_prices(self.with_prices, self.band)
            table.append({"capacity": "ramp", "unit": _OF_ATTEMPTS, **columns, **prices})
        for name, search in self.searches.items():
            columns, prices = answer_columns(search.result), _of_prices(search.with_prices, search.band)
            unit = _OF_ATTEMPTS if search.names.key == SAPS else search.names.details.get("unit", "")
            table.append({"capacity": name, "unit": unit, **columns, **prices})
        return frame(table)

    def for_machines(self) -> dict[str, Any]:
        data: dict[str, Any] = {"manifest": self.manifest, "capacity": rows(self.to_pandas())}
        data["outside_calibration"] = self.outside
        if self.ramp is not None:
            data["ramp"] = {
                "ihs_limit_percent": self.ramp.limit_percent,
                "unfailed": self.ramp.unfailed,
                "by_limit": rows(self.ramp.limits_table()),
                "tipping": self.ramp.tipping.for_machines() if self.ramp.tipping else None,
                "prices": asdict(self.band) if self.band else None,
                "stop_steps": rows(self.ramp.stop_steps()),
                "replications": rows(self.ramp.to_pandas()),
            }
            data["not_offered"] = rows_of(self.ramp.missing)
        data.update({name: search.for_machines() for name, search in self.searches.items()})
        return data

    @classmethod
    def opened(cls, folder: Path) -> CapacityStudy:
        manifest, answer = read_manifest(folder), read_answer(folder)
        model = model_of(manifest)
        ramp = band = None
        if "ramp" in answer:
            ramp = ramp_capacity_of(model, records_of(folder, manifest), answer["ramp"]["ihs_limit_percent"])
            band = codec(Band | None)[1](answer["ramp"].get("prices"))
        is_partial, names = manifest["state"] == "interrupted", [row["capacity"] for row in answer["capacity"]]
        searched = {name: answer[name] for name in names if name != "ramp"}
        searches = {n: LevelSearch.from_machines(model, e, interrupted=is_partial) for n, e in searched.items()}
        return cls(manifest, ramp, searches, band)

    def blocks(self) -> list[Block]:
        models = self.manifest["models"]
        for search in self.searches.values():
            models = [varied(model, search.model.spec, search.names.key) for model in models]
        blocks: list[Block] = [*head(models, self.manifest["seed"])]
        if self.ramp is not None:
            blocks += ramp_blocks(self.ramp)
            blocks += of_prices(self.with_prices, self.band, "SAPS")
        for search in self.searches.values():
            blocks += level_blocks(search)
        return blocks


def _of_prices(with_prices: Estimate | None, band: Band | None) -> dict[str, Any]:
    """Return what prices make of a capacity as columns."""
    low, high = (with_prices.low, with_prices.high) if with_prices else (math.nan, math.nan)
    return {"with_prices_low": low, "with_prices_high": high, "deciding_price": band.decides if band else ""}


def searched(
    model: Model, execution: Execution, settings: SearchSettings, studies: Mapping[str, LevelStudy], *, prices: bool
) -> CapacityStudy:
    """Return what searches find, one after the other, with bands of ``prices``; after an interruption none is begun."""
    execution.check()
    searches: dict[str, LevelSearch] = {}
    for name, study in studies.items():
        searches[name] = search_level(model, execution, settings, study)
        if prices:
            searches[name] = with_band(searches[name], execution, study)
        if searches[name].interrupted:
            break
    most = max(probe.runs for search in searches.values() for probe in search.result.probes)
    is_partial = any(search.interrupted for search in searches.values())
    replications = settings.runs_per_level
    manifest = execution.manifest([model], "capacity", most, wanted=replications, interrupted=is_partial)
    return CapacityStudy(manifest, searches=searches)


_STEPS = 4
"""Steps of a search's resolution in which the load of one replication is found."""
_RUNS_AN_END = 5
"""Of a search, about: two where a price moves nothing."""


def ends_of(model: Model) -> list[Variant]:
    """Return the model with each price that a run shows at either end of its range; none without protection."""
    if not any(domain.protection.protects for domain in model.spec.domains.values()):
        return []
    return [each for each in variants(model, protected_domain(model)) if not each.is_of_failure]


def bands_take(model: Model) -> Needs:
    """Return what the band of a ramp takes: a ramp at each end of each price, and one at the prices in use."""
    ends = len(ends_of(model))
    return needs_of(model.spec).times(ends + 1 if ends else 0)


def runs_of_bands(model: Model) -> int:
    """Return how many runs the band of a search takes, about."""
    ends = len(ends_of(model))
    return _RUNS_AN_END * (ends + 1) if ends else 0


def ramp_band(model: Model, execution: Execution, ihs_limit_percent: float | None) -> Band | None:
    """Play one ramp at each end of each price; return the capacity's band, None for none or an interrupted one."""
    ends = ends_of(model)
    if not ends:
        return None
    models = [model, *(each.model for each in ends)]
    done = Replications(models, execution)
    if not done.run(1):
        return None
    played = zip(models, done.records, strict=True)
    ramps = [ramp_capacity_of(each, sorted(records.items()), ihs_limit_percent) for each, records in played]
    in_use, *at_ends = (ramp.estimate.mean for ramp in ramps)
    return band_of(effects_of(zip(ends, at_ends, strict=True), in_use))


def with_band(search: LevelSearch, execution: Execution, study: LevelStudy) -> LevelSearch:
    """Return a search with what the prices make of its capacity; as it is where it has none, or none is known."""
    ends = ends_of(search.model)
    if not ends or search.interrupted or search.result.answer != "between":
        return search
    answer = search.result.estimate.mean
    step = study.resolution(search.settings, answer if study.is_guessed else None) / _STEPS
    if study.names.is_counted:
        step = max(1.0, step // 1.0)
    play = partial(_turns, study, step, execution, search.result.eases)
    execution.progress.total(runs_of_bands(search.model))
    try:
        (in_use,) = play([search.model], max(1, round(answer / step)))
        at_ends = play([each.model for each in ends], in_use)
    except KeyboardInterrupt:
        return replace(search, interrupted=True)
    played = [(end, level * step) for end, level in zip(ends, at_ends, strict=True)]
    return replace(search, band=band_of(effects_of(played, in_use * step)))


def turning(start: int) -> Generator[int, bool, int]:
    """Return the highest level within the limit: yields the one to be judged next, is sent whether it is within.

    From a level nearby it goes the way that the first verdict says, in steps that double, and halves what is between.
    It goes as far as a search does.
    """
    below, above = 0, start << MAXIMUM_DOUBLINGS
    level, stride = start, 1
    goes_up = is_within = yield level
    while is_within == goes_up:
        below, above = (level, above) if is_within else (below, level)
        level, stride = level + stride if goes_up else level - stride, 2 * stride
        if not below < level < above:
            break
        is_within = yield level
    else:
        below, above = (level, above) if is_within else (below, level)
    while above - below > 1:
        middle = (below + above) // 2
        is_within = yield middle
        below, above = (middle, above) if is_within else (below, middle)
    return below


def _turns(
    study: LevelStudy, step: float, execution: Execution, eases: bool, models: Sequence[Model], start: int
) -> list[int]:
    """Return up to which load, in steps, replication 0 of each model is within the limit, all of them side by side.

    It begins to look at ``start``.  Where larger loads are the easier ones (``eases``): up to which it is beyond.
    """
    walks = [turning(start) for _ in models]
    loads = [study.load.of(model.spec) for model in models]
    caches = [study.cache(model, execution) for model in models]
    levels, highest = {number: next(walk) for number, walk in enumerate(walks)}, dict[int, int]()
    while levels:
        at = {number: float(f"{level * step:.12g}") for number, level in levels.items()}
        tasks = [{0: (loads[number], load)} for number, load in at.items()]
        workers = execution.workers(_judged, is_counted=False)
        runs = together([caches[number].at(load=load) for number, load in at.items()], workers, tasks)
        for number, (run,) in zip(at, runs, strict=True):
            execution.progress.advance("prices at their ends")
            try:
                levels[number] = walks[number].send(bool(run) != eases)
            except StopIteration as end:
                highest[number] = end.value
                del levels[number]
    return [highest[number] for number in range(len(models))]


def _judged(task: tuple[JudgedLoad, float]) -> JudgedRun:
    load, level = task
    return load(level, 0)
