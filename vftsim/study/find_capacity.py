"""``vftsim capacity``: what a model carries, in the terms of its workload."""

from __future__ import annotations

from vftsim.composition.views import has_bench, rtp_of
from vftsim.errors import UsageError
from vftsim.study.capacity import sip_capacity
from vftsim.study.capacity_request import CapacityAnswer, CapacityRequest
from vftsim.study.model import Model
from vftsim.study.stream_capacity import stream_capacity


def find_capacity(model: Model, request: CapacityRequest) -> CapacityAnswer:
    """Return the answer: attempts a second of a benchmark, else media streams.

    Raises
    ------
    UsageError
        The model has no workload whose load could be raised, or something was asked for that it has not.
    """
    if has_bench(model.spec):
        return sip_capacity(model, request)
    if rtp_of(model.spec) is None:
        raise UsageError(f"'{model.label}' has no workload whose load could be raised (ims_bench, rtp)")
    return stream_capacity(model, request)
