"""The tables of an IMS Bench report, from simulated runs: one row a replication and observation.

``steps`` has every column of the lab's own step table, under the same names, so that predicted and
measured rows can be laid side by side.  CPU and memory of the load generators are not simulated and
stay empty.  ``per_second`` condenses what is sampled once a second (load, CPU, memory, IHS,
retransmissions), ``delays`` the PX_TRT delays, and ``percentiles`` what each run says about the percentiles
of all runs together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from vftsim.stats import DelayHistogram, sections
from vftsim.study.frames import frame, joined
from vftsim.study.sip_records import SipRecord
from vftsim.workloads.ims_bench.metrics import DELAYS, PhaseRecord
from vftsim.workloads.sip.messages import Scenario

if TYPE_CHECKING:
    import pandas as pd

KEYS = ("phase", "step_index", "requested_saps")
STATISTICS = ("mean", "variance", "sd", "min", "max", "p50", "p90", "p95", "p99")
PERCENTILES = (50, 90, 95, 99)
QUANTITIES = {
    "load": "load_saps",
    "cpu_percent": "cpu_percent",
    "memory_mb": "memory_mb",
    "ihs_all": "ihs_all_percent",
    "ihs_uac": "ihs_uac_percent",
    "retransmissions_all": "retransmissions_all_per_s",
    "retransmissions_uac": "retransmissions_uac_per_s",
    "retransmissions_reg": "retransmissions_reg_per_s",
    "lag_ms": "lag_ms",
    "completed": "completed_per_s",
}
"""Series of a :class:`PhaseRecord`, and their names in the tables."""

_SCENARIO_OF = {
    "SES1": "ims_uac", "SES2": "ims_uac", "REL1": "ims_uac", "PMM1": "ims_msgc",
    "REG1": "all_registration", "REG2": "all_registration", "REG4": "ims_rereg",
    "invite200": "ims_uac",
}  # fmt: skip

Runs = Sequence[tuple[int, SipRecord]]


def steps_table(environment: str, limit_percent: float, runs: Runs) -> pd.DataFrame:
    """Return one row for each replication and measured phase."""
    return frame([
        {"replication": number, **_step_row(environment, limit_percent, phase)}
        for number, record in runs
        for phase in record
    ])  # fmt: skip


def per_second_table(runs: Runs) -> pd.DataFrame:
    """Return one row for each replication, phase and quantity sampled every second."""
    return frame([
        {"replication": number, **_key(phase), "quantity": QUANTITIES[name], **_statistics(values)}
        for number, record in runs
        for phase in record
        for name, values in phase.series.items()
        if values
    ])  # fmt: skip


def delays_table(runs: Runs) -> pd.DataFrame:
    """Return one row for each replication, phase and delay that occurred."""
    return frame([
        {"replication": number, **_key(phase), **row}
        for number, record in runs
        for phase in record
        for row in _delay_rows(phase)
    ])  # fmt: skip


def percentiles_table(runs: Runs) -> pd.DataFrame:
    """Return one row for each phase, delay, percentile and replication: its own percentile beside the pooled one.

    ``beyond`` counts the run's delays beyond the pooled percentile, ``beyond_p90`` those beyond the pooled 90 %.
    """
    return frame([
        {"replication": number, **key, "percent": percent, "own_ms": own / 1e6, "pooled_ms": found.pooled / 1e6,
         "beyond": beyond, "beyond_p90": beyond_body}
        for key, measured in _by_delay(runs)
        for percent, found in zip(PERCENTILES, sections([h for _, h in measured], PERCENTILES), strict=True)
        for (number, _), own, beyond, beyond_body in zip(
            measured, found.own, found.beyond, found.beyond_body, strict=True
        )
    ])  # fmt: skip


def _by_delay(runs: Runs) -> Iterator[tuple[dict[str, Any], list[tuple[int, DelayHistogram]]]]:
    """Group the histograms of all replications by phase and delay, without the empty ones."""
    groups: dict[tuple[Any, ...], list[tuple[int, DelayHistogram]]] = {}
    for number, record in runs:
        for phase in record:
            for name, histogram in phase.delays.items():
                if histogram.count:
                    groups.setdefault((*_key(phase).values(), name), []).append((number, histogram))
    for (*key, name), measured in groups.items():
        yield {**dict(zip(KEYS, key, strict=True)), **_delay_name(name)}, measured


def series_table(runs: Runs, sample_period_ns: int) -> pd.DataFrame:
    """Return one row for each replication and sampled second, with simulated time in seconds."""
    frames = []
    for number, record in runs:
        for phase in record:
            columns = {QUANTITIES[name]: values for name, values in phase.series.items() if values}
            count = max(map(len, columns.values()), default=0)
            part = frame({name: values for name, values in columns.items() if len(values) == count})
            times_s = (phase.measure_from_ns + sample_period_ns * np.arange(1, count + 1)) / 1e9
            part.insert(0, "time_s", times_s)
            part.insert(0, "phase", phase.name)
            part.insert(0, "replication", number)
            frames.append(part)
    return joined(frames) if frames else frame()


def passed(phase: PhaseRecord, limit_percent: float) -> bool:
    """Tell whether no scenario, nor all together, has more inadequately handled attempts than allowed.

    By the final figures: right where no step follows, for attempts that end in a step of another load spoil
    them.  A step of a ramp is judged by :meth:`PhaseRecord.passes`.
    """
    return max(phase.ihs_percent(), *(phase.ihs_percent(s) for s in Scenario)) <= limit_percent


def _key(phase: PhaseRecord) -> dict[str, Any]:
    return {"phase": phase.name, "step_index": phase.index, "requested_saps": phase.requested_saps}


def _step_row(environment: str, limit_percent: float, phase: PhaseRecord) -> dict[str, Any]:
    attempts = sum(phase.attempts)
    row: dict[str, Any] = {"environment": environment, **_key(phase), "effective_saps": phase.effective_saps}
    for scenario in Scenario:
        share = 100.0 * phase.attempts[scenario] / attempts if attempts else math.nan
        row[f"ratio_{scenario.label}_percent"] = share
    row["cpu_percent"] = _mean(phase.series["cpu_percent"])
    row["memory_mb"] = _mean(phase.series["memory_mb"])
    row["sipp_cpu_percent"] = math.nan
    row["sipp_mem_mb"] = math.nan
    for scenario in Scenario:
        row[f"ihs_{scenario.label}_percent"] = phase.ihs_percent(scenario)
    row["ihs_global_percent"] = phase.ihs_percent()
    row["source_location"] = "simulated"
    row["retransmissions_per_s"] = _mean(phase.series["retransmissions_all"])
    row["seconds"] = (phase.end_ns - phase.measure_from_ns) / 1e9
    for scenario in Scenario:
        row[f"attempts_{scenario.label}"] = phase.attempts[scenario]
        row[f"inadequate_{scenario.label}"] = phase.inadequate[scenario]
    row["not_started"] = phase.not_started
    row["dropped_datagrams"] = phase.dropped
    row["within_limit"] = phase.passes(limit_percent) if phase.index else passed(phase, limit_percent)
    return row


def _statistics(values: Sequence[float]) -> dict[str, float]:
    data = np.asarray(values, dtype=float)
    variance = float(data.var(ddof=1)) if data.size > 1 else math.nan
    figures = [float(data.mean()), variance, math.sqrt(variance), float(data.min()), float(data.max())]
    figures += [float(x) for x in np.percentile(data, PERCENTILES)]
    return {"seconds": float(data.size), **dict(zip(STATISTICS, figures, strict=True))}


def _delay_rows(phase: PhaseRecord) -> Iterator[dict[str, Any]]:
    for name, histogram in phase.delays.items():
        if histogram.count == 0:
            continue
        yield {**_delay_name(name), "count": histogram.count, **_delay_figures(histogram)}


def _delay_name(name: str) -> dict[str, str]:
    metric, _, scenario = name.partition("/")
    shown = f"PX_TRT-{metric}" if metric in DELAYS else metric
    return {"metric": shown, "scenario": scenario or _SCENARIO_OF[metric]}


def _delay_figures(histogram: DelayHistogram) -> dict[str, float]:
    figures = {
        "mean_ms": histogram.mean / 1e6,
        "sd_ms": histogram.sd / 1e6 if histogram.count > 1 else math.nan,
        "min_ms": histogram.min / 1e6,
        "max_ms": histogram.max / 1e6,
    }
    for percent in PERCENTILES:
        figures[f"p{percent}_ms"] = histogram.percentile(percent) / 1e6
    figures["beyond_p99"] = float(histogram.samples_beyond(99))
    return figures


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan
