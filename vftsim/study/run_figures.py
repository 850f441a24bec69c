"""Every figure of a run by one flat name, with its unit: what an objective can be about.

``workload.figure`` is what the clients of a workload saw (``media.loss_percent``, ``web.answered_percent``), and of a
benchmark its first step and where its ramp ended; ``cpu.domain`` is the CPU time of a domain in pCPUs, ``link.way`` how
busy an end of a modelled link was in percent, both in the last measured window; ``protection.domain.figure`` is what a
mechanism counted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.views import bench_of, phases_of
from vftsim.study.sip_records import steps_of
from vftsim.workloads.flow_result import FlowResult
from vftsim.workloads.ims_bench.ramp_end import ramp_end
from vftsim.workloads.parts import Measured

_MS = 1_000_000
_PERCENTILES = (50, 95, 99)


def figures_of(spec: ModelSpec, record: RunRecord) -> dict[str, float]:
    """Return the figures of a run by name; what a run could not measure is left out."""
    found: dict[str, float | None] = {}
    for name, result in record.workloads.items():
        found |= {f"{name}.{figure}": value for figure, value in _of_workload(spec, record, result).items()}
    window = record.windows[-1]
    found |= {f"cpu.{domain}": used for domain, used in window.domain_cpu.items()}
    found |= {f"link.{way}": 100.0 * share for way, share in window.links.items()}
    for domain, counts in record.protection.items():
        found |= {f"protection.{domain}.{figure}": value for figure, value in counts.items()}
    return {name: float(value) for name, value in found.items() if value is not None}


def figures_of_measured(result: Measured) -> dict[str, float]:
    """Return what a workload or an application measured, its distributions by mean and percentiles."""
    figures = dict(result.figures)
    for label, delays in result.delays.items():
        if delays.count:
            figures |= {f"{label}_mean_ms": delays.mean / _MS}
            figures |= {f"{label}_p{p}_ms": delays.percentile(p) / _MS for p in _PERCENTILES}
    return figures


def bench_figures(spec: ModelSpec, record: RunRecord) -> dict[str, Any]:
    """Return where a benchmark's ramp ended, and its first step."""
    phases = phases_of(record)
    ramp = ramp_end(phases, bench_of(spec).steps.stop_above_ihs)
    first = steps_of(phases)[0]
    cpu, delay = first.series["cpu_percent"], first.delays["SES1"]
    return {
        "doc_saps": ramp.doc_saps,
        "stop_step": ramp.stop_step,
        "step1_cpu_percent": sum(cpu) / len(cpu) if cpu else None,
        "step1_ihs_percent": first.ihs_percent(),
        "step1_ses1_p50_ms": delay.percentile(50) / _MS if delay.count else None,
        "step1_ses1_p99_ms": delay.percentile(99) / _MS if delay.count else None,
    }


def _of_workload(spec: ModelSpec, record: RunRecord, result: Any) -> Mapping[str, Any]:
    if isinstance(result, FlowResult):
        return result.row()
    return figures_of_measured(result) if isinstance(result, Measured) else bench_figures(spec, record)
