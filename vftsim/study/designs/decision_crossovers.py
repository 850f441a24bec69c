"""Crossovers of mechanisms: the cheapest one that meets the objectives, over the values of a shared setting.

A setting is put to a few values, and every mechanism is played at each with the same replications; where the cheapest
of those that meet what is asked changes between two values, all are played in the middle (of the logarithm) too, twice.
Two things change an order: two prices cross, or a figure that is asked for crosses its limit.  Where: linear between
the values over the setting's logarithm (:mod:`.crossovers`): a price itself, the logarithm of a figure that is positive
everywhere, which near saturation grows by factors.

Where nothing is asked, the mechanisms that have a backup are compared.  A ramp is played as one step at its first load,
unless its capacity is asked for.  Crashes are played where what they show is asked for.  The interval of a place is of
the replications: prices of mechanisms stay at the values in use.
"""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, pairwise
from typing import Any, TypeVar

from vftsim.composition.record import RunRecord
from vftsim.errors import UsageError
from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Point, Series, Table, in_words
from vftsim.stats import Estimate
from vftsim.stats.estimate import plain
from vftsim.study.blocks.head import INTERVALS
from vftsim.study.designs.availability import HostFailures, rate_of, year_of
from vftsim.study.designs.axes import SharedKnob
from vftsim.study.designs.capacity_by_ramp import ramp_capacity_of
from vftsim.study.designs.constant_load import at_load
from vftsim.study.designs.crossovers import CERTAIN, Crossover, crossovers
from vftsim.study.designs.decision_figures import CAPACITY, NONE, PRICE, Protected, address_in, computed, is_of_failure
from vftsim.study.designs.failover import Crashes, FailoverStudy, crashes_of_each
from vftsim.study.execution import Execution, Replications
from vftsim.study.figures.frames import CONFIDENCE, estimate_columns
from vftsim.study.figures.names import Objective
from vftsim.study.figures.summary import Summary
from vftsim.study.runs.estimate import Needs, total
from vftsim.study.runs.model import Model

K = TypeVar("K")
DEFAULT_MTBF_S = 365 * 86_400.0


@dataclass(frozen=True)
class DecisionRequest:
    """The question."""

    objectives: tuple[Objective, ...] = ()
    """Objectives; a mechanism has to meet all of them."""
    failures: HostFailures = field(default_factory=partial(HostFailures, DEFAULT_MTBF_S))
    bands: bool = True
    """Whether each price is also played at both ends of its range, once."""
    crossovers: tuple[str, ...] = ()
    """Settings over which the order of mechanisms is sought, as :func:`~.axes.shared_knobs` reads them."""


SOON_NS = 8_000_000_000
"""Above the longest detection and takeover that prices make, a restart aside."""


@dataclass
class Played:
    """Models under mechanisms, each played once, and what that shows for the objectives of a decision."""

    domain: str
    """The protected one, as records name it."""
    request: DecisionRequest
    execution: Execution
    records: dict[str, dict[int, RunRecord]] = field(default_factory=dict)
    """By the model's digest, and replication."""
    failovers: dict[tuple[str, Crashes], FailoverStudy] = field(default_factory=dict)
    ahead: int = 0
    """How many runs and crashes are still to be played, as far as that is known."""

    def run(self, models: Iterable[Model], replications: int) -> bool:
        """Run the replications that are missing; tell whether that went to its end."""
        models = list(models)
        digests = {model.digest() for model in models}
        self._begin(sum(n not in self.records.get(digest, {}) for digest in digests for n in range(replications)))
        return Replications(models, self.execution, self.records).run(replications)

    def _begin(self, units: int) -> None:
        """Begin so many of what is ahead."""
        self.ahead = max(0, self.ahead - units)
        self.execution.progress.later = self.ahead

    def crash(self, models: Iterable[Model], crashes: Crashes) -> None:
        """Play the crashes that are missing."""
        every = {(model.digest(), crashes): model for model in models}
        new = {key: model for key, model in every.items() if key not in self.failovers}
        self._begin(len(new) * crashes.count)
        self.failovers |= zip(new, crashes_of_each(list(new.values()), crashes, self.execution), strict=True)

    def of_runs(self, models: Mapping[K, Model], numbers: Iterable[int]) -> dict[K, Protected]:
        """Return the figures of replications, beside those without protection where that is one of the models."""
        digests, numbers = {key: model.digest() for key, model in models.items()}, list(numbers)
        records = {key: [(n, self.records[digest][n]) for n in numbers] for key, digest in digests.items()}
        summaries: dict[Any, Summary] = {key: Summary(of_model, CONFIDENCE) for key, of_model in records.items()}
        protected = {}
        for key, model in models.items():
            for objective in self.request.objectives:
                address_in(summaries[key], objective.figure)  # a percentile that nobody has listed comes to be
            capacity = ramp_capacity_of(model, records[key]) if model.spec.ramp is not None else None
            of_both = computed(model, self.domain, summaries[key], summaries.get(NONE))
            protected[key] = Protected(model, self.domain, summaries[key], of_both, capacity)
        return protected

    def of_crashes(self, each: Protected, model: Model, crashes: Crashes) -> Protected:
        """Return a mechanism with what crashes show; without a year if one ended before the guest was back."""
        study = self.failovers[model.digest(), crashes]
        try:
            rate = rate_of(each.model, self.domain)
            year = year_of(study, study.mechanism, self.request.failures, rate)
        except UsageError:
            year = None
        return replace(each, failovers=study, year=year)


HALVINGS = 2


@dataclass(frozen=True)
class Change:
    """A change of order."""

    figure: str
    """The figure that crosses: the price, or an objective."""
    before: str
    after: str
    """Of prices: which mechanism has the lower one below the place and above it.  Of an objective: the mechanism that
    meets it, on the side on which it does; empty on the other."""
    at: Estimate
    low: float
    high: float
    """Values next to it at which the order is certain."""
    is_of_cheapest: bool
    """Whether it changes who is the cheapest."""

    def ends(self, cheapest: Mapping[float, str], value: float, next_value: float) -> bool:
        """Whether it is why another one is the cheapest at the next value."""
        is_between = self.low <= value and next_value <= self.high
        return is_between and self.before in ("", cheapest[value]) and self.after in ("", cheapest[next_value])


@dataclass(frozen=True)
class Order:
    """The order of mechanisms over a setting."""

    knob: SharedKnob
    points: Mapping[float, Mapping[str, Protected]]
    """By value, ascending, what was found of every mechanism."""
    cheapest: Mapping[float, str]
    """By value, the cheapest that meets what is asked; empty: none does."""
    meeting: Mapping[float, frozenset[str]]
    """By value, all that meet it."""
    changes: tuple[Change, ...]

    def stretches(self) -> Iterator[tuple[str, float, float, Change | None]]:
        """Yield who is the cheapest from one value to another, and the change that ends it, if one is known."""
        values = list(self.cheapest)
        begin = values[0]
        for value, next_value in pairwise([*values, math.nan]):
            if self.cheapest[value] != self.cheapest.get(next_value):
                why = (each for each in self.changes if each.ends(self.cheapest, value, next_value))
                yield self.cheapest[value], begin, value, next(why, None)
                begin = next_value

    def for_machines(self) -> dict[str, Any]:
        return {
            "setting": self.knob.name,
            "unit": self.knob.unit,
            "points": [
                {
                    "at": value,
                    "cheapest": self.cheapest[value],
                    "prices": {
                        kind: {**estimate_columns(price), "meets": kind in self.meeting[value]}
                        for kind, each in protected.items()
                        if (price := each.estimate(PRICE)) is not None
                    },
                }
                for value, protected in self.points.items()
            ],
            "changes": [
                {
                    "what": each.figure,
                    "before": each.before,
                    "after": each.after,
                    "of_cheapest": each.is_of_cheapest,
                    "from": each.low,
                    "to": each.high,
                    **estimate_columns(each.at),
                }
                for each in self.changes
            ],
        }


def orders(
    models: Mapping[str, Model], entry: str, knobs: Sequence[SharedKnob], played: Played, replications: int
) -> list[Order]:
    """Play mechanisms over settings; return who is the cheapest where; none where the user ended it."""
    base, crashes = _steady(models, played.request), _crashes_of(models, played.request, replications)
    with_backup = [kind for kind, model in models.items() if model.spec.domains[entry].protection.has_backup]
    ordered = list(models) if played.request.objectives else with_backup
    models_at = {knob: {value: _at(base, entry, knob, value) for value in knob.values} for knob in knobs}

    def figures_at(by_kind: Mapping[str, Model]) -> dict[str, Protected]:
        figures = played.of_runs(by_kind, range(replications))
        if crashes is None:
            return figures
        return {kind: played.of_crashes(each, by_kind[kind], crashes) for kind, each in figures.items()}

    for left in range(HALVINGS, -1, -1):
        every = [model for by_value in models_at.values() for each in by_value.values() for model in each.values()]
        if not played.run(every, replications):
            return []
        if crashes is not None:
            played.crash(every, crashes)
        found_orders = []
        for knob, by_value in models_at.items():
            points = {value: figures_at(by_value[value]) for value in sorted(by_value)}
            found_orders.append(order_of(knob, points, ordered, played.request.objectives))
        for order in found_orders if left else ():
            middles = [math.sqrt(a * b) for a, b in pairwise(order.cheapest) if order.cheapest[a] != order.cheapest[b]]
            models_at[order.knob] |= {value: _at(base, entry, order.knob, value) for value in middles}
    return found_orders


def orders_take(
    models: Mapping[str, Model], entry: str, knobs: Sequence[SharedKnob], request: DecisionRequest, replications: int
) -> Needs:
    """Return what that takes, as if each setting changed the order once."""
    base, crashes, needs = _steady(models, request), _crashes_of(models, request, replications), Needs()
    for knob in knobs:
        every = [model for value in knob.values for model in _at(base, entry, knob, value).values()]
        distinct = {model.digest(): model for model in every}.values()
        once = total([model.spec for model in distinct], replications)
        for model in distinct:
            once += crashes.takes(model) if crashes is not None else Needs()
        needs += once.times(1.0 + HALVINGS / len(knob.values))
    return needs


def points_of_orders(
    models: Mapping[str, Model], entry: str, knobs: Sequence[SharedKnob], played: Played, replications: int
) -> int:
    """Return how many runs and crashes the values that are given take beyond what is played."""
    base, crashes = _steady(models, played.request), _crashes_of(models, played.request, replications)
    every = {model.digest() for knob in knobs for v in knob.values for model in _at(base, entry, knob, v).values()}
    new = every - played.records.keys() - {model.digest() for model in models.values()}
    return len(new) * replications + (len(every) * crashes.count if crashes is not None else 0)


def _steady(models: Mapping[str, Model], request: DecisionRequest) -> dict[str, Model]:
    """Return the models with a ramp as one step at its first load, unless its capacity is asked for."""
    if any(objective.figure == CAPACITY for objective in request.objectives):
        return dict(models)
    return {
        kind: model if (ramp := model.spec.ramp) is None else replace(model, spec=at_load(model.spec, ramp.first_load))
        for kind, model in models.items()
    }


def watched_ns(models: Mapping[str, Model]) -> int | None:
    """Return how long a crash is watched: where nothing queues, until the guest is back."""
    return None if any(model.spec.ramp is not None for model in models.values()) else SOON_NS


def _crashes_of(models: Mapping[str, Model], request: DecisionRequest, replications: int) -> Crashes | None:
    """Return the crashes of each model; None where no objective is about what they show."""
    if not any(is_of_failure(objective.figure) for objective in request.objectives):
        return None
    return Crashes(max(replications, 2), after_ns=watched_ns(models), of_backup=True)


def _at(base: Mapping[str, Model], entry: str, knob: SharedKnob, value: float) -> dict[str, Model]:
    return {kind: knob.at(model, entry, value) for kind, model in base.items()}


def order_of(
    knob: SharedKnob,
    points: Mapping[float, Mapping[str, Protected]],
    kinds: Sequence[str],
    objectives: Sequence[Objective],
) -> Order:
    """Return the order of those mechanisms that are wanted, over values of a setting, ascending."""
    meeting, cheapest = dict[float, frozenset[str]](), dict[float, str]()
    for value, by_kind in points.items():
        meet = [kind for kind in kinds if all(_meets(by_kind[kind], objective) for objective in objectives)]
        meeting[value] = frozenset(meet)
        prices = {kind: _mean(by_kind[kind], PRICE) for kind in sorted(meet)}
        cheapest[value] = min(prices, key=prices.__getitem__, default="")
    changes = [*_of_objectives(points, kinds, objectives), *_of_prices(points, kinds, meeting)]
    changing = [(a, b) for a, b in pairwise(cheapest) if cheapest[a] != cheapest[b]]
    marked = [replace(each, is_of_cheapest=any(each.ends(cheapest, *pair) for pair in changing)) for each in changes]
    return Order(knob, points, cheapest, meeting, tuple(sorted(marked, key=lambda each: each.at.mean)))


def _meets(each: Protected, objective: Objective) -> bool:
    mean = _mean(each, objective.figure)
    return math.isfinite(mean) and objective.holds(mean)


def _mean(each: Protected, figure: str) -> float:
    name = address_in(each.summary, figure)
    estimate = each.estimate(name)
    return estimate.mean if estimate is not None else 0.0 if each.never_does(name) else math.inf


def _of_objectives(
    points: Mapping[float, Mapping[str, Protected]], kinds: Sequence[str], objectives: Sequence[Objective]
) -> Iterator[Change]:
    """Yield where a mechanism begins or ceases to meet an objective."""
    for objective in objectives:
        for kind in kinds:
            samples = _samples([by_kind[kind] for by_kind in points.values()], objective.figure)
            limits = [[objective.value] * len(sample) for sample in samples]
            if not any(value <= 0.0 for sample in (*samples, *limits) for value in sample):
                samples, limits = ([_logs(sample) for sample in each] for each in (samples, limits))
            for where in crossovers(_logs(points), samples, limits):
                meets_before = where.first_is_lower_before == (objective.sign > 0.0)
                yield _change(str(objective), (kind, "") if meets_before else ("", kind), where, points)


def _of_prices(
    points: Mapping[float, Mapping[str, Protected]], kinds: Sequence[str], meeting: Mapping[float, frozenset[str]]
) -> Iterator[Change]:
    """Yield where two prices cross of mechanisms that meet what is asked on either side."""
    for pair in combinations(kinds, 2):
        first, second = (_samples([by_kind[kind] for by_kind in points.values()], PRICE) for kind in pair)
        for where in crossovers(_logs(points), first, second):
            sides = pair if where.first_is_lower_before else pair[::-1]
            change = _change(PRICE, sides, where, points)
            if set(pair) <= meeting[change.low] & meeting[change.high]:
                yield change


def _change(figure: str, sides: tuple[str, str], where: Crossover, points: Iterable[float]) -> Change:
    near, at = {math.log(value): value for value in points}, where.at
    low, high = math.exp(at.low), math.exp(at.high)
    half_width = (high - low) / 2.0 if math.isfinite(at.half_width) else at.half_width
    crossing = replace(at, mean=math.exp(at.mean), low=low, high=high, half_width=half_width)
    return Change(figure, *sides, crossing, near[where.low], near[where.high], is_of_cheapest=False)


def _logs(values: Iterable[float]) -> list[float]:
    return [math.log(value) for value in values]


def _samples(each: Sequence[Protected], figure: str) -> list[list[float]]:
    """Return a figure of every replication at each value, as many everywhere; nan where there is none."""
    samples = [protected.sample(address_in(protected.summary, figure)) for protected in each]
    count = max(map(len, samples))
    return [
        sample if len(sample) == count and all(map(math.isfinite, sample)) else [math.nan] * count for sample in samples
    ]


def crossover_answers(orders: Sequence[Order]) -> Iterator[Answer]:
    """Yield a sentence for each setting: who is the cheapest from where to where."""
    for order in orders:
        parts = [_stretch(order, *each) for each in order.stretches()]
        yield Answer(f"{', then '.join(parts)}.", f"Who is the cheapest as {_name(order)} grows?")


def crossover_blocks(orders: Sequence[Order], kinds: Sequence[str]) -> Iterator[Block]:
    for order in orders:
        yield _prices(order, kinds)
        yield _chart(order, kinds)
    changes: list[list[Cell]] = [
        [_words(order, each), each.at, f"{plain(each.low)} and {plain(each.high)} {order.knob.unit}"]
        for order in orders
        for each in order.changes
    ]
    if changes:
        caption = (
            "Linear between the values that were played, over the logarithm (of a figure above 0 that is asked for its "
            f"logarithm too). {CERTAIN} {INTERVALS}"
        )
        yield Table(["what changes (* the cheapest)", "at", "between"], changes, "", caption)
    if orders:
        yield Note(
            "Crossovers: service and costs of a ramp are those of one step at its first load; prices of mechanisms are "
            "those in use, without their ranges."
        )


def _name(order: Order) -> str:
    return f"{order.knob.name} ({order.knob.unit})"


def _stretch(order: Order, kind: str, begin: float, end: float, ending: Change | None) -> str:
    who = kind or "no mechanism"
    if end == max(order.points):
        from_the_first = begin == min(order.points)
        return f"{who} throughout ({plain(begin)} to {plain(end)})" if from_the_first else f"{who} to {plain(end)}"
    if ending is not None:
        return f"{who} to {in_words(ending.at)} ({_reason(ending)})"
    after = min(value for value in order.points if value > end)
    between = f"{plain(end)} and {plain(after)}"
    return f"{who} to somewhere between {between} (the order there may be chance; more replications tell)"


def _reason(change: Change) -> str:
    if change.figure == PRICE:
        return "prices cross"
    if change.before:
        return f"no longer {change.figure}"
    return f"{change.after} then meets {change.figure}"


def _words(order: Order, change: Change) -> str:
    mark = "*" * change.is_of_cheapest
    if change.figure == PRICE:
        return f"{order.knob.name}: {change.before} is cheaper below, {change.after} above{mark}"
    side = "below" if change.before else "above"
    return f"{order.knob.name}: {change.before or change.after} meets {change.figure} {side}{mark}"


def _prices(order: Order, kinds: Sequence[str]) -> Table:
    """Return the prices at the values that were asked for; what was played between them is in the chart."""
    rows: list[list[Cell]] = []
    for kind in kinds:
        row: list[Cell] = [kind]
        for value in order.knob.values:
            price = order.points[value][kind].estimate(PRICE)
            text = "-" if price is None else f"{price.mean:.3g}"
            met = text if kind in order.meeting[value] else f"({text})"
            row.append(f"{met}*" if order.cheapest[value] == kind else met)
        rows.append(row)
    caption = "Price in % of a pCPU. * the cheapest; in brackets: does not meet what is asked."
    return Table([_name(order), *(plain(value) for value in order.knob.values)], rows, caption=caption)


def _chart(order: Order, kinds: Sequence[str]) -> Chart:
    series = []
    for kind in kinds:
        prices = [(value, protected[kind].estimate(PRICE)) for value, protected in order.points.items()]
        points = [Point.of(value, math.nan if price is None else price) for value, price in prices]
        series.append(Series(kind, points))
    at = [(each.at.mean, f"{plain(each.at.mean)} {order.knob.unit}") for each in order.changes if each.is_of_cheapest]
    title = f"Price over {order.knob.name}"
    return Chart(title, _name(order), "price: CPU, both hosts, %", series, at=at, x_scale="log")
