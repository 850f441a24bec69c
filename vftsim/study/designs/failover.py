"""``vftsim failover``: what a failover does, over crashes at instants spread over the phases of the mechanism.

Crash k of n comes in the k-th of n equal parts of a span, at a random instant of the part: a stratified sample of a
uniform instant, hence of every phase in proportion to its length (of heartbeats, epochs, transmissions, whose periods
divide the span or come round in it).  What one crash is, and how an outage is divided: :mod:`.crash`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from vftsim.composition.model import LONGEST_NS, ModelSpec
from vftsim.composition.views import ramp_of, with_ramp
from vftsim.composition.without_effect import lost_beside
from vftsim.errors import UsageError
from vftsim.files import read_back
from vftsim.platform.protection.faults import PrimaryCrash
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.when import Instant
from vftsim.report import blocks as page
from vftsim.sampling import Streams
from vftsim.spec import format_duration
from vftsim.spec.units import S, format_rate
from vftsim.stats import Estimate, binomial_interval, stratified_interval
from vftsim.study.blocks.head import head, outside_notes, share_in_words
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.constant_load import at_load, protected_from_start
from vftsim.study.designs.crash import (
    ALONE,
    BACKUP_DISK,
    DECLARED,
    PARTS,
    CrashTask,
    Failover,
    planned_copy,
    planned_stop_s,
    simulate_crash,
)
from vftsim.study.designs.price_bands import Band, Variant, band_of, effects_of, variants, widened
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import CONFIDENCE, OF_ESTIMATES, DataFrame, estimate_columns, frame, rows
from vftsim.study.figures.protection_costs import slow_disk
from vftsim.study.figures.validity import MARK, first_load, outside
from vftsim.study.runs.estimate import Needs, needs_of, worthwhile_jobs
from vftsim.study.runs.model import Model
from vftsim.study.store.opened import model_of, read_answer, read_manifest

DEFAULT_CRASHES = 20
SPAN_NS = 1 * S
AFTER_NS = 75 * S
STEADY_AFTER_NS = 20 * S
"""How long a run goes on after a crash, beside the time of a restart: with a benchmark until those clients have given
up (64 T1 = 32 s) that waited when the guest was back, and a queue has gone or stays; else until a steady state."""

_OF_MECHANISM = {
    "rollback_ns": ("rollback_s", 1e-9),
    "execution_lost_ns": ("execution_lost_s", 1e-9),
    "outputs_lost_at_crash": ("outputs_lost", 1.0),
    "outputs_issued_again": ("outputs_issued_again", 1.0),
    "outputs_underivable": ("outputs_underivable", 1.0),
}
"""Figures that mechanisms count, with the name and the factor of ours."""

_IN_PART = 0.5
"""An outage of less than this share of the time that the machine is away is one of a part of the service."""
_LONG_STOP_S = 1.0
"""A copy that converges stops its guest for less (Scales, Nelson, Venkitachalam 2010)."""
_GIVEN_UP = (DECLARED, *ALONE)
_SILENT = (
    "a side took the other for gone all the same: it was silent for longer than failover.detection allows; what is "
    "told is of a crash without protection, or of two live copies"
)

_COUNTED = ("failed_", "lost_", "outputs_", "retransmissions")
"""Prefixes of figures that are counts."""


@dataclass(frozen=True)
class FailoverStudy(Printed):
    """Failovers of one model."""

    model: Model
    mechanism: str
    load: str
    """Under what it ran, in words."""
    failovers: tuple[Failover, ...]
    manifest: dict[str, Any]
    outside: list[float] | None = None
    """That load, if it is outside of what the model was fitted to; None if the model does not say to what."""
    bands: Mapping[str, Band] = field(default_factory=dict)
    """By figure, what the ranges of the mechanism's prices make of it; empty: prices were taken as they are."""
    struck: str = ""

    def to_pandas(self) -> DataFrame:
        """Return one row a figure: its mean with an interval, least, middle and largest value.

        Of what is counted also in how many crashes there was any, with the interval of their share.
        """
        table = []
        for name, values in self.figures().items():
            finite = [value for value in values if math.isfinite(value)]
            row: dict[str, Any] = {"figure": name, "crashes": len(values), "of_which_known": len(finite)}
            row |= dict.fromkeys((*OF_ESTIMATES, "least", "middle", "largest"))  # also where nothing comes back
            if finite:
                middle = sorted(finite)[len(finite) // 2]
                mean = self.mean(name)
                assert mean is not None
                row |= {**estimate_columns(mean), "least": min(finite), "middle": middle, "largest": max(finite)}
                if (band := self.bands.get(name)) is not None:
                    row |= band.columns(mean.mean)
            if share := self.share(name):
                any_in = sum(value > 0.0 for value in values)
                row |= {"crashes_with_any": any_in, "share_low": share.low, "share_high": share.high}
            table.append(row)
        return frame(table)

    def figures(self) -> dict[str, list[float]]:
        """Return every figure of every crash, by name with unit; infinite: all from the crash on."""
        names = (*PARTS, "outage_s", "unprotected_s")
        by_name = {name: [float(getattr(each, name)) for each in self.failovers] for name in names}
        for kind in ("failed", "lost"):
            counts: list[dict[str, int]] = [getattr(each, kind) for each in self.failovers]
            for label in dict.fromkeys(label for count in counts for label in count):
                of_each = zip(self.failovers, (float(count.get(label, 0)) for count in counts), strict=True)
                by_name[f"{kind}_{label}"] = [math.inf if each.is_for_good else count for each, count in of_each]
        if backups := [each.of_backup for each in self.failovers if each.of_backup]:
            by_name["backup_outage_s"] = [each.outage_s for each in backups]
        if any(each.failed for each in self.failovers):
            by_name["retransmissions"] = [float(each.retransmissions) for each in self.failovers]
        return by_name | {
            name: [each.figures.get(key, math.nan) * factor for each in self.failovers]
            for key, (name, factor) in _OF_MECHANISM.items()
            if any(key in each.figures for each in self.failovers)
        }

    def mean(self, name: str) -> Estimate | None:
        """Return the mean of a figure over the crashes that have it, with its band; ``None`` if none has."""
        finite = [value for value in self.figures().get(name, []) if math.isfinite(value)]
        jump_s = longer_by_s(self.protection) if name in ("outage_s", "before_crash_s") else 0.0
        return widened(stratified_interval(finite, CONFIDENCE, jump_s), self.bands, name) if finite else None

    def figure(self, name: str) -> float:
        """Return the mean of a figure; nan if no crash has it."""
        mean = self.mean(name)
        return math.nan if mean is None else mean.mean

    def share(self, name: str) -> Estimate | None:
        """Return in which share of the crashes there was any of what a figure counts; ``None`` for times.

        A loss in few crashes says little of its mean, but how often it comes is binomial (Clopper and Pearson: exact,
        where Wilson's interval of one in twenty covers less than 95 %).
        """
        if not name.startswith(_COUNTED):
            return None
        finite = [value for value in self.figures().get(name, []) if not math.isnan(value)]
        return binomial_interval(sum(value > 0.0 for value in finite), len(finite), CONFIDENCE) if finite else None

    @property
    def protection(self) -> ProtectionSpec:
        """The mechanism of the domain that crashes, with the model's parameters."""
        return protection_in(self.model, self.struck)

    @property
    def remarks(self) -> list[str]:
        """What must be known: a slow disk at the backup, and what :attr:`of_crashes` says."""
        slow = slow_disk(self.protection, max(each.figures.get(BACKUP_DISK, 0.0) for each in self.failovers))
        return [*([slow] if slow else ()), *self.of_crashes]

    @property
    def of_crashes(self) -> list[str]:
        """What crashes show: a side that was silent before, a service that goes on in part, copies lost with a host."""
        before = sum(any(at_s < 0 and event in _GIVEN_UP for at_s, event in each.timeline) for each in self.failovers)
        early = f"Before {before} of {len(self.failovers)} crashes nothing had failed, and {_SILENT}" if before else ""
        return [text for text in (early, self._in_part, self._long_copy, self.protection.lost_with_host) if text]

    @property
    def _long_copy(self) -> str:
        """That the copy which restores redundancy is an outage of its own; else nothing."""
        copy_again, stop_s = planned_copy(self.model.spec, self.struck), planned_stop_s(self.model.spec, self.struck)
        if copy_again is None or stop_s <= _LONG_STOP_S:
            return ""
        return (
            f"The copy that restores redundancy (reprotection), at {format_rate(copy_again.rate)} while "
            f"{format_rate(copy_again.dirty_rate)} of memory are dirtied, stops the guest for {stop_s:.4g} s at its "
            f"end: in a year that counts, with what fails in it{self._in_copy}"
        )

    @property
    def _in_copy(self) -> str:
        """What fails in the stop that ends the copy, where that was found, in words."""
        failed = ", ".join(f"{count} of {name}" for name, count in self.failovers[0].of_copy.items())
        return f" ({failed})" if failed else ""

    @property
    def _in_part(self) -> str:
        """That packets came out while the machine was away, of what does not need it; else nothing."""
        away_s = [each.back_s for each in self.recovered if each.outage_s < _IN_PART * each.back_s < math.inf]
        if not away_s:
            return ""
        return (
            f"After {len(away_s)} of {len(self.failovers)} crashes packets came out while {self.struck} was away, for "
            f"{math.fsum(away_s) / len(away_s):.4g} s: of what does not need it, or not yet. The outage is the time "
            "without any that its return ended; what fails meanwhile is more"
        )

    @property
    def came_back(self) -> Estimate:
        """In which share of the crashes the service came back."""
        return binomial_interval(len(self.recovered), len(self.failovers), CONFIDENCE)

    @property
    def recovered(self) -> tuple[Failover, ...]:
        """The crashes after which packets came out again."""
        return tuple(each for each in self.failovers if each.recovered)

    @classmethod
    def opened(cls, folder: Path) -> FailoverStudy:
        manifest, answer = read_manifest(folder), read_answer(folder)
        outside = answer["outside_calibration"]
        return read_back(cls, answer, model=model_of(manifest), manifest=manifest, outside=outside)

    def blocks(self) -> list[page.Block]:
        """Return what clients saw of the crashes, in parts, and what the middle one was like."""
        mark, crashes = MARK if self.outside else "", len(self.failovers)
        middle = sorted(self.failovers, key=lambda each: each.outage_s)[crashes // 2]
        title = f"The crash of the middle outage, {middle.crash_s:.6f} s after the beginning of the stretch:"
        is_fewer = any(name.startswith("failed_") and min(each) < 0.0 for name, each in self.figures().items())
        return [
            *head(self.manifest["models"], self.manifest["seed"]),
            page.Note(
                f"Mechanism: {self.mechanism}; load: {self.load}{mark}; crashes of the primary's host: {crashes}"
            ),
            _answer(self),
            *(page.Note(text, warns=True) for text in _doubts(self)),
            _cards(self),
            *(failover_charts(self) if self.recovered else []),
            *_tables(self),
            *([page.Note(FEWER_FAILED)] if is_fewer else []),
            *(page.Note(text, warns=True) for text in self.remarks),
            *([page.Note(_of_prices(self))] if self.bands else []),
            *(outside_notes(self.model) if self.outside else []),
            page.Timeline(title, [(time_s, event) for time_s, event in middle.timeline if time_s >= 0]),
        ]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "mechanism": self.mechanism,
            "load": self.load,
            "struck": self.struck,
            "outside_calibration": self.outside,
            "bands": {name: asdict(band) for name, band in self.bands.items()},
            "figures": rows(self.to_pandas()),
            "failovers": [asdict(each) for each in self.failovers],
        }


@dataclass(frozen=True)
class Crashes:
    """Which crashes a model is put through."""

    count: int = DEFAULT_CRASHES
    """Crashes, one in each of so many equal parts of the span."""
    load: float | None = None
    """Attempts a second of a benchmark; by default those of its first step."""
    domain: str | None = None
    """Whose host crashes; by default the one that a mechanism protects, or that has traffic."""
    span_ns: int = SPAN_NS
    """Length of the stretch over which the crashes are spread."""
    after_ns: int | None = None
    """Time that a run continues after the stretch, beside the time of a restart."""
    of_backup: bool = False
    """Whether the backup's host, where there is one, crashes at the same instants too, each in a run of its own."""

    of_copy: bool = True
    """Whether what fails in the stop that ends a long copy is found, once."""

    def check(self) -> None:
        """Refuse times that are not above 0."""
        if self.span_ns < 1:
            raise UsageError("--over: above 0, e.g. 1 s")
        if self.after_ns is not None and self.after_ns < 1:
            raise UsageError("--after: above 0, e.g. 60 s")

    def domain_of(self, model: Model) -> str:
        """Return the domain whose host crashes; refuse one that the model does not have, or has several copies of."""
        if self.domain is None:
            return model.spec.copies(protected_domain(model))[0]
        try:
            name = model.spec.fault_domain(PrimaryCrash(at=Instant("run", 0), domain=self.domain))
        except ValueError as error:
            raise UsageError(f"--domain: {error}") from None
        refuse_driver(model, model.spec.entry_of(name))
        return name

    def watched_ns(self, model: Model) -> int:
        """Return how long a run takes from the beginning of the span to its end, the time of a restart included."""
        after_ns = self.after_ns
        if after_ns is None:
            after_ns = STEADY_AFTER_NS if model.spec.ramp is None else AFTER_NS
        return self.span_ns + after_ns + protection_in(model, self.domain_of(model)).restart_ns

    def takes(self, model: Model) -> Needs:
        """Return what the crashes of a model take: each is run with and without it."""
        runs = 3 if self.strikes_backup(model) else 2
        spec = at_rest(model, self.load, self.watched_ns(model))[0]
        needs, of_copy = needs_of(spec).times(runs * self.count), self.copy_of(model)
        # The same traffic without the stop is played once.
        return needs + needs_of(of_copy).times(1 + (of_copy != spec)) if of_copy else needs

    def copy_of(self, model: Model) -> ModelSpec | None:
        """Return the model for as long as it is watched with the stop that ends a copy, if that is asked.

        A year has every such stop; of one crash a long one is told.
        """
        stop_s = planned_stop_s(model.spec, self.domain_of(model))
        is_long, length_ns = stop_s > _LONG_STOP_S, self.watched_ns(model)
        length_ns += round(stop_s * S) if is_long else 0
        is_asked = self.of_copy and (is_long or (self.of_backup and stop_s > 0.0)) and length_ns <= LONGEST_NS
        return at_rest(model, self.load, length_ns)[0] if is_asked else None

    def strikes_backup(self, model: Model) -> bool:
        """Whether there is a backup, and its host crashes."""
        return self.of_backup and protection_in(model, self.domain_of(model)).has_backup

    def bands_take(self, model: Model) -> Needs:
        """Return what the bands take: a crash at each end of each price, and one at the prices in use."""
        ends = len(self.ends_of(model))
        return replace(self, count=1, span_ns=SPAN_NS, of_copy=False).takes(model).times(ends + 1 if ends else 0)

    def ends_of(self, model: Model) -> list[Variant]:
        """Return the model with each price that a crash shows at either end of its range."""
        entry = model.spec.entry_of(self.domain_of(model))
        return [each for each in variants(model, entry) if each.is_of_failure]


def failover_study(model: Model, crashes: Crashes, execution: Execution, *, prices: bool = False) -> FailoverStudy:
    """Let the primary's host crash at many instants; refuse a model with nothing to crash, or several.

    Prices of the mechanism are played at both ends of their ranges too, a crash each, for bands.
    """
    (study,) = crashes_of_each([model], crashes, execution)
    study = replace(study, manifest=execution.manifest([model], "failover", crashes.count))
    return _with_bands(study, crashes, execution) if prices else study


def _with_bands(study: FailoverStudy, crashes: Crashes, execution: Execution) -> FailoverStudy:
    """Return failovers with what the ranges of prices make of them: one crash at each end of each."""
    ends = crashes.ends_of(study.model)
    if not ends:
        return study
    models = [study.model, *(each.model for each in ends)]
    base, *others = crashes_of_each(models, replace(crashes, count=1, span_ns=SPAN_NS, of_copy=False), execution)
    bands = {}
    for name in study.figures():
        played = [(end, other.figure(name)) for end, other in zip(ends, others, strict=True)]
        if band := band_of(effects_of(played, base.figure(name))):
            bands[name] = band
    return replace(study, bands=bands)


def crashes_of_each(models: Sequence[Model], crashes: Crashes, execution: Execution) -> list[FailoverStudy]:
    """Let the host of each model crash so often, at the same instants; all in one go, and without a manifest."""
    execution.check(crashes.count)
    crashes.check()
    plans = [_planned(model, crashes, execution.seed) for model in models]
    caches = [execution.cache(plan.model, Failover, failover=plan.determinants) for plan in plans]
    jobs = worthwhile_jobs(execution.worker_count, [plan.spec for plan in plans for _ in plan.tasks])
    failovers = execution.play(simulate_crash, caches, [plan.tasks for plan in plans], jobs)
    return [plan.study(each) for plan, each in zip(plans, failovers, strict=True)]


@dataclass(frozen=True)
class _Plan:
    """Crashes to be simulated: the model at rest, its load in words, what determines the results, and the tasks."""

    model: Model
    spec: ModelSpec
    load: str
    determinants: list[Any]
    tasks: dict[int, CrashTask]

    def study(self, failovers: Sequence[Failover]) -> FailoverStudy:
        kind: str = protection_in(self.model, self.determinants[0]).kind  # type: ignore[attr-defined]
        beyond = outside(self.spec, first_load(self.spec))
        return FailoverStudy(self.model, kind, self.load, tuple(failovers), {}, beyond, struck=self.determinants[0])


def _planned(model: Model, crashes: Crashes, seed: int) -> _Plan:
    domain, watched_ns = crashes.domain_of(model), crashes.watched_ns(model)
    spec, begins_ns, load = at_rest(model, crashes.load, watched_ns)
    of_backup = crashes.strikes_backup(model)
    tasks = {
        n: CrashTask(spec, domain, seed, n, begins_ns + instant_ns, begins_ns, begins_ns + watched_ns, of_backup)
        for n, instant_ns in enumerate(crash_instants(seed, crashes.count, crashes.span_ns))
    }
    # Once: so many fail in a long stop that one says it.
    tasks[0] = replace(tasks[0], copy_spec=crashes.copy_of(model))
    watched = (crashes.span_ns, watched_ns - crashes.span_ns)
    determinants = [domain, load, crashes.count, *watched, of_backup, crashes.of_copy]
    return _Plan(model, spec, load, determinants, tasks)


def crash_instants(seed: int, count: int, span_ns: int) -> list[int]:
    """Return one random instant in each of ``count`` equal parts of a span."""
    uniforms = Streams(seed, 0).uniforms("failover.instant", 0, count=count)
    return [int((k + float(u)) * span_ns / count) for k, u in enumerate(uniforms)]


def protection_in(model: Model, domain: str) -> ProtectionSpec:
    protection = model.spec.expanded()[domain].protection
    assert isinstance(protection, ProtectionSpec)
    return protection


def longer_by_s(protection: ProtectionSpec) -> float:
    """Return by how much a rare crash makes a longer outage than the others; 0: none does.

    One that finds a state on its way: with it the outputs of a cycle are lost that others would have let go before.
    """
    return protection.cycle_ns / S if protection.has_backup else 0.0


def lost_in_its_crash(model: Model) -> list[str]:
    """Return what must be known of the host whose crash a study of mechanisms is about."""
    return [*filter(None, [lost_beside(model.spec, Crashes().domain_of(model))])]


def refuse_driver(model: Model, entry: str) -> None:
    """Refuse a driver domain: it stays with its host's cards, and the second host has one, too."""
    if model.spec.domains[entry].driver is not None:
        raise UsageError(f"--domain: '{entry}' is a driver domain, which every host has; name a guest that it carries")


def protected_domain(model: Model) -> str:
    """Return the entry of the domain whose protection matters.

    The one whose mechanism was chosen, also where that is none; else the first protected, or with traffic, or a job.
    """
    if model.chosen:
        return model.chosen
    spec = model.spec
    guarded = [name for name, d in spec.domains.items() if d.protection.protects]
    if guarded:
        return guarded[0]
    reached = [spec.target_of(workload)[0] for workload in spec.workloads.values()]
    working = [name for name, d in spec.domains.items() if any(each.outcomes for each in d.applications.values())]
    if not reached and not working:
        raise UsageError(f"'{model.label}' has no workload and no job, so no domain whose protection anybody could see")
    return (reached or working)[0]


def at_rest(model: Model, load: float | None, length_ns: int) -> tuple[ModelSpec, int, str]:
    """Return the model in a steady state without faults for a time, when that begins, and its load in words."""
    if length_ns > LONGEST_NS:
        most = format_duration(LONGEST_NS)
        raise UsageError(f"--over and --after: a crash and what follows are at most {most}, a restart included")
    spec = model.spec.model_copy(update={"faults": ()})
    if spec.ramp is None:
        if load is not None:
            raise UsageError(f"--load: '{model.label}' has no benchmark whose load it could be; set its workloads")
        measure = spec.measure.model_copy(update={"duration": length_ns})
        spec = protected_from_start(spec, *spec.domains)
        return spec.model_copy(update={"measure": measure}), spec.measure.warm_up, "the model's load"
    saps = spec.ramp.first_load if load is None else load
    if not saps > 0:
        raise UsageError(f"--load: above 0, got {saps:g}")
    spec = at_load(spec, saps)
    ramp = ramp_of(spec)
    begins_ns, _ = ramp.first_window_ns()
    return with_ramp(spec, ramp.with_times(ramp.transient_ns, length_ns)), begins_ns, f"{saps:g} attempts a second"


_WORDS = {
    "before_crash_s": "last packet to crash (s)",
    "detection_s": "detection (s)",
    "takeover_s": "takeover: replay, rollback or boot (s)",
    "announcement_s": "announcement (s)",
    "first_packet_s": "wait for the first packet (s)",
    "outage_s": "outage as clients see it (s)",
    "unprotected_s": "unprotected after the crash (s)",
    "backup_outage_s": "outage by a failure of the backup's host (s)",
    "retransmissions": "messages repeated more",
    "rollback_s": "rolled back by (s)",
    "execution_lost_s": "execution undone (s of CPU)",
    "outputs_lost": "outputs that died with the primary",
    "outputs_issued_again": "outputs issued again",
    "outputs_underivable": "outputs seen that the backup lacks",
}
_PARTS = ("until the crash", "detection", "takeover", "announcement", "first packet")
ALL = "all from then on"
"""What is lost by a crash after which the service does not come back."""
ASK_AGAIN = (
    "clients that lose an answer wait for ever (their workload's retry, or timeout, is off), or longer than the runs "
    "go on (--after)."
)
CUT_SHORT = "what follows is not known, and stands as if nothing did; let runs go on longer after a crash (--after)."
FEWER = "fewer than without"
"""What fail or are lost by a crash where it is below 0: how many fewer hangs on how long runs go on."""
FEWER_FAILED = (
    "Fewer failed or lost than in the same traffic without the crash: the guest goes on without protection "
    "after a takeover, and does more in that time than under it, so that the figure falls with how long runs go on "
    "(--after); or the crash of an overloaded guest has emptied its queues, and what comes next is served in time. "
    "Neither says how many fail by a crash."
)
_OF_CRASHES = (
    "± or [..]: 95 % interval of the mean, crashes being one in each part of a stretch, from ten crashes on; none, but "
    "lowest and highest crash (x to y), where fewer than five differ from the rest. Crashes with any: how many, and "
    "their share (binomial interval, at least 95 %, Clopper and Pearson). Coverage: docs/interval-coverage.md."
)


def _answer(study: FailoverStudy) -> page.Answer:
    outage = study.mean("outage_s") if study.recovered else None
    back, crashes = len(study.recovered), len(study.failovers)
    return page.Answer(
        "no packet came out any more" if outage is None else f"an outage of {page.in_words(outage, 's')} on average",
        f"What do clients of {study.model.name} see when the primary's host crashes?",
        f"the service came back after {back} of {crashes} ({share_in_words(study.came_back)} of crashes)",
    )


def _doubts(study: FailoverStudy) -> Iterator[str]:
    """Yield what is lost beside the domain, and after how many crashes nobody asked or the run ended too early."""
    if study.struck and (lost := lost_beside(study.model.spec, study.struck)):
        yield lost
    if unasked := sum(each.is_unasked for each in study.failovers):
        yield f"After {unasked} of them the guest was back and no client asked again: {ASK_AGAIN}"
    if cut_short := sum(each.is_cut_short for each in study.failovers):
        yield f"After {cut_short} of them the run ended while a takeover was under way: {CUT_SHORT}"


def _tables(study: FailoverStudy) -> Iterator[page.Table]:
    """Yield the times of the crashes, and what they cost; nothing known is no table."""
    columns, back, figures = ("", "mean", "least", "middle", "largest"), bool(study.recovered), study.figures()
    timed = [name for name, values in figures.items() if back or any(map(math.isfinite, values))]
    times = [_row(study, name, figures[name]) for name in timed if study.share(name) is None]
    counts = [_row(study, name, values) for name, values in figures.items() if study.share(name) is not None]
    of_parts = "The parts, from the last packet on, add up to the outage."
    if times:
        whole = of_parts if counts else f"{of_parts} {_OF_CRASHES}"
        yield page.Table(columns, times, "Times", whole if back else "")
    if counts:
        beyond = f"Failed, lost and repeated: beyond the same traffic without the crash. {_OF_CRASHES}"
        yield page.Table((*columns, "crashes with any"), counts, "What a crash costs", beyond)


def _of_prices(study: FailoverStudy) -> str:
    """Say what the intervals rest on besides the crashes."""
    band = study.bands.get("outage_s")
    decides = f" Of the outage {band.decides} decides ({100 * band.share:.0f} % of the variance)." if band else ""
    return (
        "± and [..] are of the crashes and of the ranges of the mechanism's prices together: 95 % of what prices drawn "
        f"from them make (--no-prices: none).{decides}"
    )


def failover_charts(study: FailoverStudy) -> list[page.Chart | page.Bars]:
    """Return the outages in their parts, in order of length, and the share of crashes with an outage so long."""
    by_outage = sorted(study.recovered, key=lambda each: each.outage_s)
    total = len(study.failovers)
    rows = [(str(rank), [float(getattr(each, part)) for part in PARTS]) for rank, each in enumerate(by_outage, 1)]
    steps = [page.Point(0.0, 0.0)]
    steps += [page.Point(each.outage_s, 100.0 * rank / total) for rank, each in enumerate(by_outage, 1)]
    x, y, series = "outage as clients see it (s)", "share of crashes (%)", page.Series("crashes", steps, "steps")
    shares = page.Chart("Outages no longer than this", x, y, [series])
    bars = page.Bars("Outages in their parts, a bar a crash", "seconds since the last packet", _PARTS, rows)
    return [bars, shares] if by_outage else [shares]


def _cards(study: FailoverStudy) -> page.Cards:
    """Return the figures of one crash that matter most."""
    names = (("outage_s", "outage"), ("detection_s", "of it detection"), ("unprotected_s", "unprotected"))
    cards = [page.Card(label, estimate, "s") for name, label in names if (estimate := study.mean(name)) is not None]
    failed = [name for name in study.figures() if name.startswith("failed_")]
    worst = max(failed, key=lambda name: max(study.figures()[name]), default="")
    if worst and (mean := study.mean(worst)) is not None and mean.mean >= 0.0:
        cards.append(page.Card(f"failed more: {worst.removeprefix('failed_')}", mean, "", "attempts a crash"))
    return page.Cards(cards)


def _row(study: FailoverStudy, name: str, values: list[float]) -> list[page.Cell]:
    words = _WORDS.get(name, name.replace("failed_", "failed more: ").replace("lost_", "packets lost: "))
    finite = sorted(value for value in values if math.isfinite(value))
    share = study.share(name)
    any_in = [page.Counted(str(sum(value > 0.0 for value in values)), f"({share_in_words(share)})")] if share else []
    if finite and finite[0] < 0.0:
        words += " (below 0: fewer)"
    if not finite:
        return [words, "never" if share is None else ALL, "", "", "", *any_in]
    if len(finite) < len(values):
        words += f", {len(finite)} of {len(values)}"
    return [words, study.mean(name), finite[0], finite[len(finite) // 2], finite[-1], *any_in]
