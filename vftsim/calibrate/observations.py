"""Measured numbers of a SIP lab, and the same numbers of a simulated run.

An observation is one quantity of one phase of one environment.  Names of quantities: ``cpu`` (percent), ``cpu_sd``
(points, standard deviation of the CPU from second to second), ``ihs/<scenario>`` and ``ihs/global`` (percent),
``retransmissions`` (per second), ``load`` (attempts a second), ``touches`` (messages received or sent by the server
for an attempt of the phase's mix), ``memory`` (MB available), ``<delay>/<p>`` with a PX_TRT delay and ``p50``,
``p90``, ``p95`` or ``p99`` (ms).
"""

from __future__ import annotations

import csv
import statistics
from collections.abc import Iterable, Iterator
from pathlib import Path

from vftsim.errors import ModelFileError
from vftsim.sip.messages import Scenario
from vftsim.sip.metrics import DELAYS, PhaseRecord

PERCENTILES = (50, 90, 95, 99)
Observations = dict[tuple[str, str], float]
"""(phase, quantity) -> value."""

_DELAY_ROWS = {
    ("PX_TRT-REG1", "all_registration"): "REG1", ("PX_TRT-REG2", "all_registration"): "REG2",
    ("PX_TRT-REG4", "ims_rereg"): "REG4", ("PX_TRT-SES1", "ims_uac"): "SES1", ("PX_TRT-SES2", "ims_uac"): "SES2",
    ("PX_TRT-REL1", "ims_uac"): "REL1", ("PX_TRT-PMM1", "ims_msgc"): "PMM1",
}  # fmt: skip


def measured(folder: Path, environment: str) -> Observations:
    """Read the measured numbers of one environment from the tables of a dataset folder.

    Raises
    ------
    ModelFileError
        A table is missing or has no rows for the environment.
    """
    found: Observations = {}
    for row in _rows(folder / "sip_steps.csv", environment):
        phase = row["phase"]
        found[phase, "cpu"] = float(row["cpu_percent"])
        found[phase, "load"] = float(row["effective_saps"])
        found[phase, "touches"] = sum(s.touches * float(row[f"ratio_{s.label}_percent"]) for s in Scenario) / 100.0
        found[phase, "memory"] = float(row["memory_mb"])
        for name in [*(s.label for s in Scenario), "global"]:
            found[phase, f"ihs/{name}"] = float(row[f"ihs_{name}_percent"])
    if not found:
        raise ModelFileError(f"no rows for the environment '{environment}'", str(folder / "sip_steps.csv"))
    if environment == "virtual":
        for row in _rows(folder / "sip_cpu_virtual.csv", environment):
            found[row["phase"], "cpu_sd"] = float(row["sd_percent"])
        for row in _rows(folder / "sip_latency_virtual.csv", environment):
            delay = _DELAY_ROWS.get((row["metric"], row["scenario"]))
            if delay is not None:
                for p in PERCENTILES:
                    found[row["phase"], f"{delay}/p{p}"] = float(row[f"p{p}_ms"])
        for row in _rows(folder / "sip_retransmissions_virtual.csv", environment):
            if row["scenario"] == "all":
                found[row["phase"], "retransmissions"] = float(row["mean_per_s"])
    return found


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
    yield "load", record.effective_saps
    if attempts := sum(record.attempts):
        yield "touches", sum(s.touches * record.attempts[s] for s in Scenario) / attempts
    yield "memory", _mean(series["memory_mb"])
    yield "retransmissions", _mean(series["retransmissions_all"])
    yield "ihs/global", record.ihs_percent()
    for scenario in Scenario:
        yield f"ihs/{scenario.label}", record.ihs_percent(scenario)
    for delay in DELAYS:
        histogram = record.delays[delay]
        if histogram.count:
            for p in PERCENTILES:
                yield f"{delay}/p{p}", histogram.percentile(p) / 1e6


def _mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else 0.0


def _rows(path: Path, environment: str) -> Iterator[dict[str, str]]:
    try:
        with path.open(newline="", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                if row["environment"] == environment:
                    yield row
    except OSError as error:
        raise ModelFileError(f"cannot read this table of the dataset: {error.strerror}", str(path)) from None
