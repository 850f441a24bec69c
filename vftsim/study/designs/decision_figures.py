"""The figures by which mechanisms are chosen, in the order in which one asks for them, and where each comes from.

Of the service: what its workloads and programs declare as leading.  What protection adds and costs: declared figures
of the guard, the domain and the hosts, and three that are put together here in each replication:

* ``work``: what the leading rates of the workloads that the domain serves, and of its programs, have got done, as a
  share of that without protection (mean over them, none counted for more than all of its own: an overloaded guest may
  get more done where protection holds its clients back).
* ``cpu_left``: what of the guest's vCPUs neither works nor stands still.
* ``price``: CPU time of both hosts beyond what the same work takes without protection: what the primary's host uses
  more than ``work`` times what it uses unprotected (other guests' time on it left out of both), the time the guest's
  vCPUs stand still, and the second host's.

Of a failure: the outage with its parts, what is lost.  Of a year: :mod:`.availability`.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from statistics import fmean
from typing import Any

from vftsim.composition.views import others_on_host, work_of
from vftsim.outcome.declare import Rate
from vftsim.stats import Estimate, mean_interval, stratified_interval
from vftsim.study.designs.availability import interval_of_year
from vftsim.study.designs.capacity_by_ramp import RampCapacity
from vftsim.study.designs.crash import PARTS, Failover
from vftsim.study.designs.failover import FailoverStudy, longer_by_s
from vftsim.study.figures.names import OF_MECHANISMS
from vftsim.study.figures.summary import Summary, is_service
from vftsim.study.runs.model import Model

SERVICE, COST, FAILURE, YEAR = "service", "cost", "failure", "year"
OUTAGE, PRICE, WORK, CPU_LEFT, CAPACITY, DOWNTIME = OF_MECHANISMS
NONE = "none"
_RATINGS = ("mos",)
"""Figures that lead no table of a run and decide about a mechanism."""


@dataclass(frozen=True)
class Quantity:
    """A figure of every mechanism."""

    name: str
    """Its address, or a word of its own."""
    words: str
    """Label and unit."""
    unit: str
    group: str
    """Of the service, what protection costs, a failure, a year."""
    owner: str = ""
    """Workload or program that measures it; empty for the others."""
    column: str = ""
    """Its name among the figures of crashes, or in the row of a year."""


_OF_GUARD = (
    ("output_held", "output held, ms"),
    ("stopped", "stopped, %"),
    ("channel", "channel, Mbit/s"),
    ("breaches", "breaches"),
    ("backup_cpu", "CPU, 2nd host, %"),
    ("memory", "memory here, MB"),
    ("backup_memory", "memory, 2nd host, MB"),
    ("backup_disk", "disk, 2nd host, MB/s"),
)
_REQUESTS, _PACKETS = "requests_lost", "packets_lost"
_PARTS = [(part, part.removesuffix("_s")) for part in PARTS]
_UNDECLARED = {
    name: Quantity(name, words, unit, group, column=column)
    for name, column, words, unit, group in (
        (CAPACITY, "", "capacity (DOC), /s", "/s", COST),
        (WORK, "", "work done, % of none", "%", COST),
        (CPU_LEFT, "", "CPU left, %", "%", COST),
        (PRICE, "", "price: CPU, both hosts, %", "%", COST),
        (OUTAGE, OUTAGE, "outage, s", "s", FAILURE),
        *((f"{OUTAGE}.{name}", part, f"{name.replace('_', ' ')}, s", "s", FAILURE) for part, name in _PARTS),
        (_REQUESTS, _REQUESTS, "further requests lost", "", FAILURE),
        (_PACKETS, _PACKETS, "further packets lost", "", FAILURE),
        ("rolled_back", "rollback_s", "rolled back, s", "s", FAILURE),
        ("execution_lost", "execution_lost_s", "CPU time undone, s", "s", FAILURE),
        ("outputs_lost", "outputs_lost", "outputs lost", "", FAILURE),
        ("outputs_again", "outputs_issued_again", "outputs again", "", FAILURE),
        ("outputs_underivable", "outputs_underivable", "outputs unknown to backup", "", FAILURE),
        ("backup_outage", "backup_outage_s", "outage by 2nd host, s", "s", FAILURE),
        ("unprotected", "unprotected_s", "unprotected, s", "s", FAILURE),
        ("copy_stop", "copy_stop_s", "copy's stop, s", "s", YEAR),
        (DOWNTIME, "downtime_s_per_year", "down, s/year", "s", YEAR),
        ("nines", "nines", "nines", "", YEAR),
        ("unprotected_hours", "unprotected_h_per_year", "unprotected, h/year", "h", YEAR),
        ("failed_per_year", "failed_per_year", "requests failed/year", "", YEAR),
    )
}
"""Figures that no part declares, by name."""
UNDECLARED_UNITS = {name: figure.unit for name, figure in _UNDECLARED.items()}
_OF_ROLLBACK = ("rolled_back", "execution_lost", "outputs_lost", "outputs_again", "outputs_underivable")
_OF_BACKUP = ("backup_outage", "copy_stop")
OF_FAILED = (_REQUESTS, _PACKETS, "failed_per_year")
"""What is beyond the same traffic without a crash."""


@dataclass(frozen=True)
class Protected:
    """A model under one mechanism, and what was found of it."""

    model: Model
    domain: str
    """The protected one, as records name it."""
    summary: Summary
    """Declared figures over replications."""
    computed: Mapping[str, Mapping[int, float]]
    """Figures put together here, by name and replication."""
    capacity: RampCapacity | None = None
    failovers: FailoverStudy | None = None
    year: Mapping[str, Any] | None = None
    """A row of :class:`~vftsim.study.designs.availability.AvailabilityStudy`."""

    def estimate(self, name: str) -> Estimate | None:
        """Return a figure with the interval that its replications or crashes allow."""
        return self._values_and_estimate(name)[1]

    def sample(self, name: str) -> list[float]:
        """Return a figure of each replication or crash; of a year, and of ramps together, the one there is."""
        return self._values_and_estimate(name)[0]

    def figure(self, name: str) -> float:
        """Return a figure; nan where there is none."""
        estimate = self.estimate(name)
        return math.nan if estimate is None else estimate.mean

    def difference(self, name: str, first: Protected) -> Estimate | None:
        """Return how much more a figure is than that of another mechanism, by replications of the same traffic."""
        if name not in self.computed:
            return first.summary.difference(self.summary, name)
        mine, its = self.computed[name], first.computed.get(name, {})
        pairs = [mine[number] - its[number] for number in sorted(mine.keys() & its.keys())]
        return mean_interval(pairs, self.summary.confidence) if pairs else None

    @property
    def crashes(self) -> tuple[Failover, ...]:
        """Its crashes; none where none were played."""
        return () if self.failovers is None else self.failovers.failovers

    @property
    def breaks_promise(self) -> bool:
        """Whether its parameters let outputs leave that no backup can derive."""
        return bool(self.model.spec.expanded()[self.domain].protection.breaks_promise)

    @property
    def is_lost(self) -> bool:
        """Whether a crash loses all that was in memory: the service does not come back, or boots anew."""
        return any(each.is_for_good or any(event == "booted" for _, event in each.timeline) for each in self.crashes)

    def never_does(self, name: str) -> bool:
        """Whether a figure that is missing is 0: of a guard that does no such thing, or has no second host to lose."""
        if name in _OF_ROLLBACK:
            return bool(self.crashes) and not self.is_lost
        if name in _UNDECLARED:
            return name in _OF_BACKUP and not self.model.spec.expanded()[self.domain].protection.has_backup
        return all(address.owner.endswith(".protection") for address in self.summary.find(name))

    @cached_property
    def never(self) -> int:
        """After how many crashes the service did not come back."""
        return sum(each.is_for_good for each in self.crashes)

    def _values_and_estimate(self, name: str) -> tuple[list[float], Estimate | None]:
        """Return a figure of each replication or crash, and its estimate."""
        quantity = _UNDECLARED.get(name)
        if name in self.computed:
            values = list(self.computed[name].values())
            return values, mean_interval(values, self.summary.confidence) if values else None
        if quantity is None or not (quantity.column or name == CAPACITY):
            return list(self.summary.values(name).values()), self.summary.estimate(name)
        if quantity.group == FAILURE:
            return self._of_crashes(quantity)
        of_ramps = None if self.capacity is None else self.capacity.estimate
        of_all = self._of_year(quantity) if quantity.group == YEAR else of_ramps
        return [] if of_all is None else [of_all.mean], of_all

    def _of_crashes(self, figure: Quantity) -> tuple[list[float], Estimate | None]:
        """Return a figure of each crash, and its estimate; nothing where none has any."""
        if self.failovers is None:
            return [], None
        if figure.name in (_REQUESTS, _PACKETS):
            counts = [each.failed if figure.name == _REQUESTS else each.lost for each in self.crashes]
            of_crashes = zip(self.crashes, counts, strict=True) if any(counts) else ()
            values = [math.inf if crash.is_for_good else float(sum(count.values())) for crash, count in of_crashes]
        elif figure.name == OUTAGE:
            values = [each.away_s for each in self.crashes]
        else:
            values = self.failovers.figures().get(figure.column, [])
            return values, self.failovers.mean(figure.column) if values else None
        is_complete = bool(values) and all(map(math.isfinite, values))
        jump_s = longer_by_s(self.failovers.protection) if figure.name == OUTAGE else 0.0
        return values, stratified_interval(values, self.summary.confidence, jump_s) if is_complete else None

    def _of_year(self, figure: Quantity) -> Estimate | None:
        if self.year is None or not math.isfinite(value := float(self.year[figure.column])):
            return None
        stem = {DOWNTIME: "downtime", "failed_per_year": "failed"}.get(figure.name)
        with_interval = interval_of_year(self.year, stem, value) if stem else None
        alone = Estimate(value, 0.0, value, value, int(self.year["crashes"]), self.summary.confidence, "range")
        return with_interval or alone


def phase_word(summary: Summary) -> str:
    """Return the phase whose figures are compared: the first load of a ramp, or the whole run."""
    return next((address.phase for address in summary.addresses if address.step == "step_1"), "")


def quantities(protected: Mapping[str, Protected]) -> list[Quantity]:
    """Return every figure that some mechanism has, in order."""
    by_name = {quantity.name: quantity for each in protected.values() for quantity in _of(each)}
    shared = [
        quantity for quantity in by_name.values() if any(each.estimate(quantity.name) for each in protected.values())
    ]
    groups = (SERVICE, COST, FAILURE, YEAR)
    return sorted(shared, key=lambda quantity: groups.index(quantity.group))


def is_of_failure(name: str) -> bool:
    """Whether only a crash shows a figure."""
    return name in _UNDECLARED and _UNDECLARED[name].group in (FAILURE, YEAR)


def _of(protected: Protected) -> Iterator[Quantity]:
    word = phase_word(protected.summary)
    for address in protected.summary.addresses:
        is_led = address.entry.leads or address.entry.path[0] in _RATINGS
        if is_led and is_service(address.owner) and address.phase == word:  # what clients or jobs get
            yield Quantity(address.text, address.entry.words, address.entry.unit, SERVICE, address.owner)
    yield from _UNDECLARED.values()
    addresses = {address.text: address for address in protected.summary.addresses}
    guard, domain = f"domains.{protected.domain}.protection", f"domains.{protected.domain}"
    listed = [(_at(domain, word, "cpu"), "CPU of the guest, %")]
    listed += [(_at(guard, word, name), words) for name, words in _OF_GUARD]
    for text, words in listed:
        if text in addresses:
            yield Quantity(text, words, addresses[text].entry.unit, COST)


def address_in(summary: Summary, figure: str) -> str:
    """Return the whole name of a figure that somebody asks for, in the phase that is compared.

    A percentile that nobody has listed comes to be in the summary.
    """
    every = [] if figure in _UNDECLARED else summary.find(figure)
    word = phase_word(summary)
    return next((each.text for each in every if each.phase == word), every[0].text if every else figure)


def _at(owner: str, word: str, figure: str) -> str:
    return ".".join(part for part in (owner, word, figure) if part)


def computed(model: Model, domain: str, summary: Summary, unprotected: Summary | None) -> dict[str, dict[int, float]]:
    """Return what is put together of each replication; ``work`` and ``price`` beside the run without protection."""
    word, spec = phase_word(summary), model.spec.expanded()[domain]

    def of_guard(copy: str, figure: str) -> dict[int, float]:
        return summary.values(_at(f"domains.{copy}.protection", word, figure))

    busy = _at(f"hosts.{model.spec.host_of(spec)}", word, "busy")
    cpu = summary.values(_at(f"domains.{domain}", word, "cpu"))
    still = of_guard(domain, "stopped")
    figures = {CPU_LEFT: {n: round(spec.vcpus * (100.0 - still.get(n, 0.0)) - each, 4) for n, each in cpu.items()}}
    if unprotected is None:
        return figures
    # An entry of the model may stand for several domains, each with its backup.
    copies = model.spec.copies(model.spec.entry_of(domain))
    figures[WORK] = _work(summary, unprotected, word, work_of(model.spec, copies))
    beside = [(of_guard(copy, "stopped"), of_guard(copy, "backup_cpu")) for copy in copies]
    others = [_at(f"domains.{each}", word, "cpu") for each in others_on_host(model.spec, copies)]
    mine, its = (_less(each, busy, others) for each in (summary, unprotected))
    figures[PRICE] = {}
    for n, done in figures[WORK].items():
        if n in mine and n in its:
            of_guards = math.fsum(spec.vcpus * a.get(n, 0.0) + b.get(n, 0.0) for a, b in beside)
            figures[PRICE][n] = round(mine[n] - done / 100.0 * its[n] + of_guards, 4)
    return figures


def _less(summary: Summary, total: str, parts: Sequence[str]) -> dict[int, float]:
    """Return a figure by replication, less others."""
    less = [summary.values(part) for part in parts]
    return {
        number: value - sum(each.get(number, 0.0) for each in less) for number, value in summary.values(total).items()
    }


def _work(summary: Summary, unprotected: Summary, word: str, workers: Collection[str]) -> dict[int, float]:
    """Return the share in percent of the work that is done without protection, mean over the workers that do it.

    Where more is done than without it, what that costs unprotected is not known: it counts as all.
    """
    shares: dict[int, list[float]] = {}
    for text in _rates(unprotected, word, workers):
        mine, its = summary.values(text), unprotected.values(text)
        for number in sorted(mine.keys() & its.keys()):
            if its[number] > 0:
                shares.setdefault(number, []).append(min(100.0, 100.0 * mine[number] / its[number]))
    if not shares:
        cpu = next((each.text for each in summary.addresses if each.entry.path == ("cpu",)), "")
        return dict.fromkeys(summary.values(cpu), 100.0)
    return {number: fmean(each) for number, each in shares.items()}


def _rates(summary: Summary, word: str, workers: Collection[str]) -> Iterator[str]:
    """Yield for each of some workloads and programs what says how much it gets done: a rate, or what it delivers."""
    done = set[str]()
    services = [each for each in summary.addresses if each.owner in workers]
    for leads in (True, False):
        for address in services:
            figure = address.entry.figure
            is_rate = isinstance(figure, Rate) or figure.unit.endswith("bit/s")
            is_told = address.entry.leads and is_rate if leads else address.entry.path == ("delivered",)
            if address.phase == word and figure.better == "higher" and is_told and address.owner not in done:
                done.add(address.owner)
                yield address.text
