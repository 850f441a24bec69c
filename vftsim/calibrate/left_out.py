"""The range in which systems were seen to tip, learned without a system, set against that system's own record.

Each system is left out in turn, alone and with the whole laboratory that measured it.  The load that fills its CPU is
that of the model's steps, as a user has it, and beside it that of its own measured steps.  Nothing is fitted, and a
range is not widened because it does not hold a system.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from vftsim.labs.dataset import Observations, dataset_file
from vftsim.labs.ramps import LIMITS_PERCENT, Ramp, capacity_at, full_load, load_steps, mean_steps, shares_seen
from vftsim.report.markdown import markdown_table
from vftsim.study.store.files import Number


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


def system_of(known: Mapping[str, Ramp], dataset: Path, environment: str) -> Ramp | None:
    """Return the system that an environment of a dataset is, if its ramp is known."""
    source = (dataset_file(dataset).resolve(), environment)
    return next((ramp for ramp in known.values() if ramp.source == source), None)


def left_out(known: Mapping[str, Ramp], ramp: Ramp, runs: Sequence[Observations]) -> Iterable[LeftOut]:
    """Yield what is learned without a system, for its model's runs and for its own record."""
    full = {"the model": full_load(mean_steps([load_steps(run) for run in runs])), "its own record": ramp.full}
    measured = tuple(capacity_at(ramp.steps, limit) for limit in LIMITS_PERCENT)
    systems = [each for each in known.values() if each is not ramp]
    labs = [each for each in systems if not ramp.source or not each.source or each.source[0] != ramp.source[0]]
    for whose, load in full.items():
        for name, others in (("other systems", systems), ("other laboratories", labs)):
            if load is not None and others:
                low, high = shares_seen(others)
                yield LeftOut(ramp.system, name, whose, load, low * load, high * load, measured)


def section(rows: Sequence[LeftOut]) -> str:
    """Return the table with what it says, as Markdown."""
    lines = [
        (
            each.system,
            each.learned_from,
            f"{each.full_by}: {each.full:.0f}",
            f"{each.low:.0f} to {each.high:.0f}",
            *(f"{value} {'held' if held else '**not**'}" for value, held in zip(each.measured, each.held, strict=True)),
        )
        for each in rows
    ]
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
