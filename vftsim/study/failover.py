"""``vftsim failover``: what a failover does, over crashes at instants spread over the phases of the mechanism.

Crash k of n comes in the k-th of n equal parts of a span, at a random instant of the part: a stratified sample of a
uniform instant, hence of every phase in proportion to its length (of heartbeats, epochs, transmissions, whose periods
divide the span or come round in it).  Each replication is the same traffic once without the crash, and what the clients
miss is the difference of the two.

The outage is what a client sees: from the last packet that came out before the crash took effect to the first one
after.  Its parts add up to it: the time from the last packet to the crash, detection, takeover (replay, rollback or
boot), announcement, and the wait for the first packet.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd

from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run, run_model
from vftsim.composition.views import bench_of, flows_of, has_bench, phases_of
from vftsim.errors import UsageError
from vftsim.platform.io.packet import flows
from vftsim.platform.protection.faults import PrimaryCrash
from vftsim.platform.protection.when import Instant
from vftsim.sampling import Streams
from vftsim.stats import Estimate, mean_interval
from vftsim.study.constant_load import at_load
from vftsim.study.estimate import Needs, needs_of
from vftsim.study.kept import Kept
from vftsim.study.manifest import identity, manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.progress import Progress, Silent
from vftsim.study.replicate import check_study
from vftsim.study.results import CONFIDENCE, rows
from vftsim.study.sip_summary import estimate_columns
from vftsim.study.store import Store
from vftsim.study.workers import Workers, checked_jobs
from vftsim.workloads.sip.messages import Scenario

_S = 1_000_000_000
DEFAULT_CRASHES = 20
SPAN_NS = 1 * _S
AFTER_NS = 150 * _S
STEADY_AFTER_NS = 20 * _S
"""How long a run goes on after the crash: until the last client of a benchmark has given up, or long enough for a
steady state to come back where detection takes seconds."""

CRASH, DECLARED, REACHABLE, PROTECTED = "primary crash", "failure declared", "reachable", "protected"
LIVE = ("secondary live", "booted")
PARTS = ("before_crash_s", "detection_s", "takeover_s", "announcement_s", "first_packet_s")


@dataclass(frozen=True, slots=True)
class Failover:
    """One crash and what followed; times in seconds, nan for what did not come.

    Parameters
    ----------
    crash_s : float
        After the beginning of the span.
    outage_s : float
        Gap between packets that came out; the parts add up to it.
    unprotected_s : float
        From the crash until protection was restored.
    failed : dict
        Attempts inadequately handled more than without the crash, by scenario; packets lost of each flow of packets.
    retransmissions : int
        Messages that clients repeated more.
    figures : dict
        What the mechanism says of it.
    timeline : list of (float, str)
        Seconds after the crash, and what happened.
    """

    crash_s: float
    before_crash_s: float
    detection_s: float
    takeover_s: float
    announcement_s: float
    first_packet_s: float
    outage_s: float
    unprotected_s: float
    failed: dict[str, int]
    retransmissions: int
    figures: dict[str, float]
    timeline: list[tuple[float, str]]


@dataclass(frozen=True, slots=True)
class CrashTask:
    """One crash to be simulated."""

    spec: ModelSpec
    domain: str
    seed: int
    replication: int
    crash_ns: int
    span_begins_ns: int
    watched_until_ns: int


@dataclass(frozen=True)
class FailoverStudy:
    """Failovers of one model.

    Parameters
    ----------
    model : Model
    mechanism : str
    load : str
        Under what it ran, in words.
    failovers : tuple of Failover
    manifest : dict
    """

    model: Model
    mechanism: str
    load: str
    failovers: tuple[Failover, ...]
    manifest: dict[str, Any]

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a figure: its mean with an interval, least, middle and largest value."""
        table = []
        for name, values in self.figures().items():
            known = [value for value in values if not math.isnan(value)]
            row: dict[str, Any] = {"figure": name, "crashes": len(values), "of_which_known": len(known)}
            if known:
                middle = sorted(known)[len(known) // 2]
                row |= {**estimate_columns(mean_interval(known, CONFIDENCE)), "least": min(known), "middle": middle}
                row["largest"] = max(known)
            table.append(row)
        return pd.DataFrame(table)

    def figures(self) -> dict[str, list[float]]:
        """Return every figure of every crash, by name with unit."""
        names = (*PARTS, "outage_s", "unprotected_s")
        found = {name: [float(getattr(each, name)) for each in self.failovers] for name in names}
        for label in dict.fromkeys(label for each in self.failovers for label in each.failed):
            found[f"failed_{label}"] = [float(each.failed.get(label, 0)) for each in self.failovers]
        found["retransmissions"] = [float(each.retransmissions) for each in self.failovers]
        return found

    def mean(self, name: str) -> Estimate | None:
        """Return the mean of a figure over the crashes that have it."""
        known = [value for value in self.figures().get(name, []) if not math.isnan(value)]
        return mean_interval(known, CONFIDENCE) if known else None

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest, "mechanism": self.mechanism, "load": self.load,
            "figures": rows(self.to_pandas()), "failovers": [asdict(each) for each in self.failovers],
        }  # fmt: skip


def failover_study(
    model: Model,
    crashes: int = DEFAULT_CRASHES,
    seed: int = 1,
    jobs: int | None = None,
    *,
    load: float | None = None,
    domain: str | None = None,
    span_ns: int = SPAN_NS,
    progress: Progress | None = None,
    store: Store | None = None,
) -> FailoverStudy:
    """Let the primary's host crash at many instants.

    Parameters
    ----------
    model : Model
    crashes : int
    seed : int
    jobs : int, optional
    load : float, optional
        Attempts a second of a benchmark; by default those of its first step.
    domain : str, optional
        Whose host crashes; by default the one that a mechanism protects, or that has traffic.
    span_ns : int
        Length of the stretch over which the crashes are spread.
    progress : Progress, optional
    store : Store, optional

    Raises
    ------
    UsageError
        Nothing to crash, or several.
    """
    workers = checked_jobs(jobs)
    check_study(crashes, seed, workers)
    if span_ns < 1:
        raise UsageError("--over: above 0, e.g. 1 s")
    name = _domain_of(model, domain)
    spec, begins_ns, words = _at_rest(model, load, span_ns)
    after_ns = AFTER_NS if has_bench(spec) else STEADY_AFTER_NS
    instants = crash_instants(seed, crashes, span_ns)
    tasks = {
        n: CrashTask(spec, name, seed, n, begins_ns + instant_ns, begins_ns, begins_ns + span_ns + after_ns)
        for n, instant_ns in enumerate(instants)
    }
    started, show = utc_now(), progress or Silent()
    show.total(len(tasks))
    said = {**identity(model, seed), "failover": [name, words, crashes, span_ns]}
    kept = Kept(store, said, asdict, _from_dict)
    watching = Workers(_Advancing(show), 1) if workers == 1 else Workers(simulate_crash, workers, show.say)
    found = kept.in_order(watching, tasks)
    how = manifest(
        [model], command="failover", seed=seed, replications=range(crashes), wanted=crashes, jobs=workers,
        started=started, state="finished",
    )  # fmt: skip
    mechanism: str = model.spec.expanded()[name].protection.kind  # type: ignore[attr-defined]
    return FailoverStudy(model, mechanism, words, tuple(found), how)


def crashes_take(model: Model, crashes: int, load: float | None, span_ns: int) -> Needs:
    """Return what a study takes: each crash is run with and without it."""
    spec, _, _ = _at_rest(model, load, span_ns)
    return needs_of(spec).times(2 * crashes)


class _Advancing:
    """Simulates crashes in this process and shows how far it is."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, task: CrashTask) -> Failover:
        found = simulate_crash(task)
        self._progress.advance()
        return found


def _from_dict(data: Mapping[str, Any]) -> Failover:
    return Failover(**{**data, "timeline": [(time_s, what) for time_s, what in data["timeline"]]})


def crash_instants(seed: int, count: int, span_ns: int) -> list[int]:
    """Return one random instant in each of ``count`` equal parts of a span."""
    uniforms = Streams(seed, 0).uniforms("failover.instant", 0, count=count)
    return [int((k + float(u)) * span_ns / count) for k, u in enumerate(uniforms)]


def _domain_of(model: Model, domain: str | None) -> str:
    try:
        return model.spec.struck_by(PrimaryCrash(at=Instant("run", 0), domain=domain))
    except ValueError as error:
        raise UsageError(f"--domain: {error}") from None


def _at_rest(model: Model, load: float | None, span_ns: int) -> tuple[ModelSpec, int, str]:
    """Return the model in a steady state without faults, when the span begins in it, and its load in words."""
    spec = model.spec
    if not has_bench(spec):
        if load is not None:
            raise UsageError(f"--load: '{model.label}' has no benchmark whose load it could be; set its workloads")
        warm_up_ns = spec.measure.warm_up
        measure = spec.measure.model_copy(update={"duration": span_ns + STEADY_AFTER_NS})
        return spec.model_copy(update={"faults": (), "measure": measure}), warm_up_ns, "the model's own load"
    bench = bench_of(spec)
    saps = bench.steps.initial if load is None else load
    if not saps > 0:
        raise UsageError(f"--load: above 0, got {saps:g}")
    spec = at_load(spec, saps)
    bench = bench_of(spec)
    begins_ns = bench.time_of("step 1", bench.steps.transient)
    assert begins_ns is not None
    steps = bench.steps.model_copy(update={"duration": bench.steps.transient + span_ns + AFTER_NS})
    name = next(key for key, workload in spec.workloads.items() if workload is bench)
    longer = {**spec.workloads, name: bench.model_copy(update={"steps": steps})}
    return spec.model_copy(update={"workloads": longer}), begins_ns, f"{saps:g} attempts a second"


def simulate_crash(task: CrashTask) -> Failover:
    """Run one replication with and without the crash."""
    crash = PrimaryCrash(at=Instant("run", task.crash_ns), domain=task.domain)
    passes: list[Run] = []

    def watch(run: Run) -> None:
        passes.append(run)
        for driver in run.built.drivers.values():
            flow = run.engine.rows(flows)[driver.flow]
            flow.watched_ns, flow.unwatched_ns = task.crash_ns, task.watched_until_ns

    record = run_model(task.spec.model_copy(update={"faults": (crash,)}), task.seed, task.replication, prepare=watch)
    undisturbed = run_model(task.spec, task.seed, task.replication)
    return _judged(task, record, undisturbed, _gap(passes[-1]))


def _gap(run: Run) -> tuple[int, int]:
    """Return length and end in ns of the longest gap that a client saw; (0, 0) if no packet came after the crash."""
    rows_of = run.engine.rows(flows)
    gaps = [(int(rows_of[d.flow].gap_ns), int(rows_of[d.flow].gap_end_ns)) for d in run.built.drivers.values()]
    return max(gaps, default=(0, 0))


def _judged(task: CrashTask, record: RunRecord, undisturbed: RunRecord, gap: tuple[int, int]) -> Failover:
    timeline = sorted(record.timelines[task.domain])
    after = {what: time_ns for time_ns, what in reversed(timeline) if time_ns >= task.crash_ns}
    restored = [time_ns for time_ns, what in timeline if what == PROTECTED and time_ns > task.crash_ns]
    live_ns = next((after[what] for what in LIVE if what in after), None)
    reachable_ns = after.get(REACHABLE, live_ns)
    gap_ns, gap_end_ns = gap
    known = reachable_ns is not None and gap_end_ns > 0
    declared_ns = after.get(DECLARED)
    return Failover(
        crash_s=(task.crash_ns - task.span_begins_ns) / _S,
        before_crash_s=_seconds(gap_end_ns - gap_ns, task.crash_ns) if known else math.nan,
        detection_s=_seconds(task.crash_ns, declared_ns),
        takeover_s=_seconds(declared_ns, live_ns),
        announcement_s=_seconds(live_ns, reachable_ns),
        first_packet_s=_seconds(reachable_ns, gap_end_ns) if known else math.nan,
        outage_s=gap_ns / _S if known else math.inf,
        unprotected_s=_seconds(task.crash_ns, restored[0]) if restored else math.nan,
        failed=_failed(record, undisturbed),
        retransmissions=_repeated(record) - _repeated(undisturbed),
        figures={name: float(value) for name, value in record.protection[task.domain].items()},
        timeline=[((time_ns - task.crash_ns) / _S, what) for time_ns, what in timeline],
    )


def _seconds(begin_ns: int | None, end_ns: int | None) -> float:
    return math.nan if begin_ns is None or end_ns is None else (end_ns - begin_ns) / _S


def _failed(record: RunRecord, undisturbed: RunRecord) -> dict[str, int]:
    found = {}
    for scenario in Scenario if phases_of(record) else ():
        of_crash, of_none = (
            sum(phase.inadequate[scenario] for phase in phases_of(each)) for each in (record, undisturbed)
        )
        found[scenario.label] = of_crash - of_none
    for name, flow in flows_of(record).items():
        found[f"packets_{name}"] = flows_of(undisturbed)[name].delivered - flow.delivered
    return found


def _repeated(record: RunRecord) -> int:
    return round(sum(sum(phase.series["retransmissions_all"]) for phase in phases_of(record)))


def means(studies: Mapping[str, FailoverStudy], names: Sequence[str]) -> pd.DataFrame:
    """Return the means of figures of several studies, one row each."""
    table = []
    for label, study in studies.items():
        row: dict[str, Any] = {"mechanism": label}
        for name in names:
            estimate = study.mean(name)
            row[name] = math.nan if estimate is None else estimate.mean
        table.append(row)
    return pd.DataFrame(table)
