"""Measured numbers of a SIP lab, and the same numbers of a simulated run.

An observation is one quantity of one phase of one environment.  Quantities of a SIP lab, by the names that a
``dataset.yaml`` gives them: ``cpu`` (percent), ``cpu_sd`` (points, standard deviation of the CPU from second to
second), ``ihs/<scenario>`` and ``ihs/global`` (percent), ``retransmissions`` (per second), ``load`` and ``completed``
(attempts a second), ``touches`` (messages received or sent by the server for an attempt of the phase's mix; computed
from ``mix/<scenario>``, in percent, where that was measured), ``memory`` (MB available), ``<delay>/<p>`` with a PX_TRT
delay or ``invite200`` and ``p50``, ``p90``, ``p95``, ``p99``, ``p99.9`` or ``max`` (ms), ``<delay>`` its mean.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from vftsim.errors import ModelFileError, UsageError
from vftsim.labs.dataset import Dataset, Observations, read_dataset
from vftsim.spec.suggest import did_you_mean, listing, shown
from vftsim.workloads.ims_bench.metrics import DELAYS, PhaseRecord
from vftsim.workloads.sip.messages import Scenario

PERCENTILES = (50, 90, 95, 99)
DELAY_PERCENTILES = frozenset(f"{delay}/p{p}" for delay in DELAYS for p in PERCENTILES)
_ALL_DELAYS = (*DELAYS, "invite200")
FURTHER_DELAYS = tuple(
    f"{delay}{which}"
    for delay in _ALL_DELAYS for which in ("", *(f"/p{p}" for p in PERCENTILES), "/p99.9", "/max")
    if f"{delay}{which}" not in DELAY_PERCENTILES
)  # fmt: skip
"""Figures of delays that `delays` does not stand for in a fit."""
MIX = {s: f"mix/{s.label}" for s in Scenario}
UNITS = {
    "cpu": "%", "cpu_sd": "%", "load": "/s", "touches": "count", "memory": "MB", "retransmissions": "/s",
    "completed": "/s", "ihs/global": "%", **{f"ihs/{s.label}": "%" for s in Scenario},
    **dict.fromkeys(MIX.values(), "%"),
    **dict.fromkeys(sorted(DELAY_PERCENTILES), "ms"), **dict.fromkeys(FURTHER_DELAYS, "ms"),
}  # fmt: skip
"""Unit of every quantity that a SIP lab is compared in."""
_MIX_TOLERANCE = 1.0


def measured(path: Path, environment: str) -> Observations:
    """Read the measured numbers of one environment of a dataset.

    Parameters
    ----------
    path : Path
        ``dataset.yaml`` or its folder.
    environment : str

    Raises
    ------
    ModelFileError
        The dataset is wrong, has nothing for the environment, or measures a quantity in a unit of another kind.
    """
    dataset = read_dataset(path)
    _check_units(dataset)
    return with_touches(dataset, dataset.observations(environment))


def with_touches(dataset: Dataset, found: Observations) -> Observations:
    """Return observations with the messages of an attempt in place of the shares of the scenarios.

    Raises
    ------
    ModelFileError
        The shares of a phase do not add up to 100 %.
    """
    found = dict(found)
    for phase in dict.fromkeys(phase for phase, _ in found):
        mix = {s: found.pop((phase, name)) for s, name in MIX.items() if (phase, name) in found}
        if mix:
            _check_mix(dataset, phase, sum(mix.values()))
            found[phase, "touches"] = sum(s.touches * share for s, share in mix.items()) / 100.0
    return found


def check_known(quantity: str, where: str) -> None:
    """Refuse a quantity that a SIP lab does not have; ``where`` begins the message.

    Raises
    ------
    UsageError
        With the quantities there are, the nearest name first.
    """
    if quantity not in UNITS:
        hint = did_you_mean(quantity, UNITS) or ";"
        raise UsageError(f"{where} {shown(quantity)}, which the model does not have{hint} it has {listing(UNITS)}")


def _check_mix(dataset: Dataset, phase: str, total: float) -> None:
    if abs(total - 100.0) > _MIX_TOLERANCE:
        raise ModelFileError(
            f"the shares mix/... of the phase '{phase}' add up to {total:g} %, not to 100; give all of "
            f"{', '.join(MIX.values())}, or none", str(dataset.path),
        )  # fmt: skip


def _check_units(dataset: Dataset) -> None:
    for quantity, seen in dataset.units().items():
        if UNITS.get(quantity, seen.unit) != seen.unit:
            raise ModelFileError(
                f"{quantity} of a SIP lab is in {UNITS[quantity]}, not in {seen.unit}; mend the unit in "
                f"{dataset.path.name}, or name another metric", seen.file, 1, seen.column,
            )  # fmt: skip


def simulated(phases: Iterable[PhaseRecord]) -> Observations:
    """Compute the same numbers from the phases of a run."""
    found: Observations = {}
    for record in phases:
        for quantity, value in _of_phase(record):
            found[record.name, quantity] = value
    return found


def _of_phase(record: PhaseRecord) -> Iterator[tuple[str, float]]:
    series = record.series
    yield "cpu", _mean(series["cpu_percent"])
    yield "cpu_sd", statistics.pstdev(series["cpu_percent"]) if series["cpu_percent"] else 0.0
    yield "load", record.effective
    if attempts := sum(record.attempts):
        yield "touches", sum(s.touches * record.attempts[s] for s in Scenario) / attempts
    yield "completed", _mean(series["completed"])
    yield "memory", _mean(series["memory_mb"])
    yield "retransmissions", _mean(series["retransmissions_all"])
    yield "ihs/global", record.ihs_percent()
    for scenario in Scenario:
        yield f"ihs/{scenario.label}", record.ihs_percent(scenario)
    for delay in _ALL_DELAYS:
        histogram = record.delays[delay]
        if histogram.count:
            yield delay, histogram.mean / 1e6
            yield f"{delay}/max", histogram.max / 1e6
            for p in (*PERCENTILES, 99.9):
                yield f"{delay}/p{p}", histogram.percentile(p) / 1e6


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0
