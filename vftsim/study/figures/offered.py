"""Loads that a run was to offer and did not, and faults that were to strike after its end."""

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.workloads.offer import Offer

Records = Sequence[tuple[int, RunRecord]]


@dataclass(frozen=True, slots=True)
class Missing:
    """Traffic or a fault that was asked for and did not occur, over some runs."""

    what: str
    """The workload, or the fault."""
    asked: float
    happened: float
    """Means of the runs, in ``unit``."""
    unit: str
    why: str
    word: str = "Not offered"

    def __str__(self) -> str:
        missing = self.asked - self.happened
        share = f"{100.0 * missing / self.asked:.3g} %"
        return f"{self.word}: {missing:.4g} of {self.asked:.4g} {self.unit} of {self.what} ({share}): {self.why}"


def missing_in(spec: ModelSpec, records: Records) -> list[Missing]:
    runs = [record.offers for _, record in records]
    names = dict.fromkeys(name for offers in runs for name in offers)
    not_offered = (mean_missing(name, [offers[name] for offers in runs if name in offers]) for name in names)
    return [*filter(None, not_offered), *_after_the_end(spec, records)]


def rows_of(missing: Iterable[Missing]) -> list[dict[str, Any]]:
    return [asdict(each) for each in missing]


def mean_missing(name: str, offers: Sequence[Offer]) -> Missing | None:
    """Return the mean of what a workload did not send in some runs; ``None`` if each sent all."""
    short = next((offer for offer in offers if offer.is_short), None)
    if short is None:
        return None
    asked, sent = fmean(each.asked for each in offers), fmean(each.sent for each in offers)
    return Missing(name, asked, sent, short.unit, short.limit, short.word)


def _after_the_end(spec: ModelSpec, records: Records) -> Iterable[Missing]:
    """Yield the faults that came after the end of a run: a ramp ends at a step that fails."""
    ends_ns = [record.last_measured.end_ns for _, record in records]
    for fault in spec.faults:
        if after := sum(end_ns < spec.time_of(fault.at) for end_ns in ends_ns):
            why = "they had ended by then"
            kind = fault.kind  # type: ignore[attr-defined]
            yield Missing(f"{kind} at {fault.at}", float(len(ends_ns)), float(len(ends_ns) - after), "runs", why)
