"""Operational bounds of the SIP farm on z/VM: what R1 to R7 identify, and which resource limits which run.

Rule (Denning and Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3), 1978): no
throughput exceeds the capacity of a resource over the demand of a request for it.  The demands follow from the rates
that the record states (``calibration/sip-farm/protocol.md`` says which, and when).

A call costs a single server ``single_s`` of CPU time, a front end ``clustering`` times as much; with a registered
account it costs a single server ``registered_s``, of which a farm's back end takes ``back_s`` and a front end
``clustering`` times the rest.  How that splits is not stated anywhere.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.records.runner import cell, rows_of
from vftsim.spec import shipped_dir

CPUS_A_SERVER = 2.0
"""Assumption, taken beforehand: the record does not say how many virtual processors a guest had."""
PROCESSORS = 24.0
_HALVINGS = 50
SERVER, FRONT, BACK = "server CPU", "front end CPU", "back end CPU"
ALL_PROCESSORS, STORAGE = "processors", "storage server"
GENERATORS = "generators"
"""Processors of the other partition, on which the callers run."""
RESOURCES = (SERVER, FRONT, BACK, ALL_PROCESSORS)


_FOLDER = shipped_dir("calibration") / "sip-farm"
_SERVERS = {SERVER: "server", FRONT: "front", BACK: "back"}
_OPERATIONS = {BACK: 2.0, STORAGE: 2 * 2.763}
"""Of a call, where not six messages: a lookup and an update, the file operations."""


def stated() -> Mapping[str, Mapping[str, str]]:
    """Return the rows of the record's runs by name."""
    return {row["test_id"]: row for row in rows_of(_FOLDER / "runs.csv")}


def rate(run: str) -> float:
    return cell(_FOLDER, "runs", "calls_per_s", test_id=run)


def word(column: str) -> str:
    """Return what is printed of R3 in a column."""
    return stated()["R3"][column]


@dataclass(frozen=True, slots=True)
class Layout:
    """Servers of a run: no front end means one server that does everything."""

    fronts: int
    backs: int
    is_registered: bool
    has_nas: bool


RUNS = {
    run: Layout(int(row["frontends"]), int(row["backends"]), row["register_auth"] == "yes", row["nas_server"] == "yes")
    for run, row in stated().items()
}


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds of a call, and what the storage server can do.

    ``rest_s`` is what R3 used beside its front ends; ``storage_s`` the storage server's time for a call (0: not known
    to limit anything).
    """

    cpus: float
    single_s: float
    clustering: float
    registered_s: float
    rest_s: float = 0.0
    back_s: float | None = None
    storage_s: float = 0.0

    @property
    def front_s(self) -> float:
        """A plain call on a front end."""
        return self.clustering * self.single_s

    @property
    def most_back_s(self) -> float:
        """All that registration adds: what a back end takes over at most."""
        return self.registered_s - self.single_s


def costs_before(cpus: float = CPUS_A_SERVER, *, clustered: bool = True) -> Costs:
    """Return what R1, R2 and R4 identify, and nothing else."""
    clustering = rate("R1") / rate("R2") if clustered else 1.0
    return Costs(cpus, cpus / rate("R1"), clustering, cpus / rate("R4"))


def costs_after() -> Costs:
    """Return what is known when R3's CPU, R6 and R7 have been used too."""
    before = costs_before()
    rest_s = processors_stated() / rate("R3") - before.front_s
    return replace(before, rest_s=rest_s, back_s=before.cpus / rate("R6"), storage_s=1.0 / rate("R7"))


def processors_stated() -> float:
    return cell(_FOLDER, "runs", "cpus_used", test_id="R3")


def processors_used(costs: Costs, run: str, calls_per_s: float) -> float:
    """Return the processors that a plain run keeps busy."""
    own_s = costs.front_s if RUNS[run].fronts else costs.single_s
    return calls_per_s * (own_s + (costs.rest_s if RUNS[run].fronts > 1 else 0.0))


def bounds(costs: Costs, layout: Layout, back_s: float | None = None) -> dict[str, float]:
    """Return the calls a second that each resource allows; ``back_s`` is the split, the costs' own if not given."""
    taken_s = back_s if back_s is not None else costs.back_s or 0.0
    if layout.fronts == 0:
        own_s = costs.registered_s if layout.is_registered else costs.single_s
        return {SERVER: costs.cpus / own_s}
    front_s = costs.clustering * (costs.registered_s - taken_s) if layout.is_registered else costs.front_s
    total_s = front_s + (taken_s if layout.is_registered else 0.0)
    if layout.fronts > 1:
        total_s += costs.rest_s
    bound_of = {FRONT: layout.fronts * costs.cpus / front_s, ALL_PROCESSORS: PROCESSORS / total_s}
    if layout.is_registered and taken_s > 0.0:
        bound_of[BACK] = layout.backs * costs.cpus / taken_s
    if layout.has_nas and costs.storage_s > 0.0:
        bound_of[STORAGE] = 1.0 / costs.storage_s
    return bound_of


def agents_messages(layout: Layout) -> int:
    """Return the messages of a call that its two user agents send and receive."""
    return 15 if layout.is_registered else 13


def message_cost_s(model: ModelSpec) -> float:
    """Return the CPU time of a message at a generator of a model."""
    workload: Any = model.workloads["calls"]
    return float(workload.message_cost) * 1e-9


def generators_bound(message_cost_s: float, layout: Layout) -> float:
    """Return the calls a second that the processors of the generators' partition allow."""
    return PROCESSORS / (agents_messages(layout) * message_cost_s)


def limit(bound_of: Mapping[str, float]) -> tuple[str, float]:
    """Return the resource with the least bound, and that bound."""
    return min(bound_of.items(), key=lambda each: each[1])


def balanced_split(costs: Costs, layout: Layout) -> float:
    """Return what a back end takes of a registered call where it limits a layout just as much as the rest does.

    The more it takes, the less it allows, and the more everything else does.
    """
    low, high = 0.0, costs.most_back_s
    for _ in range(_HALVINGS):
        middle = (low + high) / 2.0
        is_back = limit(bounds(costs, layout, middle))[0] == BACK
        low, high = (low, middle) if is_back else (middle, high)
    return high


def interval(costs: Costs, layout: Layout) -> tuple[float, float]:
    """Return the least and the greatest capacity over all splits of a registered call."""
    splits = (0.0, balanced_split(costs, layout), costs.most_back_s)
    capacities = [limit(bounds(costs, layout, back_s))[1] for back_s in splits]
    return min(capacities), max(capacities)


def back_end_share(costs: Costs) -> float:
    """Return the part of all splits of a registered call for which R6's back end is its limit."""
    return 1.0 - balanced_split(costs, RUNS["R6"]) / costs.most_back_s


def bounds_but_storage(costs: Costs) -> dict[str, float]:
    return {name: bound for name, bound in bounds(costs, RUNS["R7"]).items() if name != STORAGE}


def listed(bound_of: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {bound:.0f}" for name, bound in bound_of.items())


def without_storage(costs: Costs) -> float:
    """Return the calls a second of R7's servers where storage limits nothing."""
    return limit(bounds_but_storage(costs))[1]


# What runs say


def bounds_of(spec: ModelSpec, record: RunRecord) -> dict[str, float]:
    """Return what each resource could do over what it did, times the rate (the utilization law), and failed calls."""
    workload: Any = spec.workloads["calls"]
    calls_per_s, cpu = float(workload.rate), record.pcpus()
    bound_of: dict[str, float] = {}
    callers = _callers(cpu)
    for resource, tier in _SERVERS.items():
        shares = [share for name, share in cpu.items() if name.partition("-")[0] == tier]
        if math.fsum(shares) > 0.0:
            bound_of[resource] = spec.domains[tier].vcpus * len(shares) * calls_per_s / math.fsum(shares)
    bound_of[ALL_PROCESSORS] = PROCESSORS * calls_per_s / (math.fsum(cpu.values()) - callers)
    bound_of[GENERATORS] = PROCESSORS * calls_per_s / callers
    if "nas" in spec.domains:
        threads: Any = spec.domains["nas"].applications["nfsd"]
        bound_of[STORAGE] = threads.threads * calls_per_s / record.of("domains.nas.applications.nfsd").busy_threads
    bound_of["failed"] = float(record.of("workloads.calls").failed)
    return bound_of


def call_figures(record: RunRecord) -> dict[str, float]:
    """Return what callers saw, and the processors that the farm kept busy."""
    calls, cpu = record.of("workloads.calls"), record.pcpus()
    return {
        "processors_used": math.fsum(cpu.values()) - _callers(cpu),
        "generators_used": _callers(cpu),
        "front_cpu": max(share for name, share in cpu.items() if name.startswith("front")),
        "response_ms": calls.response.mean * 1e-6,
        "longest_ms": calls.response.max * 1e-6,
        "failed": float(calls.failed),
        "calls_per_s": calls.rate,
        "offered_per_s": calls.offered_rate,
        "retransmissions_percent": calls.retransmissions,
    }


def bounds_and_calls(spec: ModelSpec, record: RunRecord) -> dict[str, float]:
    return {**bounds_of(spec, record), **call_figures(record)}


def calls_done(record: RunRecord, resource: str) -> dict[str, float]:
    """Return the calls a second that a resource has done, by its operations."""
    tier = _SERVERS.get(resource, "nas")
    programs = record.whole.outcomes.items()
    by_domain: Any = ((owner.split(".")[1], program) for owner, program in programs if ".applications." in owner)
    done = math.fsum(float(program.message_rate) for domain, program in by_domain if domain == tier)
    return {"calls_per_s": done / _OPERATIONS.get(resource, 6.0)}


def _callers(cpu: Mapping[str, float]) -> float:
    """Return what the load generators keep busy, on the other partition's processors."""
    return math.fsum(share for name, share in cpu.items() if name.startswith("generator"))


def own_limit(figures: Mapping[str, Sequence[float]]) -> tuple[str, float]:
    """Return the resource with the least bound among those that an experiment found, and that bound."""
    named = [name for name in (*RESOURCES, STORAGE) if name in figures]
    return limit({name: fmean(figures[name]) for name in named})


def agreements(results: Mapping[str, Mapping[str, Sequence[float]]]) -> list[tuple[str, str, float, float, bool]]:
    """Return every bound of every run: resource, simulated, in closed form, whether it is the run's limit."""
    rows = []
    for run, layout in RUNS.items():
        forms = bounds(costs_after(), layout)
        least = limit(forms)[0]
        figures = results[f"bounds {run}"]
        rows += [(run, name, fmean(figures[name]), value, name == least) for name, value in forms.items()]
    for name, figures in results.items():
        if name.startswith("saturated "):
            run = name.removeprefix("saturated ")
            resource, value = limit(bounds(costs_after(), RUNS[run]))
            rows.append((run, f"{resource}, saturated", fmean(figures["calls_per_s"]), value, True))
    return rows


def agreement_rows(results: Mapping[str, Mapping[str, Sequence[float]]]) -> list[tuple[str, ...]]:
    return [
        (run, name, f"{simulated:.1f}", f"{form:.1f}", f"{simulated / form - 1.0:+.2%}", "limit" if is_limit else "")
        for run, name, simulated, form, is_limit in agreements(results)
    ]


def furthest(results: Mapping[str, Mapping[str, Sequence[float]]]) -> tuple[str, str, float]:
    """Return the limit whose simulated and closed form differ most: run, resource, relative difference."""
    off = ((run, name, simulated / form - 1.0) for run, name, simulated, form, is_own in agreements(results) if is_own)
    return max(off, key=lambda each: abs(each[2]))
