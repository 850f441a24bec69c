"""Which protection, at what price: one model under several mechanisms, and which of them does what is asked.

Every mechanism with its defaults, but the model's own with the parameters that the model gives it.  All meet the same
traffic, so that differences are those of pairs.  The model's faults are left out; crashes of the primary's host are
simulated apart (:mod:`.failover`), and a year is put together from them (:mod:`.availability`).  Which figures there
are: :mod:`.decision_figures`.

Of those that meet every objective the cheapest is the one with the least ``price``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from vftsim.errors import UsageError
from vftsim.report.blocks import Block
from vftsim.stats import Estimate
from vftsim.study.availability import DEFAULT_RESTART_S, rate_of, year_of
from vftsim.study.blocks.decision import decision_blocks
from vftsim.study.decision_figures import (
    CAPACITY,
    FAILURE,
    PRICE,
    SERVICE,
    YEAR,
    Protected,
    Quantity,
    address_in,
    computed,
    own_words,
    quantities,
)
from vftsim.study.estimate import Needs, total
from vftsim.study.failover import SPAN_NS, FailoverStudy, crashes_take, failover_study, one_crash_each, protected_domain
from vftsim.study.figures.summary import Summary
from vftsim.study.frames import estimate_columns, frame
from vftsim.study.manifest import manifest, utc_now
from vftsim.study.model import Model
from vftsim.study.objective import Objective, in_units
from vftsim.study.price_bands import Band, Variant, band_of, effects_of, variants, widened
from vftsim.study.printed import Printed
from vftsim.study.progress import Progress
from vftsim.study.protection_costs import cost_note
from vftsim.study.protection_figures import broken_promises
from vftsim.study.protections import fitting
from vftsim.study.ramp import ramp_capacity_of
from vftsim.study.replicate import DEFAULT_SEED, replicate
from vftsim.study.results import CONFIDENCE, rows
from vftsim.study.store import Store
from vftsim.study.validity import first_load, outside
from vftsim.study.workers import Interrupted, checked_jobs

if TYPE_CHECKING:
    import pandas as pd

NONE = "none"
SOON_NS = 8_000_000_000
"""Above the longest detection and takeover that prices make, a restart aside."""
DEFAULT_MTBF_S = 365 * 86_400.0
Verdict = Literal["yes", "no", "open"]


@dataclass(frozen=True)
class Asked:
    """The question.

    Parameters
    ----------
    objectives : tuple of Objective
        What a mechanism has to achieve, all of them.
    mtbf_s : float
        Mean time between failures of a host.
    restart_s : float
        How long it takes somebody to bring back by hand what does not come back by itself.
    bands : bool
        Whether each price is also played at both ends of its range, once.
    """

    objectives: tuple[Objective, ...] = ()
    mtbf_s: float = DEFAULT_MTBF_S
    restart_s: float = DEFAULT_RESTART_S
    bands: bool = True


@dataclass(frozen=True)
class Decision(Printed):
    """A model under several mechanisms.

    Parameters
    ----------
    base : Model
    protected : dict
        What was found, by mechanism.
    asked : Asked
    bands : dict
        By mechanism and figure, what the ranges of prices make of it; empty: prices were taken as they are.
    refused : dict
        Mechanisms that do not fit, with the reason.
    notes : dict
        What must be said of a mechanism.
    manifest : dict
    """

    base: Model
    protected: Mapping[str, Protected]
    asked: Asked
    bands: Mapping[str, Mapping[str, Band]]
    refused: Mapping[str, str]
    notes: Mapping[str, Sequence[str]]
    manifest: dict[str, Any]

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The figures, in order."""
        return quantities(self.protected)

    @cached_property
    def first(self) -> str:
        """The mechanism that differences are taken to: none, or the first."""
        return NONE if NONE in self.protected else next(iter(self.protected))

    def estimate(self, kind: str, name: str) -> Estimate | None:
        """Return a figure of a mechanism, with what the ranges of prices make of it."""
        return widened(self.protected[kind].estimate(name), self.bands.get(kind, {}), name)

    def difference(self, kind: str, name: str) -> Estimate | None:
        """Return how much more it is than without protection, of pairs; None for what has none."""
        found = self.protected[kind].difference(name, self.protected[self.first])
        return widened(found, self.bands.get(kind, {}), name, is_difference=True)

    def figure_of(self, objective: Objective) -> str:
        """Return the name of the figure that an objective is about, as :attr:`quantities` or the summaries have it."""
        found = {address_in(each.summary, objective.figure) for each in self.protected.values()}
        return next(iter(found))

    def verdict(self, kind: str, objective: Objective) -> Verdict:
        """Tell whether a mechanism meets an objective; open: its interval holds the limit."""
        found = self.estimate(kind, self.figure_of(objective))
        if found is None:
            return "no"
        ends = [objective.holds(found.low), objective.holds(found.high)] if math.isfinite(found.half_width) else []
        met = objective.holds(found.mean)
        return "open" if any(each != met for each in ends) else "yes" if met else "no"

    def verdicts(self, kind: str) -> Verdict:
        """Tell whether a mechanism meets every objective."""
        found = {self.verdict(kind, objective) for objective in self.asked.objectives}
        return "no" if "no" in found else "open" if "open" in found else "yes"

    @cached_property
    def ordered(self) -> list[str]:
        """The mechanisms: those that meet what is asked, the cheaper ones before; as named if nothing is asked."""
        if not self.asked.objectives:
            return list(self.protected)
        best = ("yes", "open", "no")
        return sorted(self.protected, key=lambda kind: (best.index(self.verdicts(kind)), self.price(kind)))

    def price(self, kind: str) -> float:
        """Return what a mechanism costs, in percent of a pCPU; infinite where nothing says it."""
        found = self.estimate(kind, PRICE)
        return math.inf if found is None else found.mean

    def blocks(self) -> list[Block]:
        """Return the decision as blocks."""
        return decision_blocks(self)

    @property
    def interrupted(self) -> bool:
        """Whether the study was ended early."""
        return bool(self.manifest["state"] == "interrupted")

    def to_pandas(self) -> pd.DataFrame:
        """Return one row a mechanism and figure, the difference to no protection behind it."""
        table = []
        for kind in self.protected:
            for one in self.quantities:
                found = self.estimate(kind, one.name)
                if found is None:
                    continue
                row = {"mechanism": kind, "figure": one.name, "group": one.group, "unit": one.unit}
                less = self.difference(kind, one.name) if kind != self.first else None
                of_pairs = estimate_columns(less) if less is not None else {}
                columns = estimate_columns(found) | {f"difference_{key}": value for key, value in of_pairs.items()}
                table.append(row | columns | self._parts(kind, one.name))
        return frame(table)

    def _parts(self, kind: str, name: str) -> dict[str, Any]:
        """Return what of an interval is of the replications, what of prices, and which price decides."""
        band, own = self.bands.get(kind, {}).get(name), self.protected[kind].estimate(name)
        if band is None or own is None:
            return {}
        return {
            "replications_low": own.low,
            "replications_high": own.high,
            "prices_low": own.mean + band.below,
            "prices_high": own.mean + band.above,
            "decided_by": band.decides,
            "decided_share": band.share,
        }

    @property
    def outside(self) -> list[list[str]] | None:
        """Mechanism and figure where a load is outside of what the model was fitted to; None as of other studies."""
        if self.base.spec.calibrated is None:
            return None
        at_first = bool(outside(self.base.spec, first_load(self.base.spec)))
        return [
            [kind, one.name]
            for kind, each in self.protected.items()
            for one in self.quantities
            if (each.capacity is not None and each.capacity.ends_outside if one.name == CAPACITY else at_first)
        ]

    def for_machines(self) -> dict[str, Any]:
        """Return everything as plain data: what ``--json`` prints."""
        return {
            "manifest": self.manifest,
            "comparison": rows(self.to_pandas()),
            "mtbf_s": self.asked.mtbf_s,
            "restart_s": self.asked.restart_s,
            "objectives": [
                {
                    "objective": str(one),
                    "figure": self.figure_of(one),
                    "met": {kind: self.verdict(kind, one) for kind in self.protected},
                }
                for one in self.asked.objectives
            ],
            "order": self.ordered,
            "refused": dict(self.refused),
            "notes": {kind: list(said) for kind, said in self.notes.items()},
            "outside_calibration": self.outside,
        }


def decision_takes(models: Sequence[Model], replications: int, *, bands: bool = True) -> Needs:
    """Return what such a study takes: replications of each model, and crashes; of each price two more."""
    found = total([each.spec for each in models], replications)
    for each in models:
        found += crashes_take(each, max(replications, 2), None, SPAN_NS, None)
        for end, of_failure in _ends(each, protected_domain(each)) if bands else ():
            found += (
                crashes_take(end.model, 1, None, SPAN_NS, _after_ns({"": each}))
                if of_failure
                else total([end.model.spec], 1)
            )
    return found


def decide(
    model: Model,
    kinds: Sequence[str],
    replications: int,
    seed: int = DEFAULT_SEED,
    jobs: int | None = None,
    *,
    asked: Asked | None = None,
    progress: Progress | None = None,
    store: Store | None = None,
) -> Decision:
    """Run a model under every mechanism for the same replications, and as many crashes of each.

    Raises
    ------
    UsageError
        No mechanism fits the model, or it has no figure that was asked for.
    Interrupted
        Ctrl-C before one replication of every mechanism was done.
    """
    started, workers = utc_now(), checked_jobs(jobs)
    models, refused = fitting(model, kinds)
    question, specs = asked or Asked(), [each.spec for each in models.values()]
    question = replace(question, objectives=in_units(question.objectives, specs, own_words()))
    done = replicate(list(models.values()), replications, seed, workers, progress=progress, store=store)
    common = sorted(set.intersection(*(set(each.records) for each in done)))
    if not common:
        raise Interrupted("no replication of all mechanisms had finished")
    records = {kind: [(n, each.records[n]) for n in common] for kind, each in zip(models, done, strict=True)}
    summaries = {kind: Summary(kind, own, CONFIDENCE) for kind, own in records.items()}
    interrupted = any(each.interrupted for each in done)
    name = protected_domain(model)
    domain = model.spec.copies(name)[0]
    found, notes = {}, dict[str, list[str]]()
    for kind, own in models.items():
        notes[kind] = [text for text in (cost_note(own.spec.domains[name]), *broken_promises(records[kind])) if text]
        capacity = ramp_capacity_of(own, records[kind]) if model.spec.ramp is not None else None
        beside = computed(own, domain, summaries[kind], summaries.get(NONE))
        found[kind] = Protected(own, domain, summaries[kind], beside, capacity)
        for one in question.objectives:
            address_in(summaries[kind], one.figure)  # a percentile that nobody has listed comes to be
    for kind, each in {} if interrupted else found.items():
        study = failover_study(models[kind], max(replications, 2), seed, workers, progress=progress, store=store)
        found[kind] = _with_failovers(each, study, question, rate_of(model))
        if found[kind].year is None:
            notes[kind].append("no year: a run ended before the guest was back")
    said = manifest(
        list(models.values()),
        command="compare",
        seed=seed,
        replications=common,
        wanted=replications,
        jobs=workers,
        started=started,
        state="interrupted" if interrupted else "finished",
    )
    of_prices: dict[str, dict[str, Band]] = {}
    if question.bands and not interrupted:
        of_prices = _bands(models, name, domain, question, seed, workers, progress, store)
    return Decision(model, found, question, of_prices, refused, {k: v for k, v in notes.items() if v}, said)


def _with_failovers(each: Protected, study: FailoverStudy, asked: Asked, rate: float) -> Protected:
    try:
        year = year_of(study, study.mechanism, asked.mtbf_s, asked.restart_s, rate)
    except UsageError:  # a run ended before the guest was back
        year = None
    return replace(each, failovers=study, year=year)


def _ends(model: Model, entry: str) -> Iterator[tuple[Variant, bool]]:
    """Yield what is played for the prices of a model, and whether a crash of it is."""
    for each in variants(_shorter(model), entry):
        yield each, each.is_of_failure


def _after_ns(models: Mapping[str, Model]) -> int | None:
    """Return how long a crash that shows a price is watched: where nothing queues, until the guest is back."""
    return None if any(model.spec.ramp is not None for model in models.values()) else SOON_NS


def _shorter(model: Model) -> Model:
    """Return the model with shorter steps: what a price moves shows there, too."""
    return model.quick() if model.spec.ramp is not None else model


def _bands(
    models: Mapping[str, Model],
    entry: str,
    domain: str,
    asked: Asked,
    seed: int,
    jobs: int,
    progress: Progress | None,
    store: Store | None,
) -> dict[str, dict[str, Band]]:
    """Play every price at both ends of its range, once, and return what that makes of each mechanism's figures."""
    ends = {kind: [each for each, _ in _ends(model, entry)] for kind, model in models.items()}
    base = {kind: _shorter(model) for kind, model in models.items()}
    of_run = [*base.items(), *((kind, v.model) for kind, own in ends.items() for v in own if not v.is_of_failure)]
    of_crash = [
        *((kind, base[kind]) for kind, own in ends.items() if any(v.is_of_failure for v in own)),
        *((kind, v.model) for kind, own in ends.items() for v in own if v.is_of_failure),
    ]
    done = replicate([model for _, model in of_run], 1, seed, jobs, progress=progress, store=store)
    if any(each.interrupted for each in done):
        return {}
    summaries = [Summary(kind, each.ordered(), CONFIDENCE) for (kind, _), each in zip(of_run, done, strict=True)]
    unprotected = next((each for (kind, _), each in zip(of_run, summaries, strict=True) if kind == NONE), None)
    runs = iter(
        [
            Protected(
                model,
                domain,
                each,
                computed(model, domain, each, unprotected),
                ramp_capacity_of(model, own.ordered()) if model.spec.ramp is not None else None,
            )
            for (_, model), each, own in zip(of_run, summaries, done, strict=True)
        ]
    )
    of_base = {kind: next(runs) for kind in base}
    crashes = iter(
        one_crash_each(
            [model for _, model in of_crash], seed, jobs, after_ns=_after_ns(base), progress=progress, store=store
        )
    )
    rate = rate_of(next(iter(models.values())))
    for kind, own in ends.items():
        if any(each.is_of_failure for each in own):
            of_base[kind] = _with_failovers(of_base[kind], next(crashes), asked, rate)
    found = {}
    for kind, own in ends.items():
        asked_for = [address_in(of_base[kind].summary, one.figure) for one in asked.objectives]
        played = [
            (each, _with_failovers(of_base[kind], next(crashes), asked, rate) if each.is_of_failure else next(runs))
            for each in own
        ]
        for _, each in played:
            for one in asked.objectives:
                address_in(each.summary, one.figure)
        found[kind] = _of_mechanism(of_base[kind], played, asked_for)
    return found


def _of_mechanism(
    base: Protected, played: Sequence[tuple[Variant, Protected]], asked_for: Sequence[str]
) -> dict[str, Band]:
    """Return the bands of a mechanism's figures; a run shows nothing of a crash, and a crash nothing of a run."""
    found = {}
    groups = dict.fromkeys(asked_for, SERVICE) | {one.name: one.group for one in quantities({"": base})}
    for name, group in groups.items():
        of_failure = group in (FAILURE, YEAR)
        told = [(each, _figures(own)) for each, own in played if each.is_of_failure == of_failure]
        if band := band_of(effects_of(told, _figures(base), name)):
            found[name] = band
    return found


def _figures(of: Protected) -> Callable[[str], float]:
    def figure(name: str) -> float:
        found = of.estimate(name)
        return math.nan if found is None else found.mean

    return figure
