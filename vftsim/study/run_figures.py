"""Figures of one run by names with units, as columns of sweeps, datasets and protection tables have them."""

from __future__ import annotations

from typing import Any

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.views import bench_of, flows_of, phases_of
from vftsim.platform.outcomes import CopyUse, DomainUse, HostUse
from vftsim.platform.protection.outcome import Protection
from vftsim.study.sip_records import steps_of
from vftsim.workloads.ims_bench.metrics import Ramp
from vftsim.workloads.ims_bench.ramp_end import ramp_end

_MS = 1_000_000
_MEDIA = ("loss_percent", "loss_events_per_s", "delay_", "jitter_ms", "r_factor", "mos")


def figures_of_workloads(record: RunRecord) -> dict[str, dict[str, float]]:
    """Return what workloads and programs measured in the whole run, by their names and those of the figures.

    Those of a ramp's end are left out: they hang on the limit by which a step is judged.
    """
    found = {}
    for owner, outcome in record.whole.outcomes.items():
        if owner.startswith("workloads.") and not isinstance(outcome, Ramp):
            found[owner.removeprefix("workloads.")] = outcome.columns()
        elif ".applications." in owner:
            found[owner.removeprefix("domains.").replace(".applications", "")] = outcome.columns()
    return found


def cpu_of(record: RunRecord) -> dict[str, float]:
    """Return the CPU time of each domain in the last measured phase, in pCPUs; of copies, of each."""
    found = {}
    for owner, outcome in record.last_measured.outcomes.items():
        if owner.startswith("domains.") and isinstance(outcome, DomainUse | CopyUse):
            found[owner.removeprefix("domains.")] = outcome.cpu_ns / round(outcome.seconds * 1e9)
    return found


def protection_of(record: RunRecord) -> dict[str, Protection]:
    """Return what each guarded domain's mechanism did and cost in the whole run."""
    return {
        owner.removeprefix("domains.").removesuffix(".protection"): outcome
        for owner, outcome in record.whole.outcomes.items()
        if isinstance(outcome, Protection)
    }


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


def row_of(record: RunRecord) -> dict[str, Any]:
    """Return a steady replication's figures as one row, by name with unit.

    Those of media streams come first and bear no flow's name; a model has one flow of them at most in this row.
    """
    flows = flows_of(record)
    media = next((flow for flow in flows.values() if flow.is_voice), None)
    row: dict[str, Any] = {}
    if media is not None:
        row = {name: value for name, value in media.columns().items() if name.startswith(_MEDIA)}
    row |= {f"cpu_{name}": used for name, used in cpu_of(record).items()}
    hosts = [outcome for outcome in record.last_measured.outcomes.values() if isinstance(outcome, HostUse)]
    row["switching"] = sum(host.switching for host in hosts) / 100.0
    row["context_switches_per_s"] = sum(host.context_switch_rate for host in hosts)
    for host in hosts:
        for name, count in host.scheduler.items():
            row[name] = row.get(name, 0) + count
    return row
