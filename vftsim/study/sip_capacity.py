"""Capacity of a SIP benchmark: by the lab's ramp, or by a search at constant load, also after a stop.

The ramp of the laboratory mixes two things: what load the server carries, and how the load was raised.
In a search single runs at constant load are judged, and the capacity is the load at which a run stays within the
IHS limit with the required probability (:mod:`vftsim.stats.rootsearch`), as an interval.

Metastability: retransmissions keep an overloaded server overloaded.  The failover-safe capacity is the
largest load from which the server comes back, with the required probability, after a stop of given length.
A stop of 64 T1 = 32 s fills every client's retransmission timers (RFC 3261, timers B and F), more cannot
be waiting: the load that survives it is the one at which a collapsed server recovers by itself.
"""

from __future__ import annotations

from dataclasses import asdict, replace

from vftsim.composition.views import ramp_of, with_ramp
from vftsim.errors import UsageError
from vftsim.study.capacity import CapacityStudy, searched
from vftsim.study.capacity_bands import ramp_band
from vftsim.study.capacity_request import OF_A_RAMP, CapacityRequest
from vftsim.study.constant_load import ConstantLoad, Stop
from vftsim.study.level_search import SAPS, LevelStudy, LoadNames
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.progress import Progress
from vftsim.study.ramp import ramp_capacity_of
from vftsim.study.replicate import DEFAULT_REPLICATIONS, DEFAULT_SEED, replicate
from vftsim.study.results import CONFIDENCE
from vftsim.study.search_levels import SearchSettings
from vftsim.study.store import Store
from vftsim.study.tipping import Experience, experience_of
from vftsim.study.workers import Interrupted, checked_jobs

COLLAPSED_NS = 32_000_000_000
PILOT_NS = 60_000_000_000


def sip_capacity(model: Model, request: CapacityRequest) -> CapacityStudy:
    """Run the study that was asked for; the lab's ramp if nothing was said.

    Raises
    ------
    UsageError
        Something was asked for that a SIP lab, or the chosen method, has not.
    Interrupted
        Ctrl-C before anything was judged.
    """
    request.refuse({"loss_limit_percent": "--loss-limit"}, f"'{model.label}' has a benchmark; its limit is --ihs-limit")
    if request.after_stop_ns is None:
        request.refuse({"window_ns": "--window"}, "goes with --after-stop")
    if request.method == "search" or request.after_stop_ns is not None:
        request.refuse(OF_A_RAMP, "tells of a ramp's steps; a search has none")
        request.refuse({"replications": "--replications"}, "a search runs as many as it needs; --budget bounds them")
        return searched(
            model,
            request,
            request.settings(SearchSettings()),
            constant_load_studies(model, request.seed, request.ihs_limit_percent, _stop(request)),
        )
    of_a_search = {"probability": "--probability", "resolution": "--resolution", "budget": "--budget"}
    request.refuse(of_a_search, "goes with --method search")
    replications = DEFAULT_REPLICATIONS if request.replications is None else request.replications
    return ramp_study(
        model,
        replications,
        request.seed,
        request.jobs,
        ihs_limit_percent=request.ihs_limit_percent,
        known=experience_of(request.labs, request.headroom_percent),
        prices=request.prices,
        progress=request.progress,
        store=request.store,
    )


def _stop(request: CapacityRequest) -> Stop | None:
    if request.after_stop_ns is None:
        return None
    if request.after_stop_ns == 0:
        raise UsageError("--after-stop: a stop takes time, e.g. 2s")
    return Stop(request.after_stop_ns) if request.window_ns is None else Stop(request.after_stop_ns, request.window_ns)


def constant_load_studies(
    model: Model, seed: int, ihs_limit_percent: float | None, stop: Stop | None
) -> dict[str, LevelStudy]:
    """Return what is searched: the capacity at constant load; with a stop the failover-safe capacity instead."""
    limit = ramp_of(model.spec).limit_percent if ihs_limit_percent is None else ihs_limit_percent
    if not 0.0 <= limit < 100.0:
        raise UsageError(f"an IHS limit is from 0 to below 100 %, got {limit:g}")
    saturated = saturating_saps(ConstantLoad(model.spec, seed, limit))

    def study(title: str, stop: Stop | None) -> LevelStudy:
        of_stop = {"stop_ns": stop and stop.length_ns, "window_ns": stop and stop.window_ns}
        names = LoadNames(
            SAPS,
            "SAPS",
            title,
            f"within {limit:g} % IHS{', a window after the stop' if stop else ''}",
            {"ihs_limit_percent": limit, **of_stop},
            axis="attempts a second",
            judged_s=None if stop is None else (stop.observed_ns / 1e9, stop.window_ns / 1e9),
        )
        load = ConstantLoad(model.spec, seed, limit, stop)
        return LevelStudy(
            load, names, saturated, {"ihs": limit, "stop": stop and asdict(stop)}, is_watched=stop is None
        )

    if stop is None:
        return {"steady": study("Capacity at constant load", None)}
    long_s, collapsed = COLLAPSED_NS / 1e9, replace(stop, length_ns=COLLAPSED_NS)
    return {
        "after_stop": study(f"Failover-safe capacity: recovers after a stop of {stop.length_ns / 1e9:g} s", stop),
        "recovery": study(f"Load from which a collapsed server (stop of {long_s:g} s) recovers by itself", collapsed),
    }


def ramp_study(
    model: Model,
    replications: int = DEFAULT_REPLICATIONS,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    ihs_limit_percent: float | None = None,
    known: Experience | None = None,
    prices: bool = False,
    progress: Progress | None = None,
    store: Store | None = None,
) -> CapacityStudy:
    """Run the lab's ramp with many seeds; with ``prices``, once more at each end of each price of a mechanism.

    Raises
    ------
    Interrupted
        Ctrl-C before one ramp was done.
    """
    ramp_of(model.spec)
    started, workers = utc_now(), checked_jobs(jobs)
    ramp_capacity_of(model, [], ihs_limit_percent, known=known)  # refuses before the work what cannot be judged
    (done,) = replicate([model], replications, seed, workers, progress=progress, store=store)
    if not done.records:
        raise Interrupted("no replication had finished")
    ramp = ramp_capacity_of(model, done.ordered(), ihs_limit_percent, CONFIDENCE, known)
    records = sorted(done.records)
    said = manifest(
        [model], "capacity", seed, records, workers, started, wanted=replications, interrupted=done.interrupted
    )
    band = None
    if prices and not done.interrupted:
        band = ramp_band(model, seed, workers, ihs_limit_percent, progress=progress, store=store)
    return CapacityStudy(said, ramp=ramp, band=band)


def saturating_saps(load: ConstantLoad) -> float:
    """Return the load that would fill the CPU, from one run at the model's first step: where to look."""
    ramp = ramp_of(load.spec)
    first = ramp.first_load
    spec = with_ramp(load.spec, ramp.with_times(ramp.transient_ns, max(ramp.step_ns(), PILOT_NS)))
    cpu = replace(load, spec=spec).run(first, 0).steps()[0].samples("cpu")
    busy = sum(cpu) / len(cpu) if cpu else 0.0
    if busy <= 0.0:
        raise UsageError(f"the server does nothing at {first:g} attempts a second; raise the initial load of its steps")
    return first * 100.0 / busy
