"""``vftsim availability``: a year with a mechanism, from simulated failovers and a Markov model.

Hosts fail independently, lambda = 1 / MTBF each.  A pair is protected; it fails over (for the simulated outage F) when
the primary's host fails, and answers wait (for the simulated outage H) until the primary notices that the backup's
host has failed.  After either it is unprotected until redundancy is back (the simulated time Rp), by a copy that stops
the guest for C at its end (as planned); a failure while unprotected is an outage of length B (a restart).
Unavailability of that chain, with A = F + H + 2 C: U = (lambda A + 2 lambda Rp lambda B) / (1 + 2 lambda Rp + lambda A
+ 2 lambda Rp lambda B); of a machine that is restarted: lambda B / (1 + lambda B).  Attempts fail by lambda (P a +
2 lambda Rp P b) a second: a by a failure of each host of a pair (simulated), b in a restart, P the share of time in
which the pair is protected.  Assumption: times are exponential; failures come from the hosts alone
(:mod:`.simulated_years` has others).

Hosts that share power, a rack or a defect do not fail independently: a share beta of a host's failures takes the other
host with it (beta-factor model, IEC 61508-6, annex D; Fleming 1975).  Of a pair that is protected, (1 - beta) lambda
A is left, beta lambda B is added, and (2 - beta) lambda Rp stands for 2 lambda Rp.  Nobody has measured beta for
servers; for redundant channels of control systems the annex has 1 to 10 %.

An outage is what clients see.  Where none of them asks again, it lasts until the guest could be reached: the service is
there, and that is said.

*Faults of several kinds* (:func:`shares_of`), each with the outage that it was measured to have, strike a machine that
is protected, or unprotected until redundancy is back; a fault of kind k comes at its rate.  While it is protected, a
fault costs its outage, and then the time until redundancy is back, if it took that; while it is not, the outage that
the same fault has then.  A fault may be the end of the machine: somebody brings it back, and redundancy comes after
that.  While it is down nothing strikes it.  With hosts alone it is the pair above.  What counts in the first order are
the means of times.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from vftsim.errors import UsageError
from vftsim.report.blocks import Answer, Block, Card, Cards, Cell, Counted, Note, Table, dot_chart, in_words
from vftsim.spec import format_duration
from vftsim.spec.units import S
from vftsim.stats import Estimate, binomial_interval, stratified_interval
from vftsim.study.blocks.head import head, outside_notes, share_in_words
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs import failover
from vftsim.study.designs.crash import BackupFailure, planned_stop_s
from vftsim.study.designs.protections import fitting
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import CONFIDENCE, DataFrame, frame, rows
from vftsim.study.figures.protection_costs import cost_notes
from vftsim.study.figures.validity import MARK, first_load, outside
from vftsim.study.runs.estimate import Needs
from vftsim.study.runs.model import Model
from vftsim.study.store.opened import model_of, read_answer, read_manifest

YEAR_S = 365.25 * 86_400.0
DEFAULT_CRASHES = 10
DEFAULT_RESTART_S = 77.0
"""Heartbeats silent for 15 s, placement and boot: the defaults of ``ha_restart``."""


@dataclass(frozen=True)
class HostFailures:
    """How hosts fail, and how long an outage takes that no mechanism shortens; refuses what makes no sense."""

    mtbf_s: float
    """Mean time between failures of a host."""
    restart_s: float = DEFAULT_RESTART_S
    common_percent: float = 0.0
    """Of the failures of a host those that strike both hosts of a pair at once: beta of the beta-factor model."""

    def __post_init__(self) -> None:
        if not 0 < self.mtbf_s < math.inf or not 0 <= self.restart_s < math.inf:
            raise UsageError("--mtbf: above 0, and --restart: 0 or above")
        if not 0 <= self.common_percent < 100:
            raise UsageError(f"--common-cause: from 0 to below 100 %, got {self.common_percent:g} %")

    @property
    def common(self) -> float:
        """The same as a ratio."""
        return self.common_percent / 100.0

    def __str__(self) -> str:
        together = f"{self.common_percent:g} % of it together with" if self.common else "independently of"
        days = self.mtbf_s / 86_400.0
        time = f"{days:.4g} days" if days >= 1.0 else format_duration(round(self.mtbf_s * S))
        return f"each host fails once in {time} on average (--mtbf), {together} the other (--common-cause)"


@dataclass(frozen=True)
class AvailabilityStudy(Printed):
    """A year with each mechanism."""

    model: Model
    failures: HostFailures
    rows: tuple[dict[str, Any], ...]
    """One for each mechanism."""
    refused: dict[str, str]
    """Mechanisms that do not fit, with the reason."""
    manifest: dict[str, Any]
    remarks_of: dict[str, list[str]] = field(default_factory=dict)
    """By mechanism, what must be known of its failovers."""

    def to_pandas(self) -> DataFrame:
        """Return one row a mechanism."""
        return frame(list(self.rows))

    @property
    def outside(self) -> list[float] | None:
        """Load of the failovers, if outside of what the model was fitted to; None if it does not say to what."""
        return outside(self.model.spec, first_load(self.model.spec))

    @classmethod
    def opened(cls, folder: Path) -> AvailabilityStudy:
        manifest, answer = read_manifest(folder), read_answer(folder)
        never = {"reprotection_s", "nines"}
        lacking = {name: math.inf if name in never else math.nan for row in answer["availability"] for name in row}
        years = tuple({k: lacking[k] if v is None else v for k, v in row.items()} for row in answer["availability"])
        model = replace(model_of(manifest), chosen=answer.get("domain", ""))
        failures = HostFailures(answer["mtbf_s"], answer["restart_s"], answer.get("common_percent", 0.0))
        return cls(model, failures, years, answer["refused"], manifest, answer.get("remarks", {}))

    def blocks(self) -> list[Block]:
        """Return how long the service is down with each mechanism, and what that rests on."""
        mark = MARK if self.outside else ""
        crashes = Table(_OF_CRASHES, [_of_crashes(row) for row in self.rows], f"Failovers{mark}")
        table = Table(
            _OF_YEAR,
            [_of_a_year(row) for row in self.rows],
            f"A year{mark}",
            "Outages and time unprotected: means of simulated failures; by the backup's host: answers wait until the "
            "primary notices it. The year: a Markov model of failures of both hosts, failover and re-protection, whose "
            "copy stops the guest at its end, after each. What "
            "does not come back by itself somebody restarts by hand, and has it back "
            f"after --restart ({self.failures.restart_s:g} s): assumed, not simulated as that of ha_restart is. Came "
            "back: share of crashes (binomial, at least 95 %, Clopper and Pearson). ± or [..]: 95 % interval of the "
            "simulated outages, failures taken as given, from ten crashes on that all came back; (x to y): of the "
            "lowest and highest crash.",
        )
        assumed = f"{self.failures}; second outage {self.failures.restart_s:g} s"
        best = min(self.rows, key=lambda row: row["downtime_s_per_year"])
        blocks: list[Block] = [
            *head(self.manifest["models"], self.manifest["seed"]),
            *(Note(f"Costs of {costs}") for costs in _costs(self)),
            Note(assumed[0].upper() + assumed[1:]),
            Answer(
                f"least with {best['mechanism']}: {in_words(_of_year(best, 'downtime', 'downtime_s_per_year'), 's')}",
                f"How long is {self.model.name} down in a year?",
            ),
            Cards([_card(row) for row in self.rows]),
            *_charts(self),
            crashes,
            table,
        ]
        blocks += [
            Note(
                f"{row['mechanism']}: after {row['not_asked_again']} of {row['crashes']} crashes the guest was back "
                f"and no client asked again: {failover.ASK_AGAIN} The outage is until the guest could be reached."
            )
            for row in self.rows
            if row["not_asked_again"]
        ]
        blocks += [Note(text, warns=True) for text in failover.lost_in_its_crash(self.model)]
        blocks += [Note(f"{kind}: {text}", warns=True) for kind, texts in self.remarks_of.items() for text in texts]
        if any(row["failed_per_year"] < 0.0 for row in self.rows):
            blocks.append(Note(failover.FEWER_FAILED))
        if self.outside:
            blocks += outside_notes(self.model)
        return [*blocks, *(Note(f"Left out: {kind}: {why}") for kind, why in self.refused.items())]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "domain": failover.protected_domain(self.model),
            **asdict(self.failures),
            "availability": rows(self.to_pandas()),
            "refused": self.refused,
            "remarks": self.remarks_of,
            "outside_calibration": self.outside,
        }


def shares_of_pair(
    mtbf_s: float, outages_s: float, reprotection_s: float, restart_s: float, common: float = 0.0
) -> Shares:
    """Return the shares of time of a pair of hosts in balance; the chain's protected state has weight 1.

    ``mtbf_s`` is the mean time between failures of one host, ``outages_s`` the mean outage when a protected primary
    fails and that when the backup fails, together, ``reprotection_s`` the mean time until redundancy is back (infinite:
    never), ``restart_s`` the mean outage when an unprotected machine fails, or both hosts do: a share ``common`` of the
    failures of each.
    """
    rate = 1.0 / mtbf_s
    if math.isinf(reprotection_s):
        down = rate * restart_s / (1.0 + rate * restart_s)
        return Shares(down, 1.0 - down)
    alone = (2.0 - common) * rate * reprotection_s
    down = rate * ((1.0 - common) * outages_s + common * restart_s) + alone * rate * restart_s
    return Shares(down / (1.0 + alone + down), alone / (1.0 + alone + down))


def restart_unavailability(mtbf_s: float, restart_s: float) -> float:
    """Return the share of time in which a machine that is restarted does not serve."""
    return restart_s / (mtbf_s + restart_s)


def availability_study(
    model: Model,
    kinds: Sequence[str],
    failures: HostFailures,
    crashes: failover.Crashes,
    execution: Execution,
) -> AvailabilityStudy:
    """Simulate failovers of every mechanism, and put a year together from them.

    The model's mechanism is played with its parameters, others with their defaults.  Refuses kinds none of which
    fits, and runs that end before one of them has taken over.
    """
    chosen, refused = fitting(model, kinds)
    crashes = replace(crashes, of_backup=True)
    studies = failover.crashes_of_each([*chosen.values()], crashes, execution)
    years = [
        year_of(study, kind, failures, rate_of(study.model, crashes.domain_of(study.model)))
        for kind, study in zip(chosen, studies, strict=True)
    ]
    manifest = execution.manifest([model], "availability", crashes.count)
    remarks = {kind: study.remarks for kind, study in zip(chosen, studies, strict=True) if study.remarks}
    return AvailabilityStudy(model, failures, tuple(years), refused, manifest, remarks)


def year_takes(model: Model, kinds: Sequence[str], crashes: failover.Crashes) -> Needs:
    crashes = replace(crashes, of_backup=True)
    return sum((crashes.takes(each) for each in fitting(model, kinds)[0].values()), Needs())


def rate_of(model: Model, domain: str) -> float:
    """Return attempts a second that a domain serves in the failover runs; nan if that hangs on its answers."""
    spec = model.spec
    if spec.ramp is not None:
        return spec.ramp.first_load
    serving = spec.serving()
    driven = [(each, driver) for name, each in spec.workloads.items() for driver in spec.drivers_of(name)]
    rates = [workload.attempts_per_s for workload, driver in driven if domain in serving[driver]]
    return math.fsum(rates) if rates else math.nan


def year_of(study: failover.FailoverStudy, kind: str, failures: HostFailures, attempts_per_s: float) -> dict[str, Any]:
    """Return a year with a mechanism, from its failovers; refuse a run that ended before the guest was back.

    Where there is a backup, failures of its host are among them (:attr:`.Crashes.of_backup`).
    """
    backups = _of_backup(study)
    assert len(backups) == len(study.failovers) * study.protection.has_backup
    if any(each.is_cut_short for each in study.failovers) or any(math.isinf(each.outage_s) for each in backups):
        raise UsageError(
            f"{kind}: a run ended before the guest was back, so its outage is not known; let runs go on longer after a "
            "crash (--after)"
        )
    mtbf_s, restart_s = failures.mtbf_s, failures.restart_s
    reprotection_s = _reprotection_s(study)
    outage_s = fmean(each.away_s if math.isfinite(each.away_s) else restart_s for each in study.failovers)
    backup_outage_s = fmean(each.outage_s for each in backups) if backups else math.nan
    outages_s = outage_s + backup_outage_s if backups else outage_s
    is_pair = bool(backups) and any(math.isfinite(each.away_s) for each in study.failovers)
    # A copy after a failure of either host.
    copy_stop_s = planned_stop_s(study.model.spec, study.struck) if math.isfinite(reprotection_s) else 0.0

    def shares(outages_s: float) -> Shares:
        if is_pair:
            return shares_of_pair(mtbf_s, outages_s + 2.0 * copy_stop_s, reprotection_s, restart_s, failures.common)
        down = restart_unavailability(mtbf_s, outages_s)
        return Shares(down, 1.0 - down)

    of_year, of_restart = shares(outages_s), attempts_per_s * restart_s
    lost = _each_failed(study, of_restart)
    alone = of_year.unprotected if is_pair else 0.0

    def failed(of_crash: float) -> float:
        # Hosts whose service is down do not fail; where the rate is not known, alone is as protected.
        of_alone = of_crash if math.isnan(of_restart) else of_restart
        common = failures.common if is_pair else 0.0
        of_pair = (1.0 - common) * of_crash + common * of_alone
        return YEAR_S / mtbf_s * ((1.0 - of_year.down - alone) * of_pair + alone * of_alone)

    return {
        "mechanism": kind,
        "outage_s": outage_s,
        "backup_outage_s": backup_outage_s,
        "reprotection_s": reprotection_s,
        "copy_stop_s": copy_stop_s if is_pair else math.nan,
        "unavailability": of_year.down,
        "nines": nines(of_year.down),
        "downtime_s_per_year": of_year.down * YEAR_S,
        "unprotected_h_per_year": of_year.unprotected * YEAR_S / 3600.0,
        "failed_per_year": failed(fmean(lost)),
        "not_asked_again": sum(each.is_unasked for each in study.failovers),
        **year_columns(study, lost, lambda mean_s: shares(mean_s).down * YEAR_S, failed),
    }


def _of_backup(study: failover.FailoverStudy) -> list[BackupFailure]:
    return [each.of_backup for each in study.failovers if each.of_backup is not None]


def _reprotection_s(study: failover.FailoverStudy) -> float:
    """Return the mean time from the end of an outage until protection is restored; infinite: never."""
    waits_s = [each.unprotected_s - each.away_s for each in study.failovers]
    waits_s += [each.unprotected_s - each.outage_s for each in _of_backup(study)]
    known_s = [wait_s for wait_s in waits_s if math.isfinite(wait_s)]
    return max(0.0, fmean(known_s)) if known_s else math.inf


def _each_failed(study: failover.FailoverStudy, of_restart: float) -> list[float]:
    """Return how many attempts fail by a crash of each host: of a restart all that come meanwhile; nan: none counts.

    What fails in the copy that follows either crash is among them; where it is not over in the runs, as found apart.
    """
    if not any(each.failed for each in study.failovers):
        return [math.nan] * len(study.failovers)
    in_copies = 2 * sum(study.failovers[0].of_copy.values())
    of_backups = [sum(each.of_backup.failed.values()) if each.of_backup else 0 for each in study.failovers]
    of_crashes = [sum(each.failed.values()) if each.recovered else of_restart for each in study.failovers]
    later = [0 if each.is_protected_again else in_copies for each in study.failovers]
    return [math.fsum(counts) for counts in zip(of_crashes, of_backups, later, strict=True)]


_OF_CRASHES = ("mechanism", "came back", "outage s", "by backup's host s", "protected again after s", "copy's stop s")
_OF_YEAR = ("mechanism", "nines", "downtime s/year", "unprotected h/year", "attempts failed/year")


def _costs(study: AvailabilityStudy) -> list[str]:
    """Return what the costs of each mechanism rest on, but for the model's own, of which the head tells."""
    models, _ = fitting(study.model, [row["mechanism"] for row in study.rows])
    in_head = study.manifest["models"][0]["costs"]
    return [costs for model in models.values() for costs in cost_notes(model.spec) if costs not in in_head]


def _charts(study: AvailabilityStudy) -> list[Block]:
    names = [str(row["mechanism"]) for row in study.rows]
    shown = (
        ("Down in a year", "downtime", "downtime_s_per_year", "seconds a year"),
        ("Attempts that fail in a year", "failed", "failed_per_year", "attempts a year"),
    )
    charts: list[Block] = []
    for title, name, figure, unit in shown:
        cells = [_of_year(row, name, figure) for row in study.rows]
        numbers = [None if isinstance(cell, str) else cell for cell in cells]
        chart = dot_chart(title, unit, names, {title.lower(): numbers})
        if chart.series[0].points:
            is_above_0 = min(point.y for point in chart.series[0].points) > 0.0
            charts.append(replace(chart, scale="log" if is_above_0 else "symlog"))
    return charts


def _card(row: Mapping[str, Any]) -> Card:
    more = f"{_nines(row['nines'])} nines" if math.isfinite(row["nines"]) else "no outage"
    return Card(row["mechanism"], _of_year(row, "downtime", "downtime_s_per_year"), "s a year", more)


def _of_crashes(row: Mapping[str, Any]) -> list[Cell]:
    came_back = share_in_words(binomial_interval(row["came_back"], row["crashes"]))
    outage = _cell(row["outage_s"]) if row["came_back"] else f"{row['outage_s']:.4g} (assumed)"
    back = Counted(f"{row['came_back']} of {row['crashes']}", f"({came_back})")
    rest = (_cell(row[name]) for name in ("backup_outage_s", "reprotection_s", "copy_stop_s"))
    return [row["mechanism"], back, outage, *rest]


def _of_a_year(row: Mapping[str, Any]) -> list[Cell]:
    return [
        row["mechanism"],
        _nines(row["nines"]),
        _of_year(row, "downtime", "downtime_s_per_year"),
        _cell(row["unprotected_h_per_year"]),
        _of_year(row, "failed", "failed_per_year"),
    ]


def _cell(value: float) -> float | str | None:
    return None if math.isnan(value) else "never" if math.isinf(value) else value


def _nines(value: float) -> str:
    return f"{value:.2f}" if math.isfinite(value) else "no outage"


def _of_year(row: Mapping[str, Any], name: str, figure: str) -> Estimate | float | str | None:
    """Return a figure of a year; where fewer attempts fail, in words: how many fewer hangs on how long runs go on."""
    return failover.FEWER if row[figure] < 0.0 else interval_of_year(row, name, row[figure]) or _cell(row[figure])


def interval_of_year(row: Mapping[str, Any], name: str, mean: float) -> Estimate | None:
    """Return a figure of a year with its interval (:func:`year_columns`); None if it has none."""
    kind, low, high = (row[f"{name}_{column}"] for column in ("interval", "low", "high"))
    if kind == "none":
        return None
    return Estimate(mean, (high - low) / 2.0, low, high, int(row["crashes"]), CONFIDENCE, kind)


def year_columns(
    study: failover.FailoverStudy,
    lost: Sequence[float],
    downtime_s: Callable[[float], float],
    failed: Callable[[float], float],
) -> dict[str, Any]:
    """Return the columns of a year's uncertainty.

    ``lost`` are attempts that fail by each crash.  ``downtime_s`` has seconds a year of a mean outage in s, that of
    either host together, ``failed`` attempts a year of those that fail by a crash; both rise.  The downtime's interval
    is that of the mean outage, the time unprotected being taken at its mean (it enters in the second order of the rate
    of failures).  It exists where the guest came back after every crash: what somebody restarts by hand is an
    assumption, and how often that is needed a share of the crashes with its own interval.
    """
    ended = [each for each in study.failovers if math.isfinite(each.away_s)]
    outages_s = [each.away_s + (each.of_backup.outage_s if each.of_backup else 0.0) for each in ended]
    crashes, back = len(study.failovers), len(ended)
    came_back = binomial_interval(back, crashes, CONFIDENCE)
    jump_s = failover.longer_by_s(study.protection)
    outage = stratified_interval(outages_s, CONFIDENCE, jump_s) if back == crashes else None
    has_lost = any(lost) and all(map(math.isfinite, lost))
    attempts = stratified_interval(lost, CONFIDENCE) if back == crashes and has_lost else None
    return {
        **_ends("downtime", outage, downtime_s),
        **_ends("failed", attempts, failed),
        "crashes": crashes,
        "came_back": back,
        "came_back_low": came_back.low,
        "came_back_high": came_back.high,
    }


def nines(unavailability: float) -> float:
    """Return -log10 of the unavailability: 3 for a service that is there in 99.9 % of the time."""
    return math.inf if unavailability <= 0.0 else -math.log10(unavailability)


def _ends(name: str, mean: Estimate | None, of_year: Callable[[float], float]) -> dict[str, Any]:
    if mean is None or mean.low == mean.high:
        return {f"{name}_low": math.nan, f"{name}_high": math.nan, f"{name}_interval": "none"}
    return {f"{name}_low": of_year(mean.low), f"{name}_high": of_year(mean.high), f"{name}_interval": mean.kind}


UP, DEAD, AFTER_DEATH = "up", "dead", "unprotected after death"


@dataclass(frozen=True)
class Effect:
    """Effect of a kind of fault."""

    outage_s: float
    """Mean outage where it is not the end of the machine."""
    unprotected_s: float = 0.0
    """Mean time after the outage until redundancy is back; 0: it did not go."""
    dead: float = 0.0
    """Share of the faults that are the end of the machine."""
    around_s: float = 0.0
    """Half the interval of what it costs on average, of the instants at which it was measured."""
    unnoticed: int = 0
    """Of those instants how many made no longer gap between packets than there are without faults."""

    def cost_s(self, restart_s: float) -> float:
        """Return the mean time down by one fault."""
        return self.outage_s * (1.0 - self.dead) + restart_s * self.dead


@dataclass(frozen=True)
class Kind:
    """A kind of fault: how often it comes in a second, and what it does while protected and while not."""

    name: str
    rate_per_s: float
    protected: Effect
    unprotected: Effect


@dataclass(frozen=True)
class Shares:
    """Shares of time."""

    down: float
    unprotected: float


def shares_of(kinds: Sequence[Kind], restart_s: float, reprotection_s: float) -> Shares:
    """Return how the machine spends its time.

    Bringing back what does not come back by itself takes ``restart_s``; from there until redundancy is back it takes
    ``reprotection_s``, 0 if the machine has none.
    """
    rates: dict[tuple[str, str], float] = {}

    def add_rate(state: str, target: str, rate: float) -> None:
        if rate > 0.0 and state != target:
            rates[state, target] = rates.get((state, target), 0.0) + rate

    def strike(state: str, kind: Kind, effect: Effect, after: str) -> None:
        add_rate(state, DEAD, kind.rate_per_s * effect.dead)
        out = f"out: {kind.name}, from {state}"
        living = kind.rate_per_s * (1.0 - effect.dead)
        if effect.outage_s > 0.0:
            add_rate(state, out, living)
            add_rate(out, after, 1.0 / effect.outage_s)
        else:
            add_rate(state, after, living)

    waiting: dict[str, float] = {AFTER_DEATH: reprotection_s} if reprotection_s > 0.0 else {}
    for kind in kinds:
        after = UP
        if kind.protected.unprotected_s > 0.0:
            after = f"unprotected after {kind.name}"
            waiting[after] = kind.protected.unprotected_s
        strike(UP, kind, kind.protected, after)
    for state, wait_s in waiting.items():
        add_rate(state, UP, 1.0 / wait_s)
        for kind in kinds:
            strike(state, kind, kind.unprotected, state)
    add_rate(DEAD, AFTER_DEATH if AFTER_DEATH in waiting else UP, 1.0 / restart_s)
    shares = stationary(rates)
    down = sum(share for state, share in shares.items() if state == DEAD or state.startswith("out: "))
    return Shares(down, sum(shares.get(state, 0.0) for state in waiting))


def stationary(rates: Mapping[tuple[str, str], float]) -> dict[str, float]:
    """Return the shares of time of a chain's states that can be reached, from the rates between them."""
    states, new = [UP], [UP]
    while new:
        new = sorted({target for source, target in rates if source in new and target not in states})
        states += new
    if len(states) == 1:
        return {UP: 1.0}
    row = {state: number for number, state in enumerate(states)}
    flow = np.zeros((len(states), len(states)))
    for (source, target), rate in rates.items():
        if source in row:
            flow[row[target], row[source]] += rate
            flow[row[source], row[source]] -= rate
    flow[0] = 1.0  # one balance follows from the others: the shares add up instead
    shares = np.linalg.solve(flow, np.eye(len(states))[0])
    return {state: float(shares[number]) for state, number in row.items()}
