"""Capacity as a stochastic root search, and the failover-safe capacity below it.

The ramp of the laboratory mixes two things: what load the server carries, and how the load was raised.
Here single runs at constant load are judged, and the capacity is the load at which a run stays within the
IHS limit with the required probability (:mod:`vftsim.stats.rootsearch`), as an interval.

Metastability: retransmissions keep an overloaded server overloaded.  The failover-safe capacity is the
largest load from which the server comes back, with the required probability, after a stop of given length.
A stop of 64 T1 = 32 s fills every client's retransmission timers (RFC 3261, timers B and F), more cannot
be waiting: the load that survives it is the one at which a collapsed server recovers by itself.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pandas as pd

from vftsim.errors import UsageError
from vftsim.stats import CapacityResult, binomial_interval, capacity_search
from vftsim.stats.probing import BudgetUsedUp
from vftsim.study.constant_load import ConstantLoad, Stop
from vftsim.study.model import Model
from vftsim.study.progress import Progress, Silent
from vftsim.study.ramp import sip_spec
from vftsim.study.resources import ResourceTask, limiting_resource, watch
from vftsim.study.sip_records import steps_of
from vftsim.study.sip_summary import estimate_columns
from vftsim.study.workers import Interrupted, Workers

COLLAPSED = Stop(length_ns=32_000_000_000)
WATCHED_REPLICATIONS = 10
PILOT_NS = 60_000_000_000


@dataclass(frozen=True, slots=True)
class SearchSettings:
    """How hard a search tries.

    Parameters
    ----------
    probability : float
        Share of runs that must stay within the limit.
    resolution_saps : float, optional
        Difference of loads that does not matter.
    resolution_percent : float
        The same as a share of the load that saturates the CPU, if ``resolution_saps`` is not given.
    runs_per_level, budget : int
        Most runs at one load, and in all.
    low_saps, high_saps : float, optional
        Where to look; by default from half the load that saturates the CPU to all of it.
    confidence : float
    """

    probability: float = 0.9
    resolution_saps: float | None = None
    resolution_percent: float = 2.0
    runs_per_level: int = 120
    budget: int = 800
    low_saps: float | None = None
    high_saps: float | None = None
    confidence: float = 0.95


QUICK_SEARCH = SearchSettings(resolution_percent=5.0, runs_per_level=55, budget=160)
"""A first look: coarser levels, and just enough runs at each for a level that never fails to pass."""


@dataclass(frozen=True)
class SearchCapacity:
    """A capacity found by search.

    Parameters
    ----------
    model : Model
    result : CapacityResult
    limit_percent : float
        The IHS limit applied.
    settings : SearchSettings
    stop : Stop or None
        The stop that the server has to survive.
    resources : DataFrame
        Use of the resources at the capacity, the limiting one first; empty for searches with a stop.
    interrupted : bool
    """

    model: Model
    result: CapacityResult
    limit_percent: float
    settings: SearchSettings
    stop: Stop | None
    resources: pd.DataFrame
    interrupted: bool = False

    def to_pandas(self) -> pd.DataFrame:
        """Return the curve: for each load the share of runs beyond the limit, with binomial intervals."""
        return pd.DataFrame([
            {
                "load_saps": probe.level, "runs": probe.runs, "decision": str(probe.decision),
                **estimate_columns(
                    binomial_interval(probe.runs - probe.passed, probe.runs, self.settings.confidence)
                ),
            }
            for probe in self.result.probes
        ])  # fmt: skip


def search_capacity(
    model: Model,
    seed: int,
    jobs: int,
    settings: SearchSettings,
    *,
    limit_percent: float | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
) -> SearchCapacity:
    """Search for the largest load that a SIP lab carries, or survives a stop at.

    Raises
    ------
    Interrupted
        Ctrl-C before a single run was judged.
    """
    spec = sip_spec(model)
    limit = spec.workload.steps.stop_above_ihs if limit_percent is None else limit_percent
    if not 0.0 <= limit < 100.0:
        raise UsageError(f"an IHS limit is from 0 to below 100 %, got {limit:g}")
    load = ConstantLoad(spec, seed, limit, stop)
    saturated = saturating_saps(ConstantLoad(spec, seed, limit))
    resolution = settings.resolution_saps or _round_step(settings.resolution_percent / 100.0 * saturated)
    mapper = _Mapper(jobs, progress or Silent())
    mapper.progress.total(settings.budget)
    result = capacity_search(
        load,
        settings.low_saps or max(resolution, _down(0.5 * saturated, resolution)),
        settings.high_saps or _down(saturated, resolution) + resolution,
        resolution,
        probability=settings.probability,
        confidence=settings.confidence,
        runs_per_level=settings.runs_per_level,
        budget=settings.budget,
        mapper=mapper,
        batch=jobs,
    )
    if mapper.interrupted and not result.probes:
        raise Interrupted("no run had finished")
    resources = pd.DataFrame()
    if stop is None and not mapper.interrupted and result.estimate.mean > 0:
        tasks = [ResourceTask(load, result.estimate.mean, n) for n in range(WATCHED_REPLICATIONS)]
        resources = limiting_resource(Workers(watch, jobs).in_order(tasks), settings.confidence)
    return SearchCapacity(model, result, limit, settings, stop, resources, mapper.interrupted)


def saturating_saps(load: ConstantLoad) -> float:
    """Return the load that would fill the CPU, from one run at the model's first step: where to look."""
    workload = load.spec.workload
    first, shortest_ns = workload.steps.initial, workload.steps.transient + PILOT_NS
    steps = workload.steps.model_copy(update={"duration": max(workload.steps.duration, shortest_ns)})
    spec = load.spec.model_copy(update={"workload": workload.model_copy(update={"steps": steps})})
    step = steps_of(list(dataclasses.replace(load, spec=spec).run(first, 0)))[0]
    cpu = step.series["cpu_percent"]
    busy = sum(cpu) / len(cpu) if cpu else 0.0
    if busy <= 0.0:
        raise UsageError(f"the server does nothing at {first:g} attempts a second; raise workload.steps.initial")
    return first * 100.0 / busy


class _Mapper:
    """``map`` over worker processes; Ctrl-C ends the search with what it has."""

    def __init__(self, jobs: int, progress: Progress) -> None:
        self.jobs = jobs
        self.progress = progress
        self.interrupted = False
        self.runs = 0

    def __call__(self, function: Callable[[int], bool], numbers: range, /) -> Iterable[bool]:
        """Return the function's results in the order of the numbers."""
        try:
            results = Workers(function, self.jobs).in_order(numbers)
        except KeyboardInterrupt:
            self.interrupted = True
            raise BudgetUsedUp from None
        level: Any = getattr(function, "args", ("?",))[0]
        for _ in results:
            self.runs += 1
            self.progress.advance(f"at {level:g} SAPS")
        return results


def _round_step(value: float) -> float:
    """Return 1, 2 or 5 times a power of ten, close to a value."""
    power = 10.0 ** (len(str(int(value))) - 1) if value >= 1 else 0.1
    return min((power * k for k in (1, 2, 5, 10)), key=lambda step: abs(step - value))


def _down(value: float, step: float) -> float:
    return step * int(value / step)
