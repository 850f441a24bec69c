"""``vftsim capacity``: what a model carries, in the terms of its workload."""

from __future__ import annotations

from vftsim.composition.views import streams_of
from vftsim.study.capacity import CapacityStudy
from vftsim.study.capacity_bands import bands_take, runs_of_bands
from vftsim.study.capacity_request import CapacityRequest
from vftsim.study.constant_load import Stop, at_load
from vftsim.study.estimate import Needs, needs_of
from vftsim.study.knob_capacity import KNOB_SEARCH, knob_capacity
from vftsim.study.model import Model
from vftsim.study.replicate import DEFAULT_REPLICATIONS
from vftsim.study.search_levels import SearchSettings
from vftsim.study.sip_capacity import sip_capacity
from vftsim.study.stream_capacity import STREAM_SEARCH, stream_capacity


def capacity_takes(model: Model, request: CapacityRequest) -> Needs:
    """Return what a study takes; a search its whole budget, at the load that the model begins with.

    What cannot be studied takes nothing: :func:`find_capacity` says why.
    """
    spec, of_prices = model.spec, runs_of_bands(model) if request.prices else 0
    if _turns_a_knob(model, request):
        return needs_of(spec).times(request.settings(KNOB_SEARCH).budget + of_prices)
    if spec.ramp is None:
        return needs_of(spec).times(request.settings(STREAM_SEARCH).budget + of_prices)
    if request.method != "search" and request.after_stop_ns is None:
        found = needs_of(spec).times(request.replications or DEFAULT_REPLICATIONS)
        return found + bands_take(model) if request.prices else found
    stop = None if not request.after_stop_ns else Stop(request.after_stop_ns)
    at_first = at_load(spec, spec.ramp.first_load, stop)
    searches = 1 if stop is None else 2  # the second for the load from which a collapsed server recovers
    return needs_of(at_first).times(searches * (request.settings(SearchSettings()).budget + of_prices))


def find_capacity(model: Model, request: CapacityRequest) -> CapacityStudy:
    """Return the answer: in the key that was asked for, else attempts a second of a benchmark, else media streams.

    Raises
    ------
    UsageError
        The model has no workload whose load could be raised, or something was asked for that it has not.
    """
    if _turns_a_knob(model, request):
        return knob_capacity(model, request)
    if model.spec.ramp is not None:
        return sip_capacity(model, request)
    return stream_capacity(model, request)


def _turns_a_knob(model: Model, request: CapacityRequest) -> bool:
    if request.vary is not None or request.objectives:
        return True
    return model.spec.ramp is None and streams_of(model.spec) is None
