"""The media host: guests that relay media streams on a hypervisor.

A steady state: what is simulated before the measured stretch is warm-up and not counted.  The model file
says how long both are (``workload.duration``, ``workload.warm_up``).
"""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from vftsim.errors import UsageError
from vftsim.kernel import Linked
from vftsim.media.build import kinds_of, linked
from vftsim.media.run import FlowResult, MediaResult, run_media
from vftsim.media.system import LONGEST_NS, SHORTEST_NS, MediaSystem
from vftsim.spec import format_duration
from vftsim.stats import DelayHistogram, Estimate, mean_interval, ratio_of_sums
from vftsim.study.system import Shortened

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

    from vftsim.study.capacity_request import CapacityAnswer, CapacityRequest
    from vftsim.study.model import Model

QUICK_NS = 500_000_000

_COLUMNS = ("metric", "estimate", "low", "high", "n", "confidence", "interval")
_FLOW = ("delivered", "dropped", "late", "loss_events", "loss_bursts", "jitter_ns", "seconds", "playout_ns")
_PLAIN = ("domain_cpu", "pcpu_busy", "switching", "context_switches", "counters", "interrupts", "in_flight", "events",
          "seconds")  # fmt: skip


class MediaHostSystem:
    """Runs :func:`vftsim.media.run.run_media`."""

    kind = "media_host"
    root = MediaSystem

    def kernel(self, spec: MediaSystem) -> Linked:
        """Return the kernel with the parts of this host."""
        return linked(kinds_of(spec))

    def simulate(self, spec: MediaSystem, seed: int, replication: int) -> MediaResult:
        """Run one replication."""
        return run_media(spec, seed, replication, spec.workload.duration, spec.workload.warm_up)

    def to_dict(self, record: MediaResult) -> dict[str, Any]:
        """Return a replication as plain data; wall time stays out."""
        flows = {
            name: {**{key: getattr(flow, key) for key in _FLOW}, "delays": flow.delays.to_dict()}
            for name, flow in record.flows.items()
        }
        drops = [[place, cause, count] for (place, cause), count in record.drops.items()]
        return {"flows": flows, "drops": drops, **{name: getattr(record, name) for name in _PLAIN}}

    def from_dict(self, data: Mapping[str, Any]) -> MediaResult:
        """Rebuild what :meth:`to_dict` returned."""
        flows = {
            name: FlowResult(delays=DelayHistogram.from_dict(flow["delays"]), **{key: flow[key] for key in _FLOW})
            for name, flow in data["flows"].items()
        }
        drops = {(place, cause): count for place, cause, count in data["drops"]}
        return MediaResult(flows=flows, drops=drops, **{name: data[name] for name in _PLAIN})

    def tables(
        self, name: str, spec: MediaSystem, records: Sequence[tuple[int, MediaResult]]
    ) -> dict[str, pd.DataFrame]:
        """Return the tables ``runs`` (one row a replication), ``flows`` and ``drops``."""
        import pandas as pd

        runs = [{"replication": n, "model": name, **record.row()} for n, record in records]
        flows = [
            {"replication": n, "flow": flow, "delivered": r.delivered, "dropped": r.dropped, "late": r.late,
             "loss_events": r.loss_events, "jitter_ms": r.jitter_ns / 1e6, "delay_mean_ms": r.mean_delay_ms}
            for n, record in records
            for flow, r in record.flows.items()
        ]  # fmt: skip
        drops = [
            {"replication": n, "place": place, "cause": cause, "packets": count}
            for n, record in records
            for (place, cause), count in record.drops.items()
        ]
        columns = ["replication", "place", "cause", "packets"]
        return {"runs": pd.DataFrame(runs), "flows": pd.DataFrame(flows), "drops": pd.DataFrame(drops, columns=columns)}

    def summary(self, tables: Mapping[str, pd.DataFrame], confidence: float) -> pd.DataFrame:
        """Return all figures across replications."""
        import pandas as pd

        from vftsim.study.sip_summary import estimate_columns

        rows = [{"metric": metric, **estimate_columns(estimate)} for metric, estimate in _figures(tables, confidence)]
        return pd.DataFrame(rows, columns=list(_COLUMNS))

    def figures(self, spec: MediaSystem, records: Sequence[tuple[int, MediaResult]]) -> dict[str, Figure]:
        """Return the distribution of the media delay."""
        from vftsim.report.plots import new_figure, plot_delay_distribution

        delays = DelayHistogram()
        for _, record in records:
            if "media" in record.flows:
                delays.merge(record.flows["media"].delays)
        if not delays.count:
            return {}
        figure, (ax,) = new_figure()
        plot_delay_distribution(ax, delays, "media, there and back")
        ax.set_title(f"{spec.title}, {len(records)} replications", fontsize=10)
        return {"delays": figure}

    def shorten(self, spec: MediaSystem, factor: float) -> Shortened:
        """Scale what is measured; the warm-up stays, as it is as long as the scheduler's memory, not as a test."""
        return _measured_for(spec, round(spec.workload.duration * factor))

    def quick(self, spec: MediaSystem) -> Shortened:
        """Measure half a second at most."""
        return _measured_for(spec, min(spec.workload.duration, QUICK_NS))

    def capacity(self, model: Model, request: CapacityRequest) -> CapacityAnswer:
        """Search for the media streams that it carries under a loss limit."""
        from vftsim.study.stream_capacity import stream_capacity

        return stream_capacity(model, request)


def _measured_for(spec: MediaSystem, measured_ns: int) -> Shortened:
    workload, before_ns = spec.workload, spec.workload.duration
    measured_ns = max(measured_ns, min(SHORTEST_NS, before_ns))
    if measured_ns > LONGEST_NS:
        raise UsageError(
            f"that would measure {format_duration(measured_ns)}; a media host is measured for at most "
            f"{format_duration(LONGEST_NS)}"
        )
    if measured_ns == before_ns:
        return Shortened(spec, "")
    note = (
        f"measured for {format_duration(measured_ns)} instead of {format_duration(before_ns)} "
        f"(warm-up of {format_duration(workload.warm_up)} kept)"
    )
    if measured_ns < before_ns:
        note += "; losses come in bursts, so shorter runs differ more"
    workload = workload.model_copy(update={"duration": measured_ns})
    return Shortened(spec.model_copy(update={"workload": workload}), note)


def _figures(tables: Mapping[str, pd.DataFrame], confidence: float) -> Iterator[tuple[str, Estimate]]:
    runs, flows = tables["runs"], tables["flows"]
    if not flows.empty:
        for name, flow in flows.groupby("flow", sort=False):
            known = flow["dropped"] + flow["delivered"]
            if known.sum():
                lost = ratio_of_sums(flow["dropped"].tolist(), known.tolist(), confidence)
                yield f"{name}_loss_percent", _percent(lost)
    for metric in runs.columns:
        values = runs[metric].dropna().tolist()
        if metric not in {"replication", "model", "loss_percent"} and values:
            yield str(metric), mean_interval([float(x) for x in values], confidence)


def _percent(e: Estimate) -> Estimate:
    return Estimate(100 * e.mean, 100 * e.half_width, 100 * e.low, 100 * e.high, e.n, e.confidence, e.kind)


SYSTEM = MediaHostSystem()
