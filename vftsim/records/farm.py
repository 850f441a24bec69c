"""The runs behind the record of the SIP farm on z/VM (IBM Montpellier 2007): shipped models, and what each gives.

Figures are lists, a value for each replication.  What is judged, and what is input, is in
``calibration/sip-farm/protocol.md``; the closed forms are in :mod:`vftsim.records.farm_bounds`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.records import farm_bounds as form
from vftsim.spec import load

MODELS = {run: f"sip-farm-{run.lower()}" for run in form.RUNS}
WHAT_IFS = ("sip-farm-no-nas", "sip-farm-back-ends", "sip-farm-ethernet", "sip-farm-kvm")
PROTECTED = ("sip-farm-checkpoint", "sip-farm-lockstep")
SATURATED = ("R1", "R2", "R6", "R7")
"""Runs whose limiting resource has one price for everything it does, so that what it does a second tells calls."""
OVERLOAD = 1.2
EVENLY = "workloads.calls.gap_cv=0"
NO_REST = "domains.balancer.applications.lvs.demand=0 us"
_LENGTHS_S = {"R1": 1.5, "R2": 1.5, "R3": 0.5, "R4": 4.0, "R5": 3.0, "R6": 2.0, "R7": 1.0}
_SERVERS = {form.SERVER: "server", form.FRONT: "front", form.BACK: "back"}
_MS = 1e-6

Figures = dict[str, list[float]]
"""Values of each replication by name."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Seed, replications, and a factor on the length of every run."""

    seed: int
    replications: int
    length: float


GENERATOR_COST_S = 140e-6
"""CPU time of a message at a generator in the shipped models. Assumption."""
RECORD = Budget(211, 2, 1.0)
QUICK = Budget(211, 1, 0.2)


def bounds(run: str, budget: Budget) -> Figures:
    """Return the bound of every resource of a run by the utilization law, evenly loaded below it, and its failures."""
    spec = load(MODELS[run], ModelSpec, [EVENLY, *_length(_LENGTHS_S[run], budget)])
    return _columns(_bounds_of(spec, record) for record in _replicate(spec, budget))


def held_out(arrivals: str, budget: Budget) -> Figures:
    """Return R3's processors and response time from R2's cost alone; arrivals are ``even`` or ``random``.

    ``exponential`` arrivals are random and so are the CPU times.
    """
    changes = [NO_REST, *_length(_LENGTHS_S["R3"], budget)]
    if arrivals == "even":
        changes.append(EVENLY)
    if arrivals == "exponential":
        changes.append("domains.front.applications.sip.demand_cv=1")
    spec = load(MODELS["R3"], ModelSpec, changes)
    return _columns(_call_figures(record) for record in _replicate(spec, budget))


def saturated(run: str, budget: Budget) -> Figures:
    """Return the calls a second that a run's limiting resource does above its bound, without retransmissions."""
    resource, bound = form.limit(form.bounds(form.costs_after(), form.RUNS[run]))
    length = _length(2 * _LENGTHS_S[run], budget)
    changes = [EVENLY, "workloads.calls.retransmits=false", f"workloads.calls.rate={OVERLOAD * bound:.1f} /s", *length]
    spec = load(MODELS[run], ModelSpec, changes)
    return _columns(
        {"calls_per_s": _operations_a_second(record, resource) / _operations_a_call(resource)}
        for record in _replicate(spec, budget)
    )


def what_if(model: str, budget: Budget) -> Figures:
    """Return the bounds of a farm that nobody measured, evenly loaded, and its response time."""
    spec = load(model, ModelSpec, [EVENLY, *_length(0.5, budget)])
    columns: list[dict[str, float]] = []
    for record in _replicate(spec, budget):
        found = _bounds_of(spec, record)
        columns.append({**found, **_call_figures(record)})
    return _columns(columns)


def protected(model: str, is_struck: bool, budget: Budget) -> Figures:
    """Return what callers see of a protected front end, with the crash of its host or without."""
    spec = load(model, ModelSpec, () if is_struck else ("faults=[]", *_length(1.0, budget)))
    return _columns(_call_figures(record) for record in _replicate(spec, budget))


def unprotected(model: str, budget: Budget) -> Figures:
    """Return what callers see of the same front end without protection."""
    spec = load(model, ModelSpec, ["faults=[]", "domains.front.protection=null", *_length(1.0, budget)])
    return _columns(_call_figures(record) for record in _replicate(spec, budget))


def protected_bound(model: str, is_protected: bool, budget: Budget) -> Figures:
    """Return the calls a second that a front end handles above its bound, protected or not."""
    off = ["domains.front.protection=null"] if not is_protected else []
    changes = ["faults=[]", "workloads.calls.retransmits=false", "workloads.calls.rate=900 /s", EVENLY, *off]
    spec = load(model, ModelSpec, [*changes, *_length(2.0, budget)])
    per_call = _operations_a_call(form.FRONT)
    found = [_operations_a_second(record, form.FRONT) / per_call for record in _replicate(spec, budget)]
    return {"calls_per_s": found}


def _length(seconds: float, budget: Budget) -> list[str]:
    return [f"measure.duration={max(100.0, 1000 * seconds * budget.length):g} ms"]


def _replicate(spec: ModelSpec, budget: Budget) -> Iterable[RunRecord]:
    return (run_model(spec, budget.seed, replication) for replication in range(budget.replications))


def _columns(rows: Iterable[dict[str, float]]) -> Figures:
    found = list(rows)
    return {name: [row[name] for row in found] for name in found[0]}


def _bounds_of(spec: ModelSpec, record: RunRecord) -> dict[str, float]:
    """Return what each resource could do over what it did, times the rate."""
    workload: Any = spec.workloads["calls"]
    calls_per_s, cpu = float(workload.rate), record.pcpus()
    found: dict[str, float] = {}
    callers = _callers(cpu)
    for resource, tier in _SERVERS.items():
        own = [share for name, share in cpu.items() if name.partition("-")[0] == tier]
        if sum(own) > 0.0:
            found[resource] = spec.domains[tier].vcpus * len(own) * calls_per_s / sum(own)
    found[form.ALL_PROCESSORS] = form.PROCESSORS * calls_per_s / (sum(cpu.values()) - callers)
    found[form.GENERATORS] = form.PROCESSORS * calls_per_s / callers
    if "nas" in spec.domains:
        threads: Any = spec.domains["nas"].applications["nfsd"]
        found[form.STORAGE] = threads.threads * calls_per_s / record.of("domains.nas.applications.nfsd").busy_threads
    found["failed"] = float(record.of("workloads.calls").failed)
    return found


def _callers(cpu: Mapping[str, float]) -> float:
    """Return what the load generators keep busy, on the other partition's processors."""
    return sum(share for name, share in cpu.items() if name.startswith("generator"))


def _call_figures(record: RunRecord) -> dict[str, float]:
    found, cpu = record.of("workloads.calls"), record.pcpus()
    response = found.response
    return {
        "processors_used": sum(cpu.values()) - _callers(cpu), "generators_used": _callers(cpu),
        "front_cpu": max(share for name, share in cpu.items() if name.startswith("front")),
        "response_ms": response.mean * _MS, "longest_ms": response.max * _MS,
        "failed": float(found.failed), "calls_per_s": found.rate, "offered_per_s": found.offered_rate,
        "retransmissions_percent": found.retransmissions,
    }  # fmt: skip


def _operations_a_second(record: RunRecord, resource: str) -> float:
    tier = _SERVERS.get(resource, "nas")
    programs = record.whole.outcomes.items()
    own: Any = ((owner.split(".")[1], found) for owner, found in programs if ".applications." in owner)
    return sum(float(found.message_rate) for domain, found in own if domain.partition("-")[0] == tier)


def _operations_a_call(resource: str) -> float:
    """Return six messages, a lookup and an update, or the file operations."""
    return {form.BACK: 2.0, form.STORAGE: 2 * 2.763}.get(resource, 6.0)
