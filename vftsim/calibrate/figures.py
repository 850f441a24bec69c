"""What a run of any model says, by name: the figures that a dataset may have measured.

``cpu.<domain>`` is the CPU of a domain in percent of one CPU.  Media streams give ``loss_percent``, ``delay_p50_ms``
and so on; other workloads and programs ``<workload>.<figure>``, as ``vftsim run`` prints them.  Where the model plays
steps every figure has the name of its step, elsewhere that of the one measured phase, ``measured``.  Units are those
in the names.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from vftsim.calibrate.observations import UNITS, simulated
from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.composition.views import flows_of, phases_of
from vftsim.errors import UsageError
from vftsim.labs.dataset import Observations
from vftsim.platform.outcomes import CopyUse, DomainUse
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.study.run_figures import figures_of_workloads, row_of

_SUFFIXES = (("_mbit_per_s", "Mbit/s"), ("_per_s", "/s"), ("_percent", "%"), ("_ms", "ms"))


def observe(spec: ModelSpec, seed: int, replication: int) -> Observations:
    """Run the model once and return what was observed."""
    return observations_of(run_model(spec, seed, replication))


def observe_as(spec: ModelSpec, seed: int, replication: int, label: str) -> Observations:
    """Run a model that stands for one measured run; its observations bear the run's name (:func:`as_run`)."""
    return as_run(observe(spec, seed, replication), label)


def as_run(seen: Observations, label: str) -> Observations:
    """Return the observations of the run ``environment/phase``: of the phase of that name, else of the last one."""
    own, last = label.partition("/")[2], list(seen)[-1][0]
    wanted = own if any(phase == own for phase, _ in seen) else last
    return {(label, quantity): value for (phase, quantity), value in seen.items() if phase == wanted}


def observations_of(record: RunRecord) -> Observations:
    """Return every figure of a run by phase and name."""
    found: Observations = {}
    measured = [phase for phase in record.phases if phase.name] or [record.whole]
    for phase in measured:
        for owner, outcome in phase.outcomes.items():
            if isinstance(outcome, DomainUse | CopyUse):
                found[phase.name or "measured", f"cpu.{owner.removeprefix('domains.')}"] = outcome.cpu
    steps = simulated(phases_of(record))
    last = measured[-1].name or "measured"
    for name, value in _without_steps(record):
        found[last, name] = value
    return found | steps


def _without_steps(record: RunRecord) -> Iterator[tuple[str, float]]:
    if flows_of(record):
        for name, value in row_of(record).items():
            if value is not None and not name.startswith("cpu_"):
                yield name, float(value)
    for workload, figures in figures_of_workloads(record).items():
        if workload not in flows_of(record):
            for name, value in figures.items():
                yield f"{workload}.{name}", value


def unit_of_figure(quantity: str) -> str | None:
    """Return the unit that a figure is in; ``None``: its name does not say, a dataset's is taken as it is."""
    if quantity in UNITS:
        return UNITS[quantity]
    if quantity.startswith("cpu."):
        return "%"
    return next((unit for suffix, unit in _SUFFIXES if quantity.endswith(suffix)), None)


def check_present(seen: Observations, keys: Mapping[tuple[str, str], object]) -> None:
    """Refuse quantities that a run did not give, the nearest name first.

    Raises
    ------
    UsageError
    """
    for phase, quantity in keys:
        given = {name for label, name in seen if label == phase}
        if given and quantity not in given:
            hint = did_you_mean(quantity, given) or ";"
            raise UsageError(
                f"the fit is to {shown(quantity)}, which the model does not have in '{phase}'{hint} it has "
                f"{listing(sorted(given))}"
            )
