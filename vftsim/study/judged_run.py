"""A run of a capacity search: what it measured, whether that is within the limit, and whether its load was offered."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.stats import CapacityResult
from vftsim.study.offered import Missing, mean_missing
from vftsim.workloads.offer import Offer


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """The judged figures of a run; true for a run within the limit whose load was offered.

    Parameters
    ----------
    figures : dict
        What it is judged by; nan where it has no such figure.
    short : Offer, optional
        Of the workload whose load is searched, where it sent less than it was asked: such a run proves nothing.
    """

    figures: dict[str, float]
    is_within: bool
    short: Offer | None = None

    def __bool__(self) -> bool:
        return self.is_within and self.short is None

    def to_plain(self) -> dict[str, Any]:
        """Return it as plain data for a store."""
        return asdict(self)

    @classmethod
    def from_plain(cls, data: Mapping[str, Any]) -> JudgedRun:
        """Rebuild what :meth:`to_plain` returned; a figure without a number comes back as none."""
        figures = {name: math.nan if x is None else x for name, x in data["figures"].items()}
        return cls(figures, data["is_within"], None if data["short"] is None else Offer(**data["short"]))


def short_offer(record: RunRecord, workloads: Iterable[str]) -> Offer | None:
    """Return the first of some workloads' offers that is short; of a domain that is made often, each has a number."""
    names = tuple(workloads)
    return next(
        (
            offer
            for name, offer in record.offers.items()
            if offer.is_short and (name in names or name.rpartition("-")[0] in names)
        ),
        None,
    )


def without_short_offers(
    result: CapacityResult, outcomes: Mapping[float, Sequence[JudgedRun]], load: str
) -> tuple[CapacityResult, Missing | None]:
    """Return a search's answer, and what was not offered at the lowest load that failed.

    Where no run there went beyond the limit, the load failed only because it was not offered: the answer is a bound.
    """
    failed = [probe for probe in result.probes if probe.level >= result.estimate.high]
    if not failed:
        return result, None
    runs = outcomes[failed[0].level][: failed[0].runs]
    what = f"the load at {failed[0].level:g} {load}"
    missing = mean_missing(what, [run.short for run in runs if run.short is not None])
    if missing is None or not all(run.is_within for run in runs):
        return result, missing
    low = result.estimate.low
    return replace(result, estimate=replace(result.estimate, mean=low, high=math.inf, half_width=math.inf)), missing
