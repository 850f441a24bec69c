"""Capacity under several limits, measured and predicted by one rule, and ratios between environments.

The rule is that of :mod:`vftsim.labs.ramps`, over the figures of the steps, the same for the record and the model.

*Left out*: the range in which systems were seen to tip, set against a system's record.  Each system is left out in
turn, alone and with the whole laboratory that measured it.  The load that fills its CPU is that of the model's steps,
as a user has it, and beside it that of its own measured steps.  Nothing is fitted, and a range is not widened because
it does not hold a system.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import numpy as np

from vftsim.calibrate.accuracy import FULL_PERCENT, LINE, PARABOLA, QUEUE, Base, Verdict
from vftsim.files import Number
from vftsim.labs.dataset import Observations, dataset_file
from vftsim.labs.ramps import LIMITS_PERCENT, Ramp, capacity_at, full_load, load_steps, mean_steps, shares_seen
from vftsim.report.markdown import markdown_table
from vftsim.stats import central_range


@dataclass(frozen=True, slots=True)
class CapacityRow:
    """A capacity of an environment: measured, and that of each replication."""

    environment: str
    limit_percent: float
    measured: int
    replications: tuple[float, ...]
    nulls: Mapping[str, float] = field(default_factory=dict)
    """Last step at which null models have CPU left."""

    @property
    def predicted(self) -> float:
        """The middle replication."""
        return float(np.median(self.replications))

    @property
    def range(self) -> tuple[float, float]:
        """The central 90 % of the replications."""
        return central_range(self.replications)

    def verdict(self, loads: Sequence[float]) -> Verdict:
        """Hold the middle replication against the record: it must end at the same of the steps with these loads."""
        (low, high), n = self.range, len(self.replications)
        nearest = int(np.argmin(np.abs(np.array(loads) - self.measured)))
        # How far that step is from the nearer of its neighbours.
        apart = float(np.min(np.abs(np.diff(loads))[max(nearest - 1, 0) : nearest + 1], initial=np.inf))
        return Verdict(
            f"capacity at {self.limit_percent:g} % in the load step of the record ({self.measured})",
            abs(self.predicted - self.measured) < apart / 2.0,
            by_nulls=tuple(n for n, value in self.nulls.items() if abs(value - self.measured) < apart / 2.0),
            found=f"median {self.predicted:.1f}, central 90 % {low:.1f} to {high:.1f}, n={n}",
        )

    def as_data(self) -> dict[str, Any]:
        low, high = self.range
        return {**asdict(self), "predicted": self.predicted, "low": low, "high": high, "n": len(self.replications)}


@dataclass(frozen=True, slots=True)
class RatioRow:
    """A capacity relative to that of the first environment, of replications under the same traffic."""

    environment: str
    reference: str
    limit_percent: float
    measured: Number
    predicted: Number
    low: Number
    high: Number
    n: int


def capacity_rows(
    environment: str, data: Observations, runs: list[Observations], nulls: Mapping[str, float]
) -> list[CapacityRow]:
    """Return the capacities of an environment under each limit; none where the record has no shares of its steps."""
    steps, rows = load_steps(data), list[CapacityRow]()
    for limit in LIMITS_PERCENT if steps else ():
        replications = tuple(float(capacity_at(load_steps(run), limit)) for run in runs)
        rows.append(CapacityRow(environment, limit, capacity_at(steps, limit), replications, nulls))
    return rows


def null_capacities(cpu: Base, loads: Sequence[float]) -> dict[str, float]:
    """Return the last of some loads, ascending, at which each null model has CPU left."""
    curves: dict[str, Callable[[float], float | None]] = {
        LINE: partial(cpu.curve, degree=1),
        PARABOLA: partial(cpu.curve, degree=2),
        QUEUE: cpu.queue,
    }
    capacities = {}
    for null, curve in curves.items():
        needed = [curve(load) for load in loads]
        if percents := [percent for percent in needed if percent is not None]:
            carried = sum(1 for _ in takewhile(lambda percent: percent < FULL_PERCENT, percents))
            capacities[null] = loads[carried - 1] if carried else 0.0
    return capacities


def ratio_rows(rows: Iterable[CapacityRow]) -> list[RatioRow]:
    """Return each environment's capacities relative to the first one's, replication by replication."""
    firsts: dict[float, CapacityRow] = {}
    beside_first = []
    for row in rows:
        first = firsts.setdefault(row.limit_percent, row)
        pairs = zip(row.replications, first.replications, strict=True)
        ratios = [mine / other for mine, other in pairs if other > 0]
        if first is not row and ratios and first.measured:
            measured, predicted = row.measured / first.measured, float(np.median(ratios))
            environments, (low, high) = (row.environment, first.environment), central_range(ratios)
            ends = measured, predicted, low, high
            beside_first.append(RatioRow(*environments, row.limit_percent, *ends, len(ratios)))
    return beside_first


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A range learned without a system, and what the system did."""

    system: str
    learned_from: str
    """``other systems``, or ``other laboratories`` alone."""
    full_by: str
    """Whose steps tell the load that fills the CPU: ``the model``, or ``its own record``."""
    full: Number
    low: Number
    high: Number
    """Range of loads."""
    measured: tuple[int, ...]
    """Its capacity at each limit."""

    @property
    def held(self) -> tuple[bool, ...]:
        """Whether the range holds the capacity at each limit."""
        return tuple(self.low <= capacity <= self.high for capacity in self.measured)

    def as_data(self) -> dict[str, Any]:
        return {**asdict(self), "held": list(self.held)}


def system_of(ramps: Mapping[str, Ramp], dataset: Path, environment: str) -> Ramp | None:
    """Return the system that an environment of a dataset is, if its ramp is known."""
    source = (dataset_file(dataset).resolve(), environment)
    return next((ramp for ramp in ramps.values() if ramp.source == source), None)


def left_out(ramps: Mapping[str, Ramp], ramp: Ramp, runs: Sequence[Observations]) -> Iterable[LeftOut]:
    """Yield what is learned without a system, for its model's runs and for its own record."""
    full = {"the model": full_load(mean_steps([load_steps(run) for run in runs])), "its own record": ramp.full}
    measured = tuple(capacity_at(ramp.steps, limit) for limit in LIMITS_PERCENT)
    systems = [each for each in ramps.values() if each is not ramp]
    labs = [each for each in systems if not ramp.source or not each.source or each.source[0] != ramp.source[0]]
    for whose, load in full.items():
        for name, others in (("other systems", systems), ("other laboratories", labs)):
            if load is not None and others:
                low, high = shares_seen(others)
                yield LeftOut(ramp.system, name, whose, load, low * load, high * load, measured)


def section(rows: Sequence[LeftOut]) -> str:
    """Return the table with what it says, as Markdown."""
    lines = []
    for each in rows:
        pairs = zip(each.measured, each.held, strict=True)
        held = [f"{value} {'held' if is_held else '**not**'}" for value, is_held in pairs]
        loads = f"{each.full_by}: {each.full:.0f}", f"{each.low:.0f} to {each.high:.0f}"
        lines.append((each.system, each.learned_from, *loads, *held))
    limits = (f"{limit:g} %" for limit in LIMITS_PERCENT)
    return "\n\n".join(
        (
            "## Seen to tip, each system left out",
            "Loads at which other systems tipped, as shares of the load that fills the CPU, against the capacity "
            f"of the system left out at each limit: {counts(rows)}.",
            markdown_table(("system left out", "learned from", "full load", "range", *limits), lines),
        )
    )


def counts(rows: Sequence[LeftOut]) -> str:
    """Return how many capacities the ranges hold, by what they were learned from and whose full load they have."""
    kinds = dict.fromkeys((each.learned_from, each.full_by) for each in rows)
    parts = []
    for kind in kinds:
        held = [is_held for each in rows if (each.learned_from, each.full_by) == kind for is_held in each.held]
        parts.append(f"{sum(held)} of {len(held)} held from {kind[0]} with the full load of {kind[1]}")
    return "; ".join(parts)
