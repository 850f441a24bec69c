"""One run of a media host at one load: how many of the media packets are lost.

The load is the number of media streams; calls go with them, in the proportion of the model file, because
a tenth of the calls of the study go through the media server (60 calls/s with 720 streams, Patnaik 2009, 6.4).
Phases and clocks of the first streams are the same at every load, and calls come at the same draws, only
denser: the replications are common random numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

from vftsim.composition.model import MeasureSpec, ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.composition.views import CALLS, STREAMS, calls_of, loaded_by, media_of, streams_of, with_workload
from vftsim.errors import UsageError
from vftsim.study.judged_run import JudgedRun, short_offer
from vftsim.study.resources import ceiling_pcpus, handling_domains

PILOT_STREAMS = 100
PILOT_NS = 200_000_000


@dataclass(frozen=True, slots=True)
class StreamLoad:
    """Tells whether a replication with so many streams stays within the limit; what a capacity search calls.

    Parameters
    ----------
    spec : ModelSpec
    seed : int
    limit_percent : float
        Allowed loss of media packets.
    """

    spec: ModelSpec
    seed: int
    limit_percent: float

    def __call__(self, level: float, replication: int) -> JudgedRun:
        """Run and judge; a run that neither delivers nor drops anything has failed."""
        record = self.run(level, replication)
        media = media_of(self.spec, record)
        loss_percent = 100.0 * media.loss_ratio if media.delivered + media.dropped else 100.0
        loads = [name for key in (STREAMS, CALLS) if (name := loaded_by(self.spec, key))]
        is_within = loss_percent <= self.limit_percent
        return JudgedRun({"loss_percent": loss_percent}, is_within, short_offer(record, loads))

    def run(self, streams: float, replication: int) -> RunRecord:
        """Return the measurements of a replication."""
        return self.prepare(streams, replication).run()

    def prepare(self, level: float, replication: int) -> Run:
        """Return the run, ready to begin."""
        return Run(at_streams(self.spec, level), self.seed, replication)


def calls_per_stream(spec: ModelSpec) -> float:
    """Return the calls a second that go with a stream."""
    rtp, calls = streams_of(spec), calls_of(spec)
    if rtp is None:
        raise UsageError("the model has no media streams: add a workload of kind rtp")
    if calls is None or calls.calls_per_s == 0.0:
        return 0.0
    if rtp.streams == 0:
        raise UsageError(
            "streams is 0, so nothing says how many calls go with a stream; "
            f"give it a number, or take the calls away: --set workloads.{loaded_by(spec, CALLS)}=null"
        )
    return float(calls.calls_per_s / rtp.streams)


def at_streams(spec: ModelSpec, streams: float) -> ModelSpec:
    """Return the spec with another number of streams, and the calls that go with them."""
    ratio = calls_per_stream(spec)
    name, rtp, calls = loaded_by(spec, STREAMS), streams_of(spec), calls_of(spec)
    assert name is not None
    assert rtp is not None
    spec = with_workload(spec, name, rtp.model_copy(update={"streams": round(streams)}))
    if calls is None:
        return spec
    of_calls = loaded_by(spec, CALLS) or ""
    return with_workload(spec, of_calls, calls.model_copy(update={"calls_per_s": ratio * round(streams)}))


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
    used = result.pcpus()
    per_stream = {name: used[name] / streams for name in handling_domains(spec) if used[name] > 0.0}
    if not per_stream:
        raise UsageError("no domain does anything for a media stream; see domains.*.applications")
    specs = spec.expanded()
    most = []
    for name, host in spec.hosts.items():
        on_it = [cost for domain, cost in per_stream.items() if spec.host_of(specs[domain]) == name]
        if on_it:
            most.append(host.pcpus / sum(on_it))
    for name, cost in per_stream.items():
        domain = specs[name]
        pcpus = spec.hosts[spec.host_of(domain)].pcpus
        pinned = pcpus if domain.affinity is None else len(domain.affinity)
        most.append(min(ceiling_pcpus(spec, name), domain.vcpus, pinned) / cost)
    return min(most)


def _pilot(load: StreamLoad, streams: int) -> RunRecord:
    warm_up_ns = load.spec.measure.warm_up
    measure = MeasureSpec(warm_up=warm_up_ns, duration=max(PILOT_NS, warm_up_ns))
    spec = at_streams(load.spec, streams).model_copy(update={"measure": measure})
    return Run(spec, load.seed, 0).run()
