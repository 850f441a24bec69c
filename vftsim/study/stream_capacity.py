"""The media streams a host carries under a loss limit, as a stochastic root search.

A run at one load is within the limit if it loses at most that share of its media packets.  Losses come in
bursts, when the scheduler keeps a domain off its CPU for longer than a ring lasts, so runs at one load differ:
the capacity is the number of streams at which a run is within the limit with the required probability
(:mod:`vftsim.stats.rootsearch`), an interval.  It depends on the length of a run, as a burst that comes once
in ten seconds fails a fifth of runs of two.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from vftsim.errors import UsageError
from vftsim.stats import CapacityResult
from vftsim.study.capacity_request import CapacityRequest
from vftsim.study.kept import Kept
from vftsim.study.manifest import identity, manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.progress import Silent
from vftsim.study.replicate import check_study
from vftsim.study.resources import WatchedRun, from_rows, resource_table, to_rows, watch
from vftsim.study.results import rows
from vftsim.study.search_levels import SearchMapper, SearchSettings, answer_columns, probe_table, search_levels
from vftsim.study.stream_load import StreamLoad, StreamRun, calls_per_stream, saturating_streams
from vftsim.study.workers import Workers, checked_jobs

LOSS_LIMIT_PERCENT = 0.1
WATCHED_REPLICATIONS = 10
STREAM_SEARCH = SearchSettings(resolution_percent=5.0, runs_per_level=80, budget=300)
"""A run takes seconds, and the share of runs beyond the limit rises over a tenth of the load: finer levels
than these pass and fail by chance."""


@dataclass(frozen=True)
class StreamCapacity:
    """A capacity in media streams.

    Parameters
    ----------
    model : Model
    result : CapacityResult
    limit_percent : float
        Allowed loss of media packets in a run.
    settings : SearchSettings
    losses_percent : dict
        Loss of every run, by load.
    calls_per_stream : float
        Calls a second that go with a stream.
    watched_streams : float
        Load whose resources were watched: the lowest that failed, or the highest that passed if none did.
    resources : DataFrame
        Use of the resources there, the limiting one first; empty after an interruption.
    manifest : dict
    """

    model: Model
    result: CapacityResult
    limit_percent: float
    settings: SearchSettings
    losses_percent: dict[float, list[float]]
    calls_per_stream: float
    watched_streams: float
    resources: pd.DataFrame
    manifest: dict[str, Any]

    @property
    def interrupted(self) -> bool:
        """Whether the study was ended early."""
        return bool(self.manifest["state"] == "interrupted")

    def curve(self) -> pd.DataFrame:
        """Return one row a load: the runs beyond the limit, and their mean, least and largest loss.

        The loss has no interval: a load is left when its runs have decided it, which is when they lost much or
        little.
        """
        table = probe_table(self.result, self.settings.confidence, "streams")
        runs = [self.losses_percent[level] for level in table["streams"]]
        table["loss_percent_mean"] = [math.fsum(losses) / len(losses) for losses in runs]
        table["loss_percent_least"] = [min(losses) for losses in runs]
        table["loss_percent_largest"] = [max(losses) for losses in runs]
        return table

    def to_pandas(self) -> pd.DataFrame:
        """Return one row: the capacity with its interval."""
        return pd.DataFrame([{"capacity": "streams", **answer_columns(self.result)}])

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest,
            "capacity": rows(self.to_pandas()),
            "streams": {
                "loss_limit_percent": self.limit_percent,
                "probability": self.settings.probability,
                "calls_per_s_per_stream": self.calls_per_stream,
                "beyond_limit_by_load": rows(self.curve()),
                "watched_streams": self.watched_streams,
                "resources": rows(self.resources),
            },
        }

    def print_tables(self) -> None:
        """Print everything for people."""
        from vftsim.report.tables import print_streams  # noqa: PLC0415 - study and report know each other

        print_streams(self)


def stream_capacity(model: Model, request: CapacityRequest) -> StreamCapacity:
    """Search for the media streams that a host carries.

    Raises
    ------
    UsageError
        Something was asked for that a media host has not.
    Interrupted
        Ctrl-C before a single run was judged.
    """
    limit = _checked_limit(model, request)
    jobs = checked_jobs(request.jobs)
    check_study(1, request.seed, jobs)
    settings, started = request.settings(STREAM_SEARCH), utc_now()
    if settings.resolution is not None and settings.resolution != int(settings.resolution):
        raise UsageError(f"--resolution: a whole number of streams, got {settings.resolution:g}")
    load = StreamLoad(model.spec, request.seed, limit)
    ratio = calls_per_stream(model.spec)
    kept = Kept(request.store, identity(model, request.seed), asdict, lambda data: StreamRun(**data))
    mapper = SearchMapper(jobs, request.progress or Silent(), "streams", kept.at(judged_by=limit))
    result = search_levels(load, saturating_streams(load), settings, mapper, whole=True)
    # Runs of a batch beyond a level's decision are left out, as in the search: --jobs must not matter.
    losses = {p.level: [run.loss_percent for run in mapper.outcomes[p.level][: p.runs]] for p in result.probes}
    failed = [p.level for p in result.probes if p.level >= result.estimate.high]
    watched = failed[0] if failed else result.probes[-1].level
    resources, interrupted = pd.DataFrame(), mapper.interrupted
    if not interrupted:
        try:
            begin_ns = model.spec.measure.warm_up
            window_ns = begin_ns, begin_ns + model.spec.measure.duration
            tasks = {n: WatchedRun(load, watched, n, *window_ns) for n in range(WATCHED_REPLICATIONS)}
            of_watching = Kept(kept.store, kept.identity, to_rows, from_rows).at(watched=watched)
            uses = of_watching.in_order(Workers(watch, jobs, mapper.progress.say), tasks)
            resources = resource_table(uses, settings.confidence)
        except KeyboardInterrupt:
            interrupted = True
    said = manifest(
        [model], command="capacity", seed=request.seed, replications=range(max(p.runs for p in result.probes)),
        wanted=settings.runs_per_level, jobs=jobs, started=started,
        state="interrupted" if interrupted else "finished",
    )  # fmt: skip
    return StreamCapacity(model, result, limit, settings, losses, ratio, watched, resources, said)


def _checked_limit(model: Model, request: CapacityRequest) -> float:
    """Refuse what a media host has not; return the loss limit."""
    what = f"'{model.label}' has media streams"
    if request.method == "ramp":
        raise UsageError(f"--method ramp: {what}, whose capacity in media streams is found by search")
    request.refuse({"ihs_limit_percent": "--ihs-limit"}, f"{what}; its limit is --loss-limit")
    stop = {"after_stop_ns": "--after-stop", "window_ns": "--window"}
    request.refuse(stop, f"{what}, whose clients never repeat anything: a stop leaves no overload behind")
    request.refuse({"replications": "--replications"}, "a search runs as many as it needs; --budget bounds them")
    limit = LOSS_LIMIT_PERCENT if request.loss_limit_percent is None else request.loss_limit_percent
    if not 0.0 <= limit < 100.0:
        raise UsageError(f"--loss-limit: from 0 to below 100 %, got {limit:g}")
    return limit
