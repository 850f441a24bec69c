"""What a run of any model says, by the names of datasets.

A figure whose declaration has a name for datasets bears it: ``cpu.<domain>`` is the CPU of a domain in percent of one
CPU; of a SIP lab ``cpu``, ``ihs/<scenario>`` and ``ihs/global``, ``retransmissions``, ``touches``, ``<delay>/<p>`` and
so on.  Any other that a workload or program measured in the whole run is ``<workload>.<figure>``, as ``figures.csv``
has it, and as an import has it: statistics after a slash (``pages.latency/p95``; ``pages.latency`` is the mean).

Where the model plays steps every figure has the name of its step, elsewhere that of the one measured phase,
``measured``.
"""

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.dataset import Dataset, Observations, read_dataset
from vftsim.outcome import Entry, Outcome
from vftsim.outcome.declare import ANY, Delays, Quotient
from vftsim.spec.suggest import instead, shown
from vftsim.study.figures.summary import WHOLE, is_service, short_owner
from vftsim.workloads.parts import discover_parts

_FURTHER = ("p99_9",)
"""Percentiles that datasets have beside the listed ones."""
_GLOBAL = "global"
_IN_POINTS = {"load", "completed", "memory", "touches"}
"""Figures with another unit than percent that are compared by their difference nevertheless."""


def observe(spec: ModelSpec, seed: int, replication: int) -> Observations:
    return observations_of(run_model(spec, seed, replication))


def as_run(observations: Observations, label: str) -> Observations:
    """Return the observations of the run ``environment/phase``: of the phase of that name, else of the last one."""
    phase_name, last = label.partition("/")[2], list(observations)[-1][0]
    phase_of_run = phase_name if any(phase == phase_name for phase, _ in observations) else last
    return {(label, quantity): value for (phase, quantity), value in observations.items() if phase == phase_of_run}


def observations_of(record: RunRecord) -> Observations:
    """Return every figure of a run by phase and name."""
    observed: Observations = {}
    phases = [phase for phase in record.phases if phase.name]
    for phase in phases or [record.whole]:
        for owner, outcome in phase.outcomes.items():
            observed |= {(phase.name or WHOLE, name): value for name, value in observed_in(owner, outcome).items()}
    stepped = {owner for phase in phases for owner in phase.outcomes}
    for owner, outcome in record.whole.outcomes.items():
        if is_service(owner) and owner not in stepped:
            label = phases[-1].name if phases else WHOLE
            observed |= {(label, name): value for name, value in observed_in(owner, outcome, True).items()}
            observed |= {(label, f"{short_owner(owner)}.{name}"): value for name, value in outcome.columns().items()}
    return observed


def observed_in(owner: str, outcome: Outcome, by_figure: bool = False) -> dict[str, float]:
    """Return what an outcome says of figures that datasets have a name for; a share of nothing is 0, as in reports.

    ``by_figure``: of all its figures, by their names.
    """
    observed = {}
    for name, entry in _named(owner, outcome, by_figure):
        value = entry.value(outcome)
        if math.isfinite(value) or isinstance(entry.figure, Quotient):
            observed[name] = value if math.isfinite(value) else 0.0
    return observed


def _named(owner: str, outcome: Outcome | type[Outcome], by_figure: bool = False) -> Iterator[tuple[str, Entry]]:
    """Yield the figures of an outcome, or of its declaration, that datasets have a name for."""
    for figure in outcome.declared.values():
        named = f"{ANY}.{figure.name}" if by_figure else figure.observed_as
        if not named:
            continue
        entries = [*figure.entries(outcome if isinstance(outcome, Outcome) else None)]
        entries += [entry for word in _FURTHER if (entry := figure.further(word)) is not None]
        base = named.replace(ANY, short_owner(owner))
        for entry in entries:
            part = entry.path[1] if len(entry.path) > 1 else ""
            if isinstance(figure, Delays):
                if part not in {"sd", "min"}:
                    yield base if part == "mean" else f"{base}/{part.replace('_', '.')}", entry
            elif isinstance(figure, Quotient) and figure.top.by is not None:
                yield f"{base}/{part or _GLOBAL}", entry
            elif not part:
                yield base, entry


@cache
def _units() -> dict[str, str]:
    """Return the unit of every declared figure by the names that datasets have for it, its own, or its column."""
    discover_parts()
    owner, kinds = f"domains.{ANY}", list(Outcome.kinds.values())
    named = [(name.removeprefix(f"{ANY}."), entry) for kind in kinds for name, entry in _named(owner, kind, True)]
    units: dict[str, str] = {}
    for name, entry in named + [(entry.column, entry) for kind in kinds for entry in kind.patterns()]:
        units[name] = entry.unit if units.get(name, entry.unit) == entry.unit else ""
    return units | {name: entry.unit for kind in kinds for name, entry in _named(owner, kind)}


def unit_of_figure(quantity: str) -> str | None:
    """Return the unit that a figure is in; ``None``: it has none, or several bear the name, and a dataset's counts."""
    units, (head, dot, last) = _units(), quantity.partition(".")
    for name in (quantity, f"{head}.{ANY}" if dot and "/" not in last else quantity, last):  # cpu.vm/n is a count
        if units.get(name):
            return units[name]
    return None


def known_parts(figure: str) -> list[str]:
    """Return the names of a figure's parts and of the whole."""
    return [name for name in _units() if name.startswith(f"{figure}/")]


def is_ratio(quantity: str) -> bool:
    """Whether a quantity is compared by the logarithm of its ratio, and not by its difference in points."""
    return unit_of_figure(quantity) != "%" and quantity not in _IN_POINTS


@cache
def delay_percentiles() -> frozenset[str]:
    """Return what ``delays`` stands for in a fit: the listed percentiles of delays that a lab's report has."""
    discover_parts()
    return frozenset(
        name
        for kind in list(Outcome.kinds.values())
        for name, entry in _named("", kind)
        if entry.figure.known_as[:1] == (f"PX_TRT-{entry.figure.observed_as}",) and "/p" in name and "." not in name
    )


def others(quantity: str, quantities: Iterable[str]) -> str:
    """Return the end of a message about a quantity that a model does not have: of those it has the same statistic."""
    names, statistic = sorted(set(quantities)), quantity.partition("/")[2]
    alike = [name for name in names if name.partition("/")[2] == statistic] or names
    return f"{instead(quantity, alike, 'it has')} (rename: in the dataset, --rename of an import)"


def check_present(observations: Observations, keys: Mapping[tuple[str, str], object]) -> None:
    """Refuse quantities that a run did not give, the nearest name first."""
    for phase, quantity in keys:
        names = {name for label, name in observations if label == phase}
        if names and quantity not in names:
            raise UsageError(
                f"the fit is to {shown(quantity)}, which the model does not have in '{phase}'{others(quantity, names)}"
            )


def measured(path: Path, environment: str) -> Observations:
    """Read the measured numbers of one environment of a dataset, ``dataset.yaml`` or its folder.

    Refuses a dataset that has nothing for the environment, or measures a quantity in a unit of another kind.
    """
    dataset = read_dataset(path)
    check_units(dataset)
    return restated(dataset, dataset.observations(environment))


def restated(dataset: Dataset, observations: Observations) -> Observations:
    """Return observations in the terms of the models, such as messages for shares of a mix; refuse contradictions."""
    discover_parts()
    result: Observations = {}
    for phase in dict.fromkeys(phase for phase, _ in observations):
        of_phase = {quantity: value for (name, quantity), value in observations.items() if name == phase}
        for kind in list(Outcome.kinds.values()):
            try:
                of_phase = kind.restated(of_phase)
            except ValueError as error:
                raise ModelFileError(f"in the phase '{phase}' {error}", str(dataset.path)) from None
        result |= {(phase, quantity): value for quantity, value in of_phase.items()}
    return result


def check_units(dataset: Dataset) -> None:
    """Refuse quantities that the model gives in another kind of unit, with file and column."""
    for quantity, column in dataset.units().items():
        unit = unit_of_figure(quantity)
        if unit is not None and unit != column.unit:
            raise ModelFileError(
                f"{quantity} is in {unit} in the model, not in {column.unit}; mend the unit in {dataset.path.name}, or "
                "name another metric",
                column.file,
                1,
                column.column,
            )


def is_cpu(quantity: str) -> bool:
    """Whether models have a figure of CPU by this name: ``cpu/client`` is of a machine that none has."""
    return re.split("[./_]", quantity)[0] == "cpu" and unit_of_figure(quantity) == "%"


def check_cpu(dataset: Dataset, models: Mapping[str, ModelSpec]) -> None:
    """Refuse a measured use of CPU that there cannot be: below 0, or above that of all pCPUs of a host of the model.

    ``models`` are by environment, or by ``environment/phase``.  A machine's CPU may have in it what works for it beside
    its vCPUs, so theirs are no bound.  What is told by ticks may be 1 % too much.
    """
    for each in dataset.measurements:
        model = models.get(f"{each.environment}/{each.phase}") or models.get(each.environment)
        if model is None or each.unit != "%" or not is_cpu(each.quantity):
            continue
        pcpus = max(host.pcpus for host in model.hosts.values())
        if not 0.0 <= each.value <= 101.0 * pcpus:
            raise ModelFileError(
                f"{each.quantity} is {each.value:g} % of a CPU in '{each.environment}', '{each.phase}': it is from 0 "
                f"to {100 * pcpus} %, as the model's host has {pcpus} pCPUs (hosts); write that, mend the unit in "
                f"{dataset.path.name}, or give the host the pCPUs of the machine",
                each.file,
                each.line,
                each.column,
            )
