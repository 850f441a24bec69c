"""One replication of a sweep as plain figures, and figures across replications with their intervals.

The unit of observation is the replication.  Packet loss and the rate of loss events are ratios of sums over
replications (losses come together, so neither packets nor events are counted as independent); everything
else, percentiles included, is the mean of the replications' own figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from vftsim.errors import UsageError
from vftsim.media.run import MediaResult
from vftsim.stats import Estimate, mean_interval, ratio_of_sums
from vftsim.study.sip_records import steps_of
from vftsim.study.system import system_of
from vftsim.workloads.ims_bench.ramp_end import ramp_end

Figures = dict[str, Any]
REFUSED = "refused"
_COUNTS = ("delivered_packets", "dropped_packets", "loss_events", "measured_s")
_MS = 1_000_000


@dataclass(frozen=True, slots=True)
class Task:
    """One replication to be run, with all that determines it."""

    kind: str
    spec: Any
    seed: int
    replication: int


def simulate(task: Task) -> Figures:
    """Run a replication; a scheduler that cannot run the host gives its reason under ``refused``."""
    try:
        return _media(task) if task.kind == "media_host" else _sip(task)
    except UsageError as error:
        return {REFUSED: str(error)}


def _media(task: Task) -> Figures:
    result: MediaResult = system_of(task.kind).simulate(task.spec, task.seed, task.replication)
    figures: Figures = {}
    media = result.flows.get("media")
    if media is not None:
        known = (media.delivered, media.dropped, media.loss_events, media.seconds)
        figures |= dict(zip(_COUNTS, known, strict=True))
    used = sum(result.domain_cpu.values())
    return figures | result.row() | {"cpu_all": used, "events": result.events}


def _sip(task: Task) -> Figures:
    record = system_of(task.kind).simulate(task.spec, task.seed, task.replication)
    ramp = ramp_end(record, task.spec.workload.steps.stop_above_ihs)
    first = steps_of(record)[0]
    cpu = first.series["cpu_percent"]
    delay = first.delays["SES1"]
    return {
        "doc_saps": ramp.doc_saps,
        "stop_step": ramp.stop_step,
        "step1_cpu_percent": sum(cpu) / len(cpu) if cpu else None,
        "step1_ihs_percent": first.ihs_percent(),
        "step1_ses1_p50_ms": delay.percentile(50) / _MS if delay.count else None,
        "step1_ses1_p99_ms": delay.percentile(99) / _MS if delay.count else None,
    }


def estimates(rows: Sequence[Mapping[str, Any]], confidence: float) -> Iterator[tuple[str, Estimate]]:
    """Return every figure across the replications of a point, by name with unit."""
    media = [row for row in rows if "dropped_packets" in row]
    if media:
        dropped = [row["dropped_packets"] for row in media]
        known = [row["delivered_packets"] + row["dropped_packets"] for row in media]
        if sum(known):
            yield "loss_percent", _percent(ratio_of_sums(dropped, known, confidence))
        events, seconds = ([row[name] for row in media] for name in ("loss_events", "measured_s"))
        yield "loss_events_per_s", ratio_of_sums(events, seconds, confidence)
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [float(row[name]) for row in rows if row.get(name) is not None]
        if values and name not in {*_COUNTS, "loss_percent", "loss_events_per_s"}:
            yield name, mean_interval(values, confidence)


def _percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.mean, 100 * e.half_width, 100 * e.low, 100 * e.high, e.n, e.confidence, e.kind)
