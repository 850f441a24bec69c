"""What a study does with a composed model: run it, turn its record into data and tables, shorten it.

One record and one set of tables for every model: ``windows`` has the use of resources, ``drops`` the packets lost,
``timeline`` what happened to guarded domains; a benchmark adds the tables of its report, flows of packets add theirs.
"""

# ruff: noqa: PLC0415 - imports wait until they are needed: --help stays fast

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from vftsim.composition.model import LONGEST_NS, SHORTEST_NS, ModelSpec
from vftsim.composition.one_kernel import prepared_for
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run, run_model
from vftsim.composition.views import bench_of, flows_of, has_bench, phases_of, with_bench
from vftsim.errors import UsageError
from vftsim.kernel import Linked
from vftsim.platform.outcomes import CopiesUse, CopyUse, DomainUse, HostUse, LinkUse
from vftsim.spec import format_duration
from vftsim.stats import DelayHistogram, Estimate, mean_interval, ratio_of_sums
from vftsim.study.estimate import events_of
from vftsim.study.frames import frame, joined
from vftsim.study.run_figures import cpu_of, figures_of_workloads

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

_S = 1_000_000_000
_SHORTEST_STEP_NS = 2 * _S
_QUICK_STEP_NS = 60 * _S
QUICK_NS = 500_000_000
_MEDIA = ("loss_percent", "loss_events_per_s", "delay_", "jitter_ms", "r_factor", "mos")
_RESOURCES = (DomainUse, CopiesUse, CopyUse, HostUse, LinkUse)

Record = RunRecord
Records = Sequence[tuple[int, RunRecord]]


@dataclass(frozen=True, slots=True)
class Shortened:
    """A spec with less simulated time, and what was changed, in words for the user (empty: nothing)."""

    spec: ModelSpec
    note: str


def kernel(spec: ModelSpec) -> Linked:
    """Return the kernel that a model runs on, compiled."""
    return prepared_for(spec)


def simulate(spec: ModelSpec, seed: int, replication: int, on_time: Callable[[int], int] | None = None) -> RunRecord:
    """Run one replication; ``on_time`` is told the simulated time in ns, and returns when next."""

    def prepare(run: Run) -> None:
        run.on_time = on_time

    return run_model(spec, seed, replication, prepare=prepare)


def tables(name: str, spec: ModelSpec, records: Records) -> dict[str, pd.DataFrame]:
    """Return tidy tables, one row a replication and observation; those of the workloads first."""
    found: dict[str, pd.DataFrame] = {}
    if has_bench(spec):
        found |= _bench_tables(name, spec, [(n, phases_of(record)) for n, record in records])
    if any(flows_of(record) for _, record in records):
        found["runs"] = frame([{"replication": n, "model": name, **row_of(record)} for n, record in records])
        found["flows"] = frame([row for n, record in records for row in _flow_rows(n, record)])
    if measured := [row for n, record in records for row in _measured_rows(n, record)]:
        found["figures"] = frame(measured)
    found["windows"] = frame([row for n, record in records for row in _window_rows(n, record)])
    drops = [
        {"replication": n, "place": place, "cause": cause, "packets": count}
        for n, record in records
        for (place, cause), count in record.drops.items()
    ]
    found["drops"] = frame(drops, columns=["replication", "place", "cause", "packets"])
    moments = [
        {"replication": n, "domain": domain, "time_s": time_ns / 1e9, "what": what}
        for n, record in records
        for domain, timeline in record.timelines.items()
        for time_ns, what in sorted(timeline)
    ]
    if any(record.timelines for _, record in records):
        found["timeline"] = frame(moments, columns=["replication", "domain", "time_s", "what"])
    return found


def _bench_tables(name: str, spec: ModelSpec, runs: Any) -> dict[str, pd.DataFrame]:
    from vftsim.study import sip_tables

    bench = bench_of(spec)
    return {
        "steps": sip_tables.steps_table(name, bench.steps.stop_above_ihs, runs),
        "per_second": sip_tables.per_second_table(runs),
        "delays": sip_tables.delays_table(runs),
        "percentiles": sip_tables.percentiles_table(runs),
        "series": sip_tables.series_table(runs, bench.sample_period),
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


def _flow_rows(replication: int, record: RunRecord) -> Iterator[dict[str, Any]]:
    for name, flow in flows_of(record).items():
        yield {
            "replication": replication, "flow": name, "delivered": flow.delivered, "dropped": flow.dropped,
            "late": flow.late, "loss_events": flow.loss_events, "jitter_ms": flow.jitter_ns / 1e6,
            "delay_mean_ms": flow.mean_delay_ms,
        }  # fmt: skip


def _measured_rows(replication: int, record: RunRecord) -> Iterator[dict[str, Any]]:
    for name, figures in figures_of_workloads(record).items():
        if name in flows_of(record):
            continue
        for figure, value in figures.items():
            yield {"replication": replication, "workload": name, "figure": figure, "value": value}


def _window_rows(replication: int, record: RunRecord) -> Iterator[dict[str, Any]]:
    for phase in record.phases:
        for owner, outcome in phase.outcomes.items():
            if not isinstance(outcome, _RESOURCES):
                continue
            for figure, value in outcome.columns().items():
                yield {
                    "replication": replication, "window": phase.name or "measured", "begin_s": phase.begin_ns / 1e9,
                    "end_s": phase.end_ns / 1e9, "resource": owner, "figure": figure, "value": value,
                }  # fmt: skip


def summary(found: Mapping[str, pd.DataFrame], confidence: float) -> pd.DataFrame:
    """Return the tables' figures across replications, with intervals, in long form."""
    from vftsim.study.sip_summary import COLUMNS, estimate_columns, summarize

    parts = [summarize(found, confidence)] if "steps" in found else []
    if "runs" in found:
        rows = [
            {"table": "runs", "phase": "measured", "metric": metric, **estimate_columns(estimate)}
            for metric, estimate in _figures(found, confidence)
        ]
        parts.append(frame(rows, columns=list(COLUMNS)))
    if "figures" in found:
        rows = [
            {"table": "figures", "phase": "measured", "metric": f"{workload}.{figure}",
             **estimate_columns(mean_interval([float(x) for x in group["value"].dropna()], confidence))}
            for (workload, figure), group in found["figures"].groupby(["workload", "figure"], sort=False)
            if group["value"].notna().any()
        ]  # fmt: skip
        parts.append(frame(rows, columns=list(COLUMNS)))
    if "steps" not in found and "runs" not in found:
        windows = found["windows"]
        used = windows[(windows["figure"] == "cpu") & windows["resource"].str.startswith("domains.")]
        rows = [
            {"table": "windows", "phase": str(window), "metric": f"cpu_{str(owner).removeprefix('domains.')}",
             **estimate_columns(mean_interval([float(x) / 100.0 for x in group["value"]], confidence))}
            for (window, owner), group in used.groupby(["window", "resource"], sort=False)
        ]  # fmt: skip
        parts.append(frame(rows, columns=list(COLUMNS)))
    return joined(parts) if parts else frame(columns=list(COLUMNS))


def _figures(found: Mapping[str, pd.DataFrame], confidence: float) -> Iterator[tuple[str, Estimate]]:
    """Return every figure with its estimate; losses as ratios of sums, the rest as means of replications."""
    flows = found["flows"]
    for name, flow in flows.groupby("flow", sort=False):
        known = flow["delivered"] + flow["dropped"]
        if known.sum():
            e = ratio_of_sums(flow["dropped"].tolist(), known.tolist(), confidence)
            yield f"{name}_loss_percent", _times(e, 100.0)
    runs = found["runs"].drop(columns=["replication", "model"])
    for column in runs.columns:
        values = runs[column].dropna().tolist()
        if column != "loss_percent" and values:
            yield str(column), mean_interval([float(x) for x in values], confidence)


def _times(e: Estimate, factor: float) -> Estimate:
    mean, half, low, high = (factor * x for x in (e.mean, e.half_width, e.low, e.high))
    return Estimate(mean, half, low, high, e.n, e.confidence, e.kind)


def figures(spec: ModelSpec, label: str, records: Records) -> dict[str, Figure]:
    """Return the plots of a run by file name without suffix."""
    from vftsim.report.plots import new_figure, plot_delay_distribution, sip_figures

    found: dict[str, Figure] = {}
    if has_bench(spec):
        found |= sip_figures(bench_of(spec), label, [(n, phases_of(record)) for n, record in records])
    for name in dict.fromkeys(name for _, record in records for name in flows_of(record)):
        delays = DelayHistogram()
        for _, record in records:
            delays.merge(flows_of(record)[name].delay)
        if delays.count and flows_of(records[0][1])[name].is_voice:
            figure, (ax,) = new_figure(fitted=False)
            plot_delay_distribution(ax, delays, f"{name}, there and back")
            ax.set_title(f"{spec.description or label}, {len(records)} replications", fontsize=10)
            found["delays" if "delays" not in found else f"delays_{name}"] = figure
    return found


def shorten(spec: ModelSpec, factor: float) -> Shortened:
    """Scale what is measured.

    Transients and warm-up stay: they are as long as a call or the scheduler's memory lasts, not as a test.
    """
    if has_bench(spec):
        steps = bench_of(spec).steps
        return _with_steps(spec, round((steps.duration - steps.transient) * factor), factor)
    return _measured_for(spec, round(spec.measure.duration * factor))


def quick(spec: ModelSpec) -> Shortened:
    """Measure a minute of each step, or half a second, at most; a workload's own test and faults keep their time."""
    if spec.faults:
        return Shortened(spec, "--quick shortens nothing: faults have their instants")
    if has_bench(spec):
        steps = bench_of(spec).steps
        measured_ns = steps.duration - steps.transient
        short = _with_steps(spec, min(measured_ns, _QUICK_STEP_NS), min(1.0, _QUICK_STEP_NS / measured_ns))
    else:
        tests_ns = max((workload.test_ns() for workload in spec.workloads.values()), default=0)
        shortest_ns = QUICK_NS + max(tests_ns - spec.measure.warm_up, 0) if tests_ns else QUICK_NS
        short = _measured_for(spec, min(spec.measure.duration, shortest_ns))
    if not short.note:
        return Shortened(spec, "--quick shortens nothing: the model is as short as its tests")
    saved = 100.0 * (1.0 - events_of(short.spec) / max(events_of(spec), 1.0))
    return replace(short, note=f"{short.note}; about {saved:.0f} % of the work saved")


def _measured_for(spec: ModelSpec, measured_ns: int) -> Shortened:
    before_ns = spec.measure.duration
    measured_ns = max(measured_ns, min(SHORTEST_NS, before_ns))
    if measured_ns > LONGEST_NS:
        raise UsageError(
            f"that would measure {format_duration(measured_ns)}; a steady state is measured for at most "
            f"{format_duration(LONGEST_NS)}"
        )
    if measured_ns == before_ns:
        return Shortened(spec, "")
    _refuse_to_end_before_faults(spec, spec.measure.warm_up + measured_ns)
    measure = spec.measure.model_copy(update={"duration": measured_ns})
    note = (
        f"measured for {format_duration(measured_ns)} instead of {format_duration(before_ns)} "
        f"(warm-up of {format_duration(measure.warm_up)} kept)"
    )
    if measured_ns < before_ns:
        note += "; losses come in bursts, so shorter runs differ more"
    return Shortened(spec.model_copy(update={"measure": measure}), note)


def _with_steps(spec: ModelSpec, measured_ns: int, factor: float) -> Shortened:
    bench = bench_of(spec)
    steps, pre = bench.steps, bench.pre_registration
    before_ns = steps.duration - steps.transient
    if measured_ns == before_ns:
        return Shortened(spec, "")
    measured_ns = max(measured_ns, min(_SHORTEST_STEP_NS, before_ns))
    registering_ns = pre.transient + round((pre.duration - pre.transient) * factor)
    pre = pre.model_copy(update={"duration": registering_ns if pre.duration > pre.transient else pre.duration})
    steps = steps.model_copy(update={"duration": steps.transient + measured_ns})
    bench = bench.model_copy(update={"steps": steps, "pre_registration": pre})
    note = (
        f"steps measured for {format_duration(measured_ns)} instead of {format_duration(before_ns)} "
        f"(transient of {format_duration(steps.transient)} kept)"
    )
    if measured_ns < before_ns:
        note += "; a shorter step leaves an overload less time to build up, so capacity may come out higher"
    return Shortened(with_bench(spec, bench), note)


def _refuse_to_end_before_faults(spec: ModelSpec, ends_ns: int) -> None:
    for fault in spec.faults:
        if spec.time_of(fault.at) > ends_ns:
            raise UsageError(f"the fault at {fault.at} would be after the end of a run of {format_duration(ends_ns)}")


def check_has_media(spec: ModelSpec, label: str) -> None:
    """Refuse a model without media streams."""
    from vftsim.composition.views import rtp_of

    if rtp_of(spec) is None:
        raise UsageError(f"'{label}' has no workload of kind rtp: there are no media streams to speak of")
