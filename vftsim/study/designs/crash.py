"""One crash of a primary's host, and what clients saw of it.

The same traffic runs twice, once without the crash; what clients miss is the difference of the two.

The outage is what clients see: the time from the last packet that came out before the takeover to the first one after
it, of all workloads of the domain together.  Four instants divide it: of the crash, of its declaration, of the guest's
execution, of its being reachable.  A part is what lies between two of them *within the outage*, so
that none is negative and all add up to it: a packet that was on its way when the host crashed shortens the detection,
and one that leaves before the announcement is over shortens that.  The instants themselves are in ``timeline``.

A failure of the backup's host makes answers wait until the primary notices it and goes on alone.  It may be played at
the same instant as well: the outage is the gap that this ends, if packets come out in it without the failure.

An episode is faults of a model's machine in a steady state, and what clients see of the last of them.  Between faults
that are far apart nothing happens that a year's availability hangs on, so a year is simulated as episodes: each begins
well before its first fault and ends when redundancy is long back.  The outage of a fault is the longest time from
packet to packet that ends in its own stretch, from it to the next fault or the end, if that is longer than any without
faults, else the time until the guest could be reached; the stop at the end of a copy that restores redundancy is none,
since as planned it counts beside.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate, pairwise

from vftsim.composition.hosts import DomainSpec
from vftsim.composition.model import ModelSpec
from vftsim.composition.record import RunRecord
from vftsim.composition.run import Run, run_model
from vftsim.composition.views import ending_with, protection_of, with_domain, work_of
from vftsim.files import Endless, Number
from vftsim.outcome.declare import Rate
from vftsim.platform.io.packet import flows
from vftsim.platform.protection.account import is_more_to_come
from vftsim.platform.protection.channel import ChannelFields
from vftsim.platform.protection.faults import BackupCrash, FaultSpec, Pause, PrimaryCrash
from vftsim.platform.protection.guard import guards
from vftsim.platform.protection.mechanism import NO_DURATION
from vftsim.platform.protection.migration import ReprotectionSpec, plan_copy
from vftsim.platform.protection.outcome import Protection
from vftsim.platform.protection.when import Instant
from vftsim.spec.units import S

DECLARED, REACHABLE, PROTECTED = "failure declared", "reachable", "protected"
LIVE = ("secondary live", "booted")
ALONE = ("primary goes on alone",)
STANDS_STILL = "guest stands still"
BACKUP_DISK = "written_mb_per_s"
"""Of the figures of a failover: to the backup's disk without a crash."""
PARTS = ("before_crash_s", "detection_s", "takeover_s", "announcement_s", "first_packet_s")


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
    of_backup: bool = False
    """Whether the backup's host crashes at the same instant of another run, too."""
    copy_spec: ModelSpec | None = None
    """The model for as long as the stop that ends a copy is watched, if what fails in it is to be found."""


@dataclass(frozen=True, slots=True)
class BackupFailure:
    """A crash of the backup's host, and what clients saw of it."""

    outage_s: Endless
    """From packet to packet; 0 if no packet was held up, infinite: the run ended before they went on."""
    unprotected_s: Number
    """From the crash until protection is restored; as planned, if the run ends before."""
    failed: dict[str, int]
    """As :attr:`Failover.failed`."""


@dataclass(frozen=True, slots=True)
class Failover:
    """One crash and what followed; times in seconds, nan for what did not come."""

    crash_s: float
    """After the beginning of the span."""
    before_crash_s: Number
    detection_s: Number
    takeover_s: Number
    announcement_s: Number
    first_packet_s: Number
    """Parts of the outage: until the crash, its declaration, the guest's execution, its being reachable, a packet."""
    outage_s: Endless
    """From packet to packet; infinite if none came out any more."""
    unprotected_s: Number
    """From the crash until protection is restored; as planned, if the run ends before."""
    failed: dict[str, int]
    """Attempts inadequately handled more than without the crash, by scenario; of others what they answer or end less,
    by workload or program."""
    lost: dict[str, int]
    """Packets dropped more than without the crash, by workload that the domain serves."""
    retransmissions: int
    """Messages that their clients repeated more."""
    figures: dict[str, int | float]
    """Figures of the mechanism."""
    timeline: list[tuple[float, str]]
    """Seconds after the crash, and what happened."""
    is_cut_short: bool = False
    """Whether a takeover was under way when the run ended."""
    of_backup: BackupFailure | None = None
    """A crash of the backup's host at the same instant, if that was played."""
    of_copy: dict[str, int] = field(default_factory=dict)
    """As :attr:`failed`, by a stop as long as that which ends the copy; empty: not asked."""

    @property
    def recovered(self) -> bool:
        """Whether packets came out again."""
        return math.isfinite(self.outage_s)

    @property
    def back_s(self) -> float:
        """From the crash until the guest could be reached, whether a client asked or not; infinite: not in this run."""
        after = {event: time_s for time_s, event in reversed(self.timeline) if time_s >= 0}
        live_s = min((after[event] for event in LIVE if event in after), default=math.inf)
        return after.get(REACHABLE, live_s) if math.isfinite(live_s) else math.inf

    @property
    def away_s(self) -> float:
        """The outage, or, where no client asked again, the time until the guest could be reached."""
        return self.outage_s if self.recovered else self.back_s

    @property
    def is_protected_again(self) -> bool:
        """Whether the copy that restores redundancy was over by the end of the run."""
        return any(event == PROTECTED and time_s > 0 for time_s, event in self.timeline)

    @property
    def is_for_good(self) -> bool:
        """Whether the service did not come back by itself, so that all that clients ask from then on is lost."""
        return math.isinf(self.away_s)

    @property
    def is_unasked(self) -> bool:
        """Whether the guest was back and no client asked it again."""
        return not self.recovered and math.isfinite(self.back_s)


@dataclass(frozen=True, slots=True)
class Gap:
    """A stretch of time in which no packet of a flow came out, from packet to packet."""

    begin_ns: int
    end_ns: int


@dataclass(frozen=True, slots=True)
class _Watched:
    """Result of a run with faults."""

    record: RunRecord
    since_ns: int
    """When the fault struck that is looked at."""
    timeline: list[tuple[int, str]]
    """What happened to the domain, in order."""
    gap: Gap | None
    """The longest time in which no packet of any workload came out; ``None``: none came out any more."""
    last_seen_ns: int
    """When the last packet of any workload came out; 0: none did."""
    is_more_to_come: bool
    """Whether the run ended before what follows the fault was over."""
    is_dead: bool
    """Whether the machine is gone at the end."""
    ended_ns: int

    def first_ns(self, *words: str) -> int | None:
        """Return when one of the words first came after the fault; ``None``: never."""
        return next((at_ns for at_ns, event in self.timeline if at_ns >= self.since_ns and event in words), None)

    @property
    def reachable_ns(self) -> int | None:
        """When the guest could be reached, which is when it was live if nobody says so."""
        reachable_ns = self.first_ns(REACHABLE)
        return self.first_ns(*LIVE) if reachable_ns is None else reachable_ns

    @property
    def standstill(self) -> Gap | None:
        """How long the guest had stood still when its primary went on alone after the fault; ``None``: it ran."""
        alone_ns = self.first_ns(*ALONE)
        if alone_ns is None:
            return None
        earlier_ns = max((at_ns for at_ns, word in self.timeline if word in ALONE and at_ns < self.since_ns), default=0)
        stood = [at_ns for at_ns, word in self.timeline if word == STANDS_STILL and earlier_ns <= at_ns <= alone_ns]
        return Gap(stood[-1], alone_ns) if stood else None


def simulate_crash(task: CrashTask) -> Failover:
    """Run one replication with and without the crash, and what else is asked."""
    failover, undisturbed = _failover(task)
    if task.copy_spec is None:
        return failover
    if task.copy_spec != task.spec:
        undisturbed = run_model(task.copy_spec, task.seed, task.replication)
    stop_ns = round(planned_stop_s(task.spec, task.domain) * S)
    stop = Pause(at=Instant("run", task.crash_ns), domain=task.domain, duration=stop_ns)
    stopped = run_model(task.copy_spec.model_copy(update={"faults": (stop,)}), task.seed, task.replication)
    return replace(failover, of_copy=_more_failed(_of_domain(task, stopped), _of_domain(task, undisturbed)))


def _failover(task: CrashTask) -> tuple[Failover, RunRecord]:
    """Run one replication with and without the crash, and with one of the backup's host if that is asked."""
    at = Instant("run", task.crash_ns)
    crashed = _watched_well(task, PrimaryCrash(at=at, domain=task.domain), LIVE)
    if not task.of_backup:
        record = run_model(task.spec, task.seed, task.replication)
        return _judged(task, crashed, record), record
    alone = _watched_well(task, BackupCrash(at=at, domain=task.domain), ALONE)
    silence = _silence(task, alone)
    undisturbed = _watched(task, task.spec, (), task.crash_ns, (silence.begin_ns + 1, silence.end_ns))
    failover = _judged(task, crashed, undisturbed.record)
    return replace(failover, of_backup=_of_backup(task, alone, undisturbed, silence)), undisturbed.record


def _silence(task: CrashTask, crashed: _Watched) -> Gap:
    """Return the gap that the primary ends when it goes on alone; until then, or the run's end, if none asked again."""
    gap, alone_ns = crashed.gap, crashed.first_ns(*ALONE)
    if alone_ns is None:
        return Gap(task.crash_ns, task.watched_until_ns)
    if not is_served(task):
        return crashed.standstill or Gap(alone_ns, alone_ns)
    return Gap(task.crash_ns, alone_ns) if gap is None or crashed.last_seen_ns < alone_ns else gap


def _of_backup(task: CrashTask, crashed: _Watched, undisturbed: _Watched, silence: Gap) -> BackupFailure:
    """Judge a crash of the backup's host: it holds up what comes out in its silence without it."""
    alone_ns = crashed.first_ns(*ALONE)
    is_pair = any(event == PROTECTED and at_ns < task.crash_ns for at_ns, event in crashed.timeline)
    outage_s = math.inf if alone_ns is None else (silence.end_ns - silence.begin_ns) / S
    return BackupFailure(
        outage_s=outage_s if is_pair and (undisturbed.gap is not None or not is_served(task)) else 0.0,
        unprotected_s=_unprotected_s(task, crashed, alone_ns),
        failed=_more_failed(_of_domain(task, crashed.record), _of_domain(task, undisturbed.record)),
    )


def _watched_well(task: CrashTask, crash: FaultSpec, over: Sequence[str]) -> _Watched:
    """Run until the longest gap that is seen is that of the takeover, which the first of the words ``over`` ends.

    A pause in the traffic, or the stop at the end of a re-protection, can be longer: then the same run is watched for
    a shorter time.
    """
    window: tuple[int, int] | None = task.crash_ns, task.watched_until_ns
    while window is not None:
        crashed = _watched(task, task.spec, (crash,), task.crash_ns, window)
        live_ns = crashed.first_ns(*over)
        window = None if crashed.gap is None or live_ns is None else without(crashed.gap, window, live_ns)
    return crashed


def without(gap: Gap, window: tuple[int, int], live_ns: int) -> tuple[int, int] | None:
    """Return the window in which the gap of a takeover ends, if ``gap`` is another one; ``None`` if it is that gap.

    No packet of a dead guest comes out, except what was on its way, so a gap that ends before the takeover ends with
    such a packet, and one that begins after it begins with a packet of the new guest.
    """
    if gap.begin_ns > live_ns:
        return window[0], gap.begin_ns + 1
    if gap.end_ns < live_ns:
        return gap.end_ns + 1, window[1]
    return None


def _watched(
    task: CrashTask | EpisodeTask,
    spec: ModelSpec,
    faults: tuple[FaultSpec, ...],
    since_ns: int,
    window: tuple[int, int],
) -> _Watched:
    """Run a model with faults and watch, from when to when in ns, the packets of workloads that the domain serves."""
    passes: list[Run] = []

    def watch(run: Run) -> None:
        passes.append(run)
        rows = _flows(run, task.domain)
        for row in rows:
            run.engine.rows(flows)[row].watch = rows[0]
        if rows:
            first = run.engine.rows(flows)[rows[0]]
            first.watched_ns, first.unwatched_ns = window

    record = run_model(spec.model_copy(update={"faults": faults}), task.seed, task.replication, prepare=watch)
    run = passes[-1]
    guard = run.built.guards.get(task.domain, 0)
    # Row 0 is of no flow: nothing was seen there.
    flow = run.engine.rows(flows)[next(iter(_flows(run, task.domain)), 0)]
    end_ns = int(flow.gap_end_ns)
    return _Watched(
        record,
        since_ns,
        sorted(record.timelines.get(task.domain, ())),
        Gap(end_ns - int(flow.gap_ns), end_ns) if end_ns > 0 else None,
        int(flow.seen_ns),
        bool(guard) and is_more_to_come(run.engine, guard),
        bool(guard and run.engine.rows(guards)[guard].dead),
        run.engine.now_ns,
    )


def is_served(task: CrashTask | EpisodeTask) -> bool:
    """Whether anybody outside asks the domain; else what stands still is its own work, and its outage that."""
    return any(task.domain in domains for domains in task.spec.serving().values())


def _flows(run: Run, domain: str) -> list[int]:
    """Return the rows of the packets' flows of the workloads that a domain serves: others go on without it."""
    serving = run.spec.serving()
    return [driver.flow for name, driver in run.built.drivers.items() if domain in serving[name]]


def planned_reprotection_ns(spec: ModelSpec, domain: str) -> int | None:
    """Return how long after a takeover a domain is protected again if nothing else fails; ``None``: never."""
    copy_again = planned_copy(spec, domain)
    if copy_again is None:
        return None
    plan = plan_copy(copy_again)
    return copy_again.delay + plan.live_ns + plan.downtime_ns


def planned_stop_s(spec: ModelSpec, domain: str) -> float:
    """Return how long a guest stands still at the end of the copy that restores redundancy; 0 where none does."""
    copy_again = planned_copy(spec, domain)
    return 0.0 if copy_again is None else plan_copy(copy_again).downtime_ns / S


def planned_copy(spec: ModelSpec, domain: str) -> ReprotectionSpec | None:
    """Return the copy that restores redundancy of a domain; ``None``: none does.

    Guests of its host that are copied over one network have equal shares of it, but none more than its own rate.
    """
    specs = spec.expanded()
    copy_again = _copy_of(spec, specs[domain])
    if copy_again is None:
        return None
    network = specs[domain].protection.channel_network
    if network is not None:
        beside = (specs[name] for name in ending_with(spec, domain) if name != domain)
        copies = (_copy_of(spec, each) for each in beside if each.protection.channel_network == network)
        others = [each.rate for each in copies if each is not None]
        copy_again = copy_again.model_copy(
            update={"rate": fair_share(copy_again.rate, others, spec.networks[network].rate)}
        )
    return copy_again


def _copy_of(spec: ModelSpec, domain: DomainSpec) -> ReprotectionSpec | None:
    mechanism = protection_of(spec, domain)
    return mechanism.copy_again if isinstance(mechanism, ChannelFields) and mechanism.has_backup else None


def fair_share(demand: int, others: Sequence[int], line: int) -> int:
    """Return what one has of a line at which each asks for a rate: nobody more than it, and the rest evenly."""
    for waiting, rate in zip(range(len(others) + 1, 0, -1), sorted([demand, *others]), strict=True):
        share = max(1, min(rate, line // waiting))
        if rate == demand:
            break
        line -= share
    return share


def _judged(task: CrashTask, crashed: _Watched, undisturbed: RunRecord) -> Failover:
    record = crashed.record
    declared_ns, live_ns, reachable_ns = crashed.first_ns(DECLARED), crashed.first_ns(*LIVE), crashed.reachable_ns
    gap = crashed.gap
    if live_ns is not None and not is_served(task):
        gap = Gap(task.crash_ns, live_ns)
    instants = (task.crash_ns, declared_ns, live_ns, reachable_ns)
    passed = [instant for instant in instants if instant is not None]
    recovered = gap is not None and len(passed) == len(instants)
    ran, of_none = _of_domain(task, record), _of_domain(task, undisturbed)
    of_none_dropped, guard = _dropped(of_none), f"domains.{task.domain}.protection"
    of_guard = undisturbed.whole.outcomes.get(guard)
    parts = parts_of(gap, passed) if gap is not None and recovered else [math.nan] * len(PARTS)
    before_s, detection_s, takeover_s, announcement_s, first_s = parts
    return Failover(
        crash_s=(task.crash_ns - task.span_begins_ns) / S,
        before_crash_s=before_s,
        detection_s=detection_s,
        takeover_s=takeover_s,
        announcement_s=announcement_s,
        first_packet_s=first_s,
        outage_s=(gap.end_ns - gap.begin_ns) / S if gap is not None and recovered else math.inf,
        unprotected_s=_unprotected_s(task, crashed, live_ns),
        failed=_more_failed(ran, of_none),
        # Not by what was delivered: at the end of a run a protected guest's outputs wait, an unprotected one's do not.
        lost={owner.partition(".")[2]: dropped - of_none_dropped[owner] for owner, dropped in _dropped(ran).items()},
        retransmissions=_repeated(ran) - _repeated(of_none),
        figures={
            **record.whole.outcomes[guard].columns(),
            BACKUP_DISK: of_guard.backup_disk if isinstance(of_guard, Protection) else 0.0,
        },
        timeline=[((time_ns - task.crash_ns) / S, event) for time_ns, event in crashed.timeline],
        is_cut_short=reachable_ns is None and (declared_ns is not None or crashed.is_more_to_come),
    )


def parts_of(gap: Gap, instants: list[int]) -> list[float]:
    """Return the parts in s into which instants divide a gap; what lies outside it belongs to none."""
    inside = accumulate((min(max(instant, gap.begin_ns), gap.end_ns) for instant in instants), max)
    return [(end_ns - begin_ns) / S for begin_ns, end_ns in pairwise((gap.begin_ns, *inside, gap.end_ns))]


def _unprotected_s(task: CrashTask, crashed: _Watched, live_ns: int | None) -> float:
    restored = [at_ns for at_ns, event in crashed.timeline if event == PROTECTED and at_ns > task.crash_ns]
    if restored:
        return (restored[0] - task.crash_ns) / S
    planned_ns = planned_reprotection_ns(task.spec, task.domain)
    if live_ns is None or planned_ns is None:
        return math.nan
    return (live_ns + planned_ns - task.crash_ns) / S


def _of_domain(task: CrashTask, record: RunRecord) -> RunRecord:
    """Return a record with no more than the workloads that the domain serves, and its own programs."""
    owners = work_of(task.spec, [task.domain])
    outcomes = [{owner: each for owner, each in phase.outcomes.items() if owner in owners} for phase in record.phases]
    phases = (replace(phase, outcomes=each) for phase, each in zip(record.phases, outcomes, strict=True))
    return replace(record, phases=tuple(phases))


def _more_failed(record: RunRecord, undisturbed: RunRecord) -> dict[str, int]:
    """Return how many attempts more have failed, and how much less each workload and program has got done."""
    more = Counter[str]()
    for phase in record.played():
        more.update(phase.failed)
    for phase in undisturbed.played():
        more.subtract(phase.failed)
    of_none = _done(undisturbed)
    less = {owner.removeprefix("workloads."): of_none[owner] - done for owner, done in _done(record).items()}
    return dict(more) | less


def _done(record: RunRecord) -> dict[str, int]:
    """Return what each owner has got done: what its leading rate counts, if more of it is better.

    Where it counts failures it is these, below 0: of answers the last ones wait in a protected guest at the end.
    """
    return {
        owner: -outcome.failures if "failures" in outcome.held else round(figure.of.held(outcome))  # type: ignore[attr-defined]
        for owner, outcome in record.whole.outcomes.items()
        for figure in outcome.declared.values()
        if isinstance(figure, Rate) and figure.headline and figure.better == "higher" and figure.by is None
    }


def _dropped(record: RunRecord) -> dict[str, int]:
    """Return how many packets of each workload that counts them were dropped, those of all its clients together."""
    counts = {
        owner: outcome.dropped  # type: ignore[attr-defined]
        for owner, outcome in record.whole.outcomes.items()
        if owner.startswith("workloads.") and "dropped" in outcome.held
    }
    return {owner: sum(count.values()) if isinstance(count, dict) else count for owner, count in counts.items()}


def _repeated(record: RunRecord) -> int:
    workloads = (each for owner, each in record.whole.outcomes.items() if owner.startswith("workloads."))
    counted = sum(each.repeated for each in workloads if "repeated" in each.held)  # type: ignore[attr-defined]
    return counted + sum(phase.repeated for phase in record.played())


_NEVER_NS = 1 << 62
_ALONE = {DECLARED, *LIVE, "secondary live too", "primary goes on alone", "backup crash"}
"""Texts of the timeline for one copy, or for two that do not know of each other."""


@dataclass(frozen=True, slots=True)
class EpisodeTask:
    """An episode to be simulated; its last fault is judged."""

    spec: ModelSpec
    """Without faults, and as long as the episode is."""
    domain: str
    seed: int
    replication: int
    timed_faults: tuple[tuple[int, FaultSpec], ...]
    """With their instants in ns of the run; none: the longest time from packet to packet is told."""
    from_ns: int
    """Beginning of the judged stretch."""
    protected_from_ns: int = 0
    """When protection is turned on, where the mechanism can be; 0: from the start."""


@dataclass(frozen=True, slots=True)
class Episode:
    """Outcome of the last fault."""

    gap_s: float
    """The longest time from packet to packet; where no client asked again, from the fault until one could."""
    is_dead: bool
    """Whether the machine is gone at the end, or cut off for good."""
    is_lost: bool
    """Whether redundancy went and was not back at the end."""
    protected_s: float
    """From the fault until redundancy was back; 0 if it did not go, or is not back."""
    away_s: float
    """From the fault until the guest could be reached again; 0 if it never went, or did not come back."""


def simulate_episode(task: EpisodeTask) -> Episode:
    spec, entry = task.spec, task.spec.entry_of(task.domain)
    if task.protected_from_ns:
        begins = {"active_from": Instant("run", task.protected_from_ns)}
        spec = with_domain(spec, entry, protection=spec.domains[entry].protection.model_copy(update=begins))
    once = {"repeat": None, "domain": task.domain}
    timed = ((fault, Instant("run", at_ns)) for at_ns, fault in task.timed_faults)
    faults = tuple(fault.model_copy(update={"at": at, **once}) for fault, at in timed)
    window: tuple[int, int] | None = task.from_ns, _NEVER_NS
    while window is not None:
        watched = _watched(task, spec, faults, task.from_ns, window)
        window = _without_copy(watched, window)
    gap, back_ns = watched.gap, watched.reachable_ns
    after = [(at_ns, event) for at_ns, event in watched.timeline if at_ns >= task.from_ns]
    redundant = [(at_ns, event) for at_ns, event in after if event == PROTECTED or event in _ALONE]
    is_back = bool(redundant) and redundant[-1][1] == PROTECTED
    if back_ns is not None and watched.last_seen_ns < back_ns:
        gap = Gap(task.from_ns, back_ns)
    elif not is_served(task):
        gap = watched.standstill
    return Episode(
        0.0 if gap is None else max(0.0, (gap.end_ns - gap.begin_ns) / S),
        watched.is_dead or (back_ns is None and _is_cut_off(task, watched)),
        bool(redundant) and not is_back,
        (redundant[-1][0] - task.from_ns) / S if is_back else 0.0,
        0.0 if back_ns is None else (back_ns - task.from_ns) / S,
    )


_SEEN_BEFORE_NS = 5 * S
_SILENT_NS = 20 * S


def _is_cut_off(task: EpisodeTask, watched: _Watched) -> bool:
    """Tell whether a fault that is not over by itself silences a guest that was heard shortly before it."""
    is_for_good = bool(task.timed_faults) and task.timed_faults[-1][1].lasts_ns == NO_DURATION
    seen_ns = watched.last_seen_ns
    return is_for_good and seen_ns >= task.from_ns - _SEEN_BEFORE_NS and watched.ended_ns - seen_ns >= _SILENT_NS


def _without_copy(watched: _Watched, window: tuple[int, int]) -> tuple[int, int] | None:
    """Return the window of gaps before the stop that ends a copy, which counts by itself, if the gap is that stop."""
    gap = watched.gap
    if gap is None or gap.begin_ns <= watched.since_ns:
        return None
    is_of_copy = any(event == PROTECTED and gap.begin_ns < at_ns <= gap.end_ns for at_ns, event in watched.timeline)
    return (window[0], gap.begin_ns + 1) if is_of_copy else None
