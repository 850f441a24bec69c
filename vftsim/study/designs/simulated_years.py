"""Years of a machine that faults of all kinds strike, drawn from their rates, beside the Markov chain of the same.

Hosts fail once in ``--mtbf`` on average, primary's and backup's, a share of the failures of each with the other; every
fault of the model with ``repeat: {mean: ...}`` comes as often as that says.  Instants of a year are drawn; each fault
is simulated in an episode (:mod:`.crash`) with those before it that are not over, and its outage is what clients see.
Nothing happens between episodes, so nothing is simulated there: that the machine is in its steady state by then is the
assumption.

What does not come back by itself somebody brings back (``--restart``), redundancy included; while it is down nothing
strikes it, and what comes until redundancy is back is played on a machine without.  The chain (:func:`.shares_of`) has
the same rates, and what each fault by itself was measured to do, protected and not, at instants spread over a second.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, partial
from statistics import NormalDist, fmean
from typing import Any, Self

from vftsim.composition.views import struck_by
from vftsim.errors import UsageError
from vftsim.platform.protection.faults import BackupCrash, FaultSpec, PrimaryCrash
from vftsim.platform.protection.mechanism import ProtectionSpec
from vftsim.platform.protection.when import Instant
from vftsim.report.blocks import Answer, Block, Cell, Note, Table, in_words
from vftsim.sampling import Streams, renewals_ns
from vftsim.spec.units import S
from vftsim.stats import Estimate, mean_interval, stratified_interval
from vftsim.stats.estimate import plain
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.head import INTERVALS, head
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs import failover
from vftsim.study.designs.availability import YEAR_S, Effect, HostFailures, Kind, shares_of
from vftsim.study.designs.crash import Episode, EpisodeTask, planned_reprotection_ns, planned_stop_s, simulate_episode
from vftsim.study.designs.protections import fitting
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import CONFIDENCE, DataFrame, estimate_columns, frame, rows
from vftsim.study.runs.estimate import Needs, needs_of
from vftsim.study.runs.model import Model
from vftsim.study.store.store import RunCache

LEAD_NS = 5 * S
"""Of an episode before its first fault: checkpoints and heartbeats are on their way."""
TAIL_NS = 20 * S
"""After a fault is over, beside the patience of both hosts, a restart and a re-protection: a queue that goes."""
TRAFFIC = 32
"""Number of replications of the traffic; episodes take them in turn."""
LONGEST_CLUSTER_NS = 1800 * S
YEARS_MOST = 1000
_NORMAL = NormalDist().inv_cdf((1.0 + CONFIDENCE) / 2.0)


@dataclass(frozen=True)
class Rate:
    """A kind of fault, and how often it comes."""

    name: str
    fault: FaultSpec
    mean_s: float
    cv: float = 1.0
    """Of the time between two of them."""
    is_of_both: bool = False
    """Whether the host of a backup fails at the same instant."""

    @property
    def per_s(self) -> float:
        """Rate in 1/s: the mean time counts from the end of one fault to the next."""
        return 1.0 / (self.mean_s + max(0, self.fault.lasts_ns) / S)

    def drawn_ns(self, streams: Streams, entity: int) -> list[int]:
        most = round(2.0 * YEAR_S / self.mean_s + 20.0 * math.sqrt(YEAR_S / self.mean_s) + 20.0)
        lasts_ns = max(0, self.fault.lasts_ns)
        instants_ns = renewals_ns(streams, "years", entity, 0, self.mean_s * S, self.cv, lasts_ns, most)
        return [at_ns for at_ns in instants_ns if at_ns < YEAR_S * S]


@dataclass(frozen=True)
class Machine:
    """A model under a mechanism, as episodes play it."""

    model: Model
    domain: str
    seed: int
    restart_s: float
    rates: tuple[Rate, ...] = ()
    """What strikes it."""
    quiet_s: tuple[float, ...] = ()
    """The longest time from packet to packet without faults, for each traffic."""

    @property
    def protection(self) -> ProtectionSpec:
        return failover.protection_in(self.model, self.domain)

    @cached_property
    def is_redundant(self) -> bool:
        """Whether redundancy that has gone comes back: a machine whose does not has none in the long run."""
        return self.protection.has_backup and planned_reprotection_ns(self.model.spec, self.domain) is not None

    @cached_property
    def reprotection_ns(self) -> int:
        """Time from a repair until redundancy is back; 0: there is none."""
        return (planned_reprotection_ns(self.model.spec, self.domain) or 0) if self.is_redundant else 0

    def copy_stop_s(self, episode: Episode) -> float:
        """Return how long the guest stands still at the end of the copy that brings redundancy back, if one does."""
        is_copied = episode.protected_s > 0.0 or episode.is_lost
        return planned_stop_s(self.model.spec, self.domain) if is_copied and self.is_redundant else 0.0

    @property
    def tail_ns(self) -> int:
        """Time that is observed after the end of the last fault."""
        return self.protection.restart_ns + self.protection.patience_ns + self.reprotection_ns + TAIL_NS

    def watched_ns(self, rates: Sequence[Rate]) -> int:
        """Return how long an episode of one of the faults takes at most."""
        longest_ns = max((each.fault.lasts_ns for each in rates), default=0)
        return LEAD_NS + S + max(0, longest_ns) + self.tail_ns

    def dies_of(self, rate: Rate) -> bool:
        """Whether a fault takes the backup with it, so that nothing can take over."""
        return rate.is_of_both and self.is_redundant

    def can_meet(self, fault: FaultSpec) -> bool:
        """Whether a fault can strike at all under the mechanism."""
        protection = self.protection
        if fault.needs_own_channel and protection.channel_network is not None:
            return False
        if fault.needs_backup and not protection.has_backup:
            return False
        return protection.backup_executes or not fault.needs_execution

    def episode(
        self, timed_faults: Sequence[tuple[int, FaultSpec]], traffic: int, protected_ns: int | None = None
    ) -> Episode:
        """Play faults at instants of a year; the last one is judged, until what follows all of them is over.

        ``protected_ns`` is when protection comes back to a machine that begins without.
        """
        first_ns, last_ns = timed_faults[0][0], timed_faults[-1][0]
        end_ns = max(at_ns + max(0, fault.lasts_ns) for at_ns, fault in timed_faults) + self.tail_ns
        spec, begins_ns, _ = failover.at_rest(self.model, None, LEAD_NS + S + end_ns - first_ns)
        shift_ns = begins_ns + LEAD_NS + first_ns % S - first_ns
        played = tuple((at_ns + shift_ns, fault) for at_ns, fault in timed_faults)
        protected_from_ns = self.protected_from_ns if protected_ns is None else max(protected_ns + shift_ns, 1)
        return simulate_episode(
            EpisodeTask(spec, self.domain, self.seed, traffic, played, last_ns + shift_ns, protected_from_ns)
        )

    @property
    def protected_from_ns(self) -> int:
        """When protection begins in an episode by default: from the start (0), or never."""
        return 0 if self.is_redundant or not self.protection.has_backup else _NEVER_NS

    def with_quiet(self) -> Self:
        """Return it with the longest times from packet to packet without faults, which are played."""
        spec, begins_ns, _ = failover.at_rest(self.model, None, self.watched_ns(self.rates))
        tasks = [
            EpisodeTask(spec, self.domain, self.seed, traffic, (), begins_ns + LEAD_NS, self.protected_from_ns)
            for traffic in range(TRAFFIC)
        ]
        return replace(self, quiet_s=tuple(simulate_episode(task).gap_s for task in tasks))

    def outage_s(self, episode: Episode, traffic: int) -> float:
        """Return what clients see of a fault; where the load's own gaps hide it, how long the guest was away."""
        return episode.gap_s if episode.gap_s > self.quiet_s[traffic] else episode.away_s

    def redundant_after_s(self, episode: Episode, outage_s: float) -> float:
        """Return the time from the end of an outage until redundancy is back; somebody restores what does not."""
        if not self.is_redundant:
            return 0.0
        if episode.is_lost:
            return self.restart_s + self.reprotection_ns / S
        return max(0.0, episode.protected_s - outage_s)


@dataclass(frozen=True)
class Measured:
    """Effects of single faults, and the longest gap between packets without any, for each traffic."""

    kinds: tuple[Kind, ...]
    quiet_s: tuple[float, ...]


@dataclass(frozen=True)
class YearTask:
    """A year of a machine, to be simulated."""

    machine: Machine
    """With its longest times from packet to packet without faults."""
    year: int


@dataclass(frozen=True)
class Year:
    """A year of a machine."""

    down_s: float
    unprotected_s: float
    drawn: dict[str, int]
    """Number of faults by kind."""
    down_by: dict[str, float]
    """Seconds down, by the kind of fault."""
    deaths: int
    """Number of restarts by hand."""


def measure(machine: Machine, crashes: int) -> Measured:
    """Play each kind of fault by itself at so many instants, on the machine as it is and without its protection."""
    machine = machine.with_quiet()

    def effect(rate: Rate, protected_ns: int | None) -> Effect:
        if machine.dies_of(rate):
            return Effect(0.0, dead=1.0)
        costs_s, outages_s, waits_s, unnoticed = list[float](), list[float](), list[float](), 0
        for number, at_ns in enumerate(failover.crash_instants(machine.seed, crashes, S)):
            traffic = number % TRAFFIC
            episode = machine.episode([(at_ns, rate.fault)], traffic, protected_ns)
            unnoticed += episode.gap_s <= machine.quiet_s[traffic]
            if episode.is_dead:
                costs_s.append(machine.restart_s)
                continue
            outage_s = machine.outage_s(episode, traffic)
            waits_s.append(machine.redundant_after_s(episode, outage_s))
            outages_s.append(outage_s + machine.copy_stop_s(episode))
            costs_s.append(outages_s[-1])
        jump_s = failover.longer_by_s(machine.protection) if isinstance(rate.fault, PrimaryCrash) else 0.0
        mean = stratified_interval(costs_s, CONFIDENCE, jump_s)
        count, around_s = max(len(outages_s), 1), max(mean.high - mean.mean, mean.mean - mean.low)
        dead = 1.0 - len(outages_s) / len(costs_s)
        return Effect(math.fsum(outages_s) / count, math.fsum(waits_s) / count, dead, around_s, unnoticed)

    kinds = []
    for rate in machine.rates:
        protected = effect(rate, None)
        alone = effect(rate, _NEVER_NS) if machine.is_redundant else protected
        kinds.append(Kind(rate.name, rate.per_s, protected, alone))
    return Measured(tuple(kinds), machine.quiet_s)


@dataclass
class _YearSoFar:
    """A year as it goes on: what it cost so far, and how the last fault has left the machine."""

    machine: Machine
    down: dict[str, float]
    """Seconds down, by the kind of fault."""
    unprotected_s: float = 0.0
    deaths: int = 0
    under_way: list[tuple[int, FaultSpec]] = field(default_factory=list)
    """Faults that are not over, and when they struck."""
    over_ns: int = 0
    """When they are over."""
    up_ns: int = 0
    """When a machine that died is back; nothing strikes it before."""
    out_since_ns: int | None = None
    """Beginning of an outage that had not ended when the next fault struck."""
    protected_ns: int | None = None
    """When protection is back, of a machine that goes on without."""

    def struck(self, at_ns: int, rate: Rate, traffic: int, next_ns: float) -> None:
        """Play a fault with those before it that are not over; the next one strikes at ``next_ns``."""
        if at_ns < self.up_ns:
            return
        if at_ns >= self.over_ns or (self.under_way and at_ns - self.under_way[0][0] > LONGEST_CLUSTER_NS):
            self.under_way = [each for each in self.under_way if each[0] + each[1].lasts_ns > at_ns]
            self.out_since_ns = self.out_since_ns if self.under_way else None
        if self.protected_ns is not None and not self.under_way and at_ns >= self.protected_ns:
            self.protected_ns = None
        self.under_way.append((at_ns, rate.fault))
        machine = self.machine
        if machine.dies_of(rate):
            self._dies(at_ns, rate)
            return
        episode = machine.episode(self.under_way, traffic, self.protected_ns)
        if episode.is_dead:
            self._dies(at_ns, rate)
        else:
            self._survives(at_ns, rate, episode, machine.outage_s(episode, traffic), next_ns)

    def _dies(self, at_ns: int, rate: Rate) -> None:
        machine = self.machine
        self.deaths += 1
        self.down[rate.name] += machine.restart_s + (0 if self.out_since_ns is None else at_ns - self.out_since_ns) / S
        self.unprotected_s += machine.reprotection_ns / S
        self.up_ns = at_ns + round(machine.restart_s * S)
        self.protected_ns = self.up_ns + machine.reprotection_ns if machine.is_redundant else None
        self.under_way, self.out_since_ns, self.over_ns = [], None, 0

    def _survives(self, at_ns: int, rate: Rate, episode: Episode, outage_s: float, next_ns: float) -> None:
        machine = self.machine
        if next_ns < at_ns + outage_s * S:  # what clients see then begins before this one
            self.out_since_ns = at_ns if self.out_since_ns is None else self.out_since_ns
        else:
            self.out_since_ns = None
            self.down[rate.name] += outage_s
        wait_s = machine.redundant_after_s(episode, outage_s)
        self.unprotected_s += wait_s
        # A copy that the next fault breaks off stops nothing.
        if next_ns >= at_ns + (outage_s + wait_s) * S:
            self.down[rate.name] += machine.copy_stop_s(episode)
        over_s = max(outage_s + wait_s + 1.0, rate.fault.lasts_ns / S)
        self.over_ns = max(self.over_ns, at_ns + round(over_s * S), self.protected_ns or 0)
        if episode.is_lost and machine.is_redundant:
            self.under_way, self.protected_ns = [], self.over_ns


def simulate_year(task: YearTask) -> Year:
    """Draw a year's faults, and play each with those before it that are not over."""
    machine, streams = task.machine, Streams(task.machine.seed, task.year)
    drawn = [(rate.drawn_ns(streams, n), rate) for n, rate in enumerate(machine.rates)]
    strikes = sorted(((at_ns, rate) for instants, rate in drawn for at_ns in instants), key=lambda each: each[0])
    year = _YearSoFar(machine, {rate.name: 0.0 for rate in machine.rates})
    # Every fault but the last is followed by the next one; there may be none in a year.
    followed_ns = [*(at_ns for at_ns, _ in strikes), math.inf][1:]
    for number, ((at_ns, rate), next_ns) in enumerate(zip(strikes, followed_ns, strict=True)):
        year.struck(at_ns, rate, number % TRAFFIC, next_ns)
    counts = {rate.name: len(instants) for instants, rate in drawn}
    return Year(math.fsum(year.down.values()), year.unprotected_s, counts, year.down, year.deaths)


@dataclass(frozen=True)
class MachineYears:
    """Results of one mechanism: of the Markov chain, and of every year."""

    kinds: tuple[Kind, ...]
    crashes: int
    """Instants at which the chain's effects of each kind of fault were measured."""
    restart_s: float
    is_redundant: bool
    chain_down_s: float
    chain_waits_s: float
    """Seconds a year until redundancy is back; 0 where it does not come back."""
    quiet_s: float
    """Longest time from packet to packet without faults, on average."""
    years: tuple[Year, ...]

    @property
    def of_rare_load(self) -> str:
        """That crashes of hosts, which change something, were not noticed by those who ask seldom; else nothing."""
        hosts = [each for each in self.kinds if each.name in _HOSTS and each.protected.unprotected_s > 0.0]
        unnoticed = sum(each.protected.unnoticed for each in hosts)
        if not unnoticed or not self.quiet_s:  # without packets it is a job's own work that stands still
            return ""
        return (
            f"the load leaves up to {self.quiet_s:.3g} s between packets without faults, and of {self.crashes} crashes "
            f"of each host {unnoticed} made no longer gap: a takeover counts until the guest could be reached, and "
            "answers that wait for the backup's host not at all; those that did make one count with the whole gap"
        )

    @property
    def down_s(self) -> Estimate:
        """Seconds down in a year, over the years.

        How many faults came in a year is chance, and known beforehand in the mean: what as many more or fewer would
        have cost, each by itself, is taken off (a control variate), which makes the interval several times narrower.
        The chance of those that meet each other comes on top.
        """
        chances_s = [math.fsum(self._by_chance_s(each, kind) for kind in self.kinds) for each in self.years]
        of_years_s = [each.down_s - chance_s for each, chance_s in zip(self.years, chances_s, strict=True)]
        mean = mean_interval(of_years_s, CONFIDENCE)
        low = mean.mean - math.hypot(mean.mean - mean.low, self._of_meetings_s)
        high = mean.mean + math.hypot(mean.high - mean.mean, self._of_meetings_s)
        return replace(mean, low=low, high=high, half_width=(high - low) / 2.0)

    @property
    def _of_meetings_s(self) -> float:
        """Half the interval that faults which meet make: so few that years do not show their spread, but Poisson.

        A fault that finds the machine down costs nothing, one that finds it unprotected may cost a restart.
        """
        spared_s = self.chain_down_s**2 / YEAR_S
        deaths = sum(kind.rate_per_s * kind.unprotected.dead for kind in self.kinds)
        added_s = self.chain_waits_s * deaths * self.restart_s
        return _NORMAL * math.sqrt((spared_s + added_s) * self.restart_s / len(self.years))

    def _by_chance_s(self, year: Year, kind: Kind) -> float:
        """Return what more faults of a kind than on average have cost in a year."""
        return (year.drawn[kind.name] - kind.rate_per_s * YEAR_S) * kind.protected.cost_s(self.restart_s)

    @property
    def down_by_s(self) -> dict[str, float]:
        """Seconds down in a year by the kind of fault, the same taken off: they add up to :attr:`down_s`."""
        return {
            kind.name: math.fsum(each.down_by[kind.name] - self._by_chance_s(each, kind) for each in self.years)
            / len(self.years)
            for kind in self.kinds
        }

    @property
    def unprotected_s(self) -> Estimate:
        """Seconds unprotected in a year, over the years: what is not down, where it does not come back."""
        seconds = [each.unprotected_s if self.is_redundant else YEAR_S - each.down_s for each in self.years]
        return mean_interval(seconds, CONFIDENCE)

    @property
    def chain_unprotected_s(self) -> float:
        """The same by the chain."""
        return self.chain_waits_s if self.is_redundant else YEAR_S - self.chain_down_s

    @property
    def chain(self) -> Estimate:
        """Seconds down in a year by the chain; its interval is that of the measured outages, which are independent."""
        half_s = math.sqrt(math.fsum((kind.rate_per_s * YEAR_S * kind.protected.around_s) ** 2 for kind in self.kinds))
        low, high = self.chain_down_s - half_s, self.chain_down_s + half_s
        whole = Estimate(self.chain_down_s, half_s, low, high, self.crashes, CONFIDENCE, "stratified t")
        return whole if self.crashes >= FEWEST_RUNS else replace(whole, kind="range")

    @property
    def agrees(self) -> bool:
        """Whether the simulated downtime lies in the interval of the chain, what the years leave open put to it."""
        gap_s, simulated = self.down_s.mean - self.chain_down_s, self.down_s
        towards_chain_s = simulated.high - simulated.mean if gap_s < 0 else simulated.mean - simulated.low
        return abs(gap_s) <= math.hypot(self.chain.half_width, towards_chain_s)


@dataclass(frozen=True)
class SimulatedYears(Printed):
    """Years of a model under mechanisms."""

    model: Model
    failures: HostFailures
    rates: tuple[Rate, ...]
    years: Mapping[str, MachineYears]
    """By mechanism."""
    refused: Mapping[str, str]
    """Mechanisms that do not fit, with the reason."""
    manifest: dict[str, Any]

    def to_pandas(self) -> DataFrame:
        """Return one row a mechanism."""
        table = []
        for kind, each in self.years.items():
            drawn = sum(sum(year.drawn.values()) for year in each.years)
            table.append(
                {
                    "mechanism": kind,
                    "chain_downtime_s_per_year": each.chain_down_s,
                    "chain_low": each.chain.low,
                    "chain_high": each.chain.high,
                    "chain_interval": each.chain.kind,
                    "chain_n": each.chain.n,
                    **estimate_columns(each.down_s, "downtime_"),
                    "agrees": each.agrees,
                    "chain_unprotected_h_per_year": each.chain_unprotected_s / 3600.0,
                    "unprotected_h_per_year": each.unprotected_s.mean / 3600.0,
                    "availability": 1.0 - each.down_s.mean / YEAR_S,
                    "faults": drawn,
                    "brought_back": sum(year.deaths for year in each.years),
                }
            )
        return frame(table)

    def blocks(self) -> list[Block]:
        """Return downtime and time unprotected by simulation and by the chain, and what each kind of fault cost."""
        agreeing = [kind for kind, each in self.years.items() if each.agrees]
        count = len(next(iter(self.years.values())).years)
        least = min(self.years, key=lambda kind: self.years[kind].down_s.mean)
        years: list[list[Cell]] = []
        for kind, each in self.years.items():
            beside = plain(each.chain_unprotected_s / 3600.0)
            deaths = sum(year.deaths for year in each.years) / count
            verdict = "agree" if each.agrees else "differ"
            row: list[Cell] = [kind, each.chain, each.down_s, verdict, f"{deaths:.3g}"]
            years.append([*row, beside, plain(each.unprotected_s.mean / 3600.0)])
        columns = ["mechanism", "down, s/year: chain", "down, s/year: simulated", "they", "restarts by hand/year"]
        columns += ["unprotected, h/year: chain", "unprotected, h/year: simulated"]
        names = [rate.name for rate in self.rates]
        parts: list[list[Cell]] = []
        for kind, each in self.years.items():
            parts.append([kind, *(each.down_by_s.get(name) for name in names)])
        how_often = ", ".join(f"{rate.name} {rate.mean_s / _DAY_S:.4g}" for rate in self.rates)
        return [
            *head(self.manifest["models"], self.manifest["seed"]),
            Answer(
                f"least with {least}: {in_words(self.years[least].down_s, 's')}",
                f"How long is {self.model.name} down in a year?",
                f"{count} simulated years; the Markov chain agrees with them for {len(agreeing)} of {len(self.years)} "
                "mechanisms",
            ),
            Table(columns, years, caption=f"{_DOWNTIME} {_RESTS_ON} {INTERVALS}"),
            Table(["down, s/year, by fault", *names], parts),
            Note(f"Mean days between faults: {how_often}."),
            Note(
                f"What does not come back by itself somebody brings back in {self.failures.restart_s:g} s (--restart), "
                "redundancy included; nothing strikes a machine that is down. The chain has the rates and, of each "
                "fault by itself, what it was measured to do; the years play faults that come close to each other "
                "together."
            ),
            *(Note(text, warns=True) for text in failover.lost_in_its_crash(self.model)),
            *(Note(f"{kind}: {text}", warns=True) for kind, each in self.years.items() if (text := each.of_rare_load)),
            *(Note(f"Left out: {kind}: {why}") for kind, why in self.refused.items()),
        ]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            **asdict(self.failures),
            "rates": [{"name": each.name, "mean_s": each.mean_s, "cv": each.cv} for each in self.rates],
            "years": rows(self.to_pandas()),
            "effects": {kind: [asdict(effect) for effect in each.kinds] for kind, each in self.years.items()},
            "each": {kind: [asdict(year) for year in each.years] for kind, each in self.years.items()},
            "refused": dict(self.refused),
        }


def rates_of(model: Model, failures: HostFailures) -> tuple[Rate, ...]:
    """Return what strikes the machine of a model: its hosts, and the model's faults that come at a mean time."""
    start, domain = Instant("run", 0), failover.Crashes().domain_of(model)
    mean_s = failures.mtbf_s / (1.0 - failures.common)
    faults = (PrimaryCrash(at=start), BackupCrash(at=start))
    rates = [Rate(name, fault, mean_s) for name, fault in zip(_HOSTS, faults, strict=True)]
    for number, fault in enumerate(model.spec.faults):
        if fault.repeat is not None and fault.repeat.mean is not None and domain in struck_by(model.spec, fault):
            kind: str = fault.kind  # type: ignore[attr-defined]
            rates.append(Rate(f"{kind} ({number})", fault, fault.repeat.mean / S, fault.repeat.cv))
    if failures.common:
        # Last, so that the draws of the others are those without.
        rates.append(Rate("both hosts", PrimaryCrash(at=start), failures.mtbf_s / failures.common, is_of_both=True))
    return tuple(rates)


def simulated_years(
    model: Model,
    kinds: Sequence[str],
    failures: HostFailures,
    years: int,
    crashes: int,
    execution: Execution,
) -> SimulatedYears:
    """Simulate years of a model under mechanisms, and put its Markov chain beside.

    The model's faults with ``repeat: {mean: ...}`` come beside those of the hosts.  Each kind of fault is measured for
    the chain at ``crashes`` instants.  Refuses a number that makes no sense, and mechanisms none of which fits.
    """
    if not failures.restart_s:
        raise UsageError("--restart: above 0 with --simulate")
    if not 2 <= years <= YEARS_MOST:
        raise UsageError(f"--simulate: from 2 to {YEARS_MOST} years, got {years}")
    chosen, refused = fitting(model, kinds)
    rates, restart_s = rates_of(model, failures), failures.restart_s
    machines = _machines(model, chosen, rates, execution.seed, restart_s)
    determinants = [failures.mtbf_s, restart_s, [[each.name, each.mean_s, each.cv] for each in rates]]

    def cache(kind: str, result: type, parts: list[Any]) -> RunCache:
        return execution.cache(chosen[kind], result, years=[*determinants, parts], faults=model.digest())

    caches = [cache(kind, Measured, ["effects", crashes]) for kind in machines]
    effects = execution.play(partial(measure, crashes=crashes), caches, [{0: each} for each in machines.values()])
    measured = {kind: effect for kind, (effect,) in zip(machines, effects, strict=True)}
    caches = [cache(kind, Year, ["year", list(effect.quiet_s)]) for kind, effect in measured.items()]
    machines = {kind: replace(machines[kind], quiet_s=effect.quiet_s) for kind, effect in measured.items()}
    tasks = [{n: YearTask(machine, n) for n in range(years)} for machine in machines.values()]
    played = execution.play(simulate_year, caches, tasks)
    years_of = {}
    for (kind, effect), of_years in zip(measured.items(), played, strict=True):
        machine = machines[kind]
        shares = shares_of(effect.kinds, restart_s, machine.reprotection_ns / S)
        down_s, waits_s = shares.down * YEAR_S, shares.unprotected * YEAR_S
        of_machine = (crashes, restart_s, machine.is_redundant, down_s, waits_s, fmean(effect.quiet_s))
        years_of[kind] = MachineYears(effect.kinds, *of_machine, tuple(of_years))
    manifest = execution.manifest([model], "simulated years", years)
    return SimulatedYears(model, failures, rates, years_of, refused, manifest)


def _machines(
    model: Model, chosen: Mapping[str, Model], rates: Sequence[Rate], seed: int, restart_s: float
) -> dict[str, Machine]:
    """Return a model's machine under each mechanism, with those faults that can strike it there."""
    entry = failover.protected_domain(model)
    machines = {}
    for kind, each in chosen.items():
        machine = Machine(each, each.spec.copies(entry)[0], seed, restart_s)
        machines[kind] = replace(machine, rates=tuple(rate for rate in rates if machine.can_meet(rate.fault)))
    return machines


def years_take(model: Model, kinds: Sequence[str], failures: HostFailures, years: int, crashes: int) -> Needs:
    chosen, _ = fitting(model, kinds)
    needs = Needs()
    for machine in _machines(model, chosen, rates_of(model, failures), 0, restart_s=0.0).values():
        for rate in machine.rates:
            spec, _, _ = failover.at_rest(machine.model, None, machine.watched_ns([rate]))
            needs += needs_of(spec).times(2 * crashes + years * YEAR_S * rate.per_s)
        spec, _, _ = failover.at_rest(machine.model, None, machine.watched_ns(machine.rates))
        needs += needs_of(spec).times(TRAFFIC)
    return needs


_DAY_S = 86_400.0
_NEVER_NS = 1 << 60
_HOSTS = ("primary host", "backup host")
_DOWNTIME = "Downtime: as clients see it; where none asks again, until the guest could be reached."
_RESTS_ON = (
    "The chain rests on crashes at instants of each kind of fault (-n), the simulation on years; they agree where they "
    "differ by less than both intervals."
)
