"""Which protection, at what price: one model under several mechanisms, and which of them does what is asked.

Every mechanism with its defaults, but the model's own with the parameters that the model gives it.  All meet the same
traffic, so that differences are those of pairs.  The model's faults are left out; crashes of the primary's host are
simulated apart (:mod:`.failover`), and a year is put together from them (:mod:`.availability`).  Which figures there
are: :mod:`.decision_figures`.

Of those that meet every objective the cheapest is the one with the least ``price``.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from itertools import filterfalse
from typing import Any, Literal

from vftsim.report.blocks import Answer, Bars, Block, Cell, Note, Table, in_words, shown
from vftsim.spec.suggest import counted
from vftsim.stats import Estimate
from vftsim.study.blocks.head import INTERVALS, head
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.axes import shared_knobs
from vftsim.study.designs.decision_crossovers import (
    DecisionRequest,
    Order,
    Played,
    crossover_answers,
    crossover_blocks,
    orders,
    orders_take,
    points_of_orders,
    watched_ns,
)
from vftsim.study.designs.decision_figures import (
    CAPACITY,
    COST,
    FAILURE,
    NONE,
    OF_FAILED,
    OUTAGE,
    PRICE,
    SERVICE,
    UNDECLARED_UNITS,
    YEAR,
    Protected,
    Quantity,
    address_in,
    quantities,
)
from vftsim.study.designs.failover import ALL, FEWER, FEWER_FAILED, Crashes, lost_in_its_crash, protected_domain
from vftsim.study.designs.points import PROTECTION
from vftsim.study.designs.price_bands import Band, Variant, band_of, effects_of, variants, widened
from vftsim.study.designs.protections import fitting
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import DataFrame, estimate_columns, frame, rows
from vftsim.study.figures.names import Objective, in_units
from vftsim.study.figures.protection_costs import cost_note, of_runs, own_channel
from vftsim.study.figures.summary import OF_PAIRS, short_owner
from vftsim.study.figures.validity import MARK, below_table, first_load, outside
from vftsim.study.runs.estimate import Needs, total
from vftsim.study.runs.model import Model
from vftsim.study.runs.workers import Interrupted

Verdict = Literal["yes", "no", "open"]


@dataclass(frozen=True)
class Decision(Printed):
    """A model under several mechanisms."""

    base: Model
    protected: Mapping[str, Protected]
    request: DecisionRequest
    bands: Mapping[str, Mapping[str, Band]]
    """By mechanism and figure, what the ranges of prices make of it; empty: prices were taken as they are."""
    refused: Mapping[str, str]
    """Mechanisms that do not fit, with the reason."""
    notes: Mapping[str, Sequence[str]]
    manifest: dict[str, Any]
    crossovers: tuple[Order, ...] = ()
    """The cheapest mechanism over the values of each requested setting."""

    @cached_property
    def quantities(self) -> list[Quantity]:
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
        less = self.protected[kind].difference(name, self.protected[self.first])
        return widened(less, self.bands.get(kind, {}), name, is_difference=True)

    def figure_of(self, objective: Objective) -> str:
        """Return the name of the figure that an objective is about, as :attr:`quantities` or the summaries have it.

        Not every mechanism has it: without protection no output is held.
        """
        addresses = [address_in(each.summary, objective.figure) for each in self.protected.values()]
        return next((address for address in addresses if address != objective.figure), objective.figure)

    def verdict(self, kind: str, objective: Objective) -> Verdict:
        """Tell whether a mechanism meets an objective; open: its interval holds the limit."""
        name = self.figure_of(objective)
        estimate = self.estimate(kind, name)
        if estimate is None:
            return "yes" if self.protected[kind].never_does(name) and objective.holds(0.0) else "no"
        is_met = objective.holds(estimate.mean)
        ends = (estimate.low, estimate.high) if math.isfinite(estimate.half_width) else ()
        return "open" if any(objective.holds(end) != is_met for end in ends) else "yes" if is_met else "no"

    def verdicts(self, kind: str) -> Verdict:
        """Tell whether a mechanism meets every objective."""
        every = {self.verdict(kind, objective) for objective in self.request.objectives}
        return "no" if "no" in every else "open" if "open" in every else "yes"

    @cached_property
    def ordered(self) -> list[str]:
        """The mechanisms: those that meet what is asked, the cheaper ones before; as named if nothing is asked."""
        if not self.request.objectives:
            return list(self.protected)
        best = ("yes", "open", "no")
        return sorted(self.protected, key=lambda kind: (best.index(self.verdicts(kind)), self.price(kind)))

    def price(self, kind: str) -> float:
        """Return what a mechanism costs, in percent of a pCPU; infinite where nothing says it."""
        estimate = self.estimate(kind, PRICE)
        return math.inf if estimate is None else estimate.mean

    def blocks(self) -> list[Block]:
        """Return answers, the table of what was asked, tables of all figures, notes."""
        about = self.manifest["models"][0]
        notes = [note for note in about["notes"] if not note.startswith("protection")]
        # One mechanism reads what another has no use for: said is what all of them leave unread.
        models = self.manifest["models"]
        idle = [text for text in about["without_effect"] if all(text in each["without_effect"] for each in models)]
        common = {**about, "costs": [], "notes": notes, "without_effect": idle}
        blocks: list[Block] = [*head([common], self.manifest["seed"])]
        if self.request.objectives:
            blocks += [*(Answer(text) for text in _answers(self)), *crossover_answers(self.crossovers), _verdicts(self)]
        else:
            blocks += [*_prices(self), *crossover_answers(self.crossovers)]
        owners = dict.fromkeys(quantity.owner for quantity in self.quantities if quantity.group == SERVICE)
        every = self.base.spec.owners_of_copies().items()
        of_copies = {copy for owner, copies in every if owner in owners for copy in copies}
        beside = self._of_copies_beside() | of_copies
        for owner in filterfalse(beside.__contains__, owners):
            shown = [quantity for quantity in self.quantities if quantity.group == SERVICE and quantity.owner == owner]
            blocks += _tables(self, short_owner(owner), shown, with_differences=True)
        titles = {COST: "costs", FAILURE: "a crash", YEAR: "a year"}
        for group, title in titles.items():
            blocks += _tables(self, title, [quantity for quantity in self.quantities if quantity.group == group])
        crossing = crossover_blocks(self.crossovers, self.ordered)
        blocks += [*_deciding(self), *crossing, *_outages(self), *(Note(text) for text in _notes(self))]
        return [*blocks, *(Note(f"Left out: {kind}: {why}", warns=True) for kind, why in self.refused.items())]

    @cached_property
    def copies_beside(self) -> list[str]:
        """The domains that the entry of the compared one stands for beside it."""
        spec, domain = self.base.spec, next(iter(self.protected.values())).domain
        return [each for each in spec.copies(spec.entry_of(domain)) if each != domain]

    def _of_copies_beside(self) -> set[str]:
        """Return the owners of figures that say of another copy what those of the compared one say."""
        spec, beside = self.base.spec, self.copies_beside
        drivers = {driver: domain for name in spec.workloads for driver, domain in spec.drivers_of(name).items()}
        programs = (
            f"domains.{each}.applications.{key}" for each in beside for key in spec.expanded()[each].applications
        )
        return {*programs, *(f"workloads.{driver}" for driver, domain in drivers.items() if domain in beside)}

    def to_pandas(self) -> DataFrame:
        """Return one row a mechanism and figure, the difference to no protection behind it."""
        table = []
        for kind in self.protected:
            for quantity in self.quantities:
                estimate = self.estimate(kind, quantity.name)
                if estimate is None:
                    continue
                row = {"mechanism": kind, "figure": quantity.name, "group": quantity.group, "unit": quantity.unit}
                less = self.difference(kind, quantity.name) if kind != self.first else None
                of_pairs = estimate_columns(less, "difference_") if less is not None else {}
                table.append(row | estimate_columns(estimate) | of_pairs | self._parts(kind, quantity.name))
        return frame(table)

    def _parts(self, kind: str, name: str) -> dict[str, Any]:
        """Return what of an interval is of the replications, what of prices, and which price decides."""
        band, estimate = self.bands.get(kind, {}).get(name), self.protected[kind].estimate(name)
        if band is None or estimate is None:
            return {}
        of_runs = {"replications_low": estimate.low, "replications_high": estimate.high}
        return of_runs | band.columns(estimate.mean)

    @property
    def outside(self) -> list[list[str]] | None:
        """Mechanism and figure where a load is outside of what the model was fitted to; None as of other studies."""
        if self.base.spec.calibrated is None:
            return None
        at_first = bool(outside(self.base.spec, first_load(self.base.spec)))
        return [
            [kind, quantity.name]
            for kind, each in self.protected.items()
            for quantity in self.quantities
            if (each.capacity is not None and each.capacity.ends_outside if quantity.name == CAPACITY else at_first)
        ]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "comparison": rows(self.to_pandas()),
            **asdict(self.request.failures),
            "objectives": [
                {
                    "objective": str(objective),
                    "figure": self.figure_of(objective),
                    "met": {kind: self.verdict(kind, objective) for kind in self.protected},
                }
                for objective in self.request.objectives
            ],
            "order": self.ordered,
            "refused": dict(self.refused),
            "crossovers": [each.for_machines() for each in self.crossovers],
            "notes": {kind: list(texts) for kind, texts in self.notes.items()},
            "outside_calibration": self.outside,
        }


def decision_takes(models: Mapping[str, Model], replications: int, request: DecisionRequest) -> Needs:
    """Return what such a study takes: replications of each model, and crashes; of each price two more."""
    needs = total([each.spec for each in models.values()], replications)
    for each in models.values():
        needs += Crashes(max(replications, 2), of_backup=True).takes(each)
        once = Crashes(1, after_ns=watched_ns({"": each}), of_backup=True, of_copy=False)
        for end in variants(_shorter(each), protected_domain(each)) if request.bands else ():
            needs += once.takes(end.model) if end.is_of_failure else total([end.model.spec], 1)
    if not request.crossovers:
        return needs
    entry = protected_domain(next(iter(models.values())))
    return needs + orders_take(models, entry, shared_knobs(request.crossovers, models, entry), request, replications)


def decide(
    model: Model, kinds: Sequence[str], replications: int, request: DecisionRequest, execution: Execution
) -> Decision:
    """Run a model under every mechanism for the same replications, and as many crashes of each.

    Refuses a model that no mechanism fits, or that has no figure or setting that was asked for.
    """
    models, refused = fitting(model, kinds)
    name, specs = protected_domain(model), [each.spec for each in models.values()]
    request = replace(request, objectives=in_units(request.objectives, specs, UNDECLARED_UNITS))
    knobs = shared_knobs(request.crossovers, models, name)
    played = Played(model.spec.copies(name)[0], request, execution)
    played.ahead = _units(models, name, replications, request)
    played.ahead += points_of_orders(models, name, knobs, played, replications)
    interrupted = not played.run(models.values(), replications)
    records = {kind: played.records[each.digest()] for kind, each in models.items()}
    common = sorted(set.intersection(*map(set, records.values())))
    if not common:
        raise Interrupted("no replication of all mechanisms had finished")
    compared = played.of_runs(models, common)
    notes = {}
    for kind, protected in models.items():
        of_costs = cost_note(protected.spec.domains[name])
        of_channel = own_channel(protected.spec.domains[name], model.spec.domains[name])
        of_model = of_runs(protected.spec, [(number, records[kind][number]) for number in common])
        notes[kind] = [text for text in (of_costs, of_channel, *of_model) if text]
    if not interrupted:
        crashes = Crashes(max(replications, 2), of_backup=True)
        played.crash(models.values(), crashes)
        compared = {kind: played.of_crashes(each, models[kind], crashes) for kind, each in compared.items()}
        for kind, each in compared.items():
            notes[kind] += [] if each.failovers is None else each.failovers.of_crashes
    for kind, each in compared.items():
        if each.failovers is not None and each.year is None:
            notes[kind].append("no year: a run ended before the guest was back")
    manifest = execution.manifest(
        list(models.values()), "compare", common, wanted=replications, interrupted=interrupted
    )
    manifest["compare"] = {PROTECTION: list(models)}
    bands = _bands(models, name, played) if request.bands and not interrupted else {}
    played.ahead = points_of_orders(models, name, knobs, played, replications)
    over = orders(models, name, knobs, played, replications) if knobs and not interrupted else []
    return Decision(
        model, compared, request, bands, refused, {k: v for k, v in notes.items() if v}, manifest, tuple(over)
    )


def _units(models: Mapping[str, Model], entry: str, replications: int, request: DecisionRequest) -> int:
    """Return how many runs and crashes there are: of each mechanism, and at both ends of its prices."""
    units = len(models) * (replications + max(replications, 2))
    for each in models.values() if request.bands else ():
        base, ends = _shorter(each), list(variants(_shorter(each), entry))
        failing = {end.model.digest() for end in ends if end.is_of_failure}
        running = {base.digest(), *(end.model.digest() for end in ends if not end.is_of_failure)}
        units += len(running - {each.digest()}) + len(failing | {base.digest()} if failing else ())
    return units


def _shorter(model: Model) -> Model:
    """Return the model with shorter steps: what a price moves shows there, too."""
    return model.quick() if model.spec.ramp is not None else model


def _bands(models: Mapping[str, Model], entry: str, played: Played) -> dict[str, dict[str, Band]]:
    """Play every price at both ends of its range, once, and return what that makes of each mechanism's figures."""
    base: dict[Any, Model] = {kind: _shorter(model) for kind, model in models.items()}
    ends = {(kind, n): end for kind, model in base.items() for n, end in enumerate(variants(model, entry))}
    of_run = base | {key: end.model for key, end in ends.items() if not end.is_of_failure}
    if not played.run(of_run.values(), 1):
        return {}
    once = Crashes(1, after_ns=watched_ns(base), of_backup=True, of_copy=False)
    of_failure = {key: end.model for key, end in ends.items() if end.is_of_failure}
    failing = {kind for kind, _ in of_failure}
    played.crash([*(base[kind] for kind in base if kind in failing), *of_failure.values()], once)
    figures, bands = played.of_runs(of_run, [0]), {}
    for kind, model in base.items():
        in_use = played.of_crashes(figures[kind], model, once) if kind in failing else figures[kind]
        at_ends = [
            (end, played.of_crashes(in_use, end.model, once) if end.is_of_failure else figures[key])
            for key, end in ends.items()
            if key[0] == kind
        ]
        asked_for = [address_in(in_use.summary, objective.figure) for objective in played.request.objectives]
        bands[kind] = _of_mechanism(in_use, at_ends, asked_for)
    return bands


def _of_mechanism(
    base: Protected, played: Sequence[tuple[Variant, Protected]], asked_for: Sequence[str]
) -> dict[str, Band]:
    """Return the bands of a mechanism's figures; a run shows nothing of a crash, and a crash nothing of a run."""
    bands = {}
    groups = dict.fromkeys(asked_for, SERVICE) | {quantity.name: quantity.group for quantity in quantities({"": base})}
    for name, group in groups.items():
        of_failure = group in (FAILURE, YEAR)
        alike = [(each, figures.figure(name)) for each, figures in played if each.is_of_failure == of_failure]
        if band := band_of(effects_of(alike, base.figure(name))):
            bands[name] = band
    return bands


_LESS = "less "
_MILLIONTH = 1e-6
_OF_STATE = {"rolled_back", "execution_lost"}


def _deciding(decision: Decision) -> list[Block]:
    """Return which price moves the figures most that were asked for, the price of all, and the outage."""
    objectives = [(decision.figure_of(objective), str(objective)) for objective in decision.request.objectives]
    columns = dict([*objectives, (PRICE, "price"), (OUTAGE, "outage")])
    rows: list[list[Cell]] = []
    for kind in decision.ordered:
        bands = [decision.bands.get(kind, {}).get(name) for name in columns]
        if any(bands):
            rows.append([kind, *(f"{band.decides} {100 * band.share:.0f} %" if band else None for band in bands)])
    caption = "of the variance over the ranges of prices; docs/protection/prices.md"
    return [Table(["decides", *columns.values()], rows, caption=caption, texts=len(columns) + 1)] if rows else []


def _outages(decision: Decision) -> list[Block]:
    """Return the parts of the outages that end."""
    names = [quantity.name for quantity in decision.quantities if quantity.name.startswith(f"{OUTAGE}.")]
    rows = [(kind, [decision.estimate(kind, name) for name in names]) for kind in decision.ordered]
    ending = [(kind, [each.mean for each in parts if each is not None]) for kind, parts in rows]
    complete = [(kind, parts) for kind, parts in ending if len(parts) == len(names)]
    title = "Outages when the primary's host crashes"
    parts_of = [name.partition(".")[2].replace("_", " ") for name in names]
    return [Bars(title, "seconds since the last packet", parts_of, complete)] if complete and names else []


def _answers(decision: Decision) -> Iterator[str]:
    objectives = " and ".join(str(objective) for objective in decision.request.objectives)
    meets, is_open = (
        [kind for kind in decision.ordered if decision.verdicts(kind) == word] for word in ("yes", "open")
    )
    if not meets:
        yield f"None of these mechanisms meets {objectives}{' for certain' if is_open else ''}."
    elif len(meets) == 1:
        yield f"{meets[0]} alone meets {objectives}; {_priced(decision, meets[0])}."
    else:
        more = decision.price(meets[1]) - decision.price(meets[0])
        yield (
            f"{', '.join(meets)} meet {objectives}. The cheapest is {meets[0]}: {_priced(decision, meets[0])}, "
            f"{more:.3g} % less than {meets[1]}."
        )
    if is_open:
        yield f"Open, since an interval holds the limit: {', '.join(is_open)}."


def _prices(decision: Decision) -> list[Block]:
    """Return what each mechanism costs both hosts; nothing where it is not known."""
    by_kind = [(kind, decision.estimate(kind, PRICE)) for kind in decision.ordered if kind != NONE]
    words = [f"{kind} {shown(estimate)[0]}" for kind, estimate in by_kind if estimate is not None]
    question = f"What does protection of {decision.base.label} cost both hosts, in percent of a pCPU?"
    return [Answer(", ".join(words), question)] if words else []


def _priced(decision: Decision, kind: str) -> str:
    price = decision.estimate(kind, PRICE)
    return "price not known" if price is None else f"price {in_words(price)} % of a pCPU"


def _verdicts(decision: Decision) -> Table:
    """Return a verdict and the figure for each mechanism and objective."""
    objectives, rows = decision.request.objectives, list[list[Cell]]()
    for kind in decision.ordered:
        cells = [_judged(decision, kind, decision.figure_of(each)) for each in objectives]
        verdicts = (f"{decision.verdict(kind, a)}: {in_words(cell)}" for a, cell in zip(objectives, cells, strict=True))
        rows.append([kind, *verdicts, _cell(decision, kind, PRICE)])
    return Table(["asked", *map(str, objectives), "price, % of a pCPU"], rows)


def _tables(
    decision: Decision, title: str, figures: Sequence[Quantity], *, with_differences: bool = False
) -> list[Table]:
    """Return a table of figures; what nobody has any of is left out."""
    rows = []
    for kind in decision.ordered:
        rows += [(kind, False), (kind, True)] if with_differences and kind != decision.first else [(kind, False)]
    beyond = {name for _, name in decision.outside or ()}
    heads, columns = [title], list[list[Cell]]()
    for figure in figures:
        cells = [(_less if is_less else _cell)(decision, kind, figure.name) for kind, is_less in rows]
        if not all(map(_is_nothing, cells)):
            heads.append(f"{figure.words}{MARK if figure.name in beyond else ''}")
            columns.append(cells)
    body: list[list[Cell]] = []
    for (kind, is_less), *cells in zip(rows, *columns, strict=True):
        if not (is_less and all(map(_is_nothing, cells))):
            body.append([f"{_LESS}{decision.first}" if is_less else kind, *cells])
    return [Table(heads, body)] if columns else []


def _less(decision: Decision, kind: str, name: str) -> Estimate | None:
    """Return the difference, 0 below a millionth: a watched guest's work is rounded to nanoseconds more often."""
    less, base = decision.difference(kind, name), decision.estimate(decision.first, name)
    if less is None or base is None or max(-less.low, less.high) > _MILLIONTH * abs(base.mean):
        return less
    return replace(less, mean=0.0, half_width=0.0, low=0.0, high=0.0)


def _is_nothing(cell: Cell) -> bool:
    return cell is None or (isinstance(cell, Estimate) and cell.low == cell.high == 0.0)


def _judged(decision: Decision, kind: str, name: str) -> Cell:
    cell = _cell(decision, kind, name)
    return 0.0 if cell is None and decision.protected[kind].never_does(name) else cell


def _cell(decision: Decision, kind: str, name: str) -> Cell:
    """Return a figure, or in words what has none: an outage without end, a state of which nothing is left."""
    each, estimate = decision.protected[kind], decision.estimate(kind, name)
    if name in _OF_STATE and each.is_lost:
        return "all"
    if estimate is None:
        return _without_end(each, len(each.crashes)).get(name) if each.crashes else None
    if name == CAPACITY and each.capacity is not None and 2 * each.capacity.unfailed >= estimate.n:
        return f"at least {estimate.mean:.4g}"
    if name in OF_FAILED and estimate.mean < 0.0:
        return FEWER
    is_meant = name.endswith(".breaches") and estimate.mean and each.breaks_promise
    return f"{shown(estimate)[0]} by design" if is_meant else estimate


def _without_end(each: Protected, crashes: int) -> dict[str, str]:
    """Return in words what crashes show after which the service does not come back."""
    of_never = "never ends" if each.never == crashes else f"{each.never} of {crashes} never end"
    lost = ALL if each.never == crashes else f"{ALL}: {each.never} of {crashes}"
    words = {OUTAGE: of_never, "unprotected": "never again"}
    return words | (dict.fromkeys(("requests_lost", "packets_lost"), lost) if each.never else {})


def _notes(decision: Decision) -> Iterator[str]:
    yield (
        "price: CPU time of both hosts beyond what the same work takes unprotected, time the guest stands still "
        "included; work done: mean of the leading rates. breaches: outputs that left before a backup could take over."
    )
    if beside := decision.copies_beside:
        yield (
            f"Of {len(beside) + 1} copies: price, work done and what clients and programs get are those of all "
            "together, what else is shown is of the first; what clients of each get is in --csv and --json."
        )
    yield (
        f"A year: {decision.request.failures}; what does not come back by itself is brought back by hand in "
        f"{decision.request.failures.restart_s:g} s (--restart)."
    )
    count = len(decision.manifest["replications"])
    runs = counted(count, "replication")
    yield f"{runs} under the same random numbers, {max(count, 2)} crashes. {INTERVALS} {OF_PAIRS}"
    if decision.bands:
        yield (
            "Where a mechanism has prices of its own, ± and [ ] are of replications and of the ranges of these prices "
            "together: 95 % of what prices drawn from them make (--no-prices: none)."
        )
    failed = (decision.estimate(kind, name) for kind in decision.protected for name in OF_FAILED)
    if any(each is not None and each.mean < 0.0 for each in failed):
        yield FEWER_FAILED
    yield from lost_in_its_crash(decision.base)
    if decision.outside:
        yield below_table([(decision.base.label, decision.base.spec)])
    for kind, texts in decision.notes.items():
        yield from (f"{kind}: {text}" for text in texts)
