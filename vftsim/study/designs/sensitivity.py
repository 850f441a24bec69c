"""``vftsim sensitivity``: which of the numbers that a figure rests on decide it, over ranges of theirs.

Three stages, each on points under the same random numbers:

1. One at a time: every factor at either end of its range, the others as the model has them (the tornado).
2. Screening by Morris's elementary effects: trajectories through the ranges of all factors.  ``mu*`` is the mean of the
   absolute effects of going through a factor's whole range, ``sigma`` how much that depends on the others.
3. Sobol's indices of the factors that matter, the others as the model has them: which share of the figure's variance
   over the ranges a factor explains alone (first order), and with all that it takes part in (total).

Samples and indices are SALib's, with bootstrap intervals.  Every factor is taken as spread evenly over its range (by
ratio where it says so), which is an assumption about the question and not about the system.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from vftsim.errors import UsageError
from vftsim.report.blocks import Answer, Block, Cell, Chart, Note, Table, dot_chart, with_unit
from vftsim.spec.suggest import counted, listing
from vftsim.stats import Estimate
from vftsim.stats.estimate import plain
from vftsim.stats.intervals import FEWEST_RUNS
from vftsim.study.blocks.head import head
from vftsim.study.blocks.printed import Printed
from vftsim.study.designs.points import Points, Span, source_of, values_outside
from vftsim.study.designs.runner import Evaluator, found_at
from vftsim.study.designs.study_spec import Factor
from vftsim.study.execution import Execution
from vftsim.study.figures.frames import DataFrame, frame, interval_columns, rows
from vftsim.study.figures.names import one_figure
from vftsim.study.figures.summary import OF_PAIRS, Summary
from vftsim.study.runs.estimate import Needs, needs_of
from vftsim.study.runs.extras import extra
from vftsim.study.runs.model import Model, first_look_ns

COMMAND, EXTRA = "sensitivity", "sensitivity"
LEVELS = 4
"""Of Morris's trajectories, as he recommends."""
RESAMPLES = 1000
MATTERS = 0.1
"""A factor goes on to the third stage if its mu*, or the upper end of it, reaches this share of the largest."""
_LARGEST_SEED = 2**31 - 2


@dataclass(frozen=True)
class Request:
    """The request."""

    model: str
    settings: tuple[str, ...]
    """As with ``--set``."""
    figure: str
    spans: Mapping[str, Span]
    """Range of each factor."""
    base: Model
    """The model with the settings."""
    trajectories: int = 10
    samples: int = 64
    most: int = 5
    """Of Morris; of Sobol, a power of 2; factors of the third stage."""
    replications: int = 2
    confidence: float = 0.95
    least_ns: int | None = None
    """What every point measures at least, shortened for a first look; none: all that the model says."""

    def check(self) -> None:
        if len(self.spans) < 2:
            raise UsageError("sensitivity: at least two factors; --range KEY=LOW..HIGH, repeated, --prices or --fit")
        if self.samples < 2 or self.samples & (self.samples - 1):
            raise UsageError(f"--samples: a power of 2, as Sobol sequences are balanced by; not {self.samples}")
        if self.trajectories < 2 or self.most < 1:
            raise UsageError("--trajectories: at least 2; --most: at least 1")
        one_figure(self.figure, self.base.spec, "--figure")

    def points(self, rows_of: Sequence[Mapping[str, str]]) -> Points:
        """Return points with these values of factors."""
        factors, label = dict.fromkeys(self.spans, Factor()), self.base.label
        source = source_of(self.model, label, self.settings, rows_of, factors, "--range")
        return Points((source,), rows_of, self.least_ns)

    def first_look(self) -> "Request":
        """Return the request with the points of all stages measured as long as the one that needs most.

        That is where each factor stands at the end of its range that needs more.
        """
        ends = [{name: span.at(share)} for name, span in self.spans.items() for share in (0.0, 1.0)]
        needed_ns = [first_look_ns([point.model]) for point in self.points(ends)]
        is_high = [low < high for low, high in zip(needed_ns[::2], needed_ns[1::2], strict=True)]
        at_most = {name: self.spans[name].at(float(more)) for name, more in zip(self.spans, is_high, strict=True)}
        points, _ = self.points([{}, at_most]).possible()
        least_ns = first_look_ns(point.model for point in points)
        return replace(self, base=self.base.quick(least_ns), least_ns=least_ns)

    def takes(self) -> Needs:
        """Return what it takes, about: the last stage with as many factors as it may have."""
        count = len(self.spans)
        points = 2 * count + 1 + self.trajectories * (count + 1) + self.samples * (min(count, self.most) + 2)
        return needs_of(self.base.spec).times(points * self.replications)


_DECIDES = 0.05
_LEAST = f"{100 * _DECIDES:g} %"


@dataclass(frozen=True)
class Effect:
    """Results of a factor."""

    name: str
    span: Span
    low: Estimate | None
    high: Estimate | None
    """Difference of the figure from that of the model, with the factor at either end."""
    effect: Estimate
    """Morris's mu*."""
    sigma: float
    first: Estimate | None = None
    total: Estimate | None = None
    """Sobol's indices; None for a factor that was screened out."""

    @property
    def weight(self) -> tuple[float, float]:
        """By what factors are ordered: total share of the variance, then mu*."""
        return (self.total.mean if self.total else -1.0, self.effect.mean)


@dataclass(frozen=True)
class Sensitivity(Printed):
    """The result: the factors on which a figure depends."""

    request: Request
    figure: str
    """Whole address."""
    unit: str
    in_use: Estimate
    """The figure of the model as it is."""
    effects: list[Effect]
    """The most important first."""
    spread: Estimate
    """The figure over the points of the last stage: median, and the central part of them."""
    manifest: dict[str, Any]
    runs: int
    remarks: list[str] = field(default_factory=list)
    table = f"{COMMAND}.csv"

    @property
    def deciding(self) -> list[Effect]:
        """Factors whose total share of the variance is surely above a twentieth."""
        return [each for each in self.effects if each.total is not None and each.total.low > _DECIDES]

    @property
    def unknown(self) -> list[Effect]:
        """Factors whose total share may be above a twentieth or below."""
        return [each for each in self.effects if each.total and each.total.low <= _DECIDES < each.total.high]

    def to_pandas(self) -> DataFrame:
        """Return one row a factor."""
        table = []
        for rank, effect in enumerate(self.effects, 1):
            row = {
                "rank": rank,
                "factor": effect.name,
                "from": effect.span.at(0.0),
                "to": effect.span.at(1.0),
                "unit": self.unit,
                "difference_at_from": effect.low.mean if effect.low else None,
                "difference_at_to": effect.high.mean if effect.high else None,
                **interval_columns("mu_star", effect.effect),
                "sigma": effect.sigma,
                **interval_columns("first_order", effect.first),
                **interval_columns("total", effect.total),
            }
            table.append(row)
        return frame(table)

    def blocks(self) -> list[Block]:
        """Return the answer, the shares of factors, what each does by itself, and notes."""
        ends, shares, short = list[list[Cell]](), list[list[Cell]](), short_names([each.name for each in self.effects])
        for effect in self.effects:
            span = f"{effect.span.at(0.0)} to {effect.span.at(1.0)}"
            ends.append([short[effect.name], span, effect.low, effect.high])
            shares.append([short[effect.name], effect.total, effect.first, effect.effect])
        at_low, at_high, mu_star = (with_unit(text, self.unit) for text in ("at low", "at high", "mu*"))
        return [
            *head(self.manifest["models"], self.manifest["seed"]),
            Answer(*_answer(self)),
            *_charts(self, short),
            Table(["factor", "total share", "first order", mu_star], shares),
            Table(["one at a time", "range", at_low, at_high], ends),
            *(Note(text) for text in _notes(self)),
        ]

    def for_machines(self) -> dict[str, Any]:
        return {
            "manifest": self.manifest,
            "figure": self.figure,
            "unit": self.unit,
            "own": {"estimate": self.in_use.mean, "low": self.in_use.low, "high": self.in_use.high},
            "over_ranges": {"median": self.spread.mean, "low": self.spread.low, "high": self.spread.high},
            "depends_on": [each.name for each in self.deciding],
            "factors": rows(self.to_pandas()),
        }


def sensitivity(request: Request, execution: Execution) -> Sensitivity:
    """Find out what a figure depends on; the execution has a store.

    Refuses a request that makes no sense, a figure that says nothing at a point, and all where SALib is missing.
    """
    request.check()
    extra("SALib", EXTRA, COMMAND)
    execution.check(request.replications)
    figure = one_figure(request.figure, request.base.spec, "--figure")
    evaluate = Evaluator(request.confidence, execution)
    response = Response(request, figure, evaluate)
    in_use, ends, unit = response.one_at_a_time()
    effects, outputs = response.screened(ends)
    order = sorted(effects, key=lambda each: each.effect.mean, reverse=True)
    largest = order[0].effect.mean
    matter = [each.name for each in order if largest and each.effect.high >= MATTERS * largest][: request.most]
    indices: dict[str, tuple[Estimate, Estimate]] = {}
    if matter:
        indices, outputs = response.indices(matter)
    shares = [(each, *indices.get(each.name, (None, None))) for each in effects]
    done = [replace(each, first=first, total=total) for each, first, total in shares]
    manifest = execution.manifest([request.base], COMMAND, request.replications)
    manifest["sensitivity"] = {
        "figure": figure,
        "ranges": {name: [span.at(0.0), span.at(1.0)] for name, span in request.spans.items()},
        "trajectories": request.trajectories,
        "samples": request.samples,
        "points": evaluate.runs,
    }
    by_weight = sorted(done, key=lambda each: each.weight, reverse=True)
    return Sensitivity(request, figure, unit, in_use, by_weight, _spread(outputs), manifest, evaluate.runs)


@dataclass(frozen=True)
class Response:
    """The figure that is asked about, wherever the factors stand."""

    request: Request
    figure: str
    evaluate: Evaluator

    def estimates(self, values: Sequence[Mapping[str, str]]) -> Iterator[tuple[Summary, str, Estimate]]:
        """Yield for each point all its figures, and address and estimate of the one that is asked about."""
        points = self.request.points(values)
        runs = self.evaluate(points, self.request.replications)
        for point in points:
            summary = self.evaluate.summary(runs, point.number)
            yield summary, *found_at(point, summary, self.figure)

    def one_at_a_time(self) -> tuple[Estimate, dict[str, tuple[Estimate | None, Estimate | None]], str]:
        """Return the model's figure, the differences at the ends of each range, and the unit."""
        spans = self.request.spans
        ends = [{name: span.at(share)} for name, span in spans.items() for share in (0.0, 1.0)]
        figures = self.estimates([{}, *ends])
        first, mine, in_use = next(figures)
        gaps = [first.difference(other, mine, its) for other, its, _ in figures]
        pairs = dict(zip(spans, zip(gaps[::2], gaps[1::2], strict=True), strict=True))
        return in_use, pairs, first.rows[mine].address.entry.unit

    def screened(self, ends: Mapping[str, tuple[Estimate | None, Estimate | None]]) -> tuple[list[Effect], list[float]]:
        """Return the factors with Morris's measures, and the figure at all points."""
        spans, count = self.request.spans, self.request.trajectories
        measures, outputs = self._analyzed("morris", list(spans), Span.at, count, num_levels=LEVELS)
        effects = []
        for number, (name, span) in enumerate(spans.items()):
            value, half, sigma = (float(measures[each][number]) for each in ("mu_star", "mu_star_conf", "sigma"))
            effect = self._around(value, max(value - half, 0.0), value + half, count)
            effects.append(Effect(name, span, *ends[name], effect, sigma))
        return effects, outputs

    def indices(self, names: Sequence[str]) -> tuple[dict[str, tuple[Estimate, Estimate]], list[float]]:
        """Return Sobol's indices of some factors, first order and total, and the figure at all points."""
        count = self.request.samples
        indices, outputs = self._analyzed("sobol", names, Span.drawn_at, count, calc_second_order=False)

        def index(kind: str, number: int) -> Estimate:
            value, half = float(indices[kind][number]), float(indices[f"{kind}_conf"][number])
            # A share is from 0 to 1; few samples may say less or more, and no end says more than they do.
            low, high = max(value - half, min(value, 0.0)), min(value + half, max(value, 1.0))
            return self._around(value, low, high, count)

        return {name: (index("S1", n), index("ST", n)) for n, name in enumerate(names) if indices}, outputs

    def _analyzed(
        self, method: str, names: Sequence[str], at: Callable[[Span, float], str], count: int, **settings: Any
    ) -> tuple[Mapping[str, Any], list[float]]:
        """Return what a method of SALib says of some factors, and the figure at all points of its sample.

        ``at`` says the value at a share of a range; ``settings`` are of sample and analysis.  Nothing is said of
        Sobol's indices where the figure is the same at all points: it has no variance to share.
        """
        import numpy as np  # noqa: PLC0415 - as the library below

        sample, analyze = (extra(f"SALib.{part}.{method}", EXTRA, COMMAND) for part in ("sample", "analyze"))
        problem = {"num_vars": len(names), "names": list(names), "bounds": [[0.0, 1.0]] * len(names)}
        settings["seed"] = 1 + self.evaluate.execution.seed % _LARGEST_SEED  # SALib takes 0 for no seed
        shares, spans = sample.sample(problem, count, **settings), self.request.spans
        values = [{n: at(spans[n], x) for n, x in zip(names, row, strict=True)} for row in shares.tolist()]
        outputs = [estimate.mean for *_, estimate in self.estimates(values)]
        if method == "sobol" and len(set(outputs)) < 2:
            return {}, outputs
        arrays = (shares, np.array(outputs)) if method == "morris" else (np.array(outputs),)
        bootstrap = {"num_resamples": RESAMPLES, "conf_level": self.request.confidence}
        return analyze.analyze(problem, *arrays, **bootstrap, **settings), outputs

    def _around(self, value: float, low: float, high: float, n: int) -> Estimate:
        """Return a measure of a factor with its interval by bootstrap."""
        return Estimate(value, (high - low) / 2.0, low, high, n, self.request.confidence, "t")


def _spread(outputs: Sequence[float]) -> Estimate:
    """Return the median of the points, and between which 95 % of them lie."""
    order = sorted(outputs)
    last = len(order) - 1
    low, middle, high = (order[round(share * last)] for share in (0.025, 0.5, 0.975))
    return Estimate(middle, math.inf, low, high, len(order), 0.95, "range")


_WORDS = ("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")


def _charts(result: Sensitivity, short: Mapping[str, str]) -> list[Chart]:
    """Return what each factor does by itself, and its share of the variance."""
    ends = {f"at its {end} end": [getattr(effect, end) for effect in result.effects] for end in ("low", "high")}
    totals = [effect.total for effect in result.effects]
    names = [short[effect.name] for effect in result.effects]
    axis = with_unit("difference from the model as it is", result.unit)
    charts = [dot_chart(f"{result.figure}, one factor at a time", axis, names, ends, limits=[(0.0, "")])]
    if any(totals):
        charts.append(dot_chart("Total share of the variance", "share", names, {"total share": totals}))
    return charts


def _answer(result: Sensitivity) -> tuple[str, str, str]:
    """Return the answer, its question, and what it rests on."""
    question = f"What does {result.figure} depend on?"
    deciding, count = result.deciding, len(result.effects)
    unit = f" {result.unit}" if result.unit else ""
    in_use, spread = plain(result.in_use.mean), result.spread
    if not any(each.effect.mean for each in result.effects):
        return (
            f"{result.figure} depends on none of {count} factors: it is {in_use}{unit} at all {result.runs} points, to "
            "the last digit.",
            question,
            "Wider ranges, longer runs or another figure may tell more.",
        )
    ends = f"{plain(spread.low)} to {plain(spread.high)}{unit}"
    over = f"It is {in_use}{unit} as the model stands, and {ends} over the ranges"
    if not deciding:
        return (
            f"{result.figure}: no factor's share is known to be above {_LEAST}; more --samples tell them apart.",
            question,
            f"{over} (95 % of the points).",
        )
    names = [f"{each.name} ({_percent(each)})" for each in deciding]
    number = _WORDS[len(deciding)] if len(deciding) < len(_WORDS) else str(len(deciding))
    which = "this one" if len(deciding) == 1 else f"these {number}"
    return (
        f"{result.figure} depends on {which} of {count} factors: {listing(names)}.",
        question,
        "In brackets: share of its variance, with all that the factor takes part in. "
        f"{over} (95 % of the points). {_undecided(result)}",
    )


def _percent(effect: Effect) -> str:
    assert effect.total is not None
    return f"{100 * min(effect.total.mean, 1.0):.0f} %"  # few samples can say more than all of it


def _undecided(result: Sensitivity) -> str:
    """Say what is known of the factors that do not surely decide."""
    out, unknown = [each for each in result.effects if each.total is None], result.unknown
    texts = []
    if unknown:
        names = listing([each.name for each in unknown])
        texts.append(f"Of {names} it is not known whether the share is above {_LEAST}; more --samples tell.")
    if out:
        most = max(out, key=lambda each: each.effect.mean)
        moved = f"{most.name}, which moves it by {plain(most.effect.mean)} {result.unit}".rstrip()
        texts.append(f"Screened out: {moved}." if len(out) == 1 else f"Screened out: {len(out)}, most of all {moved}.")
    return " ".join(texts) or "All factors were looked at to the end."


def _notes(result: Sensitivity) -> list[str]:
    request, notes = result.request, list[str]()
    for text in values_outside(request.base.spec, request.spans):
        notes.append(f"As the model stands, {text}: at low and at high start from there.")
    closed = [(each.name, each.total) for each in result.effects if each.total is not None]
    alike = [f"{a} and {b}" for (a, upper), (b, lower) in pairwise(closed) if upper.low < lower.high]
    if alike:
        notes.append(f"Not told apart (intervals of their total shares overlap): {listing(alike)}; more --samples do.")
    pairs = "" if request.replications < FEWEST_RUNS else ", with intervals of pairs"
    as_it_is = f"At low, at high: difference from the model as it is, the other factors as they are{pairs}."
    notes.append(f"{as_it_is} {OF_PAIRS}")
    notes.append("mu*: mean absolute effect of a factor's whole range (Morris), other factors anywhere in theirs.")
    notes.append("Total share: of the variance (Sobol), with all that the factor takes part in; first order: alone.")
    percent = f"{100 * request.confidence:g}"
    notes.append(
        f"{counted(result.runs, 'run')}: {counted(request.replications, 'replication')} a point under the same random "
        f"numbers, {request.trajectories} trajectories, {request.samples} samples; ± and [ ]: {percent} % by bootstrap."
        " Factors are spread evenly over their ranges."
    )
    return notes


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Return the last words of each dotted name that tell it from the others."""
    short = {}
    for name in names:
        words = name.split(".")
        ends = (".".join(words[-count:]) for count in range(1, len(words) + 1))
        short[name] = next(
            (end for end in ends if sum(other == end or other.endswith(f".{end}") for other in names) == 1), name
        )
    return short
