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
from dataclasses import dataclass
from typing import TYPE_CHECKING

from vftsim.composition.views import ramp_of, with_ramp
from vftsim.errors import UsageError
from vftsim.stats import CapacityResult
from vftsim.study.constant_load import ConstantLoad, Stop, at_load
from vftsim.study.frames import frame
from vftsim.study.judged_run import JudgedRun
from vftsim.study.kept import Kept
from vftsim.study.manifest import identity
from vftsim.study.model import Model
from vftsim.study.offered import Missing
from vftsim.study.progress import Progress, Silent
from vftsim.study.resources import WatchedRun, from_rows, resource_table, to_rows, watch
from vftsim.study.search_levels import SearchMapper, SearchSettings, probe_table, search_levels
from vftsim.study.store import Store
from vftsim.study.workers import Workers

if TYPE_CHECKING:
    import pandas as pd

COLLAPSED = Stop(length_ns=32_000_000_000)
WATCHED_REPLICATIONS = 10
PILOT_NS = 60_000_000_000


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
    missing : Missing, optional
        What was not offered at the lowest load that failed.
    """

    model: Model
    result: CapacityResult
    limit_percent: float
    settings: SearchSettings
    stop: Stop | None
    resources: pd.DataFrame
    interrupted: bool = False
    missing: Missing | None = None

    @property
    def loads(self) -> list[float]:
        """Loads at which runs were judged."""
        return [probe.level for probe in self.result.probes]

    def to_pandas(self) -> pd.DataFrame:
        """Return the curve: for each load the runs beyond the limit, as in :func:`probe_table`."""
        return probe_table(self.result, self.settings.confidence, "load_saps")


def search_capacity(
    model: Model,
    seed: int,
    jobs: int,
    settings: SearchSettings,
    *,
    limit_percent: float | None = None,
    stop: Stop | None = None,
    progress: Progress | None = None,
    store: Store | None = None,
) -> SearchCapacity:
    """Search for the largest load that a SIP lab carries, or survives a stop at.

    Raises
    ------
    Interrupted
        Ctrl-C before a single run was judged.
    """
    spec, ramp = model.spec, ramp_of(model.spec)
    limit = ramp.limit_percent if limit_percent is None else limit_percent
    if not 0.0 <= limit < 100.0:
        raise UsageError(f"an IHS limit is from 0 to below 100 %, got {limit:g}")
    load = ConstantLoad(spec, seed, limit, stop)
    saturated = saturating_saps(ConstantLoad(spec, seed, limit))
    of_stop = None if stop is None else dataclasses.asdict(stop)
    said = {**identity(model, seed), "stop": of_stop}
    kept = Kept(store, said, JudgedRun.to_plain, JudgedRun.from_plain)
    judged_by = {"limit": limit, "offered": True}
    mapper = SearchMapper(jobs, progress or Silent(), "SAPS", kept.at(judged_by=judged_by))
    result, missing = search_levels(load, saturated, settings, mapper)
    resources = frame()
    if stop is None and not mapper.interrupted and result.estimate.mean > 0:
        watched = result.estimate.mean
        window_ns = ramp_of(at_load(spec, watched)).first_window_ns()
        tasks = {n: WatchedRun(load, watched, n, *window_ns) for n in range(WATCHED_REPLICATIONS)}
        of_watching = Kept(kept.store, kept.identity, to_rows, from_rows).at(watched=watched)
        uses = of_watching.in_order(Workers(watch, jobs, mapper.progress.say), tasks)
        resources = resource_table(uses, settings.confidence)
    return SearchCapacity(model, result, limit, settings, stop, resources, mapper.interrupted, missing)


def saturating_saps(load: ConstantLoad) -> float:
    """Return the load that would fill the CPU, from one run at the model's first step: where to look."""
    ramp = ramp_of(load.spec)
    first = ramp.first_load
    spec = with_ramp(load.spec, ramp.with_times(ramp.transient_ns, max(ramp.step_ns(), PILOT_NS)))
    cpu = dataclasses.replace(load, spec=spec).run(first, 0).steps()[0].samples("cpu")
    busy = sum(cpu) / len(cpu) if cpu else 0.0
    if busy <= 0.0:
        raise UsageError(f"the server does nothing at {first:g} attempts a second; raise the initial load of its steps")
    return first * 100.0 / busy
