"""One run of a media host at one load: how many of the media packets are lost.

The load is the number of media streams; calls go with them, in the proportion of the model file, because
a tenth of the calls of the study go through the media server (60 calls/s with 720 streams, Patnaik 2009, 6.4).
Phases and clocks of the first streams are the same at every load, and calls come at the same draws, only
denser: the replications are common random numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from vftsim.errors import UsageError
from vftsim.media.run import MediaResult, run_media
from vftsim.media.system import MediaSystem

PILOT_STREAMS = 100
PILOT_NS = 200_000_000
CFS_PERIOD_NS = 100_000_000


@dataclass(frozen=True, slots=True)
class StreamRun:
    """What one run lost; true for a run within the limit."""

    loss_percent: float
    is_within: bool

    def __bool__(self) -> bool:
        return self.is_within


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """Tells whether a replication with so many streams stays within the limit; what a capacity search calls.

    Parameters
    ----------
    spec : MediaSystem
    seed : int
    limit_percent : float
        Allowed loss of media packets.
    """

    spec: MediaSystem
    seed: int
    limit_percent: float

    def __call__(self, streams: float, replication: int) -> StreamRun:
        """Run and judge; a run that neither delivers nor drops anything has failed."""
        media = self.run(streams, replication).media
        loss_percent = 100.0 * media.loss_ratio if media.delivered + media.dropped else 100.0
        return StreamRun(loss_percent, loss_percent <= self.limit_percent)

    def run(self, streams: float, replication: int) -> MediaResult:
        """Return the measurements of a replication."""
        workload = self.spec.workload
        return run_media(at_streams(self.spec, streams), self.seed, replication, workload.duration, workload.warm_up)


def calls_per_stream(spec: MediaSystem) -> float:
    """Return the calls a second that go with a stream."""
    rtp, calls = spec.workload.rtp, spec.workload.signaling
    if rtp is None:
        raise UsageError("the model has no media streams: add workload.rtp")
    if calls is None or calls.calls_per_s == 0.0:
        return 0.0
    if rtp.streams == 0:
        raise UsageError(
            "workload.rtp.streams is 0, so nothing says how many calls go with a stream; "
            "give it a number, or take the calls away: --set workload.signaling=null"
        )
    return calls.calls_per_s / rtp.streams


def at_streams(spec: MediaSystem, streams: float) -> MediaSystem:
    """Return the spec with another number of streams, and the calls that go with them."""
    workload = spec.workload
    ratio = calls_per_stream(spec)
    assert workload.rtp is not None
    traffic: dict[str, object] = {"rtp": workload.rtp.model_copy(update={"streams": round(streams)})}
    if workload.signaling is not None:
        calls = {"calls_per_s": ratio * round(streams)}
        traffic["signaling"] = workload.signaling.model_copy(update=calls)
    return spec.model_copy(update={"workload": workload.model_copy(update=traffic)})


def saturating_streams(load: StreamLoad) -> float:
    """Return the streams that would fill the host or a domain, from a run with few: where to look.

    Domains without traffic and without drivers (CPU-bound guests) are left out: the scheduler decides how
    much of the host they keep.
    """
    spec = load.spec
    streams = PILOT_STREAMS
    result = _pilot(load, streams)
    while result.drops and streams > 1:
        streams //= 10
        result = _pilot(load, streams)
    used = result.domain_cpu
    per_stream = {name: used[name] / streams for name in handling_domains(spec) if used[name] > 0.0}
    if not per_stream:
        raise UsageError("no domain does anything for a media stream; see domains.*.applications")
    most = [spec.host.pcpus / sum(per_stream.values())]
    for name, cost in per_stream.items():
        domain = spec.domains[name]
        pinned = spec.host.pcpus if domain.affinity is None else len(domain.affinity)
        most.append(min(ceiling_pcpus(spec, name), domain.vcpus, pinned) / cost)
    return min(most)


def _pilot(load: StreamLoad, streams: int) -> MediaResult:
    warm_up_ns = load.spec.workload.warm_up
    return run_media(at_streams(load.spec, streams), load.seed, 0, max(PILOT_NS, warm_up_ns), warm_up_ns)


def handling_domains(spec: MediaSystem) -> list[str]:
    """Return the domains a packet passes: the driver domain and those with traffic."""
    targets = [flow.to for flow in (spec.workload.rtp, spec.workload.signaling) if flow is not None]
    return [name for name in spec.domains if name == spec.driver_domain or name in targets]


def ceiling_pcpus(spec: MediaSystem, name: str) -> float:
    """Return the pCPUs that a domain's cap, limit or quota leaves it, as far as its scheduler reads them."""
    domain = spec.domains[name]
    kind = spec.host.scheduler.kind  # type: ignore[attr-defined]
    if kind in {"credit", "credit2"} and domain.cap:
        return domain.cap / 100.0
    if kind == "esxi" and domain.limit:
        return domain.limit / 100.0
    if kind == "cfs" and domain.quota:
        return domain.quota / (domain.period or CFS_PERIOD_NS)
    return math.inf
