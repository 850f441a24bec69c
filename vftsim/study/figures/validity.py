"""Domain of validity: figures of a model outside of what its values were fitted to.

A model file says it itself (:class:`~vftsim.composition.model.CalibratedSpec`): the loads of the steps that were
fitted, and, kept up when it is read, the keys of hosts, networks and domains that are no longer those of the file that
says so.  Which figures lie outside decides this file alone; tables ask it for the mark and for what stands below them.

Also what a figure is not of: loads that a run was to offer and did not, faults that were to strike after its end.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

from vftsim.composition.model import MeasuredSpec, ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.views import ramp_key
from vftsim.errors import ModelFileError
from vftsim.spec import Document, read_document
from vftsim.study.figures.names import Address
from vftsim.workloads.offer import Offer

KEY = "calibrated"
COVERED = ("hosts", "networks", "domains")
_PROCEDURE = ("pre_registration", "stir", "steps", "sample_period")
MARK = " *"
_MOST_NAMED = 4


def is_outside(spec: ModelSpec, saps: float) -> bool:
    """Tell whether a load, or its highest rate, is outside of those that the model was fitted to; false without any."""
    if spec.calibrated is None:
        return False
    low, high = spec.calibrated.loads
    return not (low <= saps and saps * (1.0 if spec.ramp is None else spec.ramp.highest_share) <= high)


def marked(spec: ModelSpec, saps: float, text: str | None = None) -> str:
    """Return a load, or another figure at it, for people: with an asterisk if the load is outside."""
    shown = f"{saps:g}" if text is None else text
    return f"{shown}{MARK}" if is_outside(spec, saps) else shown


def outside(spec: ModelSpec, loads: Iterable[float]) -> list[float] | None:
    """Return the loads that are outside, in order; None where the model does not say what it was fitted to."""
    return None if spec.calibrated is None else sorted({load for load in loads if is_outside(spec, load)})


def outside_phases(spec: ModelSpec, records: Iterable[tuple[int, RunRecord]]) -> list[str] | None:
    """Return the load steps of a run that are outside, in order; None as :func:`outside`.

    The pre-registration is no load step: what it sends is registrations alone, and its rate is its own.
    """
    if spec.calibrated is None:
        return None
    steps = (step for _, record in records for step in record.steps())
    return list(dict.fromkeys(f"step_{step.index}" for step in steps if is_outside(spec, step.requested_saps)))


def first_load(spec: ModelSpec) -> list[float]:
    """Return the load of a model's first step; empty without a benchmark."""
    return [] if spec.ramp is None else [spec.ramp.first_load]


def is_load(spec: ModelSpec, key: str) -> bool:
    """Tell whether a key of a model is the load of its first step."""
    return spec.ramp is not None and key == ramp_key(spec, spec.ramp.first_load_key)


def is_of_load_outside(spec: ModelSpec, address: Address, value: float) -> bool:
    """Tell whether a figure was measured in a step whose load is outside, or is itself such a load.

    A capacity is the effective load of a step, so it goes by the step nearest to it; one of 0 (no step passed) by none.
    """
    if spec.calibrated is None:
        return False
    loads = [load for workload in spec.workloads.values() for load in workload.step_loads()]
    if address.entry.figure.is_load and value and loads:
        return is_outside(spec, min(loads, key=lambda load: abs(load - value)))
    number = address.step.removeprefix("step_")
    return number.isdigit() and is_outside(spec, loads[int(number) - 1])


def below_table(models: Sequence[tuple[str, ModelSpec]]) -> str:
    """Return what the asterisk means, for the models, by label, that have one in a table; empty for none."""
    if not models:
        return ""
    domains = [f"{label} {_domain(spec)}" if len(models) > 1 else _domain(spec) for label, spec in models]
    return f"* outside what was calibrated: {'; '.join(domains)}"


def _domain(spec: ModelSpec) -> str:
    assert spec.calibrated is not None
    low, high = spec.calibrated.loads
    return f"{low:g} to {high:g} attempts/s ({spec.calibrated.by})"


def not_covered(spec: ModelSpec) -> list[str]:
    """Return the keys that were something else when the model was fitted."""
    return [] if spec.calibrated is None else list(spec.calibrated.not_covered)


def not_covered_line(keys: Sequence[str]) -> str:
    """Return them in words, the first few by name; empty for none."""
    if not keys:
        return ""
    more = f" and {len(keys) - _MOST_NAMED} more" if len(keys) > _MOST_NAMED else ""
    return f"not covered by the calibration: {', '.join(keys[:_MOST_NAMED])}{more}"


def varied(model: dict[str, Any], spec: ModelSpec, key: str) -> dict[str, Any]:
    """Return what a manifest says of a model, with a key that the study varied among those not covered."""
    if spec.calibrated is None or key.partition(".")[0] not in COVERED:
        return model
    return {**model, "not_covered": [*dict.fromkeys((*spec.calibrated.not_covered, key))]}


def as_fitted(document: Document) -> dict[str, Any] | None:
    """Return hosts, networks and domains as the file has them in which `calibrated` stands.

    None where no file of the document says it.  Refuses a file that alone is no model, so that nobody could tell what
    was changed since.
    """
    top = document.tree.value
    node = top.get(KEY) if isinstance(top, dict) else None
    if node is None or node.file not in map(str, document.files):
        return None
    file_of_it = document if node.file == str(document.files[0]) else read_document(node.file)
    try:
        return _covered(file_of_it.validate(ModelSpec))
    except ModelFileError as error:
        why = "must stand in a file that is a whole model, so that it is known what was changed since"
        raise ModelFileError(f"{why}: {error}", node.file, node.line, KEY) from None


def without_foreign_measure(document: Document, spec: ModelSpec) -> ModelSpec:
    """Return a model without what was measured on a real system that is not the one it describes any more.

    The document is before any override: `measured` is of the system that it describes, and is never inherited.
    ``spec`` is after them.
    """
    if spec.measured == MeasuredSpec():
        return spec
    try:
        written = document.validate(ModelSpec)
    except ModelFileError:  # an override makes a model of it: nobody measured the file's own
        return spec
    if spec.measured != written.measured or _system(spec) == _system(written):
        return spec
    return spec.model_copy(update={"measured": MeasuredSpec()})


def _system(spec: ModelSpec) -> dict[str, Any]:
    """Return what figures of a real system depend on: all but for how long, and at which loads, it is measured."""
    system = spec.model_dump(mode="json", include={*COVERED, "workloads"})
    for workload in system["workloads"].values():
        for key in _PROCEDURE:
            workload.pop(key, None)
    loads = (load for workload in spec.workloads.values() for load in workload.load_profiles().values())
    return {**system, "load_profiles": [load.load_profile for load in loads]}


def with_changes(spec: ModelSpec, fitted: Mapping[str, Any] | None) -> ModelSpec:
    """Return the model with the keys named that are not those it was :func:`fitted <as_fitted>` with."""
    if spec.calibrated is None or fitted is None:
        return spec
    keys = dict.fromkeys(
        (*spec.calibrated.not_covered, *(".".join(path) for path, _ in changes(fitted, _covered(spec))))
    )
    if len(keys) == len(spec.calibrated.not_covered):
        return spec
    calibrated = spec.calibrated.model_copy(update={"not_covered": tuple(keys)})
    return spec.model_copy(update={KEY: calibrated})


def _covered(spec: ModelSpec) -> dict[str, Any]:
    return spec.model_dump(mode="json", include=set(COVERED))


def changes(
    before: Any, now: Any, gone: Any = None, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Yield what differs: a path and what stands there now; a part of another kind, or one that is new, as a whole."""
    if before == now:
        return
    if not isinstance(before, Mapping) or not isinstance(now, Mapping) or before.get("kind") != now.get("kind"):
        yield path, now
        return
    for key in {**before, **now}:
        if key not in now or key not in before:
            yield (*path, key), now.get(key, gone)
        else:
            yield from changes(before[key], now[key], gone, (*path, key))


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
    requested, sent = fmean(each.asked for each in offers), fmean(each.sent for each in offers)
    return Missing(name, requested, sent, short.unit, short.limit, short.word)


def _after_the_end(spec: ModelSpec, records: Records) -> Iterable[Missing]:
    """Yield the faults that came after the end of a run: a ramp ends at a step that fails."""
    ends_ns = [record.last_measured.end_ns for _, record in records]
    for fault in spec.faults:
        if after := sum(end_ns < spec.time_of(fault.at) for end_ns in ends_ns):
            why = "they had ended by then"
            kind = fault.kind  # type: ignore[attr-defined]
            yield Missing(f"{kind} at {fault.at}", float(len(ends_ns)), float(len(ends_ns) - after), "runs", why)
