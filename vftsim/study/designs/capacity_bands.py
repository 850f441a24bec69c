"""The band of a protected server's capacity over the ranges of its mechanism's prices.

By the ramp: one ramp is played at each end of each price.  By a search: replication 0 is within the limit up to some
load, and beyond it above (the other way round where larger loads ease); that load is found at the prices in use and at
each end of each price, in quarters of the search's resolution.  How far it moves is taken as how far the capacity does,
whatever share of runs a search asks for.
"""

from collections.abc import Generator, Sequence
from dataclasses import replace
from functools import partial

from vftsim.stats.rootsearch import MAXIMUM_DOUBLINGS
from vftsim.study.designs.failover import protected_domain
from vftsim.study.designs.level_search import LevelSearch, LevelStudy
from vftsim.study.designs.ramp import ramp_capacity_of
from vftsim.study.designs.search_levels import JudgedLoad, JudgedRun, resolution_of
from vftsim.study.figures.price_bands import Band, Variant, band_of, effects_of, variants
from vftsim.study.runs.estimate import Needs, needs_of
from vftsim.study.runs.execution import Execution
from vftsim.study.runs.model import Model
from vftsim.study.runs.replicate import replicate
from vftsim.study.store.resumable import together

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
    done = replicate(models, 1, execution)
    if any(each.interrupted for each in done):
        return None
    in_use, *at_ends = (
        ramp_capacity_of(played, each.ordered(), ihs_limit_percent).estimate.mean
        for played, each in zip(models, done, strict=True)
    )
    return band_of(effects_of(zip(ends, at_ends, strict=True), in_use))


def with_band(search: LevelSearch, execution: Execution, study: LevelStudy) -> LevelSearch:
    """Return a search with what the prices make of its capacity; as it is where it has none, or none is known."""
    ends = ends_of(search.model)
    if not ends or search.interrupted or search.result.answer != "between":
        return search
    counted = study.names.is_counted
    step = resolution_of(study.saturated, search.settings, whole=counted) / _STEPS
    if counted:
        step = max(1.0, step // 1.0)
    play = partial(_turns, study, step, execution, search.result.eases)
    execution.progress.total(runs_of_bands(search.model))
    try:
        (in_use,) = play([search.model], max(1, round(search.result.estimate.mean / step)))
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
