"""``vftsim capacity``: what a model carries, in the terms of its workload.

**Attempts a second of a SIP benchmark.** The ramp of the laboratory mixes two things: what load the server carries,
and how the load was raised.  In a search single runs at constant load are judged, and the capacity is the load at
which a run stays within the IHS limit with the required probability (:mod:`vftsim.stats.rootsearch`), as an interval.
Metastability: retransmissions keep an overloaded server overloaded.  The failover-safe capacity is the largest load
from which the server comes back, with the required probability, after a stop of given length.  A stop of 64 T1 = 32 s
fills every client's retransmission timers (RFC 3261, timers B and F), more cannot be waiting: the load that survives
it is the one at which a collapsed server recovers by itself.

**Media streams of a host under a loss limit.**  A run is within the limit if it loses at most that share of its media
packets.  Losses come in bursts, when the scheduler keeps a domain off its CPU for longer than a ring lasts, so runs at
one load differ, and the capacity depends on the length of a run: a burst that comes once in ten seconds fails a fifth
of runs of two.  Calls go with the streams in the proportion of the model file, because a tenth of the calls of the
study go through the media server (60 calls/s with 720 streams, Patnaik 2009, 6.4).  Phases and clocks of the first
streams are the same at every load, and calls come at the same draws, only denser: common random numbers.

**The largest value of any key** at which runs still meet what is asked, or the smallest of one that makes it easier:
``vftsim capacity net-kvm --vary workloads.web.rate --objective 'web.answered >= 90'``.  A workload declares what its
load is and what its clients ask for (:class:`~vftsim.workloads.parts.WorkloadSpec`); the user may turn another key, or
ask for something else.  Single runs at the model's value, at twice that and ever farther away say where the verdict
changes and which way; the search begins there, as finely as the values there ask for, and goes further where the answer
is not there.  If all of them fail, values between them are tried: where those alone do, their upper end is found.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, replace
from functools import partial
from statistics import fmean

from vftsim.composition.model import LONGEST_NS, MeasureSpec, ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run
from vftsim.composition.views import CALLS, STREAMS, calls_of, loaded_by, ramp_of, streams_of, with_ramp, with_workload
from vftsim.errors import UsageError
from vftsim.report.blocks import with_unit
from vftsim.spec.suggest import listing
from vftsim.study.designs.axes import Knob, knob_of
from vftsim.study.designs.capacity_answer import CapacityStudy, bands_take, ramp_band, runs_of_bands, searched
from vftsim.study.designs.capacity_by_ramp import Experience, experience_of, ramp_capacity_of
from vftsim.study.designs.capacity_by_search import SAPS
from vftsim.study.designs.capacity_search import (
    OF_A_RAMP,
    OF_A_STOP,
    CapacityRequest,
    JudgedLoad,
    LevelStudy,
    LoadNames,
    SearchSettings,
)
from vftsim.study.designs.constant_load import Stop, at_load, constant_load
from vftsim.study.designs.resources import ceiling_pcpus, handling_domains
from vftsim.study.execution import DEFAULT_REPLICATIONS, Execution, Replications
from vftsim.study.figures.names import (
    Address,
    Objective,
    at_any_count,
    catalogue,
    meant_by,
    one_figure,
    whole_objectives,
)
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.estimate import Needs, needs_of
from vftsim.study.runs.model import Model
from vftsim.study.runs.workers import Interrupted

PILOT_STREAMS = 100
_WELL_BELOW = 0.8
"""A share of the load that fills a benchmark's server: where something else is full below it, that is the limit."""
STREAM_PILOT_NS = 200_000_000


def calls_per_stream(spec: ModelSpec) -> float:
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
    if not (loads := _filling_loads(spec, result, streams)):
        raise UsageError("no domain does anything for a media stream; see domains.*.applications")
    return min(loads)


def _filling_loads(spec: ModelSpec, record: RunRecord, load: float) -> list[float]:
    """Return the loads that would fill each host, and each domain that requests need, from a run at a low one."""
    used, specs = record.pcpus(), spec.expanded()
    each = {name: used[name] / load for name in handling_domains(spec) if used[name] > 0.0}
    most = []
    for name, host in spec.hosts.items():
        on_it = [cost for domain, cost in each.items() if spec.host_of(specs[domain]) == name]
        if on_it:
            most.append(host.pcpus / math.fsum(on_it))
    for name, cost in each.items():
        domain = specs[name]
        pcpus = spec.hosts[spec.host_of(domain)].pcpus
        pinned = pcpus if domain.affinity is None else len(domain.affinity)
        most.append(min(ceiling_pcpus(spec, name), domain.vcpus, pinned) / cost)
    return most


def _pilot(spec: ModelSpec, seed: int, streams: int) -> RunRecord:
    warm_up_ns = spec.measure.warm_up
    measure = MeasureSpec(warm_up=warm_up_ns, duration=max(STREAM_PILOT_NS, warm_up_ns))
    return Run(at_streams(spec, streams).model_copy(update={"measure": measure}), seed, 0).run()


STEADY_SEARCH = SearchSettings(resolution_percent=5.0, runs_per_level=80, budget=300)
"""Of what is no benchmark: a run takes seconds, and the share of runs beyond the limit rises over a tenth of the load.
Finer levels than these pass and fail by chance."""
_ABOVE_OWN = 2.0
_COUNT = ".count"
_BUDGETED = "a search runs as many as it needs; --budget bounds them"


def meets(record: RunRecord, objectives: Sequence[Objective]) -> tuple[dict[str, float], bool]:
    """Judge a run by objectives on whole addresses of figures: return these, and whether all objectives are met.

    Of a figure that a run has once for each copy of a domain, the worst.
    """
    summary, judged = Summary([(0, record)]), dict[str, float]()
    for objective in objectives:
        names = at_any_count(objective.figure, lambda name: bool(summary.find(name)))
        judged[objective.figure] = objective.worst(list(map(summary.of_run, names)))
    return judged, all(objective.holds(judged[objective.figure]) for objective in objectives)


def knob_capacity(model: Model, request: CapacityRequest, execution: Execution) -> CapacityStudy:
    """Search for the last value that does of the knob that was asked for, or that the model's first workload declares.

    That is the largest, or the smallest where larger ones make it easier.
    """
    if request.method == "ramp":
        raise UsageError("--method ramp: only a SIP benchmark has steps; here the capacity is found by search")
    request.refuse("the limit is said with --objective here", "ihs_limit_percent", "loss_limit_percent")
    request.refuse("only the ramp of a SIP benchmark has it", *OF_A_RAMP)
    request.refuse("only a SIP benchmark has a stop", *OF_A_STOP)
    request.refuse(_BUDGETED, "replications")
    key = _key(model, request)
    knob = knob_of(model.spec, key)
    objectives = whole_objectives(_texts(model.spec, key, request), [model.spec])
    if not objectives:
        leading = [address for address in catalogue(model.spec) if address.leads]
        such_as = _such_as(leading[0]) if leading else "FIGURE <= NUMBER"
        raise UsageError(
            f"--vary {key}: say what a run must achieve, such as --objective '{such_as}'; "
            f"a run has: {listing([address.text for address in leading])}"
        )
    meeting = " and ".join(str(objective) for objective in objectives)
    unit = f"{knob.unit} " if knob.unit else ""
    details = {"unit": knob.unit, "objectives": [asdict(objective) for objective in objectives]}
    sort, _, rest = key.partition(".")
    loaded = rest.partition(".")[0] if sort == "workloads" else ""
    offered = tuple(model.spec.drivers_of(loaded)) if loaded else ()
    beside = tuple(name for name in model.spec.workloads if name != loaded)
    fewest = 0 if request.objectives else model.spec.workloads[loaded].fewest_judged
    is_load = loaded and rest == f"{loaded}.{model.spec.workloads[loaded].load_key}"
    bearers = model.spec.workloads[loaded].bearers if is_load else ""
    names = LoadNames(
        key,
        f"{unit}({key}{bearers and f', of each of {bearers}'}{_of_copies(offered)})",
        "Capacity",
        f"have {meeting}",
        details,
        beside=beside,
        axis=with_unit(key, knob.unit),
        is_counted=knob.is_whole,
        fewest_judged=fewest,
        may_ease=bool(request.objectives),
        units={objective.figure: objective.unit for objective in objectives},
    )
    turned = partial(at_knob, knob=knob, objectives=objectives, workload=loaded if fewest else "")
    load = JudgedLoad(model.spec, execution.seed, turned, partial(meets, objectives=objectives), offered)
    study = LevelStudy(load, names, _ABOVE_OWN * knob.value, {"key": key, **details}, is_guessed=True)
    return searched(model, execution, request.settings(STEADY_SEARCH), {key: study}, prices=request.prices)


def _such_as(address: Address) -> str:
    """Return an objective on a figure, in words that only show the form."""
    sign = ">=" if address.entry.figure.better == "higher" else "<="
    return f"{address.text} {sign} 100 {address.entry.unit}".rstrip()


def at_knob(
    spec: ModelSpec, level: float, *, knob: Knob, objectives: Sequence[Objective], workload: str = ""
) -> ModelSpec:
    """Return the model at a level, measured until a workload has offered as much as its objectives are judged by.

    Refuses a level at which the model has nothing to judge: the third copy's delays where there are two.
    """
    turned = knob.at(spec, level)
    # Only how many copies there are changes which figures a model has, and a catalogue takes some milliseconds a run.
    addresses = catalogue(turned) if knob.key.endswith(_COUNT) else ()
    for objective in objectives if addresses else ():
        if not at_any_count(objective.figure, lambda name: bool(meant_by(name, addresses))):
            raise UsageError(f"{knob.key}: at {level:g} the model has no figure '{objective.figure}'")
    if not workload:
        return turned
    offering = turned.workloads[workload].judged(turned.measure.duration)
    turned = with_workload(turned, workload, offering)
    offered_ns = round(offering.fewest_judged / (offering.attempts_per_s or math.inf) * 1e9)
    needed_ns = max(offered_ns, 2 * offering.test_ns())  # what a test begins last has time to end; it ends the run
    if needed_ns <= turned.measure.duration:
        return turned
    measure = turned.measure.model_copy(update={"duration": min(needed_ns, LONGEST_NS)})
    return turned.model_copy(update={"measure": measure})


def _key(model: Model, request: CapacityRequest) -> str:
    """Return the key to turn: the one asked for, else the load of a workload of which the objectives are.

    If none of these declares one: of the first that does, one that says what its clients ask for before the others.
    """
    if request.vary is not None:
        return request.vary
    spec = model.spec
    owners = {objective.figure.split(".")[1] for objective in whole_objectives(request.objectives, [spec])}
    judged = {name for name in spec.workloads if owners & {name, *spec.drivers_of(name)}}
    having = {name: workload for name, workload in spec.workloads.items() if workload.load_key}
    if not having:
        has = "plays its steps, judged by --ihs-limit" if spec.ramp else "has no load that could be raised"
        raise UsageError(f"'{model.label}' {has}; for an objective --vary names a key to turn")
    having = {name: having[name] for name in having if name in judged} or having
    name = next((name for name, workload in having.items() if workload.objectives), next(iter(having)))
    return f"workloads.{name}.{having[name].load_key}"


def _texts(spec: ModelSpec, key: str, request: CapacityRequest) -> Sequence[str]:
    """Return the objectives as they are written: those asked for, else what the clients of the turned load ask for."""
    if request.objectives:
        return request.objectives
    turned = [(n, each.objectives) for n, each in spec.workloads.items() if key == f"workloads.{n}.{each.load_key}"]
    by_driver = [(driver, texts) for name, texts in turned for driver in spec.drivers_of(name)]
    of_load = [f"workloads.{driver}.{text}" for driver, texts in by_driver for text in texts]
    return of_load + of_disks(spec) if of_load else []


def of_disks(spec: ModelSpec) -> list[str]:
    """Return what the disks of services must be found to have done: a page cache hides that one does not keep up.

    Jobs fill a page cache whatever the load.
    """
    domains = {name: spec.expanded()[name] for name in handling_domains(spec)}
    return [
        f"domains.{name}.disks.{key}.{text}"
        for name, domain in domains.items()
        if all(program.speaks for program in domain.applications.values())
        for key, disk in domain.disks.items()
        for text in disk.objectives
    ]


LOSS_LIMIT_PERCENT = 0.1


def stream_capacity(model: Model, request: CapacityRequest, execution: Execution) -> CapacityStudy:
    """Search for the media streams that a host carries; refuse what was asked for and it has not."""
    limit = _checked_limit(model, request)
    if request.resolution is not None and request.resolution != int(request.resolution):
        raise UsageError(f"--resolution: a whole number of streams, got {request.resolution:g}")
    spec, calls = model.spec, calls_per_stream(model.spec)
    loaded = [name for key in (STREAMS, CALLS) if (name := loaded_by(spec, key))]
    offered = tuple(driver for name in loaded for driver in spec.drivers_of(name))
    carriers = tuple(spec.drivers_of(loaded[0]))
    losses = tuple(Objective(one_figure(f"workloads.{each}.loss", spec), "<=", limit) for each in carriers)
    names = LoadNames(
        "streams",
        f"media streams{_of_copies(carriers)}",
        "Capacity",
        f"lose at most {limit:g} % of their media packets",
        {"loss_limit_percent": limit, "calls_per_s_per_stream": calls},
        {"calls/s": calls},
        beside=tuple(name for name in spec.workloads if name not in loaded),
        is_counted=True,
        units={loss.figure: "%" for loss in losses},
    )
    load = JudgedLoad(spec, execution.seed, at_streams, partial(meets, objectives=losses), offered)
    study = LevelStudy(load, names, saturating_streams(spec, execution.seed), limit)
    return searched(model, execution, request.settings(STEADY_SEARCH), {"streams": study}, prices=request.prices)


def _of_copies(drivers: Sequence[str]) -> str:
    """Return whose a load is, where every copy of a domain has its own."""
    return "" if len(drivers) < 2 else f", to each of {len(drivers)} copies"


def _checked_limit(model: Model, request: CapacityRequest) -> float:
    """Refuse what a media host has not; return the loss limit."""
    reason = f"'{model.label}' has media streams"
    if request.method == "ramp":
        raise UsageError(f"--method ramp: {reason}, whose capacity in media streams is found by search")
    request.refuse(f"{reason}; its limit is --loss-limit", "ihs_limit_percent")
    request.refuse(f"{reason}; only the ramp of a SIP benchmark has it", *OF_A_RAMP)
    request.refuse(f"{reason}, whose clients never repeat anything: a stop leaves no overload behind", *OF_A_STOP)
    request.refuse(_BUDGETED, "replications")
    limit = LOSS_LIMIT_PERCENT if request.loss_limit_percent is None else request.loss_limit_percent
    if not 0.0 <= limit < 100.0:
        raise UsageError(f"--loss-limit: from 0 to below 100 %, got {limit:g}")
    return limit


COLLAPSED_NS = 32_000_000_000
PILOT_NS = 60_000_000_000


def sip_capacity(model: Model, request: CapacityRequest, execution: Execution) -> CapacityStudy:
    """Run the study that was asked for, the lab's ramp if nothing was; refuse what the lab or the method has not."""
    request.refuse(f"'{model.label}' has a benchmark; its limit is --ihs-limit", "loss_limit_percent")
    if request.after_stop_ns is None:
        request.refuse("goes with --after-stop", "window_ns")
    if request.method == "search" or request.after_stop_ns is not None:
        request.refuse("tells of a ramp's steps; a search has none", *OF_A_RAMP)
        request.refuse(_BUDGETED, "replications")
        studies = constant_load_studies(model, execution.seed, request.ihs_limit_percent, _stop(request))
        return searched(model, execution, request.settings(SearchSettings()), studies, prices=request.prices)
    request.refuse("goes with --method search", "probability", "resolution", "budget")
    return ramp_study(model, request, execution, experience_of(request.labs, request.headroom_percent))


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
    saturated = saturating_saps(constant_load(model.spec, seed, limit))

    def study(title: str, stop: Stop | None) -> LevelStudy:
        of_stop = {"stop_ns": stop and stop.length_ns, "window_ns": stop and stop.window_ns}
        within = f"within {limit:g} % IHS{', a window after the stop' if stop else ''}"
        judged_s = None if stop is None else (stop.observed_ns / 1e9, stop.window_ns / 1e9)
        details = {"ihs_limit_percent": limit, **of_stop}
        names = LoadNames(SAPS, "SAPS", title, within, details, axis="attempts a second", judged_s=judged_s)
        load, judged_by = constant_load(model.spec, seed, limit, stop), {"ihs": limit, "stop": stop and asdict(stop)}
        return LevelStudy(load, names, saturated, judged_by, is_watched=stop is None)

    if stop is None:
        return {"steady": study("Capacity at constant load", None)}
    long_s, collapsed = COLLAPSED_NS / 1e9, replace(stop, length_ns=COLLAPSED_NS)
    return {
        "after_stop": study(f"Failover-safe capacity: recovers after a stop of {stop.length_ns / 1e9:g} s", stop),
        "recovery": study(f"Load from which a collapsed server (stop of {long_s:g} s) recovers by itself", collapsed),
    }


def ramp_study(
    model: Model, request: CapacityRequest, execution: Execution, experience: Experience | None = None
) -> CapacityStudy:
    """Run the lab's ramp with many seeds; with prices, once more at each end of each price of a mechanism."""
    ramp_of(model.spec)
    limit = request.ihs_limit_percent
    replications = DEFAULT_REPLICATIONS if request.replications is None else request.replications
    ramp_capacity_of(model, [], limit, experience=experience)  # refuses before the work what cannot be judged
    done = Replications([model], execution)
    is_partial = not done.run(replications)
    if not done.common:
        raise Interrupted("no replication had finished")
    ramp = ramp_capacity_of(model, sorted(done.records[0].items()), limit, experience)
    manifest = execution.manifest([model], "capacity", done.common, wanted=replications, interrupted=is_partial)
    band = ramp_band(model, execution, limit) if request.prices and not is_partial else None
    return CapacityStudy(manifest, ramp=ramp, band=band)


def saturating_saps(load: JudgedLoad) -> float:
    """Return the load that would fill the server's CPU, or what is full before it, from a run at the first step."""
    ramp = ramp_of(load.spec)
    first = ramp.first_load
    spec = with_ramp(load.spec, ramp.with_times(ramp.transient_ns, max(ramp.step_ns(), PILOT_NS)))
    record = load.of(spec).play(first, 0)
    cpu = record.steps()[0].samples("cpu")
    busy = fmean(cpu) if cpu else 0.0
    if busy <= 0.0:
        raise UsageError(f"the server does nothing at {first:g} attempts a second; raise the initial load of its steps")
    of_server, others = first * 100.0 / busy, _filling_loads(spec, record, first)
    return min([of_server, *(each for each in others if each < _WELL_BELOW * of_server)])


def capacity_takes(model: Model, request: CapacityRequest) -> Needs:
    """Return what a study takes; a search its whole budget, at the load that the model begins with.

    What cannot be studied takes nothing: :func:`find_capacity` says why.
    """
    spec, of_prices = model.spec, runs_of_bands(model) if request.prices else 0
    if _turns_a_knob(model, request) or spec.ramp is None:
        return needs_of(spec).times(request.settings(STEADY_SEARCH).budget + of_prices)
    if request.method != "search" and request.after_stop_ns is None:
        needs = needs_of(spec).times(request.replications or DEFAULT_REPLICATIONS)
        return needs + bands_take(model) if request.prices else needs
    stop = None if not request.after_stop_ns else Stop(request.after_stop_ns)
    at_first = at_load(spec, spec.ramp.first_load, stop)
    searches = 1 if stop is None else 2  # the second for the load from which a collapsed server recovers
    return needs_of(at_first).times(searches * (request.settings(SearchSettings()).budget + of_prices))


def find_capacity(model: Model, request: CapacityRequest, execution: Execution) -> CapacityStudy:
    """Return the answer: in the key that was asked for, else attempts a second of a benchmark, else media streams.

    Refuses a model without a workload whose load could be raised, or without something that was asked for.
    """
    if _turns_a_knob(model, request):
        return knob_capacity(model, request, execution)
    if model.spec.ramp is not None:
        return sip_capacity(model, request, execution)
    return stream_capacity(model, request, execution)


def _turns_a_knob(model: Model, request: CapacityRequest) -> bool:
    if request.vary is not None or request.objectives:
        return True
    return model.spec.ramp is None and streams_of(model.spec) is None
