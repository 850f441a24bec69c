"""A model file, read, checked and ready to be studied."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from io import StringIO
from pathlib import Path
from typing import Any

from ruamel.yaml import YAML

from vftsim.composition.model import FEWEST_CYCLES, LONGEST_NS, SHORTEST_NS, WITH_HOSTS, ModelSpec
from vftsim.composition.views import protection_of
from vftsim.errors import UsageError
from vftsim.files import sha256_of
from vftsim.spec import DURATION, Document, format_duration, json_schema, list_shipped, read_document
from vftsim.study.figures.validity import as_fitted, with_changes, without_foreign_measure
from vftsim.study.runs.estimate import events_of
from vftsim.study.runs.versions import ELSEWHERE, source_elsewhere
from vftsim.study.runs.workers import deferred_interrupts


@dataclass(frozen=True, slots=True)
class Model:
    """A checked model."""

    label: str
    """Name by the user: a shipped model or a path."""
    spec: ModelSpec = field(repr=False)
    assignments: tuple[str, ...] = ()
    """Overrides made with ``--set``."""
    notes: tuple[str, ...] = ()
    """Further changes (shortened steps), in words."""
    chosen: str = ""
    """Entry of the domain whose mechanism was chosen, which may be none; empty: the model's own stand."""

    def __post_init__(self) -> None:
        """Write bytes of a file's name that are no UTF-8 as escapes: no table can hold them."""
        name = self.label.encode(errors="surrogateescape")  # also where names of files are taken to be ASCII
        object.__setattr__(self, "label", name.decode(errors="backslashreplace"))

    @property
    def workloads(self) -> tuple[str, ...]:
        """Kinds of its workloads."""
        return tuple(dict.fromkeys(workload.kind for workload in self.spec.workloads.values()))

    @property
    def description(self) -> str:
        """Description of the system in the file."""
        return self.spec.description

    @property
    def name(self) -> str:
        """The name that the file gives the system; what the user called it if it gives none."""
        return self.spec.name or self.label

    def resolved(self) -> dict[str, Any]:
        """Return the model as one file would say it: all values, units written out."""
        with deferred_interrupts():  # pydantic takes an interruption for a kind that does not fit, and goes on
            data: dict[str, Any] = self.spec.model_dump(mode="json")
        return data

    def digest(self) -> str:
        """Return the SHA-256 of the resolved model, and of the source of its parts that come from elsewhere.

        It is equal for equal models, whatever their files.
        """
        elsewhere, resolved = source_elsewhere(self.spec), self.resolved()
        return sha256_of({**resolved, ELSEWHERE: elsewhere} if elsewhere else resolved)

    def scaled(self, factor: float) -> Model:
        """Return the model with its measured time scaled by a factor above 0."""
        if not 0.0 < factor <= 1000.0:
            raise UsageError(f"a scale of {factor:g} makes no sense; 0.1 measures a tenth of the time")
        if factor == 1.0:
            return self
        return self._noting(*scaled(self.spec, factor))

    def quick(self, least_ns: int = 0) -> Model:
        """Return the model shortened for a first look, to no less than what those beside it need (`first_look_ns`)."""
        return self._noting(*quick(self.spec, least_ns))

    def _noting(self, spec: ModelSpec, note: str) -> Model:
        return replace(self, spec=spec, notes=(*self.notes, note) if note else self.notes)


def load_model(name_or_path: str | Path, overrides: Sequence[str] = ()) -> Model:
    """Return the checked model of a file or of a shipped name, with assignments such as ``domains.sut.weight=512``.

    Refuses a file, one it extends or an override that is wrong, and a name that is none.
    """
    return model_of(read_document(name_or_path), str(name_or_path), overrides)


def variant_of(named: str) -> tuple[str, list[str]]:
    """Return the name or file of ``MODEL+KEY=VALUE+KEY=VALUE`` and its changes, none where a plus is part of the name.

    A plus sign that no key and equals sign follow is part of a name or of a value (``at: step 2 + 6 s``, ``1e+2 /s``).
    """
    if "+" not in named or Path(named).exists():
        return named, []
    name, *changes = re.split(r"\+(?=[^+=]*=)", named)
    if not changes:
        name, *changes = named.split("+")
    return name, changes


def model_of(document: Document, label: str, overrides: Sequence[str] = ()) -> Model:
    """Return the checked model of a document that was read before."""
    spec = document.override(ModelSpec, overrides).validate(ModelSpec, WITH_HOSTS)
    spec = with_changes(spec, as_fitted(document))
    if overrides:
        spec = without_foreign_measure(document, spec)
    return Model(label, spec, tuple(overrides))


def labels_apart(labels: Sequence[str], settings: Sequence[Sequence[str]]) -> list[str]:
    """Return labels of models by which they can be told apart.

    Behind a label that others have too stand the settings that those do not share, as a variant is written on the
    command line (``MODEL+KEY=VALUE``); behind one that is there yet, a number.
    """
    apart = list[str]()
    for label, texts in zip(labels, settings, strict=True):
        same = [others for each, others in zip(labels, settings, strict=True) if each == label]
        variant = "+".join([label, *(setting for setting in texts if any(setting not in others for others in same))])
        numbered = itertools.chain([variant], (f"{variant} ({number})" for number in itertools.count(2)))
        apart.append(next(each for each in numbered if each not in apart))
    return apart


def in_yaml(data: dict[str, Any]) -> str:
    """Return plain data as a model file has it."""
    yaml = YAML(typ="safe", pure=True)
    yaml.default_flow_style = False
    yaml.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    yaml.width = 110
    stream = StringIO()
    yaml.dump(data, stream)
    return stream.getvalue()


def shipped_models() -> tuple[str, ...]:
    return list_shipped("models")


def models_schema() -> dict[str, Any]:
    return json_schema(ModelSpec, "vftsim model")


_QUICK_STEP_NS = 60_000_000_000
QUICK_NS = 500_000_000
Scaled = tuple[ModelSpec, str]
"""A spec with less simulated time, and what was changed, in words for the user (empty: nothing)."""


def scaled(spec: ModelSpec, factor: float) -> Scaled:
    """Scale what is measured.

    Transients and warm-up stay: they are as long as a call or the scheduler's memory lasts, not as a test.
    """
    if spec.phased is not None:
        return _with_steps(spec, factor)
    return _measured_for(spec, round(spec.measure.duration * factor))


def quick(spec: ModelSpec, least_ns: int = 0) -> Scaled:
    """Measure a minute of each step, or half a second, or as long as this model or those beside it need, at most.

    Faults keep their instants, and what is compared with a model that has some is measured as long.
    """
    if spec.faults:
        return spec, "--quick shortens nothing: faults have their instants"
    if spec.phased is not None:
        short, note = _with_steps(spec, min(1.0, max(_QUICK_STEP_NS, least_ns) / measured_ns(spec)))
    else:
        short, note = _measured_for(spec, min(spec.measure.duration, max(_needed_ns(spec), least_ns)))
    if not note:
        is_beside = least_ns > _needed_ns(spec)
        why = "what it stands beside needs as long" if is_beside else "the model is as short as its workloads allow"
        return spec, f"--quick shortens nothing: {why}"
    # A load profile may have its peak where the shorter run measures: then nothing is saved.
    saved = 100.0 * (1.0 - events_of(short) / max(events_of(spec), 1.0))
    return short, f"{note}; about {saved:.0f} % of the work saved" if saved >= 1.0 else note


def first_look_ns(models: Iterable[Model]) -> int:
    """Return what a first look at models that are compared must measure, in all of them the same."""
    return max((_needed_ns(model.spec) for model in models), default=0)


def _needed_ns(spec: ModelSpec) -> int:
    """Return what a first look must measure.

    That is a workload's test, the wait after which a client's request has failed, and some cycles of a mechanism;
    with faults everything.
    """
    if spec.faults:
        return measured_ns(spec)
    tests_ns = max((workload.test_ns() for workload in spec.workloads.values()), default=0)
    patience_ns = max((workload.patience_ns for workload in spec.workloads.values()), default=0)
    waited_ns = QUICK_NS + max(tests_ns - spec.measure.warm_up, patience_ns, 0)
    cycle_ns = max((protection_of(spec, domain).cycle_ns for domain in spec.domains.values()), default=0)
    return max(waited_ns, FEWEST_CYCLES * cycle_ns)


def measured_ns(spec: ModelSpec) -> int:
    """Return how long a model is measured, of a ramp each step."""
    if spec.phased is None:
        return spec.measure.duration
    return max(workload.step_ns() for workload in spec.workloads.values())


def _with_steps(spec: ModelSpec, factor: float) -> Scaled:
    scaled = {name: workload.scaled(factor) for name, workload in spec.workloads.items()}
    note = "; ".join(change for _, change in scaled.values() if change)
    workloads = {name: workload for name, (workload, _) in scaled.items()}
    return spec.model_copy(update={"workloads": workloads}) if note else spec, note


def _measured_for(spec: ModelSpec, measured_ns: int) -> Scaled:
    before_ns = spec.measure.duration
    measured_ns = max(measured_ns, min(SHORTEST_NS, before_ns))
    if measured_ns > LONGEST_NS:
        raise UsageError(
            f"that would measure {format_duration(measured_ns)}; a run is measured for at most "
            f"{DURATION.format(LONGEST_NS)}"
        )
    if measured_ns == before_ns:
        return spec, ""
    ends_ns = spec.measure.warm_up + measured_ns
    for fault in spec.faults:
        if spec.time_of(fault.at) > ends_ns:
            raise UsageError(f"the fault at {fault.at} would be after the end of a run of {format_duration(ends_ns)}")
    measure = spec.measure.model_copy(update={"duration": measured_ns})
    note = (
        f"measured for {format_duration(measured_ns)} instead of {format_duration(before_ns)} "
        f"(warm-up of {format_duration(measure.warm_up)} kept)"
    )
    if measured_ns < before_ns:
        note += "; losses come in bursts, so shorter runs differ more"
    return spec.model_copy(update={"measure": measure}), note
