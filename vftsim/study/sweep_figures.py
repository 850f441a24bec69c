"""One replication of a sweep as plain figures, and figures across replications with their intervals.

The unit of observation is the replication.  Packet loss and the rate of loss events are ratios of sums over
replications (losses come together, so neither packets nor events are counted as independent); everything
else, percentiles included, is the mean of the replications' own figures.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from vftsim.composition.record import RunRecord
from vftsim.composition.run import run_model
from vftsim.composition.views import flows_of, has_bench
from vftsim.errors import UsageError
from vftsim.stats import Estimate, binomial_interval, mean_interval, ratio_of_sums, unless_mixed
from vftsim.study.design.runner import REFUSED
from vftsim.study.protection_figures import protection_figures
from vftsim.study.replicate import Task
from vftsim.study.run_figures import bench_figures, cpu_of, figures_of_workloads, protection_of, row_of

Figures = dict[str, Any]
PROTECTION = "protection."
"""Prefix of the figures of the first domain that a mechanism guards."""
_COUNTS = ("delivered_packets", "dropped_packets", "loss_events", "measured_s")


def simulate(task: Task) -> Figures:
    """Run a replication; a scheduler that cannot run the host gives its reason under ``refused``."""
    try:
        record = run_model(task.spec, task.seed, task.replication)
    except UsageError as error:
        return {REFUSED: str(error)}
    figures = bench_figures(task.spec, record) if has_bench(task.spec) else {}
    if flows_of(record) or not figures:
        figures |= _of_flows(record)
    for protection in list(protection_of(record).values())[:1]:
        figures |= {f"{PROTECTION}{name}": value for name, value in protection_figures(protection).items()}
    for name, own in figures_of_workloads(record).items():
        if name not in flows_of(record):
            figures |= {f"{name}.{figure}": value for figure, value in own.items()}
    return figures


def _of_flows(record: RunRecord) -> Figures:
    figures: Figures = {}
    media = next((flow for flow in flows_of(record).values() if flow.is_voice), None)
    if media is not None:
        known = (media.delivered, media.dropped, media.loss_events, media.seconds)
        figures |= dict(zip(_COUNTS, known, strict=True))
    used = sum(cpu_of(record).values())
    return figures | row_of(record) | {"cpu_all": used, "events": record.events}


def estimates(rows: Sequence[Mapping[str, Any]], confidence: float) -> Iterator[tuple[str, Estimate]]:
    """Return every figure across the replications of a point, by name with unit."""
    media = [row for row in rows if "dropped_packets" in row]
    if media:
        dropped = [row["dropped_packets"] for row in media]
        known = [row["delivered_packets"] + row["dropped_packets"] for row in media]
        if sum(known):
            yield "loss_percent", ratio_of_sums(dropped, known, confidence).times(100.0)
        events, seconds = ([row[name] for row in media] for name in ("loss_events", "measured_s"))
        yield "loss_events_per_s", ratio_of_sums(events, seconds, confidence)
    beyond = [row["stop_step"] == 1 for row in rows if "stop_step" in row]
    is_mixed = len(set(beyond)) > 1
    for name in dict.fromkeys(name for row in rows for name in row):
        values = [float(row[name]) for row in rows if row.get(name) is not None]
        if values and name not in {*_COUNTS, "loss_percent", "loss_events_per_s"}:
            of_step = is_mixed and name.startswith("step1_")
            yield name, unless_mixed(mean_interval(values, confidence), values, of_step)
    if is_mixed:
        yield "step1_runs_beyond_limit_percent", binomial_interval(sum(beyond), len(beyond), confidence).times(100.0)
