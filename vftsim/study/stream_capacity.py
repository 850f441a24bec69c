"""The media streams a host carries under a loss limit, as a stochastic root search.

A run at one load is within the limit if it loses at most that share of its media packets.  Losses come in
bursts, when the scheduler keeps a domain off its CPU for longer than a ring lasts, so runs at one load differ:
the capacity is the number of streams at which a run is within the limit with the required probability
(:mod:`vftsim.stats.rootsearch`), an interval.  It depends on the length of a run, as a burst that comes once
in ten seconds fails a fifth of runs of two.
"""

from __future__ import annotations

from vftsim.composition.views import CALLS, STREAMS, loaded_by
from vftsim.errors import UsageError
from vftsim.study.capacity import CapacityStudy, searched
from vftsim.study.capacity_request import OF_A_RAMP, CapacityRequest
from vftsim.study.figures.catalogue import one_figure
from vftsim.study.knob_capacity import KnobLoad
from vftsim.study.level_search import LevelStudy, LoadNames
from vftsim.study.model import Model
from vftsim.study.objective import Objective
from vftsim.study.search_levels import SearchSettings
from vftsim.study.stream_load import WithCalls, calls_per_stream, saturating_streams

LOSS_LIMIT_PERCENT = 0.1
STREAM_SEARCH = SearchSettings(resolution_percent=5.0, runs_per_level=80, budget=300)
"""A run takes seconds, and the share of runs beyond the limit rises over a tenth of the load: finer levels
than these pass and fail by chance."""


def stream_capacity(model: Model, request: CapacityRequest) -> CapacityStudy:
    """Search for the media streams that a host carries.

    Raises
    ------
    UsageError
        Something was asked for that a media host has not.
    Interrupted
        Ctrl-C before a single run was judged.
    """
    limit = _checked_limit(model, request)
    if request.resolution is not None and request.resolution != int(request.resolution):
        raise UsageError(f"--resolution: a whole number of streams, got {request.resolution:g}")
    spec, calls = model.spec, calls_per_stream(model.spec)
    offered = tuple(name for kind in (STREAMS, CALLS) if (name := loaded_by(spec, kind)))
    names = LoadNames(
        "streams",
        "media streams",
        "Capacity",
        f"lose at most {limit:g} % of their media packets",
        {"loss_limit_percent": limit, "calls_per_s_per_stream": calls},
        {"calls/s": calls},
        is_counted=True,
    )
    loss = Objective(one_figure(f"{offered[0]}.loss", spec), "<=", limit)
    load = KnobLoad(spec, request.seed, WithCalls(), (loss,), offered)
    study = LevelStudy(load, names, saturating_streams(spec, request.seed), limit)
    return searched(model, request, request.settings(STREAM_SEARCH), {"streams": study})


def _checked_limit(model: Model, request: CapacityRequest) -> float:
    """Refuse what a media host has not; return the loss limit."""
    what = f"'{model.label}' has media streams"
    if request.method == "ramp":
        raise UsageError(f"--method ramp: {what}, whose capacity in media streams is found by search")
    request.refuse({"ihs_limit_percent": "--ihs-limit"}, f"{what}; its limit is --loss-limit")
    request.refuse(OF_A_RAMP, f"{what}; only the ramp of a SIP benchmark has it")
    stop = {"after_stop_ns": "--after-stop", "window_ns": "--window"}
    request.refuse(stop, f"{what}, whose clients never repeat anything: a stop leaves no overload behind")
    request.refuse({"replications": "--replications"}, "a search runs as many as it needs; --budget bounds them")
    limit = LOSS_LIMIT_PERCENT if request.loss_limit_percent is None else request.loss_limit_percent
    if not 0.0 <= limit < 100.0:
        raise UsageError(f"--loss-limit: from 0 to below 100 %, got {limit:g}")
    return limit
