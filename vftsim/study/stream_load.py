"""A media host at one load: so many media streams, and the calls that go with them.

The load is the number of media streams; calls go with them, in the proportion of the model file, because
a tenth of the calls of the study go through the media server (60 calls/s with 720 streams, Patnaik 2009, 6.4).
Phases and clocks of the first streams are the same at every load, and calls come at the same draws, only
denser: the replications are common random numbers.
"""

from __future__ import annotations

from vftsim.composition.model import MeasureSpec, ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.composition.views import CALLS, STREAMS, calls_of, loaded_by, streams_of, with_workload
from vftsim.errors import UsageError
from vftsim.study.resources import ceiling_pcpus, handling_domains

PILOT_STREAMS = 100
PILOT_NS = 200_000_000


class WithCalls:
    """Turns the number of streams, and the calls that go with them."""

    def at(self, spec: ModelSpec, level: float) -> ModelSpec:
        """Return a model with so many streams."""
        return at_streams(spec, level)


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


def saturating_streams(spec: ModelSpec, seed: int) -> float:
    """Return the streams that would fill the host or a domain, from a run with few: where to look.

    Domains without traffic and without drivers (CPU-bound guests) are left out: the scheduler decides how
    much of the host they keep.
    """
    streams = PILOT_STREAMS
    result = _pilot(spec, seed, streams)
    while result.drops and streams > 1:
        streams //= 10
        result = _pilot(spec, seed, streams)
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


def _pilot(spec: ModelSpec, seed: int, streams: int) -> RunRecord:
    warm_up_ns = spec.measure.warm_up
    measure = MeasureSpec(warm_up=warm_up_ns, duration=max(PILOT_NS, warm_up_ns))
    return Run(at_streams(spec, streams).model_copy(update={"measure": measure}), seed, 0).run()
