"""Operational bounds of the SIP farm on z/VM: what R1 to R7 identify, and which resource limits which run.

Rule (Denning and Buzen, "The Operational Analysis of Queueing Network Models", ACM Computing Surveys 10(3), 1978): no
throughput exceeds the capacity of a resource over the demand of a request for it.  The demands follow from the rates
that the record states (``calibration/sip-farm/protocol.md`` says which, and when).

A call costs a single server ``single_s`` of CPU time, a front end ``clustering`` times as much; with a registered
account it costs a single server ``registered_s``, of which a farm's back end takes ``back_s`` and a front end
``clustering`` times the rest.  How that splits is not stated anywhere.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

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


@cache
def stated() -> Mapping[str, Mapping[str, str]]:
    """Return the rows of the record's runs by name."""
    with (shipped_dir("calibration") / "sip-farm" / "runs.csv").open(newline="") as file:
        return {row["test_id"]: row for row in csv.DictReader(file)}


def rate(run: str) -> float:
    """Return the stated calls a second of a run."""
    return float(stated()[run]["calls_per_s"])


def observed(parameter: str) -> float:
    """Return a value of the record's platform table."""
    with (shipped_dir("calibration") / "sip-farm" / "platform.csv").open(newline="") as file:
        return next(float(row["value"]) for row in csv.DictReader(file) if row["parameter"] == parameter)


@dataclass(frozen=True, slots=True)
class Layout:
    """Servers of a run: no front end means one server that does everything."""

    fronts: int
    backs: int
    is_registered: bool
    has_nas: bool


RUNS = {
    "R1": Layout(0, 0, False, False), "R2": Layout(1, 1, False, False), "R3": Layout(15, 1, False, False),
    "R4": Layout(0, 0, True, False), "R5": Layout(1, 1, True, False), "R6": Layout(15, 1, True, False),
    "R7": Layout(13, 7, True, True),
}  # fmt: skip


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

    def front_registered_s(self, back_s: float) -> float:
        """A call with a registered account on a front end whose back end takes ``back_s``."""
        return self.clustering * (self.registered_s - back_s)


def costs_before(cpus: float = CPUS_A_SERVER, *, clustered: bool = True) -> Costs:
    """Return what R1, R2 and R4 identify, and nothing else."""
    clustering = rate("R1") / rate("R2") if clustered else 1.0
    return Costs(cpus, cpus / rate("R1"), clustering, cpus / rate("R4"))


def costs_after(cpus: float = CPUS_A_SERVER, *, clustered: bool = True) -> Costs:
    """Return what is known when R3's CPU, R6 and R7 have been used too."""
    known = costs_before(cpus, clustered=clustered)
    rest_s = processors_stated() / rate("R3") - known.front_s
    return Costs(
        cpus, known.single_s, known.clustering, known.registered_s, rest_s, cpus / rate("R6"), 1.0 / rate("R7")
    )


def processors_stated() -> float:
    """Return the processors that R3 used."""
    return float(stated()["R3"]["cpus_used"])


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
    front_s = costs.front_registered_s(taken_s) if layout.is_registered else costs.front_s
    total_s = front_s + (taken_s if layout.is_registered else 0.0)
    if layout.fronts > 1:
        total_s += costs.rest_s
    found = {FRONT: layout.fronts * costs.cpus / front_s, ALL_PROCESSORS: PROCESSORS / total_s}
    if layout.is_registered and taken_s > 0.0:
        found[BACK] = layout.backs * costs.cpus / taken_s
    if layout.has_nas and costs.storage_s > 0.0:
        found[STORAGE] = 1.0 / costs.storage_s
    return found


def agents_messages(layout: Layout) -> int:
    """Return the messages of a call that its two user agents send and receive."""
    return 15 if layout.is_registered else 13


def generators_bound(message_cost_s: float, layout: Layout) -> float:
    """Return the calls a second that the processors of the generators' partition allow."""
    return PROCESSORS / (agents_messages(layout) * message_cost_s)


def most_generator_cost_s() -> float:
    """Return the most that a message can cost a generator: R3 was run, and its partition has 24 processors."""
    return PROCESSORS / (agents_messages(RUNS["R3"]) * rate("R3"))


def limit(found: Mapping[str, float]) -> tuple[str, float]:
    """Return the resource with the least bound, and that bound."""
    name = min(found, key=lambda each: found[each])
    return name, found[name]


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


def io_a_call() -> float:
    """Return R7's I/O operations for a call, at the rate that its disks never went much above."""
    return observed("iops_peak") / rate("R7")


def io_a_disk() -> float:
    """Return what one of the disks gives a second, if the stated rate is 30 % of all of them."""
    return observed("iops_peak") / (observed("disk_capacity_used") / 100.0) / observed("disks")


def without_storage(costs: Costs) -> float:
    """Return the calls a second of R7's servers where storage limits nothing."""
    layout = RUNS["R7"]
    return limit(bounds(costs, Layout(layout.fronts, layout.backs, layout.is_registered, False)))[1]
