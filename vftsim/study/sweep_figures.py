"""One replication of a sweep as plain figures, and figures across replications with their intervals.

The unit of observation is the replication.  Packet loss and the rate of loss events are ratios of sums over
replications (losses come together, so neither packets nor events are counted as independent); everything
else, percentiles included, is the mean of the replications' own figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.composition.views import flows_of, has_bench
from vftsim.errors import UsageError
from vftsim.stats import Estimate, mean_interval, ratio_of_sums
from vftsim.study.composed import row_of
from vftsim.study.composed import simulate as run_once
from vftsim.study.protection_figures import protection_figures
from vftsim.study.replicate import Task
from vftsim.study.run_figures import bench_figures, figures_of_measured
from vftsim.workloads.parts import Measured

Figures = dict[str, Any]
REFUSED = "refused"
PROTECTION = "protection."
"""Prefix of the figures of the first domain that a mechanism guards."""
_COUNTS = ("delivered_packets", "dropped_packets", "loss_events", "measured_s")


def simulate(task: Task) -> Figures:
    """Run a replication; a scheduler that cannot run the host gives its reason under ``refused``."""
    try:
        record = run_once(task.spec, task.seed, task.replication)
    except UsageError as error:
        return {REFUSED: str(error)}
    figures = bench_figures(task.spec, record) if has_bench(task.spec) else {}
    if flows_of(record) or not figures:
        figures |= _of_flows(record)
    if record.protection:
        own = protection_figures(next(iter(record.protection.values())))
        figures |= {f"{PROTECTION}{name}": value for name, value in own.items()}
    for name, result in record.workloads.items():
        if isinstance(result, Measured):
            figures |= {f"{name}.{figure}": value for figure, value in figures_of_measured(result).items()}
    return figures


def _of_flows(record: RunRecord) -> Figures:
    figures: Figures = {}
    media = next((flow for flow in flows_of(record).values() if flow.is_voice), None)
    if media is not None:
        known = (media.delivered, media.dropped, media.loss_events, media.seconds)
        figures |= dict(zip(_COUNTS, known, strict=True))
    used = sum(record.windows[-1].domain_cpu.values())
    return figures | row_of(record) | {"cpu_all": used, "events": record.events}


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
